// SPDX-License-Identifier: BSD-2-Clause
#include "branch.h"
#include "callee.h"
#include "lua/lj/table.h"
#include "lua/lj/bc.h"

static const char *const type_names[] = {
	[LJ_IRT_NIL] = "nil",	 [LJ_IRT_FALSE] = "boolean",  [LJ_IRT_TRUE] = "boolean",
	[LJ_IRT_STR] = "string", [LJ_IRT_FUNC] = "function",  [LJ_IRT_CDATA] = "cdata",
	[LJ_IRT_TAB] = "table",	 [LJ_IRT_UDATA] = "userdata", [LJ_IRT_NUM] = "number",
};

static enum branch_to jumps_if(bool condition)
{
	return condition ? BRANCH_JUMP : BRANCH_NEXT;
}

/* Returns the trace's comparison of two values before reference `end`; LJ_IR__MAX: none. */
static uint8_t comparison_of(const struct sim *l, const struct value *a, const struct value *b,
			     uint32_t end)
{
	static const uint8_t mirrored[] = {
		[LJ_IR_LT] = LJ_IR_GT,	 [LJ_IR_GE] = LJ_IR_LE,	  [LJ_IR_LE] = LJ_IR_GE,
		[LJ_IR_GT] = LJ_IR_LT,	 [LJ_IR_ULT] = LJ_IR_UGT, [LJ_IR_UGE] = LJ_IR_ULE,
		[LJ_IR_ULE] = LJ_IR_UGE, [LJ_IR_UGT] = LJ_IR_ULT, [LJ_IR_EQ] = LJ_IR_EQ,
		[LJ_IR_NE] = LJ_IR_NE,
	};
	const struct lj_trace *t = l->t;
	uint32_t ref;

	if (a->kind == VAL_UNKNOWN || b->kind == VAL_UNKNOWN)
		return LJ_IR__MAX;
	for (ref = LJ_REF_BIAS + 1; ref < end; ref++) {
		const struct lj_ins *ir = lj_ins_at(t, ref);

		if (ir->o > LJ_IR_NE)
			continue;
		if (lj_value_is(l, a, ir->op1) && lj_value_is(l, b, ir->op2))
			return ir->o;
		if (lj_value_is(l, a, ir->op2) && lj_value_is(l, b, ir->op1))
			return mirrored[ir->o];
	}
	return LJ_IR__MAX;
}

/* Decides a comparison from a guard of the same operands. */
static enum branch_to by_guard(uint8_t op, uint8_t guard)
{
	static const struct {
		uint8_t jumps, next;
	} ordered[] = {
		[LJ_IR_LT] = {LJ_BC_ISLT, LJ_BC_ISGE},	[LJ_IR_GE] = {LJ_BC_ISGE, LJ_BC_ISLT},
		[LJ_IR_LE] = {LJ_BC_ISLE, LJ_BC_ISGT},	[LJ_IR_GT] = {LJ_BC_ISGT, LJ_BC_ISLE},
		[LJ_IR_ULT] = {LJ_BC_ISLT, LJ_BC_ISGE}, [LJ_IR_UGE] = {LJ_BC_ISGE, LJ_BC_ISLT},
		[LJ_IR_ULE] = {LJ_BC_ISLE, LJ_BC_ISGT}, [LJ_IR_UGT] = {LJ_BC_ISGT, LJ_BC_ISLE},
	};

	if (guard <= LJ_IR_UGT)
		return op == ordered[guard].jumps  ? BRANCH_JUMP
		       : op == ordered[guard].next ? BRANCH_NEXT
						   : BRANCH_UNKNOWN;
	/* ISEQV ISNEV ISEQS ISNES ... */
	if (guard > LJ_IR_NE || op < LJ_BC_ISEQV || op > LJ_BC_ISNEN)
		return BRANCH_UNKNOWN;
	return jumps_if((guard == LJ_IR_NE) == ((op - LJ_BC_ISEQV) & 1));
}

static bool is_true(uint8_t type)
{
	return type != LJ_IRT_NIL && type != LJ_IRT_FALSE;
}

/* Integers and numbers are one type in Lua. */
static uint8_t lua_type(uint8_t type)
{
	return type == LJ_IRT_UNKNOWN || type < LJ_IRT_FLOAT ? type : LJ_IRT_NUM;
}

static enum branch_to constants_branch(uint8_t op, double a, double b)
{
	switch (op) {
	case LJ_BC_ISLT:
		return jumps_if(a < b);
	case LJ_BC_ISGE:
		return jumps_if(!(a < b));
	case LJ_BC_ISLE:
		return jumps_if(a <= b);
	case LJ_BC_ISGT:
		return jumps_if(!(a <= b));
	default: /* ISEQV ISNEV, ISEQN ISNEN */
		return jumps_if((a == b) == !((op - LJ_BC_ISEQV) & 1));
	}
}

/* Copies the operands of a comparison of two values. False: it is no such comparison. */
static bool compared(struct sim *l, const struct lj_tframe *f, uint32_t ins, struct value *a,
		     struct value *b)
{
	const struct lj_code *code = &l->t->codes[f->code];
	uint8_t op = lj_bc_op(ins);

	if (op > LJ_BC_ISNEN)
		return false;
	*a = *lj_value_slot(l, f, lj_bc_a(ins));
	*b = op <= LJ_BC_ISNEV			      ? *lj_value_slot(l, f, lj_bc_d(ins))
	     : op == LJ_BC_ISEQS || op == LJ_BC_ISNES ? lj_value_string(code, lj_bc_d(ins))
						      : lj_value_const(code, lj_bc_d(ins));
	return true;
}

/* Copies a loop's compared index, and its end. False: the index is not known. */
static bool loop_compared(struct sim *l, const struct lj_tframe *f, uint32_t ins, struct value *idx,
			  struct value *stop)
{
	const struct lj_trace *t = l->t;
	const struct value *step = lj_value_slot(l, f, lj_bc_a(ins) + 2u);
	uint32_t ref;

	*idx = *lj_value_slot(l, f, lj_bc_a(ins));
	*stop = *lj_value_slot(l, f, lj_bc_a(ins) + 1u);
	if (lj_bc_op(ins) == LJ_BC_FORI || lj_bc_op(ins) == LJ_BC_JFORI)
		return true;
	if (idx->kind == VAL_NUM && step->kind == VAL_NUM) {
		idx->num += step->num;
		return true;
	}
	l->visits += lj_value_bound(l) - LJ_REF_BIAS;
	for (ref = LJ_REF_BIAS + 1; ref < lj_value_bound(l); ref++) {
		const struct lj_ins *ir = lj_ins_at(t, ref);

		if ((ir->o == LJ_IR_ADD || ir->o == LJ_IR_ADDOV) && lj_value_is(l, idx, ir->op1) &&
		    lj_value_is(l, step, ir->op2)) {
			lj_value_set(idx, ref);
			return true;
		}
	}
	return false;
}

/* Decides whether a loop continues from a guard between its index and its end. */
static enum branch_to loop_enters(uint8_t guard, bool up)
{
	if (guard == (up ? LJ_IR_LE : LJ_IR_GE) || guard == (up ? LJ_IR_LT : LJ_IR_GT))
		return BRANCH_JUMP;
	return guard == (up ? LJ_IR_GT : LJ_IR_LT) ? BRANCH_NEXT : BRANCH_UNKNOWN;
}

/* Decides from constant bounds, or from an equal comparison of another loop: CSE leaves one guard
 * for both. */
static enum branch_to loop_branches(struct sim *l, const struct lj_tframe *f, uint32_t ins)
{
	const struct value *step = lj_value_slot(l, f, lj_bc_a(ins) + 2u);
	uint8_t op = lj_bc_op(ins);
	struct value idx, stop;
	enum branch_to to;

	if (step->kind != VAL_NUM || !loop_compared(l, f, ins, &idx, &stop))
		return BRANCH_UNKNOWN;
	if (idx.kind == VAL_NUM && stop.kind == VAL_NUM)
		to = jumps_if(step->num >= 0 ? idx.num <= stop.num : idx.num >= stop.num);
	else
		to = loop_enters(comparison_of(l, &idx, &stop, lj_recorded_end(l->t)),
				 step->num >= 0);
	if (to == BRANCH_UNKNOWN || op == LJ_BC_FORL || op == LJ_BC_IFORL)
		return to;
	return to == BRANCH_JUMP ? BRANCH_NEXT : BRANCH_JUMP;
}

bool lj_branch_needs_guard(struct sim *l, const struct lj_tframe *f, uint32_t ins)
{
	uint8_t op = lj_bc_op(ins);
	struct value a, b;

	if (!(op == LJ_BC_FORI || op == LJ_BC_JFORI || op == LJ_BC_FORL || op == LJ_BC_IFORL
		      ? loop_compared(l, f, ins, &a, &b)
		      : compared(l, f, ins, &a, &b)))
		return false;
	return a.kind != VAL_UNKNOWN && b.kind != VAL_UNKNOWN && lj_value_is_number(l, &a) &&
	       lj_value_is_number(l, &b) &&
	       lj_value_ref(l, &a) != lj_value_ref(l, &b) && /* an integer equals itself */
	       (lj_value_ref(l, &a) > LJ_REF_BIAS || lj_value_ref(l, &b) > LJ_REF_BIAS) &&
	       comparison_of(l, &a, &b, lj_value_bound(l)) == LJ_IR__MAX;
}

bool lj_branch_may_guard(struct sim *l, const struct lj_tframe *f, uint32_t ins,
			 const struct lj_ins *guard)
{
	struct value a, b;

	if (!compared(l, f, ins, &a, &b) || !lj_value_is_number(l, &a) ||
	    !lj_value_is_number(l, &b))
		return true;
	return (lj_value_may_be(l, &a, guard->op1) && lj_value_may_be(l, &b, guard->op2)) ||
	       (lj_value_may_be(l, &a, guard->op2) && lj_value_may_be(l, &b, guard->op1));
}

/* True if the trace has a guard that compares a value to itself. */
static bool compares_itself(struct sim *l)
{
	const struct lj_trace *t = l->t;
	uint32_t ref;

	l->visits += lj_recorded_end(t) - LJ_REF_BIAS;
	for (ref = LJ_REF_BIAS + 1; ref < lj_recorded_end(t); ref++) {
		const struct lj_ins *ir = lj_ins_at(t, ref);

		if ((ir->o == LJ_IR_EQ || ir->o == LJ_IR_NE) && ir->op1 == ir->op2)
			return true;
	}
	return false;
}

enum branch_to lj_branches(struct sim *l, const struct lj_tframe *f, uint32_t ins)
{
	uint8_t op = lj_bc_op(ins), type, other;
	struct value a, b;

	switch (op) {
	case LJ_BC_ISLT ... LJ_BC_ISNEN:
		compared(l, f, ins, &a, &b);
		break;
	case LJ_BC_ISEQP:
	case LJ_BC_ISNEP:
		type = lj_value_type(l, lj_value_slot(l, f, lj_bc_a(ins)));
		return type == LJ_IRT_UNKNOWN || type == LJ_IRT_CDATA
			       ? BRANCH_UNKNOWN
			       : jumps_if((type == lj_bc_d(ins)) == (op == LJ_BC_ISEQP));
	case LJ_BC_ISTC ... LJ_BC_ISF:
		type = lj_value_type(l, lj_value_slot(l, f, lj_bc_d(ins)));
		return !lj_value_has_truth(type)
			       ? BRANCH_UNKNOWN
			       : jumps_if(is_true(type) == (op == LJ_BC_ISTC || op == LJ_BC_IST));
	case LJ_BC_ITERL:
	case LJ_BC_IITERL:
		type = lj_value_type(l, lj_value_slot(l, f, lj_bc_a(ins)));
		return type == LJ_IRT_UNKNOWN ? BRANCH_UNKNOWN : jumps_if(type != LJ_IRT_NIL);
	case LJ_BC_FORI:
	case LJ_BC_JFORI:
	case LJ_BC_FORL:
	case LJ_BC_IFORL:
		return loop_branches(l, f, ins);
	default:
		return BRANCH_UNKNOWN;
	}
	if (a.kind == VAL_TYPENAME && b.kind == VAL_OBJ && op >= LJ_BC_ISEQV) {
		const char *name = type_names[lua_type(a.type)];

		return name ? jumps_if(lj_string_is(&l->t->lj, l->mem, b.obj, name) ==
				       !((op - LJ_BC_ISEQV) & 1))
			    : BRANCH_UNKNOWN;
	}
	type = lua_type(lj_value_type(l, &a));
	other = lua_type(lj_value_type(l, &b));
	if (a.kind == VAL_NUM && b.kind == VAL_NUM)
		return constants_branch(op, a.num, b.num);
	/* a string concatenated from constants may be any */
	if (a.kind == VAL_OBJ && b.kind == VAL_OBJ && a.type == LJ_IRT_STR &&
	    b.type == LJ_IRT_STR && (!a.obj || !b.obj))
		return BRANCH_UNKNOWN;
	if (a.kind == VAL_OBJ && b.kind == VAL_OBJ && op >= LJ_BC_ISEQV)
		return jumps_if((a.obj == b.obj && a.type == b.type) == !((op - LJ_BC_ISEQV) & 1));
	if (op >= LJ_BC_ISEQV && type != other && type != LJ_IRT_UNKNOWN &&
	    other != LJ_IRT_UNKNOWN && type != LJ_IRT_CDATA && other != LJ_IRT_CDATA)
		return jumps_if((op - LJ_BC_ISEQV) & 1);
	/* compared to itself without a guard: a constant */
	if ((op == LJ_BC_ISEQV || op == LJ_BC_ISNEV) && lj_bc_a(ins) == lj_bc_d(ins) &&
	    a.kind == VAL_UNKNOWN && !compares_itself(l))
		return jumps_if(op == LJ_BC_ISEQV);
	return by_guard(op, comparison_of(l, &a, &b, lj_recorded_end(l->t)));
}
