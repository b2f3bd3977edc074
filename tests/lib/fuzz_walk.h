/* SPDX-License-Identifier: BSD-2-Clause */
/* What the fuzzers of all walkers have: the input, and what holds of any walk. */
#ifndef LIB_FUZZ_WALK_H
#define LIB_FUZZ_WALK_H

#include <stddef.h>
#include <stdint.h>

#include <luabpf/walk.h>

#include "walk_host.h"

struct fuzz_input {
	const uint8_t *p;
	size_t left;
};

/* The next size bytes, at most 8, as a little-endian number; what is missing of them is 0. */
uint64_t fuzz_take(struct fuzz_input *in, size_t size);

/*
 * Where to damage size bytes in an object of len; `at` chooses. Bytes beyond the first KiB (stacks)
 * are reached in words.
 */
uint32_t fuzz_offset(uint32_t at, uint32_t len, size_t size);

/* Memory of which nothing fails, or all from a read on that touches a place: `choice`, a byte. */
struct fuzz_mem {
	struct mem_failing mem; /* refers to the fields below: do not copy */
	uint32_t reads;
	uint64_t where;
};

void fuzz_mem_init(struct fuzz_mem *m, const struct lb_mem *under, uint32_t choice);

/*
 * Aborts unless the walk ended with a reason, and each of its frames could be sent: one of kinds,
 * bits 1 << LB_FRAME_LUA and so on, with none but these flags.
 */
void fuzz_check_walk(const struct lb_walk *w, uint32_t kinds, uint32_t flags);

#endif
