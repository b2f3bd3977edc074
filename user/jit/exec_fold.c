// SPDX-License-Identifier: BSD-2-Clause
/* Constant folding of built-in functions (layer 2): a call with constant arguments leaves no IR
 * (kfold_fpmath and others), nor does rounding an integer. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "callee.h"
#include "exec.h"
#include "lua/lj/bc.h"

static const struct {
	const char *name;
	double (*of)(double);
} functions[] = {
	{"math.floor", floor}, {"math.ceil", ceil}, {"math.sqrt", sqrt},   {"math.abs", fabs},
	{"math.sin", sin},     {"math.cos", cos},   {"math.tan", tan},	   {"math.exp", exp},
	{"math.log", log},     {"math.asin", asin}, {"math.log10", log10}, {"math.acos", acos},
	{"math.atan", atan},
};

/* Computes the minimum or maximum of constants. False: one of them is no constant. */
static bool extreme(struct sim *l, const struct lj_tframe *f, uint32_t ins, bool greatest,
		    double *num)
{
	int n = lj_calls_arguments(l, ins), i;

	for (i = 0; i < n; i++) {
		const struct value *v = lj_value_arg(l, f, ins, (uint32_t)i);

		if (v->kind != VAL_NUM)
			return false;
		if (!i || (greatest ? v->num > *num : v->num < *num))
			*num = v->num;
	}
	return n > 0;
}

/* True if the value is an integer, or rounded already (shortcut_round). */
static bool is_whole(const struct sim *l, const struct value *v)
{
	uint32_t ref = lj_value_ref(l, v);
	const struct lj_ins *ir;

	if (lj_value_type(l, v) == LJ_IRT_INT)
		return true;
	if (!lj_ref_ok(l->t, ref) || ref <= LJ_REF_BIAS)
		return false;
	ir = lj_ins_at(l->t, ref);
	return (ir->o == LJ_IR_FPMATH && ir->op2 <= LJ_IRFPM_TRUNC) ||
	       (ir->o == LJ_IR_CONV && (ir->op2 & LJ_IRT_TYPE) == LJ_IRT_INT);
}

#define NUMERAL 64 /* longest numeral that is read */

/* Reads n characters of a string from index `from` on. False: it is too short, or no constant. */
static bool read_string(const struct sim *l, const struct value *v, uint32_t from, void *chars,
			uint32_t n)
{
	uint32_t len;

	return v->kind == VAL_OBJ && v->type == LJ_IRT_STR && v->obj &&
	       !mem_read(l->mem, &len, sizeof(len), v->obj + l->t->lj.str_len) && from + n <= len &&
	       !mem_read(l->mem, chars, n, v->obj + lj_str_text(&l->t->lj) + from);
}

/* Folds string.byte() of a constant string, with one result. */
static bool constant_byte(const struct sim *l, const struct value *arg, int n, struct value *out)
{
	double index = n > 1 ? arg[1].num : 1;
	uint8_t c;

	if (n < 1 || n > 2 || (n > 1 && arg[1].kind != VAL_NUM) || !(index >= 1 && index < 1e6) ||
	    !read_string(l, arg, (uint32_t)index - 1, &c, 1))
		return false;
	*out = lj_value_number(c);
	return true;
}

/* Folds tonumber() of a number, or of a constant decimal numeral. */
static bool constant_number(const struct sim *l, const struct value *arg, int n, struct value *out)
{
	char text[NUMERAL + 1] = "", *end;
	uint32_t len;

	*out = *arg;
	if (n != 1 || lj_value_type(l, arg) == LJ_IRT_UNKNOWN || lj_value_is_number(l, arg))
		return n == 1 && lj_value_is_number(l, arg);
	if (arg->kind != VAL_OBJ || arg->type != LJ_IRT_STR || !arg->obj ||
	    mem_read(l->mem, &len, sizeof(len), arg->obj + l->t->lj.str_len) || !len ||
	    len > NUMERAL || !read_string(l, arg, 0, text, len) ||
	    strspn(text, "+-.0123456789eE") != len)
		return false;
	*out = lj_value_number(strtod(text, &end));
	return !*end;
}

static bool is_root(const struct lj_trace *t, const struct lj_ins *ir, op_set is_root)
{
	(void)t;
	return ir->o == LJ_IR_FPMATH &&
	       (is_root ? ir->op2 == LJ_IRFPM_SQRT : ir->op2 > LJ_IRFPM_SQRT);
}

struct value lj_step_power(struct sim *l, struct value *x, struct value *y)
{
	struct value made = {.kind = VAL_UNKNOWN, .by = l->step, .number = true};
	uint32_t ref;

	if (y->kind == VAL_NUM && (x->kind == VAL_NUM || y->num == 0 || y->num == 1)) {
		l->t->history[l->step].folded = true;
		return y->num == 1 ? *x : lj_value_number(y->num == 0 ? 1 : pow(x->num, y->num));
	}
	ref = lj_value_find(l, lj_step_is, OPS(POW), x, y);
	if (!ref && y->kind == VAL_NUM && y->num == 0.5)
		ref = lj_value_find(l, is_root, true, x, NULL);
	if (!ref && y->kind == VAL_NUM) /* x^2, or the first step to a higher power */
		ref = lj_value_find(l, lj_step_is, OPS(MUL), x, x);
	if (ref && lj_ins_at(l->t, ref)->o == LJ_IR_MUL && y->num != 2)
		return made;
	if (!ref) { /* older builds: 2^(y * log2(x)) */
		ref = lj_value_find(l, is_root, false, x, NULL);
		ref = ref ? lj_step_through(l, OPS(MUL), ref, NULL) : 0;
		ref = ref ? lj_step_through(l, OPS(FPMATH), ref, NULL) : 0;
	}
	if (ref)
		lj_value_set(&made, ref);
	return made;
}

static bool folded(struct sim *l, const struct lj_tframe *f, uint32_t ins, const char *name,
		   struct value *out)
{
	int n = lj_calls_arguments(l, ins);
	const struct value *arg = lj_value_arg(l, f, ins, 0);
	bool greatest = !strcmp(name, "math.max");
	double num = 0;
	size_t i;

	if (!strcmp(name, "string.byte"))
		return constant_byte(l, arg, n, out);
	if (!strcmp(name, "tonumber"))
		return constant_number(l, arg, n, out);
	if (greatest || !strcmp(name, "math.min")) {
		*out = lj_value_number(0);
		return extreme(l, f, ins, greatest, &out->num);
	}
	if (arg->kind != VAL_NUM) {
		*out = *arg;
		return (!strcmp(name, "math.floor") || !strcmp(name, "math.ceil")) &&
		       is_whole(l, arg);
	}
	for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (!strcmp(name, functions[i].name)) {
			num = functions[i].of(arg->num);
			*out = lj_value_number(num);
			return n == 1;
		}
	return false;
}

bool lj_step_folds(struct sim *l, const struct lj_tframe *f, uint32_t ins, const char *name,
		   struct value *out)
{
	struct value v;

	if (!folded(l, f, ins, name, &v))
		return false;
	*out = v;
	l->t->history[l->step].folded = true;
	return true;
}
