// SPDX-License-Identifier: BSD-2-Clause
/*
 * The IR instruction from which each machine instruction was assembled (lj_asm.c, lj_asm_x86.h).
 * Snapshots are exact pairs of both. Between two of them both are in the same order, and each IR
 * instruction became a run of machine instructions, or none. Algorithm: sequence alignment by
 * dynamic programming, O(IR * machine instructions) for each piece; in a long one only what is near the
 * diagonal, CELLS_MAX cells. The score favours matching work (an addition and an ADD, a store and a write), the allocated
 * register, and a conditional jump for each guard.
 */
#include <errno.h>
#include <stdlib.h>

#include "attrib_mcode.h"
#include "base/cleanup.h"
#include "work.h"
#include "arch/insn_work.h"

#define CELLS_MAX (8u << 20)	/* of a piece: 50 ms */
#define CELLS_TRACE (24u << 20) /* of all pieces of a trace */
#define BAND_LEAST 64		/* columns on each side of the diagonal */
#define ABOVE 0x10		/* of a predecessor */
#define NEAR 512		/* longest jump, in bytes, within one IR instruction's code */

/* Scores of an alignment. Only their order matters. */
enum {
	OWN = 80,	 /* the first instruction that does the work */
	OWN_AGAIN = -20, /* a second one */
	OWN_REG = 30,	 /* result in the allocated register; in another, the negative */
	JUMP = 50,	 /* the guard's jump */
	JUMP_AGAIN = 5,
	FOREIGN = -90, /* an instruction that does other work */
	COMPARE = 30,
	LACKS_OWN = -60,
	LACKS_JUMP = -40,
	BEFORE_OWN = 2, /* operands are set up before the work */
	TURN = 3,	/* moves at a loop's turn */
	SPILL_AFTER = 6,
	RELOAD_AFTER = 6, /* reloads of registers that a call, or another instruction, clobbered */
	LOAD_AFTER = -5,
	UNTAG = 10,
	WAY_THERE = 40, /* the first of two loads: the upvalue */
};

struct mcode_source {
	const struct lj_ins *ir;
	int32_t step;
	uint32_t own;
	bool has_reg, guard, may_guard, needs_own, manifold, two_loads;
};

/* lj_target.h: sunk, allocated at exits only, as are stores to it. */
#define RID_SINK 0xfe

/* False for unused instructions, and for those fused into their user (ra_used). */
static bool makes_code(const struct lj_ins *ir)
{
	if (ir->o <= LJ_IR_RETF)
		return true;
	if (ir->r == RID_SINK)
		return false;
	if (ir->o < LJ_IR_BNOT)
		return ir->o == LJ_IR_GCSTEP || ir->o == LJ_IR_PROF || ir->o == LJ_IR_HIOP ||
		       ir->o == LJ_IR_LOOP || ir->o == LJ_IR_PHI;
	return ir->o != LJ_IR_CARG &&
	       (ir->t & LJ_IRT_GUARD || lj_ir_kind(ir->o) == LJ_IRK_S || !(ir->r & 0x80) || ir->s);
}

/* True for the upvalue of a constant function: its address is a constant, loaded from the VM's own
 * data (asm_uref). */
static bool is_constant_address(const struct lj_ins *ir)
{
	return lj_is_uref(ir) && ir->op1 < LJ_REF_BIAS;
}

/* True for a typed guard that jumps in newer builds only: they check whether the upvalue is
 * open. */
static bool may_jump_to_exit(const struct lj_ins *ir)
{
	return (ir->o == LJ_IR_UREFO || is_constant_address(ir)) && ir->t & LJ_IRT_GUARD &&
	       (ir->t & LJ_IRT_TYPE) == LJ_IRT_P64;
}

static bool jumps_to_exit(const struct lj_ins *ir)
{
	if (ir->o == LJ_IR_UREFO || is_constant_address(ir))
		return false;
	return ir->t & LJ_IRT_GUARD || ir->o <= LJ_IR_RETF;
}

/* True for a guard on the result of the hash lookup directly before it: both are assembled as one
 * (asm_fuseequal). */
static bool is_merged_search(const struct lj_trace *t, uint32_t ref)
{
	const struct lj_ins *ir = lj_ins_at(t, ref);

	return (ir->o == LJ_IR_EQ || ir->o == LJ_IR_NE) && ref > LJ_REF_BIAS + 1 &&
	       ir->op1 == ref - 1 && lj_ins_at(t, ref - 1)->o == LJ_IR_HREF;
}

static void source_of(const struct lj_trace *t, uint32_t ref, struct mcode_source *s)
{
	const struct lj_ins *ir = lj_ins_at(t, ref);
	bool searches = is_merged_search(t, ref);

	s->ir = ir;
	s->step = t->label[ref - LJ_REF_BIAS];
	s->own = is_constant_address(ir) ? 0 : lj_work_own(searches ? lj_ins_at(t, ir->op1) : ir);
	s->manifold = searches || lj_work_is_manifold(ir->o);
	/* the upvalue, then its value's address */
	s->two_loads = lj_is_uref(ir) && !is_constant_address(ir);
	s->has_reg = !(ir->r & 0x80);
	s->guard = jumps_to_exit(ir);
	s->may_guard = may_jump_to_exit(ir);
	s->needs_own = s->own && (s->has_reg || lj_ir_kind(ir->o) == LJ_IRK_S) &&
		       ir->o != LJ_IR_CONV && ir->o != LJ_IR_SLOAD;
}

enum { HAS_OWN = 1, HAS_JUMP = 2, STATES = 4 };

/* True if all that s needs was seen: the rest sets up the next one. */
static bool is_done(const struct mcode_source *s, unsigned state)
{
	return (state & HAS_OWN || !s->own || (s->guard && !s->needs_own)) &&
	       (state & HAS_JUMP || !s->guard);
}

/* True for the code after a call's own: moves of its result, and reloads of constants that it
 * clobbered. Also for the move of a number's lowest bits after TOBIT. */
static bool is_left_behind(const struct mcode_source *s, const struct machine *m)
{
	bool calls = s->own >> W_CALL & 1;

	return (calls && m->work == W_FCONST) ||
	       ((calls || s->ir->o == LJ_IR_TOBIT) && s->has_reg && m->reg == s->ir->r);
}

/* Returns the score of m as a part of s, of which `state` was seen. *then: the state with m. */
static int match_score(const struct mcode_source *s, unsigned state, const struct machine *m,
		       unsigned *then)
{
	*then = state;
	if (s->ir->o == LJ_IR_LOOP && m->work == W_GC)
		return TURN;
	if (s->ir->o == LJ_IR_LOOP || s->ir->o == LJ_IR_PHI)
		return m->turns || m->work == W_SPILL ? TURN : m->work == W_NONE ? 0 : FOREIGN;
	switch (m->work) {
	case W_GC:
		return 0;
	case W_RELOAD:
		return is_done(s, state) && state & HAS_OWN ? RELOAD_AFTER : 0;
	case W_FCONST:
	case W_NONE:
		if (is_done(s, state) && is_left_behind(s, m))
			return RELOAD_AFTER;
		if (is_done(s, state) && !is_constant_address(s->ir))
			return 0;
		/* an operand is moved to the result's register; or the result itself */
		return s->has_reg && m->reg == s->ir->r ? 2 * BEFORE_OWN : BEFORE_OWN;
	case W_SPILL:
		return is_done(s, state) ? SPILL_AFTER : 0;
	case W_INSIDE:
		return s->manifold ? JUMP_AGAIN : FOREIGN;
	case W_JUMP:
		*then = state | HAS_JUMP;
		if (s->guard)
			return state & HAS_JUMP ? JUMP_AGAIN : JUMP;
		return s->manifold || s->may_guard ? 0 : FOREIGN;
	default:
		if (s->two_loads && m->work == W_LOAD && !(state & HAS_OWN) && s->has_reg &&
		    m->reg != s->ir->r)
			return WAY_THERE;
		if (s->own >> m->work & 1) {
			int w = !(state & HAS_OWN) ? OWN : s->manifold ? 0 : OWN_AGAIN;

			*then = state | HAS_OWN;
			if (s->has_reg && m->reg != 0xff)
				w += m->reg == s->ir->r ? OWN_REG : -OWN_REG;
			return w;
		}
		if (m->work == W_COMPARE && s->guard)
			return state & HAS_JUMP ? 0 : COMPARE;
		if (m->work == W_COMPARE && s->may_guard)
			return 0;
		if (s->has_reg && m->reg == s->ir->r && m->work == W_SHIFT && state & HAS_OWN)
			return UNTAG; /* a loaded tagged pointer */
		if (s->manifold)      /* a load after a call belongs to the next one */
			return m->work == W_LOAD && s->own >> W_CALL & 1 && state & HAS_OWN
				       ? LOAD_AFTER
				       : 0;
		/* arithmetic on addresses and types */
		if (m->work >= W_ADD && m->work <= W_SHIFT && !s->own)
			return state & HAS_OWN ? 0 : BEFORE_OWN;
		if (m->work >= W_ADD && m->work <= W_SHIFT &&
		    (s->ir->o >= LJ_IR_AREF && s->ir->o <= LJ_IR_XSTORE))
			return 0;
		if (m->work == W_LOAD && s->ir->o >= LJ_IR_AREF && s->ir->o <= LJ_IR_XSTORE)
			return -5;
		return FOREIGN;
	}
}

static int missing_penalty(const struct mcode_source *s, unsigned state)
{
	return (s->needs_own && !(state & HAS_OWN) ? LACKS_OWN : 0) +
	       (s->guard && !(state & HAS_JUMP) ? LACKS_JUMP : 0);
}

/*
 * The columns of a row that are looked at: all, or those near the diagonal where there are more than CELLS_MAX cells. Code of
 * one kind stays near it.
 */
struct band {
	uint32_t ns, nm, half;
};

/* left: the trace's cells. */
static int band_init(struct band *b, uint32_t ns, uint32_t nm, size_t left)
{
	size_t most = left < CELLS_MAX ? left : CELLS_MAX;

	*b = (struct band){.ns = ns, .nm = nm, .half = nm};
	if (((size_t)nm + 1) * STATES * ns <= most)
		return 0;
	b->half = (uint32_t)(most / STATES / ns / 2);
	return b->half >= BAND_LEAST ? 0 : -E2BIG;
}

static uint32_t band_middle(const struct band *b, uint32_t row)
{
	return b->ns > 1 ? (uint32_t)((uint64_t)b->nm * row / (b->ns - 1)) : b->nm;
}

static uint32_t band_first(const struct band *b, uint32_t row)
{
	uint32_t middle = band_middle(b, row);

	return middle > b->half ? middle - b->half : 0;
}

static uint32_t band_last(const struct band *b, uint32_t row)
{
	uint32_t middle = band_middle(b, row);

	return b->nm - middle > b->half ? middle + b->half : b->nm;
}

/* Cells of a row, at most. */
static size_t band_width(const struct band *b)
{
	size_t columns = 2 * (size_t)b->half + 1, all = (size_t)b->nm + 1;

	return (columns < all ? columns : all) * STATES;
}

/* True if a path through this cell may have a better one beyond the band. */
static bool is_band_edge(const struct band *b, uint32_t row, uint32_t column)
{
	return (column && column == band_first(b, row)) ||
	       (column < b->nm && column == band_last(b, row));
}

/* Fills row i from the row above (NULL: i is 0): the scores, and in `came` the predecessor's state, with ABOVE if it is in
 * the row above. */
static void fill_row(const struct band *b, const struct mcode_source *s, uint32_t i,
		     const struct machine *m, int *row, const int *above, uint8_t *came)
{
	uint32_t first = band_first(b, i), last = band_last(b, i), j;
	unsigned st;

	for (j = first; j <= last; j++) {
		int *cell = row + (size_t)j * STATES;
		uint8_t *from = came + (size_t)(j - first) * STATES;

		for (st = 0; st < STATES; st++)
			cell[st] = INT32_MIN / 2;
		if (!i && !j)
			cell[0] = 0;
		if (above && j <= band_last(b, i - 1) && (j == b->nm || !m[j].glued))
			for (st = 0; st < STATES; st++) {
				int w = above[(size_t)j * STATES + st] +
					missing_penalty(&s[i - 1], st);

				if (w > cell[0]) {
					cell[0] = w;
					from[0] = (uint8_t)(ABOVE | st);
				}
			}
		for (st = 0; j > first && st < STATES; st++) {
			unsigned then;
			int w = cell[(int)st - STATES] + match_score(&s[i], st, &m[j - 1], &then);

			if (w > cell[then]) {
				cell[then] = w;
				from[then] = (uint8_t)st;
			}
		}
	}
}

/* Aligns m[0..nm) with s[0..ns): owner[j] is the index of the one that m[j] belongs to. Cell (row
 * i, column j, state): the best score with the first j given to the first i+1, of whose last one
 * `state` was seen. Returns 0, -ENOMEM, or -E2BIG: there is too much of both. *left: cells that may
 * still be filled. */
static int divide(const struct mcode_source *s, uint32_t ns, const struct machine *m, uint32_t nm,
		  uint32_t *owner, size_t *left)
{
	size_t all = ((size_t)nm + 1) * STATES, width;
	int *best __cleanup(cleanup_free) = NULL, *last;
	uint8_t *from __cleanup(cleanup_free) = NULL;
	unsigned st, state = 0;
	struct band band;
	uint32_t i, j;

	if (band_init(&band, ns, nm, *left))
		return -E2BIG;
	width = band_width(&band);
	*left -= width * ns < *left ? width * ns : *left;
	best = calloc(2 * all, sizeof(*best));
	from = calloc(width * ns, 1);
	if (!best || !from)
		return -ENOMEM;
	for (i = 0; i < ns; i++)
		fill_row(&band, s, i, m, best + (i & 1 ? all : 0),
			 i ? best + (i & 1 ? 0 : all) : NULL, from + i * width);
	last = best + ((ns - 1) & 1 ? all : 0) + (size_t)nm * STATES;
	for (st = 1; st < STATES; st++)
		if (last[st] + missing_penalty(&s[ns - 1], st) >
		    last[state] + missing_penalty(&s[ns - 1], state))
			state = st;
	i = ns - 1;
	for (j = nm; j || i;) {
		uint8_t came =
			from[i * width + (size_t)(j - band_first(&band, i)) * STATES + state];

		if (is_band_edge(&band, i, j))
			return -E2BIG;
		if (came & ABOVE) {
			i--;
		} else {
			if (!j)
				break;
			owner[--j] = i;
		}
		state = came & 3;
	}
	return 0;
}

static void add_mc_entry(struct lj_trace *t, uint32_t mcofs, int32_t step)
{
	if (t->nmc_entries && t->mc_entries[t->nmc_entries - 1].step == step)
		return;
	if (t->nmc_entries && t->mc_entries[t->nmc_entries - 1].mcofs == mcofs)
		t->nmc_entries--;
	t->mc_entries[t->nmc_entries++] = (struct lj_mc_entry){mcofs, step};
}

static bool is_reload(const struct machine *m)
{
	return m->work == W_RELOAD || m->work == W_FCONST || (m->work == W_NONE && m->of_vm);
}

/* Marks a check whether the collector has to run, before an allocation (asm_gc_check): loads a field of the VM, compares
 * it with another, and jumps over a call. It belongs to no instruction. */
static void mark_gc_check(struct machine *m, uint32_t nm, uint32_t jump, uint32_t to)
{
	uint32_t j, last = jump, first = jump - 1;

	for (j = jump + 1; j < nm && m[j].ofs < to; j++)
		if (m[j].work == W_CALL)
			last = j;
	if (!jump || m[jump - 1].work != W_COMPARE || !m[jump - 1].of_vm || last == jump)
		return;
	if (first && is_reload(&m[first - 1]))
		first--;
	for (j = first; j < nm && m[j].ofs < to; j++)
		m[j].work = W_GC;
	for (; j < nm && is_reload(&m[j]); j++) /* reloads of registers that the call clobbered */
		m[j].work = W_GC;
}

/* Code that a short jump skips, or repeats, was assembled from one instruction. */
static void glue(struct machine *m, uint32_t nm, uint32_t jump, uint32_t to)
{
	uint32_t j;

	m[jump].work = W_INSIDE;
	for (j = jump + 1; j < nm && m[j].ofs < to; j++)
		m[j].glued = true;
	for (j = jump; m[j].ofs > to; j--)
		m[j].glued = true;
}

/* Decodes machine code [from, to). Returns the offset of the first instruction that it cannot
 * decode. jumps: room, zeroed. */
static uint32_t read_machine(const struct lj_trace *t, uint32_t from, uint32_t to,
			     struct machine *m, uint32_t *nm, uint32_t *jumps)
{
	struct insn in;
	uint32_t at, i;
	bool saved;
	uint8_t moved = INSN_NO_REG; /* source of the move before */

	*nm = 0;
	for (at = from; at < to && insn_decode(t->code_bytes + at, to - at, &in); at += in.len) {
		int64_t target = (int64_t)at + in.len + in.imm;

		if (insn_is_branch(&in) && target > from && target < to && target != t->mcloop &&
		    in.imm > -NEAR && in.imm < NEAR)
			jumps[*nm] = (uint32_t)target;
		m[*nm].ofs = at;
		m[*nm].work = insn_work_of(&in, &m[*nm].reg);
		m[*nm].of_vm = insn_is_of_vm(&in);
		saved = moved != INSN_NO_REG && m[*nm].reg == moved;
		moved = insn_moved(&in);
		m[*nm].turns = moved != INSN_NO_REG;
		if (saved && !m[*nm].turns)
			m[*nm - 1].turns = false;
		if (insn_is_jump(&in)) /* back to the loop's start */
			m[*nm].turns = true;
		++*nm;
	}
	for (i = 0; i < *nm; i++)
		if (jumps[i]) {
			glue(m, *nm, i, jumps[i]);
			mark_gc_check(m, *nm, i, jumps[i]);
		}
	return at;
}

/* True for an object's allocation that makes the assembler emit a check whether the collector has to run. */
static bool allocates(const struct lj_ins *ir)
{
	switch (ir->o) {
	case LJ_IR_SNEW ... LJ_IR_CNEWI:
	case LJ_IR_BUFSTR:
	case LJ_IR_TOSTR:
	case LJ_IR_CALLA:
		return makes_code(ir);
	default:
		return false;
	}
}

/* Returns the next reference, from ref on, of an allocation whose step is known; end: there is no other. */
static uint32_t next_allocation(const struct lj_trace *t, uint32_t ref, uint32_t end)
{
	for (; ref < end; ref++) {
		int32_t step = *lj_label_of(t, ref);

		if (allocates(lj_ins_at(t, ref)) && step >= 0 && !t->history[step].ambiguous)
			break;
	}
	return ref;
}

/*
 * Copies the step whose line gets the collector's time at the check for all allocations of references [first, end): the
 * first one of the function that has most of them. -1: there is no allocation whose step is known. Returns 0 or -ENOMEM.
 */
static int find_collecting(const struct lj_trace *t, uint32_t first, uint32_t end,
			   int32_t *collects)
{
	uint32_t *count __cleanup(cleanup_free) = calloc(t->ncodes + 1, sizeof(*count));
	const struct lj_code *most = t->codes;
	uint32_t ref;

	*collects = -1;
	if (!count)
		return -ENOMEM;
	for (ref = first; (ref = next_allocation(t, ref, end)) < end; ref++)
		count[lj_code_of(t, *lj_label_of(t, ref)) - t->codes]++;
	for (ref = first; (ref = next_allocation(t, ref, end)) < end; ref++) {
		const struct lj_code *code = lj_code_of(t, *lj_label_of(t, ref));

		if (*collects >= 0 && count[code - t->codes] <= count[most - t->codes])
			continue;
		most = code;
		*collects = *lj_label_of(t, ref);
	}
	return 0;
}

/* Attributes machine code [from, to) to references [first, end). jumped: the branch of the first one is before this code.
 * collects: of find_collecting(). */
static int assign_piece(struct lj_trace *t, uint32_t from, uint32_t to, uint32_t first,
			uint32_t end, bool jumped, int32_t collects)
{
	struct machine *m __cleanup(cleanup_free) = calloc(to - from + 1, sizeof(*m));
	struct mcode_source *s __cleanup(cleanup_free) = calloc(end - first + 1, sizeof(*s));
	uint32_t *owner __cleanup(cleanup_free) = calloc(to - from + 1, sizeof(*owner));
	uint32_t *jumps __cleanup(cleanup_free) = calloc(to - from + 1, sizeof(*jumps));
	uint32_t nm = 0, ns = 0, at, ref, j;
	bool one = collects < 0;
	int r;

	if (!m || !s || !owner || !jumps)
		return -ENOMEM;
	for (ref = first; ref < end; ref++)
		if (makes_code(lj_ins_at(t, ref)) &&
		    !(ref + 1 < t->nins && is_merged_search(t, ref + 1)))
			source_of(t, ref, &s[ns++]);
	if (ns && jumped)
		s[0].guard = s[0].may_guard = false;
	for (j = 1; j < ns; j++)
		one = one && s[j].step == s[0].step;
	if (!ns &&
	    first > LJ_REF_BIAS + 1) /* the trace's end: stores of values kept in registers */
		source_of(t, first - 1, &s[ns++]);
	if (one || !ns) {
		add_mc_entry(t, from, ns ? s[0].step : -1);
		return 0;
	}
	at = read_machine(t, from, to, m, &nm, jumps);
	r = divide(s, ns, m, nm, owner, &t->cells_left);
	if (r == -E2BIG) {
		add_mc_entry(t, from, -1);
		return 0;
	}
	for (j = 0; j < nm && !r; j++)
		add_mc_entry(t, m[j].ofs,
			     m[j].work == W_GC && collects >= 0 ? collects : s[owner[j]].step);
	if (!r && at < to)
		add_mc_entry(t, at, -1); /* undecodable machine code */
	return r;
}

/* Returns the end of a trace's head, which no IR instruction made: it stores the trace's number in
 * the VM, and loads the base (asm_head_root, asm_head_side). */
static uint32_t head_end(const struct lj_trace *t)
{
	struct insn in;
	uint32_t at = 0;

	while (insn_decode(t->code_bytes + at, t->szmcode - at, &in) && insn_is_trace_head(&in))
		at += in.len;
	return at;
}

static bool has_branch(const struct lj_trace *t, uint32_t ref)
{
	return jumps_to_exit(lj_ins_at(t, ref)) && makes_code(lj_ins_at(t, ref));
}

/*
 * Returns the reference at which the code of snapshot i begins: its own. By guards its code begins behind the branch of
 * the guard before: where the next reference's does, but that the guard may load its value there. 0: not known, as not
 * each guard has its branch.
 */
static uint32_t begins_at(const struct lj_trace *t, uint32_t i)
{
	uint32_t ref = t->snap[i].ref, behind = 0, branches = 0;

	if (!t->by_guards)
		return ref;
	while (i && ref-- > t->snap[i - 1].ref)
		if (has_branch(t, ref)) {
			behind = behind ? behind : ref + 1;
			branches++;
		}
	return i && branches <= t->snap[i - 1].branches ? behind : 0;
}

int lj_trace_assign(struct lj_trace *t)
{
	uint32_t from = head_end(t), first = LJ_REF_BIAS + 1, i;
	bool jumped = false;
	int32_t collects;
	int r = find_collecting(t, first, lj_recorded_end(t), &collects);

	if (r)
		return r;
	t->cells_left = CELLS_TRACE;
	t->mc_entries = calloc(t->szmcode + 2, sizeof(*t->mc_entries));
	if (!t->mc_entries)
		return -ENOMEM;
	add_mc_entry(t, 0, t->nhistory ? 0 : -1);
	for (i = 0; i <= t->nsnap && !r; i++) {
		uint32_t to = i < t->nsnap ? t->snap[i].mcofs : t->szmcode;
		uint32_t end = i < t->nsnap ? begins_at(t, i) : t->nins;

		if (!end)
			continue;
		/* the loop's start is exact, as a snapshot is */
		if (t->loopref && first <= t->loopref && end > t->loopref && t->mcloop > from &&
		    t->mcloop <= to) {
			r = assign_piece(t, from, t->mcloop, first, t->loopref, jumped, collects);
			from = t->mcloop;
			first = t->loopref;
			jumped = false;
			if (!r)
				r = find_collecting(t, first, t->nins, &collects);
		}
		if (to > t->szmcode || to <= from || r)
			continue;
		r = assign_piece(t, from, to, first, end, jumped, collects);
		from = to;
		first = end - t->by_guards;
		jumped = t->by_guards;
	}
	return r;
}
