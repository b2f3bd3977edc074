// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "prof/name.h"
#include "tally.h"

/* uthash's memory for a table with its first element. */
#define TABLE_BYTES 1024

#define MANY 1000 /* lines that are sorted in an array */

static struct tally *find(struct tally *level, const char *key, size_t len, unsigned int *hash)
{
	struct tally *t;

	HASH_VALUE(key, len, *hash);
	HASH_FIND_BYHASHVALUE(hh, level, key, len, *hash, t);
	return t;
}

static int find_or_add(struct tallies *table, struct tally **level, const char *key,
		       struct tally **out)
{
	size_t len = strlen(key), bytes = sizeof(**out) + len + (*level ? 0 : TABLE_BYTES);
	unsigned int hash;
	struct tally *t = find(*level, key, len, &hash);

	table->made += len;
	if (!t && bytes > TALLY_MAX_KEPT - table->kept) {
		key = NAME_OTHER;
		len = strlen(key);
		bytes = 0; /* one in each table */
		t = find(*level, key, len, &hash);
	}
	if (!t) {
		t = calloc(1, sizeof(*t) + len + 1);
		if (!t)
			return -ENOMEM;
		t->len = len;
		memcpy(t->key, key, len);
		HASH_ADD_BYHASHVALUE(hh, *level, key, len, hash, t);
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

static int by_rank(const void *x, const void *y)
{
	const struct ranked *a = x, *b = y;

	if (a->count != b->count)
		return a->count < b->count ? 1 : -1;
	return a->order < b->order ? -1 : a->order > b->order;
}

void tally_rank(struct ranked *lines, size_t n)
{
	qsort(lines, n, sizeof(*lines), by_rank);
}

/* uthash's sort is a merge sort, which is stable. */
static int by_count(const struct tally *a, const struct tally *b)
{
	return a->count < b->count ? 1 : a->count > b->count ? -1 : 0;
}

/* Links a level's lines in their new order, as HASH_SORT() does. */
static void relink(struct tally **level, const struct ranked *lines, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct tally *t = lines[i].line;

		t->hh.prev = i ? lines[i - 1].line : NULL;
		t->hh.next = i + 1 < n ? lines[i + 1].line : NULL;
	}
	*level = lines[0].line;
	(*level)->hh.tbl->tail = &((struct tally *)lines[n - 1].line)->hh;
}

static void sort_level(struct tally **level)
{
	size_t n = HASH_COUNT(*level), i = 0;
	__free struct ranked *lines = n < MANY ? NULL : calloc(n, sizeof(*lines));

	if (!lines) {
		HASH_SORT(*level, by_count);
		return;
	}
	for (struct tally *t = *level; t; t = t->hh.next, i++)
		lines[i] = (struct ranked){.count = t->count, .order = i, .line = t};
	tally_rank(lines, n);
	relink(level, lines, n);
}

void tally_sort(struct tallies *table)
{
	sort_level(&table->first);
	for (struct tally *t = table->first; t; t = t->hh.next)
		sort_level(&t->sub);
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
