// SPDX-License-Identifier: BSD-2-Clause
/* Symbolic execution of accesses to upvalues and tables (layer 2). */
#include <string.h>

#include "callee.h"
#include "exec.h"
#include "lua/lj/bc.h"

#define UPVALUE(func, idx) ((op_set)(func) << 8 | (idx))

static bool is_keyed(const struct lj_trace *t, const struct lj_ins *ir, op_set gcstr)
{
	return (ir->o == LJ_IR_HREFK || ir->o == LJ_IR_HREF || ir->o == LJ_IR_NEWREF) &&
	       lj_trace_key(t, ir) == gcstr;
}

static bool has_upvalue(const struct lj_ins *ir, op_set what)
{
	return lj_is_uref(ir) && ir->op2 >> 8 == (what & 0xff);
}

/* True for an upvalue of a constant function. */
static bool is_upvalue(const struct lj_trace *t, const struct lj_ins *ir, op_set what)
{
	return has_upvalue(ir, what) && ir->op1 < LJ_REF_BIAS &&
	       lj_trace_const(t, ir->op1) == (uint64_t)(what >> 8);
}

/* True for an upvalue of another function, such as the one in slot 0; of any if the function is not
 * known. */
static bool is_own_upvalue(const struct lj_trace *t, const struct lj_ins *ir, op_set what)
{
	(void)t;
	return has_upvalue(ir, what) && (ir->op1 >= LJ_REF_BIAS || !(uint64_t)(what >> 8));
}

/* True if closure `ref` may be the one that a frame runs. */
static bool may_run(const struct sim *l, const struct lj_tframe *f, uint32_t ref)
{
	const struct lj_trace *t = l->t;
	const struct calls *c = l->calls;
	struct func is;
	uint32_t i;

	if (ref < LJ_REF_BIAS)
		return lj_func_of(t, l->mem, ref, &is) && is.code == (int)f->code;
	if (lj_ins_at(t, ref)->o == LJ_IR_SLOAD) /* a frame's own, as at the trace's entry */
		return f->slot < 0 || lj_ins_at(t, ref)->op1 == (uint32_t)f->slot;
	for (i = 0; i < c->nguards; i++)
		if (c->guards[i].on == ref)
			return c->guards[i].func.code == (int)f->code;
	return true;
}

/* Returns the address, behind reference `after`, of upvalue idx of a closure that may be the frame's; 0: none. */
static uint32_t find_own_upvalue(struct sim *l, const struct lj_tframe *f, uint32_t idx,
				 uint32_t after)
{
	uint32_t ref;

	l->visits += l->hi - LJ_REF_BIAS;
	for (ref = l->hi; ref-- > after + 1;) {
		const struct lj_ins *ir = lj_ins_at(l->t, ref);

		if (is_own_upvalue(l->t, ir, UPVALUE(f->func, idx)) && may_run(l, f, ir->op1)) {
			lj_claim_ref(l, ref);
			return ref;
		}
	}
	return 0;
}

static bool is_own_guard(const struct lj_trace *t, const struct lj_ins *ir, op_set unused)
{
	(void)unused;
	return lj_guards_own(t, ir);
}

/* Copies an immutable upvalue of a type that the recorder makes a constant (lj_record_constify): false, true, numbers,
 * functions, strings, but not nil; with `cdata` a cdata instead. */
static bool constant_upvalue(struct sim *l, uint64_t closure, uint32_t idx, bool cdata,
			     struct value *out)
{
	uint64_t v;
	uint8_t type;
	double num;

	if (!lj_func_upvalue(l->t, l->mem, closure, idx, &v))
		return false;
	if (LJ_TV_TYPE(v) >= 0 || LJ_TV_TYPE(v) < LJ_TUDATA) {
		memcpy(&num, &v, sizeof(num));
		*out = lj_value_number(num);
		return true;
	}
	type = (uint8_t)~LJ_TV_TYPE(v);
	if (!cdata && (type == LJ_IRT_FALSE || type == LJ_IRT_TRUE)) {
		*out = lj_value_object(0, type);
		return true;
	}
	if (cdata ? type != LJ_IRT_CDATA : type != LJ_IRT_FUNC && type != LJ_IRT_STR)
		return false;
	*out = lj_value_object(LJ_TV_GCPTR(v), type);
	return true;
}

/* Returns the address of a function's upvalue, also of one computed from another function that
 * shares it. 0: none. */
static uint32_t find_upvalue(struct sim *l, const struct lj_tframe *f, uint32_t idx)
{
	uint64_t func = f->func;
	/* a frame that the trace has returned to has its function in its slot, though it may be one that was a constant before */
	uint32_t ref = f->returned ? find_own_upvalue(l, f, idx, l->retf) : 0;

	if (ref)
		return ref;
	ref = lj_value_find(l, is_upvalue, UPVALUE(func, idx), NULL, NULL);
	if (!ref && f->slot >= 0) /* of the called closure */
		ref = lj_value_find(l, is_own_upvalue, UPVALUE(0, idx),
				    lj_value_at(l, (uint32_t)f->slot), NULL);
	if (!ref)
		ref = find_own_upvalue(l, f, idx, LJ_REF_BIAS);
	if (ref)
		return ref;
	return lj_func_uref(l->t, l->mem, lj_func_uv(l->t, l->mem, func, idx), LJ_REF_BIAS + 1,
			    l->hi);
}

/* True for a guard that an address is beyond this slot; or one less, as the slot between a call's
 * function and its arguments is not in use. */
static bool is_beyond(const struct lj_trace *t, const struct lj_ins *ir, op_set slot)
{
	int64_t ofs = ir->o == LJ_IR_UGT ? lj_value_integer(t, ir->op2) : 0;

	return ofs && (ofs == (int64_t)slot * 8 || ofs == (int64_t)slot * 8 - 8);
}

/* Labels the guard that an open upvalue is beyond the slots in use (rec_upvalue). */
static void settle_open(struct sim *l, const struct lj_tframe *f, uint32_t ref)
{
	uint32_t at = ref && lj_ins_at(l->t, ref)->o == LJ_IR_UREFO
			      ? lj_step_through(l, OPS(SUB), ref, NULL)
			      : 0;
	struct value distance = {.kind = VAL_REF, .ref = at, .by = -1};

	if (at && f->slot >= 0)
		lj_value_find(l, is_beyond,
			      (op_set)f->slot + lj_frame_slots(l->t) +
				      lj_bc_a(lj_step_ins(l->t, (uint32_t)l->step)),
			      &distance, NULL);
}

/* Returns the slot of an open upvalue that is one of the trace's: the trace guards that
 * (rec_upvalue), and accesses the slot. NULL: it is none. */
static struct value *open_upvalue(struct sim *l, const struct lj_tframe *f, uint32_t ref)
{
	struct value base = {.kind = VAL_REF, .ref = LJ_REF_BIAS, .by = -1}, at;
	uint32_t add = ref ? lj_step_through(l, OPS(ADD), ref, NULL) : 0,
		 slot = lj_frame_slots(l->t);

	at = (struct value){.kind = VAL_REF, .ref = add ? add : ref, .by = -1};
	if (!ref || !lj_value_find(l, lj_step_is, OPS(EQ), &at, &base)) {
		settle_open(l, f, ref);
		return NULL;
	}
	if (add)
		slot -= (uint32_t)(lj_value_integer(l->t, lj_ins_at(l->t, add)->op2) / 8);
	if (slot >= SLOTS)
		return NULL;
	lj_step_load(l, lj_value_at(l, slot));
	return lj_value_at(l, slot);
}

/* True if the trace guards that a table's hash part is empty (rec_idx_key). Labels the guard. */
static bool has_no_keys(struct sim *l, const struct value *table)
{
	const struct lj_trace *t = l->t;
	uint32_t obj = lj_value_ref(l, table), ref;
	struct value zero = lj_value_number(0);

	l->visits += l->hi - LJ_REF_BIAS;
	for (ref = LJ_REF_BIAS + 1; obj && ref < l->hi; ref++) {
		const struct lj_ins *ir = lj_ins_at(t, ref), *mask;

		if (ir->o != LJ_IR_EQ || ir->op1 <= LJ_REF_BIAS)
			continue;
		mask = lj_ins_at(t, ir->op1);
		if (mask->o == LJ_IR_FLOAD && mask->op1 == obj &&
		    (mask->t & LJ_IRT_TYPE) == LJ_IRT_INT && lj_value_is(l, &zero, ir->op2)) {
			lj_claim_ref(l, ir->op1);
			lj_claim_ref(l, ref);
			return true;
		}
	}
	return false;
}

/* Returns the address of a string key's value in a table, or else in one along its chain of
 * __index. */
static uint32_t find_keyed(struct sim *l, uint64_t gcstr, struct value *table, bool load)
{
	uint32_t obj = lj_value_ref(l, table), memref, n;

	if (load && lj_value_type(l, table) == LJ_IRT_STR)
		obj = lj_calls_index_table(l, 0);
	l->keyed = true;
	memref = lj_value_find(l, is_keyed, gcstr, table, NULL);
	l->keyed = false;
	for (n = 0; load && obj && n < LJ_CHAIN_MAX; n++) {
		struct value in = {.kind = VAL_REF, .ref = obj, .by = -1};
		uint32_t at = memref && lj_trace_table(l->t, lj_ins_at(l->t, memref)) == obj
				      ? memref
				      : lj_value_find(l, is_keyed, gcstr, &in, NULL);

		if (at) {
			struct value v = lj_step_loaded(l, at);

			if (v.kind != VAL_UNKNOWN && lj_value_type(l, &v) != LJ_IRT_NIL)
				return at;
		} else {
			has_no_keys(l, &in);
		}
		lj_step_metatable(l, obj);
		obj = lj_calls_index_table(l, obj);
	}
	return memref;
}

/* Forwarding: a value that another step loaded or stored is not loaded again. */
static void note_forwarded(struct sim *l, const struct value *v)
{
	if (v->kind == VAL_REF ? v->ref > LJ_REF_BIAS && lj_ref_ok(l->t, v->ref) &&
					 *lj_label_of(l->t, v->ref) >= 0 &&
					 *lj_label_of(l->t, v->ref) != l->step
			       : v->kind != VAL_UNKNOWN)
		l->t->history[l->step].folded = true;
}

static void step_uget(struct sim *l, const struct lj_tframe *f, uint32_t ins, struct value *dst)
{
	uint32_t ref;
	struct value *open;

	if (constant_upvalue(l, f->func, lj_bc_d(ins), false, dst)) {
		if (!f->slot) /* another frame's function is guarded at its call */
			lj_value_find(l, is_own_guard, 0, NULL, NULL);
		l->t->history[l->step].folded = true;
		return;
	}
	ref = find_upvalue(l, f, lj_bc_d(ins));
	l->dead_end |= !ref && lj_func_upvalue_changes(l->t, l->mem, f->func, lj_bc_d(ins));
	open = open_upvalue(l, f, ref);
	if (open)
		*dst = *open;
	else if (ref || !constant_upvalue(l, f->func, lj_bc_d(ins), true, dst))
		*dst = lj_step_loaded(l, ref);
	note_forwarded(l, dst);
}

/* Returns the constant that an instruction stores to an upvalue. */
static struct value constant_stored(const struct sim *l, uint32_t ins)
{
	const struct lj_code *code = lj_code_of(l->t, l->step);

	return lj_bc_op(ins) == LJ_BC_USETS   ? lj_value_string(code, lj_bc_d(ins))
	       : lj_bc_op(ins) == LJ_BC_USETN ? lj_value_const(code, lj_bc_d(ins))
					      : lj_value_object(0, (uint8_t)lj_bc_d(ins));
}

static void step_uset(struct sim *l, const struct lj_tframe *f, uint32_t ins)
{
	uint32_t ref = find_upvalue(l, f, lj_bc_a(ins));
	struct value constant, *open = open_upvalue(l, f, ref);
	struct value *v = &constant;

	if (lj_bc_op(ins) == LJ_BC_USETV)
		v = lj_value_slot(l, f, lj_bc_d(ins));
	else
		constant = constant_stored(l, ins);
	if (open)
		*open = *v;
	else
		lj_step_stored(l, ref, v);
}

/* Returns the address of a key in a table, not of a constant string's. A store may insert it. */
static uint32_t find_indexed(struct sim *l, struct value *table, struct value *key, bool load)
{
	uint32_t ref;

	l->index = true;
	ref = lj_value_find(l, lj_step_is,
			    OPS(AREF) | OPS(HREF) | OPS(HREFK) | (load ? 0 : OPS(NEWREF)), table,
			    key);
	l->index = false;
	if (!ref && lj_value_type(l, table) != LJ_IRT_TAB) /* an element of an array (FFI) */
		lj_value_find(l, lj_step_is, OPS(MUL) | OPS(BSHL) | OPS(ADD), key, NULL);
	return ref;
}

/* Finds the address in a table that an instruction loads or stores. False: it does neither. */
static bool find_memref(struct sim *l, const struct lj_tframe *f, uint32_t ins, bool load,
			uint32_t *ref)
{
	struct value *table = lj_value_slot(l, f, lj_bc_b(ins)), byte;

	switch (lj_bc_op(ins)) {
	case LJ_BC_GGET:
	case LJ_BC_GSET:
		*ref = lj_value_find(l, is_keyed, lj_step_string(l->t, l->step, lj_bc_d(ins)), NULL,
				     NULL);
		return true;
	case LJ_BC_TGETS:
	case LJ_BC_TSETS:
		*ref = find_keyed(l, lj_step_string(l->t, l->step, lj_bc_c(ins)), table, load);
		return true;
	case LJ_BC_TGETB:
	case LJ_BC_TSETB:
		byte = lj_value_number(lj_bc_c(ins));
		*ref = lj_value_find(l, lj_step_is,
				     OPS(AREF) | OPS(HREF) | (load ? 0 : OPS(NEWREF)), table,
				     &byte);
		return true;
	case LJ_BC_TGETV:
	case LJ_BC_TSETV:
	case LJ_BC_TGETR:
	case LJ_BC_TSETR:
		*ref = find_indexed(l, table, lj_value_slot(l, f, lj_bc_c(ins)), load);
		return true;
	default:
		return false;
	}
}

/* Returns the value at an address in a table; unknown if that is 0, or not loaded from. */
static struct value value_at(struct sim *l, uint32_t memref)
{
	struct value v = lj_step_loaded(l, memref);

	if (memref && v.kind == VAL_UNKNOWN && lj_step_through(l, OPS(EQ), memref, NULL))
		return lj_value_object(0, LJ_IRT_NIL); /* the key is absent */
	return v;
}

/* Looks an absent key up along the chain of __index, as far as the trace did. Not for constant
 * strings. */
static void search_further(struct sim *l, const struct value *table, struct value *key,
			   struct value *dst)
{
	uint32_t obj = lj_value_ref(l, table), n;

	for (n = 0; obj && n < LJ_CHAIN_MAX; n++) {
		struct value in;

		lj_step_metatable(l, obj);
		obj = lj_calls_index_table(l, obj);
		in = (struct value){.kind = VAL_REF, .ref = obj, .by = -1};
		if (!obj)
			break;
		lj_step_beyond(l, &in, key);
		has_no_keys(l, &in);
		*dst = value_at(l, find_indexed(l, &in, key, true));
		if (dst->kind != VAL_UNKNOWN && lj_value_type(l, dst) != LJ_IRT_NIL)
			return;
	}
}

/* True for the clearing of a table's negative cache of metamethods, after a store
 * (lj_record_idx). */
static bool is_nomm(const struct lj_trace *t, const struct lj_ins *ir, op_set unused)
{
	(void)t;
	(void)unused;
	return ir->o == LJ_IR_FSTORE && (ir->t & LJ_IRT_TYPE) != LJ_IRT_TAB;
}

static void settle_nomm(struct sim *l, struct value *table)
{
	struct value field = {.kind = VAL_REF, .by = -1};

	field.ref = lj_value_find(l, lj_step_is, OPS(FREF), table, NULL);
	if (field.ref)
		lj_value_find(l, is_nomm, 0, &field, NULL);
}

/* Returns the key of an instruction that has it in a slot, or as a number: not of TGETS and
 * TSETS. */
static struct value key_of(struct sim *l, const struct lj_tframe *f, uint32_t ins)
{
	return lj_bc_op(ins) == LJ_BC_TGETB || lj_bc_op(ins) == LJ_BC_TSETB
		       ? lj_value_number(lj_bc_c(ins))
		       : *lj_value_slot(l, f, lj_bc_c(ins));
}

/* True for a length. A length that has an unlabelled store as hint is one of a later step. */
static bool is_length(const struct lj_trace *t, const struct lj_ins *ir, op_set set)
{
	return lj_step_is(t, ir, set) && !(ir->o == LJ_IR_ALEN && ir->op2 > LJ_REF_BIAS &&
					   lj_ref_ok(t, ir->op2) && *lj_label_of(t, ir->op2) < 0);
}

uint32_t lj_step_length(struct sim *l, struct value *of)
{
	return lj_value_find(l, is_length, OPS(ALEN) | OPS(FLOAD) | CALLS, of, NULL);
}

void lj_step_rawset(struct sim *l, struct value *table, struct value *key, struct value *v)
{
	lj_step_stored(l, find_indexed(l, table, key, false), v);
	settle_nomm(l, table);
}

/* The element behind the last one is stored (recff_table_insert). */
void lj_step_append(struct sim *l, struct value *table, struct value *v)
{
	struct value index = {.kind = VAL_UNKNOWN, .by = l->step}, one = lj_value_number(1);

	lj_step_result(l, &index, lj_step_length(l, table));
	if (index.kind == VAL_REF)
		lj_step_result(l, &index, lj_value_find(l, lj_step_is, OPS(ADD), &index, &one));
	lj_step_rawset(l, table, &index, v);
}

bool lj_step_memref(struct sim *l, const struct lj_tframe *f, uint32_t ins)
{
	struct value *va = lj_value_slot(l, f, lj_bc_a(ins)), table, key;
	bool load = lj_bc_mm(ins) == LJ_MM_INDEX;
	uint8_t op = lj_bc_op(ins);
	uint32_t ref;

	table = *lj_value_slot(l, f, lj_bc_b(ins));
	key = key_of(l, f, ins);
	if (op >= LJ_BC_TGETV && op <= LJ_BC_TSETB && lj_value_type(l, &table) == LJ_IRT_CDATA &&
	    lj_step_cdata(l, ins, lj_value_slot(l, f, lj_bc_b(ins)), &key, va))
		return true;
	if (op == LJ_BC_UGET) {
		step_uget(l, f, ins, va);
		return true;
	}
	if (op >= LJ_BC_USETV && op <= LJ_BC_USETP) {
		step_uset(l, f, ins);
		return true;
	}
	if (!find_memref(l, f, ins, load, &ref))
		return false;
	if (!load) {
		lj_step_metatable(l, lj_value_ref(l, &table));
		if (l->enters) /* __newindex stores */
			return true;
		lj_step_stored(l, ref, va);
		settle_nomm(l, &table);
		return true;
	}
	table = *lj_value_slot(l, f, lj_bc_b(ins)); /* it may be bound now; and va may be the
						     * same */
	key = key_of(l, f, ins);
	*va = value_at(l, ref);
	if (!ref && op == LJ_BC_TGETS && has_no_keys(l, &table))
		*va = lj_value_object(0, LJ_IRT_NIL);
	if (op != LJ_BC_TGETS && op != LJ_BC_GGET &&
	    (lj_value_type(l, va) == LJ_IRT_NIL || (!ref && lj_step_beyond(l, &table, &key)))) {
		has_no_keys(l, &table);
		search_further(l, &table, &key, va);
	}
	note_forwarded(l, va);
	return true;
}
