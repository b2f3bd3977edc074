// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which bytecode a trace was recorded from. Its snapshots tell points of the way, in order; between
 * two of them control flows as the bytecode says. Where that says two things (a branch, a call
 * whose callee is not in the bytecode), the values tell that the recorder had (lj_trace_call.h);
 * where they do not, both are tried, until all snapshots lie on the way.
 *
 * A branch that was guarded has a snapshot of its own: its position is where the branch did not go
 * (rec_comp_fixup, rec_for), as that is where execution goes on when the guard fails.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem_limited.h"
#include "sym/lj_cdata.h"
#include "sym/lj_trace_call.h"
#include "sym/lj_trace_frames.h"
#include "sym/lj_trace_label.h"
#include "vm/lj_bc.h"

#define STEPS_MAX 16000		/* on the way: LuaJIT records no more than maxrecord instructions */
#define TRIES_MAX 4000		/* steps on ways that led nowhere */
#define CHOICES_MAX 1500	/* on the way: each is a call of walk() */
#define READS_MAX 20000		/* of foreign memory, for one trace */
#define VISITS_MAX (100u << 20) /* of instructions, in searches */
#define TURNS_MAX 16		/* of a loop whose bounds are constant (loopunroll) */
#define NO_INS 0xffu		/* no instruction that branches */

struct path {
	struct lj_trace *t;
	const struct lb_mem *mem;
	uint32_t tries, choices;
	bool strict; /* the guards are met in order, each by a call; and values do not mislead */
	bool failed; /* out of memory */
	struct calls calls;
};

/* bc_j: distance from the next instruction. */
static uint32_t target(uint32_t pc, uint32_t ins)
{
	return pc + 1 + lj_bc_d(ins) - 0x8000u;
}

struct at {
	uint32_t pc;
	int frame;
	uint32_t snap;	/* the next to be met */
	uint32_t since; /* step at which the last one was */
	uint32_t retf;	/* reference from which the next return to a lower frame is searched */
	uint32_t guard; /* the next of guards[] */
};

static bool walk(struct path *p, struct at a);

static bool same_slot(const struct lj_trace *t, int frame, const struct lj_tsnap *s)
{
	return t->frames[frame].slot < 0 || t->frames[frame].slot == s->slot;
}

/* The link of the frame on which a snapshot stands; 0: it is on the stack. */
static uint64_t link_of(const struct lj_trace *t, const struct lj_tsnap *s)
{
	uint32_t ref = lj_snap_entry(s, (uint32_t)s->slot + 1) & 0xffff;

	return lj_ref_ok(t, ref) && ref < LJ_REF_BIAS ? lj_trace_const(t, ref) : 0;
}

/* Does the snapshot have this frame be called from where it was? A function may be called twice, at
 * the same slot. */
static bool same_caller(const struct lj_trace *t, int frame, const struct lj_tsnap *s)
{
	const struct lj_tframe *f = &t->frames[frame];
	uint64_t link = link_of(t, s);
	uint32_t pos;
	int code = link & 3 ? -1 : lj_trace_code(t, link, &pos);

	return f->parent < 0 || code < 0 ||
	       (code == (int)t->frames[f->parent].code && pos == f->callpc + 1);
}

static bool is_at(const struct path *p, const struct lj_tsnap *s, int frame, uint32_t pc)
{
	const struct lj_code *c = &p->t->codes[p->t->frames[frame].code];

	return s->pc == c->proto + LJ_PROTO_SIZE + 4ULL * pc && same_slot(p->t, frame, s) &&
	       same_caller(p->t, frame, s);
}

/*
 * Between two snapshots control goes round once at most: a loop has a guard, unless all that it
 * depends on is constant. And it does not go further than what it left in the intermediate code
 * lets expect.
 */
static bool goes_astray(const struct path *p, struct at a)
{
	const struct lj_trace *t = p->t;
	uint32_t from = a.snap ? t->snap[a.snap - 1].ref : LJ_REF_BIAS, i, n = 0;
	uint32_t to = a.snap < t->npre ? t->snap[a.snap].ref : t->nins;

	if (t->nsteps - a.since > 64 + 4 * (to - from))
		return true;
	for (i = t->nsteps; i-- > a.since;)
		n += t->steps[i].pc == a.pc && t->steps[i].frame == (uint32_t)a.frame;
	return n > (p->strict ? TURNS_MAX : 1);
}

static bool try_way(struct path *p, struct at a, uint32_t pc, int frame)
{
	uint32_t nsteps = p->t->nsteps, nframes = p->t->nframes;
	struct label_mark mark;

	if (p->failed || p->calls.l->visits > VISITS_MAX || p->tries >= p->t->nsteps + TRIES_MAX ||
	    p->choices >= CHOICES_MAX)
		return false;
	if (lj_labels_mark(p->calls.l, &mark)) {
		p->failed = true;
		return false;
	}
	a.pc = pc;
	a.frame = frame;
	p->choices++;
	if (walk(p, a))
		return true;
	p->choices--;
	lj_labels_back(p->calls.l, &mark);
	p->t->nsteps = nsteps;
	p->t->nframes = nframes;
	return false;
}

/* Not FSTORE: metatables, and that a table has no negative cache of metamethods any more. */
static bool is_store(uint8_t op)
{
	return op >= LJ_IR_ASTORE && op <= LJ_IR_XSTORE && op != LJ_IR_FSTORE;
}

/* Arithmetic with numbers. */
static bool is_sum(const struct lj_ins *ir)
{
	return ir->o >= LJ_IR_ADD && ir->o <= LJ_IR_DIV && (ir->t & LJ_IRT_TYPE) == LJ_IRT_NUM;
}

/* How many of either an instruction may become, at most. */
static uint32_t stores_of(uint32_t ins)
{
	uint8_t op = lj_bc_op(ins);

	return !strcmp(lj_bc_mm(ins), "__newindex") || op == LJ_BC_FNEW || op == LJ_BC_TDUP ||
	       (op >= LJ_BC_USETV && op <= LJ_BC_USETP);
}

static uint32_t sums_of(uint32_t ins)
{
	uint8_t op = lj_bc_op(ins);

	if (op >= LJ_BC_ADDVN && op <= LJ_BC_MODVV)
		return (op - LJ_BC_ADDVN) % 5 == 4 ? 3 : 1; /* a - floor(a/b)*b */
	if (op == LJ_BC_POW)
		return 16;
	return op == LJ_BC_FORL || op == LJ_BC_IFORL || op == LJ_BC_UNM;
}

/*
 * Could the next snapshot be met now? Not when more was stored since the last one than the bytecode
 * on the way says. What a C function stores is not in it.
 */
static bool is_likely(const struct path *p, struct at a)
{
	const struct lj_trace *t = p->t;
	uint32_t stores = 0, sums = 0, may_store = 0, may_sum = 0, ref, i;

	if (!a.snap) /* before it lies what the side exit left undone */
		return true;
	if (p->strict && a.guard < p->calls.nguards &&
	    p->calls.guards[a.guard].ref < t->snap[a.snap].ref)
		return false;
	if (p->strict && a.guard && p->calls.guards[a.guard - 1].ref >= t->snap[a.snap].ref)
		return false;

	for (ref = t->snap[a.snap - 1].ref; ref < t->snap[a.snap].ref; ref++) {
		stores += is_store(lj_ins_at(t, ref)->o);
		sums += is_sum(lj_ins_at(t, ref));
	}
	for (i = a.since; i < t->nsteps; i++) {
		uint32_t ins = lj_step_ins(t, i);

		if (lj_bc_is_call(ins) && !lj_step_enters(t, i) && !t->steps[i].pure)
			return true;
		may_store += stores_of(ins);
		may_sum += sums_of(ins);
	}
	return stores <= may_store && sums <= may_sum;
}

/* Is the guard after this snapshot a comparison, which a branch may have left? */
static bool guards_comparison(const struct path *p, struct at a, uint32_t ins)
{
	const struct lj_trace *t = p->t;
	uint32_t ref;

	for (ref = t->snap[a.snap].ref; ref < t->nins; ref++) {
		const struct lj_ins *ir = lj_ins_at(t, ref);

		if (ir->t & LJ_IRT_GUARD)
			return ir->o <= LJ_IR_NE &&
			       (!p->strict ||
				lj_branch_may_guard(p->calls.l, &t->frames[a.frame], ins, ir));
	}
	return false;
}

/* Snapshot s stands before this step of a frame, or inside it. */
static void place(struct lj_tsnap *s, uint32_t step, int frame, bool inside)
{
	s->step = (int32_t)step;
	s->frame = frame;
	s->inside = inside;
}

static void unplace(struct lj_tsnap *s)
{
	s->step = s->frame = -1;
	s->inside = false;
}

/* Is a value true? That has no guard of its own: the type which it was loaded with tells. */
static bool is_test(uint32_t ins)
{
	return lj_bc_op(ins) >= LJ_BC_ISTC && lj_bc_op(ins) <= LJ_BC_ISF;
}

static bool may_go(const struct path *p, enum branch_to to, bool jumps)
{
	return !p->strict || to == BRANCH_UNKNOWN || (to == BRANCH_JUMP) == jumps;
}

/*
 * A branch to one or the other. When it was guarded its snapshot is where it did not go. By values
 * or a guard that was met before it may be known where it goes.
 */
static bool branch(struct path *p, struct at a, uint32_t one, uint32_t other, uint32_t ins)
{
	enum branch_to to = lj_branches(p->calls.l, &p->t->frames[a.frame], ins);
	struct lj_trace *t = p->t;
	struct lj_tsnap *s = a.snap < t->npre ? &t->snap[a.snap] : NULL;
	struct at past = a;
	uint32_t i, first;

	/* a test's operand has the type that tells; that of a loop which is entered for sure guards
	 * nothing (rec_for) */
	if (s && t->nsteps && !is_test(ins) && is_likely(p, a) &&
	    (guards_comparison(p, a, ins) ||
	     (to != BRANCH_UNKNOWN && lj_bc_op(ins) >= LJ_BC_FORI))) {
		past.snap++;
		past.since = t->nsteps - 1;
		place(s, t->nsteps - 1, a.frame, true);
		p->calls.l->met = past.snap;
		for (i = 0; i < 2; i++)
			if (is_at(p, s, a.frame, i ? one : other) && may_go(p, to, i) &&
			    try_way(p, past, i ? other : one, a.frame))
				return true;
		unplace(s);
		p->calls.l->met = a.snap;
	}
	if (p->strict && lj_branch_needs_guard(p->calls.l, &t->frames[a.frame], ins))
		return false;
	/* an iterator's end is rarer than its next turn */
	first = lj_bc_op(ins) == LJ_BC_ITERL || lj_bc_op(ins) == LJ_BC_IITERL;
	for (i = 0; i < 2; i++)
		if (may_go(p, to, first ^ i) && try_way(p, a, first ^ i ? other : one, a.frame))
			return true;
	return false;
}

/* How many arguments a function gets that this instruction calls; -1: not known. */
static int arguments(const struct path *p, uint32_t ins, const struct callee *callee)
{
	int n;

	if (!lj_bc_is_call(ins))
		return !strcmp(lj_bc_mm(ins), "__newindex") ? 3 : 2;
	if (lj_bc_op(ins) == LJ_BC_ITERC || lj_bc_op(ins) == LJ_BC_ITERN)
		return 2;
	n = lj_calls_arguments(p->calls.l, ins);
	if (n < 0)
		return -1;
	n += callee->called - (callee->above ? callee->above - 1 : 0);
	return n < 0 ? 0 : n;
}

/* The slot of the frame that a function gets which this instruction calls; -1: not known. */
static int32_t slot_of(const struct lj_trace *t, const struct lj_tframe *f, uint32_t ins,
		       const struct callee *callee, bool tail)
{
	int32_t slot = f->slot;

	if (slot < 0)
		return -1;
	if (tail)
		return slot < f->copied ? -1 : slot - f->copied + callee->above;
	if (lj_bc_is_call(ins))
		return slot + 2 + lj_bc_a(ins) + callee->above;
	/* a continuation lies below a metamethod (rec_mm_prep) */
	return !strcmp(lj_bc_mm(ins), "__concat")
		       ? -1
		       : slot + 4 + (int32_t)lj_bc_a(t->codes[f->code].bc[0]);
}

/*
 * This is called: its guard is behind us. Where what was loaded before is taken for what is called,
 * as a value, the recorder may have loaded it again, and guarded that: it is the next guard then.
 */
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

/* Into a Lua function. */
static bool enter(struct path *p, struct at a, const struct callee *callee, uint32_t ins, bool tail)
{
	struct lj_trace *t = p->t;
	const struct lj_tframe *f = &t->frames[a.frame];
	uint32_t nframes = t->nframes;
	struct lj_tframe to = {
		.parent = tail ? f->parent : a.frame,
		.instead_of = tail ? a.frame + 1 : 0,
		.slot = slot_of(t, f, ins, callee, tail),
		.code = (uint32_t)callee->func.code,
		.callpc = tail ? f->callpc : a.pc,
		.func = callee->func.addr,
		.through = callee->through ? callee->through
			   : tail	   ? f->through
					   : 0,
		.called = callee->called,
	};
	int frame, n = arguments(p, ins, callee);

	if (t->codes[callee->func.code].vararg) { /* copied to above what it was called with */
		to.copied = n < 0 ? 0 : n + 2;
		to.slot = to.slot < 0 || n < 0 ? -1 : to.slot + to.copied;
	}
	if (to.slot >= SLOTS)
		to.slot = -1;
	if (tail && f->through && callee->through) /* one in the other's place: not told */
		return false;
	pass_guard(p, &a, callee);
	frame = lj_frames_add(t, to);
	if (frame >= 0 && try_way(p, a, 0, frame))
		return true;
	t->nframes = nframes;
	return false;
}

/* To the instruction after a call; after a comparison that called a metamethod, to where it goes.
 */
static bool come_back(struct path *p, struct at a, uint32_t pc, int frame)
{
	const struct lj_code *c = &p->t->codes[p->t->frames[frame].code];

	if (lj_bc_op(c->bc[pc]) > LJ_BC_ISNEP || pc + 1 >= c->sizebc)
		return try_way(p, a, pc + 1, frame);
	a.frame = frame;
	return branch(p, a, pc + 2, target(pc + 1, c->bc[pc + 1]), NO_INS);
}

/* To the caller; below the trace's own frames, to where a RETF says. */
static bool leave(struct path *p, struct at a)
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
	if (try_way(p, a, pos, frame))
		return true;
	f->parent = -1;
	return false;
}

static bool call_this(struct path *p, struct at a, const struct callee *callee, uint32_t ins,
		      uint32_t next, bool tail)
{
	if (callee->func.code >= 0)
		return enter(p, a, callee, ins, tail);
	pass_guard(p, &a, callee);
	return tail ? leave(p, a) : try_way(p, a, next, a.frame);
}

#define STITCH_SLOTS 3 /* of a continuation's frame, that some calls make first */

/* Does the trace end by this call of a C function? Its last snapshot stands on that function's
 * frame. */
static bool ends_here(const struct path *p, struct at a, uint32_t ins)
{
	const struct lj_trace *t = p->t;
	const struct lj_tsnap *s = &t->snap[a.snap];
	int32_t slot = t->frames[a.frame].slot;
	uint32_t pos;

	if (a.snap + 1 != t->npre || slot < 0 || lj_trace_code(t, s->pc, &pos) >= 0)
		return false;
	slot += 2 + lj_bc_a(ins);
	return s->slot >= slot && s->slot <= slot + STITCH_SLOTS;
}

/* By a guard of the trace, which is met or was. */
static bool call_guarded(struct path *p, struct at a, uint32_t i, uint32_t ins, uint32_t next,
			 bool tail)
{
	return call_this(p, a, &(struct callee){.func = p->calls.guards[i].func, .guard = i + 1},
			 ins, next, tail);
}

/*
 * The values do not tell what is called. The trace has a guard for it when it is the first call of
 * that value; or it was called at this place before.
 */
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

	if (lj_frames_called(t, &callee.func) && enter(p, a, &callee, ins, tail))
		return true;
	if (a.guard < p->calls.nguards && (!s || guards[a.guard].ref < s->ref) &&
	    lj_func_is_for(&guards[a.guard], ins, key) &&
	    (is_plain || guards[a.guard].func.code >= 0) &&
	    call_guarded(p, a, a.guard, ins, next, tail))
		return true;
	if (!is_plain && try_way(p, a, next, a.frame))
		return true;
	for (i = a.guard; i-- > 0 && key;) /* the same method again */
		if (guards[i].key == key && call_guarded(p, a, i, ins, next, tail))
			return true;
	callee = (struct callee){.func.code = -1};
	if (is_plain && call_this(p, a, &callee, ins, next, tail))
		return true;
	for (i = a.guard; i-- > 0;) /* one that the trace is sure of already */
		if (guards[i].func.code >= 0 && lj_func_is_for(&guards[i], ins, key) &&
		    call_guarded(p, a, i, ins, next, tail))
			return true;
	/* one of the traces that this one grew from was */
	if (is_plain && s && f->slot >= 0 && s->slot == slot_of(t, f, ins, &callee, tail))
		callee.func.code = lj_trace_code(t, s->pc, &i);
	return callee.func.code >= 0 && enter(p, a, &callee, ins, tail);
}

/* What is called is this, as far as it is known; goes on at next if it is nothing. */
static bool call_what(struct path *p, struct at a, enum calls_what what,
		      const struct callee *callee, uint32_t ins, uint32_t next, bool tail)
{
	if (what == CALLS_THIS && call_this(p, a, callee, ins, next, tail))
		return true;
	if (what == CALLS_NOTHING && try_way(p, a, next, a.frame))
		return true;
	return (what == CALLS_UNKNOWN || !p->strict) && guess_call(p, a, ins, next, tail);
}

static bool call(struct path *p, struct at a, uint32_t ins, uint32_t next, bool tail)
{
	struct lj_trace *t = p->t;
	struct callee callee;
	enum calls_what what;

	if (ends_here(p, a, ins)) {
		place(&t->snap[a.snap], t->nsteps, -1, false); /* on a frame of C's */
		return true;
	}
	what = lj_calls(&p->calls, &t->frames[a.frame], ins, &callee);
	return call_what(p, a, what, &callee, ins, next, tail);
}

/* Has the trace a guard for a metamethod of this instruction? */
static bool is_guarded(const struct path *p, uint32_t ins)
{
	uint32_t i;

	for (i = 0; i < p->calls.nguards; i++)
		if (lj_func_is_for(&p->calls.guards[i], ins, 0))
			return true;
	return false;
}

/* Does this instruction call a metamethod, or could it for all that is known? Which: *what. */
static bool may_call(const struct path *p, struct at a, uint32_t ins, enum calls_what *what,
		     struct callee *callee)
{
	bool guarded = *lj_bc_mm(ins) == '_' && is_guarded(p, ins);

	if (*lj_bc_mm(ins) != '_' || (!guarded && !p->calls.l->cdata))
		return false;
	*what = lj_calls(&p->calls, &p->t->frames[a.frame], ins, callee);
	return *what == CALLS_THIS || (guarded && (*what == CALLS_UNKNOWN || !p->strict));
}

/* A comparison may call a metamethod, too. */
static bool compare(struct path *p, struct at a, uint32_t ins, uint32_t jump)
{
	struct callee callee;
	enum calls_what what;

	if (may_call(p, a, ins, &what, &callee) && what == CALLS_THIS && callee.func.code >= 0 &&
	    enter(p, a, &callee, ins, false))
		return true;
	return branch(p, a, a.pc + 2, target(a.pc + 1, jump), ins);
}

/*
 * Was something recorded since the last snapshot, although no step was made? Then a loop is gone
 * round first. But a comparison has a second one behind its operands (rec_comp_prep).
 */
static bool is_next_turn(const struct path *p, struct at a)
{
	const struct lj_trace *t = p->t;
	const struct lj_code *c = &t->codes[t->frames[a.frame].code];
	uint32_t ref = a.snap ? t->snap[a.snap - 1].ref : t->snap[a.snap].ref;

	if (a.since != t->nsteps || a.pc >= c->sizebc || lj_bc_op(c->bc[a.pc]) <= LJ_BC_ISNEP)
		return false;
	while (ref < t->snap[a.snap].ref &&
	       (lj_ins_at(t, ref)->o == LJ_IR_NOP || lj_ins_at(t, ref)->o == LJ_IR_SLOAD))
		ref++;
	return ref < t->snap[a.snap].ref;
}

/* The next snapshot stands here. */
static bool meet(struct path *p, struct at a)
{
	struct lj_tframe *f = &p->t->frames[a.frame];
	struct lj_tsnap *s = &p->t->snap[a.snap];
	int32_t slot = f->slot;
	struct label_mark mark;

	if (!is_likely(p, a) || is_next_turn(p, a) ||
	    (p->strict && lj_label_contradicts(p->calls.l, s)))
		return false;
	if (lj_labels_mark(p->calls.l, &mark)) {
		p->failed = true;
		return false;
	}
	f->slot = s->slot;
	place(s, p->t->nsteps, a.frame, false);
	a.snap++;
	a.since = p->t->nsteps;
	p->calls.l->met = a.snap;
	lj_label_snapshot(p->calls.l, s);
	if (try_way(p, a, a.pc, a.frame))
		return true;
	lj_labels_back(p->calls.l, &mark);
	f->slot = slot;
	unplace(s);
	return false;
}

/* From here on until nothing is left to be met. */
static bool walk(struct path *p, struct at a)
{
	struct lj_trace *t = p->t;

	for (;;) {
		const struct lj_code *c = &t->codes[t->frames[a.frame].code];
		struct callee callee;
		enum calls_what what;
		uint32_t ins;

		if (p->calls.l->done < t->nsteps)
			lj_label_step(p->calls.l, a.frame, a.pc);
		if (a.snap < t->npre && is_at(p, &t->snap[a.snap], a.frame, a.pc) && meet(p, a))
			return true;
		if (a.snap == t->npre)
			return true;
		if (a.pc >= c->sizebc || t->nsteps == STEPS_MAX ||
		    p->calls.l->visits > VISITS_MAX || p->tries++ >= t->nsteps + TRIES_MAX ||
		    goes_astray(p, a))
			return false;
		ins = c->bc[a.pc];
		t->steps[t->nsteps++] = (struct lj_step){.pc = a.pc, .frame = (uint32_t)a.frame};
		switch (lj_bc_op(ins)) {
		case LJ_BC_ISLT ... LJ_BC_ISF:
			if (a.pc + 1 >= c->sizebc || lj_bc_op(c->bc[a.pc + 1]) != LJ_BC_JMP)
				return false;
			return compare(p, a, ins, c->bc[a.pc + 1]);
		case LJ_BC_FORI:
		case LJ_BC_JFORI:
		case LJ_BC_FORL:
		case LJ_BC_IFORL:
		case LJ_BC_ITERL:
		case LJ_BC_IITERL:
			return branch(p, a, a.pc + 1, target(a.pc, ins), ins);
		case LJ_BC_JMP:
		case LJ_BC_UCLO:
		case LJ_BC_ISNEXT:
			a.pc = target(a.pc, ins);
			break;
		case LJ_BC_CALL:
		case LJ_BC_CALLM:
		case LJ_BC_ITERC:
		case LJ_BC_ITERN:
			return call(p, a, ins, a.pc + 1, false);
		case LJ_BC_CALLT:
		case LJ_BC_CALLMT:
			return call(p, a, ins, 0, true);
		case LJ_BC_RETM:
		case LJ_BC_RET:
		case LJ_BC_RET0:
		case LJ_BC_RET1:
			return leave(p, a);
		default:
			if (may_call(p, a, ins, &what, &callee))
				return call_what(p, a, what, &callee, ins, a.pc + 1, false);
			a.pc++;
		}
	}
}

/*
 * A trace that begins at a loop's end records that first, then the loop's body. One that grew from
 * the first exit of such a trace, where nothing has changed yet, records the loop's beginning first
 * (lj_record_setup); that the loop is of the trace which this one's root is, is not looked at.
 */
static void begin_at_loop(struct path *p, struct at a)
{
	const struct lj_ins *base = lj_ins_at(p->t, LJ_REF_BIAS);
	struct lj_trace *t = p->t;
	const struct lj_code *c = &t->codes[t->frames[a.frame].code];
	uint32_t pos = a.pc;
	bool grew = base->op1;

	if (grew && !base->op2 && !t->snap[0].nent && pos &&
	    lj_bc_op(c->bc[pos - 1]) == LJ_BC_JFORI)
		pos--;
	else if (grew || lj_trace_code(t, t->startpc, &pos) != (int)t->frames[a.frame].code ||
		 lj_bc_op(c->bc[pos]) != LJ_BC_FORL)
		return;
	if (pos != a.pc)
		t->steps[t->nsteps++] = (struct lj_step){.pc = pos, .frame = (uint32_t)a.frame};
}

static int go(struct path *p, bool strict)
{
	struct at a = {.retf = LJ_REF_BIAS + 1};
	struct labels *l = p->calls.l;
	struct lj_trace *t = p->t;
	bool found;

	t->nframes = t->nsteps = 0;
	p->tries = p->choices = 0;
	p->strict = strict;
	a.frame = lj_frames_first(t, p->mem);
	if (a.frame < 0 || lj_trace_code(t, t->snap[0].pc, &a.pc) < 0)
		return -EBADMSG;
	begin_at_loop(p, a);
	lj_labels_begin(l);
	found = walk(p, a) && l->visits <= VISITS_MAX;
	while (found && l->done < t->nsteps)
		lj_label_step(l, -1, 0);
	return found ? 0 : p->failed ? -ENOMEM : -EBADMSG;
}

/* The snapshots of a loop's body are copies of recorded ones: they stand on the same frames. */
static void place_copies(struct lj_trace *t)
{
	uint32_t i, k;

	for (i = t->npre; i < t->nsnap; i++)
		for (k = 0; k < t->npre && t->snap[i].frame < 0; k++)
			if (t->snap[k].pc == t->snap[i].pc && t->snap[k].slot == t->snap[i].slot &&
			    link_of(t, &t->snap[k]) == link_of(t, &t->snap[i]))
				t->snap[i].frame = t->snap[k].frame;
}

int lj_trace_path(struct lj_trace *t, const struct lb_mem *mem, const struct lj_layout *lj,
		  uint64_t g, const struct lj_ffnames *names)
{
	struct mem_limited limited;
	struct lj_cdata cdata;
	struct path *p __cleanup(cleanup_free) = calloc(1, sizeof(*p));
	struct labels *l __cleanup(lj_labels_free) = NULL;
	int r;

	mem_limited_init(&limited, mem, READS_MAX);
	r = lj_labels_new(t, &limited.mem, &l);
	t->frames = calloc(LJ_FRAMES_MAX, sizeof(*t->frames));
	t->steps = calloc(STEPS_MAX, sizeof(*t->steps));
	if (!p || r || !t->frames || !t->steps)
		return -ENOMEM;
	p->t = t;
	p->mem = &limited.mem;
	p->calls.l = l;
	l->calls = &p->calls;
	l->cdata = lj_cdata_open(&limited.mem, lj, g, &cdata) ? NULL : &cdata;
	p->calls.names = names;
	p->calls.nguards = lj_func_guards(t, &limited.mem, p->calls.guards);
	r = go(p, true);
	if (r == -EBADMSG)
		r = go(p, false);
	if (!r && !limited.left) /* what could not be read was taken for not known */
		r = -EBADMSG;
	if (r)
		return r;
	place_copies(t);
	return lj_labels_finish(l);
}
