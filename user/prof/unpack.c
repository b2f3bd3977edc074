// SPDX-License-Identifier: BSD-2-Clause
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
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

/* protobuf-c makes tens of bytes out of two, so what it takes is counted, not what it is given. */
struct unpack_budget {
	size_t left;
	bool exceeded;
};

static void *budget_alloc(void *data, size_t size)
{
	struct unpack_budget *budget = data;

	if (size > budget->left) {
		budget->exceeded = true;
		return NULL;
	}
	budget->left -= size;
	return malloc(size);
}

static void budget_free(void *data, void *pointer)
{
	(void)data;
	free(pointer);
}

static int unpack(const void *buf, size_t len, const char *name, Pprof__Profile **out,
		  struct error *err)
{
	struct unpack_budget budget = {.left = UNPACK_MAX_MEMORY};
	ProtobufCAllocator allocator = {
		.alloc = budget_alloc, .free = budget_free, .allocator_data = &budget};
	Pprof__Profile *profile;

	if (len > UNPACK_MAX_BYTES)
		return error_set(err, -E2BIG, "%s: unpacks to more than %lu MiB", name,
				 UNPACK_MAX_BYTES >> 20);
	profile = pprof__profile__unpack(&allocator, len, buf);
	if (!profile && budget.exceeded)
		return error_set(err, -E2BIG, "%s: would take more than %lu MiB of memory", name,
				 UNPACK_MAX_MEMORY >> 20);
	if (!profile)
		return error_set(err, -EBADMSG, "%s: not a pprof profile, or a damaged one", name);
	*out = profile;
	return 0;
}

int unpack_profile(const void *buf, size_t len, const char *name, Pprof__Profile **out,
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

void unpack_free(Pprof__Profile **profile)
{
	if (*profile)
		pprof__profile__free_unpacked(*profile, NULL);
	*profile = NULL;
}
