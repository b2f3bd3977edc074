/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Going the way of a trace with IR references for values: what a slot holds, and which instruction
 * has the operation and the operands that the bytecode asks for. For lj_trace*.c only.
 */
#ifndef SYM_LJ_TRACE_VALUE_H
#define SYM_LJ_TRACE_VALUE_H

#include "sym/lj_trace_ops.h"

#define SLOTS 320 /* of all frames (lj_jit.h, LJ_MAX_JSLOTS is 250) and of one more */

enum value_kind {
	VALUE_UNSET, /* what slot `ref` held when the trace began: an SLOAD */
	VALUE_NONE,  /* not known; made by step `by` */
	VALUE_REF,
	VALUE_NUM, /* a number that the bytecode has */
};

struct value {
	enum value_kind kind;
	uint32_t ref;
	int32_t by; /* -1: not known */
	double num;
};

struct labels {
	struct lj_trace *t;
	struct value slot[SLOTS];
	struct value elsewhere; /* a slot that is not known */
	int32_t step;		/* in hand */
	uint32_t lo, hi;	/* references that it may have made */
	uint32_t cur;		/* all below are settled */
	bool divides;		/* a product by the reciprocal will do */
	bool keyed;		/* a string tells an access: its table need not be known */
};

/* A frame's local; one that is not known where the frame's place is not. */
struct value *lj_value_slot(struct labels *l, const struct lj_tframe *f, uint32_t local);

/* References that step made lie in [*lo, *hi): those between the snapshots before and after it. */
void lj_value_range(const struct lj_trace *t, int32_t step, uint32_t *lo, uint32_t *hi);

/* v turns out to be reference ref: what made it made that. */
void lj_value_learn(struct labels *l, struct value *v, uint32_t ref);

/* v is reference ref; or is whatever the step in hand made of it. */
void lj_value_set(struct value *v, uint32_t ref);
void lj_value_forget(struct labels *l, struct value *v);

/* The step in hand made ref. */
void lj_value_settle(struct labels *l, uint32_t ref);

typedef bool (*wanted_fn)(const struct lj_trace *t, const struct lj_ins *ir, op_set what);

/*
 * The instruction that is wanted and has the operands a and b, in either order; NULL: any. First
 * among those that the step in hand may have made, which settles it; then among what was there
 * before (a common subexpression). What is known of one operand at least has to speak for it. 0:
 * none.
 */
uint32_t lj_value_find(struct labels *l, wanted_fn wanted, op_set what, struct value *a,
		       struct value *b);

#endif
