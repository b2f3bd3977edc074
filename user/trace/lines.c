// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lines.h"

#define LEAST 16 /* lines that an array grows by */

struct line_range lines_reach(const struct stats_lines *lines, int64_t first, int64_t last)
{
	struct line_range r = {lines->first, (int64_t)lines->first + lines->n};
	int64_t more = lines->n > LEAST ? lines->n : LEAST;

	if (!lines->at)
		r = (struct line_range){first, first};
	if (last >= r.end)
		r.end = last + 1 + more;
	if (first < r.first)
		r.first = first > more ? first - more : 0;
	return r;
}

int lines_grow(struct stats_lines *lines, struct line_range to, uint64_t *left)
{
	struct stats_line *grown;
	uint64_t n = to.end - to.first;

	if (lines->at && n == lines->n)
		return 0;
	if (n - lines->n > *left)
		return -ENOSPC;
	grown = calloc(n, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	if (lines->at)
		memcpy(grown + (lines->first - to.first), lines->at, lines->n * sizeof(*grown));
	free(lines->at);
	*left -= n - lines->n;
	*lines = (struct stats_lines){.at = grown, .first = to.first, .n = n};
	return 0;
}
