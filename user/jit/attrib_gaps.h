/* SPDX-License-Identifier: BSD-2-Clause */
/* Labels of the instructions that simulation left, by order and operation (layer 4). */
#ifndef JIT_ATTRIB_GAPS_H
#define JIT_ATTRIB_GAPS_H

#include "ops.h"

/* Labels gaps in the recorded IR by sequence alignment. Returns 0 or -ENOMEM. */
int lj_trace_match_gaps(struct lj_trace *t);

/* Labels all recorded instructions that have no label yet. */
void lj_trace_fill_recorded(struct lj_trace *t);

/* Copies the next label to instructions in [from, to) without one: operands precede their use. */
void lj_trace_fill(struct lj_trace *t, uint32_t from, uint32_t to);

#endif
