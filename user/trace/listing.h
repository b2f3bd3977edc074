/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions in a precompiled chunk, as lua_dump() writes it: of Lua 5.1 to 5.5 and LuaJIT 2.1,
 * of this machine's byte order and sizes. They include those that were never called, and the lines
 * of each that can run: that an instruction which control flow reaches stands on.
 */
#ifndef TRACE_LISTING_H
#define TRACE_LISTING_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct listing_function {
	int32_t first, last;
	uint64_t code;	 /* hash of instructions and constants */
	size_t ninner;	 /* functions that it holds; each of them stands before it */
	size_t outer;	 /* the function that holds it; itself: none, or not known */
	uint32_t before; /* hook_twin() */
	uint32_t *lines; /* that can run, ascending; may be NULL */
	size_t nlines;
};

struct listing {
	struct listing_function *functions; /* the dumped one is [root] */
	size_t n, root;
};

#define LISTING_FUNCTIONS_MAX 65536

/* -ENODATA: stripped: lines are not known. -EBADMSG: no such chunk. -ENOMEM. */
int listing_parse(const uint8_t *bytes, size_t len, struct listing *out);
void listing_free(struct listing *listing);

#define __listing __cleanup(listing_free)

#endif
