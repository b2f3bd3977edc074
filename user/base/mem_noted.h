/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that notes what is read of it: where and how much, so that all of it can be gathered
 * (mem_gather.h) before it is read again.
 */
#ifndef BASE_MEM_NOTED_H
#define BASE_MEM_NOTED_H

#include "base/mem_gather.h"

struct mem_noted {
	struct lb_mem mem; /* hand &n.mem to mem_read() */
	const struct lb_mem *under;
	struct mem_extent *extent; /* what was read; the caller may take them */
	size_t n, cap;
};

/* under outlives it. */
void mem_noted_init(struct mem_noted *noted, const struct lb_mem *under);
void mem_noted_clear(struct mem_noted *noted);

#endif
