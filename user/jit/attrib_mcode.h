/* SPDX-License-Identifier: BSD-2-Clause */
/* The IR instruction from which each machine instruction was assembled (layer 4). */
#ifndef JIT_ATTRIB_MCODE_H
#define JIT_ATTRIB_MCODE_H

#include "model.h"

/* Fills in t->mc_entries from t->label. 0 or -ENOMEM. */
int lj_trace_assign(struct lj_trace *t);

#endif
