// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>

#include "map.h"

#define FIRST_SLOTS 1024

static void insert(struct map *map, uint64_t key, uint64_t value)
{
	size_t i = map_hash(key);

	while (map->at[i & map->mask].key)
		i++;
	map->at[i & map->mask] = (struct map_entry){key, value};
	map->n++;
}

static bool grow(struct map *map)
{
	size_t slots = map->at ? (map->mask + 1) * 2 : FIRST_SLOTS;
	struct map bigger = {.at = calloc(slots, sizeof(*map->at)), .mask = slots - 1};

	if (!bigger.at)
		return false;
	for (size_t i = 0; map->at && i <= map->mask; i++)
		if (map->at[i].key)
			insert(&bigger, map->at[i].key, map->at[i].value);
	map_free(map);
	*map = bigger;
	return true;
}

bool map_put(struct map *map, uint64_t key, uint64_t value)
{
	struct map_entry *e = map_find(map, key);

	if (e) {
		e->value = value;
		return true;
	}
	if ((!map->at || map->n > map->mask / 2) && !grow(map))
		return false;
	insert(map, key, value);
	return true;
}

/* Moves later entries of the same run up, so that no search ends too early at the gap. */
void map_remove(struct map *map, struct map_entry *entry)
{
	size_t gap = entry - map->at;

	for (size_t i = (gap + 1) & map->mask; map->at[i].key; i = (i + 1) & map->mask) {
		size_t home = map_hash(map->at[i].key) & map->mask;

		if (((i - home) & map->mask) < ((i - gap) & map->mask))
			continue; /* its search begins behind the gap */
		map->at[gap] = map->at[i];
		gap = i;
	}
	map->at[gap] = (struct map_entry){};
	map->n--;
}

void map_free(struct map *map)
{
	free(map->at);
	*map = (struct map){};
}
