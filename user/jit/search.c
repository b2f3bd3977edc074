// SPDX-License-Identifier: BSD-2-Clause
/*
 * The search for the bytecode from which a trace was recorded (layer 3). Snapshots are points of
 * the path, in order; between two of them control flows as the bytecode does. Algorithm:
 * backtracking search. At a branch (branch.h), or a call with an unknown callee (callee.h), the
 * recorded values decide. Where they do not, each side is tried, until all snapshots are on the
 * path. Bounded by the limits below. Each step is executed symbolically before the next is taken.
 *
 * A guarded branch has a snapshot of its own. Its position is the side not taken (rec_comp_fixup,
 * rec_for), where execution continues when the guard fails.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem_limited.h"
#include "branch.h"
#include "lua/lj/cdata.h"
#include "search.h"

#define STEPS_MAX 16000 /* on the path: LuaJIT records at most maxrecord instructions */
#ifndef TRIES_MAX	/* fuzzers set a lower limit, to try more traces */
#define TRIES_MAX 4000	/* steps on paths that were dead ends */
#endif
#define CHOICES_MAX 1500	/* on the path: each is a recursion of walk() */
#define READS_MAX 20000		/* reads of target memory, for one trace */
#define VISITS_MAX (100u << 20) /* instructions visited by searches */
#define TURNS_MAX 16		/* turns of a loop with constant bounds (loopunroll) */

static bool walk(struct path *p, struct at a);

/* True for a dead end: more iterations of a loop between two snapshots than LuaJIT unrolls without a
 * guard, or more than 64 steps and 4 for each IR instruction between them. */
static bool goes_astray(const struct path *p, struct at a)
{
	const struct lj_trace *t = p->t;
	uint32_t from = a.snap ? t->snap[a.snap - 1].ref : LJ_REF_BIAS, i, n = 0;
	uint32_t to = a.snap < t->npre ? t->snap[a.snap].ref : t->nins;

	if (t->nhistory - a.since > 64 + 4 * (to - from))
		return true;
	for (i = t->nhistory; i-- > a.since;)
		n += t->history[i].pc == a.pc && t->history[i].frame == (uint32_t)a.frame;
	return n > TURNS_MAX;
}

bool lj_path_try(struct path *p, struct at a, uint32_t pc, int frame)
{
	uint32_t nhistory = p->t->nhistory, nframes = p->t->nframes;
	struct sim_mark mark;

	if (p->failed || p->alt.found || p->calls.l->visits > VISITS_MAX ||
	    p->tries >= p->t->nhistory + TRIES_MAX || p->choices >= CHOICES_MAX)
		return false;
	if (lj_sim_mark(p->calls.l, &mark)) {
		p->failed = true;
		return false;
	}
	a.pc = pc;
	a.frame = frame;
	p->choices++;
	if (walk(p, a))
		return true;
	p->choices--;
	lj_sim_back(p->calls.l, &mark);
	p->t->nhistory = nhistory;
	p->t->nframes = nframes;
	return false;
}

/* Returns how many instructions before this reference no step of the path has made, but for guards. */
static uint32_t unmade(const struct lj_trace *t, uint32_t end)
{
	uint32_t ref, n = 0;

	for (ref = LJ_REF_BIAS + 1; ref < end; ref++) {
		uint8_t o = lj_ins_at(t, ref)->o;

		n += o > LJ_IR_NE && o != LJ_IR_NOP && *lj_label_of(t, ref) < 0;
	}
	return n;
}

bool lj_path_found_alternative(struct path *p)
{
	const struct lj_trace *t = p->t;
	struct alternative *alt = &p->alt;
	uint32_t i = alt->from;

	alt->unmade = unmade(t, t->snap[alt->goal - 1].ref);
	p->calls.l->visits += t->snap[alt->goal - 1].ref - LJ_REF_BIAS;

	if (t->nhistory > LJ_ALTERNATIVE && i < t->nhistory - LJ_ALTERNATIVE)
		i = t->nhistory - LJ_ALTERNATIVE;
	alt->found = true;
	for (alt->nhistory = 0; i < t->nhistory; i++) {
		alt->step[alt->nhistory].pc = t->history[i].pc;
		alt->step[alt->nhistory++].code = t->frames[t->history[i].frame].code;
	}
	return false;
}

/* Returns a path over pc to the next snapshot, or NULL if none was found. Restores the state. */
static struct alternative *alternative(struct path *p, struct at a, uint32_t pc)
{
	uint32_t tries = p->tries, choices = p->choices;
	struct alternative *alt = NULL;

	if (p->alt.goal || p->alt.tries > TRIES_MAX)
		return NULL;
	p->alt.goal = a.snap + 1;
	p->alt.from = p->t->nhistory;
	lj_path_try(p, a, pc, a.frame);
	if (p->alt.found)
		alt = malloc(sizeof(*alt));
	if (alt)
		*alt = p->alt;
	p->alt.found = false;
	p->alt.goal = 0;
	p->alt.tries += p->tries - tries;
	p->tries = tries;
	p->choices = choices;
	return alt;
}

/* Marks the steps from `from` to snapshot s as ambiguous up to the common end with another path. */
static void doubt(struct lj_trace *t, uint32_t from, const struct lj_tsnap *s,
		  const struct alternative *alt)
{
	uint32_t n = alt->nhistory, to = s->step < 0 ? from : (uint32_t)s->step + s->inside;

	while (to > from && n > 0 && alt->step[n - 1].pc == t->history[to - 1].pc &&
	       alt->step[n - 1].code == t->frames[t->history[to - 1].frame].code) {
		to--;
		n--;
	}
	while (from < to && from < t->nhistory)
		t->history[from++].ambiguous = true;
}

/* True for a test of a value's truth: it has no guard of its own, as the type of the load
 * decides. */
static bool is_test(uint32_t ins)
{
	return lj_bc_op(ins) >= LJ_BC_ISTC && lj_bc_op(ins) <= LJ_BC_ISF;
}

static bool may_go(enum branch_to to, bool jumps)
{
	return to == BRANCH_UNKNOWN || (to == BRANCH_JUMP) == jumps;
}

/*
 * An undecided branch. If both sides reach the next snapshot, takes the one that leaves fewer instructions without a step
 * that has made them: after `if DEBUG then return 1 end` the wrong side takes all that follows for constants. If they
 * leave as many, takes the likelier side, and marks its steps as ambiguous. The other, if a side is a dead end.
 */
static bool either(struct path *p, struct at a, uint32_t likelier, uint32_t other)
{
	struct alternative *first __cleanup(cleanup_free) = NULL;
	struct alternative *second __cleanup(cleanup_free) = NULL;
	uint32_t from = p->t->nhistory;
	bool found = false;

	if (a.snap < p->t->npre)
		second = alternative(p, a, other);
	if (second)
		first = alternative(p, a, likelier);
	if (first && second->unmade < first->unmade)
		return lj_path_try(p, a, other, a.frame) || lj_path_try(p, a, likelier, a.frame);
	found = lj_path_try(p, a, likelier, a.frame);
	if (found && second && (!first || first->unmade == second->unmade))
		doubt(p->t, from, &p->t->snap[a.snap], second);
	return found || lj_path_try(p, a, other, a.frame);
}

/* Continues on either side of a branch. The next snapshot may be its own, whose pc is the side not
 * taken. Else values or a guard of the same values may decide it. */
bool lj_path_branch(struct path *p, struct at a, uint32_t next, uint32_t target, uint32_t ins)
{
	enum branch_to to = lj_branches(p->calls.l, &p->t->frames[a.frame], ins);
	struct lj_trace *t = p->t;
	struct lj_tsnap *s = a.snap < t->npre ? &t->snap[a.snap] : NULL;
	struct at past = a;
	uint32_t i, first;

	/* no guard: a test (the operand's type decides), a loop that is certainly entered
	 * (rec_for), a metamethod's result (its type decides) */
	if (s && t->nhistory && !is_test(ins) && ins != LJ_NO_INS && snap_match_is_likely(p, a) &&
	    (snap_match_guards_comparison(p, a, ins) ||
	     (to != BRANCH_UNKNOWN && lj_bc_op(ins) >= LJ_BC_FORI))) {
		past.snap++;
		past.since = t->nhistory - 1;
		snap_match_set(s, t->nhistory - 1, a.frame, true);
		p->calls.l->next_snap = past.snap;
		for (i = 0; i < 2; i++)
			if (snap_match_is_at(p, s, a.frame, i ? next : target) && may_go(to, i) &&
			    lj_path_try(p, past, i ? target : next, a.frame))
				return true;
		snap_match_clear(s);
		p->calls.l->next_snap = a.snap;
	}
	if (lj_branch_needs_guard(p->calls.l, &t->frames[a.frame], ins))
		return false;
	/* an iterator's end is rarer than its next turn */
	first = lj_bc_op(ins) == LJ_BC_ITERL || lj_bc_op(ins) == LJ_BC_IITERL;
	if (to != BRANCH_UNKNOWN)
		return lj_path_try(p, a, to == BRANCH_JUMP ? target : next, a.frame);
	return either(p, a, first ? target : next, first ? next : target);
}

/* A comparison may also call a metamethod. */
static bool compare(struct path *p, struct at a, uint32_t ins, uint32_t jump)
{
	struct callee callee;
	enum calls_what what;

	if (lj_path_may_call(p, a, ins, &what, &callee) && what == CALLS_THIS &&
	    callee.func.code >= 0 && lj_path_enter(p, a, &callee, ins, false))
		return true;
	return lj_path_branch(p, a, a.pc + 2, lj_path_target(a.pc + 1, jump), ins);
}

/* Assumes that the next snapshot was taken at this position, and continues. False: a dead end; the
 * state is restored. */
static bool meet(struct path *p, struct at a)
{
	struct lj_tframe *f = &p->t->frames[a.frame];
	struct lj_tsnap *s = &p->t->snap[a.snap];
	int32_t slot = f->slot;
	struct sim_mark mark;

	if (!snap_match_is_likely(p, a) || snap_match_is_next_turn(p, a) ||
	    (slot >= 0 && lj_label_contradicts(p->calls.l, s)))
		return false;
	if (lj_sim_mark(p->calls.l, &mark)) {
		p->failed = true;
		return false;
	}
	f->slot = s->slot;
	snap_match_set(s, p->t->nhistory, a.frame, false);
	a.snap++;
	a.since = p->t->nhistory;
	p->calls.l->next_snap = a.snap;
	lj_label_snapshot(p->calls.l, s);
	if (lj_path_try(p, a, a.pc, a.frame))
		return true;
	lj_sim_back(p->calls.l, &mark);
	f->slot = slot;
	snap_match_clear(s);
	return false;
}

/* Follows the bytecode. True when all snapshots are passed, or the trace ends at a call of a C function. */
static bool walk(struct path *p, struct at a)
{
	struct lj_trace *t = p->t;

	for (;;) {
		const struct lj_code *c = &t->codes[t->frames[a.frame].code];
		struct callee callee;
		enum calls_what what;
		uint32_t ins;

		if (p->calls.l->done < t->nhistory) /* the last step's successor is known now */
			lj_label_step(p->calls.l, a.frame, a.pc);
		if (p->calls.l->dead_end)
			return false;
		if (a.snap < t->npre && snap_match_is_at(p, &t->snap[a.snap], a.frame, a.pc) &&
		    meet(p, a))
			return true;
		if (p->alt.goal && a.snap >= p->alt.goal)
			return lj_path_found_alternative(p);
		if (a.snap == t->npre)
			return true;
		if (a.pc >= c->sizebc || t->nhistory == STEPS_MAX ||
		    p->calls.l->visits > VISITS_MAX || p->tries++ >= t->nhistory + TRIES_MAX ||
		    goes_astray(p, a))
			return false;
		ins = c->bc[a.pc];
		t->history[t->nhistory++] =
			(struct bc_event){.pc = a.pc, .frame = (uint32_t)a.frame};
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
			return lj_path_branch(p, a, a.pc + 1, lj_path_target(a.pc, ins), ins);
		case LJ_BC_JMP:
		case LJ_BC_UCLO:
		case LJ_BC_ISNEXT:
			a.pc = lj_path_target(a.pc, ins);
			break;
		case LJ_BC_CALL:
		case LJ_BC_CALLM:
		case LJ_BC_ITERC:
		case LJ_BC_ITERN:
			return lj_path_call(p, a, ins, a.pc + 1, false);
		case LJ_BC_CALLT:
		case LJ_BC_CALLMT:
			return lj_path_call(p, a, ins, 0, true);
		case LJ_BC_RETM:
		case LJ_BC_RET:
		case LJ_BC_RET0:
		case LJ_BC_RET1:
			return lj_path_leave(p, a);
		default:
			if (lj_path_may_call(p, a, ins, &what, &callee))
				return lj_path_call_what(p, a, what, &callee, ins, a.pc + 1, false);
			a.pc++;
		}
	}
}

/* Adds the loop instruction before the first snapshot. A trace that begins at FORL executes that
 * first, then the body. One that grew from the first exit of such a trace, where nothing has
 * changed yet, records the loop's start first (lj_record_setup); whether its root is that loop's
 * trace is not checked. */
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
		t->history[t->nhistory++] =
			(struct bc_event){.pc = pos, .frame = (uint32_t)a.frame};
}

static int go(struct path *p)
{
	struct at a = {.retf = LJ_REF_BIAS + 1};
	struct sim *l = p->calls.l;
	struct lj_trace *t = p->t;
	bool found;

	t->nframes = t->nhistory = 0;
	p->tries = p->choices = 0;
	a.frame = lj_frames_first(t, p->mem);
	if (a.frame < 0 || lj_trace_code(t, t->snap[0].pc, &a.pc) < 0)
		return -EBADMSG;
	begin_at_loop(p, a);
	lj_sim_begin(l);
	found = walk(p, a) && l->visits <= VISITS_MAX;
	while (found && l->done < t->nhistory)
		lj_label_step(l, -1, 0);
	return found ? 0 : p->failed ? -ENOMEM : -EBADMSG;
}

int lj_trace_path(struct lj_trace *t, const struct lb_mem *mem, const struct lj_layout *lj,
		  uint64_t g, const struct lj_ffnames *names)
{
	struct mem_limited limited;
	struct lj_cdata cdata;
	struct path *p __cleanup(cleanup_free) = calloc(1, sizeof(*p));
	struct sim *l __cleanup(lj_sim_free) = NULL;
	int r;

	mem_limited_init(&limited, mem, READS_MAX);
	r = lj_sim_new(t, &limited.mem, &l);
	t->frames = calloc(LJ_FRAMES_MAX, sizeof(*t->frames));
	t->history = calloc(STEPS_MAX + 1, sizeof(*t->history)); /* lj_sim_finish() adds one */
	if (!p || r || !t->frames || !t->history)
		return -ENOMEM;
	p->t = t;
	p->mem = &limited.mem;
	p->calls.l = l;
	l->calls = &p->calls;
	l->cdata = lj_cdata_open(&limited.mem, lj, g, &cdata) ? NULL : &cdata;
	p->calls.names = names;
	p->calls.nguards = lj_func_guards(t, &limited.mem, p->calls.guards);
	r = go(p);
	if (!r && !limited.remaining) /* out of reads: values that count as unknown may not be */
		r = -EBADMSG;
	if (r)
		return r;
	snap_match_set_copies(t);
	return lj_sim_finish(l);
}
