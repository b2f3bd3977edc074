/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Folded stacks: "root;...;leaf COUNT", for flame graph tools. A frame has its unique name. Labels
 * are left out: rows that differ only in labels are one line. Lines are sorted by count, the
 * largest first.
 */
#ifndef OUT_FOLDED_H
#define OUT_FOLDED_H

#include <stdio.h>

#include "prof/prof.h"

/* Returns 0, -ENOMEM or the error of a write. */
int folded_write(const struct prof *prof, FILE *out);

/* The same with other names, frames and lines: jit.p's raw dump. */
struct folded_names {
	char what; /* with `flags`: of functions_put_jitp() */
	unsigned int flags;
	size_t depth; /* frames of a stack at most; a deeper one begins with NAME_CUT */
	int min;      /* percent of a line, at least */
};
int folded_render(const struct prof *prof, const struct folded_names *names, FILE *out);

/* The frame of a stack without frames. */
#define FOLDED_NO_FRAME "[no frame]"

#endif
