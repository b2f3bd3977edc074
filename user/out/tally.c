// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tally.h"

static int find_or_add(struct tally **table, const char *key, struct tally **out)
{
	size_t len = strlen(key);
	struct tally *t;

	HASH_FIND(hh, *table, key, len, t);
	if (!t) {
		t = calloc(1, sizeof(*t) + len + 1);
		if (!t)
			return -ENOMEM;
		t->len = len;
		memcpy(t->key, key, len);
		HASH_ADD(hh, *table, key, len, t);
		if (!t->hh.tbl) {
			free(t);
			return -ENOMEM;
		}
	}
	*out = t;
	return 0;
}

static void add_count(struct tally *t, uint64_t count)
{
	if (__builtin_add_overflow(t->count, count, &t->count))
		t->count = UINT64_MAX;
}

int tally_add(struct tally **table, const char *key, const char *sub, uint64_t count)
{
	struct tally *t, *s;
	int err = find_or_add(table, key, &t);

	if (err)
		return err;
	add_count(t, count);
	if (!sub)
		return 0;
	err = find_or_add(&t->sub, sub, &s);
	if (!err)
		add_count(s, count);
	return err;
}

static int by_count(const struct tally *a, const struct tally *b)
{
	return a->count < b->count ? 1 : a->count > b->count ? -1 : 0;
}

/* uthash sorts by merging lists: equal elements keep their order. */
void tally_sort(struct tally **table)
{
	HASH_SORT(*table, by_count);
	for (struct tally *t = *table; t; t = t->hh.next)
		HASH_SORT(t->sub, by_count);
}

void tally_free(struct tally **table)
{
	struct tally *t, *tnext, *s, *snext;

	HASH_ITER (hh, *table, t, tnext) {
		HASH_ITER (hh, t->sub, s, snext) {
			HASH_DEL(t->sub, s);
			free(s);
		}
		HASH_DEL(*table, t);
		free(t);
	}
}
