// SPDX-License-Identifier: BSD-2-Clause
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "describe.h"

#define SOURCE_MAX_LEN 4096
#define HASH_START 0xcbf29ce484222325ULL

/* FNV-1a */
static uint64_t hash_bytes(uint64_t hash, const void *data, size_t len)
{
	const unsigned char *p = data;

	while (len--)
		hash = (hash ^ *p++) * 0x100000001b3ULL;
	return hash;
}

uint64_t describe_hash_bytes(const void *data, size_t len)
{
	return hash_bytes(HASH_START, data, len);
}

static int dump_function(lua_State *L, lua_Writer writer, void *arg)
{
#if LUA_VERSION_NUM >= 503
	return lua_dump(L, writer, arg, 0);
#else
	return lua_dump(L, writer, arg);
#endif
}

struct hashing {
	uint64_t hash;
	bool luajit, finalizers;
};

/* Each string is written at once. LuaJIT writes its length, plus 5, before it. */
static int hash_writer(lua_State *L, const void *data, size_t len, void *arg)
{
	struct hashing *h = arg;

	(void)L;
	h->hash = hash_bytes(h->hash, data, len);
	h->finalizers |=
		memmem(data, len, "__gc", 4) || (h->luajit && memmem(data, len, "\7gc", 3));
	return 0;
}

uint64_t describe_hash(lua_State *L, bool luajit, bool *finalizers)
{
	struct hashing h = {.hash = HASH_START, .luajit = luajit};

	dump_function(L, hash_writer, &h);
	*finalizers |= h.finalizers;
	return h.hash ? h.hash : 1;
}

struct dump {
	struct share *share;
	struct hook_bytes bytes;
};

static int dump_writer(lua_State *L, const void *data, size_t len, void *arg)
{
	struct dump *dump = arg;
	struct hook_bytes piece = share_put(dump->share, data, len);

	(void)L;
	if (!dump->bytes.len)
		dump->bytes.at = piece.at;
	dump->bytes.len += piece.len;
	return piece.len != len;
}

struct hook_bytes describe_dump(struct share *share, lua_State *L)
{
	struct dump dump = {.share = share};

	return dump_function(L, dump_writer, &dump) ? (struct hook_bytes){} : dump.bytes;
}

static bool find_known(struct map *known, uint64_t hash, struct hook_bytes *bytes)
{
	struct map_entry *e = map_find(known, hash);

	if (e)
		memcpy(bytes, &e->value, sizeof(*bytes));
	return e;
}

static void remember(struct map *known, uint64_t hash, struct hook_bytes bytes)
{
	uint64_t value;

	memcpy(&value, &bytes, sizeof(value));
	map_put(known, hash, value);
}

/* Key 0 is no key of a map. */
static uint64_t key_of(const char *source)
{
	return describe_hash_bytes(source, strnlen(source, SOURCE_MAX_LEN)) | 1;
}

struct hook_bytes describe_source(struct share *share, struct map *known, const char *source)
{
	uint64_t key = key_of(source);
	struct hook_bytes bytes;

	if (find_known(known, key, &bytes))
		return bytes;
	bytes = share_put(share, source, strnlen(source, SOURCE_MAX_LEN));
	if (bytes.len)
		remember(known, key, bytes);
	return bytes;
}

struct hook_bytes describe_file(struct share *share, struct map *known, const char *source)
{
	char path[PATH_MAX], text[PATH_MAX + 64];
	uint64_t key = key_of(source);
	struct hook_bytes bytes = {};
	struct stat sb;

	if (*source != '@' || find_known(known, key, &bytes))
		return bytes;
	if (realpath(source + 1, path) && !stat(path, &sb) && S_ISREG(sb.st_mode)) {
		int len = snprintf(text, sizeof(text), "%lld %lld %s", (long long)sb.st_size,
				   sb.st_mtim.tv_sec * 1000000000LL + sb.st_mtim.tv_nsec, path);

		bytes = share_put(share, text, len);
	}
	remember(known, key, bytes);
	return bytes;
}
