/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds numbered things by their keys: an open-addressing table of {hash, id} pairs. The owner has
 * the keys, in an array by id, and compares those of equal hashes:
 *
 *     uint32_t hash = hash_bytes(key, len), id;
 *     size_t at = hash;
 *
 *     while (hash_index_next(&index, hash, &at, &id))
 *             if (is_key_of(things[id], key, len))
 *                     return id;
 *     ... things[n] = key; hash_index_add(&index, hash, n++);
 *
 * A miss reads one cache line, a hit one more and the key; uthash reads each element of a bucket.
 * For tables that only grow.
 */
#ifndef BASE_HASH_INDEX_H
#define BASE_HASH_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hash.h"

struct hash_slot {
	uint32_t hash;
	uint32_t number; /* id + 1; 0: free */
};

struct hash_index {
	struct hash_slot *slots; /* a power of two of them, at most half of them in use */
	size_t nslots, n;
};

/* Sets the next id with this hash, in any order. *at is the hash at first. False: no more. */
static inline bool hash_index_next(const struct hash_index *index, uint32_t hash, size_t *at,
				   uint32_t *id)
{
	while (index->n) {
		const struct hash_slot *slot = &index->slots[(*at)++ & (index->nslots - 1)];

		if (!slot->number)
			return false;
		if (slot->hash != hash)
			continue;
		*id = slot->number - 1;
		return true;
	}
	return false;
}

/* 0 or -ENOMEM; id < UINT32_MAX. */
int hash_index_add(struct hash_index *index, uint32_t hash, uint32_t id);

void hash_index_free(struct hash_index *index);

#endif
