// SPDX-License-Identifier: BSD-2-Clause
/* Functions of math that are given constants make one, and leave nothing (kfold_fpmath and its
 * like); nor does rounding what is an integer already. */
#include <math.h>
#include <string.h>

#include "sym/lj_trace_call.h"
#include "sym/lj_trace_step.h"
#include "vm/lj_bc.h"

static const struct {
	const char *name;
	double (*of)(double);
} functions[] = {
	{"math.floor", floor}, {"math.ceil", ceil}, {"math.sqrt", sqrt},   {"math.abs", fabs},
	{"math.sin", sin},     {"math.cos", cos},   {"math.tan", tan},	   {"math.exp", exp},
	{"math.log", log},     {"math.asin", asin}, {"math.log10", log10}, {"math.acos", acos},
	{"math.atan", atan},
};

/* The least or the greatest of constants. False: one of them is none. */
static bool extreme(struct labels *l, const struct lj_tframe *f, uint32_t ins, bool greatest,
		    double *num)
{
	int n = lj_calls_arguments(l, ins), i;

	for (i = 0; i < n; i++) {
		const struct value *v = lj_value_slot(l, f, lj_bc_a(ins) + 2u + (uint32_t)i);

		if (v->kind != VALUE_NUM)
			return false;
		if (!i || (greatest ? v->num > *num : v->num < *num))
			*num = v->num;
	}
	return n > 0;
}

/* Was it an integer, or made one by rounding (shortcut_round)? */
static bool is_whole(const struct labels *l, const struct value *v)
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

static bool folded(struct labels *l, const struct lj_tframe *f, uint32_t ins, const char *name,
		   struct value *out)
{
	const struct value *arg = lj_value_slot(l, f, lj_bc_a(ins) + 2u);
	bool greatest = !strcmp(name, "math.max");
	double num = 0;
	size_t i;

	if (greatest || !strcmp(name, "math.min")) {
		*out = lj_value_number(0);
		return extreme(l, f, ins, greatest, &out->num);
	}
	if (arg->kind != VALUE_NUM) {
		*out = *arg;
		return (!strcmp(name, "math.floor") || !strcmp(name, "math.ceil")) &&
		       is_whole(l, arg);
	}
	for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (!strcmp(name, functions[i].name)) {
			num = functions[i].of(arg->num);
			*out = lj_value_number(num);
			return lj_calls_arguments(l, ins) == 1;
		}
	return false;
}

bool lj_step_folds(struct labels *l, const struct lj_tframe *f, uint32_t ins, const char *name,
		   struct value *out)
{
	struct value v;

	if (!folded(l, f, ins, name, &v))
		return false;
	*out = v;
	l->t->steps[l->step].folded = true;
	return true;
}
