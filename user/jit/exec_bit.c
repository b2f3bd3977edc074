// SPDX-License-Identifier: BSD-2-Clause
/* Symbolic execution of bit operations with two or more operands (layer 2). */
#include <math.h>

#include "callee.h"
#include "exec.h"
#include "lua/lj/bc.h"

/* A shift to the left by 1 is folded to x + x. */
static bool is_doubling(struct sim *l, const struct lj_tframe *f, uint32_t ins, op_set ops)
{
	const struct value *by = lj_value_arg(l, f, ins, 1);

	return ops == OPS(BSHL) && lj_calls_arguments(l, ins) == 2 && by->kind == VAL_NUM &&
	       by->num == 1;
}

/* Returns an operand of a bit operation: a constant number as 32-bit integer. */
static struct value integer_of(const struct value *v)
{
	return v->kind == VAL_NUM && fabs(v->num) < 0x1p53
		       ? lj_value_number((int32_t)(uint32_t)(int64_t)v->num)
		       : *v;
}

/* Returns the reference of which a value has some bits; 0: not known, or none. */
static uint32_t masked(const struct sim *l, const struct value *v)
{
	const struct lj_ins *ir;

	if (v->kind == VAL_UNKNOWN)
		return v->bits_of;
	if (v->kind != VAL_REF || !lj_ref_ok(l->t, v->ref))
		return 0;
	ir = lj_ins_at(l->t, v->ref);
	return ir->o == LJ_IR_BAND && ir->op2 < LJ_REF_BIAS ? ir->op1 : 0;
}

/* Finds the shift of a masked value, which is folded to a shift, then a mask
 * (simplify_shift_andk). */
static uint32_t find_shifted(struct sim *l, op_set ops, const struct value *bits, struct value *by)
{
	struct value of = {.kind = VAL_REF, .ref = masked(l, bits), .by = -1};
	uint32_t ref;

	if (!(ops & (OPS(BSHL) | OPS(BSHR) | OPS(BROL) | OPS(BROR))) || !of.ref)
		return 0;
	ref = ops == OPS(BSHL) && by->kind == VAL_NUM && by->num == 1
		      ? lj_value_find(l, lj_step_is, OPS(ADD), &of, &of)
		      : lj_value_find(l, lj_step_is, ops, &of, by);
	return ref ? lj_step_through(l, OPS(BAND), ref, NULL) : 0;
}

/* True if the operands match too much: many operations have the same constant. */
static bool says_little(const struct value *a, const struct value *b)
{
	return (a->kind == VAL_UNKNOWN && (b->kind == VAL_UNKNOWN || b->kind == VAL_NUM)) ||
	       (b->kind == VAL_UNKNOWN && a->kind == VAL_NUM);
}

uint32_t lj_step_bits(struct sim *l, const struct lj_tframe *f, uint32_t ins, op_set ops)
{
	struct value *a = lj_value_arg(l, f, ins, 0), *b = lj_value_arg(l, f, ins, 1);
	struct value first = integer_of(a), second = integer_of(b);
	uint32_t now = l->cur > l->lo ? l->cur : l->lo;
	uint32_t ref =
		is_doubling(l, f, ins, ops) ? lj_value_find(l, lj_step_is, OPS(ADD), a, a) : 0;

	if (!ref && !says_little(&first, &second))
		ref = lj_value_find(l, lj_step_is, ops, &first, &second);
	if (!ref)
		ref = find_shifted(l, ops, a, b);
	if (!ref && a->kind != VAL_UNKNOWN) { /* folded; no earlier instruction */
		ref = lj_value_find(l, lj_step_is, ops, a, NULL);
		return ref >= now ? ref : 0;
	}
	if (a->kind == VAL_UNKNOWN)
		*a = first; /* bind them */
	if (b->kind == VAL_UNKNOWN)
		*b = second;
	return ref;
}
