// SPDX-License-Identifier: BSD-2-Clause
/* Symbolic execution of one bytecode instruction (layer 2): values that instructions leave, and the
 * search for the IR that they became. Each search is one pass over the recorded IR. */
#include "exec.h"

#include "lua/lj/bc.h"

const op_set lj_trace_arith[5] = {
	OPS(ADD) | OPS(SUB) | OPS(ADDOV) | OPS(SUBOV),
	OPS(SUB) | OPS(ADD) | OPS(ADDOV) | OPS(SUBOV),
	OPS(MUL) | OPS(MULOV) | OPS(BSHL),
	OPS(DIV) | OPS(MUL) | CALLS,
	OPS(MOD) | OPS(BAND) | CALLS | OPS(DIV) | OPS(MUL),
};

bool lj_step_is(const struct lj_trace *t, const struct lj_ins *ir, op_set set)
{
	(void)t;
	return ir->o < LJ_IR__MAX && set >> ir->o & 1;
}

uint32_t lj_step_through(struct sim *l, op_set ops, uint32_t ref, struct value *stored)
{
	struct value via_pcall = {.kind = VAL_REF, .ref = ref, .by = -1};

	return lj_value_find(l, lj_step_is, ops, &via_pcall, stored);
}

/* By a load of the current step; else the value loaded or stored last, forwarded (lj_opt_mem.c). */
struct value lj_step_loaded(struct sim *l, uint32_t at)
{
	uint32_t from = l->cur > l->lo ? l->cur : l->lo, ref;
	struct value v = {.kind = VAL_UNKNOWN, .by = l->step};
	const struct value *stored;

	ref = at ? lj_step_through(l, LOADS, at, NULL) : 0;
	if (ref >= from) {
		lj_value_set(&v, ref);
		return v;
	}
	stored = lj_value_stored(l, at);
	if (stored)
		return *stored;
	for (ref = from; at && ref-- > LJ_REF_BIAS + 1;) {
		const struct lj_ins *ir = lj_ins_at(l->t, ref);

		if (ir->op1 != at)
			continue;
		if (lj_step_is(l->t, ir, STORES | LOADS)) {
			lj_value_set(&v, lj_step_is(l->t, ir, STORES) ? ir->op2 : ref);
			break;
		}
	}
	return v;
}

bool lj_step_is_field(const struct lj_trace *t, const struct lj_ins *ir, op_set is_table)
{
	(void)t;
	return ir->o == LJ_IR_FLOAD && ((ir->t & LJ_IRT_TYPE) == LJ_IRT_TAB) == !!is_table;
}

void lj_step_metatable(struct sim *l, uint32_t obj)
{
	struct value table = {.kind = VAL_REF, .ref = obj, .by = -1};
	uint32_t ref = obj ? lj_value_find(l, lj_step_is_field, true, &table, NULL) : 0;

	if (ref >= l->lo && *lj_label_of(l->t, ref) == l->step)
		lj_step_through(l, OPS(EQ) | OPS(NE), ref, NULL);
}

/* The guard is rec_idx_key()'s. */
bool lj_step_beyond(struct sim *l, const struct value *table, const struct value *index)
{
	const struct lj_trace *t = l->t;
	uint32_t ref;

	l->visits += l->hi - LJ_REF_BIAS;
	for (ref = LJ_REF_BIAS + 1; ref < l->hi && index->kind != VAL_UNKNOWN; ref++) {
		const struct lj_ins *ir = lj_ins_at(t, ref), *size;

		if (ir->o != LJ_IR_ULE || ir->op1 <= LJ_REF_BIAS)
			continue;
		size = lj_ins_at(t, ir->op1);
		if (size->o == LJ_IR_FLOAD && lj_value_is(l, table, size->op1) &&
		    lj_value_is(l, index, ir->op2)) {
			struct value made = *index; /* narrowed, for this guard */

			lj_bind_ref(l, &made, ir->op2);
			lj_claim_ref(l, ir->op1);
			lj_claim_ref(l, ref);
			return true;
		}
	}
	return false;
}

void lj_step_stored(struct sim *l, uint32_t at, struct value *v)
{
	uint32_t store = at ? lj_step_through(l, STORES, at, v) : 0;
	struct value stored = *v;

	/* a value is converted to the cdata's type first */
	if (!store && !(at && lj_step_through(l, OPS(XSTORE), at, NULL)))
		lj_value_find(l, lj_step_is, STORES, NULL, v);
	/* an integer is stored as the number that it is converted to: that is what is forwarded */
	if (store && v->kind == VAL_REF && lj_is_number_of_int(l->t, lj_ins_at(l->t, store)->op2))
		lj_value_set(&stored, lj_ins_at(l->t, store)->op2);
	lj_value_store(l, at, &stored);
}

uint32_t lj_step_next_of(struct sim *l, wanted_fn wanted, op_set what)
{
	uint32_t ref = l->cur > l->lo ? l->cur : l->lo;

	l->visits += l->hi > ref ? l->hi - ref : 0;
	for (; ref < l->hi; ref++)
		if (*lj_label_of(l->t, ref) < 0 && wanted(l->t, lj_ins_at(l->t, ref), what))
			return ref;
	return 0;
}

uint32_t lj_step_next(struct sim *l, uint8_t o)
{
	return lj_step_next_of(l, lj_step_is, (op_set)1 << o);
}

/* If one string only is appended to the buffer at hdr, that is the result (bufstr_kfold_cse): the
 * buffer is left without a BUFSTR. Returns the BUFPUT; 0: there is a BUFSTR, or it is not known. */
static uint32_t put_alone(const struct sim *l, uint32_t hdr, uint32_t str)
{
	uint32_t end = str ? lj_ins_at(l->t, str)->op2 : l->hi, ref, put = 0;

	for (ref = hdr + 1; ref < end && ref < l->hi; ref++) {
		const struct lj_ins *ir = lj_ins_at(l->t, ref);

		if (ir->o == LJ_IR_BUFPUT && put)
			return 0;
		if (ir->o == LJ_IR_BUFPUT && ir->op1 == hdr)
			put = ref;
	}
	return put;
}

/* True if a value is one of the IR's: no constant, and known. */
static bool is_computed(const struct value *v)
{
	return v->kind == VAL_REF || v->kind == VAL_ENTRY_SLOT || v->kind == VAL_PLACE;
}

/* True if reference ref certainly is one of the n values in f's locals from `first` on: itself, as a string, or an
 * address that is computed from it. */
static bool is_one_of(struct sim *l, uint32_t ref, const struct lj_tframe *f, uint32_t first,
		      uint32_t n)
{
	uint32_t strips = 4, i;

	while (strips-- && ref > LJ_REF_BIAS && lj_ref_ok(l->t, ref)) {
		const struct lj_ins *ir = lj_ins_at(l->t, ref);

		for (i = 0; i < n; i++) {
			const struct value *v = lj_value_slot(l, f, first + i);

			if (is_computed(v) && lj_value_is(l, v, ref))
				return true;
		}
		l->visits += n;
		if (!lj_step_is(l->t, ir, OPS(TOSTR) | OPS(ADD) | OPS(FLOAD) | OPS(STRREF)))
			return false;
		ref = ir->op1;
	}
	return false;
}

bool lj_step_takes(struct sim *l, uint32_t ref, const struct lj_tframe *f, uint32_t first,
		   uint32_t n)
{
	const struct lj_ins *ir = lj_ins_at(l->t, ref);
	uint32_t chain = ARGUMENTS;

	while (chain--) {
		if (lj_ir_op2_is_ref(ir->o) && is_one_of(l, ir->op2, f, first, n))
			return true;
		if (!lj_ir_op1_is_ref(ir->o) || !lj_ref_ok(l->t, ir->op1))
			return false;
		if (lj_ins_at(l->t, ir->op1)->o != LJ_IR_CARG)
			return is_one_of(l, ir->op1, f, first, n);
		ir = lj_ins_at(l->t, ir->op1);
	}
	return false;
}

/* True if one of these values can be looked for: it is known, and no constant. */
static bool knows_one(struct sim *l, const struct lj_tframe *f, uint32_t first, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (is_computed(lj_value_slot(l, f, first + i)))
			return true;
	return false;
}

/* True if an instruction in [from, to] takes one of the values; so may any if none is known. */
static bool may_make(struct sim *l, uint32_t from, uint32_t to, const struct lj_tframe *f,
		     uint32_t first, uint32_t n)
{
	if (!knows_one(l, f, first, n))
		return true;
	l->visits += to > from ? to - from : 0;
	for (; from <= to; from++)
		if (lj_step_takes(l, from, f, first, n))
			return true;
	return false;
}

/* Labels the conversions of these values to strings that stand before a buffer's start (rec_cat). */
static void claim_conversions(struct sim *l, uint32_t hdr, const struct lj_tframe *f,
			      uint32_t first, uint32_t n)
{
	uint32_t ref = l->cur > l->lo ? l->cur : l->lo;

	for (; ref < hdr; ref++)
		if (lj_ins_at(l->t, ref)->o == LJ_IR_TOSTR && lj_step_takes(l, ref, f, first, n))
			lj_claim_ref(l, ref);
}

#define BUFFERS 8 /* strings that are tried */

/* Labels all unlabelled instructions from the buffer's start on (rec_cat, recff_format). */
uint32_t lj_step_buffer(struct sim *l, const struct lj_tframe *f, uint32_t first, uint32_t n)
{
	uint32_t str = lj_step_next(l, LJ_IR_BUFSTR), hdr = lj_step_next(l, LJ_IR_BUFHDR), ref;
	uint32_t put = hdr ? put_alone(l, hdr, str) : 0, tries = 0;

	if (n > ARGUMENTS)
		n = ARGUMENTS;
	if (put && may_make(l, hdr, put, f, first, n)) {
		for (ref = hdr; ref <= put; ref++)
			lj_claim_ref(l, ref);
		ref = lj_ins_at(l->t, put)->op2;
		return ref > LJ_REF_BIAS ? ref : 0;
	}
	for (; str && str < l->hi && tries < BUFFERS; str++) {
		const struct lj_ins *ir = lj_ins_at(l->t, str);

		if (ir->o != LJ_IR_BUFSTR || *lj_label_of(l->t, str) >= 0)
			continue;
		tries++;
		hdr = ir->op2 > l->lo ? ir->op2 : l->lo;
		if (!may_make(l, hdr, str, f, first, n))
			continue;
		claim_conversions(l, hdr, f, first, n);
		for (ref = hdr; ref <= str; ref++)
			lj_claim_ref(l, ref);
		return str;
	}
	return 0;
}

uint64_t lj_step_string(const struct lj_trace *t, int32_t step, uint32_t i)
{
	return lj_code_kgc(lj_code_of(t, step), i);
}

void lj_step_result(struct sim *l, struct value *v, uint32_t ref)
{
	if (ref)
		lj_value_set(v, ref);
	else
		lj_set_unknown(l, v);
}

static bool is_load_of(const struct lj_trace *t, const struct lj_ins *ir, op_set slot)
{
	(void)t;
	return ir->o == LJ_IR_SLOAD && ir->op1 == slot;
}

void lj_step_load(struct sim *l, struct value *v)
{
	uint32_t ref =
		v->kind == VAL_ENTRY_SLOT ? lj_value_find(l, is_load_of, v->ref, NULL, NULL) : 0;

	if (ref > l->retf)
		lj_value_set(v, ref);
}
