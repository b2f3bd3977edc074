/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Folded stacks: "root;...;leaf COUNT", for flame graph tools. A frame has its unique name; labels
 * are left out, so rows that differ in nothing else are one line. Lines come by count, the largest
 * first.
 */
#ifndef OUT_FOLDED_H
#define OUT_FOLDED_H

#include <stdio.h>

#include "prof/prof.h"

/* 0, -ENOMEM or what writing gave. */
int folded_write(const struct prof *prof, FILE *out);

#endif
