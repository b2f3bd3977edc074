/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Folded stacks: "root;...;leaf COUNT", for flame graph tools. A frame has its unique name; labels
 * are left out, so rows that differ in nothing else are one line. Lines come by count, the largest
 * first.
 */
#ifndef OUT_FOLDED_H
#define OUT_FOLDED_H

#include <stdio.h>

#include "base/text.h"
#include "prof/prof.h"

/* 0, -ENOMEM or what writing gave. */
int folded_write(const struct prof *prof, FILE *out);

/* A stack without frames, as one. */
#define FOLDED_NO_FRAME "[no frame]"

/*
 * Appends a name so that lines stay what they are: no ";" and no control character in it, not
 * empty, no space at its ends, and no number behind a space at its end, which would be read as a
 * count. Such bytes become \xNN, as does the backslash of a name that has that itself: distinct names
 * stay distinct.
 */
void folded_put_frame(struct text *out, struct text *name);

#endif
