/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of jit/p.lua: letters and numbers. */
#ifndef OUT_JITP_OPTIONS_H
#define OUT_JITP_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum jitp_split {
	JITP_ONE_LEVEL = 0,
	JITP_STATE_FIRST = 1, /* VM state or zone, then stack */
	JITP_CALLER = 2,      /* 's': first stack level, then the rest */
	JITP_LINE = 3,	      /* 'fl': function, then line */
};

enum jitp_raw {
	JITP_PERCENT,
	JITP_COUNTS, /* 'r' */
	JITP_STACKS, /* 'G' */
};

enum jitp_annotate { JITP_NO_SOURCE, JITP_EXCERPTS, JITP_WHOLE_FILES };

/* The variables that jit/p.lua's prof_start() sets, under its names without "prof_". */
struct jitp_options {
	bool states; /* 'v', 'V' */
	bool causes; /* 'V', not of jit/p.lua: states with what they leave out */
	bool zones;  /* 'z': takes the place of the states */
	bool path;   /* 'p' */
	char stack;  /* 'f', 'F' or 'l'; '\0': no stack in the keys */
	enum jitp_split split;
	enum jitp_raw raw;
	enum jitp_annotate annotate;
	int32_t depth;	     /* < 0: from the caller to the callee */
	int32_t min;	     /* percent */
	int32_t interval_ms; /* 'i', else 10 */
	bool shows_nothing;  /* a combination for which jit.p prints no row, such as "vs" */
	char unknown[64];    /* the unknown letters, once each, printable or '?'; for a warning */
};

/* Parses the options after -jp=, up to a comma. NULL is "f". jit.p refuses nothing. Numbers saturate.
 * 0 or -ENOMEM. */
int jitp_options(const char *text, struct jitp_options *out, struct error *err);

/* True if reports with these options name lines. */
static inline bool jitp_shows_lines(const struct jitp_options *o)
{
	return o->stack == 'l' || o->split == JITP_LINE || o->annotate != JITP_NO_SOURCE;
}

#endif
