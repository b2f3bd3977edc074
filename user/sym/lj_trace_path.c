// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which bytecode a trace was recorded from. Its snapshots tell points of the way, in order; between
 * two of them control flows as the bytecode says. Where that says two things (a branch, a call
 * whose callee is not in the bytecode), both are tried, until all snapshots lie on the way.
 *
 * A branch that was guarded has a snapshot of its own: its position is where the branch did not go
 * (rec_comp_fixup, rec_for), as that is where execution goes on when the guard fails.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sym/lj_trace_func.h"
#include "vm/lj_bc.h"

#define STEPS_MAX 16000 /* on the way: LuaJIT records no more than maxrecord instructions */
#define FRAMES_MAX 2000
#define TRIES_MAX 20000	 /* steps in all, those of ways that led nowhere, too */
#define CHOICES_MAX 1500 /* on the way: each is a call of walk() */

struct path {
	struct lj_trace *t;
	const struct lb_mem *mem;
	uint32_t tries, choices;
	bool strict; /* the guards are met in order, each by a call */
	struct func_guard guards[LJ_FUNC_GUARDS];
	uint32_t nguards;
};

/* bc_j: distance from the next instruction. */
static uint32_t target(uint32_t pc, uint32_t ins)
{
	return pc + 1 + lj_bc_d(ins) - 0x8000u;
}

static int new_frame(struct path *p, struct lj_tframe frame)
{
	struct lj_trace *t = p->t;

	if (t->nframes == FRAMES_MAX)
		return -1;
	t->frames[t->nframes] = frame;
	return (int)t->nframes++;
}

/* A frame's own function is a constant once its upvalues are used. 0: it is none. */
static uint64_t own_func(const struct path *p, uint32_t code)
{
	const struct lj_trace *t = p->t;
	struct func func;
	uint32_t ref;

	for (ref = LJ_REF_BIAS - 4; ref >= t->nk; ref--)
		if (lj_func_of(t, p->mem, ref, &func) && func.code == (int)code && func.addr)
			return func.addr;
	return 0;
}

/*
 * The frames on which a trace begins, as its first snapshot has them: from the innermost down, as
 * far as links tell. Returns the innermost, or -1.
 */
static int first_frames(struct path *p)
{
	struct lj_trace *t = p->t;
	const struct lj_tsnap *s = &t->snap[0];
	int32_t slot = s->slot;
	struct func func;
	uint32_t pos;
	int code = lj_trace_code(t, s->pc, &pos), first, f;

	if (code < 0)
		return -1;
	first = f = new_frame(
		p, (struct lj_tframe){.parent = -1, .slot = slot, .code = (uint32_t)code});
	while (slot > 0 && f >= 0) {
		uint64_t link = lj_trace_const(t, lj_snap_entry(s, (uint32_t)slot + 1) & 0xffff);
		uint32_t ins;
		int parent;

		if (lj_func_of(p->t, p->mem, lj_snap_entry(s, (uint32_t)slot) & 0xffff, &func))
			t->frames[f].func = func.addr;
		if ((link & 7) == LJ_FRAME_VARG && link >> 3 && link >> 3 <= (uint64_t)slot) {
			slot -= (int32_t)(link >> 3);
			continue;
		}
		code = lj_trace_code(t, link, &pos);
		if (link & 3 || code < 0 || !pos)
			break;
		ins = t->codes[code].bc[pos - 1];
		if (!lj_bc_is_call(ins))
			break;
		slot -= 2 + lj_bc_a(ins);
		parent = new_frame(
			p, (struct lj_tframe){.parent = -1, .slot = slot, .code = (uint32_t)code});
		if (parent < 0 || slot < 0)
			break;
		t->frames[f].parent = parent;
		t->frames[f].callpc = pos - 1;
		f = parent;
	}
	if (f >= 0 && !t->frames[f].func)
		t->frames[f].func = own_func(p, t->frames[f].code);
	return first;
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

static bool is_at(const struct path *p, const struct lj_tsnap *s, int frame, uint32_t pc)
{
	const struct lj_code *c = &p->t->codes[p->t->frames[frame].code];

	return s->pc == c->proto + LJ_PROTO_SIZE + 4ULL * pc && same_slot(p->t, frame, s);
}

/*
 * Between two snapshots control goes round once at most: a loop has a guard. And it does not go
 * further than what it left in the intermediate code lets expect.
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
	return n > 1;
}

static bool try_way(struct path *p, struct at a, uint32_t pc, int frame)
{
	uint32_t nsteps = p->t->nsteps, nframes = p->t->nframes;

	if (p->tries >= TRIES_MAX || p->choices >= CHOICES_MAX)
		return false;
	a.pc = pc;
	a.frame = frame;
	p->choices++;
	if (walk(p, a))
		return true;
	p->choices--;
	p->t->nsteps = nsteps;
	p->t->nframes = nframes;
	return false;
}

static bool is_store(uint8_t op)
{
	return op >= LJ_IR_ASTORE && op <= LJ_IR_XSTORE;
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
	if (p->strict && (a.guard < p->nguards && p->guards[a.guard].ref < t->snap[a.snap].ref))
		return false;
	if (p->strict && a.guard && p->guards[a.guard - 1].ref >= t->snap[a.snap].ref)
		return false;

	for (ref = t->snap[a.snap - 1].ref; ref < t->snap[a.snap].ref; ref++) {
		stores += is_store(lj_ins_at(t, ref)->o);
		sums += is_sum(lj_ins_at(t, ref));
	}
	for (i = a.since; i < t->nsteps; i++) {
		uint32_t ins = lj_step_ins(t, i);

		if (lj_bc_is_call(ins) && !lj_step_enters(t, i))
			return true;
		may_store += stores_of(ins);
		may_sum += sums_of(ins);
	}
	return stores <= may_store && sums <= may_sum;
}

/* Is the guard after this snapshot a comparison? */
static bool guards_comparison(const struct lj_trace *t, const struct lj_tsnap *s)
{
	uint32_t ref;

	for (ref = s->ref; ref < t->nins; ref++)
		if (lj_ins_at(t, ref)->t & LJ_IRT_GUARD)
			return lj_ins_at(t, ref)->o <= LJ_IR_NE;
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

/* A guarded branch's snapshot is where the branch did not go. */
static bool branch(struct path *p, struct at a, uint32_t one, uint32_t other)
{
	struct lj_trace *t = p->t;
	struct lj_tsnap *s = a.snap < t->npre ? &t->snap[a.snap] : NULL;
	struct at past = a;
	uint32_t i;

	if (s && t->nsteps && guards_comparison(t, s) && is_likely(p, a)) {
		past.snap++;
		past.since = t->nsteps - 1;
		place(s, t->nsteps - 1, a.frame, true);
		for (i = 0; i < 2; i++)
			if (is_at(p, s, a.frame, i ? one : other) &&
			    try_way(p, past, i ? other : one, a.frame))
				return true;
		unplace(s);
	}
	return try_way(p, a, one, a.frame) || (one != other && try_way(p, a, other, a.frame));
}

/* Into a Lua function. */
static bool enter(struct path *p, struct at a, const struct func *func, uint32_t ins, bool tail)
{
	struct lj_trace *t = p->t;
	const struct lj_tframe *f = &t->frames[a.frame];
	uint32_t nframes = t->nframes;
	struct lj_tframe to = {
		.parent = tail ? f->parent : a.frame,
		.slot = -1,
		.code = (uint32_t)func->code,
		.callpc = tail ? f->callpc : a.pc,
		.tail = tail,
		.func = func->addr,
		.protected = func->protected,
	};
	int frame;

	if (!t->codes[func->code].vararg && f->slot >= 0) {
		if (func->protected)
			to.slot = f->slot + 4 + lj_bc_a(ins);
		else if (lj_bc_is_call(ins))
			to.slot = tail ? f->slot : f->slot + 2 + lj_bc_a(ins);
		else if (strcmp(lj_bc_mm(ins), "__concat") !=
			 0) /* rec_mm_prep: a continuation below it */
			to.slot = f->slot + 4 + (int32_t)lj_bc_a(t->codes[f->code].bc[0]);
	}
	frame = new_frame(p, to);
	if (frame >= 0 && try_way(p, a, 0, frame))
		return true;
	t->nframes = nframes;
	return false;
}

#define NO_STEP UINT32_MAX

/*
 * The step that fetched what is in *slot before step i of the same frame, and is no copy: copies
 * are followed, and *slot becomes the one that was copied from. NO_STEP: it has been there since
 * the frame began, or (*slot is NO_SLOT) nothing tells.
 */
#define NO_SLOT UINT32_MAX
static uint32_t fetched_by(const struct lj_trace *t, uint32_t i, uint32_t *slot)
{
	uint32_t frame = t->steps[i].frame;

	while (i-- > 0) {
		uint32_t ins = lj_step_ins(t, i);

		if (t->steps[i].frame != frame)
			continue;
		if (lj_bc_mode_a(ins) == LJ_BCM_BASE && lj_bc_a(ins) <= *slot) {
			*slot = NO_SLOT;
			return NO_STEP;
		}
		if (lj_bc_mode_a(ins) != LJ_BCM_DST || lj_bc_a(ins) != *slot)
			continue;
		if (lj_bc_op(ins) != LJ_BC_MOV)
			return i;
		*slot = lj_bc_d(ins);
	}
	return NO_STEP;
}

/*
 * What the call in hand calls, when the instruction that fetched it tells; or under which key it
 * was in a table (GCstr, 0: not known).
 */
static bool fetched(const struct path *p, struct at a, uint32_t slot, struct func *out,
		    uint64_t *key)
{
	const struct lj_trace *t = p->t;
	const struct lj_tframe *f = &t->frames[a.frame];
	const struct lj_code *c = &t->codes[f->code];
	uint32_t i = fetched_by(t, t->nsteps - 1, &slot), ins, k;

	*key = 0;
	if (i == NO_STEP)
		return false;
	ins = lj_step_ins(t, i);
	k = lj_bc_op(ins) == LJ_BC_TGETS  ? lj_bc_c(ins)
	    : lj_bc_op(ins) == LJ_BC_GGET ? lj_bc_d(ins)
					  : c->nkgc;
	if (k < c->nkgc)
		*key = c->kgc[k];
	return lj_bc_op(ins) == LJ_BC_UGET &&
	       lj_func_upvalue(t, p->mem, f->func, lj_bc_d(ins), out);
}

/* What step i called; not Lua's, when it entered nothing. */
static struct func called_by(const struct lj_trace *t, uint32_t i)
{
	const struct lj_tframe *f = &t->frames[t->steps[i + 1].frame];

	if (!lj_step_enters(t, i))
		return (struct func){.code = -1};
	return (struct func){.addr = f->func, .code = (int)f->code};
}

/* A local that was called on the way is called again: as it was then. */
static bool called_local(const struct path *p, struct at a, uint32_t slot, struct func *out)
{
	const struct lj_trace *t = p->t;
	uint32_t i, other;

	if (fetched_by(t, t->nsteps - 1, &slot) != NO_STEP || slot == NO_SLOT)
		return false;
	for (i = 0; i + 1 < t->nsteps; i++) {
		uint32_t ins = lj_step_ins(t, i);

		if (t->steps[i].frame != (uint32_t)a.frame || lj_bc_op(ins) != LJ_BC_CALL)
			continue;
		other = lj_bc_a(ins);
		if (fetched_by(t, i, &other) != NO_STEP || other != slot)
			continue;
		*out = called_by(t, i);
		return true;
	}
	return false;
}

/* Which function a call at this place entered before on the way, if any. */
static bool called_before(const struct path *p, struct at a, struct func *out)
{
	const struct lj_trace *t = p->t;
	uint32_t code = t->frames[a.frame].code, i;

	for (i = 0; i + 1 < t->nsteps; i++)
		if (t->frames[t->steps[i].frame].code == code && t->steps[i].pc == a.pc) {
			*out = called_by(t, i);
			return out->code >= 0;
		}
	return false;
}

/* To the caller; below the trace's own frames, to where a RETF says. */
static bool leave(struct path *p, struct at a)
{
	struct lj_trace *t = p->t;
	struct lj_tframe *f = &t->frames[a.frame];
	uint32_t ref, pos;
	int code, frame;

	if (f->parent >= 0)
		return try_way(p, a, f->callpc + 1, f->parent);
	for (ref = a.retf; ref < t->nins; ref++)
		if (lj_ins_at(t, ref)->o == LJ_IR_RETF)
			break;
	if (ref >= t->nins || (a.snap < t->npre && ref >= t->snap[a.snap].ref))
		return false;
	code = lj_trace_code(t, lj_trace_const(t, lj_ins_at(t, ref)->op2), &pos);
	if (code < 0 || !pos)
		return false;
	frame = new_frame(p, (struct lj_tframe){.parent = -1,
						.code = (uint32_t)code,
						.func = own_func(p, (uint32_t)code)});
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

/* By pcall(): the next snapshot stands on a frame above pcall()'s. */
static bool enter_protected(struct path *p, struct at a, uint32_t ins)
{
	const struct lj_trace *t = p->t;
	const struct lj_tframe *f = &t->frames[a.frame];
	const struct lj_tsnap *s = &t->snap[a.snap];
	struct func func = {.protected = true};
	uint32_t pos;

	if (a.snap >= t->npre || f->slot < 0 || s->slot != f->slot + 4 + (int)lj_bc_a(ins))
		return false;
	func.code = lj_trace_code(t, s->pc, &pos);
	if (func.code < 0)
		return false;
	if (a.guard < p->nguards && p->guards[a.guard].func.code == func.code &&
	    p->guards[a.guard].ref < s->ref)
		a.guard++;
	return enter(p, a, &func, ins, false);
}

static bool call_this(struct path *p, struct at a, const struct func *func, uint32_t ins,
		      uint32_t next, bool tail)
{
	if (func->code >= 0)
		return enter(p, a, func, ins, tail);
	return tail ? leave(p, a) : enter_protected(p, a, ins) || try_way(p, a, next, a.frame);
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

/*
 * A call: what is called is not in the bytecode. It may be in an upvalue that never changes. Else
 * the trace has a guard for it when it is the first call of that value; or it was called at this
 * place before.
 */
static bool call(struct path *p, struct at a, uint32_t ins, uint32_t next, bool tail)
{
	struct lj_trace *t = p->t;
	const struct lj_tframe *f = &t->frames[a.frame];
	const struct lj_tsnap *s = a.snap < t->npre ? &t->snap[a.snap] : NULL;
	bool is_plain = lj_bc_is_call(ins);
	uint64_t key = 0;
	struct func func;
	uint32_t i;

	if (is_plain && ends_here(p, a, ins)) {
		place(&t->snap[a.snap], t->nsteps, -1, false); /* on a frame of C's */
		return true;
	}
	if (is_plain && lj_bc_op(ins) != LJ_BC_ITERC && lj_bc_op(ins) != LJ_BC_ITERN &&
	    fetched(p, a, lj_bc_a(ins), &func, &key))
		return call_this(p, a, &func, ins, next, tail);
	if (called_before(p, a, &func) && enter(p, a, &func, ins, tail))
		return true;
	if (lj_bc_op(ins) == LJ_BC_CALL && called_local(p, a, lj_bc_a(ins), &func) &&
	    call_this(p, a, &func, ins, next, tail))
		return true;
	if (a.guard < p->nguards && (!s || p->guards[a.guard].ref < s->ref) &&
	    lj_func_is_for(&p->guards[a.guard], ins, key)) {
		struct at b = a;

		b.guard++;
		func = p->guards[a.guard].func;
		if ((is_plain || func.code >= 0) && call_this(p, b, &func, ins, next, tail))
			return true;
	}
	if (!is_plain) {
		if (try_way(p, a, next, a.frame))
			return true;
		for (i = a.guard; i-- > 0;)
			if (lj_func_is_for(&p->guards[i], ins, key) &&
			    p->guards[i].func.code >= 0 &&
			    enter(p, a, &p->guards[i].func, ins, tail))
				return true;
		return false;
	}
	for (i = a.guard; i-- > 0 && key;) /* the same method again */
		if (p->guards[i].key == key && call_this(p, a, &p->guards[i].func, ins, next, tail))
			return true;
	if (call_this(p, a, &(struct func){.code = -1}, ins, next, tail))
		return true;
	for (i = a.guard; i-- > 0;) /* one that the trace is sure of already */
		if (p->guards[i].func.code >= 0 && lj_func_is_for(&p->guards[i], ins, key) &&
		    enter(p, a, &p->guards[i].func, ins, tail))
			return true;
	/* one of the traces that this one grew from was */
	func = (struct func){.code = -1};
	if (s && f->slot >= 0 && s->slot == f->slot + (tail ? 0 : 2 + (int)lj_bc_a(ins)))
		func.code = lj_trace_code(t, s->pc, &i);
	return func.code >= 0 && enter(p, a, &func, ins, tail);
}

/* The next snapshot stands here. */
static bool meet(struct path *p, struct at a)
{
	struct lj_tframe *f = &p->t->frames[a.frame];
	struct lj_tsnap *s = &p->t->snap[a.snap];
	int32_t slot = f->slot;

	if (!is_likely(p, a))
		return false;
	f->slot = s->slot;
	place(s, p->t->nsteps, a.frame, false);
	a.snap++;
	a.since = p->t->nsteps;
	if (try_way(p, a, a.pc, a.frame))
		return true;
	f->slot = slot;
	unplace(s);
	return false;
}

/* Has the trace a guard for any metamethod of this instruction? */
static bool has_metamethod(const struct path *p, uint32_t ins)
{
	uint32_t i;

	for (i = 0; i < p->nguards; i++)
		if (lj_func_is_for(&p->guards[i], ins, 0))
			return true;
	return false;
}

/* From here on until nothing is left to be met. */
static bool walk(struct path *p, struct at a)
{
	struct lj_trace *t = p->t;

	for (;;) {
		const struct lj_code *c = &t->codes[t->frames[a.frame].code];
		uint32_t ins;

		if (a.snap < t->npre && is_at(p, &t->snap[a.snap], a.frame, a.pc) && meet(p, a))
			return true;
		if (a.snap == t->npre)
			return true;
		if (a.pc >= c->sizebc || t->nsteps == STEPS_MAX || p->tries++ >= TRIES_MAX ||
		    goes_astray(p, a))
			return false;
		ins = c->bc[a.pc];
		t->steps[t->nsteps++] = (struct lj_step){.pc = a.pc, .frame = (uint32_t)a.frame};
		switch (lj_bc_op(ins)) {
		case LJ_BC_ISLT ... LJ_BC_ISF:
			if (a.pc + 1 >= c->sizebc || lj_bc_op(c->bc[a.pc + 1]) != LJ_BC_JMP)
				return false;
			return branch(p, a, a.pc + 2, target(a.pc + 1, c->bc[a.pc + 1]));
		case LJ_BC_FORI:
		case LJ_BC_JFORI:
		case LJ_BC_FORL:
		case LJ_BC_IFORL:
		case LJ_BC_ITERL:
		case LJ_BC_IITERL:
			return branch(p, a, a.pc + 1, target(a.pc, ins));
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
			if (*lj_bc_mm(ins) == '_' && has_metamethod(p, ins))
				return call(p, a, ins, a.pc + 1, false);
			a.pc++;
		}
	}
}

/* A trace that begins at a loop's end records that first, then the loop's body. */
static void begin_at_loop(struct path *p, struct at a)
{
	struct lj_trace *t = p->t;
	uint32_t pos;
	int code = lj_trace_code(t, t->startpc, &pos);

	if (lj_ins_at(t, LJ_REF_BIAS)->op1 || code != (int)t->frames[a.frame].code || pos == a.pc)
		return;
	if (lj_bc_op(t->codes[code].bc[pos]) == LJ_BC_FORL)
		t->steps[t->nsteps++] = (struct lj_step){.pc = pos, .frame = (uint32_t)a.frame};
}

static int go(struct path *p, bool strict)
{
	struct at a = {.retf = LJ_REF_BIAS + 1};
	struct lj_trace *t = p->t;

	t->nframes = t->nsteps = 0;
	p->tries = p->choices = 0;
	p->strict = strict;
	a.frame = first_frames(p);
	if (a.frame < 0 || lj_trace_code(t, t->snap[0].pc, &a.pc) < 0)
		return -EBADMSG;
	begin_at_loop(p, a);
	return walk(p, a) ? 0 : -EBADMSG;
}

int lj_trace_path(struct lj_trace *t, const struct lb_mem *mem)
{
	struct path *p __cleanup(cleanup_free) = calloc(1, sizeof(*p));
	int r;

	t->frames = calloc(FRAMES_MAX, sizeof(*t->frames));
	t->steps = calloc(STEPS_MAX, sizeof(*t->steps));
	if (!p || !t->frames || !t->steps)
		return -ENOMEM;
	p->t = t;
	p->mem = mem;
	p->nguards = lj_func_guards(t, mem, p->guards);
	r = go(p, true);
	return r ? go(p, false) : 0;
}
