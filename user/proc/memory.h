/* SPDX-License-Identifier: BSD-2-Clause */
/* Which pages of a process's memory can be read without a page fault. */
#ifndef PROC_MEMORY_H
#define PROC_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/budget.h"

#define MEMORY_PAGE 4096 /* /proc/PID/pagemap has an entry for each */
#define MEMORY_RUN 65536 /* bytes of a call at most */

/*
 * Calls fn for each run of pages in the process's private writable mappings that are in main memory,
 * by address: reading an absent page would fault it in. A nonzero return ends it and is returned.
 * *complete: no page was swapped out, and the budget, in bytes, sufficed. -ESRCH, -EACCES.
 */
int memory_each(pid_t pid, struct budget *work, int (*fn)(void *arg, uint64_t start, uint64_t end),
		void *arg, bool *complete);

#endif
