// SPDX-License-Identifier: BSD-2-Clause
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/param.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "prof.h"
#include "unpack.h"

/* luabpf can read what it writes: PROF_MAX_* with 8 MiB for the head and the losses, and the tree. */
static_assert(PROF_MAX_FRAMES + PROF_MAX_ROWS + (8UL << 20) <= UNPACK_MAX_BYTES, "reader's bound");
static_assert(4 * UNPACK_MAX_BYTES <= UNPACK_MAX_MEMORY, "reader's bound");

#define WBITS_GZIP (15 + 16)

struct bytes {
	unsigned char *data;
	size_t len, cap;
};

static int make_room(struct bytes *bytes)
{
	size_t cap = bytes->cap ? bytes->cap * 2 : 65536;
	unsigned char *data;

	if (bytes->len < bytes->cap)
		return 0;
	if (bytes->len >= UNPACK_MAX_BYTES)
		return -E2BIG;
	if (cap > UNPACK_MAX_BYTES)
		cap = UNPACK_MAX_BYTES;
	data = realloc(bytes->data, cap);
	if (!data)
		return -ENOMEM;
	bytes->data = data;
	bytes->cap = cap;
	return 0;
}

/* Each turn takes input or makes output, or it ends. */
static int inflate_all(z_stream *zip, struct bytes *out)
{
	bool between = false; /* members: a new one may begin, or the input end */
	int rc, err;

	while (zip->avail_in || !between) {
		err = make_room(out);
		if (err)
			return err;
		zip->next_out = out->data + out->len;
		zip->avail_out = out->cap - out->len;
		rc = inflate(zip, Z_NO_FLUSH);
		out->len = out->cap - zip->avail_out;
		if (rc == Z_MEM_ERROR)
			return -ENOMEM;
		if (rc == Z_BUF_ERROR && !zip->avail_out)
			continue;
		if (rc != Z_OK && rc != Z_STREAM_END)
			return -EBADMSG;
		between = rc == Z_STREAM_END;
		if (between && inflateReset(zip) != Z_OK)
			return -EBADMSG;
	}
	return 0;
}

static int gunzip(const void *buf, size_t len, struct bytes *out)
{
	z_stream zip = {.next_in = (unsigned char *)buf, .avail_in = len};
	int err;

	if (len > UINT32_MAX)
		return -E2BIG;
	if (inflateInit2(&zip, WBITS_GZIP) != Z_OK)
		return -ENOMEM;
	err = inflate_all(&zip, out);
	inflateEnd(&zip);
	return err;
}

/* ---- the tree -------------------------------------------------------------------------------- */

/*
 * protobuf-c allocates each message, each array and each string. They are freed together, so they
 * are carved out of blocks.
 */
struct arena_block {
	struct arena_block *next;
	max_align_t data[];
};

#ifdef __SANITIZE_ADDRESS__
#define BLOCK_BYTES 1UL /* a block for each piece, so that an access beyond it is found */
#else
#define BLOCK_BYTES (64UL << 10)
#endif

static int arena_add_block(struct arena *arena, size_t bytes)
{
	struct arena_block *block = malloc(sizeof(*block) + bytes);

	if (!block)
		return -ENOMEM;
	block->next = arena->blocks;
	arena->blocks = block;
	arena->next = (char *)block->data;
	arena->room = bytes;
	return 0;
}

/* protobuf-c makes tens of bytes out of two, so what it takes is counted, not what it is given. */
static void *arena_alloc(void *arg, size_t size)
{
	struct arena *arena = arg;
	void *piece;

	if (size > arena->remaining) {
		arena->exceeded = true;
		return NULL;
	}
	arena->remaining -= size;
	size = (size + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
	if (size > arena->room && arena_add_block(arena, MAX(size, BLOCK_BYTES)))
		return NULL;
	piece = arena->next;
	arena->next += size;
	arena->room -= size;
	return piece;
}

static void arena_free_piece(void *arg, void *piece)
{
	(void)arg;
	(void)piece;
}

static void arena_free(struct arena *arena, const struct arena_block *until)
{
	while (arena->blocks != until) {
		struct arena_block *block = arena->blocks;

		arena->blocks = block->next;
		free(block);
	}
	arena->room = 0;
}

/* Empties it, but for its first block. */
static void arena_reset(struct arena *arena)
{
	const struct arena_block *first = arena->blocks;

	while (first && first->next)
		first = first->next;
	arena_free(arena, first);
	arena->remaining = arena->budget;
	if (!first)
		return;
	arena->next = (char *)arena->blocks->data;
	arena->room = BLOCK_BYTES;
}

static ProtobufCAllocator allocator_of(struct arena *arena)
{
	return (ProtobufCAllocator){
		.alloc = arena_alloc, .free = arena_free_piece, .allocator_data = arena};
}

static int refuse(const struct arena *arena, const char *name, struct error *err)
{
	if (arena->exceeded)
		return error_set(err, -E2BIG, "%s: would take more than %lu MiB of memory", name,
				 UNPACK_MAX_MEMORY >> 20);
	return error_set(err, -EBADMSG, "%s: not a pprof profile, or a damaged one", name);
}

static int unpack(const void *buf, size_t len, const char *name, struct unpacked *out,
		  struct error *err)
{
	ProtobufCAllocator allocator = allocator_of(&out->tree);

	if (len > UNPACK_MAX_BYTES)
		return error_set(err, -E2BIG, "%s: unpacks to more than %lu MiB", name,
				 UNPACK_MAX_BYTES >> 20);
	out->tree.remaining = UNPACK_MAX_MEMORY;
	out->profile = pprof__profile__unpack(&allocator, len, buf);
	out->sample.budget = out->tree.remaining;
	return out->profile ? 0 : refuse(&out->tree, name, err);
}

int unpack_sample(struct unpacked *unpacked, size_t i, const char *name, Pprof__Sample **out,
		  struct error *err)
{
	const ProtobufCBinaryData *bytes = &unpacked->profile->sample[i];
	ProtobufCAllocator allocator = allocator_of(&unpacked->sample);

	arena_reset(&unpacked->sample);
	*out = pprof__sample__unpack(&allocator, bytes->len, bytes->data);
	return *out ? 0 : refuse(&unpacked->sample, name, err);
}

int unpack_profile(const void *buf, size_t len, const char *name, struct unpacked *out,
		   struct error *err)
{
	const unsigned char *magic = buf;
	__free unsigned char *unzipped = NULL;
	struct bytes bytes = {0};
	int rc;

	if (len < 2 || magic[0] != 0x1f || magic[1] != 0x8b)
		return unpack(buf, len, name, out, err);
	rc = gunzip(buf, len, &bytes);
	unzipped = bytes.data;
	if (rc == -E2BIG)
		return error_set(err, rc, "%s: unpacks to more than %lu MiB", name,
				 UNPACK_MAX_BYTES >> 20);
	if (rc == -ENOMEM)
		return error_set(err, rc, "%s: out of memory", name);
	if (rc)
		return error_set(err, rc, "%s: damaged: its gzip data is broken or cut short",
				 name);
	return unpack(bytes.data, bytes.len, name, out, err);
}

void unpack_free(struct unpacked *unpacked)
{
	arena_free(&unpacked->tree, NULL);
	arena_free(&unpacked->sample, NULL);
}
