/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory whose k-th read fails, for every k that a walk gets to, in each way there is
 * (walk_host.h), with cached blocks and without:
 *
 *	fail_each_init(&f, mem);
 *	while (fail_each_next(&f))
 *		walk over f.mem.mem once, and judge it
 */
#ifndef LIB_FAIL_EACH_H
#define LIB_FAIL_EACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "walk_host.h"

struct fail_each {
	struct mem_failing mem; /* refers to the fields below: do not copy */
	const struct lb_mem *under;
	size_t way;
	uint32_t k;
	uint32_t total; /* reads that a walk made at the most; a failed one may make fewer */
	uint32_t reads; /* of the current walk */
	uint64_t where; /* its k-th read's address */
};

void fail_each_init(struct fail_each *f, const struct lb_mem *under);

/* False: all was tried. */
bool fail_each_next(struct fail_each *f);

/* Says which read of the last walk failed, and how. Returns text. */
const char *fail_each_tell(const struct fail_each *f, char *text, size_t size);

#endif
