/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bounded way from a file's bytes to protobuf-c's message tree: of the profile, and of one
 * sample at a time, as all samples would take ten times as much memory as their bytes. Used by
 * pprof_read.c only.
 */
#ifndef PROF_UNPACK_H
#define PROF_UNPACK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "profile.pb-c.h"

#define UNPACK_MAX_BYTES (256UL << 20)	 /* of the profile without gzip */
#define UNPACK_MAX_MEMORY (1024UL << 20) /* of the tree */

/* Memory of a message tree. */
struct arena {
	struct arena_block *blocks; /* the last one first */
	char *next;
	size_t room;		  /* bytes from `next` on */
	size_t remaining, budget; /* bytes that it may take */
	bool exceeded;
};

struct unpacked {
	Pprof__Profile *profile; /* its samples are bytes */
	struct arena tree, sample;
};

/* gzip (of several members, too) or plain bytes; errors as pprof_read(). *out is empty before. */
int unpack_profile(const void *buf, size_t len, const char *name, struct unpacked *out,
		   struct error *err);

/* One of the profile's samples, until the next call. */
int unpack_sample(struct unpacked *unpacked, size_t i, const char *name, Pprof__Sample **out,
		  struct error *err);
void unpack_free(struct unpacked *unpacked);

#endif
