/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts by key, in one or two levels. Keys are bytes. Sorting by count is stable: equal counts
 * keep the order in which their keys were added, so that a profile always gives the same text.
 * Counts saturate.
 *
 * A profile of a few bytes can name many long keys. So the memory for keys is bounded, and so is
 * the work of making them: further rows count for the key NAME_OTHER.
 */
#ifndef OUT_TALLY_H
#define OUT_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash_index.h"

/* A line; it stays where it is until tally_free(). */
struct tally {
	struct tally *next;	  /* of its level */
	struct tally *sub, *last; /* the second level: its first and last line; NULL: it has none */
	const struct tally *parent; /* NULL: of the first level */
	uint64_t count;
	size_t len;
	char key[]; /* and a NUL */
};

struct tallies {
	struct tally *first, *last; /* the first level */
	size_t kept;		    /* bytes of all lines */
	size_t made;		    /* bytes of the keys of all calls */
	struct tally **lines;	    /* of both levels, as they were added */
	size_t n;
	struct hash_index index;
};

#define TALLY_MAX_KEPT (256UL << 20)
#define TALLY_MAX_MADE (4UL << 30)

/* A stack's key ends in NAME_OTHER beyond this length. */
#define TALLY_MAX_KEY (1UL << 20)

/* True if the caller is to count for NAME_OTHER instead of making another key. */
static inline bool tally_is_full(const struct tallies *table)
{
	return table->made >= TALLY_MAX_MADE;
}

/* Adds to `key`, of the second level under `parent` unless that is NULL. NULL: out of memory. */
struct tally *tally_add_to(struct tallies *table, struct tally *parent, const char *key,
			   uint64_t count);

/* Adds to `key` and, when sub is not NULL, to `sub` under it. 0 or -ENOMEM. */
int tally_add(struct tallies *table, const char *key, const char *sub, uint64_t count);

/* Sorts lines by count, descending; equal counts by `order`. */
struct ranked {
	uint64_t count;
	size_t order;
	void *line;
};
void tally_rank(struct ranked *lines, size_t n);

/* Sorts both levels by count, descending. 0 or -ENOMEM. */
int tally_sort(struct tallies *table);

void tally_free(struct tallies *table);

/* Returns the percentage, rounded as in jit.p; whole > 0. */
int tally_percent(uint64_t part, uint64_t whole);

#endif
