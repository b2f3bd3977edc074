// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "prof/name.h"
#include "tally.h"

/* uthash's memory for a table with its first element. */
#define TABLE_BYTES 1024

static struct tally *find(struct tally *level, const char *key, size_t len)
{
	struct tally *t;

	HASH_FIND(hh, level, key, len, t);
	return t;
}

static int find_or_add(struct tallies *table, struct tally **level, const char *key,
		       struct tally **out)
{
	size_t len = strlen(key), bytes = sizeof(**out) + len + (*level ? 0 : TABLE_BYTES);
	struct tally *t = find(*level, key, len);

	table->made += len;
	if (!t && bytes > TALLY_MAX_KEPT - table->kept) {
		key = NAME_OTHER;
		len = strlen(key);
		bytes = 0; /* one in each table */
		t = find(*level, key, len);
	}
	if (!t) {
		t = calloc(1, sizeof(*t) + len + 1);
		if (!t)
			return -ENOMEM;
		t->len = len;
		memcpy(t->key, key, len);
		HASH_ADD(hh, *level, key, len, t);
		if (!t->hh.tbl) {
			free(t);
			return -ENOMEM;
		}
		table->kept += bytes;
	}
	*out = t;
	return 0;
}

static void add_count(struct tally *t, uint64_t count)
{
	if (__builtin_add_overflow(t->count, count, &t->count))
		t->count = UINT64_MAX;
}

int tally_add(struct tallies *table, const char *key, const char *sub, uint64_t count)
{
	struct tally *t, *s;
	int err = find_or_add(table, &table->first, key, &t);

	if (err)
		return err;
	add_count(t, count);
	if (!sub)
		return 0;
	err = find_or_add(table, &t->sub, sub, &s);
	if (!err)
		add_count(s, count);
	return err;
}

static int by_count(const struct tally *a, const struct tally *b)
{
	return a->count < b->count ? 1 : a->count > b->count ? -1 : 0;
}

/* uthash's sort is a merge sort, which is stable. */
void tally_sort(struct tallies *table)
{
	HASH_SORT(table->first, by_count);
	for (struct tally *t = table->first; t; t = t->hh.next)
		HASH_SORT(t->sub, by_count);
}

void tally_free(struct tallies *table)
{
	struct tally *t, *tnext, *s, *snext;

	HASH_ITER (hh, table->first, t, tnext) {
		HASH_ITER (hh, t->sub, s, snext) {
			HASH_DEL(t->sub, s);
			free(s);
		}
		HASH_DEL(table->first, t);
		free(t);
	}
}

int tally_percent(uint64_t part, uint64_t whole)
{
	return (int)floor((double)part * 100 / (double)whole + 0.5);
}
