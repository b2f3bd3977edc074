// SPDX-License-Identifier: BSD-2-Clause
#include "hash_index.h"

#include <errno.h>
#include <stdlib.h>

#define LEAST_SLOTS 16

static void put(struct hash_index *index, struct hash_slot slot)
{
	size_t at = slot.hash;

	while (index->slots[at & (index->nslots - 1)].number)
		at++;
	index->slots[at & (index->nslots - 1)] = slot;
}

static int grow(struct hash_index *index)
{
	struct hash_index more = {.nslots = index->nslots ? 2 * index->nslots : LEAST_SLOTS};

	more.slots = calloc(more.nslots, sizeof(*more.slots));
	if (!more.slots)
		return -ENOMEM;
	for (size_t i = 0; i < index->nslots; i++)
		if (index->slots[i].number)
			put(&more, index->slots[i]);
	more.n = index->n;
	free(index->slots);
	*index = more;
	return 0;
}

int hash_index_add(struct hash_index *index, uint32_t hash, uint32_t id)
{
	int r = 2 * index->n < index->nslots ? 0 : grow(index);

	if (r)
		return r;
	put(index, (struct hash_slot){.hash = hash, .number = id + 1});
	index->n++;
	return 0;
}

void hash_index_free(struct hash_index *index)
{
	free(index->slots);
	*index = (struct hash_index){};
}
