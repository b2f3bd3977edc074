/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the two halves of the pprof reader, pprof_read.c and pprof_frames.c. */
#ifndef PROF_PPROF_READER_H
#define PROF_PPROF_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "prof.h"
#include "profile.pb-c.h"
#include "unpack.h"

/* Strings are cut to what a file of luabpf has at most: a chunk in `[string "..."]`. */
#define MAX_STRING (PROF_MAX_CHUNK + 16UL)
/* Bytes of the strings of all frames that lines name. luabpf writes PROF_MAX_FRAMES at most. */
#define MAX_NAME_BYTES (512UL << 20)

#define NO_FRAME UINT32_MAX /* also of a line that stands for an empty stack */

struct entry {
	UT_hash_handle hh;
	uint64_t id;
	const Pprof__Function *function;
	uint32_t *frames; /* of a location: ids, innermost first */
	size_t nframes;
};

/* The ids of the last origins, found by their strings in the file's table. */
#define ORIGINS_KNOWN 256 /* power of two */
struct known_origin {
	struct prof_origin strings;
	uint32_t id;
};

struct reader {
	const Pprof__Profile *in; /* of `unpacked` */
	struct unpacked unpacked;
	const char *name;
	struct error *err;
	struct prof *prof;
	bool ours; /* written by luabpf, perhaps rewritten by another tool since */
	struct entry *functions, *locations;
	uint32_t *frame_of; /* see reader_frame() */
	struct entry *pool; /* memory of all entries */
	size_t npool;
	size_t value;	  /* index of the value that counts */
	uint64_t divisor; /* what one sample adds to it */
	uint32_t *stack;  /* MAX_DEPTH */
	struct text comm, scratch;
	struct known_origin origins[ORIGINS_KNOWN];
	size_t frames_left, name_bytes_left;
};

#define refuse(r, code, fmt, ...) error_set((r)->err, code, "%s: " fmt, (r)->name, ##__VA_ARGS__)

/* -ENOMEM, with its text. */
int reader_no_memory(struct reader *r);

/* A string of the table; -EINVAL for an index beyond the table. */
int reader_string(struct reader *r, int64_t index, const char **out);

/* Functions and locations to frames of r->prof. r->ours must be known. */
int reader_tables(struct reader *r);
const struct entry *reader_location(const struct reader *r, uint64_t id); /* or NULL */

/*
 * The frame of a location that has exactly one, as all of luabpf's have; NO_FRAME: look it up. Most
 * writers number locations from 1 on: that takes one load for each frame of each stack.
 */
static inline uint32_t reader_frame(const struct reader *r, uint64_t id)
{
	return id - 1 < r->in->n_location ? r->frame_of[id - 1] : NO_FRAME;
}
void reader_free_tables(struct reader *r);

#endif
