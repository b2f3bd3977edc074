/* SPDX-License-Identifier: BSD-2-Clause */
/* The frames of a trace, and what was called from them so far. For lj_trace*.c only. */
#ifndef JIT_FRAMES_H
#define JIT_FRAMES_H

#include "func.h"

#define LJ_FRAMES_MAX 2000 /* room in lj_trace.frames */

/* Index, or -1: there are too many. */
int lj_frames_add(struct lj_trace *t, struct lj_tframe frame);

/*
 * The frames on which a trace begins, as its first snapshot has them: from the innermost down, as
 * far as links tell. Returns the innermost, or -1.
 */
int lj_frames_first(struct lj_trace *t, const struct lb_mem *mem);

/* The function of a frame that runs this code: a constant once its upvalues are used. 0: it is
 * none. */
uint64_t lj_frames_own(const struct lj_trace *t, const struct lb_mem *mem, uint32_t code);

/* Under which key (GCstr) the function was in a table that the last step calls, which is in this
 * local. 0: not known. */
uint64_t lj_frames_key(const struct lj_trace *t, uint32_t local);

#endif
