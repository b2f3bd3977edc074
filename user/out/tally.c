// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "prof/name.h"
#include "tally.h"

/* Bytes of a line beyond struct tally and its key: its pointer and its share of the index, at most. */
#define LINE_BYTES 64

#define MIX 0x9e3779b1U

/* A line of the second level has its parent's address in its hash: many have the same key. */
static uint32_t hash_of(const struct tally *parent, const char *key, size_t len)
{
	return hash_bytes(key, len) ^ (uint32_t)((uintptr_t)parent >> 4) * MIX;
}

static struct tally *find(const struct tallies *table, const struct tally *parent, const char *key,
			  size_t len, uint32_t hash)
{
	size_t at = hash;
	uint32_t id;

	while (hash_index_next(&table->index, hash, &at, &id)) {
		struct tally *t = table->lines[id];

		if (t->parent == parent && t->len == len && !memcmp(t->key, key, len))
			return t;
	}
	return NULL;
}

static void append(struct tally **first, struct tally **last, struct tally *t)
{
	*(*first ? &(*last)->next : first) = t;
	*last = t;
	t->next = NULL;
}

static struct tally *add(struct tallies *table, struct tally *parent, const char *key, size_t len,
			 uint32_t hash)
{
	struct tally *t;

	if (array_grow(&table->lines, table->n, sizeof(*table->lines)))
		return NULL;
	t = calloc(1, sizeof(*t) + len + 1);
	if (!t || hash_index_add(&table->index, hash, (uint32_t)table->n)) {
		free(t);
		return NULL;
	}
	t->parent = parent;
	t->len = len;
	memcpy(t->key, key, len);
	table->lines[table->n++] = t;
	if (parent)
		append(&parent->sub, &parent->last, t);
	else
		append(&table->first, &table->last, t);
	return t;
}

static struct tally *find_or_add(struct tallies *table, struct tally *parent, const char *key)
{
	size_t len = strlen(key), bytes = sizeof(struct tally) + LINE_BYTES + len;
	uint32_t hash = hash_of(parent, key, len);
	struct tally *t = find(table, parent, key, len, hash);

	table->made += len;
	if (!t && bytes > TALLY_MAX_KEPT - table->kept) {
		key = NAME_OTHER;
		len = strlen(key);
		bytes = 0; /* one in each level */
		hash = hash_of(parent, key, len);
		t = find(table, parent, key, len, hash);
	}
	if (t)
		return t;
	t = add(table, parent, key, len, hash);
	if (t)
		table->kept += bytes;
	return t;
}

struct tally *tally_add_to(struct tallies *table, struct tally *parent, const char *key,
			   uint64_t count)
{
	struct tally *t = find_or_add(table, parent, key);

	if (t && __builtin_add_overflow(t->count, count, &t->count))
		t->count = UINT64_MAX;
	return t;
}

int tally_add(struct tallies *table, const char *key, const char *sub, uint64_t count)
{
	struct tally *t = tally_add_to(table, NULL, key, count);

	return t && (!sub || tally_add_to(table, t, sub, count)) ? 0 : -ENOMEM;
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

/* In an array, as a list's merge sort misses the cache at each step. */
static void sort_level(struct tally **first, struct tally **last, struct ranked *lines)
{
	size_t n = 0;

	for (struct tally *t = *first; t; t = t->next, n++)
		lines[n] = (struct ranked){.count = t->count, .order = n, .line = t};
	tally_rank(lines, n);
	*first = *last = NULL;
	for (size_t i = 0; i < n; i++)
		append(first, last, lines[i].line);
}

int tally_sort(struct tallies *table)
{
	__free struct ranked *lines = calloc(table->n + 1, sizeof(*lines));

	if (!lines)
		return -ENOMEM;
	sort_level(&table->first, &table->last, lines);
	for (struct tally *t = table->first; t; t = t->next)
		sort_level(&t->sub, &t->last, lines);
	return 0;
}

void tally_free(struct tallies *table)
{
	for (size_t i = 0; i < table->n; i++)
		free(table->lines[i]);
	free(table->lines);
	hash_index_free(&table->index);
	*table = (struct tallies){};
}

int tally_percent(uint64_t part, uint64_t whole)
{
	return (int)floor((double)part * 100 / (double)whole + 0.5);
}
