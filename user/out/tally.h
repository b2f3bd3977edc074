/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts by key, in one or two levels. Keys are bytes; an order by count keeps equal counts in the
 * order in which their keys first came, so that the same profile always gives the same text.
 * Numbers saturate.
 */
#ifndef OUT_TALLY_H
#define OUT_TALLY_H

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

struct tally {
	UT_hash_handle hh;
	uint64_t count;
	struct tally *sub; /* table of the second level, NULL when there is none */
	size_t len;
	char key[]; /* and a NUL */
};

/* Adds to `key` and, when sub is not NULL, to `sub` under it. Start with a NULL table. 0 or
 * -ENOMEM. */
int tally_add(struct tally **table, const char *key, const char *sub, uint64_t count);

/* By count, descending, in both levels. Walk with hh.next. */
void tally_sort(struct tally **table);

void tally_free(struct tally **table);

#endif
