// SPDX-License-Identifier: BSD-2-Clause
#include "callee.h"

#include <string.h>

#include "lua/lj/cdata.h"
#include "lua/lj/ffnames.h"
#include "lua/lj/bc.h"

uint32_t lj_operands(struct sim *l, const struct lj_tframe *f, uint32_t ins, struct value arg[3])
{
	const struct lj_code *code = &l->t->codes[f->code];
	uint32_t b = lj_bc_b(ins), c = lj_bc_c(ins), d = lj_bc_d(ins);
	struct value va = *lj_value_slot(l, f, lj_bc_a(ins));
	uint8_t op = lj_bc_op(ins);

	arg[0] = arg[1] = arg[2] = (struct value){.kind = VAL_UNKNOWN, .by = -1};
	switch (op) {
	case LJ_BC_ISLT ... LJ_BC_ISNEV:
		arg[0] = va;
		arg[1] = *lj_value_slot(l, f, d);
		return 2;
	case LJ_BC_ISEQS ... LJ_BC_ISNEP: /* compared to a constant, which has no metamethod */
		arg[0] = va;
		arg[1] = lj_value_number(0);
		return 2;
	case LJ_BC_UNM:
	case LJ_BC_LEN:
		arg[0] = *lj_value_slot(l, f, d);
		if (op == LJ_BC_UNM)
			arg[1] = arg[0];
		return 2;
	case LJ_BC_ADDVN ... LJ_BC_MODVN:
		arg[0] = *lj_value_slot(l, f, b);
		arg[1] = lj_value_const(code, c);
		return 2;
	case LJ_BC_ADDNV ... LJ_BC_MODNV:
		arg[0] = lj_value_const(code, c);
		arg[1] = *lj_value_slot(l, f, b);
		return 2;
	case LJ_BC_CAT:
		if (b + 1 != c) /* of more operands, strings may be concatenated first */
			return 0;
		arg[0] = *lj_value_slot(l, f, b);
		arg[1] = *lj_value_slot(l, f, c);
		return 2;
	case LJ_BC_ADDVV ... LJ_BC_POW:
		arg[0] = *lj_value_slot(l, f, b);
		arg[1] = *lj_value_slot(l, f, c);
		return 2;
	case LJ_BC_TGETV:
	case LJ_BC_TGETS:
	case LJ_BC_TGETB:
	case LJ_BC_TSETV:
	case LJ_BC_TSETS:
	case LJ_BC_TSETB:
		arg[0] = *lj_value_slot(l, f, b);
		arg[1] = op == LJ_BC_TGETV || op == LJ_BC_TSETV	  ? *lj_value_slot(l, f, c)
			 : op == LJ_BC_TGETB || op == LJ_BC_TSETB ? lj_value_number(c)
								  : lj_value_string(code, c);
		if (op == LJ_BC_TGETV || op == LJ_BC_TGETS || op == LJ_BC_TGETB)
			return 2;
		arg[2] = va;
		return 3;
	default:
		return 0;
	}
}

/* Returns the metatable of object obj: loaded, or else stored last. 0: not known. */
static uint32_t metatable_of(const struct sim *l, uint32_t obj)
{
	const struct lj_trace *t = l->t;
	uint32_t ref, loaded = 0;

	for (ref = lj_value_bound(l); ref-- > LJ_REF_BIAS + 1;) {
		const struct lj_ins *ir = lj_ins_at(t, ref);

		/* no other field is a table */
		if ((ir->t & LJ_IRT_TYPE) != LJ_IRT_TAB || !lj_ref_ok(t, ir->op1))
			continue;
		if (ir->o == LJ_IR_FLOAD && ir->op1 == obj)
			loaded = ref;
		if (ir->o == LJ_IR_FSTORE && lj_ins_at(t, ir->op1)->op1 == obj)
			return loaded ? loaded : ir->op2;
	}
	return loaded;
}

/* True for the metatable of all strings, loaded from the VM's state (lj_ir_ggfload). */
static bool is_of_strings(const struct lj_trace *t, uint32_t table)
{
	return lj_ref_ok(t, table) && lj_ins_at(t, table)->o == LJ_IR_FLOAD &&
	       lj_ins_at(t, table)->op1 == LJ_REF_BIAS - 1; /* REF_NIL */
}

uint32_t lj_calls_index_table(const struct sim *l, uint32_t obj)
{
	const struct lj_trace *t = l->t;
	uint32_t ref, mt = obj ? metatable_of(l, obj) : 0;

	for (ref = LJ_REF_BIAS + 1; (mt || !obj) && ref < lj_recorded_end(t); ref++) {
		const struct lj_ins *ir = lj_ins_at(t, ref), *at;

		if (ir->o != LJ_IR_HLOAD || (ir->t & LJ_IRT_TYPE) != LJ_IRT_TAB ||
		    !lj_ref_ok(t, ir->op1))
			continue;
		at = lj_ins_at(t, ir->op1);
		if ((at->o == LJ_IR_HREFK || at->o == LJ_IR_HREF) &&
		    (obj ? lj_trace_table(t, at) == mt : is_of_strings(t, lj_trace_table(t, at))) &&
		    lj_string_is(&t->lj, l->mem, lj_trace_key(t, at), "__index"))
			return ref;
	}
	return 0;
}

/* Returns the guard of an object's metamethod, or of one along its chain of __index. */
static const struct func_guard *method_of(const struct calls *c, uint32_t obj, enum lj_mm mm)
{
	uint32_t n, i, mt;

	for (n = 0; n < LJ_CHAIN_MAX && obj; n++) {
		mt = metatable_of(c->l, obj);
		for (i = 0; i < c->nguards && mt; i++)
			if (c->guards[i].mm == mm && c->guards[i].table == mt)
				return &c->guards[i];
		obj = mm != LJ_MM_INDEX ? 0 : lj_calls_index_table(c->l, obj);
	}
	return NULL;
}

/* True if the trace found no value at an address in a table. */
static bool is_empty(const struct lj_trace *t, uint32_t memref)
{
	uint32_t ref;

	for (ref = memref + 1; ref < lj_recorded_end(t); ref++) {
		const struct lj_ins *ir = lj_ins_at(t, ref);

		if (ir->op1 == memref &&
		    (ir->o == LJ_IR_EQ || ((ir->o == LJ_IR_HLOAD || ir->o == LJ_IR_ALOAD) &&
					   (ir->t & LJ_IRT_TYPE) == LJ_IRT_NIL)))
			return true;
	}
	return false;
}

/* True if the trace found the key in the table itself. */
static bool has_key(const struct sim *l, uint32_t obj, const struct value *key)
{
	const struct lj_trace *t = l->t;
	uint32_t ref;

	for (ref = LJ_REF_BIAS + 1; ref < lj_recorded_end(t); ref++) {
		const struct lj_ins *ir = lj_ins_at(t, ref);

		if ((ir->o != LJ_IR_HREFK && ir->o != LJ_IR_HREF && ir->o != LJ_IR_AREF &&
		     ir->o != LJ_IR_NEWREF) ||
		    lj_trace_table(t, ir) != obj)
			continue;
		if ((key->kind == VAL_OBJ ? lj_trace_key(t, ir) == key->obj
					  : lj_value_is(l, key, ir->op2)) &&
		    !is_empty(t, ref))
			return true;
	}
	return false;
}

static bool has_methods(uint8_t type)
{
	return type == LJ_IRT_TAB || type == LJ_IRT_UDATA;
}

static enum calls_what this_one(const struct calls *c, const struct func_guard *g,
				struct callee *out)
{
	out->func = g->func;
	out->guard = (uint32_t)(g - c->guards) + 1;
	return CALLS_THIS;
}

/* A C type's metamethod, which is constant. */
static enum calls_what cdata_calls(const struct calls *c, uint32_t type, const char *name,
				   struct callee *out)
{
	uint64_t v;

	if (!type || !c->l->cdata)
		return CALLS_UNKNOWN;
	if (!lj_cdata_meta(c->l->cdata, type, name, &v) || LJ_TV_TYPE(v) != LJ_TFUNC)
		return CALLS_NOTHING;
	return lj_func_at(c->l->t, c->l->mem, LJ_TV_GCPTR(v), &out->func) ? CALLS_THIS
									  : CALLS_UNKNOWN;
}

bool lj_calls_method(const struct sim *l, const struct value *cdata, uint64_t gcstr,
		     struct value *out)
{
	uint32_t type = lj_value_ctype(l, cdata);
	uint64_t v;

	if (!type || !l->cdata || !lj_cdata_method(l->cdata, type, gcstr, &v) ||
	    LJ_TV_TYPE(v) != LJ_TFUNC)
		return false;
	*out = lj_value_object(LJ_TV_GCPTR(v), LJ_IRT_FUNC);
	return true;
}

static enum calls_what access_calls(const struct calls *c, uint32_t n, const struct value arg[3],
				    enum lj_mm mm, struct callee *out)
{
	uint8_t type = lj_value_type(c->l, &arg[0]);
	uint32_t obj = lj_value_ref(c->l, &arg[0]), ofs, of;
	const struct func_guard *g;

	if (!n || type == LJ_IRT_UNKNOWN)
		return CALLS_UNKNOWN;
	if (type == LJ_IRT_CDATA && arg[1].kind == VAL_OBJ && c->l->cdata &&
	    lj_cdata_field(c->l->cdata, lj_value_ctype(c->l, &arg[0]), arg[1].obj, &ofs, &of))
		return CALLS_NOTHING;
	if (type == LJ_IRT_CDATA)
		return cdata_calls(c, lj_value_ctype(c->l, &arg[0]), lj_mm_name(mm), out);
	if (!has_methods(type))
		return CALLS_NOTHING;
	if (!obj)
		return CALLS_UNKNOWN;
	g = method_of(c, obj, mm);
	if (!g)
		return CALLS_NOTHING;
	if (arg[1].kind == VAL_UNKNOWN)
		return CALLS_UNKNOWN;
	return has_key(c->l, obj, &arg[1]) ? CALLS_NOTHING : this_one(c, g, out);
}

static const struct func_guard *method_of_operand(const struct calls *c, const struct value *arg,
						  enum lj_mm mm)
{
	uint32_t obj = has_methods(lj_value_type(c->l, arg)) ? lj_value_ref(c->l, arg) : 0;
	const struct func_guard *g = obj ? method_of(c, obj, mm) : NULL;

	if (obj && !g && mm == LJ_MM_LE) /* a <= b as not b < a */
		g = method_of(c, obj, LJ_MM_LT);
	return g;
}

bool lj_calls_of(const struct calls *c, const struct value *operand, enum lj_mm mm)
{
	return method_of_operand(c, operand, mm);
}

/* Arithmetic and comparisons: the first operand's metamethod precedes the second's. */
static enum calls_what operator_calls(const struct calls *c, uint32_t n, const struct value arg[3],
				      enum lj_mm mm, struct callee *out)
{
	uint8_t first = lj_value_type(c->l, &arg[0]), second = lj_value_type(c->l, &arg[1]);
	bool is_eq = mm == LJ_MM_EQ;
	const struct func_guard *g;
	enum calls_what what;
	uint32_t i;

	if (!n)
		return CALLS_UNKNOWN;
	if (first == LJ_IRT_CDATA || second == LJ_IRT_CDATA) {
		what = first == LJ_IRT_CDATA
			       ? cdata_calls(c, lj_value_ctype(c->l, &arg[0]), lj_mm_name(mm), out)
			       : CALLS_NOTHING;
		return what != CALLS_NOTHING || second != LJ_IRT_CDATA
			       ? what
			       : cdata_calls(c, lj_value_ctype(c->l, &arg[1]), lj_mm_name(mm), out);
	}
	if (is_eq && first != second && first != LJ_IRT_UNKNOWN && second != LJ_IRT_UNKNOWN)
		return CALLS_NOTHING;
	for (i = 0; i < n; i++) {
		g = method_of_operand(c, &arg[i], mm);
		if (g)
			return this_one(c, g, out);
	}
	return first == LJ_IRT_UNKNOWN || second == LJ_IRT_UNKNOWN ? CALLS_UNKNOWN : CALLS_NOTHING;
}

/* A closure's prototype may be guarded, although the closure is constant. */
static void find_own_guard(const struct calls *c, uint64_t addr, struct callee *out)
{
	const struct lj_trace *t = c->l->t;
	uint32_t i, on;

	for (i = 0; i < c->nguards; i++) {
		on = c->guards[i].on;
		if (on < LJ_REF_BIAS && lj_ref_ok(t, on) && lj_ins_at(t, on)->o == LJ_IR_KGC &&
		    lj_trace_const(t, on) == addr) {
			out->guard = i + 1;
			return;
		}
	}
}

/* Finds the function of a value, from a constant or a guard. */
static bool function_of(const struct calls *c, const struct value *v, struct callee *out)
{
	const struct lj_trace *t = c->l->t;
	uint32_t ref = lj_value_ref(c->l, v), i;

	if (v->kind == VAL_OBJ || (ref && ref < LJ_REF_BIAS)) {
		if (v->kind == VAL_OBJ ? !lj_func_at(t, c->l->mem, v->obj, &out->func)
				       : !lj_func_of(t, c->l->mem, ref, &out->func))
			return false;
		find_own_guard(c, out->func.addr, out);
		return true;
	}
	for (i = 0; i < c->nguards; i++)
		if (ref && c->guards[i].on == ref) {
			this_one(c, &c->guards[i], out);
			return true;
		}
	return false;
}

uint64_t lj_calls_function(const struct calls *c, const struct value *v)
{
	struct callee is;

	return function_of(c, v, &is) ? is.func.addr : 0;
}

const char *lj_calls_builtin(const struct calls *c, const struct value *v)
{
	struct callee is;

	return function_of(c, v, &is) ? lj_ffname(c->names, is.func.ffid) : NULL;
}

/* The callee of pcall() or xpcall() is its first argument. */
static enum calls_what protected_call(const struct calls *c, const struct lj_tframe *f,
				      uint32_t ins, struct callee *out)
{
	const char *name = lj_ffname(c->names, out->func.ffid);
	struct callee to = {.func.code = -1, .via_pcall = out->func.ffid};

	if (!name || (strcmp(name, "pcall") != 0 && strcmp(name, "xpcall") != 0))
		return CALLS_THIS;
	if (!function_of(c, lj_value_arg(c->l, f, ins, 0), &to))
		return CALLS_UNKNOWN;
	to.above = (uint8_t)(lj_frame_slots(c->l->t) + (*name == 'x'));
	if (to.guard < out->guard)
		to.guard = out->guard;
	*out = to;
	return CALLS_THIS;
}

/* A ctype object allocates a cdata, or calls __new; another cdata calls __call. */
static enum calls_what cdata_called(const struct calls *c, const struct value *v,
				    struct callee *out)
{
	uint32_t named = lj_value_ctype_named(c->l, v);
	enum calls_what what = named ? cdata_calls(c, named, "__new", out)
				     : cdata_calls(c, lj_value_ctype(c->l, v), "__call", out);

	out->called = what == CALLS_THIS;
	return what == CALLS_NOTHING ? CALLS_THIS : what; /* a built-in function */
}

static enum calls_what call_calls(const struct calls *c, const struct lj_tframe *f, uint32_t ins,
				  struct callee *out)
{
	bool iterates = lj_bc_op(ins) == LJ_BC_ITERC || lj_bc_op(ins) == LJ_BC_ITERN;
	uint32_t a = lj_bc_a(ins);
	const struct func_guard *g;
	const struct value *v;
	uint8_t type;

	if (iterates && a < 3)
		return CALLS_UNKNOWN;
	v = lj_value_slot(c->l, f, iterates ? a - 3 : a);
	type = lj_value_type(c->l, v);
	if (has_methods(type)) {
		g = method_of(c, lj_value_ref(c->l, v), LJ_MM_CALL);
		if (!g)
			return CALLS_UNKNOWN;
		out->called = true;
		return this_one(c, g, out);
	}
	if (type == LJ_IRT_CDATA)
		return cdata_called(c, v, out);
	if (type != LJ_IRT_FUNC || !function_of(c, v, out))
		return CALLS_UNKNOWN;
	return out->func.ffid > 1 ? protected_call(c, f, ins, out) : CALLS_THIS;
}

enum calls_what lj_calls(const struct calls *c, const struct lj_tframe *f, uint32_t ins,
			 struct callee *out)
{
	enum lj_mm mm = lj_bc_mm(ins);
	struct value arg[3];
	uint32_t n;

	*out = (struct callee){.func.code = -1};
	if (lj_bc_is_call(ins))
		return call_calls(c, f, ins, out);
	n = lj_operands(c->l, f, ins, arg);
	if (mm == LJ_MM_INDEX || mm == LJ_MM_NEWINDEX)
		return access_calls(c, n, arg, mm, out);
	return operator_calls(c, n, arg, mm, out);
}

int lj_calls_arguments(const struct sim *l, uint32_t ins)
{
	uint8_t op = lj_bc_op(ins);
	bool multiple = op == LJ_BC_CALLM || op == LJ_BC_CALLMT;
	int n = op == LJ_BC_CALL || op == LJ_BC_CALLM ? lj_bc_c(ins) : (int)lj_bc_d(ins);

	if (op < LJ_BC_CALLM || op > LJ_BC_CALLT || (multiple && l->multres < 0))
		return -1;
	n += multiple ? l->multres : -1;
	return n < SLOTS ? n : -1;
}
