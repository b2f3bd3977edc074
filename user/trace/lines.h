/* SPDX-License-Identifier: BSD-2-Clause */
/* Arrays of lines from the first one that has figures to the last one, with the gaps between them. */
#ifndef TRACE_LINES_H
#define TRACE_LINES_H

#include "figures.h"

/* Lines that figures may take, with the gaps: of the Lua states of a program in all, and of the program itself. */
#define LINES_KEPT_MAX (4u << 20)

struct line_range {
	int64_t first, end;
};

/*
 * The lines with `first` to `last`, and as many again as there are on the side where these are: an array at least
 * doubles, so that its copies take no longer than its lines.
 */
struct line_range lines_reach(const struct stats_lines *lines, int64_t first, int64_t last);

/* Grows an array to a range that it is in. *left: lines that may be allocated still. -ENOSPC: it has more; -ENOMEM. */
int lines_grow(struct stats_lines *lines, struct line_range to, uint64_t *left);

#endif
