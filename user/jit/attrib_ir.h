/* SPDX-License-Identifier: BSD-2-Clause */
/* Labels: the step of the way that each instruction of the intermediate code was recorded for. For
 * lj_trace*.c only. */
#ifndef JIT_ATTRIB_IR_H
#define JIT_ATTRIB_IR_H

#include "value.h"

/* 0 or -ENOMEM. */
int lj_sim_new(struct lj_trace *t, const struct lb_mem *mem, struct sim **out);
void lj_sim_free(struct sim **l);

/* From the start of the way: what is on it already is what lies before the first snapshot. */
void lj_sim_begin(struct sim *l);

/* Goes the next step. The one after it is instruction next_pc of next_frame; -1: there is none. */
void lj_label_step(struct sim *l, int next_frame, uint32_t next_pc);

/* Has the snapshot a slot's number, and it is another? Then it does not stand here: it was taken in
 * another turn of a loop. */
bool lj_label_contradicts(const struct sim *l, const struct lj_tsnap *s);

/* Takes the values that a snapshot has, which stands before the next step. */
void lj_label_snapshot(struct sim *l, const struct lj_tsnap *s);

/* The way is complete: labels the rest. 0 or -ENOMEM. */
int lj_sim_finish(struct sim *l);

#endif
