/* SPDX-License-Identifier: BSD-2-Clause */
/* Labels of instructions between two that have one, by order and likeness. */
#ifndef JIT_ATTRIB_GAPS_H
#define JIT_ATTRIB_GAPS_H

#include "model.h"

/* 0 or -ENOMEM. */
int lj_trace_match_gaps(struct lj_trace *t);

/* Labels all that was recorded and has no label yet. */
void lj_trace_fill_recorded(struct lj_trace *t);

/*
 * Instructions in [from, to) without a label get that of the next that has one: operands come
 * first.
 */
void lj_trace_fill(struct lj_trace *t, uint32_t from, uint32_t to);

#endif
