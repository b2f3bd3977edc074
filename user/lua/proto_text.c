/* SPDX-License-Identifier: BSD-2-Clause */
#include "proto_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXT (16u << 20) /* of all names of one prototype */
#define FIRST_BLOCK 500	     /* most prototypes have few names; later blocks double */
#define MAX_BLOCK 4000

struct proto_text_block {
	struct proto_text_block *next;
	size_t used, size;
	char bytes[];
};

static size_t block_size(const struct proto_text_block *last, size_t need)
{
	size_t size = last ? 2 * last->size : FIRST_BLOCK;

	if (size > MAX_BLOCK)
		size = MAX_BLOCK;
	return size > need ? size : need;
}

int proto_texts_add(struct proto_texts *t, const char *text, size_t len, const char **out)
{
	struct proto_text_block *block = t->blocks;
	char *room;

	if (t->bytes + len + 1 > MAX_TEXT)
		return -E2BIG;
	if (!block || block->size - block->used < len + 1) {
		size_t size = block_size(block, len + 1);

		block = malloc(sizeof(*block) + size);
		if (!block)
			return -ENOMEM;
		*block = (struct proto_text_block){.next = t->blocks, .size = size};
		t->blocks = block;
	}
	room = block->bytes + block->used;
	memcpy(room, text, len);
	room[len] = '\0';
	block->used += len + 1;
	t->bytes += len + 1;
	*out = room;
	return 0;
}

void proto_texts_clear(struct proto_texts *t)
{
	struct proto_text_block *block, *next;

	for (block = t->blocks; block; block = next) {
		next = block->next;
		free(block);
	}
	*t = (struct proto_texts){0};
}

int proto_text_dup(const char *text, size_t len, char **out)
{
	char *copy = malloc(len + 1);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, text, len);
	copy[len] = '\0';
	*out = copy;
	return 0;
}

static uint64_t mix(uint64_t h, uint64_t word)
{
	h = (h ^ word) * 0x9e3779b97f4a7c15ULL;
	return h ^ h >> 32;
}

uint64_t proto_hash_bytes(uint64_t h, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	uint64_t word;

	for (; len >= sizeof(word); len -= sizeof(word), p += sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		h = mix(h, word);
	}
	word = len; /* zeros at the end count */
	while (len--)
		word = word << 8 | *p++;
	return mix(h, word);
}

uint64_t proto_hash_str(uint64_t h, const char *str)
{
	return proto_hash_bytes(h, str, strlen(str) + 1);
}
