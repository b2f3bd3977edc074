/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many small objects of a target, read together: first it is told where they are, then those that
 * lie close to each other are read as one piece, and all pieces as a batch (mem_vec.h). What the
 * pieces do not hold is read from the memory under them.
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

/* An object begins at addr. Beyond these limits, or without memory, it is not noted. */
void mem_gather_want(struct mem_gather *g, uint64_t addr);

/* Ditto, of so many bytes. */
void mem_gather_want_all(struct mem_gather *g, uint64_t addr, uint32_t size);

/* Reads what was wanted since the last time in place of what was read then. 0 or -ENOMEM. */
int mem_gather_read(struct mem_gather *g);

#endif
