/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory read by pages, each of them once: for a walk over many small objects that lie side by side,
 * such as the names in a VM's tables. All reads of one walk see a page as it was at the first of
 * them. Bytes of a page that cannot be read as a whole are read by themselves.
 */
#ifndef BASE_MEM_PAGES_H
#define BASE_MEM_PAGES_H

#include <stdint.h>

#include <unwind/mem.h>

#define MEM_PAGES_BYTES 4096
#define MEM_PAGES_SLOTS 64 /* power of two: a page has its slot by its number */

struct mem_pages {
	struct lb_mem mem; /* hand &pages->mem to mem_read() */
	const struct lb_mem *under;
	uint64_t at[MEM_PAGES_SLOTS]; /* its address + 1; 0: it is free */
	uint8_t bytes[MEM_PAGES_SLOTS][MEM_PAGES_BYTES];
};

/* under outlives it. NULL: out of memory. */
struct mem_pages *mem_pages_new(const struct lb_mem *under);

void mem_pages_free(struct mem_pages **pages);

#endif
