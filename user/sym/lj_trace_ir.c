// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which bytecode each instruction of the intermediate code was recorded for. The recorder emits it
 * in the order of the bytecode, so one that is certain bounds all others: these are found by going
 * the way once more with references for values. A slot's value is known where an instruction was
 * found that has the operation and the operands that the bytecode asks for; a value that nothing
 * tells is known from the instruction that uses it, or from the next snapshot, which has all live
 * slots.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sym/lj_trace_value.h"
#include "vm/lj_bc.h"

static bool is_one_of(const struct lj_trace *t, const struct lj_ins *ir, op_set set)
{
	(void)t;
	return ir->o < LJ_IR__MAX && set >> ir->o & 1;
}

static bool is_keyed(const struct lj_trace *t, const struct lj_ins *ir, op_set gcstr)
{
	return (ir->o == LJ_IR_HREFK || ir->o == LJ_IR_HREF || ir->o == LJ_IR_NEWREF) &&
	       lj_trace_key(t, ir) == gcstr;
}

/* Upvalue number `what`. */
static bool is_upvalue(const struct lj_trace *t, const struct lj_ins *ir, op_set what)
{
	(void)t;
	return (ir->o == LJ_IR_UREFO || ir->o == LJ_IR_UREFC) && ir->op2 >> 8 == what;
}

/* What goes through reference `ref`: a load or a store. */
static uint32_t find_through(struct labels *l, op_set ops, uint32_t ref, struct value *stored)
{
	struct value through = {.kind = VALUE_REF, .ref = ref, .by = -1};

	return lj_value_find(l, is_one_of, ops, &through, stored);
}

/* What a product by 2 becomes. */
static bool is_doubled(const struct lj_trace *t, const struct lj_ins *ir, op_set unused)
{
	(void)t;
	(void)unused;
	return ir->o == LJ_IR_ADD && ir->op1 == ir->op2;
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

static void step_arith(struct labels *l, struct value *dst, struct value *b, struct value *c,
		       uint32_t which)
{
	uint32_t ref, r;

	if (b->kind == VALUE_NUM && c->kind == VALUE_NUM) {
		l->t->steps[l->step].folded = true;
		*dst = (struct value){
			.kind = VALUE_NUM, .num = folded(which, b->num, c->num), .by = -1};
		return;
	}
	l->divides = which == 3;
	ref = lj_value_find(l, is_one_of, lj_trace_arith[which], b, c);
	l->divides = false;
	if (!ref && which == 2 && (b->kind == VALUE_NUM ? b : c)->num == 2) {
		ref = lj_value_find(l, is_doubled, 0, NULL, NULL);
		if (ref)
			lj_value_learn(l, b->kind == VALUE_NUM ? c : b, lj_ins_at(l->t, ref)->op1);
	}
	if (!ref) {
		lj_value_forget(l, dst);
		return;
	}
	/* a - floor(a/b)*b */
	if (which == 4 && lj_ins_at(l->t, ref)->o != LJ_IR_BAND && ref >= l->lo && ref < l->hi)
		for (r = ref + 1; r < l->hi && r < ref + 4; r++)
			if (lj_ins_at(l->t, r)->o == LJ_IR_SUB) {
				lj_value_settle(l, r);
				ref = r;
				break;
			}
	lj_value_set(dst, ref);
}

/* A guard that a function is this one. */
static bool is_guard_for(const struct lj_trace *t, const struct lj_ins *ir, op_set func)
{
	return ir->o == LJ_IR_EQ && lj_trace_const(t, ir->op2) == func;
}

/* The frame of the Lua function that the step in hand enters; NULL: none. */
static const struct lj_tframe *entered(struct labels *l)
{
	const struct lj_trace *t = l->t;
	const struct lj_step *next = &t->steps[l->step + 1];

	if (!lj_step_enters(t, (uint32_t)l->step))
		return NULL;
	if (t->frames[next->frame].func)
		lj_value_find(l, is_guard_for, t->frames[next->frame].func, NULL, NULL);
	return &t->frames[next->frame];
}

/* A metamethod's arguments are the operands. */
static void step_metamethod(struct labels *l, const struct lj_tframe *f, uint32_t ins)
{
	const struct lj_tframe *to = entered(l);

	if (!to)
		return;
	*lj_value_slot(l, to, 0) = *lj_value_slot(l, f, lj_bc_b(ins));
	*lj_value_slot(l, to, 1) = *lj_value_slot(l, f, lj_bc_c(ins));
}

/* Results go to where the caller's instruction wants them. */
static void step_return(struct labels *l, const struct lj_tframe *f, uint32_t ins)
{
	struct lj_trace *t = l->t;
	uint8_t op = lj_bc_op(ins);
	uint32_t n = op == LJ_BC_RET0 ? 0 : lj_bc_d(ins) - 1, i, call, a, wanted;
	const struct lj_tframe *to;

	lj_value_find(l, is_one_of, OPS(RETF), NULL, NULL);
	if (l->step + 1 >= (int32_t)t->nsteps)
		return;
	to = &t->frames[t->steps[l->step + 1].frame];
	if (f->parent < 0 || &t->frames[f->parent] != to)
		return;
	call = t->codes[to->code].bc[f->callpc];
	a = lj_bc_a(call);
	wanted = lj_bc_is_call(call) ? lj_bc_b(call) : lj_bc_mode_a(call) == LJ_BCM_DST ? 2 : 0;
	for (i = 0; i < 8 && i + 1 < wanted; i++) {
		if (i < n && op != LJ_BC_RETM)
			*lj_value_slot(l, to, a + i) = *lj_value_slot(l, f, lj_bc_a(ins) + i);
		else
			lj_value_forget(l, lj_value_slot(l, to, a + i));
	}
}

static uint64_t string_of(const struct lj_trace *t, int32_t step, uint32_t i)
{
	const struct lj_code *c = lj_code_of(t, step);

	return i < c->nkgc ? c->kgc[i] : 0;
}

static double number_of(const struct lj_trace *t, int32_t step, uint32_t i)
{
	const struct lj_code *c = lj_code_of(t, step);

	return i < c->nkn ? c->kn[i] : 0;
}

/* A call of a function that is not Lua's: one instruction, often, with the first argument for
 * operand. */
static void step_builtin(struct labels *l, const struct lj_tframe *f, uint32_t ins)
{
	uint32_t a = lj_bc_a(ins), i, ref = 0;
	struct value *arg = lj_value_slot(l, f, a + 2);

	if (lj_bc_op(ins) != LJ_BC_ITERC && lj_bc_op(ins) != LJ_BC_ITERN && lj_bc_c(ins) > 1 &&
	    arg->kind != VALUE_NONE)
		ref = lj_value_find(l, is_one_of, BUILTIN, arg, NULL);
	for (i = 0; i < 8 && i + 1 < lj_bc_b(ins); i++)
		lj_value_forget(l, lj_value_slot(l, f, a + i));
	if (ref && lj_bc_b(ins) == 2)
		lj_value_set(lj_value_slot(l, f, a), ref);
}

/* A guard that the function at the trace's base is the one that it was recorded for. */
static bool is_own_guard(const struct lj_trace *t, const struct lj_ins *ir, op_set unused)
{
	(void)unused;
	return ir->o == LJ_IR_EQ && lj_ref_ok(t, ir->op1) &&
	       lj_ins_at(t, ir->op1)->o == LJ_IR_SLOAD && !lj_ins_at(t, ir->op1)->op1;
}

static bool is_load_of(const struct lj_trace *t, const struct lj_ins *ir, op_set slot)
{
	(void)t;
	return ir->o == LJ_IR_SLOAD && ir->op1 == slot;
}

/* A slot is loaded when it is used first. */
static void load_slot(struct labels *l, struct value *v)
{
	uint32_t ref =
		v->kind == VALUE_UNSET ? lj_value_find(l, is_load_of, v->ref, NULL, NULL) : 0;

	if (ref)
		lj_value_set(v, ref);
}

/* What a call takes, its function among it. */
static void load_arguments(struct labels *l, const struct lj_tframe *f, uint32_t ins)
{
	uint32_t a = lj_bc_a(ins), n = lj_bc_c(ins), i;

	if (lj_bc_op(ins) == LJ_BC_ITERC || lj_bc_op(ins) == LJ_BC_ITERN) {
		for (i = 3; i && a >= 3; i--)
			load_slot(l, lj_value_slot(l, f, a - i));
		return;
	}
	load_slot(l, lj_value_slot(l, f, a));
	for (i = 0; i + 1 < n && i < 16; i++)
		load_slot(l, lj_value_slot(l, f, a + 2 + i));
}

/* The step's result is ref, when there is one. */
static void result(struct labels *l, struct value *v, uint32_t ref)
{
	if (ref)
		lj_value_set(v, ref);
	else
		lj_value_forget(l, v);
}

static struct value number(double num)
{
	return (struct value){.kind = VALUE_NUM, .num = num, .by = -1};
}

/* Constants, copies, arithmetic: what takes slots and makes one. False: none of these. */
static bool step_value(struct labels *l, const struct lj_tframe *f, uint32_t ins)
{
	struct value *va = lj_value_slot(l, f, lj_bc_a(ins)),
		     *vd = lj_value_slot(l, f, lj_bc_d(ins));
	struct value *vb = lj_value_slot(l, f, lj_bc_b(ins)),
		     *vc = lj_value_slot(l, f, lj_bc_c(ins));
	struct value num = number(number_of(l->t, l->step, lj_bc_c(ins)));
	uint8_t op = lj_bc_op(ins);

	switch (op) {
	case LJ_BC_MOV:
		load_slot(l, vd);
		*va = *vd;
		return true;
	case LJ_BC_ISTC:
	case LJ_BC_ISFC:
		*va = *vd;
		return true;
	case LJ_BC_KSHORT:
		*va = number((int16_t)lj_bc_d(ins));
		return true;
	case LJ_BC_KNUM:
		*va = number(number_of(l->t, l->step, lj_bc_d(ins)));
		return true;
	case LJ_BC_UNM:
		result(l, va,
		       lj_value_find(l, is_one_of, OPS(NEG) | OPS(BXOR) | OPS(SUB) | OPS(SUBOV), vd,
				     NULL));
		return true;
	case LJ_BC_LEN:
		result(l, va,
		       lj_value_find(l, is_one_of, OPS(ALEN) | OPS(FLOAD) | CALLS, vd, NULL));
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
		result(l, va,
		       lj_value_find(l, is_one_of, OPS(POW) | OPS(MUL) | OPS(FPMATH) | CALLS, vb,
				     NULL));
		return true;
	case LJ_BC_TNEW:
	case LJ_BC_TDUP:
		result(l, va, lj_value_find(l, is_one_of, OPS(TNEW) | OPS(TDUP), NULL, NULL));
		return true;
	default:
		return false;
	}
}

/* Upvalues and tables. False: neither. */
static bool step_place(struct labels *l, const struct lj_tframe *f, uint32_t ins)
{
	struct value *va = lj_value_slot(l, f, lj_bc_a(ins)),
		     *vb = lj_value_slot(l, f, lj_bc_b(ins));
	struct value *vc = lj_value_slot(l, f, lj_bc_c(ins)), byte = number(lj_bc_c(ins));
	uint64_t global = string_of(l->t, l->step, lj_bc_d(ins));
	uint8_t op = lj_bc_op(ins);
	bool load = op == LJ_BC_UGET || !strcmp(lj_bc_mm(ins), "__index");
	uint32_t ref;

	switch (op) {
	case LJ_BC_UGET:
		lj_value_find(l, is_own_guard, 0, NULL, NULL);
		ref = lj_value_find(l, is_upvalue, lj_bc_d(ins), NULL, NULL);
		break;
	case LJ_BC_USETV:
		ref = lj_value_find(l, is_upvalue, lj_bc_a(ins), NULL, NULL);
		va = lj_value_slot(l, f, lj_bc_d(ins));
		break;
	case LJ_BC_GGET:
	case LJ_BC_GSET:
		ref = lj_value_find(l, is_keyed, global, NULL, NULL);
		break;
	case LJ_BC_TGETS:
	case LJ_BC_TSETS:
		l->keyed = true;
		ref = lj_value_find(l, is_keyed, string_of(l->t, l->step, lj_bc_c(ins)), vb, NULL);
		l->keyed = false;
		break;
	case LJ_BC_TGETB:
	case LJ_BC_TSETB:
		ref = lj_value_find(l, is_one_of, OPS(AREF) | OPS(HREF), vb, &byte);
		break;
	case LJ_BC_TGETV:
	case LJ_BC_TSETV:
	case LJ_BC_TGETR:
	case LJ_BC_TSETR:
		ref = lj_value_find(l, is_one_of, OPS(AREF) | OPS(HREF) | OPS(HREFK), vb, vc);
		if (!ref) /* an element of an array that is no table (FFI) */
			lj_value_find(l, is_one_of, OPS(MUL) | OPS(BSHL) | OPS(ADD), vc, NULL);
		break;
	default:
		return false;
	}
	if (load)
		result(l, va, ref ? find_through(l, LOADS, ref, NULL) : 0);
	else if (!ref || !find_through(l, STORES, ref, va))
		lj_value_find(l, is_one_of, STORES, NULL, va);
	return true;
}

/* Loops, calls, returns; and what else writes slots. */
static void step_control(struct labels *l, const struct lj_tframe *f, uint32_t ins)
{
	uint32_t a = lj_bc_a(ins);
	struct value *va = lj_value_slot(l, f, a);

	switch (lj_bc_op(ins)) {
	case LJ_BC_FORI:
	case LJ_BC_JFORI:
		*lj_value_slot(l, f, a + 3) = *va;
		break;
	case LJ_BC_FORL:
	case LJ_BC_IFORL: /* the index grows */
		result(l, va, lj_value_find(l, is_one_of, OPS(ADD) | OPS(ADDOV), va, NULL));
		*lj_value_slot(l, f, a + 3) = *va;
		break;
	case LJ_BC_RET:
	case LJ_BC_RET1:
	case LJ_BC_RET0:
	case LJ_BC_RETM:
		step_return(l, f, ins);
		break;
	case LJ_BC_CALLT:
	case LJ_BC_CALLMT:
		entered(l);
		break;
	case LJ_BC_CALL:
	case LJ_BC_CALLM:
	case LJ_BC_ITERC:
	case LJ_BC_ITERN:
		load_arguments(l, f, ins);
		if (entered(l))
			break; /* into a Lua function: it finds its arguments where they are */
		if (va->kind != VALUE_NONE) /* the trace is specialized to the function */
			lj_value_find(l, is_one_of, OPS(EQ), va, NULL);
		step_builtin(l, f, ins);
		break;
	default:
		if (lj_bc_mode_a(ins) != LJ_BCM_OTHER)
			lj_value_forget(l, va);
	}
}

static void step_one(struct labels *l)
{
	const struct lj_trace *t = l->t;
	const struct lj_tframe *f = &t->frames[t->steps[l->step].frame];
	uint32_t ins = lj_step_ins(t, (uint32_t)l->step);

	if (*lj_bc_mm(ins) == '_')
		step_metamethod(l, f, ins);
	if (!step_value(l, f, ins) && !step_place(l, f, ins))
		step_control(l, f, ins);
}

/* All that is live is in a snapshot. */
static void meet_snapshot(struct labels *l, const struct lj_tsnap *s)
{
	uint32_t i;

	for (i = 0; i < s->nent; i++) {
		uint32_t slot = s->map[i] >> 24, ref = s->map[i] & 0xffff;

		if (slot >= SLOTS || (s->map[i] & LJ_SNAP_FRAME) || !lj_ref_ok(l->t, ref))
			continue;
		if (ref > LJ_REF_BIAS)
			lj_value_learn(l, &l->slot[slot], ref);
		lj_value_set(&l->slot[slot], ref);
	}
}

static void label_recorded(struct labels *l)
{
	struct lj_trace *t = l->t;
	uint32_t k = 0, i, r;

	for (l->step = t->snap[0].step; l->step < (int32_t)t->nsteps; l->step++) {
		while (k < t->npre && t->snap[k].step <= l->step) {
			if (!t->snap[k].inside)
				meet_snapshot(l, &t->snap[k]);
			k++;
		}
		lj_value_range(t, l->step, &l->lo, &l->hi);
		step_one(l);
	}
	for (; k < t->npre; k++)
		if (!t->snap[k].inside)
			meet_snapshot(l, &t->snap[k]);
	/* from a guarded branch's snapshot to the guard: the branch's own */
	for (i = 0; i < t->npre; i++)
		for (r = t->snap[i].ref; t->snap[i].inside && r < t->nins; r++) {
			*lj_label_of(t, r) = t->snap[i].step;
			if (lj_ins_at(t, r)->t & LJ_IRT_GUARD)
				break;
		}
}

/*
 * A trace that begins at a loop's end begins with that: whether the loop's numbers are as they were
 * (rec_for_loop), before the first instruction of its body.
 */
static void label_entry(struct lj_trace *t)
{
	uint32_t end = lj_recorded_end(t), ins, ref, slot;
	const struct lj_tframe *f;

	if (!t->nsteps || !t->snap[0].step) /* it begins with what its first snapshot says */
		return;
	f = &t->frames[t->steps[0].frame];
	ins = lj_step_ins(t, 0);
	slot = (uint32_t)f->slot + 2 + lj_bc_a(ins);
	for (ref = LJ_REF_BIAS + 1; ref < end; ref++) {
		const struct lj_ins *ir = lj_ins_at(t, ref);

		if (ir->o == LJ_IR_SLOAD ? ir->op1 < slot || ir->op1 > slot + 2
					 : ir->o > LJ_IR_GT || ir->op1 >= ref)
			break;
		*lj_label_of(t, ref) = 0;
	}
}

int lj_trace_label(struct lj_trace *t)
{
	struct labels *l __cleanup(cleanup_free) = calloc(1, sizeof(*l));
	uint32_t i;
	int r;

	t->label = calloc(t->nins - LJ_REF_BIAS, sizeof(*t->label));
	if (!l || !t->label)
		return -ENOMEM;
	for (i = 0; i < t->nins - LJ_REF_BIAS; i++)
		t->label[i] = -1;
	l->t = t;
	l->cur = LJ_REF_BIAS + 1;
	for (i = 0; i < SLOTS; i++)
		l->slot[i] = (struct value){.kind = VALUE_UNSET, .ref = i, .by = -1};
	label_entry(t);
	label_recorded(l);
	r = lj_trace_match_gaps(t);
	if (r)
		return r;
	lj_trace_fill_recorded(t);
	return t->loopref ? lj_trace_label_loop(t) : 0;
}
