/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the parsers of listing_puc.c and listing_lj.c. */
#ifndef TRACE_LISTING_PRIV_H
#define TRACE_LISTING_PRIV_H

#include <stdbool.h>

#include "listing.h"

/* Reads bytes one after the other. Past the end, or once bad, it reads zeros. */
struct dump_cursor {
	const uint8_t *at, *end;
	bool bad;
};

uint8_t cursor_byte(struct dump_cursor *c);
uint32_t cursor_word(struct dump_cursor *c); /* 4 bytes */
/* Returns where n elements begin, and passes them; NULL: they are not there. */
const uint8_t *cursor_skip(struct dump_cursor *c, uint64_t n, uint64_t size);

/* One function's instructions, and the line of each. */
struct listing_code {
	unsigned version;   /* 51 .. 55; 0: LuaJIT */
	const uint8_t *ins; /* n words, not aligned */
	uint32_t *lines;
	size_t n;
	bool skips_first; /* 5.4: VARARGPREP runs no hook */
};

/* Adds a function, with the lines of the instructions that can run. */
int listing_add(struct listing *listing, const struct listing_function *like,
		const struct listing_code *code);

int listing_parse_puc(struct dump_cursor *c, struct listing *listing);
int listing_parse_lj(struct dump_cursor *c, struct listing *listing);

/* Sets reached[i] for each instruction that a hook may see. stack: room for n indices. */
void listing_reach(const struct listing_code *code, bool *reached, uint32_t *stack);

#endif
