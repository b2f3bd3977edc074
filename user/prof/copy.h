/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies a part of a profile: some of its samples, or all with one frame more. */
#ifndef PROF_COPY_H
#define PROF_COPY_H

#include <stdbool.h>

#include "prof.h"

/*
 * True if the row's samples are copied. With a symbol in *root, which is empty before, the stack of
 * the copy begins with that frame. Strings are borrowed until the call of the next row.
 */
typedef bool prof_copy_fn(void *arg, const struct prof_row *row, struct prof_frame *root);

/* Copies rows and what the profile says of itself; not its losses. 0 or -ENOMEM. */
int prof_copy(const struct prof *prof, prof_copy_fn *fn, void *arg, struct prof **out);

#endif
