/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many small objects of a target, read together: first it is told where they begin, then those that
 * lie close to each other are read as one piece, and all pieces as a batch (mem_vec.h). What the
 * pieces do not hold is read from the memory under them.
 *
 *     want  want   want                    want
 *     |-----------------|  a piece         |----|  another
 */
#ifndef BASE_MEM_GATHER_H
#define BASE_MEM_GATHER_H

#include "base/mem_vec.h"

#define MEM_GATHER_MAX 512 /* wants; their pieces are 550 KiB at most */

struct mem_gather {
	struct lb_mem mem; /* hand &g.mem to mem_read() */
	const struct lb_mem *under;
	size_t nwants, npieces;
	uint64_t want[MEM_GATHER_MAX];
	struct mem_vec piece[MEM_GATHER_MAX]; /* by address; they do not overlap */
	uint8_t *bytes;
};

/* under outlives g. */
void mem_gather_init(struct mem_gather *g, const struct lb_mem *under);
void mem_gather_clear(struct mem_gather *g);

/* An object begins at addr. Beyond MEM_GATHER_MAX it is not noted. */
void mem_gather_want(struct mem_gather *g, uint64_t addr);

/* Reads what was wanted since the last time in place of what was read then. 0 or -ENOMEM. */
int mem_gather_read(struct mem_gather *g);

#endif
