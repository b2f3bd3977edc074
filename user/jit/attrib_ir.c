// SPDX-License-Identifier: BSD-2-Clause
/*
 * The bytecode instruction for which each IR instruction was recorded. The recorder emits IR in the
 * order of the bytecode, so a certain label bounds all others. The certain ones come from abstract
 * interpretation of the recorded bytecode, with references for values:
 *
 *   - a result is the reference of the instruction with the operation and operands of the bytecode;
 *   - an unknown value becomes known from the instruction that uses it, or from the next snapshot,
 *     which has the live slots that the trace has changed.
 *
 * attrib_gaps.c and attrib_loop.c label the rest. Cost: each search is linear in the IR, and
 * search.c bounds their sum (VISITS_MAX).
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attrib_gaps.h"
#include "attrib_ir.h"
#include "attrib_loop.h"
#include "base/cleanup.h"
#include "callee.h"
#include "exec.h"
#include "lua/lj/bc.h"

/* True for x + x, into which a product by 2 is folded. */
static bool is_doubled(const struct lj_trace *t, const struct lj_ins *ir, op_set unused)
{
	(void)t;
	(void)unused;
	return ir->o == LJ_IR_ADD && ir->op1 == ir->op2;
}

/* Returns the reference of an integer plus a constant that the trace computes from another base
 * (reassoc_intarith_k in lj_opt_fold.c). 0 if it computes no such affine. */
static uint32_t find_affine(struct sim *l, const struct value *b, double c)
{
	const struct lj_trace *t = l->t;
	uint32_t of = b->kind == VAL_REF && lj_value_type(l, b) == LJ_IRT_INT ? b->ref : 0, ref;
	struct lj_affine affine;

	if (!lj_ref_ok(t, of) || of <= LJ_REF_BIAS)
		return 0;
	affine = lj_value_affine(t, of);
	affine.ofs += c;
	if (!affine.ofs)
		return affine.base > LJ_REF_BIAS && lj_ref_ok(t, affine.base) ? affine.base : 0;
	l->visits += SUM_VISITS * (l->hi - LJ_REF_BIAS);
	for (ref = LJ_REF_BIAS + 1; ref < l->hi; ref++) {
		struct lj_affine is;

		if (lj_ins_at(t, ref)->o != LJ_IR_ADD)
			continue;
		is = lj_value_affine(t, ref);
		if (is.base == affine.base && is.ofs == affine.ofs) {
			lj_claim_ref(l, ref);
			return ref;
		}
	}
	return 0;
}

/* Arithmetic on numbers, or on integers with overflow checks. Integers without checks are narrowed
 * ones: an index, or an operand of bit operations, computed where that is used (lj_opt_narrow.c).
 * So are 64-bit ones, unless an operand is cdata: is_number_arith() excludes them. */
static bool is_arith(const struct lj_trace *t, const struct lj_ins *ir, op_set set)
{
	return lj_step_is(t, ir, set) && !lj_is_narrowed(ir);
}

static bool is_number_arith(const struct lj_trace *t, const struct lj_ins *ir, op_set set)
{
	uint8_t type = ir->t & LJ_IRT_TYPE;

	return is_arith(t, ir, set) && type != LJ_IRT_I64 && type != LJ_IRT_P64;
}

static const op_set sums[2] = {OPS(ADD) | OPS(ADDOV), OPS(SUB) | OPS(SUBOV)};

/* Finds an addition or subtraction of a constant, or the opposite operation on its negative. */
static uint32_t find_constant_affine(struct sim *l, wanted_fn wanted, struct value *b,
				     struct value *c, bool subtracts)
{
	struct value negative = lj_value_number(-c->num);
	uint32_t ref = lj_value_find(l, wanted, sums[subtracts], b, c);

	return ref ? ref : lj_value_find(l, wanted, sums[!subtracts], b, &negative);
}

/* Finds the instruction of an arithmetic operation (which: as in lj_trace_arith). */
static uint32_t find_arith(struct sim *l, wanted_fn wanted, struct value *b, struct value *c,
			   uint32_t which)
{
	uint32_t ref = 0;

	if (which < 2 && c->kind == VAL_NUM)
		return find_constant_affine(l, wanted, b, c, which);
	if (which < 2)
		ref = lj_value_find(l, wanted, sums[which], b, c);
	return ref ? ref : lj_value_find(l, wanted, lj_trace_arith[which], b, c);
}

/* Returns the reference whose negative the value is; 0: none. */
static uint32_t minus_of(const struct sim *l, const struct value *v)
{
	const struct lj_ins *ir;

	if (v->minus)
		return v->minus;
	if (v->kind != VAL_REF || v->ref <= LJ_REF_BIAS || !lj_ref_ok(l->t, v->ref))
		return 0;
	ir = lj_ins_at(l->t, v->ref);
	return ir->o == LJ_IR_NEG ? ir->op1 : 0;
}

/* Finds an operation into which the negation of an operand was folded (lj_opt_fold.c, simplify_num*): a + -b is a - b, and
 * -a * k is a * -k. */
static uint32_t find_negated(struct sim *l, wanted_fn wanted, struct value *b, struct value *c,
			     uint32_t which)
{
	struct value a = {.kind = VAL_REF, .ref = minus_of(l, b), .by = b->by}, k;
	struct value d = {.kind = VAL_REF, .ref = minus_of(l, c), .by = c->by};

	if (which < 2 && d.ref)
		return find_arith(l, wanted, b, &d, !which);
	if (which == 0 && a.ref)
		return find_arith(l, wanted, c, &a, 1);
	if (which > 3)
		return 0;
	if (a.ref && d.ref)
		return find_arith(l, wanted, &a, &d, which);
	if (a.ref && c->kind == VAL_NUM) {
		k = lj_value_number(-c->num);
		return which == 1 ? find_arith(l, wanted, &k, &a, which)
				  : find_arith(l, wanted, &a, &k, which);
	}
	k = lj_value_number(-b->num);
	return which == 2 && d.ref && b->kind == VAL_NUM ? find_arith(l, wanted, &d, &k, which) : 0;
}

/* A negation. One that was folded into the operation that takes its result leaves no instruction. */
static void step_minus(struct sim *l, struct value *dst, struct value *of)
{
	struct value zero = lj_value_number(0);
	uint32_t minus = minus_of(l, of),
		 number = lj_value_is_number(l, of) ? lj_value_ref(l, of) : 0;
	uint32_t ref = lj_value_find(l, lj_step_is, OPS(NEG) | OPS(BXOR), of, NULL);

	if (!ref)
		ref = lj_value_find(l, lj_step_is, OPS(SUB) | OPS(SUBOV), &zero, of);
	if (!ref && minus) {
		l->t->history[l->step].folded = true;
		*dst = (struct value){.kind = VAL_REF, .ref = minus, .by = -1};
		return;
	}
	lj_step_result(l, dst, ref);
	if (!ref)
		dst->minus = number;
}

/* Finds a result of which only the narrowed integer is left. The label of that is its use's. */
static uint32_t find_narrowed(struct sim *l, struct value *b, struct value *c, uint32_t which)
{
	uint32_t ref = 0;

	l->peeks = true;
	if (which < 2 && b->kind != VAL_UNKNOWN && c->kind != VAL_UNKNOWN)
		ref = find_arith(l, lj_step_is, b, c, which);
	if (!ref && which < 2 && c->kind == VAL_NUM)
		ref = find_affine(l, b, which ? -c->num : c->num);
	l->peeks = false;
	return ref;
}

static double folded(uint32_t which, double b, double c)
{
	switch (which) {
	case 0:
		return b + c;
	case 1:
		return b - c;
	case 2:
		return b * c;
	case 3:
		return b / c;
	default:
		return b - floor(b / c) * c;
	}
}

/* Sets dst to a result without an instruction. A sum with a constant keeps base and offset:
 * an element's address may be computed from them. */
static void set_affine(struct sim *l, struct value *dst, const struct value *b,
		       const struct value *c, uint32_t which, bool number)
{
	const struct value *of = c->kind == VAL_NUM ? b : c, *num = of == b ? c : b;
	uint32_t ref = of->kind == VAL_UNKNOWN ? of->ref : lj_value_ref(l, of);
	double ofs = of->kind == VAL_UNKNOWN ? of->num : 0;
	bool adds = num->kind == VAL_NUM && (!which || (which == 1 && of == b));

	ofs += which ? -num->num : num->num;
	lj_set_unknown(l, dst);
	dst->number = number;
	if (adds && ref) {
		dst->ref = ref;
		dst->num = ofs;
	}
}

/* Returns the next instruction of this operation with reference ref as operand; 0: none. */
static uint32_t next_of(const struct sim *l, uint32_t ref, uint8_t o, bool second)
{
	uint32_t r;

	for (r = ref + 1; ref && r < l->hi; r++) {
		const struct lj_ins *ir = lj_ins_at(l->t, r);

		if (ir->o == o && (second ? ir->op2 : ir->op1) == ref)
			return r;
	}
	return 0;
}

/* Returns a - floor(a/b)*b for the quotient a/b. 0: the quotient is not part of a remainder. */
static uint32_t remainder_of(struct sim *l, uint32_t quotient)
{
	uint32_t whole = next_of(l, quotient, LJ_IR_FPMATH, false);
	uint32_t product = next_of(l, whole, LJ_IR_MUL, false);
	uint32_t ref = next_of(l, product, LJ_IR_SUB, true);

	l->visits += l->hi - LJ_REF_BIAS;
	if (ref)
		lj_claim_ref(l, ref);
	return ref;
}

static void step_arith(struct sim *l, struct value *dst, struct value *b, struct value *c,
		       uint32_t which)
{
	bool cdata = lj_value_type(l, b) == LJ_IRT_CDATA || lj_value_type(l, c) == LJ_IRT_CDATA;
	const struct value *constant = b->kind == VAL_NUM ? b : c;
	bool numbers = !cdata && (lj_value_is_number(l, b) || lj_value_is_number(l, c));
	wanted_fn wanted = numbers ? is_number_arith : is_arith;
	uint32_t ref;

	if (b->kind == VAL_NUM && c->kind == VAL_NUM) {
		l->t->history[l->step].folded = true;
		*dst = (struct value){
			.kind = VAL_NUM, .num = folded(which, b->num, c->num), .by = -1};
		return;
	}
	if (l->cdata && lj_step_int64(l, dst, b, c, which))
		return;
	l->divides = which >= 3;
	/* an unknown operand would match any */
	ref = b->minus || c->minus ? 0 : find_arith(l, wanted, b, c, which);
	if (!ref)
		ref = find_negated(l, wanted, b, c, which);
	l->divides = false;
	if (!ref)
		ref = find_narrowed(l, b, c, which);
	if (!ref && which == 2 && constant->kind == VAL_NUM && constant->num == 2) {
		ref = lj_value_find(l, is_doubled, 0, NULL, NULL);
		if (ref)
			lj_bind_ref(l, b->kind == VAL_NUM ? c : b, lj_ins_at(l->t, ref)->op1);
	}
	if (!ref && which == 4 && c->kind == VAL_NUM) { /* remainder by a power of 2 */
		struct value mask = lj_value_number(c->num - 1);

		ref = lj_value_find(l, lj_step_is, OPS(BAND), b, &mask);
	}
	if (!ref && !which && constant->kind == VAL_NUM &&
	    constant->num == 0) { /* x + 0 is folded for integers */
		l->t->history[l->step].folded = true;
		*dst = b->kind == VAL_NUM ? *c : *b;
		return;
	}
	if (!ref && which == 4 && c->kind == VAL_NUM && c->num == 1 &&
	    lj_value_type(l, b) == LJ_IRT_INT) { /* x % 1 is 0 for integers */
		l->t->history[l->step].folded = true;
		*dst = lj_value_number(0);
		return;
	}
	if (!ref) {
		set_affine(l, dst, b, c, which, numbers || (!cdata && !l->cdata));
		return;
	}
	if (which == 4 &&
	    (lj_ins_at(l->t, ref)->o == LJ_IR_DIV || lj_ins_at(l->t, ref)->o == LJ_IR_MUL))
		ref = remainder_of(l, ref);
	lj_step_result(l, dst, ref);
}

/* Copies the length of a constant string. */
static bool constant_length(const struct sim *l, const struct value *v, struct value *out)
{
	uint32_t len;

	if (v->kind != VAL_OBJ || v->type != LJ_IRT_STR ||
	    mem_read(l->mem, &len, sizeof(len), v->obj + l->t->lj.str_len))
		return false;
	*out = lj_value_number(len);
	return true;
}

static void step_length(struct sim *l, struct value *dst, struct value *of)
{
	if (constant_length(l, of, dst))
		l->t->history[l->step].folded = true;
	else
		lj_step_result(l, dst, lj_step_length(l, of));
}

/* Concatenation of constants is folded. */
static void step_concat(struct sim *l, const struct lj_tframe *f, uint32_t ins, struct value *dst)
{
	uint32_t i = lj_bc_b(ins);

	while (i <= lj_bc_c(ins) && lj_value_is_known(lj_value_slot(l, f, i)))
		i++;
	if (i > lj_bc_c(ins)) {
		l->t->history[l->step].folded = true;
		*dst = lj_value_object(0, LJ_IRT_STR);
	} else {
		lj_step_result(l, dst,
			       lj_step_buffer(l, f, lj_bc_b(ins), lj_bc_c(ins) - lj_bc_b(ins) + 1));
	}
}

/* The type of a value determines its truth. */
static void step_not(struct sim *l, struct value *dst, const struct value *of)
{
	uint8_t type = lj_value_type(l, of);

	if (!lj_value_has_truth(type))
		lj_set_unknown(l, dst);
	else
		*dst = lj_value_object(
			0, type == LJ_IRT_NIL || type == LJ_IRT_FALSE ? LJ_IRT_TRUE : LJ_IRT_FALSE);
}

/* Executes constants, copies and arithmetic: instructions from slots to a slot. False: none of
 * these. */
static bool step_value(struct sim *l, const struct lj_tframe *f, uint32_t ins)
{
	struct value *va = lj_value_slot(l, f, lj_bc_a(ins)),
		     *vd = lj_value_slot(l, f, lj_bc_d(ins));
	struct value *vb = lj_value_slot(l, f, lj_bc_b(ins)),
		     *vc = lj_value_slot(l, f, lj_bc_c(ins));
	struct value num = lj_value_const(lj_code_of(l->t, l->step), lj_bc_c(ins));
	uint8_t op = lj_bc_op(ins);

	switch (op) {
	case LJ_BC_MOV:
		lj_step_load(l, vd);
		*va = *vd;
		return true;
	case LJ_BC_ISTC:
	case LJ_BC_ISFC:
		*va = *vd;
		return true;
	case LJ_BC_KSTR:
		*va = lj_value_string(lj_code_of(l->t, l->step), lj_bc_d(ins));
		return true;
	case LJ_BC_KCDATA:
		*va = lj_value_object(lj_code_kgc(lj_code_of(l->t, l->step), lj_bc_d(ins)),
				      LJ_IRT_CDATA);
		return true;
	case LJ_BC_KPRI:
		*va = lj_value_object(0, (uint8_t)lj_bc_d(ins));
		return true;
	case LJ_BC_KSHORT:
		*va = lj_value_number((int16_t)lj_bc_d(ins));
		return true;
	case LJ_BC_KNUM:
		*va = lj_value_const(lj_code_of(l->t, l->step), lj_bc_d(ins));
		return true;
	case LJ_BC_UNM:
		step_minus(l, va, vd);
		return true;
	case LJ_BC_LEN:
		step_length(l, va, vd);
		return true;
	case LJ_BC_NOT:
		step_not(l, va, vd);
		return true;
	case LJ_BC_ADDVN ... LJ_BC_MODVN:
		step_arith(l, va, vb, &num, op - LJ_BC_ADDVN);
		return true;
	case LJ_BC_ADDNV ... LJ_BC_MODNV:
		step_arith(l, va, &num, vb, op - LJ_BC_ADDNV);
		return true;
	case LJ_BC_ADDVV ... LJ_BC_MODVV:
		step_arith(l, va, vb, vc, op - LJ_BC_ADDVV);
		return true;
	case LJ_BC_POW:
		*va = lj_step_power(l, vb, vc);
		return true;
	case LJ_BC_CAT:
		step_concat(l, f, ins, va);
		return true;
	case LJ_BC_TNEW:
	case LJ_BC_TDUP:
		lj_step_result(l, va,
			       lj_value_find(l, lj_step_is, OPS(TNEW) | OPS(TDUP), NULL, NULL));
		return true;
	default:
		return false;
	}
}

/* Operands are loaded before an instruction is looked at, in this order (lj_record_ins). */
static void load_operands(struct sim *l, const struct lj_tframe *f, uint32_t ins)
{
	uint8_t op = lj_bc_op(ins);
	bool a = op <= LJ_BC_ISNEP || (op >= LJ_BC_TSETV && op <= LJ_BC_TSETB);
	bool b = (op >= LJ_BC_ADDVN && op <= LJ_BC_POW) ||
		 (op >= LJ_BC_TGETV && op <= LJ_BC_TGETB) ||
		 (op >= LJ_BC_TSETV && op <= LJ_BC_TSETB);
	bool c = (op >= LJ_BC_ADDVV && op <= LJ_BC_POW) || op == LJ_BC_TGETV || op == LJ_BC_TSETV;
	bool d = op <= LJ_BC_ISNEV || (op >= LJ_BC_ISTC && op <= LJ_BC_LEN) || op == LJ_BC_USETV;

	if (a)
		lj_step_load(l, lj_value_slot(l, f, lj_bc_a(ins)));
	if (b)
		lj_step_load(l, lj_value_slot(l, f, lj_bc_b(ins)));
	if (c)
		lj_step_load(l, lj_value_slot(l, f, lj_bc_c(ins)));
	if (d)
		lj_step_load(l, lj_value_slot(l, f, lj_bc_d(ins)));
}

/* Two different objects may be equal by __eq: the recorder loads their metatables after the guard
 * that they differ (rec_mm_equal). */
static void step_equality(struct sim *l, struct value *a, struct value *b)
{
	uint8_t type = lj_value_type(l, a);

	if ((type != LJ_IRT_TAB && type != LJ_IRT_UDATA) || lj_value_type(l, b) != type)
		return;
	lj_value_find(l, lj_step_is, OPS(EQ) | OPS(NE), a, b);
	lj_step_metatable(l, lj_value_ref(l, a));
}

/* A comparison of constants has no guard. */
static void step_comparison(struct sim *l, const struct lj_tframe *f, uint32_t ins)
{
	struct value arg[3];

	if (lj_operands(l, f, ins, arg) != 2)
		return;
	if (lj_value_is_known(&arg[0]) && lj_value_is_known(&arg[1]))
		l->t->history[l->step].folded = true;
	else if (lj_bc_op(ins) == LJ_BC_ISEQV || lj_bc_op(ins) == LJ_BC_ISNEV)
		step_equality(l, &arg[0], &arg[1]);
}

static void step_one(struct sim *l)
{
	const struct lj_trace *t = l->t;
	const struct lj_tframe *f = &t->frames[t->history[l->step].frame];
	uint32_t ins = lj_step_ins(t, (uint32_t)l->step);

	load_operands(l, f, ins);
	if (lj_bc_op(ins) <= LJ_BC_ISNEP)
		step_comparison(l, f, ins);
	if (lj_bc_has_mm(ins))
		lj_step_metamethod(l, f, ins);
	if (l->enters && lj_bc_is_arith(ins))
		return; /* the metamethod makes its value */
	if (!step_value(l, f, ins) && !lj_step_memref(l, f, ins))
		lj_step_control(l, f, ins);
}

/* Returns the value of a snapshot's entry: constant numbers and strings as the bytecode's are. */
static struct value snapshot_value(const struct sim *l, uint32_t ref)
{
	struct value v = {};

	if (lj_value_constant(l->t, ref, &v))
		return v;
	lj_value_set(&v, ref);
	return v;
}

#define LINKS (LJ_SNAP_FRAME | LJ_SNAP_CONT)

/* True for a frame link, or for a continuation's function, which is below a link of its own: no
 * value. In GC32 a frame's slot has its function, and a continuation takes one slot. */
static bool is_link(const struct lj_trace *t, const struct lj_tsnap *s, uint32_t i)
{
	if (lj_is_gc32(&t->lj))
		return s->map[i] & LJ_SNAP_CONT;
	return s->map[i] & LINKS || (i + 1 < s->nent && s->map[i + 1] & LJ_SNAP_CONT &&
				     s->map[i + 1] >> 24 == (s->map[i] >> 24) + 1);
}

bool lj_label_contradicts(const struct sim *l, const struct lj_tsnap *s)
{
	uint32_t i;

	for (i = 0; i < s->nent; i++) {
		uint32_t slot = s->map[i] >> 24, ref = s->map[i] & 0xffff;
		const struct value *v;
		struct value c;

		if (slot >= l->top || is_link(l->t, s, i))
			continue;
		v = &l->slot[slot];
		if (v->kind == VAL_NUM && lj_value_constant(l->t, ref, &c) && c.kind == VAL_NUM &&
		    c.num != v->num && c.num == c.num)
			return true;
	}
	return false;
}

/* Takes the values of a snapshot, which has the live slots that the trace has changed. */
void lj_label_snapshot(struct sim *l, const struct lj_tsnap *s)
{
	uint32_t i;

	for (i = 0; i < s->nent; i++) {
		uint32_t slot = s->map[i] >> 24, ref = s->map[i] & 0xffff;

		if (slot >= SLOTS || is_link(l->t, s, i) || !lj_ref_ok(l->t, ref))
			continue;
		if (ref > LJ_REF_BIAS)
			lj_bind_ref(l, lj_value_at(l, slot), ref);
		*lj_value_at(l, slot) = snapshot_value(l, ref);
	}
}

void lj_label_step(struct sim *l, int next_frame, uint32_t next_pc)
{
	const struct lj_trace *t = l->t;

	l->step = (int32_t)l->done++;
	l->next_frame = next_frame;
	l->enters = next_frame >= 0 && !next_pc && next_frame != (int)t->history[l->step].frame;
	l->t->history[l->step].folded = 0;
	l->t->history[l->step].pure = 0;
	l->t->history[l->step].builtin = 0;
	lj_value_range(l, l->step, &l->lo, &l->hi);
	step_one(l);
}

/* True if it is a check at the entry of a loop with index, end and step in slots from `slot` on. */
static bool is_of_entry(const struct lj_trace *t, uint32_t ref, uint32_t slot)
{
	const struct lj_ins *ir = lj_ins_at(t, ref);

	if (ir->o == LJ_IR_SLOAD)
		return ir->op1 >= slot && ir->op1 <= slot + 2;
	if (ir->o == LJ_IR_ADDOV)
		return ref + 1 < t->nins && lj_ins_at(t, ref + 1)->o == LJ_IR_USE;
	return ir->o == LJ_IR_USE || ir->o <= LJ_IR_GT;
}

/* A trace that begins at a loop's end: labels the checks before the first instruction of the body, that the loop's
 * numbers have the recorded types (rec_for_loop), and that its end plus a variable step does not overflow
 * (rec_for_check). The loop's variable is the index, which is in another slot. */
static void begin_loop(struct sim *l)
{
	struct lj_trace *t = l->t;
	const struct lj_tframe *f = &t->frames[t->history[0].frame];
	uint32_t ins = lj_step_ins(t, 0), a = lj_bc_a(ins);
	uint32_t slot = (uint32_t)f->slot + lj_frame_slots(t) + a, ref;

	for (ref = LJ_REF_BIAS + 1; ref < lj_recorded_end(t) && is_of_entry(t, ref, slot); ref++)
		*lj_label_of(t, ref) = 0;
	*lj_value_slot(l, f, a + 3) = *lj_value_slot(l, f, a);
}

void lj_sim_begin(struct sim *l)
{
	struct lj_trace *t = l->t;
	uint32_t i;

	for (i = 0; i < t->nins - LJ_REF_BIAS; i++)
		t->label[i] = -1;
	lj_value_unset(l);
	l->top = l->nclaimed = l->nstores = l->next_snap = 0;
	l->nsaved = 0;
	l->dead_end = false;
	l->multres = -1;
	l->retf = LJ_REF_BIAS;
	l->visits = 0;
	l->cur = LJ_REF_BIAS + 1;
	l->done = t->nhistory;
	if (t->nhistory)
		begin_loop(l);
}

/* Labels the conversions of integers to numbers before a jump to another trace
 * (canonicalize_slots). They belong to the last instruction: a loop's, or the one at the last
 * snapshot. */
static void label_end(struct lj_trace *t)
{
	const struct lj_tsnap *last = &t->snap[t->nsnap - 1];
	uint32_t i = t->nhistory - 1, pc, ref;
	uint8_t op = lj_bc_op(lj_step_ins(t, i));
	bool loops = op >= LJ_BC_FORI && op < LJ_BC_JMP;

	if (!loops && last->frame >= 0 && lj_trace_code(t, last->pc, &pc) >= 0)
		t->history[++i] = (struct bc_event){.pc = pc, .frame = (uint32_t)last->frame};
	for (ref = last->ref; ref-- > LJ_REF_BIAS + 1 && lj_is_number_of_int(t, ref);)
		if (*lj_label_of(t, ref) < 0)
			*lj_label_of(t, ref) = (int32_t)i;
	t->nhistory = i + 1;
}

int lj_sim_finish(struct sim *l)
{
	struct lj_trace *t = l->t;
	uint32_t i, ref;
	int r;

	if (!t->loopref && t->nhistory)
		label_end(t);

	/* from a branch's snapshot to its guard: labelled with the branch; with constant bounds
	 * there is no guard */
	for (i = 0; i < t->npre; i++)
		for (ref = t->snap[i].ref; t->snap[i].inside && ref < t->nins; ref++) {
			if (*lj_label_of(t, ref) > t->snap[i].step)
				break;
			*lj_label_of(t, ref) = t->snap[i].step;
			if (lj_ins_at(t, ref)->t & LJ_IRT_GUARD)
				break;
		}
	r = lj_trace_match_gaps(t);
	if (r)
		return r;
	lj_trace_fill_recorded(t);
	return t->loopref ? lj_trace_label_loop(t, l->mem) : 0;
}

void lj_sim_free(struct sim **lp)
{
	if (!*lp)
		return;
	free((*lp)->claimed);
	free((*lp)->stores);
	free((*lp)->newrefs);
	free((*lp)->saved);
	free(*lp);
	*lp = NULL;
}

int lj_sim_new(struct lj_trace *t, const struct lb_mem *mem, struct sim **out)
{
	struct sim *l __cleanup(lj_sim_free) = calloc(1, sizeof(*l));
	uint32_t ref;

	t->label = calloc(t->nins - LJ_REF_BIAS, sizeof(*t->label));
	if (!l || !t->label)
		return -ENOMEM;
	l->claimed = calloc(t->nins - LJ_REF_BIAS, sizeof(*l->claimed));
	l->maxstores = t->nins - LJ_REF_BIAS; /* eliminated stores left a NOP */
	l->stores = calloc(l->maxstores, sizeof(*l->stores));
	l->newrefs = calloc(t->nins - LJ_REF_BIAS, sizeof(*l->newrefs));
	if (!l->claimed || !l->stores || !l->newrefs)
		return -ENOMEM;
	for (ref = LJ_REF_BIAS + 1; ref < t->nins; ref++)
		if (lj_ins_at(t, ref)->o == LJ_IR_NEWREF)
			l->newrefs[l->nnewrefs++] = ref;
	l->t = t;
	l->mem = mem;
	*out = TAKE_PTR(l);
	return 0;
}
