// SPDX-License-Identifier: BSD-2-Clause
/* Decides whether a snapshot may stand at a point of the path (layer 3). O(IR and steps since the
 * last snapshot). */
#include <string.h>

#include "branch.h"
#include "search.h"

static bool same_slot(const struct lj_trace *t, int frame, const struct lj_tsnap *s)
{
	return t->frames[frame].slot < 0 || t->frames[frame].slot == s->slot;
}

/* Returns the frame link at a snapshot: the return address, a metamethod's from below it. 0: it is
 * not known. */
static uint64_t link_of(const struct lj_trace *t, const struct lj_tsnap *s)
{
	uint64_t link = lj_snap_link(t, s, s->slot);

	return (link & 7) == LJ_FRAME_CONT && s->slot > 0 ? lj_snap_contpc(t, s, s->slot) : link;
}

/* True if the snapshot's link and the frame have the same caller: a function may be called twice at
 * one slot. */
static bool same_caller(const struct lj_trace *t, int frame, const struct lj_tsnap *s)
{
	const struct lj_tframe *f = &t->frames[frame];
	uint64_t link = link_of(t, s);
	uint32_t pos;
	int code = link & 3 ? -1 : lj_trace_code(t, link, &pos);

	return f->parent < 0 || code < 0 ||
	       (code == (int)t->frames[f->parent].code && pos == f->callpc + 1);
}

bool snap_match_is_called(const struct lj_trace *t, const struct lj_tsnap *s, int frame,
			  uint32_t pc)
{
	uint64_t link = link_of(t, s);
	uint32_t pos;

	return !link || link & 3 ||
	       (lj_trace_code(t, link, &pos) == (int)t->frames[frame].code && pos == pc + 1);
}

bool snap_match_is_at(const struct path *p, const struct lj_tsnap *s, int frame, uint32_t pc)
{
	const struct lj_code *c = &p->t->codes[p->t->frames[frame].code];

	return s->pc == c->proto + LJ_OFF(&p->t->lj, PROTO_SIZE) + 4ULL * pc &&
	       same_slot(p->t, frame, s) && same_caller(p->t, frame, s);
}

/* Not FSTORE: it stores metatables, and clears a table's negative cache of metamethods. */
static bool is_store(uint8_t op)
{
	return op >= LJ_IR_ASTORE && op <= LJ_IR_XSTORE && op != LJ_IR_FSTORE;
}

/* True for arithmetic on numbers. */
static bool is_arith(const struct lj_ins *ir)
{
	return ir->o >= LJ_IR_ADD && ir->o <= LJ_IR_DIV && (ir->t & LJ_IRT_TYPE) == LJ_IRT_NUM;
}

/* Return how many of either a bytecode instruction may become, at most. */
static uint32_t stores_of(uint32_t ins)
{
	uint8_t op = lj_bc_op(ins);

	return lj_bc_mm(ins) == LJ_MM_NEWINDEX || op == LJ_BC_FNEW || op == LJ_BC_TDUP ||
	       (op >= LJ_BC_USETV && op <= LJ_BC_USETP);
}

static uint32_t ariths_of(uint32_t ins)
{
	uint8_t op = lj_bc_op(ins);

	if (op >= LJ_BC_ADDVN && op <= LJ_BC_MODVV)
		return (op - LJ_BC_ADDVN) % 5 == 4 ? 3 : 1; /* a - floor(a/b)*b */
	if (op == LJ_BC_POW)
		return 16;
	return op == LJ_BC_FORL || op == LJ_BC_IFORL || op == LJ_BC_UNM;
}

bool snap_match_is_likely(const struct path *p, struct at a)
{
	const struct lj_trace *t = p->t;
	uint32_t stores = 0, ariths = 0, may_store = 0, may_compute = 0, ref, i;

	if (!a.snap) /* the IR before it replays the side exit */
		return true;
	if (a.guard < p->calls.nguards && p->calls.guards[a.guard].ref < t->snap[a.snap].ref)
		return false;
	if (a.guard && p->calls.guards[a.guard - 1].ref >= t->snap[a.snap].ref)
		return false;

	for (ref = t->snap[a.snap - 1].ref; ref < t->snap[a.snap].ref; ref++) {
		stores += is_store(lj_ins_at(t, ref)->o);
		ariths += is_arith(lj_ins_at(t, ref));
	}
	for (i = a.since; i < t->nhistory; i++) {
		uint32_t ins = lj_step_ins(t, i);

		if (lj_bc_is_call(ins) && !lj_step_enters(t, i) && !t->history[i].pure)
			return true;
		may_store += stores_of(ins);
		may_compute += ariths_of(ins);
	}
	return stores <= may_store && ariths <= may_compute;
}

bool snap_match_guards_comparison(const struct path *p, struct at a, uint32_t ins)
{
	const struct lj_trace *t = p->t;
	uint32_t ref;

	for (ref = t->snap[a.snap].ref; ref < t->nins; ref++) {
		const struct lj_ins *ir = lj_ins_at(t, ref);

		if (ir->t & LJ_IRT_GUARD)
			return ir->o <= LJ_IR_NE &&
			       lj_branch_may_guard(p->calls.l, &t->frames[a.frame], ins, ir);
	}
	return false;
}

void snap_match_set(struct lj_tsnap *s, uint32_t step, int frame, bool inside)
{
	s->step = (int32_t)step;
	s->frame = frame;
	s->inside = inside;
	s->on_c = false;
}

void snap_match_clear(struct lj_tsnap *s)
{
	s->step = s->frame = -1;
	s->inside = s->on_c = false;
}

/* True if it was recorded for a bytecode instruction. compares: for more than a comparison's
 * operands. */
static bool is_of_turn(const struct lj_ins *ir, bool compares)
{
	if (compares) /* the C types of cdata operands are guarded, too */
		return ir->o <= LJ_IR_NE && ir->t & LJ_IRT_GUARD &&
		       (ir->t & LJ_IRT_TYPE) != LJ_IRT_U16;
	/* a side trace first allocates what its parent sank, and checks for the collector
	 * (lj_snap_replay) */
	return ir->o != LJ_IR_NOP && ir->o != LJ_IR_SLOAD && ir->o != LJ_IR_GCSTEP;
}

bool snap_match_is_next_turn(const struct path *p, struct at a)
{
	const struct lj_trace *t = p->t;
	const struct lj_code *c = &t->codes[t->frames[a.frame].code];
	uint32_t ref = a.snap ? t->snap[a.snap - 1].ref : t->snap[a.snap].ref;

	bool compares;

	if (a.since != t->nhistory || a.pc >= c->sizebc)
		return false;
	compares = lj_bc_op(c->bc[a.pc]) <= LJ_BC_ISNEP;
	/* what is labelled is the loop's entry, or an earlier step's */
	while (ref < t->snap[a.snap].ref &&
	       (*lj_label_of(t, ref) >= 0 || !is_of_turn(lj_ins_at(t, ref), compares)))
		ref++;
	return ref < t->snap[a.snap].ref;
}

void snap_match_set_copies(struct lj_trace *t)
{
	uint32_t i, k;

	for (i = t->npre; i < t->nsnap; i++)
		for (k = 0; k < t->npre && t->snap[i].frame < 0; k++)
			if (t->snap[k].pc == t->snap[i].pc && t->snap[k].slot == t->snap[i].slot &&
			    link_of(t, &t->snap[k]) == link_of(t, &t->snap[i]))
				t->snap[i].frame = t->snap[k].frame;
}
