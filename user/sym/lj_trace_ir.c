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
#include "sym/lj_trace_priv.h"
#include "vm/lj_bc.h"

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
	bool keyed;		/* a string tells an access: its table need not be known */
};

static int32_t *label_of(struct lj_trace *t, uint32_t ref)
{
	return &t->label[ref - LJ_REF_BIAS];
}

static const struct lj_code *code_of(const struct lj_trace *t, int32_t step)
{
	return &t->codes[t->frames[t->steps[step].frame].code];
}

static struct value *slot_of(struct labels *l, const struct lj_tframe *f, uint32_t local)
{
	uint32_t i = (uint32_t)f->slot + 2 + local;

	if (f->slot >= 0 && i < SLOTS)
		return &l->slot[i];
	l->elsewhere = (struct value){.kind = VALUE_NONE, .by = -1};
	return &l->elsewhere;
}

/* A conversion of a value stands for it. */
static uint32_t unconverted(const struct lj_trace *t, uint32_t ref)
{
	while (ref > LJ_REF_BIAS && ref < t->nins &&
	       (lj_ins_at(t, ref)->o == LJ_IR_CONV || lj_ins_at(t, ref)->o == LJ_IR_TOBIT))
		ref = lj_ins_at(t, ref)->op1;
	return ref;
}

static bool constant_is(const struct lj_trace *t, uint32_t ref, double num)
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
	return d == num || d == -num || d * num == 1.0;
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
		return constant_is(l->t, ref, v->num) ? MATCH_YES : MATCH_NO;
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

/* References that step made lie in [*lo, *hi): those between the snapshots before and after it. */
static void range_of(const struct lj_trace *t, int32_t step, uint32_t *lo, uint32_t *hi)
{
	uint32_t i;

	*lo = LJ_REF_BIAS + 1;
	*hi = t->loopref ? t->loopref : t->nins;
	for (i = 0; i < t->npre; i++) {
		const struct lj_tsnap *s = &t->snap[i];

		/* one that stands in a step: what it guards is that step's */
		if (s->step < step + !s->inside && s->ref > *lo)
			*lo = s->ref;
		if (s->step > step && s->ref < *hi)
			*hi = s->ref;
	}
}

/* Value v turns out to be reference ref: what made it made that. */
static void learn(struct labels *l, struct value *v, uint32_t ref)
{
	uint32_t lo, hi;

	if (v->kind != VALUE_NONE)
		return;
	if (v->by >= 0) {
		uint32_t r = ref;

		range_of(l->t, v->by, &lo, &hi);
		for (;; r = lj_ins_at(l->t, r)->op1) {
			if (r >= lo && r < hi && *label_of(l->t, r) < 0)
				*label_of(l->t, r) = v->by;
			if (r == unconverted(l->t, r))
				break;
		}
	}
	v->kind = VALUE_REF;
	v->ref = ref;
}

/* Step in hand made ref. */
static void settle(struct labels *l, uint32_t ref)
{
	if (ref >= l->lo && ref < l->hi && *label_of(l->t, ref) < 0) {
		*label_of(l->t, ref) = l->step;
		if (ref >= l->cur)
			l->cur = ref + 1;
	}
}

static void set(struct value *v, uint32_t ref)
{
	*v = (struct value){.kind = VALUE_REF, .ref = ref, .by = -1};
}

static void forget(struct labels *l, struct value *v)
{
	*v = (struct value){.kind = VALUE_NONE, .by = l->step};
}

/* A set of operations; or what else is asked for. */
typedef unsigned __int128 op_set;
_Static_assert(LJ_IR__MAX <= 128, "a set of operations");

/* What an instruction works on: of a place in a table, the table. */
static uint32_t first_operand(const struct lj_trace *t, const struct lj_ins *ir)
{
	if ((ir->o == LJ_IR_HREFK || ir->o == LJ_IR_AREF) && lj_ref_ok(t, ir->op1) &&
	    lj_ins_at(t, ir->op1)->o == LJ_IR_FLOAD)
		return lj_ins_at(t, ir->op1)->op1;
	return ir->op1;
}

typedef bool (*wanted_fn)(const struct lj_trace *t, const struct lj_ins *ir, op_set what);

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
		learn(l, a, op1);
	if (b)
		learn(l, b, op2);
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

/*
 * The instruction that has one of two operands as asked: first what this step may have made, then
 * what was there before (a common subexpression). An operand that is NULL is not looked at. 0:
 * none.
 */
static uint32_t find(struct labels *l, wanted_fn wanted, op_set what, struct value *a,
		     struct value *b)
{
	struct lj_trace *t = l->t;
	uint32_t pass, ref;

	for (pass = 0; pass < 2; pass++) {
		uint32_t from = pass ? LJ_REF_BIAS + 1 : l->cur > l->lo ? l->cur : l->lo;
		uint32_t to = pass ? l->cur < l->hi ? l->cur : l->hi : l->hi;

		for (ref = from; ref < to; ref++) {
			const struct lj_ins *ir = lj_ins_at(t, ref);

			if (!wanted(t, ir, what) || (!pass && *label_of(t, ref) >= 0) ||
			    !has_operands(l, ir, a, b, pass))
				continue;
			settle(l, ref);
			return ref;
		}
	}
	return 0;
}

static bool is_one_of(const struct lj_trace *t, const struct lj_ins *ir, op_set set)
{
	(void)t;
	return ir->o < LJ_IR__MAX && set >> ir->o & 1;
}
#define OPS(op) ((op_set)1 << LJ_IR_##op)

static bool is_string(const struct lj_trace *t, uint32_t ref, uint64_t gcstr)
{
	if (lj_ref_ok(t, ref) && ref < LJ_REF_BIAS && lj_ins_at(t, ref)->o == LJ_IR_KSLOT)
		ref = lj_ins_at(t, ref)->op1;
	return lj_trace_const(t, ref) == gcstr;
}

static bool is_keyed(const struct lj_trace *t, const struct lj_ins *ir, op_set gcstr)
{
	return (ir->o == LJ_IR_HREFK || ir->o == LJ_IR_HREF || ir->o == LJ_IR_NEWREF) &&
	       is_string(t, ir->op2, gcstr);
}

/* Upvalue number `what`. */
static bool is_upvalue(const struct lj_trace *t, const struct lj_ins *ir, op_set what)
{
	(void)t;
	return (ir->o == LJ_IR_UREFO || ir->o == LJ_IR_UREFC) && ir->op2 >> 8 == what;
}

#define LOADS (OPS(ALOAD) | OPS(HLOAD) | OPS(ULOAD) | OPS(FLOAD) | OPS(XLOAD) | OPS(VLOAD))
#define STORES (OPS(ASTORE) | OPS(HSTORE) | OPS(USTORE) | OPS(FSTORE) | OPS(XSTORE))
#define CALLS (OPS(CALLN) | OPS(CALLA) | OPS(CALLL) | OPS(CALLS) | OPS(CALLXS))

/* What goes through reference `ref`: a load or a store. */
static uint32_t find_through(struct labels *l, op_set ops, uint32_t ref, struct value *stored)
{
	struct value through = {.kind = VALUE_REF, .ref = ref, .by = -1};

	return find(l, is_one_of, ops, &through, stored);
}

static const op_set arith_ops[] = {
	/* in the order of LJ_BC_ADDVN .. MODVN: what folding may make of each */
	OPS(ADD) | OPS(SUB) | OPS(ADDOV) | OPS(SUBOV),
	OPS(SUB) | OPS(ADD) | OPS(ADDOV) | OPS(SUBOV),
	OPS(MUL) | OPS(MULOV) | OPS(ADD) | OPS(BSHL),
	OPS(DIV) | OPS(MUL) | CALLS,
	OPS(MOD) | OPS(BAND) | CALLS | OPS(DIV) | OPS(MUL),
};

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
	ref = find(l, is_one_of, arith_ops[which], b, c);
	if (!ref && which == 2 && (b->kind == VALUE_NUM ? b : c)->num == 2) /* x + x */
		ref = find(l, is_one_of, OPS(ADD), b->kind == VALUE_NUM ? c : b,
			   b->kind == VALUE_NUM ? c : b);
	if (!ref) {
		forget(l, dst);
		return;
	}
	/* a - floor(a/b)*b */
	if (which == 4 && lj_ins_at(l->t, ref)->o != LJ_IR_BAND && ref >= l->lo && ref < l->hi)
		for (r = ref + 1; r < l->hi && r < ref + 4; r++)
			if (lj_ins_at(l->t, r)->o == LJ_IR_SUB) {
				settle(l, r);
				ref = r;
				break;
			}
	set(dst, ref);
}

static double num_of(const struct labels *l, uint32_t bcpos_ins)
{
	return (int16_t)lj_bc_d(bcpos_ins);
	(void)l;
}

/* A table access: the reference to the place, then the load or the store. Key: string constant,
 * number, or value. The place may be known from before, and so may what was loaded from there. */
static void step_access(struct labels *l, uint32_t place, struct value *key, struct value *dst,
			struct value *stored)
{
	uint32_t ref = place ? find_through(l, dst ? LOADS : STORES, place, stored) : 0;

	if (!place && key) { /* an element of an array that is no table (FFI) */
		ref = find(l, is_one_of, OPS(MUL) | OPS(BSHL) | OPS(ADD), key, NULL);
		if (ref)
			ref = 0;
	}
	if (!ref && stored)
		ref = find(l, is_one_of, STORES, NULL, stored);
	if (!dst)
		return;
	if (ref)
		set(dst, ref);
	else
		forget(l, dst);
}

/* A loop's own instruction: the index grows. */
static void step_forl(struct labels *l, const struct lj_tframe *f, uint32_t a)
{
	struct value *idx = slot_of(l, f, a);
	uint32_t ref = find(l, is_one_of, OPS(ADD) | OPS(ADDOV), idx, NULL);

	if (ref) {
		set(idx, ref);
		*slot_of(l, f, a + 3) = *idx;
	} else {
		forget(l, idx);
		forget(l, slot_of(l, f, a + 3));
	}
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

	if (l->step + 1 >= (int32_t)t->nsteps || next->pc || next->frame == t->steps[l->step].frame)
		return NULL;
	if (t->frames[next->frame].func)
		find(l, is_guard_for, t->frames[next->frame].func, NULL, NULL);
	return &t->frames[next->frame];
}

/* A metamethod's arguments are the operands. */
static void step_metamethod(struct labels *l, const struct lj_tframe *f, uint32_t ins)
{
	const struct lj_tframe *to = entered(l);

	if (!to)
		return;
	*slot_of(l, to, 0) = *slot_of(l, f, lj_bc_b(ins));
	*slot_of(l, to, 1) = *slot_of(l, f, lj_bc_c(ins));
}

/* Results go to where the caller's instruction wants them. */
static void step_return(struct labels *l, const struct lj_tframe *f, uint32_t ins)
{
	struct lj_trace *t = l->t;
	uint8_t op = lj_bc_op(ins);
	uint32_t n = op == LJ_BC_RET0 ? 0 : lj_bc_d(ins) - 1, i, call, a, wanted;
	const struct lj_tframe *to;

	find(l, is_one_of, OPS(RETF), NULL, NULL);
	if (l->step + 1 >= (int32_t)t->nsteps)
		return;
	to = &t->frames[t->steps[l->step + 1].frame];
	if (f->parent < 0 || &t->frames[f->parent] != to)
		return;
	call = t->codes[to->code].bc[f->callpc];
	a = lj_bc_a(call);
	wanted = !strcmp(lj_bc_mm(call), "call")    ? lj_bc_b(call)
		 : lj_bc_mode_a(call) == LJ_BCM_DST ? 2
						    : 0;
	for (i = 0; i < 8 && i + 1 < wanted; i++) {
		if (i < n && op != LJ_BC_RETM)
			*slot_of(l, to, a + i) = *slot_of(l, f, lj_bc_a(ins) + i);
		else
			forget(l, slot_of(l, to, a + i));
	}
}

static uint64_t string_of(const struct lj_trace *t, int32_t step, uint32_t i)
{
	const struct lj_code *c = code_of(t, step);

	return i < c->nkgc ? c->kgc[i] : 0;
}

static double number_of(const struct lj_trace *t, int32_t step, uint32_t i)
{
	const struct lj_code *c = code_of(t, step);

	return i < c->nkn ? c->kn[i] : 0;
}

/* What built-in functions become: of math, bit, string. */
#define BUILTIN                                                                                    \
	(CALLS | OPS(FPMATH) | OPS(ABS) | OPS(MIN) | OPS(MAX) | OPS(POW) | OPS(LDEXP) |            \
	 OPS(BNOT) | OPS(BSWAP) | OPS(BAND) | OPS(BOR) | OPS(BXOR) | OPS(BSHL) | OPS(BSHR) |       \
	 OPS(BSAR) | OPS(BROL) | OPS(BROR) | OPS(TOSTR) | OPS(STRTO) | OPS(SNEW) | OPS(STRREF))

/* A call of a function that is not Lua's: one instruction, often, with the first argument for
 * operand. */
static void step_builtin(struct labels *l, const struct lj_tframe *f, uint32_t ins)
{
	uint32_t a = lj_bc_a(ins), i, ref = 0;
	struct value *arg = slot_of(l, f, a + 2);

	if (lj_bc_op(ins) != LJ_BC_ITERC && lj_bc_op(ins) != LJ_BC_ITERN && lj_bc_c(ins) > 1 &&
	    arg->kind != VALUE_NONE)
		ref = find(l, is_one_of, BUILTIN, arg, NULL);
	for (i = 0; i < 8 && i + 1 < lj_bc_b(ins); i++)
		forget(l, slot_of(l, f, a + i));
	if (ref && lj_bc_b(ins) == 2)
		set(slot_of(l, f, a), ref);
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
	uint32_t ref = v->kind == VALUE_UNSET ? find(l, is_load_of, v->ref, NULL, NULL) : 0;

	if (ref)
		set(v, ref);
}

/* What a call takes, its function among it. */
static void load_arguments(struct labels *l, const struct lj_tframe *f, uint32_t ins)
{
	uint32_t a = lj_bc_a(ins), n = lj_bc_c(ins), i;

	if (lj_bc_op(ins) == LJ_BC_ITERC || lj_bc_op(ins) == LJ_BC_ITERN) {
		for (i = 3; i && a >= 3; i--)
			load_slot(l, slot_of(l, f, a - i));
		return;
	}
	load_slot(l, slot_of(l, f, a));
	for (i = 0; i + 1 < n && i < 16; i++)
		load_slot(l, slot_of(l, f, a + 2 + i));
}

static void step_one(struct labels *l)
{
	struct lj_trace *t = l->t;
	const struct lj_code *c = code_of(t, l->step);
	const struct lj_tframe *f = &t->frames[t->steps[l->step].frame];
	uint32_t ins = c->bc[t->steps[l->step].pc], a = lj_bc_a(ins), d = lj_bc_d(ins), ref, i;
	struct value *va = slot_of(l, f, a), key = {.by = -1};
	uint8_t op = lj_bc_op(ins);

	if (*lj_bc_mm(ins) == '_')
		step_metamethod(l, f, ins);
	switch (op) {
	case LJ_BC_MOV:
		load_slot(l, slot_of(l, f, d));
		*va = *slot_of(l, f, d);
		break;
	case LJ_BC_ISTC:
	case LJ_BC_ISFC:
		*va = *slot_of(l, f, d);
		break;
	case LJ_BC_UNM:
		ref = find(l, is_one_of, OPS(NEG) | OPS(BXOR) | OPS(SUB) | OPS(SUBOV),
			   slot_of(l, f, d), NULL);
		ref ? set(va, ref) : forget(l, va);
		break;
	case LJ_BC_LEN:
		ref = find(l, is_one_of, OPS(ALEN) | OPS(FLOAD) | CALLS, slot_of(l, f, d), NULL);
		ref ? set(va, ref) : forget(l, va);
		break;
	case LJ_BC_ADDVN ... LJ_BC_MODVN:
	case LJ_BC_ADDNV ... LJ_BC_MODNV:
		key = (struct value){
			.kind = VALUE_NUM, .num = number_of(t, l->step, lj_bc_c(ins)), .by = -1};
		i = op >= LJ_BC_ADDNV ? op - LJ_BC_ADDNV : op - LJ_BC_ADDVN;
		if (op >= LJ_BC_ADDNV)
			step_arith(l, va, &key, slot_of(l, f, lj_bc_b(ins)), i);
		else
			step_arith(l, va, slot_of(l, f, lj_bc_b(ins)), &key, i);
		break;
	case LJ_BC_ADDVV ... LJ_BC_MODVV:
		step_arith(l, va, slot_of(l, f, lj_bc_b(ins)), slot_of(l, f, lj_bc_c(ins)),
			   op - LJ_BC_ADDVV);
		break;
	case LJ_BC_POW:
		ref = find(l, is_one_of, OPS(POW) | OPS(MUL) | OPS(FPMATH) | CALLS,
			   slot_of(l, f, lj_bc_b(ins)), NULL);
		ref ? set(va, ref) : forget(l, va);
		break;
	case LJ_BC_KSHORT:
		*va = (struct value){.kind = VALUE_NUM, .num = num_of(l, ins), .by = -1};
		break;
	case LJ_BC_KNUM:
		*va = (struct value){.kind = VALUE_NUM, .num = number_of(t, l->step, d), .by = -1};
		break;
	case LJ_BC_UGET:
		find(l, is_own_guard, 0, NULL, NULL);
		ref = find(l, is_upvalue, d, NULL, NULL);
		step_access(l, ref, NULL, va, NULL);
		break;
	case LJ_BC_USETV:
		ref = find(l, is_upvalue, a, NULL, NULL);
		step_access(l, ref, NULL, NULL, slot_of(l, f, d));
		break;
	case LJ_BC_GGET:
		ref = find(l, is_keyed, string_of(t, l->step, d), NULL, NULL);
		step_access(l, ref, NULL, va, NULL);
		break;
	case LJ_BC_GSET:
		ref = find(l, is_keyed, string_of(t, l->step, d), NULL, NULL);
		step_access(l, ref, NULL, NULL, va);
		break;
	case LJ_BC_TGETS:
	case LJ_BC_TSETS:
		l->keyed = true;
		ref = find(l, is_keyed, string_of(t, l->step, lj_bc_c(ins)),
			   slot_of(l, f, lj_bc_b(ins)), NULL);
		l->keyed = false;
		step_access(l, ref, NULL, op == LJ_BC_TGETS ? va : NULL,
			    op == LJ_BC_TGETS ? NULL : va);
		break;
	case LJ_BC_TGETB:
	case LJ_BC_TSETB:
		key = (struct value){.kind = VALUE_NUM, .num = lj_bc_c(ins), .by = -1};
		ref = find(l, is_one_of, OPS(AREF) | OPS(HREF), slot_of(l, f, lj_bc_b(ins)), &key);
		step_access(l, ref, NULL, op == LJ_BC_TGETB ? va : NULL,
			    op == LJ_BC_TGETB ? NULL : va);
		break;
	case LJ_BC_TGETV:
	case LJ_BC_TSETV:
	case LJ_BC_TGETR:
	case LJ_BC_TSETR:
		ref = find(l, is_one_of, OPS(AREF) | OPS(HREF) | OPS(HREFK),
			   slot_of(l, f, lj_bc_b(ins)), slot_of(l, f, lj_bc_c(ins)));
		if (op == LJ_BC_TGETV || op == LJ_BC_TGETR)
			step_access(l, ref, slot_of(l, f, lj_bc_c(ins)), va, NULL);
		else
			step_access(l, ref, slot_of(l, f, lj_bc_c(ins)), NULL, va);
		break;
	case LJ_BC_TNEW:
	case LJ_BC_TDUP:
		ref = find(l, is_one_of, OPS(TNEW) | OPS(TDUP), NULL, NULL);
		ref ? set(va, ref) : forget(l, va);
		break;
	case LJ_BC_FORI:
	case LJ_BC_JFORI:
		*slot_of(l, f, a + 3) = *va;
		break;
	case LJ_BC_FORL:
	case LJ_BC_IFORL:
		step_forl(l, f, a);
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
			find(l, is_one_of, OPS(EQ), va, NULL);
		step_builtin(l, f, ins);
		break;
	default:
		if (lj_bc_mode_a(ins) != LJ_BCM_OTHER)
			forget(l, va);
	}
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
			learn(l, &l->slot[slot], ref);
		set(&l->slot[slot], ref);
	}
}

static void label_recorded(struct labels *l)
{
	struct lj_trace *t = l->t;
	uint32_t k = 0, i, r;

	for (l->step = 0; l->step < (int32_t)t->nsteps; l->step++) {
		while (k < t->npre && t->snap[k].step <= l->step) {
			if (!t->snap[k].inside)
				meet_snapshot(l, &t->snap[k]);
			k++;
		}
		range_of(t, l->step, &l->lo, &l->hi);
		step_one(l);
	}
	for (; k < t->npre; k++)
		if (!t->snap[k].inside)
			meet_snapshot(l, &t->snap[k]);
	/* from a guarded branch's snapshot to the guard: the branch's own */
	for (i = 0; i < t->npre; i++)
		for (r = t->snap[i].ref; t->snap[i].inside && r < t->nins; r++) {
			*label_of(t, r) = t->snap[i].step;
			if (lj_ins_at(t, r)->t & LJ_IRT_GUARD)
				break;
		}
}

/* Which instructions a step may have made, when nothing is known of its operands. */
static op_set made_by(const struct lj_trace *t, int32_t step)
{
	uint32_t ins = code_of(t, step)->bc[t->steps[step].pc];
	uint8_t op = lj_bc_op(ins);

	if (t->steps[step].folded)
		return 0;
	switch (op) {
	case LJ_BC_ISLT ... LJ_BC_ISNEP:
		return ((op_set)1 << (LJ_IR_NE + 1)) - 1;
	case LJ_BC_UNM:
		return OPS(NEG) | OPS(BXOR);
	case LJ_BC_LEN:
		return OPS(ALEN);
	case LJ_BC_ADDVN ... LJ_BC_MODVV:
		return arith_ops[(op - LJ_BC_ADDVN) % 5];
	case LJ_BC_POW:
		return OPS(POW) | OPS(MUL) | OPS(FPMATH) | CALLS;
	case LJ_BC_CAT:
		return OPS(BUFHDR) | OPS(BUFPUT) | OPS(BUFSTR) | OPS(TOSTR) | CALLS;
	case LJ_BC_GGET:
	case LJ_BC_TGETV ... LJ_BC_TGETR:
		return LOADS;
	case LJ_BC_GSET:
	case LJ_BC_TSETV ... LJ_BC_TSETB:
	case LJ_BC_TSETR:
	case LJ_BC_USETV ... LJ_BC_USETP:
		return STORES;
	case LJ_BC_FNEW:
	case LJ_BC_TNEW:
	case LJ_BC_TDUP:
		return OPS(TNEW) | OPS(TDUP) | CALLS;
	case LJ_BC_CALL:
	case LJ_BC_CALLM:
	case LJ_BC_CALLT:
	case LJ_BC_CALLMT:
		return BUILTIN | STORES | LOADS | OPS(ALEN);
	case LJ_BC_FORL:
	case LJ_BC_IFORL:
		return OPS(ADD) | OPS(ADDOV);
	default:
		return 0;
	}
}

#define GAP_MAX 400 /* on both sides */

/* What a match of step and instruction is worth: 0 when it made no such. */
static uint16_t worth(const struct lj_trace *t, int32_t step, uint32_t ref, bool *many)
{
	uint32_t ins = code_of(t, step)->bc[t->steps[step].pc];

	/* a built-in function may become anything */
	*many = !strcmp(lj_bc_mm(ins), "call");
	return made_by(t, step) >> lj_ins_at(t, ref)->o & 1 ? *many ? 1 : 2 : 0;
}

/*
 * Between two settled ones, steps and instructions that are not yet settled are in one order: as
 * many are matched as can be, by what they do alone.
 */
static int match_gap(struct lj_trace *t, uint32_t from, uint32_t to, int32_t first, int32_t last)
{
	uint32_t n = to - from, m = (uint32_t)(last - first), i, j;
	uint16_t *best __cleanup(cleanup_free) = NULL, w;
	bool many;

	if (from >= to || first >= last || n > GAP_MAX || m > GAP_MAX)
		return 0;
	best = calloc(((size_t)n + 1) * (m + 1), sizeof(*best));
	if (!best)
		return -ENOMEM;
#define BEST(i, j) best[(size_t)(i) * (m + 1) + (j)]
	for (i = n; i-- > 0;)
		for (j = m; j-- > 0;) {
			uint16_t b = BEST(i + 1, j);

			if (BEST(i, j + 1) > b)
				b = BEST(i, j + 1);
			w = worth(t, first + (int32_t)j, from + i, &many);
			if (w && BEST(i + 1, j + !many) + w > b)
				b = BEST(i + 1, j + !many) + w;
			BEST(i, j) = b;
		}
	for (i = j = 0; i < n && j < m;) {
		w = worth(t, first + (int32_t)j, from + i, &many);
		if (w && BEST(i, j) == BEST(i + 1, j + !many) + w) {
			*label_of(t, from + i++) = first + (int32_t)j;
			j += !many;
		} else if (BEST(i, j) == BEST(i + 1, j)) {
			i++;
		} else {
			j++;
		}
	}
#undef BEST
	return 0;
}

/* The gaps of what was recorded. Snapshots are settled, too. */
static int match_gaps(struct lj_trace *t)
{
	uint32_t from = LJ_REF_BIAS + 1, end = t->loopref ? t->loopref : t->nins, ref, k = 0, next;
	int32_t step = 0;
	int r = 0;

	for (ref = from; ref <= end && !r; ref++) {
		int32_t at = ref < end ? *label_of(t, ref) : (int32_t)t->nsteps;

		while (k < t->npre && t->snap[k].ref <= ref) {
			if (!t->snap[k].inside && t->snap[k].step >= step) {
				r = match_gap(t, from, ref, step, t->snap[k].step);
				from = ref;
				step = t->snap[k].step;
			}
			k++;
		}
		for (next = k; next < t->npre && t->snap[next].inside;)
			next++;
		/* what a loop's entry checks was put to the loop's end */
		if (at < 0 || r || (next < t->npre && at > t->snap[next].step)) {
			from += ref == from && at >= 0;
			continue;
		}
		if (at >= step) {
			r = match_gap(t, from, ref, step, at);
			step = at + 1;
		}
		from = ref + 1;
	}
	return r;
}

/* What lies between two that are settled belongs to the second: operands come first. */
static void fill(struct lj_trace *t, uint32_t from, uint32_t to)
{
	uint32_t ref = to;
	int32_t next = -1;

	while (ref-- > from) {
		uint8_t o = lj_ins_at(t, ref)->o;
		int32_t *label = label_of(t, ref);

		if (*label >= 0)
			next = *label;
		else if (next >= 0 && (o < LJ_IR_TBAR || o > LJ_IR_XBAR)) /* barriers come after */
			*label = next;
	}
	for (ref = from + 1; ref < to; ref++)
		if (*label_of(t, ref) < 0)
			*label_of(t, ref) = *label_of(t, ref - 1);
}

/* Snapshots bound what may be taken from a neighbour. */
static void fill_recorded(struct lj_trace *t)
{
	uint32_t from = LJ_REF_BIAS + 1, end = t->loopref ? t->loopref : t->nins, i;
	int32_t first = 0;

	for (i = 0; i <= t->npre; i++) {
		uint32_t to = i < t->npre && !t->snap[i].inside ? t->snap[i].ref
			      : i == t->npre			? end
								: 0;

		if (to > end)
			to = end;
		if (to <= from) {
			if (i < t->npre && !t->snap[i].inside)
				first = t->snap[i].step;
			continue;
		}
		fill(t, from, to);
		if (*label_of(t, from) < 0 && first < (int32_t)t->nsteps)
			for (; from < to; from++)
				if (*label_of(t, from) < 0)
					*label_of(t, from) = first;
		from = to;
		if (i < t->npre)
			first = t->snap[i].step;
	}
}

/* The reference that a slot has in a snapshot; 0: none. */
static uint32_t in_snapshot(const struct lj_tsnap *s, uint32_t slot)
{
	uint32_t i;

	for (i = 0; i < s->nent; i++)
		if (s->map[i] >> 24 == slot)
			return s->map[i] & 0xffff;
	return 0;
}

#define NOT_KNOWN 0xffffu
#define COPY_AHEAD 64 /* instructions that may have been folded into others in between */

/* How well instruction ref could be one with these operands; 0: not at all. */
static int likeness(const struct lj_trace *t, uint32_t ref, const struct lj_ins *want)
{
	const struct lj_ins *ir = lj_ins_at(t, ref);
	bool swapped = false;
	int n;

	if (ir->o != want->o) {
		swapped = ir->o <= LJ_IR_UGT && ir->o == (want->o ^ 3); /* a > b is b < a */
		if (!swapped)
			return 0;
	}
	/* a literal says little */
	n = (ir->op1 == want->op1 && lj_ir_op1_is_ref(ir->o)) +
	    (ir->op2 == want->op2 && lj_ir_op2_is_ref(ir->o));
	if (!swapped && (ir->op1 == want->op1 || want->op1 == NOT_KNOWN) &&
	    (ir->op2 == want->op2 || want->op2 == NOT_KNOWN))
		return 1 + n;
	n = (ir->op1 == want->op2) + (ir->op2 == want->op1);
	if ((swapped || lj_ir_mode[ir->o] & LJ_IRK_C) &&
	    (ir->op1 == want->op2 || want->op2 == NOT_KNOWN) &&
	    (ir->op2 == want->op1 || want->op1 == NOT_KNOWN))
		return 1 + n;
	return 0;
}

/* The best of [from, to); the first of equals. At least `least`. 0: none. */
static uint32_t find_like(const struct lj_trace *t, uint32_t from, uint32_t to,
			  const struct lj_ins *want, int least)
{
	uint32_t best = 0, ref;

	for (ref = from; ref < to && ref < t->nins && lj_ins_at(t, ref)->o != LJ_IR_PHI; ref++) {
		int n = likeness(t, ref, want);

		if (n >= least) {
			best = ref;
			least = n + 1;
		}
	}
	return best;
}

/* A load that is not there: its value is that of the last store to the same place. 0: there is
 * none. */
static uint32_t stored_last(const struct lj_trace *t, uint32_t before, const struct lj_ins *load)
{
	uint32_t ref;

	if (load->o < LJ_IR_ALOAD || load->o > LJ_IR_XLOAD)
		return 0;
	for (ref = before; ref-- > LJ_REF_BIAS + 1;) {
		const struct lj_ins *ir = lj_ins_at(t, ref);

		if (ir->o == load->o + (LJ_IR_ASTORE - LJ_IR_ALOAD) && ir->op1 == load->op1)
			return ir->op2;
	}
	return 0;
}

/*
 * The body of a loop is what was recorded once more, with references to the turn before in place of
 * those to before the loop (lj_opt_loop.c): found by going along both.
 */
static int label_loop(struct lj_trace *t)
{
	uint32_t n = t->loopref - LJ_REF_BIAS, ref, next = t->loopref + 1;
	uint16_t *subst __cleanup(cleanup_free) = calloc(n + 1, sizeof(*subst));
	const struct lj_tsnap *last = &t->snap[t->npre - 1];

	if (!subst)
		return -ENOMEM;
	subst[0] = LJ_REF_BIAS;
	for (ref = LJ_REF_BIAS + 1; ref < t->loopref; ref++) {
		const struct lj_ins *ir = lj_ins_at(t, ref);
		struct lj_ins want = *ir;
		bool same, normal = lj_ir_kind(ir->o) == LJ_IRK_N;
		uint32_t to = 0;
		int all;

		if (lj_ir_op1_is_ref(ir->o) && want.op1 >= LJ_REF_BIAS && want.op1 < ref)
			want.op1 = subst[want.op1 - LJ_REF_BIAS];
		if (lj_ir_op2_is_ref(ir->o) && want.op2 >= LJ_REF_BIAS && want.op2 < ref)
			want.op2 = subst[want.op2 - LJ_REF_BIAS];
		same = want.op1 == ir->op1 && want.op2 == ir->op2;
		if (ir->o == LJ_IR_NOP || (normal && same)) {
			subst[ref - LJ_REF_BIAS] = (uint16_t)ref;
			continue;
		}
		/* what does not depend on memory and was there already is not computed again */
		all = 1 + lj_ir_op1_is_ref(ir->o) + lj_ir_op2_is_ref(ir->o);
		if (normal)
			to = find_like(t, LJ_REF_BIAS + 1, next, &want, all);
		if (!to) {
			to = find_like(t, next, next + COPY_AHEAD, &want, 2);
			if (!to)
				to = find_like(t, next, next + 2, &want, 1);
			if (to) {
				*label_of(t, to) = *label_of(t, ref);
				next = to + 1;
			}
		}
		if (!to)
			to = stored_last(t, next, &want);
		if (!to && ir->o == LJ_IR_SLOAD) {
			to = in_snapshot(last, ir->op1);
			if (!to)
				to = ref;
		}
		if (!to && same && lj_ir_kind(ir->o) != LJ_IRK_S)
			to = ref;
		if (!to)
			to = find_like(t, LJ_REF_BIAS + 1, next, &want, all);
		subst[ref - LJ_REF_BIAS] = (uint16_t)(to ? to : NOT_KNOWN);
	}
	fill(t, t->loopref + 1, t->nins);
	/* a loop's turn: of its end */
	for (ref = t->loopref; ref < t->nins; ref++)
		if (ref == t->loopref || lj_ins_at(t, ref)->o == LJ_IR_PHI)
			*label_of(t, ref) = (int32_t)t->nsteps - 1;
	return 0;
}

/*
 * A trace that begins at a loop's end begins with that: whether the loop's numbers are as they were
 * (rec_for_loop), before the first instruction of its body.
 */
static void label_entry(struct lj_trace *t)
{
	int32_t last = (int32_t)t->nsteps - 1;
	const struct lj_tframe *f;
	uint32_t ins, ref, slot;

	if (!t->loopref || last < 0)
		return;
	f = &t->frames[t->steps[last].frame];
	ins = code_of(t, last)->bc[t->steps[last].pc];
	if ((lj_bc_op(ins) != LJ_BC_FORL && lj_bc_op(ins) != LJ_BC_IFORL) || f->slot < 0)
		return;
	slot = (uint32_t)f->slot + 2 + lj_bc_a(ins);
	for (ref = LJ_REF_BIAS + 1; ref < t->loopref; ref++) {
		const struct lj_ins *ir = lj_ins_at(t, ref);

		if (ir->o == LJ_IR_SLOAD
			    ? ir->op1 < slot || ir->op1 > slot + 2
			    : ir->o > LJ_IR_GT || (ir->op1 >= LJ_REF_BIAS && ir->op1 >= ref))
			break;
		*label_of(t, ref) = last;
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
	r = match_gaps(t);
	if (r)
		return r;
	fill_recorded(t);
	return t->loopref ? label_loop(t) : 0;
}
