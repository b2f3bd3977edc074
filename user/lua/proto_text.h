/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The texts of a prototype's copy, in both families: the names that it holds, the chunk's name, and
 * a hash over them and all else that it consists of.
 */
#ifndef LUA_PROTO_TEXT_H
#define LUA_PROTO_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* What is longer is cut. The VMs themselves show 60 bytes of a chunk's name that is source text;
 * any path fits. */
#define PROTO_MAX_NAME 1023
#define PROTO_MAX_CHUNKNAME 8191

struct proto_text_block;

/* Names, which do not move. All zero is empty. */
struct proto_texts {
	struct proto_text_block *blocks;
	size_t bytes; /* of all names, with their NULs */
};

/*
 * Keeps len bytes and a NUL. -E2BIG: the prototype has too much text;
 * -ENOMEM.
 */
int proto_texts_add(struct proto_texts *t, const char *text, size_t len, const char **out);
void proto_texts_clear(struct proto_texts *t);

/* A copy of len bytes, which may hold NULs, and a NUL, to be freed. 0 or -ENOMEM. */
int proto_text_dup(const char *text, size_t len, char **out);

#define PROTO_HASH_START 0xcbf29ce484222325ULL

uint64_t proto_hash_bytes(uint64_t h, const void *bytes, size_t len);
uint64_t proto_hash_str(uint64_t h, const char *str); /* with its NUL */

/* What ldebug.c calls a chunk that was stripped of its name. */
#define PROTO_NO_CHUNK "=?"

#endif
