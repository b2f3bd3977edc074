/* SPDX-License-Identifier: BSD-2-Clause */
/* The bounded way from a file's bytes to protobuf-c's message tree. Used by pprof_read.c only. */
#ifndef PROF_UNPACK_H
#define PROF_UNPACK_H

#include "base/error.h"
#include "profile.pb-c.h"

#define UNPACK_MAX_BYTES (256UL << 20)	 /* of the profile without gzip */
#define UNPACK_MAX_MEMORY (1024UL << 20) /* of the tree */

/* gzip (of several members, too) or plain bytes; errors as pprof_read(). */
int unpack_profile(const void *buf, size_t len, const char *name, Pprof__Profile **out,
		   struct error *err);
void unpack_free(Pprof__Profile **profile);

#endif
