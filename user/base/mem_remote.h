/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of a live process as a struct lb_mem: process_vm_readv(2). Needs CAP_SYS_PTRACE or the
 * process's own credentials. Unlike BPF's reads, these page memory in.
 */
#ifndef BASE_MEM_REMOTE_H
#define BASE_MEM_REMOTE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <luabpf/mem.h>

struct mem_remote {
	struct lb_mem mem; /* hand &r.mem to mem_read() */
	pid_t pid;
};

void mem_remote_init(struct mem_remote *r, pid_t pid);

/* One piece of a batch. err is set for each: 0, or a negative errno and dst is undefined. */
struct mem_vec {
	void *dst;
	uint32_t size;
	uint64_t addr;
	int err;
};

/*
 * Reads many pieces with few system calls. A piece that cannot be read does not hinder the others.
 * Returns the number of pieces read, or -errno when nothing can be read at all: -ESRCH, -EPERM.
 */
int mem_remote_readv(const struct mem_remote *r, struct mem_vec *vec, size_t n);

#endif
