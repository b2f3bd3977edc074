/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions of the programs that were traced, with their figures: what the reports show.
 *
 * A function is a place in a source: chunk name, first and last line. Several on the same lines
 * are distinguished by their code, so that two runs of a file, or two processes, add up.
 */
#ifndef TRACE_PROGRAM_H
#define TRACE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "align.h"
#include "figures.h"

struct program_source {
	char *name;	/* as in the chunk: "@x.lua", "=stdin", or program text */
	char *path;	/* of the file: absolute, as it was when the chunk ran; NULL: no file */
	uint32_t same;	/* + 1: of the source that has this path by another name; 0: none */
	bool has_stamp; /* size and mtime are those of the file then */
	uint64_t size;
	int64_t mtime_ns;
	struct stats_lines totals; /* total_ns alone, of the functions of a line together */
};

struct program_function {
	uint32_t source; /* of the sources; UINT32_MAX for a C function */
	int32_t first, last;
	uint64_t code;	 /* fingerprint of its instructions; 0: unknown */
	char *name;	 /* "" : none is known */
	uint8_t role;	 /* enum trace_role */
	uint32_t *lines; /* that can run, ascending; NULL: not known, unless it has none */
	size_t nlines;
	bool has_lines;
	struct stats_function stats; /* since_ns and active mean nothing */
};

struct program {
	struct program_source *sources;
	size_t nsources;
	struct program_function *functions; /* in the order in which they were added */
	size_t nfunctions;
	uint64_t state_lines_left; /* of LINES_KEPT_MAX (lines.h): for the figures of all states */
	uint64_t lines_left;	   /* and for those of `functions` and `sources` */
	uint64_t lost_hits;	   /* of lines that are in neither, for lack of room */
	struct program_index *index; /* private */
};

int program_new(struct program **out); /* -ENOMEM */
void program_free(struct program **program);

#define __program __cleanup(program_free)

/* Finds or adds a source. -ENOMEM, -ENOSPC. */
int program_source(struct program *program, const char *name, size_t len, uint32_t *out);

/* Finds or adds a function like this one, of which name and lines are copied where it has none. */
int program_function(struct program *program, const struct program_function *like, uint32_t *out);

/* Gives a Lua function its name. -ENOMEM. */
int program_name(struct program *program, uint32_t function, const char *name, size_t len);

/* Adds figures to those of a function; total times to those of a source's lines. -ENOMEM. */
int program_add(struct program *program, uint32_t function, const struct stats_function *figures);
int program_add_totals(struct program *program, uint32_t source, const struct stats_lines *lines);

#endif
