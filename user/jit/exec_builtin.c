// SPDX-License-Identifier: BSD-2-Clause
/* Symbolic execution of calls of built-in functions (layer 2): their IR, if any, and their
 * results. */
#include <string.h>

#include "lua/lj/table.h"
#include "callee.h"
#include "exec.h"
#include "lua/lj/bc.h"

/* select(): the number of arguments after the first, or one of them. */
static struct value selected(struct sim *l, const struct lj_tframe *f, uint32_t ins)
{
	struct value *which = lj_value_arg(l, f, ins, 0);
	int n = lj_calls_arguments(l, ins);

	if (n > 0 && which->kind == VAL_OBJ && lj_string_is(&l->t->lj, l->mem, which->obj, "#"))
		return lj_value_number(n - 1);
	if (n > 0 && which->kind == VAL_NUM && which->num >= 1 && which->num < n && n <= ARGUMENTS)
		return *lj_value_arg(l, f, ins, (uint32_t)which->num);
	return (struct value){.kind = VAL_UNKNOWN, .by = l->step};
}

/* Returns the operations of a function of bit; for other functions BUILTIN. */
static op_set ops_of(const char *name)
{
	static const struct {
		const char *name;
		op_set ops;
	} bits[] = {
		{"bit.tobit", OPS(TOBIT)},
		{"bit.bnot", OPS(BNOT) | OPS(BXOR)},
		{"bit.bswap", OPS(BSWAP)},
		{"bit.lshift", OPS(BSHL)},
		{"bit.rshift", OPS(BSHR)},
		{"bit.arshift", OPS(BSAR)},
		{"bit.rol", OPS(BROL) | OPS(BROR)},
		{"bit.ror", OPS(BROL) | OPS(BROR)},
		{"bit.band", OPS(BAND)},
		{"bit.bor", OPS(BOR)},
		{"bit.bxor", OPS(BXOR)},
	};
	size_t i;

	for (i = 0; name && i < sizeof(bits) / sizeof(bits[0]); i++)
		if (!strcmp(name, bits[i].name))
			return bits[i].ops;
	return BUILTIN;
}

/* rawget(): the value under a key in a table. */
static struct value raw_value(struct sim *l, const struct lj_tframe *f, uint32_t ins)
{
	return lj_step_loaded(l, lj_value_find(l, lj_step_is, OPS(AREF) | OPS(HREF) | OPS(HREFK),
					       lj_value_arg(l, f, ins, 0),
					       lj_value_arg(l, f, ins, 1)));
}

/* Returns the address of a string's character number `index` + ahead, at which string.byte() and
 * sub() begin. 0: the trace has none, or it is not known. */
static uint32_t find_character(struct sim *l, const struct value *str, const struct value *index,
			       uint32_t ahead)
{
	const struct lj_trace *t = l->t;
	uint32_t ref = lj_value_ref(l, index);
	struct lj_affine want = {.ofs = index->num}, is;

	if (ref)
		want = lj_value_affine(t, ref);
	else if (index->kind != VAL_NUM)
		return 0;
	want.ofs += ahead;
	l->visits += l->hi - LJ_REF_BIAS;
	for (ref = l->hi; ref-- > LJ_REF_BIAS + 1;) {
		const struct lj_ins *ir = lj_ins_at(t, ref);

		if (ir->o != LJ_IR_STRREF || !lj_value_is(l, str, ir->op1))
			continue;
		is = lj_value_affine(t, ir->op2);
		if (is.base == want.base && is.ofs == want.ofs - 1) {
			lj_claim_ref(l, ref);
			return ref;
		}
	}
	return 0;
}

/* True if a function may read a string from a character on; so may an unknown one (NULL). */
static bool begins_at_character(const char *name)
{
	return !name || !strcmp(name, "string.byte") || !strcmp(name, "string.sub");
}

/* True for operations that become a chain for more than two arguments. */
static bool takes_many(uint8_t o)
{
	return (o >= LJ_IR_BAND && o <= LJ_IR_BXOR) || o == LJ_IR_MIN || o == LJ_IR_MAX;
}

/* Returns the result of a built-in function that becomes code; 0: not known. */
static uint32_t find_builtin(struct sim *l, const struct lj_tframe *f, uint32_t ins,
			     struct value *arg, const char *name)
{
	op_set ops = ops_of(name);
	int n = lj_calls_arguments(l, ins), i;
	struct value first = lj_value_number(1);
	uint32_t of, ref = 0;
	uint8_t o;

	if (lj_value_type(l, arg) == LJ_IRT_STR && begins_at_character(name))
		ref = find_character(l, arg, n > 1 ? lj_value_arg(l, f, ins, 1) : &first, 0);
	if (!ref && ops != BUILTIN && n >= 2)
		ref = lj_step_bits(l, f, ins, ops);
	else if (!ref && arg->kind != VAL_UNKNOWN)
		ref = lj_value_find(l, lj_step_is, ops, arg, NULL);
	if (!ref)
		return 0;
	o = lj_ins_at(l->t, ref)->o;
	/* A substring. One of a single character that is only compared is not allocated: the
	 * comparison loads its byte. */
	if (o == LJ_IR_STRREF && name && !strcmp(name, "string.sub"))
		return lj_step_through(l, OPS(SNEW), ref, NULL);
	if (o == LJ_IR_STRREF) { /* a string's byte */
		of = lj_step_through(l, OPS(XLOAD) | OPS(SNEW), ref, NULL);
		return of ? of : ref;
	}
	for (i = 2; i < n && i < ARGUMENTS && takes_many(o); i++) { /* further arguments */
		of = lj_step_through(l, (op_set)1 << o, ref, lj_value_arg(l, f, ins, (uint32_t)i));
		ref = of ? of : ref;
	}
	return ref;
}

/* The argument of bit.tobit() is an integer already, or became one when it was computed. */
static struct value not_converted(struct sim *l, const struct value *arg)
{
	uint32_t ref = lj_step_next(l, LJ_IR_TOBIT);
	struct value number = *arg;

	if (ref)
		lj_claim_ref(l, ref);
	else
		l->t->history[l->step].folded = true;
	if (lj_value_type(l, arg) == LJ_IRT_INT) {
		lj_bind_ref(l, &number, lj_value_ref(l, arg));
		return number;
	}
	return (struct value){.kind = VAL_UNKNOWN, .by = l->step};
}

static bool makes_in_buffer(const char *name, int arguments)
{
	static const char *const names[] = {"string.upper",  "string.lower", "string.reverse",
					    "string.format", "string.rep",   "table.concat",
					    "bit.tohex"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return !strcmp(name, "string.char") && arguments > 1;
}

/* True for strings computed from constants: folded to constants, whose content is not computed. */
static bool is_folded(struct sim *l, const struct lj_tframe *f, uint32_t ins, const char *name)
{
	int n = lj_calls_arguments(l, ins), i;

	if (n < 1 || n > ARGUMENTS ||
	    (strcmp(name, "string.sub") != 0 && !makes_in_buffer(name, n)))
		return false;
	for (i = 0; i < n; i++)
		if (!lj_value_is_known(lj_value_arg(l, f, ins, (uint32_t)i)))
			return false;
	l->t->history[l->step].folded = true;
	return true;
}

/* Returns the first result of a call of a built-in function: one instruction, or an argument. */
struct value lj_step_made(struct sim *l, const struct lj_tframe *f, uint32_t ins)
{
	uint32_t a = lj_bc_a(ins), ref;
	struct value *arg = lj_value_arg(l, f, ins, 0), made = {.kind = VAL_UNKNOWN, .by = l->step};
	const char *name = lj_calls_builtin(l->calls, lj_value_slot(l, f, a));

	if (!lj_calls_arguments(l, ins) && lj_value_type(l, lj_value_slot(l, f, a)) != LJ_IRT_CDATA)
		return made;
	if (name && (!strcmp(name, "setmetatable") || !strcmp(name, "assert") ||
		     (!strcmp(name, "tostring") && lj_value_type(l, arg) == LJ_IRT_STR)))
		return *arg;
	if (name && !strcmp(name, "type") && lj_value_type(l, arg) != LJ_IRT_UNKNOWN)
		return (struct value){
			.kind = VAL_TYPENAME, .type = lj_value_type(l, arg), .by = -1};
	if (name && !strcmp(name, "select"))
		return selected(l, f, ins);
	if (name && lj_step_folds(l, f, ins, name, &made))
		return made;
	if (name && is_folded(l, f, ins, name))
		return lj_value_object(0, LJ_IRT_STR);
	if (name && makes_in_buffer(name, lj_calls_arguments(l, ins))) {
		ref = lj_step_buffer(l, NULL);
		if (ref)
			lj_value_set(&made, ref);
		return made;
	}
	if (name && !strcmp(name, "rawget"))
		return raw_value(l, f, ins);
	if (lj_value_type(l, lj_value_slot(l, f, a)) == LJ_IRT_CDATA ||
	    (name && !strcmp(name, "ffi.new")))
		ref = lj_step_new_cdata(l);
	else
		ref = find_builtin(l, f, ins, arg, name);
	if (ref)
		lj_value_set(&made, ref);
	else if (ops_of(name) == OPS(TOBIT))
		return not_converted(l, arg);
	else if (ops_of(name) == OPS(BAND))
		made.bits_of =
			lj_value_ref(l, arg->kind == VAL_NUM ? lj_value_arg(l, f, ins, 1) : arg);
	return made;
}

/* Copies an element of a table that is a copy of a template (TDUP): LuaJIT forwards it without a
 * load or a bounds check. False: it is no table, or cannot be read. */
static bool copied_element(const struct sim *l, const struct value *table, double idx,
			   struct value *out)
{
	uint32_t ref = lj_value_ref(l, table), asize;
	const struct lj_layout *lj = &l->t->lj;
	uint64_t from, array, v = ~0ULL; /* nil */

	if (!lj_ref_ok(l->t, ref) || lj_ins_at(l->t, ref)->o != LJ_IR_TDUP || !(idx >= 0))
		return false;
	from = lj_trace_const(l->t, lj_ins_at(l->t, ref)->op1);
	if (lj_reference(lj, l->mem, from + LJ_OFF(lj, TAB_ARRAY), &array) ||
	    mem_read(l->mem, &asize, sizeof(asize), from + LJ_OFF(lj, TAB_ASIZE)) ||
	    (idx < asize && lj_tvalue(lj, l->mem, array + 8 * (uint64_t)idx, &v)))
		return false;
	*out = LJ_TV_TYPE(v) < 0 && LJ_TV_TYPE(v) >= LJ_TUDATA
		       ? lj_value_object(LJ_TV_GCPTR(v), (uint8_t)~LJ_TV_TYPE(v))
		       : lj_value_number(0);
	if (out->kind == VAL_NUM)
		memcpy(&out->num, &v, sizeof(v));
	return true;
}

/* The iterator of ipairs(): the next index and value; nil at the end. */
static void step_ipairs(struct sim *l, const struct lj_tframe *f, uint32_t ins)
{
	uint32_t a = lj_bc_a(ins), ref, at;
	bool known;
	struct value *control = lj_value_slot(l, f, a - 1), next, element, one = lj_value_number(1);

	next = (struct value){.kind = VAL_UNKNOWN, .by = l->step};
	ref = control->kind == VAL_NUM
		      ? 0
		      : lj_value_find(l, lj_step_is, OPS(ADD) | OPS(ADDOV), control, &one);
	if (control->kind == VAL_NUM)
		next = lj_value_number(control->num + 1);
	else if (ref)
		lj_value_set(&next, ref);
	at = next.kind == VAL_UNKNOWN ? 0
				      : lj_value_find(l, lj_step_is, OPS(AREF) | OPS(HREF),
						      lj_value_slot(l, f, a - 2), &next);
	element = lj_step_loaded(l, at);
	known = element.kind != VAL_UNKNOWN ||
		(next.kind == VAL_NUM &&
		 copied_element(l, lj_value_slot(l, f, a - 2), next.num, &element));
	if (lj_bc_b(ins) > 2)
		*lj_value_slot(l, f, a + 1) = element;
	if ((known && lj_value_type(l, &element) == LJ_IRT_NIL) ||
	    (!at && !known && lj_step_beyond(l, lj_value_slot(l, f, a - 2), &next)))
		next = lj_value_object(0, LJ_IRT_NIL);
	else if (!at && !known) /* it may be the end */
		lj_set_unknown(l, &next);
	*lj_value_slot(l, f, a) = next;
}

/* ITERN: a call that searches, the next index, and the loads of key and value (rec_itern,
 * lj_record_next). */
static void step_next(struct sim *l, const struct lj_tframe *f, uint32_t ins)
{
	uint32_t a = lj_bc_a(ins), found = lj_step_next(l, LJ_IR_CALLL), ref;
	struct value *loaded[2] = {lj_value_slot(l, f, a + 1), lj_value_slot(l, f, a)};

	lj_set_unknown(l, lj_value_slot(l, f, a - 1));
	lj_set_unknown(l, loaded[0]);
	lj_set_unknown(l, loaded[1]);
	if (!found)
		return;
	lj_claim_ref(l, found);
	for (ref = found + 1; ref < l->hi && lj_ins_at(l->t, ref)->op1 == found; ref++) {
		const struct lj_ins *ir = lj_ins_at(l->t, ref);

		lj_claim_ref(l, ref);
		if (ir->o == LJ_IR_HIOP)
			lj_value_set(lj_value_slot(l, f, a - 1), ref);
		else if (ir->o == LJ_IR_VLOAD && ir->op2 < 2)
			lj_value_set(loaded[ir->op2], ref);
	}
}

/* ipairs(): the iterator, which is its own upvalue; the table; 0 (recff_ipairs). */
static void step_ipairs_begin(struct sim *l, const struct lj_tframe *f, uint32_t ins,
			      struct value results[RESULTS])
{
	uint32_t a = lj_bc_a(ins);
	uint64_t fn = lj_calls_function(l->calls, lj_value_slot(l, f, a)), v;

	if (!fn || lj_value_type(l, lj_value_arg(l, f, ins, 0)) != LJ_IRT_TAB ||
	    lj_tvalue(&l->t->lj, l->mem, fn + LJ_OFF(&l->t->lj, FUNC_UPVALUE), &v) ||
	    LJ_TV_TYPE(v) != LJ_TFUNC)
		return;
	results[0] = lj_value_object(LJ_TV_GCPTR(v), LJ_IRT_FUNC);
	results[1] = *lj_value_arg(l, f, ins, 0);
	results[2] = lj_value_number(0);
}

/* True if it returns exactly one value. */
static bool returns_one(const char *name, int arguments)
{
	if (!strncmp(name, "math.", 5))
		return strcmp(name, "math.modf") != 0 && strcmp(name, "math.frexp") != 0;
	return !strncmp(name, "bit.", 4) || !strcmp(name, "string.sub") ||
	       !strcmp(name, "string.char") || makes_in_buffer(name, arguments);
}

/* string.byte(): results from the second character on. */
static void find_bytes(struct sim *l, const struct lj_tframe *f, uint32_t ins,
		       struct value results[RESULTS])
{
	uint32_t i, ref;

	for (i = 1; i < RESULTS && i + 1 < lj_bc_b(ins); i++) {
		ref = find_character(l, lj_value_arg(l, f, ins, 0), lj_value_arg(l, f, ins, 1), i);
		if (ref)
			lj_step_result(l, &results[i], lj_step_through(l, OPS(XLOAD), ref, NULL));
	}
}

/* string.find() of a plain string: a search, a guard of its outcome, and two results computed from
 * the address found (recff_string_find). */
static void step_string_find(struct sim *l, struct value results[RESULTS])
{
	uint32_t found = lj_step_next(l, LJ_IR_CALLN), guard, at, from;
	struct value pos, one = lj_value_number(1);

	if (!found)
		return;
	lj_claim_ref(l, found);
	guard = lj_step_through(l, OPS(EQ) | OPS(NE), found, NULL);
	if (guard && lj_ins_at(l->t, guard)->o == LJ_IR_EQ) {
		results[0] = lj_value_object(0, LJ_IRT_NIL);
		return;
	}
	at = lj_step_through(l, OPS(SUB), found, NULL);
	from = at ? lj_step_through(l, OPS(ADD), at, NULL) : 0;
	if (from && lj_ins_at(l->t, from)->op2 > LJ_REF_BIAS) /* not searched from its start */
		at = from;
	if (!at)
		return;
	lj_value_set(&pos, at);
	lj_step_result(l, &results[0], lj_value_find(l, lj_step_is, OPS(ADD), &pos, &one));
	lj_step_result(l, &results[1], lj_step_through(l, OPS(ADD), at, NULL));
}

/* True if it stores nothing but its results. */
static bool stores_nothing(const char *name)
{
	static const char *const names[] = {"ipairs", "ipairs_aux", "type",  "select",
					    "rawget", "tonumber",   "assert"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return !strncmp(name, "math.", 5) || !strncmp(name, "bit.", 4) ||
	       !strncmp(name, "string.", 7);
}

void lj_step_builtin(struct sim *l, const struct lj_tframe *f, uint32_t ins)
{
	bool iterates = lj_bc_op(ins) == LJ_BC_ITERC;
	uint32_t a = lj_bc_a(ins), i;
	const char *name = lj_calls_builtin(l->calls, lj_value_slot(l, f, iterates ? a - 3 : a));
	struct value results[RESULTS];

	l->t->history[l->step].pure = name && stores_nothing(name);
	if (iterates && name && !strcmp(name, "ipairs_aux")) {
		step_ipairs(l, f, ins);
		return;
	}
	if (lj_bc_op(ins) == LJ_BC_ITERN) {
		step_next(l, f, ins);
		return;
	}
	for (i = 0; i < RESULTS; i++)
		lj_set_unknown(l, &results[i]);
	if (name && !strcmp(name, "string.find")) {
		step_string_find(l, results);
	} else if (name && !strcmp(name, "ipairs")) {
		step_ipairs_begin(l, f, ins, results);
	} else if (!iterates) {
		results[0] = lj_step_made(l, f, ins);
		if (name && !strcmp(name, "string.byte") && lj_calls_arguments(l, ins) >= 3)
			find_bytes(l, f, ins, results);
	}
	for (i = 0; i < RESULTS && i + 1 < lj_bc_b(ins); i++)
		*lj_value_slot(l, f, a + i) = results[i];
	if (!lj_bc_b(ins)) {
		bool one = name && returns_one(name, lj_calls_arguments(l, ins));

		*lj_value_slot(l, f, a) = results[0];
		l->multres = results[0].kind == VAL_UNKNOWN && !one ? -1 : 1;
	}
}
