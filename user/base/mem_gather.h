/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scatter-gather reads of many small objects of a target. mem_gather_want() registers addresses,
 * mem_gather_read() merges neighbours into pieces and reads all pieces as a batch (mem_vec.h).
 * Later reads come from the pieces; bytes outside them come from the memory under it.
 *
 *     want  want   want                    want
 *     |-----------------|  a piece         |----|  another
 */
#ifndef BASE_MEM_GATHER_H
#define BASE_MEM_GATHER_H

#include "base/mem_vec.h"

#define MEM_GATHER_MAX 4096	    /* wants */
#define MEM_GATHER_BYTES (4u << 20) /* of all of them */

struct mem_extent {
	uint64_t addr;
	uint32_t size;
};

struct mem_gather {
	struct lb_mem mem; /* hand &g.mem to mem_read() */
	const struct lb_mem *under;
	size_t nwants, npieces, cap;
	uint32_t bytes_wanted;
	struct mem_extent *want;
	struct mem_vec *piece; /* by address; they do not overlap */
	uint8_t *bytes;
};

/* under outlives g. */
void mem_gather_init(struct mem_gather *g, const struct lb_mem *under);
void mem_gather_clear(struct mem_gather *g);

/* Registers an object at addr. Beyond the limits above, or out of memory, it does nothing. */
void mem_gather_want(struct mem_gather *g, uint64_t addr);

/* The same for an object of `size` bytes. */
void mem_gather_want_all(struct mem_gather *g, uint64_t addr, uint32_t size);

/* Replaces the pieces by those of the extents wanted since the last call. 0 or -ENOMEM. */
int mem_gather_read(struct mem_gather *g);

#endif
