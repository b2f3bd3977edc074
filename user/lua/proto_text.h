/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The texts of a prototype's copy, in both families: an arena of names, the chunk's name, and a
 * hash for all of its contents.
 */
#ifndef LUA_PROTO_TEXT_H
#define LUA_PROTO_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Longer texts are cut. The VMs themselves show 60 bytes of a chunk's name that is source text; any
 * path fits. */
#define PROTO_MAX_NAME 1023
#define PROTO_MAX_CHUNKNAME 8191

struct proto_text_block;

/* Names, at stable addresses. All zero is empty. */
struct proto_texts {
	struct proto_text_block *blocks;
	size_t bytes; /* of all names, with their NULs */
};

/* Copies len bytes and a NUL. -E2BIG: the prototype has too much text; -ENOMEM. */
int proto_texts_add(struct proto_texts *t, const char *text, size_t len, const char **out);
void proto_texts_clear(struct proto_texts *t);

/* Copies len bytes, which may hold NULs, and a NUL to new memory. Returns 0 or -ENOMEM. */
int proto_text_dup(const char *text, size_t len, char **out);

#define PROTO_HASH_START 0xcbf29ce484222325ULL

uint64_t proto_hash_bytes(uint64_t h, const void *bytes, size_t len);
uint64_t proto_hash_str(uint64_t h, const char *str); /* with its NUL */

/* ldebug.c's name of a chunk without one. */
#define PROTO_NO_CHUNK "=?"

#endif
