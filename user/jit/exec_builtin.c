// SPDX-License-Identifier: BSD-2-Clause
/* Symbolic execution of calls of built-in functions (layer 2): their IR, if any, and their
 * results. */
#include <string.h>

#include "lua/lj/table.h"
#include "builtin.h"
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

/* True if a built-in function may have become the instruction. One that is another function's result is not, though
 * the operation may be the same: which C function is called is not known. */
static bool is_made_by(const struct lj_trace *t, const struct lj_ins *ir, op_set builtin)
{
	int32_t step = *lj_label_of(t, t->nk + (uint32_t)(ir - t->ir));

	return lj_builtin_is((uint32_t)builtin, ir->o, ir->op2) &&
	       (builtin || !lj_step_is(t, ir, LOADS | STORES | OPS(ALEN))) &&
	       (step < 0 || !lj_step_is(t, ir, CALLS | OPS(FPMATH)) ||
		!lj_bc_is_call(lj_step_ins(t, (uint32_t)step)) ||
		t->history[step].builtin == builtin);
}

/* Returns the next call of a C function that takes one of the arguments; 0: none. */
static uint32_t find_call(struct sim *l, const struct lj_tframe *f, uint32_t ins)
{
	uint32_t ref = l->cur > l->lo ? l->cur : l->lo;
	int n = lj_calls_arguments(l, ins);

	if (n > ARGUMENTS)
		n = ARGUMENTS;
	l->visits += l->hi > ref ? l->hi - ref : 0;
	for (; n > 0 && ref < l->hi; ref++)
		if (lj_step_is(l->t, lj_ins_at(l->t, ref), CALLS) && *lj_label_of(l->t, ref) < 0 &&
		    lj_step_takes(l, ref, f, lj_bc_a(ins) + lj_frame_slots(l->t), (uint32_t)n)) {
			lj_claim_ref(l, ref);
			return ref;
		}
	return 0;
}

/* Returns the result of a built-in function that becomes code; 0: not known. */
static uint32_t find_builtin(struct sim *l, const struct lj_tframe *f, uint32_t ins,
			     struct value *arg, const char *name)
{
	uint32_t builtin = l->t->history[l->step].builtin;
	op_set ops = lj_builtin_ops(builtin);
	bool bits = name && !strncmp(name, "bit.", 4);
	int n = lj_calls_arguments(l, ins), i;
	struct value first = lj_value_number(1);
	uint32_t of, ref = 0;
	uint8_t o;

	if (lj_value_type(l, arg) == LJ_IRT_STR && begins_at_character(name))
		ref = find_character(l, arg, n > 1 ? lj_value_arg(l, f, ins, 1) : &first, 0);
	if (!ref && bits && n >= 2)
		ref = lj_step_bits(l, f, ins, ops);
	else if (!ref && arg->kind != VAL_UNKNOWN && (builtin || !name))
		ref = lj_value_find(l, is_made_by, builtin, arg, NULL);
	if (!ref && ops & CALLS)
		ref = find_call(l, f, ins);
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

/* True if the string of the step's function is made in a buffer. A single character is not. */
static bool makes_in_buffer(const struct sim *l, const char *name, int arguments)
{
	return lj_builtin_in_buffer(l->t->history[l->step].builtin) &&
	       (strcmp(name, "string.char") != 0 || arguments > 1);
}

/* True for a string.format() whose string is one value's: its format is a single directive. */
static bool formats_one(const struct sim *l, const struct value *format)
{
	static const char *const single[] = {"%d", "%i", "%s", "%c"};
	size_t i;

	if (format->kind != VAL_OBJ || format->type != LJ_IRT_STR)
		return false;
	for (i = 0; i < sizeof(single) / sizeof(single[0]); i++)
		if (lj_string_is(&l->t->lj, l->mem, format->obj, single[i]))
			return true;
	return false;
}

/* Returns the string that a function makes in a buffer, or of one value without it. The next buffer, whatever it takes,
 * if the number of arguments is not known. */
static uint32_t find_string(struct sim *l, const struct lj_tframe *f, uint32_t ins,
			    const char *name)
{
	int arguments = lj_calls_arguments(l, ins);
	uint32_t n = arguments < 0 ? 0 : (uint32_t)arguments, skip;
	struct value *one = lj_value_arg(l, f, ins, 1);

	skip = n > 1 && !strcmp(name, "string.format"); /* the format is folded */
	if (!skip || n != 2 || !formats_one(l, lj_value_arg(l, f, ins, 0)))
		return lj_step_buffer(l, f, lj_bc_a(ins) + lj_frame_slots(l->t) + skip, n - skip);
	return lj_value_type(l, one) == LJ_IRT_STR ? lj_value_ref(l, one)
	       : one->kind == VAL_UNKNOWN	   ? 0
					  : lj_value_find(l, lj_step_is, OPS(TOSTR), one, NULL);
}

/* True for strings computed from constants: folded to constants, whose content is not computed. */
static bool is_folded(struct sim *l, const struct lj_tframe *f, uint32_t ins, const char *name)
{
	int n = lj_calls_arguments(l, ins), i;

	if (n < 1 || n > ARGUMENTS ||
	    (strcmp(name, "string.sub") != 0 && !makes_in_buffer(l, name, n)))
		return false;
	for (i = 0; i < n; i++)
		if (!lj_value_is_known(lj_value_arg(l, f, ins, (uint32_t)i)))
			return false;
	l->t->history[l->step].folded = true;
	return true;
}

/* assert(), setmetatable() */
static bool step_first(struct sim *l, const struct lj_tframe *f, uint32_t ins, struct value *made)
{
	*made = *lj_value_arg(l, f, ins, 0);
	return true;
}

static bool step_tostring(struct sim *l, const struct lj_tframe *f, uint32_t ins,
			  struct value *made)
{
	return lj_value_type(l, lj_value_arg(l, f, ins, 0)) == LJ_IRT_STR &&
	       step_first(l, f, ins, made);
}

static bool step_type(struct sim *l, const struct lj_tframe *f, uint32_t ins, struct value *made)
{
	uint8_t type = lj_value_type(l, lj_value_arg(l, f, ins, 0));

	if (type != LJ_IRT_UNKNOWN)
		*made = (struct value){.kind = VAL_TYPENAME, .type = type, .by = -1};
	return type != LJ_IRT_UNKNOWN;
}

static bool step_select(struct sim *l, const struct lj_tframe *f, uint32_t ins, struct value *made)
{
	*made = selected(l, f, ins);
	return true;
}

static bool step_tonumber(struct sim *l, const struct lj_tframe *f, uint32_t ins,
			  struct value *made)
{
	return l->cdata && lj_step_tonumber(l, lj_value_arg(l, f, ins, 0), made);
}

static bool step_pow(struct sim *l, const struct lj_tframe *f, uint32_t ins, struct value *made)
{
	if (lj_calls_arguments(l, ins) != 2)
		return false;
	*made = lj_step_power(l, lj_value_arg(l, f, ins, 0), lj_value_arg(l, f, ins, 1));
	return true;
}

static bool step_insert(struct sim *l, const struct lj_tframe *f, uint32_t ins, struct value *made)
{
	(void)made;
	if (lj_calls_arguments(l, ins) != 2)
		return false;
	lj_step_append(l, lj_value_arg(l, f, ins, 0), lj_value_arg(l, f, ins, 1));
	return true;
}

static bool step_rawset(struct sim *l, const struct lj_tframe *f, uint32_t ins, struct value *made)
{
	if (lj_calls_arguments(l, ins) != 3)
		return false;
	lj_step_rawset(l, lj_value_arg(l, f, ins, 0), lj_value_arg(l, f, ins, 1),
		       lj_value_arg(l, f, ins, 2));
	return step_first(l, f, ins, made);
}

static bool step_rawget(struct sim *l, const struct lj_tframe *f, uint32_t ins, struct value *made)
{
	*made = raw_value(l, f, ins);
	return true;
}

/* The result, true or false, has only a guard. */
static bool step_rawequal(struct sim *l, const struct lj_tframe *f, uint32_t ins,
			  struct value *made)
{
	(void)made;
	if (lj_calls_arguments(l, ins) == 2)
		lj_value_find(l, lj_step_is, OPS(EQ) | OPS(NE), lj_value_arg(l, f, ins, 0),
			      lj_value_arg(l, f, ins, 1));
	return true;
}

static bool step_getmetatable(struct sim *l, const struct lj_tframe *f, uint32_t ins,
			      struct value *made)
{
	(void)made;
	lj_step_metatable(l, lj_value_ref(l, lj_value_arg(l, f, ins, 0)));
	return true;
}

/* Built-in functions that leave no instruction of their own, or several. Each handler copies the first result; false:
 * it is not known, as any other function's. */
static const struct {
	const char *name;
	bool (*step)(struct sim *l, const struct lj_tframe *f, uint32_t ins, struct value *made);
} executed[] = {
	{"assert", step_first},	 {"setmetatable", step_first}, {"getmetatable", step_getmetatable},
	{"type", step_type},	 {"select", step_select},      {"rawequal", step_rawequal},
	{"rawget", step_rawget}, {"rawset", step_rawset},      {"tostring", step_tostring},
	{"math.pow", step_pow},	 {"tonumber", step_tonumber},  {"table.insert", step_insert},
};

static bool is_executed(struct sim *l, const struct lj_tframe *f, uint32_t ins, const char *name,
			struct value *made)
{
	size_t i;

	for (i = 0; i < sizeof(executed) / sizeof(executed[0]); i++)
		if (!strcmp(name, executed[i].name))
			return executed[i].step(l, f, ins, made);
	return false;
}

/* Returns the first result of a call of a built-in function: one instruction, or an argument. */
struct value lj_step_made(struct sim *l, const struct lj_tframe *f, uint32_t ins)
{
	uint32_t a = lj_bc_a(ins), ref;
	struct value *arg = lj_value_arg(l, f, ins, 0), made = {.kind = VAL_UNKNOWN, .by = l->step};
	bool cdata = lj_value_type(l, lj_value_slot(l, f, a)) == LJ_IRT_CDATA;
	const char *name = lj_calls_builtin(l->calls, lj_value_slot(l, f, a));

	l->t->history[l->step].builtin = lj_builtin(name) & 0x7f;
	if (!lj_calls_arguments(l, ins) && !cdata)
		return made;
	if (name && (is_executed(l, f, ins, name, &made) || lj_step_folds(l, f, ins, name, &made)))
		return made;
	if (name && is_folded(l, f, ins, name))
		return lj_value_object(0, LJ_IRT_STR);
	if (cdata || (name && !strcmp(name, "ffi.new")))
		ref = lj_step_new_cdata(l);
	else if (name && makes_in_buffer(l, name, lj_calls_arguments(l, ins)))
		ref = find_string(l, f, ins, name);
	else
		ref = find_builtin(l, f, ins, arg, name);
	if (ref)
		lj_value_set(&made, ref);
	else if (name && !strcmp(name, "bit.tobit"))
		return not_converted(l, arg);
	else if (name && !strcmp(name, "bit.band"))
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
static bool returns_one(const struct sim *l, const char *name, int arguments)
{
	if (!strncmp(name, "math.", 5))
		return strcmp(name, "math.modf") != 0 && strcmp(name, "math.frexp") != 0;
	return !strncmp(name, "bit.", 4) || !strcmp(name, "string.sub") ||
	       !strcmp(name, "string.char") || makes_in_buffer(l, name, arguments);
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
		bool one = name && returns_one(l, name, lj_calls_arguments(l, ins));

		*lj_value_slot(l, f, a) = results[0];
		l->multres = results[0].kind == VAL_UNKNOWN && !one ? -1 : 1;
	}
}
