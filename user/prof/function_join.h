/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of one function do not all show the same of it: its definition's name and its path in the chunk are known while
 * its parents are on the stack, its contents and its number on the line if its VM was still open when they were read.
 */
#ifndef PROF_FUNCTION_JOIN_H
#define PROF_FUNCTION_JOIN_H

struct functions;

/* Joins functions that agree in all that is known of them: sets `same`. 0 or -ENOMEM. */
int functions_join(struct functions *fs);

/* Then: gives each function's frame the number on its line. */
void functions_place(struct functions *fs);

#endif
