/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of a live process as a struct lb_mem: process_vm_readv(2). Needs CAP_SYS_PTRACE or the
 * process's own credentials. Unlike BPF's reads, these page memory in: where a user may provide pages
 * (pager.h), by the process of reader.h.
 */
#ifndef BASE_MEM_REMOTE_H
#define BASE_MEM_REMOTE_H

#include <stdbool.h>
#include <sys/types.h>

#include <unwind/mem.h>

struct mem_remote {
	struct lb_mem mem; /* hand &r.mem to mem_read() */
	pid_t pid;
	bool waits; /* for a page that does not come: it is not read again, -ETIMEDOUT */
};

void mem_remote_init(struct mem_remote *r, pid_t pid);

#endif
