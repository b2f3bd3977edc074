// SPDX-License-Identifier: BSD-2-Clause
/* Symbolic execution of arithmetic on 64-bit cdata, and of their conversion to numbers (layer 2). The recorder boxes
 * each result in a cdata (CNEWI). If nothing needs that, only the computation of the integer is left, to which the
 * slot's value refers then (crec_arith_int64, lj_crecord_tonumber). */
#include <math.h>

#include "exec.h"

static bool is_wide_type(uint8_t type)
{
	return type == LJ_IRT_I64 || type == LJ_IRT_U64;
}

static bool is_wide(const struct lj_trace *t, const struct lj_ins *ir, op_set set)
{
	return lj_step_is(t, ir, set) && is_wide_type(ir->t & LJ_IRT_TYPE);
}

/* True for a conversion to a number, of what no number has as its type. */
static bool is_to_number(const struct lj_trace *t, const struct lj_ins *ir, op_set unused)
{
	uint8_t from = ir->op2 & LJ_IRT_TYPE;

	(void)t;
	(void)unused;
	return ir->o == LJ_IR_CONV && (ir->t & LJ_IRT_TYPE) == LJ_IRT_NUM &&
	       (is_wide_type(from) || from == LJ_IRT_U32 || from == LJ_IRT_FLOAT);
}

/* Returns the integer of a constant cdata, or an unknown value. */
static struct value constant_integer(const struct sim *l, const struct value *v)
{
	const struct lj_layout *lj = &l->t->lj;
	uint64_t at = v->obj + LJ_OFF(lj, CDATA_SIZE);
	struct value unknown = {.kind = VAL_UNKNOWN, .by = -1};
	int64_t i;

	return v->obj && !mem_read(l->mem, &i, sizeof(i), at) && fabs((double)i) < 0x1p53
		       ? lj_value_number((double)i)
		       : unknown;
}

/* Returns the integer of a cdata, by its reference; other values as they are. */
static struct value unboxed(struct sim *l, struct value *v)
{
	struct value out = {.kind = VAL_UNKNOWN, .by = -1}, at;
	uint32_t ref = lj_value_ref(l, v), data;
	struct value size = lj_value_number(LJ_OFF(&l->t->lj, CDATA_SIZE));

	if (lj_value_type(l, v) != LJ_IRT_CDATA || v->kind == VAL_PLACE)
		return *v;
	if (v->kind == VAL_OBJ)
		return constant_integer(l, v);
	if (ref <= LJ_REF_BIAS || !lj_ref_ok(l->t, ref))
		return out;
	if (lj_ins_at(l->t, ref)->o == LJ_IR_CNEWI) {
		data = lj_ins_at(l->t, ref)->op2;
	} else {
		lj_step_ctype(l, v);
		data = lj_value_find(l, is_wide, OPS(FLOAD), v, NULL);
		lj_value_set(&at, data ? 0 : lj_value_find(l, lj_step_is, OPS(ADD), v, &size));
		if (!data && at.ref)
			data = lj_value_find(l, is_wide, OPS(XLOAD), &at, NULL);
	}
	if (data)
		lj_value_set(&out, data);
	return out;
}

/* Labels the cdata that a result is boxed in. */
static void claim_box(struct sim *l, uint32_t ref)
{
	struct value data;

	lj_value_set(&data, ref);
	lj_value_find(l, lj_step_is, OPS(CNEWI), NULL, &data);
}

bool lj_step_int64(struct sim *l, struct value *dst, struct value *b, struct value *c,
		   uint32_t which)
{
	struct value x = unboxed(l, b), y = unboxed(l, c), negative;
	uint32_t ref;

	if (!is_wide_type(lj_value_type(l, &x)) && !is_wide_type(lj_value_type(l, &y)))
		return false;
	ref = lj_value_find(l, is_wide, lj_trace_arith[which], &x, &y);
	if (!ref && which < 2 && y.kind == VAL_NUM) { /* a - 1 becomes a + -1 */
		negative = lj_value_number(-y.num);
		ref = lj_value_find(l, is_wide, lj_trace_arith[which], &x, &negative);
	}
	lj_step_result(l, dst, ref);
	if (ref)
		claim_box(l, ref);
	return true;
}

bool lj_step_tonumber(struct sim *l, struct value *cdata, struct value *out)
{
	uint8_t type = lj_value_type(l, cdata);
	struct value data = unboxed(l, cdata);
	uint32_t ref;

	if (type != LJ_IRT_CDATA && type != LJ_IRT_UNKNOWN && !is_wide_type(type))
		return false;
	if (data.kind == VAL_NUM) {
		*out = data;
		return true;
	}
	ref = data.kind == VAL_UNKNOWN ? lj_step_next_of(l, is_to_number, 0)
				       : lj_value_find(l, is_to_number, 0, &data, NULL);
	if (!ref)
		return false;
	lj_claim_ref(l, ref);
	lj_value_set(out, ref);
	return true;
}
