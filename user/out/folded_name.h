/* SPDX-License-Identifier: BSD-2-Clause */
/* A frame's name in folded stacks. */
#ifndef OUT_FOLDED_NAME_H
#define OUT_FOLDED_NAME_H

#include "base/text.h"

/*
 * Appends a name, escaped so that each line parses back: no ";", no control character, no space at
 * its ends, no space before a number at its end (it would be read as a count), valid UTF-8, not empty. Such
 * bytes become \xNN. So does the backslash of a name that has "\xNN" itself, so that distinct names
 * stay distinct.
 */
void folded_put_frame(struct text *out, struct text *name);

#endif
