/* SPDX-License-Identifier: BSD-2-Clause */
/* Labels of IR instructions: the step for which each was recorded (layer 4, for jit/ only). */
#ifndef JIT_ATTRIB_IR_H
#define JIT_ATTRIB_IR_H

#include "value.h"

/* Returns 0 or -ENOMEM. */
int lj_sim_new(struct lj_trace *t, const struct lb_mem *mem, struct sim **out);
void lj_sim_free(struct sim **l);

/* Resets the simulation. Steps already in the history are before the first snapshot. */
void lj_sim_begin(struct sim *l);

/* Executes the next step. The one after it is instruction next_pc of next_frame; -1: there is
 * none. */
void lj_label_step(struct sim *l, int next_frame, uint32_t next_pc);

/* True if a snapshot has another number in a slot than the simulation. Then it does not stand here:
 * it was taken in another turn of a loop. */
bool lj_label_contradicts(const struct sim *l, const struct lj_tsnap *s);

/* Copies the values of a snapshot that stands before the next step. */
void lj_label_snapshot(struct sim *l, const struct lj_tsnap *s);

/* Labels the rest of the IR when the path is complete. Returns 0 or -ENOMEM. */
int lj_sim_finish(struct sim *l);

#endif
