// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which bytecode each instruction of the intermediate code was recorded for. The recorder emits it
 * in the order of the bytecode, so one that is certain bounds all others: these are found by going
 * the way with references for values. A slot's value is known where an instruction was
 * found that has the operation and the operands that the bytecode asks for; a value that nothing
 * tells is known from the instruction that uses it, or from the next snapshot, which has all live
 * slots.
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

/* What a product by 2 becomes. */
static bool is_doubled(const struct lj_trace *t, const struct lj_ins *ir, op_set unused)
{
	(void)t;
	(void)unused;
	return ir->o == LJ_IR_ADD && ir->op1 == ir->op2;
}

/*
 * An integer and a number, where the trace has their sum from another addition to what the integer
 * is a sum of (reassoc_intarith_k in lj_opt_fold.c). 0: it does not.
 */
static uint32_t find_sum(struct sim *l, const struct value *b, double c)
{
	const struct lj_trace *t = l->t;
	uint32_t of = b->kind == VAL_REF && lj_value_type(l, b) == LJ_IRT_INT ? b->ref : 0, ref;
	struct lj_sum sum;

	if (!lj_ref_ok(t, of) || of <= LJ_REF_BIAS)
		return 0;
	sum = lj_value_sum(t, of);
	sum.ofs += c;
	if (!sum.ofs)
		return sum.base > LJ_REF_BIAS && lj_ref_ok(t, sum.base) ? sum.base : 0;
	l->visits += SUM_VISITS * (l->hi - LJ_REF_BIAS);
	for (ref = LJ_REF_BIAS + 1; ref < l->hi; ref++) {
		struct lj_sum is;

		if (lj_ins_at(t, ref)->o != LJ_IR_ADD)
			continue;
		is = lj_value_sum(t, ref);
		if (is.base == sum.base && is.ofs == sum.ofs) {
			lj_claim_ref(l, ref);
			return ref;
		}
	}
	return 0;
}

/*
 * Arithmetic is done with numbers, or with integers that are checked for overflow. Integers that
 * are not are what an index, or an operand of bit operations, is made of where it is used
 * (lj_opt_narrow.c); and those of 64 bits, where there is no cdata.
 */
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

/* A constant is added, or subtracted: or its opposite the other way round. */
static uint32_t find_constant_sum(struct sim *l, wanted_fn wanted, struct value *b, struct value *c,
				  bool subtracts)
{
	struct value negative = lj_value_number(-c->num);
	uint32_t ref = lj_value_find(l, wanted, sums[subtracts], b, c);

	return ref ? ref : lj_value_find(l, wanted, sums[!subtracts], b, &negative);
}

/* The sum or the product, as far as the trace has it. */
static uint32_t find_arith(struct sim *l, wanted_fn wanted, struct value *b, struct value *c,
			   uint32_t which)
{
	uint32_t ref = 0;

	if (which < 2 && c->kind == VAL_NUM)
		return find_constant_sum(l, wanted, b, c, which);
	if (which < 2)
		ref = lj_value_find(l, wanted, sums[which], b, c);
	return ref ? ref : lj_value_find(l, wanted, lj_trace_arith[which], b, c);
}

/* What will be used of it, where only what was made of it by narrowing is left. That belongs to its
 * use. */
static uint32_t find_narrowed(struct sim *l, struct value *b, struct value *c, uint32_t which)
{
	uint32_t ref = 0;

	l->peeks = true;
	if (which < 2 && b->kind != VAL_UNKNOWN && c->kind != VAL_UNKNOWN)
		ref = find_arith(l, lj_step_is, b, c, which);
	if (!ref && which < 2 && c->kind == VAL_NUM)
		ref = find_sum(l, b, which ? -c->num : c->num);
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

/* A sum that the trace does not have: an element's address may be made of it. */
static void forget_sum(struct sim *l, struct value *dst, const struct value *b,
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

/* The instruction of this operation that has a reference for an operand; 0: none. */
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

/* a - floor(a/b)*b, from a/b on, which may be there for the second time. 0: it is just that. */
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
	uint32_t ref;

	if (b->kind == VAL_NUM && c->kind == VAL_NUM) {
		l->t->history[l->step].folded = true;
		*dst = (struct value){
			.kind = VAL_NUM, .num = folded(which, b->num, c->num), .by = -1};
		return;
	}
	l->divides = which >= 3;
	ref = find_arith(l, numbers ? is_number_arith : is_arith, b, c, which);
	l->divides = false;
	if (!ref)
		ref = find_narrowed(l, b, c, which);
	if (!ref && which == 2 && constant->kind == VAL_NUM && constant->num == 2) {
		ref = lj_value_find(l, is_doubled, 0, NULL, NULL);
		if (ref)
			lj_bind_ref(l, b->kind == VAL_NUM ? c : b, lj_ins_at(l->t, ref)->op1);
	}
	if (!ref && which == 4 && c->kind == VAL_NUM) { /* by a power of 2 */
		struct value mask = lj_value_number(c->num - 1);

		ref = lj_value_find(l, lj_step_is, OPS(BAND), b, &mask);
	}
	if (!ref && !which && constant->kind == VAL_NUM &&
	    constant->num == 0) { /* an integer is itself then */
		l->t->history[l->step].folded = true;
		*dst = b->kind == VAL_NUM ? *c : *b;
		return;
	}
	if (!ref && which == 4 && c->kind == VAL_NUM && c->num == 1 &&
	    lj_value_type(l, b) == LJ_IRT_INT) { /* nothing is left of an integer */
		l->t->history[l->step].folded = true;
		*dst = lj_value_number(0);
		return;
	}
	if (!ref) {
		forget_sum(l, dst, b, c, which, numbers || (!cdata && !l->cdata));
		return;
	}
	if (which == 4 &&
	    (lj_ins_at(l->t, ref)->o == LJ_IR_DIV || lj_ins_at(l->t, ref)->o == LJ_IR_MUL))
		ref = remainder_of(l, ref);
	lj_step_result(l, dst, ref);
}

/* The length of a string that is a constant is one, too. */
static bool constant_length(const struct sim *l, const struct value *v, struct value *out)
{
	uint32_t len;

	if (v->kind != VAL_OBJ || v->type != LJ_IRT_STR ||
	    mem_read(l->mem, &len, sizeof(len), v->obj + LJ_STR_LEN))
		return false;
	*out = lj_value_number(len);
	return true;
}

/* An array's length, near where something was stored: what is not stored yet does not count. */
static bool is_length(const struct lj_trace *t, const struct lj_ins *ir, op_set set)
{
	return lj_step_is(t, ir, set) && !(ir->o == LJ_IR_ALEN && ir->op2 > LJ_REF_BIAS &&
					   lj_ref_ok(t, ir->op2) && *lj_label_of(t, ir->op2) < 0);
}

static void step_length(struct sim *l, struct value *dst, struct value *of)
{
	if (constant_length(l, of, dst))
		l->t->history[l->step].folded = true;
	else
		lj_step_result(
			l, dst,
			lj_value_find(l, is_length, OPS(ALEN) | OPS(FLOAD) | CALLS, of, NULL));
}

/* Strings and numbers that are constants make a constant. */
static void step_concat(struct sim *l, const struct lj_tframe *f, uint32_t ins, struct value *dst)
{
	uint32_t i = lj_bc_b(ins);

	while (i <= lj_bc_c(ins) && lj_value_is_known(lj_value_slot(l, f, i)))
		i++;
	if (i > lj_bc_c(ins)) {
		l->t->history[l->step].folded = true;
		*dst = lj_value_object(0, LJ_IRT_STR);
	} else {
		lj_step_result(l, dst, lj_step_buffer(l, lj_value_slot(l, f, lj_bc_c(ins))));
	}
}

/* The type of a value tells whether it is true. */
static void step_not(struct sim *l, struct value *dst, const struct value *of)
{
	uint8_t type = lj_value_type(l, of);

	if (!lj_value_tells_truth(type))
		lj_set_unknown(l, dst);
	else
		*dst = lj_value_object(
			0, type == LJ_IRT_NIL || type == LJ_IRT_FALSE ? LJ_IRT_TRUE : LJ_IRT_FALSE);
}

/* Constants, copies, arithmetic: what takes slots and makes one. False: none of these. */
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
		lj_step_result(l, va,
			       lj_value_find(l, lj_step_is,
					     OPS(NEG) | OPS(BXOR) | OPS(SUB) | OPS(SUBOV), vd,
					     NULL));
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
		lj_step_result(l, va,
			       lj_value_find(l, lj_step_is,
					     OPS(POW) | OPS(MUL) | OPS(FPMATH) | CALLS, vb, NULL));
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

/* Two objects that are not one may be equal by their metatables: these are looked at behind the
 * guard that they are two (rec_mm_equal). */
static void step_equality(struct sim *l, struct value *a, struct value *b)
{
	uint8_t type = lj_value_type(l, a);

	if ((type != LJ_IRT_TAB && type != LJ_IRT_UDATA) || lj_value_type(l, b) != type)
		return;
	lj_value_find(l, lj_step_is, OPS(EQ) | OPS(NE), a, b);
	lj_step_metatable(l, lj_value_ref(l, a));
}

/* A comparison of what is known needs no guard. */
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
	if (*lj_bc_mm(ins) == '_')
		lj_step_metamethod(l, f, ins);
	if (l->enters && lj_bc_is_sum(ins))
		return; /* the metamethod makes its value */
	if (!step_value(l, f, ins) && !lj_step_place(l, f, ins))
		lj_step_control(l, f, ins);
}

/* What a slot holds by a snapshot: numbers and strings that are constant are known as the
 * bytecode's are. */
static struct value snapshot_value(const struct sim *l, uint32_t ref)
{
	struct value v = {};

	if (lj_value_constant(l->t, ref, &v))
		return v;
	lj_value_set(&v, ref);
	return v;
}

#define LINKS (LJ_SNAP_FRAME | LJ_SNAP_CONT)

/* A link, or the function of a continuation, which lies below a link of its own: no value. */
static bool is_link(const struct lj_tsnap *s, uint32_t i)
{
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

		if (slot >= l->top || is_link(s, i))
			continue;
		v = &l->slot[slot];
		if (v->kind == VAL_NUM && lj_value_constant(l->t, ref, &c) && c.kind == VAL_NUM &&
		    c.num != v->num && c.num == c.num)
			return true;
	}
	return false;
}

/* All that is live is in a snapshot. */
void lj_label_snapshot(struct sim *l, const struct lj_tsnap *s)
{
	uint32_t i;

	for (i = 0; i < s->nent; i++) {
		uint32_t slot = s->map[i] >> 24, ref = s->map[i] & 0xffff;

		if (slot >= SLOTS || is_link(s, i) || !lj_ref_ok(l->t, ref))
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
	lj_value_range(l, l->step, &l->lo, &l->hi);
	step_one(l);
}

/* Of a loop whose index, end and step are slots from `slot` on. */
static bool is_of_entry(const struct lj_trace *t, uint32_t ref, uint32_t slot)
{
	const struct lj_ins *ir = lj_ins_at(t, ref);

	if (ir->o == LJ_IR_SLOAD)
		return ir->op1 >= slot && ir->op1 <= slot + 2;
	if (ir->o == LJ_IR_ADDOV)
		return ref + 1 < t->nins && lj_ins_at(t, ref + 1)->o == LJ_IR_USE;
	return ir->o == LJ_IR_USE || ir->o <= LJ_IR_GT;
}

/*
 * A trace that begins at a loop's end begins with that: whether the loop's numbers are as they were
 * (rec_for_loop), before the first instruction of its body; and whether its end and a step that is
 * no constant make a sum that is an integer (rec_for_check).
 */
static void label_entry(struct lj_trace *t)
{
	const struct lj_tframe *f = &t->frames[t->history[0].frame];
	uint32_t ins = lj_step_ins(t, 0), slot = (uint32_t)f->slot + 2 + lj_bc_a(ins), ref;

	for (ref = LJ_REF_BIAS + 1; ref < lj_recorded_end(t) && is_of_entry(t, ref, slot); ref++)
		*lj_label_of(t, ref) = 0;
}

void lj_sim_begin(struct sim *l)
{
	struct lj_trace *t = l->t;
	uint32_t i;

	for (i = 0; i < t->nins - LJ_REF_BIAS; i++)
		t->label[i] = -1;
	lj_value_unset(l);
	l->top = l->nsettled = l->nstores = l->met = 0;
	l->nsaved = 0;
	l->astray = false;
	l->multres = -1;
	l->retf = LJ_REF_BIAS;
	l->visits = 0;
	l->cur = LJ_REF_BIAS + 1;
	l->done = t->nhistory;
	if (t->nhistory)
		label_entry(t);
}

static bool converts_integer(const struct lj_ins *ir)
{
	return ir->o == LJ_IR_CONV && ir->op2 == (LJ_IRT_NUM << 5 | LJ_IRT_INT);
}

/*
 * Where a trace goes on as another, integers are made numbers (canonicalize_slots): by what ends
 * it, which is a loop's instruction, or the one that the last snapshot stands before.
 */
static void label_end(struct lj_trace *t)
{
	const struct lj_tsnap *last = &t->snap[t->nsnap - 1];
	uint32_t i = t->nhistory - 1, pc, ref;
	uint8_t op = lj_bc_op(lj_step_ins(t, i));
	bool loops = op >= LJ_BC_FORI && op < LJ_BC_JMP;

	if (!loops && last->frame >= 0 && lj_trace_code(t, last->pc, &pc) >= 0)
		t->history[++i] = (struct bc_event){.pc = pc, .frame = (uint32_t)last->frame};
	for (ref = last->ref; ref-- > LJ_REF_BIAS + 1 && converts_integer(lj_ins_at(t, ref));)
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

	/* from a guarded branch's snapshot to the guard: the branch's own; one whose bounds are
	 * constant has no guard */
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
	return t->loopref ? lj_trace_label_loop(t) : 0;
}

void lj_sim_free(struct sim **lp)
{
	if (!*lp)
		return;
	free((*lp)->settled);
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
	l->settled = calloc(t->nins - LJ_REF_BIAS, sizeof(*l->settled));
	l->maxstores = t->nins - LJ_REF_BIAS; /* those that are gone left a NOP */
	l->stores = calloc(l->maxstores, sizeof(*l->stores));
	l->newrefs = calloc(t->nins - LJ_REF_BIAS, sizeof(*l->newrefs));
	if (!l->settled || !l->stores || !l->newrefs)
		return -ENOMEM;
	for (ref = LJ_REF_BIAS + 1; ref < t->nins; ref++)
		if (lj_ins_at(t, ref)->o == LJ_IR_NEWREF)
			l->newrefs[l->nnewrefs++] = ref;
	l->t = t;
	l->mem = mem;
	*out = TAKE_PTR(l);
	return 0;
}
