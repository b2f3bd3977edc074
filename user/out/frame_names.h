/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text of each frame in a report, made when it is first needed. Equal texts are one name: a
 * stack can be compared and kept as the numbers of its names.
 */
#ifndef OUT_FRAME_NAMES_H
#define OUT_FRAME_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/text.h"
#include "prof/function.h"

struct frame_name {
	UT_hash_handle hh;
	uint32_t number; /* from 0 on */
	size_t len;
	char text[]; /* and a NUL */
};

/* A frame's name as an index: enough to compare stacks. */
struct frame_number {
	uint32_t number; /* of its name, + 1; 0: not made yet */
	uint32_t len;	 /* of the text */
};

struct frame_names {
	const struct prof *prof;
	const struct functions *functions;
	char what; /* of functions_put_jitp(); FRAME_UNIQUE: as functions_put_unique() */
	unsigned int flags;
	bool folded; /* escaped by folded_put_frame() */
	/* internal */
	struct frame_number *of; /* by frame */
	struct frame_name **all; /* by number */
	struct frame_name *table;
	struct text raw, text;
};

#define FRAME_UNIQUE '\0'

/* All return NULL when memory has run out. */
const struct frame_number *frame_names_number(struct frame_names *names, uint32_t frame);
const struct frame_name *frame_names_get(struct frame_names *names, uint32_t frame);
const struct frame_name *frame_names_add(struct frame_names *names, const char *text, size_t len);
void frame_names_free(struct frame_names *names);

#endif
