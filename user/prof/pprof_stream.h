/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way of a pprof message to the file: parts of a Profile are packed, deflated and written at
 * once, and strings get their index. Used by pprof_write.c only. Errors are sticky in `err`.
 */
#ifndef PROF_PPROF_STREAM_H
#define PROF_PPROF_STREAM_H

#include <stdint.h>
#include <stdio.h>
#include <zlib.h>

#include "base/text.h"
#include "prof.h"
#include "profile.pb-c.h"

/* The labels of a struct prof_origin, as indices of strings; 0: it has none. */
struct origin_labels {
	int64_t value[PROF_ORIGIN_STRINGS];
};

struct string_entry;
struct functions;

struct writer {
	ProtobufCBuffer base; /* first: its append() gets this */
	z_stream zip;
	uint8_t in[65536]; /* packed bytes: deflate() takes long for a few at a time */
	size_t nin;
	FILE *out;
	const struct prof *prof;
	struct string_entry *strings;
	const struct functions *functions;
	int64_t origin_keys[PROF_ORIGIN_STRINGS];
	struct origin_labels *origins; /* by id */
	struct text text;	       /* scratch */
	uint8_t *packed;	       /* a sample */
	size_t packed_cap;
	int err;
};

/* 0 or -ENOMEM. */
int stream_open(struct writer *w, FILE *out);

/* Writes what is left and frees; 0 or the first error. */
int stream_close(struct writer *w);

void stream_fail(struct writer *w, int err);
void stream_put(struct writer *w, const Pprof__Profile *part);
void stream_sample(struct writer *w, const Pprof__Sample *sample);

/* Index of a string that is UTF-8 without control characters; writes it when it is new. */
int64_t stream_string(struct writer *w, const char *str);

/* Index of the readable form of any bytes. */
int64_t stream_readable(struct writer *w, const char *raw);

#endif
