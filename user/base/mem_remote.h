/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of a live process as a struct lb_mem: process_vm_readv(2). Needs CAP_SYS_PTRACE or the
 * process's own credentials. Unlike BPF's reads, these page memory in.
 */
#ifndef BASE_MEM_REMOTE_H
#define BASE_MEM_REMOTE_H

#include <sys/types.h>

#include <unwind/mem.h>

struct mem_remote {
	struct lb_mem mem; /* hand &r.mem to mem_read() */
	pid_t pid;
};

void mem_remote_init(struct mem_remote *r, pid_t pid);

#endif
