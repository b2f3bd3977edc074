// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls and returns on the path (layer 3): candidates for a callee, from values, from a guard of
 * the trace, or by a guess; and the target of a return.
 */
#include <string.h>

#include "branch.h"
#include "search.h"

/* Returns the number of arguments of the called function; -1: not known. */
static int arguments(const struct path *p, uint32_t ins, const struct callee *callee)
{
	int n;

	if (!lj_bc_is_call(ins))
		return lj_bc_mm(ins) == LJ_MM_NEWINDEX ? 3 : 2;
	if (lj_bc_op(ins) == LJ_BC_ITERC || lj_bc_op(ins) == LJ_BC_ITERN)
		return 2;
	n = lj_calls_arguments(p->calls.l, ins);
	if (n < 0)
		return -1;
	n += callee->called - (callee->above ? callee->above - (int)lj_frame_slots(p->t) + 1 : 0);
	return n < 0 ? 0 : n;
}

/* Returns the slot of the called function's frame; -1: not known. */
static int32_t slot_of(const struct lj_trace *t, const struct lj_tframe *f, uint32_t ins,
		       const struct callee *callee, bool tail)
{
	int32_t slot = f->slot, frame = (int32_t)lj_frame_slots(t);

	if (slot < 0)
		return -1;
	if (tail)
		return slot < f->copied ? -1 : slot - f->copied + callee->above;
	if (lj_bc_is_call(ins))
		return slot + frame + lj_bc_a(ins) + callee->above;
	/* a continuation's frame is below a metamethod's (rec_mm_prep); for a concatenation of the
	 * last two it is at the second's slot (rec_cat) */
	if (lj_bc_op(ins) == LJ_BC_CAT)
		return lj_bc_b(ins) + 1 == lj_bc_c(ins) ? slot + 2 * frame + lj_bc_b(ins) : -1;
	return slot + 2 * frame + (int32_t)lj_bc_a(t->codes[f->code].bc[0]);
}

/* Passes the guard of a call. If an earlier load counts as the callee, the recorder may have loaded
 * it again, with another guard: the next one. */
static void pass_guard(const struct path *p, struct at *a, const struct callee *callee)
{
	const struct func_guard *next = &p->calls.guards[a->guard];

	if (callee->guard > a->guard)
		a->guard = callee->guard;
	else if (callee->guard && a->guard < p->calls.nguards && a->snap < p->t->npre &&
		 next->ref < p->t->snap[a->snap].ref && next->key &&
		 next->key == p->calls.guards[callee->guard - 1].key &&
		 next->func.addr == callee->func.addr && next->func.code == callee->func.code)
		a->guard++;
}

bool lj_path_enter(struct path *p, struct at a, const struct callee *callee, uint32_t ins,
		   bool tail)
{
	struct lj_trace *t = p->t;
	const struct lj_tframe *f = &t->frames[a.frame];
	uint32_t nframes = t->nframes;
	struct lj_tframe to = {
		.parent = tail ? f->parent : a.frame,
		.tail_called_by = tail ? a.frame + 1 : 0,
		.slot = slot_of(t, f, ins, callee, tail),
		.code = (uint32_t)callee->func.code,
		.callpc = tail ? f->callpc : a.pc,
		.func = callee->func.addr,
		.via_pcall = callee->via_pcall ? callee->via_pcall
			     : tail	       ? f->via_pcall
					       : 0,
		.called = callee->called,
	};
	enum lj_mm mm = callee->guard ? p->calls.guards[callee->guard - 1].mm : LJ_MM_NONE;
	int frame, n = arguments(p, ins, callee);

	if (mm == LJ_MM_LT || mm == LJ_MM_LE)
		to.compares = mm;
	if (t->codes[callee->func.code].vararg) { /* its frame is above its arguments */
		to.copied = n < 0 ? 0 : n + (int)lj_frame_slots(t);
		to.slot = to.slot < 0 || n < 0 ? -1 : to.slot + to.copied;
	}
	if (to.slot >= SLOTS)
		to.slot = -1;
	if (tail && f->via_pcall && callee->via_pcall) /* one replaces the other: not reported */
		return false;
	pass_guard(p, &a, callee);
	frame = lj_frames_add(t, to);
	if (frame >= 0 && lj_path_try(p, a, 0, frame))
		return true;
	t->nframes = nframes;
	return false;
}

/* Returns the type of the value that the current instruction returns. */
static uint8_t type_returned(const struct path *p, struct at a)
{
	const struct lj_tframe *f = &p->t->frames[a.frame];
	uint32_t ins = p->t->codes[f->code].bc[a.pc];
	uint8_t op = lj_bc_op(ins);

	if (op == LJ_BC_RET0)
		return LJ_IRT_NIL;
	if ((op != LJ_BC_RET && op != LJ_BC_RET1) || lj_bc_d(ins) < 2)
		return LJ_IRT_UNKNOWN;
	return lj_value_type(p->calls.l, lj_value_slot(p->calls.l, f, lj_bc_a(ins)));
}

/* Decides a comparison from its metamethod's result: the trace guards nothing but its type. */
static enum branch_to returned_branches(const struct path *p, struct at a, uint32_t ins)
{
	uint8_t type = type_returned(p, a), op = lj_bc_op(ins);
	bool is, if_not = op == LJ_BC_ISGE || op == LJ_BC_ISNEV || op == LJ_BC_ISGT;
	bool is_le = op == LJ_BC_ISLE || op == LJ_BC_ISGT;
	enum lj_mm by = p->t->frames[a.frame].compares;

	/* a <= b may be computed as not b < a: the result is inverted */
	if (!lj_value_has_truth(type) || (is_le && by == LJ_MM_NONE) || op > LJ_BC_ISNEV)
		return BRANCH_UNKNOWN;
	if (is_le && by == LJ_MM_LT)
		if_not = !if_not;
	is = type != LJ_IRT_NIL && type != LJ_IRT_FALSE;
	return is != if_not ? BRANCH_JUMP : BRANCH_NEXT;
}

/* Continues after a call; after a comparison's metamethod on the side that its result decides. */
static bool come_back(struct path *p, struct at a, uint32_t pc, int frame)
{
	const struct lj_code *c = &p->t->codes[p->t->frames[frame].code];
	enum branch_to to;
	uint32_t target;

	if (lj_bc_op(c->bc[pc]) > LJ_BC_ISNEP || pc + 1 >= c->sizebc)
		return lj_path_try(p, a, pc + 1, frame);
	to = returned_branches(p, a, c->bc[pc]);
	target = lj_path_target(pc + 1, c->bc[pc + 1]);
	if (to != BRANCH_UNKNOWN)
		return lj_path_try(p, a, to == BRANCH_JUMP ? target : pc + 2, frame);
	a.frame = frame;
	return lj_path_branch(p, a, pc + 2, target, LJ_NO_INS);
}

bool lj_path_leave(struct path *p, struct at a)
{
	struct lj_trace *t = p->t;
	struct lj_tframe *f = &t->frames[a.frame];
	uint32_t ref, pos;
	int code, frame;

	if (f->parent >= 0)
		return come_back(p, a, f->callpc, f->parent);
	for (ref = a.retf; ref < t->nins; ref++)
		if (lj_ins_at(t, ref)->o == LJ_IR_RETF)
			break;
	if (ref >= t->nins || (a.snap < t->npre && ref >= t->snap[a.snap].ref))
		return false;
	code = lj_trace_code(t, lj_trace_const(t, lj_ins_at(t, ref)->op2), &pos);
	if (code < 0 || !pos)
		return false;
	frame = lj_frames_add(t,
			      (struct lj_tframe){.parent = -1,
						 .returned = true,
						 .code = (uint32_t)code,
						 .func = lj_frames_own(t, p->mem, (uint32_t)code)});
	if (frame < 0)
		return false;
	a.retf = ref + 1;
	f->parent = frame;
	f->callpc = pos - 1;
	if (lj_path_try(p, a, pos, frame))
		return true;
	f->parent = -1;
	return false;
}

static bool call_this(struct path *p, struct at a, const struct callee *callee, uint32_t ins,
		      uint32_t next, bool tail)
{
	if (callee->func.code >= 0)
		return lj_path_enter(p, a, callee, ins, tail);
	pass_guard(p, &a, callee);
	return tail ? lj_path_leave(p, a) : lj_path_try(p, a, next, a.frame);
}

#define STITCH_SLOTS 3 /* slots of the continuation's frame that some calls add first */

/* True if the trace ends at this call of a C function: its last snapshot stands on that function's
 * frame. */
static bool ends_here(const struct path *p, struct at a, uint32_t ins)
{
	const struct lj_trace *t = p->t;
	const struct lj_tsnap *s = &t->snap[a.snap];
	int32_t slot = t->frames[a.frame].slot;
	uint32_t pos;

	if (a.snap + 1 != t->npre || slot < 0 || lj_trace_code(t, s->pc, &pos) >= 0)
		return false;
	slot += (int32_t)lj_frame_slots(t) + lj_bc_a(ins);
	return s->slot >= slot && s->slot <= slot + STITCH_SLOTS &&
	       snap_match_is_called(t, s, a.frame, a.pc);
}

/* Calls the function of guard i. */
static bool call_guarded(struct path *p, struct at a, uint32_t i, uint32_t ins, uint32_t next,
			 bool tail)
{
	return call_this(p, a, &(struct callee){.func = p->calls.guards[i].func, .guard = i + 1},
			 ins, next, tail);
}

/* True if the called value may be the guarded one. */
static bool may_be_guarded(const struct path *p, const struct lj_tframe *f, uint32_t ins,
			   const struct func_guard *guard)
{
	const struct value *called = lj_value_slot(p->calls.l, f, lj_bc_a(ins));
	uint8_t type = lj_value_type(p->calls.l, called);

	return type != LJ_IRT_FUNC || lj_value_may_be(p->calls.l, called, guard->on);
}

/* Tries the candidates for a callee that the values do not decide, in this order: the function of
 * the next guard; a built-in function, or no metamethod; the function on which the next snapshot
 * stands. Functions of earlier guards are no candidates: their values would be known. */
static bool guess_call(struct path *p, struct at a, uint32_t ins, uint32_t next, bool tail)
{
	const struct func_guard *guards = p->calls.guards;
	struct lj_trace *t = p->t;
	const struct lj_tframe *f = &t->frames[a.frame];
	const struct lj_tsnap *s = a.snap < t->npre ? &t->snap[a.snap] : NULL;
	bool is_plain = lj_bc_is_call(ins), iterates = lj_bc_op(ins) == LJ_BC_ITERC;
	uint64_t key = is_plain && !iterates ? lj_frames_key(t, lj_bc_a(ins)) : 0;
	struct callee callee = {.func.code = -1};
	uint32_t i;

	if (a.guard < p->calls.nguards && (!s || guards[a.guard].ref < s->ref) &&
	    lj_func_is_for(&guards[a.guard], ins, key) &&
	    (!is_plain || iterates || may_be_guarded(p, f, ins, &guards[a.guard])) &&
	    (is_plain || guards[a.guard].func.code >= 0) &&
	    call_guarded(p, a, a.guard, ins, next, tail))
		return true;
	if (!is_plain && lj_path_try(p, a, next, a.frame))
		return true;
	if (is_plain && call_this(p, a, &callee, ins, next, tail))
		return true;
	/* a parent trace may have guarded it */
	if (is_plain && s && f->slot >= 0 && s->slot == slot_of(t, f, ins, &callee, tail))
		callee.func.code = lj_trace_code(t, s->pc, &i);
	return callee.func.code >= 0 && lj_path_enter(p, a, &callee, ins, tail);
}

bool lj_path_call_what(struct path *p, struct at a, enum calls_what what,
		       const struct callee *callee, uint32_t ins, uint32_t next, bool tail)
{
	if (what == CALLS_THIS && call_this(p, a, callee, ins, next, tail))
		return true;
	if (what == CALLS_NOTHING && lj_path_try(p, a, next, a.frame))
		return true;
	return what == CALLS_UNKNOWN && guess_call(p, a, ins, next, tail);
}

bool lj_path_call(struct path *p, struct at a, uint32_t ins, uint32_t next, bool tail)
{
	struct lj_trace *t = p->t;
	struct callee callee;
	enum calls_what what;

	if (ends_here(p, a, ins)) {
		if (p->alt.goal)
			return lj_path_found_alternative(p);
		snap_match_set(&t->snap[a.snap], t->nhistory, a.frame, false);
		t->snap[a.snap].on_c = true;
		t->snap[a.snap].callpc = a.pc;
		return true;
	}
	what = lj_calls(&p->calls, &t->frames[a.frame], ins, &callee);
	return lj_path_call_what(p, a, what, &callee, ins, next, tail);
}

/* True if the trace has a guard for a metamethod of this instruction. */
static bool is_guarded(const struct path *p, uint32_t ins)
{
	uint32_t i;

	for (i = 0; i < p->calls.nguards; i++)
		if (lj_func_is_for(&p->calls.guards[i], ins, 0))
			return true;
	return false;
}

bool lj_path_may_call(const struct path *p, struct at a, uint32_t ins, enum calls_what *what,
		      struct callee *callee)
{
	bool guarded = lj_bc_has_mm(ins) && is_guarded(p, ins);

	if (!lj_bc_has_mm(ins) || (!guarded && !p->calls.l->cdata))
		return false;
	*what = lj_calls(&p->calls, &p->t->frames[a.frame], ins, callee);
	return *what == CALLS_THIS || (guarded && *what == CALLS_UNKNOWN);
}
