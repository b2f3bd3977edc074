/* SPDX-License-Identifier: BSD-2-Clause */
/* Labels of a loop's body, which is a copy of the recorded IR, one turn later (layer 4). */
#ifndef JIT_ATTRIB_LOOP_H
#define JIT_ATTRIB_LOOP_H

#include "model.h"

/* mem: the target's, for upvalues that functions share. Returns 0 or -ENOMEM. */
int lj_trace_label_loop(struct lj_trace *t, const struct lb_mem *mem);

#endif
