/* SPDX-License-Identifier: BSD-2-Clause */
/* A hash table with open addressing and linear probing: 64 bits to 64 bits. Key 0 is not allowed. */
#ifndef AGENT_MAP_H
#define AGENT_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_entry {
	uint64_t key, value;
};

struct map {
	struct map_entry *at;
	size_t mask; /* slots - 1; at most half of them are taken */
	size_t n;
};

static inline size_t map_hash(uint64_t key)
{
	return (key * 0x9e3779b97f4a7c15ULL) >> 32;
}

/* Returns the entry with this key, or NULL. Valid until the next change. */
static inline struct map_entry *map_find(const struct map *map, uint64_t key)
{
	if (!map->at)
		return NULL;
	for (size_t i = map_hash(key);; i++) {
		struct map_entry *e = &map->at[i & map->mask];

		if (e->key == key)
			return e;
		if (!e->key)
			return NULL;
	}
}

/* Adds or changes. False: out of memory. */
bool map_put(struct map *map, uint64_t key, uint64_t value);

/* Removes an entry that map_find() returned. */
void map_remove(struct map *map, struct map_entry *entry);

void map_free(struct map *map);

#endif
