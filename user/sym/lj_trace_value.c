// SPDX-License-Identifier: BSD-2-Clause
#include "sym/lj_trace_value.h"

#include <string.h>

struct value *lj_value_slot(struct labels *l, const struct lj_tframe *f, uint32_t local)
{
	uint32_t i = (uint32_t)f->slot + 2 + local;

	if (f->slot >= 0 && i < SLOTS)
		return &l->slot[i];
	l->elsewhere = (struct value){.kind = VALUE_NONE, .by = -1};
	return &l->elsewhere;
}

#define CONVERSIONS 4 /* in a row */

/* A conversion of a value stands for it. */
static uint32_t unconverted(const struct lj_trace *t, uint32_t ref)
{
	uint32_t n = CONVERSIONS;

	while (n-- && ref > LJ_REF_BIAS && ref < t->nins &&
	       (lj_ins_at(t, ref)->o == LJ_IR_CONV || lj_ins_at(t, ref)->o == LJ_IR_TOBIT))
		ref = lj_ins_at(t, ref)->op1;
	return ref;
}

static bool constant_is(const struct lj_trace *t, uint32_t ref, double num, bool divisor)
{
	const struct lj_ins *ir;
	int32_t i;
	double d;
	uint64_t bits;

	if (!lj_ref_ok(t, ref) || ref >= LJ_REF_BIAS)
		return false;
	ir = lj_ins_at(t, ref);
	if (ir->o == LJ_IR_KINT) {
		i = (int32_t)(ir->op1 | (uint32_t)ir->op2 << 16);
		return i == num || -(double)i == num;
	}
	if (ir->o != LJ_IR_KNUM)
		return false;
	bits = lj_trace_const(t, ref);
	memcpy(&d, &bits, sizeof(d));
	return d == num || d == -num || (divisor && d * num == 1.0);
}

enum match { MATCH_NO, MATCH_MAYBE, MATCH_YES };

static enum match matches(const struct labels *l, const struct value *v, uint32_t ref)
{
	const struct lj_ins *ir;

	switch (v->kind) {
	case VALUE_REF:
		return ref == v->ref || unconverted(l->t, ref) == unconverted(l->t, v->ref)
			       ? MATCH_YES
			       : MATCH_NO;
	case VALUE_NUM:
		return constant_is(l->t, ref, v->num, l->divides) ? MATCH_YES : MATCH_NO;
	case VALUE_NONE:
		return MATCH_MAYBE;
	default:
		ref = unconverted(l->t, ref);
		if (ref <= LJ_REF_BIAS || ref >= l->t->nins)
			return MATCH_MAYBE;
		ir = lj_ins_at(l->t, ref);
		/* a loop's variable is loaded from where the loop keeps its index */
		return ir->o == LJ_IR_SLOAD && (ir->op1 == v->ref || ir->op1 + 3u == v->ref)
			       ? MATCH_YES
			       : MATCH_NO;
	}
}

void lj_value_range(const struct lj_trace *t, int32_t step, uint32_t *lo, uint32_t *hi)
{
	uint32_t i;

	*lo = LJ_REF_BIAS + 1;
	*hi = lj_recorded_end(t);
	for (i = 0; i < t->npre; i++) {
		const struct lj_tsnap *s = &t->snap[i];

		/* one that stands in a step: what it guards is that step's */
		if (s->step < step + !s->inside && s->ref > *lo)
			*lo = s->ref;
		if (s->step > step && s->ref < *hi)
			*hi = s->ref;
	}
}

void lj_value_learn(struct labels *l, struct value *v, uint32_t ref)
{
	uint32_t lo, hi;

	if (v->kind != VALUE_NONE)
		return;
	if (v->by >= 0) {
		uint32_t r = ref;

		lj_value_range(l->t, v->by, &lo, &hi);
		for (;; r = lj_ins_at(l->t, r)->op1) {
			if (r >= lo && r < hi && *lj_label_of(l->t, r) < 0)
				*lj_label_of(l->t, r) = v->by;
			if (r == unconverted(l->t, r))
				break;
		}
	}
	v->kind = VALUE_REF;
	v->ref = ref;
}

void lj_value_settle(struct labels *l, uint32_t ref)
{
	if (ref >= l->lo && ref < l->hi && *lj_label_of(l->t, ref) < 0) {
		*lj_label_of(l->t, ref) = l->step;
		if (ref >= l->cur)
			l->cur = ref + 1;
	}
}

void lj_value_set(struct value *v, uint32_t ref)
{
	*v = (struct value){.kind = VALUE_REF, .ref = ref, .by = -1};
}

void lj_value_forget(struct labels *l, struct value *v)
{
	*v = (struct value){.kind = VALUE_NONE, .by = l->step};
}

/* What an instruction works on: of a place in a table, the table. */
static uint32_t first_operand(const struct lj_trace *t, const struct lj_ins *ir)
{
	if ((ir->o == LJ_IR_HREFK || ir->o == LJ_IR_AREF) && lj_ref_ok(t, ir->op1) &&
	    lj_ins_at(t, ir->op1)->o == LJ_IR_FLOAD)
		return lj_ins_at(t, ir->op1)->op1;
	return ir->op1;
}

/* Are these an instruction's operands, in this order? Learns them. */
static bool are_operands(struct labels *l, uint32_t op1, uint32_t op2, struct value *a,
			 struct value *b, bool sure)
{
	enum match ma = a ? matches(l, a, op1) : MATCH_YES;
	enum match mb = b ? matches(l, b, op2) : MATCH_YES;

	/* what is known of one operand has to speak for it */
	if (ma == MATCH_NO || mb == MATCH_NO || (sure && (ma != MATCH_YES || mb != MATCH_YES)) ||
	    (ma != MATCH_YES && mb != MATCH_YES) || (b && !a && mb != MATCH_YES) ||
	    (a && !b && ma != MATCH_YES && !l->keyed))
		return false;
	if (a)
		lj_value_learn(l, a, op1);
	if (b)
		lj_value_learn(l, b, op2);
	return true;
}

static bool has_operands(struct labels *l, const struct lj_ins *ir, struct value *a,
			 struct value *b, bool sure)
{
	uint32_t op1 = first_operand(l->t, ir);

	return are_operands(l, op1, ir->op2, a, b, sure) ||
	       (a && (b || lj_ir_mode[ir->o] & LJ_IRK_C) &&
		are_operands(l, ir->op2, op1, a, b, sure));
}

uint32_t lj_value_find(struct labels *l, wanted_fn wanted, op_set what, struct value *a,
		       struct value *b)
{
	struct lj_trace *t = l->t;
	uint32_t pass, ref;

	for (pass = 0; pass < 2; pass++) {
		uint32_t from = pass ? LJ_REF_BIAS + 1 : l->cur > l->lo ? l->cur : l->lo;
		uint32_t to = pass ? l->cur < l->hi ? l->cur : l->hi : l->hi;

		for (ref = from; ref < to; ref++) {
			const struct lj_ins *ir = lj_ins_at(t, ref);

			if (!wanted(t, ir, what) || (!pass && *lj_label_of(t, ref) >= 0) ||
			    !has_operands(l, ir, a, b, pass))
				continue;
			lj_value_settle(l, ref);
			return ref;
		}
	}
	return 0;
}
