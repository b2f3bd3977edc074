/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts by key, in one or two levels. Keys are bytes; an order by count keeps equal counts in the
 * order in which their keys first came, so that the same profile always gives the same text.
 * Numbers saturate.
 *
 * A profile of a few bytes can name many long keys. So the keys that are kept have a bound, and so
 * has the work of making them: what is beyond counts for the key NAME_OTHER.
 */
#ifndef OUT_TALLY_H
#define OUT_TALLY_H

#include <stdbool.h>
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

struct tallies {
	struct tally *first; /* walk with hh.next */
	size_t kept;	     /* bytes of all keys and what they are kept in */
	size_t made;	     /* bytes of the keys that were added, once for each time */
};

#define TALLY_MAX_KEPT (256UL << 20)
#define TALLY_MAX_MADE (4UL << 30)

/* A key that is made of a stack ends in NAME_OTHER when it is longer. */
#define TALLY_MAX_KEY (1UL << 20)

/* True: the caller counts for NAME_OTHER instead of making another key. */
static inline bool tally_is_full(const struct tallies *table)
{
	return table->made >= TALLY_MAX_MADE;
}

/* Adds to `key` and, when sub is not NULL, to `sub` under it. 0 or -ENOMEM. */
int tally_add(struct tallies *table, const char *key, const char *sub, uint64_t count);

/* By count, descending, in both levels. */
void tally_sort(struct tallies *table);

void tally_free(struct tallies *table);

/* The rounded percentage of jit.p; whole > 0. */
int tally_percent(uint64_t part, uint64_t whole);

#endif
