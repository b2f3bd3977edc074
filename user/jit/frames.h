/* SPDX-License-Identifier: BSD-2-Clause */
/* The inlined frames of a trace (layer 1, for jit/ only). */
#ifndef JIT_FRAMES_H
#define JIT_FRAMES_H

#include "func.h"

#define LJ_FRAMES_MAX 2000 /* capacity of lj_trace.frames */

/* Adds a frame. Returns its index, or -1: there are too many. */
int lj_frames_add(struct lj_trace *t, struct lj_tframe frame);

/* Adds the frames on which a trace begins, from its first snapshot: innermost first, as far as
 * frame links are constants. Returns the innermost, or -1. */
int lj_frames_first(struct lj_trace *t, const struct lb_mem *mem);

/* Returns the function of a frame that runs this code: a constant, once its upvalues are used. 0:
 * not known. */
uint64_t lj_frames_own(const struct lj_trace *t, const struct lb_mem *mem, uint32_t code);

/* Returns the key (GCstr) under which the function in this local, which the last step calls, was in
 * a table. 0: not known. */
uint64_t lj_frames_key(const struct lj_trace *t, uint32_t local);

#endif
