/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that logs the extent of each successful read, so that a repetition of these reads can be
 * gathered first (mem_gather.h).
 */
#ifndef BASE_MEM_NOTED_H
#define BASE_MEM_NOTED_H

#include "base/mem_gather.h"

struct mem_noted {
	struct lb_mem mem; /* hand &n.mem to mem_read() */
	const struct lb_mem *under;
	struct mem_extent *extent; /* of each read; the caller may take the array */
	size_t n;
};

/* under outlives it. */
void mem_noted_init(struct mem_noted *noted, const struct lb_mem *under);
void mem_noted_clear(struct mem_noted *noted);

#endif
