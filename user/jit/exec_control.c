// SPDX-License-Identifier: BSD-2-Clause
/* Symbolic execution of calls, returns and loops (layer 2): copies values, and labels guards. */
#include "callee.h"
#include "exec.h"
#include "lua/lj/bc.h"

/* True for a guard that the function is this one. */
static bool is_guard_for(const struct lj_trace *t, const struct lj_ins *ir, op_set func)
{
	return ir->o == LJ_IR_EQ && lj_trace_const(t, ir->op2) == func;
}

/* Labels the guard of a callee: of the function, or of its prototype. False: there is none, or it
 * is a metamethod's. */
static bool find_guard(struct sim *l, struct value *called)
{
	uint8_t type = lj_value_type(l, called);
	uint32_t pc;

	if (type == LJ_IRT_TAB || type == LJ_IRT_UDATA) /* __call */
		lj_step_metatable(l, lj_value_ref(l, called));
	/* a constant needs none, but its prototype may have one */
	if (called->kind == VAL_UNKNOWN)
		return false;
	if (called->kind != VAL_OBJ && lj_value_find(l, lj_step_is, OPS(EQ), called, NULL))
		return type == LJ_IRT_FUNC;
	pc = lj_value_find(l, lj_step_is_field, false, called, NULL);
	return pc && lj_step_through(l, OPS(EQ), pc, NULL);
}

/* Returns the frame of the Lua function that the current step enters; NULL: none. Labels its guard
 * unless `guarded`. */
static const struct lj_tframe *entered(struct sim *l, bool guarded)
{
	const struct lj_tframe *to;

	if (!l->enters)
		return NULL;
	to = &l->t->frames[l->next_frame];
	if (to->func && !guarded)
		lj_value_find(l, is_guard_for, to->func, NULL, NULL);
	return to;
}

/* Sets the closure of a frame's function; NULL: not known. Upvalues are found by it. */
static void set_function(struct sim *l, const struct lj_tframe *to, const struct value *closure)
{
	if (to->slot >= 0)
		*lj_value_at(l, (uint32_t)to->slot) =
			closure ? *closure : (struct value){.kind = VAL_UNKNOWN, .by = -1};
}

/* True if the recorder loads operand i's metatable. Arithmetic loads the second's only if the
 * first's has no such metamethod (rec_mm_arith). Comparisons load both. */
static bool is_looked_up(struct sim *l, const struct value arg[3], uint32_t i, uint32_t ins)
{
	if (lj_bc_is_arith(ins))
		return !i || !lj_calls_of(l->calls, &arg[0], lj_bc_mm(ins));
	return lj_bc_op(ins) <= LJ_BC_ISNEV;
}

/* A metamethod's arguments are the operands; those that are no slots are not known. A cdata's C
 * type is guarded before, as it determines the metamethod. */
void lj_step_metamethod(struct sim *l, const struct lj_tframe *f, uint32_t ins)
{
	const struct lj_tframe *to;
	struct value arg[3];
	uint32_t i, n = lj_operands(l, f, ins, arg), cur;

	for (i = 0; i < n && i < 2; i++) {
		if (lj_value_type(l, &arg[i]) == LJ_IRT_CDATA)
			lj_step_ctype(l, &arg[i]);
		else if (l->enters && is_looked_up(l, arg, i, ins))
			lj_step_metatable(l, lj_value_ref(l, &arg[i]));
	}
	cur = l->cur;
	to = entered(l, false);
	l->cur = cur; /* table lookups precede the guard */
	if (to)
		set_function(l, to, NULL);
	for (i = 0; i < n && to; i++)
		*lj_value_slot(l, to, i) = arg[i];
}

/* Copies a frame's results to the slots that its caller's instruction names. Missing ones are nil,
 * or unknown if there may be `more`. */
static void deliver(struct sim *l, const struct lj_tframe *f, const struct value *results,
		    uint32_t n, bool more, uint32_t retf)
{
	const struct lj_tframe *to;
	uint32_t call, a, wanted, i;

	if (l->next_frame < 0)
		return;
	to = &l->t->frames[l->next_frame];
	if (f->parent < 0 || &l->t->frames[f->parent] != to)
		return;
	call = l->t->codes[to->code].bc[f->callpc];
	a = lj_bc_a(call);
	wanted = lj_bc_is_call(call) ? lj_bc_b(call) : lj_bc_mode_a(call) == LJ_BCM_DST ? 2 : 0;
	if (retf) { /* from now on slots are counted from the caller's base */
		lj_value_unset(l);
		l->retf = retf;
	}
	if (f->via_pcall && wanted > 1) { /* pcall() returns true first */
		*lj_value_slot(l, to, a++) = lj_value_object(0, LJ_IRT_TRUE);
		wanted--;
	}
	if (lj_bc_is_call(call) && !wanted) { /* all of them */
		wanted = n + 1;
		l->multres = n < RESULTS && !more ? (int)n + !!f->via_pcall : -1;
	}
	for (i = 0; i < RESULTS && i + 1 < wanted; i++) {
		if (i < n)
			*lj_value_slot(l, to, a + i) = results[i];
		else if (more)
			lj_set_unknown(l, lj_value_slot(l, to, a + i));
		else
			*lj_value_slot(l, to, a + i) = lj_value_object(0, LJ_IRT_NIL);
	}
}

/* Returns the RETF of a return to below the trace's own frames. 0: it is another return. */
static uint32_t find_retf(struct sim *l, const struct lj_tframe *f)
{
	const struct lj_tframe *to = f->parent < 0 ? NULL : &l->t->frames[f->parent];
	uint32_t ref;

	if (!to || !to->returned || to < f)
		return 0;
	for (ref = l->retf + 1; ref < l->hi; ref++)
		if (lj_ins_at(l->t, ref)->o == LJ_IR_RETF) {
			lj_claim_ref(l, ref);
			return ref;
		}
	return 0;
}

static void step_return(struct sim *l, const struct lj_tframe *f, uint32_t ins)
{
	bool many = lj_bc_op(ins) == LJ_BC_RETM, more = many && l->multres < 0;
	uint32_t n = lj_bc_op(ins) == LJ_BC_RET0 ? 0 : lj_bc_d(ins) - !many;
	struct value results[RESULTS] = {};
	uint32_t i, retf;

	if (many && !more)
		n += (uint32_t)l->multres;
	for (i = 0; i < RESULTS && i < n; i++) {
		lj_step_load(l, lj_value_slot(l, f, lj_bc_a(ins) + i));
		results[i] = *lj_value_slot(l, f, lj_bc_a(ins) + i);
	}
	retf = find_retf(l, f);
	deliver(l, f, results, i, more || i < n, retf);
}

/* Returns how many slots a call's arguments may take. If the number is not known: ARGUMENTS. */
static uint32_t argument_slots(const struct sim *l, uint32_t ins)
{
	int n = lj_calls_arguments(l, ins);

	return n < 0 || n > ARGUMENTS ? ARGUMENTS : (uint32_t)n;
}

/* Loads a call's function and arguments. */
static void load_arguments(struct sim *l, const struct lj_tframe *f, uint32_t ins)
{
	uint32_t a = lj_bc_a(ins), n = argument_slots(l, ins), i;

	if (lj_bc_op(ins) == LJ_BC_ITERC || lj_bc_op(ins) == LJ_BC_ITERN) {
		for (i = 3; i && a >= 3; i--) {
			lj_step_load(l, lj_value_slot(l, f, a - i));
			*(i == 3 ? lj_value_slot(l, f, a) : lj_value_arg(l, f, ins, 2 - i)) =
				*lj_value_slot(l, f, a - i);
		}
		return;
	}
	lj_step_load(l, lj_value_slot(l, f, a));
	for (i = 0; i < n; i++)
		lj_step_load(l, lj_value_arg(l, f, ins, i));
}

/* Copies a vararg function's arguments, from number `first` on, to its locals from `local` on. */
static void take_copies(struct sim *l, const struct lj_tframe *f, uint32_t first, uint32_t local)
{
	uint32_t n = (uint32_t)f->copied - lj_frame_slots(l->t), i;

	for (i = 0; first + i < n && i < ARGUMENTS; i++)
		*lj_value_slot(l, f, local + i) =
			*lj_value_slot(l, f, first + i - (uint32_t)f->copied);
}

/* Sets a function's parameters from number n on to nil; for n < 0 all arguments to unknown. */
static void no_arguments(struct sim *l, const struct lj_tframe *to, int n)
{
	int i, end = n < 0 ? ARGUMENTS : l->t->codes[to->code].numparams;

	for (i = n < 0 ? 0 : n; i < end; i++) {
		if (n < 0)
			lj_set_unknown(l, lj_value_slot(l, to, (uint32_t)i));
		else
			*lj_value_slot(l, to, (uint32_t)i) = lj_value_object(0, LJ_IRT_NIL);
	}
}

/* Enters a Lua function. Its arguments are in its slots already, except: pcall() in between, or
 * __call with the called object as first argument, moves them up. */
static bool step_enters(struct sim *l, const struct lj_tframe *f, uint32_t ins, bool guarded)
{
	struct value called = *lj_value_slot(l, f, lj_bc_a(ins));
	const struct lj_tframe *to = entered(l, guarded);
	uint32_t i = argument_slots(l, ins) + (to && to->called);
	int n = lj_calls_arguments(l, ins);

	if (!to)
		return false;
	set_function(l, to, to->via_pcall || to->called ? NULL : &called);
	if (to->copied && (to->via_pcall || to->called)) {
		no_arguments(l, to, -1);
		return true;
	}
	if (to->copied)
		take_copies(l, to, 0, 0);
	/* without a slot for its link, pcall()'s callee finds its arguments in place */
	while (((to->via_pcall && lj_frame_slots(l->t) > 1) || to->called) && i-- > 0)
		*lj_value_slot(l, to, i) = *lj_value_slot(l, to, i - 1u);
	if (to->called)
		*lj_value_slot(l, to, 0) = *lj_value_slot(l, f, lj_bc_a(ins));
	n += to->called - !!to->via_pcall;
	if (lj_calls_arguments(l, ins) >= 0 && n >= 0)
		no_arguments(l, to, n);
	return true;
}

/* A Lua function replaces the caller's frame. A built-in function's results are the caller's. */
static void step_tailcall(struct sim *l, const struct lj_tframe *f, uint32_t ins)
{
	uint32_t a = lj_bc_a(ins), n = argument_slots(l, ins), i;
	struct value args[ARGUMENTS], called, made;
	const struct lj_tframe *to;

	lj_step_load(l, lj_value_slot(l, f, a));
	called = *lj_value_slot(l, f, a);
	for (i = 0; i < n; i++) {
		lj_step_load(l, lj_value_arg(l, f, ins, i));
		args[i] = *lj_value_arg(l, f, ins, i);
	}
	to = entered(l, find_guard(l, &called));
	if (!to) {
		made = lj_step_made(l, f, ins);
		deliver(l, f, &made, 1, true, find_retf(l, f));
		return;
	}
	/* a new pcall(), not one that is below already */
	if ((to->via_pcall && !f->via_pcall) || to->called) {
		set_function(l, to, NULL);
		no_arguments(l, to, -1);
		return;
	}
	set_function(l, to, &called);
	if (lj_calls_arguments(l, ins) >= 0 && !to->copied)
		no_arguments(l, to, lj_calls_arguments(l, ins));
	for (i = 0; i < n; i++)
		*lj_value_slot(l, to, i - (uint32_t)to->copied) = args[i];
	if (to->copied)
		take_copies(l, to, 0, 0);
}

/* Returns the number of a vararg function's arguments beyond its named parameters. */
static int varargs(const struct sim *l, const struct lj_tframe *f)
{
	int n = f->copied - (int)lj_frame_slots(l->t) - l->t->codes[f->code].numparams;

	return n > 0 ? n : 0;
}

void lj_step_control(struct sim *l, const struct lj_tframe *f, uint32_t ins)
{
	uint32_t a = lj_bc_a(ins), i;
	struct value *va = lj_value_slot(l, f, a), *by;
	bool calls;

	switch (lj_bc_op(ins)) {
	case LJ_BC_FORI:
	case LJ_BC_JFORI:
		for (i = 0; i < 3; i++) /* index, end, step */
			lj_step_load(l, lj_value_slot(l, f, a + i));
		*lj_value_slot(l, f, a + 3) = *va;
		break;
	case LJ_BC_FORL:
	case LJ_BC_IFORL: /* the index is incremented */
		by = lj_value_slot(l, f, a + 2);
		l->t->history[l->step].folded = va->kind == VAL_NUM && by->kind == VAL_NUM;
		if (l->t->history[l->step].folded)
			va->num += by->num;
		else
			lj_step_result(l, va,
				       lj_value_find(l, lj_step_is, OPS(ADD) | OPS(ADDOV), va,
						     by->kind == VAL_NUM ? by : NULL));
		*lj_value_slot(l, f, a + 3) = *va;
		break;
	case LJ_BC_ITERL:
	case LJ_BC_IITERL: /* the first result is the next turn's control variable */
		*lj_value_slot(l, f, a - 1) = *va;
		break;
	case LJ_BC_RET:
	case LJ_BC_RET1:
	case LJ_BC_RET0:
	case LJ_BC_RETM:
		step_return(l, f, ins);
		break;
	case LJ_BC_CALLT:
	case LJ_BC_CALLMT:
		step_tailcall(l, f, ins);
		break;
	case LJ_BC_CALL:
	case LJ_BC_CALLM:
	case LJ_BC_ITERC:
	case LJ_BC_ITERN:
		load_arguments(l, f, ins);
		calls = lj_bc_op(ins) == LJ_BC_CALL || lj_bc_op(ins) == LJ_BC_CALLM;
		if (step_enters(l, f, ins, calls && find_guard(l, va)))
			break;
		lj_step_builtin(l, f, ins);
		break;
	case LJ_BC_VARG:
		if (!lj_bc_b(ins))
			l->multres = f->copied ? varargs(l, f) : -1;
		if (f->copied)
			take_copies(l, f, l->t->codes[f->code].numparams, a);
		else
			for (i = 0; i < (lj_bc_b(ins) ? lj_bc_b(ins) - 1u : ARGUMENTS); i++)
				lj_set_unknown(l, lj_value_slot(l, f, a + i));
		break;
	case LJ_BC_KNIL:
		for (i = a; i <= lj_bc_d(ins) && i < SLOTS; i++)
			*lj_value_slot(l, f, i) = lj_value_object(0, LJ_IRT_NIL);
		break;
	default:
		if (lj_bc_writes(ins))
			lj_set_unknown(l, va);
	}
}
