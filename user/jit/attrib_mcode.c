// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which instruction of the intermediate code each machine instruction was assembled from (lj_asm.c,
 * lj_asm_x86.h). Snapshots tell exactly where both are, at some places; in between, both are in one
 * order, and each instruction of the intermediate code became some in a row, or none: of all such
 * divisions the likeliest is taken. What makes one likely: an addition has an addition instruction,
 * in the register that the trace says it got; a store writes to memory; a guard has a conditional
 * jump.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attrib_mcode.h"
#include "base/cleanup.h"
#include "work.h"
#include "arch/x86_64/insn.h"

#define CELLS_MAX (2u << 20)
#define NEAR 512 /* bytes that one instruction jumps over, at most */

/* Weights of a division. What matters is their order. */
enum {
	OWN = 80,	 /* the instruction that does the work, its first */
	OWN_AGAIN = -20, /* a second one */
	OWN_REG = 30,	 /* in the register that it got; less as much, in another */
	JUMP = 50,	 /* the guard's jump */
	JUMP_AGAIN = 5,
	FOREIGN = -90, /* an instruction that does other work */
	COMPARE = 30,
	LACKS_OWN = -60,
	LACKS_JUMP = -40,
	BEFORE_OWN = 2, /* operands are set up before the work */
	TURN = 3,	/* what a loop's turn moves */
	SPILL_AFTER = 6,
	RELOAD_AFTER = 6, /* what an instruction, a call mostly, took the registers from */
	LOAD_AFTER = -5,
	UNTAG = 10,
	WAY_THERE = 40, /* the load of what the work is done with */
};

struct mcode_source {
	const struct lj_ins *ir;
	int32_t step;
	uint32_t own;
	bool has_reg, guard, may_guard, needs_own, manifold, two_loads;
};

/* lj_target.h: allocated when the trace is left only, as is what it stores. */
#define RID_SINK 0xfe

/* Not what nobody uses, nor an operand of the instruction that does (ra_used). */
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

/* A constant function's upvalue is where it is: no more than the address is loaded, from the VM's
 * own data (asm_uref). */
static bool is_constant_place(const struct lj_ins *ir)
{
	return lj_is_uref(ir) && ir->op1 < LJ_REF_BIAS;
}

/* A guard by its type, which jumps in newer builds only: those see whether the upvalue is open. */
static bool may_jump_to_exit(const struct lj_ins *ir)
{
	return (ir->o == LJ_IR_UREFO || is_constant_place(ir)) && ir->t & LJ_IRT_GUARD &&
	       (ir->t & LJ_IRT_TYPE) == LJ_IRT_P64;
}

static bool jumps_to_exit(const struct lj_ins *ir)
{
	if (ir->o == LJ_IR_UREFO || is_constant_place(ir))
		return false;
	return ir->t & LJ_IRT_GUARD || ir->o <= LJ_IR_RETF;
}

/* A guard that a key is in a table, or not, directly behind the search: it searches itself, and the
 * other makes no code (asm_fuseequal). */
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
	s->own = is_constant_place(ir) ? 0 : lj_work_own(searches ? lj_ins_at(t, ir->op1) : ir);
	s->manifold = searches || lj_work_is_manifold(ir->o);
	/* the upvalue, and then where its value is */
	s->two_loads = lj_is_uref(ir) && !is_constant_place(ir);
	s->has_reg = !(ir->r & 0x80);
	s->guard = jumps_to_exit(ir);
	s->may_guard = may_jump_to_exit(ir);
	s->needs_own = s->own && (s->has_reg || lj_ir_kind(ir->o) == LJ_IRK_S) &&
		       ir->o != LJ_IR_CONV && ir->o != LJ_IR_SLOAD;
}

enum { HAS_OWN = 1, HAS_JUMP = 2, STATES = 4 };

/* All that s needs was seen: what comes now sets up the next. */
static bool is_done(const struct mcode_source *s, unsigned state)
{
	return (state & HAS_OWN || !s->own || (s->guard && !s->needs_own)) &&
	       (state & HAS_JUMP || !s->guard);
}

/* Behind a call: its result is moved to where it is wanted, and constants are loaded again that it
 * took the registers from; behind TOBIT, the number's lowest bits are moved. */
static bool is_left_behind(const struct mcode_source *s, const struct machine *m)
{
	bool calls = s->own >> W_CALL & 1;

	return (calls && m->work == W_FCONST) ||
	       ((calls || s->ir->o == LJ_IR_TOBIT) && s->has_reg && m->reg == s->ir->r);
}

/* How well m fits to s, of which `state` was seen; and what of it is seen with m. */
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
		if (is_done(s, state) && !is_constant_place(s->ir))
			return 0;
		/* an operand is moved to where the result will be; or the result itself */
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
			return UNTAG; /* a tagged pointer that was loaded */
		if (s->manifold)      /* what is loaded behind a call is the next one's */
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
 * Divides m[0..nm) among s[0..ns), in order: owner[j] is the index of the one that m[j] belongs to.
 * Row i, column j, state: the best weight when the first j are given to the first i+1, the last of
 * which has seen `state`; and how it was come by.
 */
static int divide(const struct mcode_source *s, uint32_t ns, const struct machine *m, uint32_t nm,
		  uint32_t *owner)
{
	size_t width = ((size_t)nm + 1) * STATES, cells = width * ns;
	int *best __cleanup(cleanup_free) = NULL;
	uint8_t *from __cleanup(cleanup_free) = NULL; /* state before; 0x10: in the row above */
	uint32_t i, j;
	unsigned st, state = 0;

	if (cells > CELLS_MAX)
		return -E2BIG;
	best = calloc(2 * width, sizeof(*best));
	from = calloc(cells, 1);
	if (!best || !from)
		return -ENOMEM;
	for (i = 0; i < ns; i++) {
		int *row = best + (i & 1 ? width : 0), *above = best + (i & 1 ? 0 : width);
		uint8_t *came = from + i * width;

		for (j = 0; j <= nm; j++) {
			int *cell = row + (size_t)j * STATES;

			for (st = 0; st < STATES; st++)
				cell[st] = INT32_MIN / 2;
			if (!i && !j)
				cell[0] = 0;
			for (st = 0; i && (j == nm || !m[j].glued) && st < STATES; st++) {
				int w = above[(size_t)j * STATES + st] +
					missing_penalty(&s[i - 1], st);

				if (w > cell[0]) {
					cell[0] = w;
					came[(size_t)j * STATES] = (uint8_t)(0x10 | st);
				}
			}
			for (st = 0; j && st < STATES; st++) {
				unsigned then;
				int w = cell[(int)st - STATES] +
					match_score(&s[i], st, &m[j - 1], &then);

				if (w > cell[then]) {
					cell[then] = w;
					came[(size_t)j * STATES + then] = (uint8_t)st;
				}
			}
		}
	}
	{
		const int *last = best + ((ns - 1) & 1 ? width : 0) + (size_t)nm * STATES;

		for (st = 1; st < STATES; st++)
			if (last[st] + missing_penalty(&s[ns - 1], st) >
			    last[state] + missing_penalty(&s[ns - 1], state))
				state = st;
	}
	i = ns - 1;
	for (j = nm; j || i;) {
		uint8_t came = from[i * width + (size_t)j * STATES + state];

		if (came & 0x10) {
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

static void add_place(struct lj_trace *t, uint32_t mcofs, int32_t step)
{
	if (t->nplaces && t->places[t->nplaces - 1].step == step)
		return;
	if (t->nplaces && t->places[t->nplaces - 1].mcofs == mcofs)
		t->nplaces--;
	t->places[t->nplaces++] = (struct lj_place){mcofs, step};
}

static bool is_reload(const struct machine *m)
{
	return m->work == W_RELOAD || m->work == W_FCONST || (m->work == W_NONE && m->of_vm);
}

/*
 * The check whether the collector has to run, before what may allocate (asm_gc_check): the limit is
 * compared with a field of the VM, and a call jumped over. It belongs to none.
 */
static void mark_gc_check(struct machine *m, uint32_t nm, uint32_t jump, uint32_t to)
{
	uint32_t j, last = jump;

	for (j = jump + 1; j < nm && m[j].ofs < to; j++)
		if (m[j].work == W_CALL)
			last = j;
	if (!jump || m[jump - 1].work != W_COMPARE || !m[jump - 1].of_vm || last == jump)
		return;
	for (j = jump - 1; j < nm && m[j].ofs < to; j++)
		m[j].work = W_GC;
	for (; j < nm && is_reload(&m[j]); j++) /* the call took the registers */
		m[j].work = W_GC;
}

/* What is jumped over, or jumped back over, was made of one instruction. */
static void glue(struct machine *m, uint32_t nm, uint32_t jump, uint32_t to)
{
	uint32_t j;

	m[jump].work = W_INSIDE;
	for (j = jump + 1; j < nm && m[j].ofs < to; j++)
		m[j].glued = true;
	for (j = jump; m[j].ofs > to; j--)
		m[j].glued = true;
}

/* Reads machine code [from, to); returns where it could not any more. jumps: room, zeroed. */
static uint32_t read_machine(const struct lj_trace *t, uint32_t from, uint32_t to,
			     struct machine *m, uint32_t *nm, uint32_t *jumps)
{
	struct x86_insn in;
	uint32_t at, i;
	bool saved;
	uint8_t moved = X86_NONE; /* from there, by the move before */

	*nm = 0;
	for (at = from; at < to && x86_decode(t->code_bytes + at, to - at, &in); at += in.len) {
		int64_t target = (int64_t)at + in.len + in.imm;

		if (x86_is_jcc_rel(&in) && target > from && target < to && target != t->mcloop &&
		    in.imm > -NEAR && in.imm < NEAR)
			jumps[*nm] = (uint32_t)target;
		m[*nm].ofs = at;
		m[*nm].work = lj_work_of(&in, &m[*nm].reg);
		m[*nm].of_vm = in.base == X86_R14;
		saved = moved != X86_NONE && m[*nm].reg == moved;
		moved = lj_work_moved(&in);
		m[*nm].turns = moved != X86_NONE;
		if (saved && !m[*nm].turns)
			m[*nm - 1].turns = false;
		if (x86_is_jmp_rel(&in)) /* back to the loop's beginning */
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

/* Machine code [from, to) was assembled from references [first, end). */
static int assign_piece(struct lj_trace *t, uint32_t from, uint32_t to, uint32_t first,
			uint32_t end)
{
	struct machine *m __cleanup(cleanup_free) = calloc(to - from + 1, sizeof(*m));
	struct mcode_source *s __cleanup(cleanup_free) = calloc(end - first + 1, sizeof(*s));
	uint32_t *owner __cleanup(cleanup_free) = calloc(to - from + 1, sizeof(*owner));
	uint32_t *jumps __cleanup(cleanup_free) = calloc(to - from + 1, sizeof(*jumps));
	uint32_t nm = 0, ns = 0, at, ref, j;
	bool one = true;
	int r;

	if (!m || !s || !owner || !jumps)
		return -ENOMEM;
	for (ref = first; ref < end; ref++)
		if (makes_code(lj_ins_at(t, ref)) &&
		    !(ref + 1 < t->nins && is_merged_search(t, ref + 1)))
			source_of(t, ref, &s[ns++]);
	for (j = 1; j < ns; j++)
		one = one && s[j].step == s[0].step;
	if (!ns &&
	    first > LJ_REF_BIAS + 1) /* the trace ends: it stores what it kept in registers */
		source_of(t, first - 1, &s[ns++]);
	if (one) {
		add_place(t, from, ns ? s[0].step : -1);
		return 0;
	}
	at = read_machine(t, from, to, m, &nm, jumps);
	r = divide(s, ns, m, nm, owner);
	if (r == -E2BIG) {
		add_place(t, from, -1);
		return 0;
	}
	for (j = 0; j < nm && !r; j++)
		add_place(t, m[j].ofs, s[owner[j]].step);
	if (!r && at < to)
		add_place(t, at, -1); /* machine code that we cannot read */
	return r;
}

/* A trace begins with what is none of its instructions' (asm_head_root, asm_head_side): the VM is
 * told its number, and the base is loaded. Returns where that ends. */
static uint32_t head_end(const struct lj_trace *t)
{
	struct x86_insn in;
	uint32_t at = 0;

	while (x86_decode(t->code_bytes + at, t->szmcode - at, &in) && in.base == X86_R14 &&
	       in.mnemonic == ZYDIS_MNEMONIC_MOV && (in.has_imm || in.reg[0] == X86_RDX))
		at += in.len;
	return at;
}

int lj_trace_assign(struct lj_trace *t)
{
	uint32_t from = head_end(t), first = LJ_REF_BIAS + 1, i;
	int r = 0;

	t->places = calloc(t->szmcode + 2, sizeof(*t->places));
	if (!t->places)
		return -ENOMEM;
	add_place(t, 0, t->nhistory ? 0 : -1);
	for (i = 0; i <= t->nsnap && !r; i++) {
		uint32_t to = i < t->nsnap ? t->snap[i].mcofs : t->szmcode;
		uint32_t end = i < t->nsnap ? t->snap[i].ref : t->nins;

		/* the loop's beginning is as certain as a snapshot */
		if (t->loopref && first <= t->loopref && end > t->loopref && t->mcloop > from &&
		    t->mcloop <= to) {
			r = assign_piece(t, from, t->mcloop, first, t->loopref);
			from = t->mcloop;
			first = t->loopref;
		}
		if (to > t->szmcode || to <= from || r)
			continue;
		r = assign_piece(t, from, to, first, end);
		from = to;
		first = end;
	}
	return r;
}
