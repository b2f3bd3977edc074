/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls, hits and times of functions and lines, as stats.h adds them up. */
#ifndef TRACE_FIGURES_H
#define TRACE_FIGURES_H

#include <stddef.h>
#include <stdint.h>

struct stats_line {
	uint64_t hits, self_ns, total_ns;
	uint64_t since_ns; /* private: from when on it has been active */
	uint32_t active;   /* private: frames whose line it is */
};

struct stats_lines {
	struct stats_line *at; /* NULL: none; those without hits did not run */
	int32_t first;	       /* line of at[0] */
	uint32_t n;
};

/* NULL: there is no such line. */
static inline struct stats_line *stats_line(const struct stats_lines *lines, int64_t line)
{
	int64_t i = line - lines->first;

	return lines->at && i >= 0 && i < lines->n ? &lines->at[i] : NULL;
}

struct stats_function {
	uint64_t calls, self_ns, total_ns;
	struct stats_lines lines;
	uint64_t since_ns; /* private, as above */
	uint32_t active;
	uint32_t source; /* private: of the program, once it has lines; UINT32_MAX: none */
};

#endif
