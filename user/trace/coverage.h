/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files of a program, line by line: what ran, and what could have run. A line that several
 * functions share has the hits and self times of all of them, and the time while any was on the stack.
 */
#ifndef TRACE_COVERAGE_H
#define TRACE_COVERAGE_H

#include "base/cleanup.h"
#include "program.h"

struct coverage_line {
	uint32_t line;
	bool can_run; /* or it is not known that it can */
	uint64_t hits, self_ns, total_ns;
};

struct coverage_file {
	const struct program_source *source;
	const char *path;	     /* absolute, or as in the chunk name */
	bool missing;		     /* it is not there now: not in files for other tools */
	struct coverage_line *lines; /* ascending: that ran or can run */
	size_t nlines, nhit;
	const struct program_function **functions; /* by first line; the main chunk comes first */
	size_t nfunctions, ncalled;
};

struct coverage {
	struct coverage_file *files; /* by path */
	size_t n;
	uint64_t lines, hit, functions, called; /* sums */
};

int coverage_new(const struct program *program, struct coverage *out); /* -ENOMEM */
void coverage_free(struct coverage *coverage);

#define __coverage __cleanup(coverage_free)

/* Hits of this line in this function. */
uint64_t coverage_hits(const struct program_function *function, uint32_t line);

/* Writes the function's name, or what stands for it: "main chunk", "function at 12". */
void coverage_name(const struct program_function *function, char *buf, size_t size);

#endif
