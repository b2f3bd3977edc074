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

#include "base/cleanup.h"
#include "sym/lj_trace_priv.h"
#include "target/x86_insn.h"

#define CELLS_MAX (2u << 20)

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
	UNTAG = 10,
};

enum work {
	W_NONE, /* moves, address arithmetic for others, what is not known */
	W_FADD,
	W_FSUB,
	W_FMUL,
	W_FDIV,
	W_FMIN,
	W_FMAX,
	W_FSQRT,
	W_FAND, /* abs */
	W_FXOR, /* negation */
	W_ROUND,
	W_CVT,
	W_ADD,
	W_SUB,
	W_AND,
	W_OR,
	W_XOR,
	W_LEA,
	W_MUL,
	W_SHIFT,
	W_NEG,
	W_NOT,
	W_BSWAP,
	W_LOAD,
	W_STORE,
	W_COMPARE,
	W_JUMP, /* conditional */
	W_CALL,
	W_SPILL, /* to the C stack */
};

struct machine {
	uint32_t ofs;
	enum work work;
	uint8_t reg; /* that it writes, XMM registers from 16 on; 0xff: not known */
};

/* Groups of the first opcode map: add or adc sbb and sub xor cmp. */
static enum work group_work(uint8_t n)
{
	static const uint8_t works[8] = {W_ADD, W_OR,  W_NONE, W_NONE,
					 W_AND, W_SUB, W_XOR,  W_COMPARE};

	return (enum work)works[n & 7];
}

static enum work move_work(const struct x86_insn *in, bool store)
{
	if (!x86_is_mem(in))
		return W_NONE;
	if ((in->base & 15) == X86_RSP && in->base != X86_RIP && in->base != X86_NONE)
		return store ? W_SPILL : W_NONE;
	if (in->base == X86_RIP || in->base == X86_NONE || in->base == 14)
		return W_NONE; /* a constant; r14: of the VM */
	return store ? W_STORE : W_LOAD;
}

static enum work one_byte(const struct x86_insn *in, uint8_t *reg)
{
	uint8_t op = in->op;

	if (op < 0x40 && (op & 7) < 4) {
		*reg = op & 2 ? in->reg : x86_is_mem(in) ? 0xff : in->rm;
		if (op >> 3 == 6 && !x86_is_mem(in) && in->reg == in->rm)
			return W_NONE; /* xor r, r: a zero */
		return group_work(op >> 3);
	}
	if (op < 0x40 && ((op & 7) == 4 || (op & 7) == 5)) {
		*reg = X86_RAX;
		return group_work(op >> 3);
	}
	if (op >= 0x70 && op <= 0x7f)
		return W_JUMP;
	*reg = x86_is_mem(in) ? 0xff : in->rm;
	switch (op) {
	case 0x63:
		*reg = in->reg;
		return move_work(in, false);
	case 0x69:
	case 0x6b:
		*reg = in->reg;
		return W_MUL;
	case 0x80:
	case 0x81:
	case 0x83:
		return group_work(in->reg);
	case 0x84:
	case 0x85:
	case 0xa8:
	case 0xa9:
		return W_COMPARE;
	case 0x88:
	case 0x89:
	case 0xc6:
	case 0xc7:
		return move_work(in, true);
	case 0x8a:
	case 0x8b:
		*reg = in->reg;
		return move_work(in, false);
	case 0x8d:
		*reg = in->reg;
		return W_LEA;
	case 0xc0:
	case 0xc1:
	case 0xd0:
	case 0xd1:
	case 0xd2:
	case 0xd3:
		return W_SHIFT;
	case 0xe8:
		return W_CALL;
	case 0xf6:
	case 0xf7:
		return (in->reg & 7) < 2    ? W_COMPARE
		       : (in->reg & 7) == 2 ? W_NOT
		       : (in->reg & 7) == 3 ? W_NEG
					    : W_MUL;
	case 0xff:
		return (in->reg & 7) == 2   ? W_CALL
		       : (in->reg & 7) == 0 ? W_ADD
		       : (in->reg & 7) == 1 ? W_SUB
					    : W_NONE;
	default:
		return W_NONE;
	}
}

static enum work two_byte(const struct x86_insn *in, uint8_t *reg)
{
	*reg = in->reg + 16;
	switch (in->op) {
	case 0x10:
	case 0x12:
	case 0x6e:
		return move_work(in, false);
	case 0x11:
	case 0x13:
	case 0x7e:
	case 0xd6:
		*reg = 0xff;
		return move_work(in, true);
	case 0x2a:
		return W_CVT;
	case 0x2c:
	case 0x2d:
		*reg = in->reg;
		return W_CVT;
	case 0x5a:
	case 0x5b:
	case 0xe6:
		return W_CVT;
	case 0x2e:
	case 0x2f:
		return W_COMPARE;
	case 0x28:
		return W_NONE;
	case 0x51:
		return W_FSQRT;
	case 0x54:
		return W_FAND;
	case 0x57:
		return !x86_is_mem(in) && in->reg == in->rm ? W_NONE : W_FXOR;
	case 0x58:
		return W_FADD;
	case 0x59:
		return W_FMUL;
	case 0x5c:
		return W_FSUB;
	case 0x5d:
		return W_FMIN;
	case 0x5e:
		return W_FDIV;
	case 0x5f:
		return W_FMAX;
	case 0xaf:
		*reg = in->reg;
		return W_MUL;
	case 0xb6:
	case 0xb7:
	case 0xbe:
	case 0xbf:
		*reg = in->reg;
		return move_work(in, false);
	default:
		if (in->op >= 0x80 && in->op <= 0x8f)
			return W_JUMP;
		*reg = 0xff;
		return in->op >= 0xc8 && in->op <= 0xcf ? W_BSWAP : W_NONE;
	}
}

static enum work work_of(const struct x86_insn *in, uint8_t *reg)
{
	*reg = 0xff;
	switch (in->map) {
	case 0:
		return one_byte(in, reg);
	case 1:
		return two_byte(in, reg);
	case 3:
		if (in->op == 0x0a || in->op == 0x0b) {
			*reg = in->reg + 16;
			return W_ROUND;
		}
		if (in->op == 0xf0) { /* rorx: how tagged pointers are loaded */
			*reg = in->reg;
			return x86_is_mem(in) ? move_work(in, false) : W_SHIFT;
		}
		return W_SHIFT;
	default:
		return W_SHIFT;
	}
}

#define W(name) (1u << W_##name)

/* The work that may be an instruction's own; 0: it has none. */
static uint32_t own_work(const struct lj_ins *ir)
{
	uint8_t type = ir->t & LJ_IRT_TYPE;
	bool fp = type == LJ_IRT_NUM || type == LJ_IRT_FLOAT;

	switch (ir->o) {
	case LJ_IR_BNOT:
		return W(NOT);
	case LJ_IR_BSWAP:
		return W(BSWAP);
	case LJ_IR_BAND:
		return W(AND) | W(LOAD) | W(COMPARE);
	case LJ_IR_BOR:
		return W(OR);
	case LJ_IR_BXOR:
		return W(XOR) | W(NOT);
	case LJ_IR_BSHL ... LJ_IR_BROR:
		return W(SHIFT) | (ir->o == LJ_IR_BSHL ? W(ADD) | W(LEA) : 0);
	case LJ_IR_ADD:
	case LJ_IR_ADDOV:
		return fp ? W(FADD) : W(ADD) | W(LEA) | W(SUB);
	case LJ_IR_SUB:
	case LJ_IR_SUBOV:
		return fp ? W(FSUB) : W(SUB) | W(LEA) | W(ADD) | W(NEG);
	case LJ_IR_MUL:
	case LJ_IR_MULOV:
		return fp ? W(FMUL) : W(MUL) | W(SHIFT) | W(LEA) | W(ADD);
	case LJ_IR_DIV:
		return fp ? W(FDIV) : W(CALL);
	case LJ_IR_NEG:
		return fp ? W(FXOR) : W(NEG);
	case LJ_IR_ABS:
		return W(FAND);
	case LJ_IR_MIN:
		return fp ? W(FMIN) : W(COMPARE);
	case LJ_IR_MAX:
		return fp ? W(FMAX) : W(COMPARE);
	case LJ_IR_FPMATH:
		return W(FSQRT) | W(ROUND) | W(CALL);
	case LJ_IR_CONV:
		return W(CVT) | (fp ? 0 : W(LOAD) | W(SHIFT));
	case LJ_IR_TOBIT:
		return W(FADD);
	case LJ_IR_AREF:
	case LJ_IR_STRREF:
	case LJ_IR_FREF:
	case LJ_IR_TMPREF:
		return W(LEA) | W(ADD) | W(SHIFT);
	case LJ_IR_HREFK:
	case LJ_IR_UREFO:
	case LJ_IR_UREFC:
		return W(LOAD) | W(LEA) | W(ADD);
	case LJ_IR_ALOAD ... LJ_IR_VLOAD:
		return W(LOAD) | (ir->o == LJ_IR_SLOAD || ir->o == LJ_IR_XLOAD ? W(CVT) : 0);
	case LJ_IR_ASTORE ... LJ_IR_XSTORE:
		return W(STORE);
	case LJ_IR_MOD:
	case LJ_IR_POW:
	case LJ_IR_LDEXP:
	case LJ_IR_NEWREF:
	case LJ_IR_ALEN:
	case LJ_IR_SNEW ... LJ_IR_BUFSTR:
	case LJ_IR_TOSTR:
	case LJ_IR_STRTO:
	case LJ_IR_CALLN ... LJ_IR_CALLXS:
	case LJ_IR_GCSTEP:
	case LJ_IR_RETF:
		return W(CALL) | W(STORE);
	default:
		return 0;
	}
}

/* Becomes many instructions of any kind: searches, tables and objects made in line, barriers. */
static bool is_manifold(uint8_t o)
{
	return o == LJ_IR_HREF || (o >= LJ_IR_SNEW && o <= LJ_IR_OBAR) || o == LJ_IR_GCSTEP ||
	       o == LJ_IR_ALEN || o == LJ_IR_RETF || (o >= LJ_IR_CALLN && o <= LJ_IR_CALLXS);
}

struct source {
	const struct lj_ins *ir;
	int32_t step;
	uint32_t own;
	bool has_reg, guard, needs_own;
};

static bool makes_code(const struct lj_ins *ir)
{
	if (ir->o <= LJ_IR_RETF)
		return true;
	if (ir->o < LJ_IR_BNOT)
		return ir->o == LJ_IR_GCSTEP || ir->o == LJ_IR_PROF || ir->o == LJ_IR_HIOP ||
		       ir->o == LJ_IR_LOOP || ir->o == LJ_IR_PHI;
	return ir->o != LJ_IR_CARG;
}

static void source_of(const struct lj_trace *t, uint32_t ref, struct source *s)
{
	const struct lj_ins *ir = lj_ins_at(t, ref);

	s->ir = ir;
	s->step = t->label[ref - LJ_REF_BIAS];
	s->own = own_work(ir);
	s->has_reg = !(ir->r & 0x80);
	s->guard = ir->t & LJ_IRT_GUARD || ir->o <= LJ_IR_RETF;
	s->needs_own = s->own && (s->has_reg || lj_ir_kind(ir->o) == LJ_IRK_S) &&
		       ir->o != LJ_IR_CONV && ir->o != LJ_IR_SLOAD;
}

enum { HAS_OWN = 1, HAS_JUMP = 2, STATES = 4 };

/* All that s needs was seen: what comes now sets up the next. */
static bool is_done(const struct source *s, unsigned state)
{
	return (state & HAS_OWN || !s->own) && (state & HAS_JUMP || !s->guard);
}

/* How well m fits to s, of which `state` was seen; and what of it is seen with m. */
static int fits(const struct source *s, unsigned state, const struct machine *m, unsigned *then)
{
	*then = state;
	if (s->ir->o == LJ_IR_LOOP || s->ir->o == LJ_IR_PHI)
		return m->work == W_NONE || m->work == W_SPILL ? TURN : FOREIGN;
	switch (m->work) {
	case W_NONE:
		if (is_done(s, state))
			return 0;
		/* an operand is moved to where the result will be */
		return s->has_reg && m->reg == s->ir->r ? 2 * BEFORE_OWN : BEFORE_OWN;
	case W_SPILL:
		return is_done(s, state) ? SPILL_AFTER : 0;
	case W_JUMP:
		*then = state | HAS_JUMP;
		if (s->guard)
			return state & HAS_JUMP ? JUMP_AGAIN : JUMP;
		return is_manifold(s->ir->o) ? 0 : FOREIGN;
	default:
		if (s->own >> m->work & 1) {
			int w = state & HAS_OWN ? OWN_AGAIN : OWN;

			*then = state | HAS_OWN;
			if (s->has_reg && m->reg != 0xff)
				w += m->reg == s->ir->r ? OWN_REG : -OWN_REG;
			return w;
		}
		if (m->work == W_COMPARE && s->guard)
			return state & HAS_JUMP ? 0 : COMPARE;
		if (s->has_reg && m->reg == s->ir->r && m->work == W_SHIFT && state & HAS_OWN)
			return UNTAG; /* a tagged pointer that was loaded */
		if (is_manifold(s->ir->o))
			return 0;
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

static int lacks(const struct source *s, unsigned state)
{
	return (s->needs_own && !(state & HAS_OWN) ? LACKS_OWN : 0) +
	       (s->guard && !(state & HAS_JUMP) ? LACKS_JUMP : 0);
}

/*
 * Divides m[0..nm) among s[0..ns), in order: owner[j] is the index of the one that m[j] belongs to.
 * Row i, column j, state: the best weight when the first j are given to the first i+1, the last of
 * which has seen `state`; and how it was come by.
 */
static int divide(const struct source *s, uint32_t ns, const struct machine *m, uint32_t nm,
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
			for (st = 0; i && st < STATES; st++) {
				int w = above[(size_t)j * STATES + st] + lacks(&s[i - 1], st);

				if (w > cell[0]) {
					cell[0] = w;
					came[(size_t)j * STATES] = (uint8_t)(0x10 | st);
				}
			}
			for (st = 0; j && st < STATES; st++) {
				unsigned then;
				int w = cell[(int)st - STATES] + fits(&s[i], st, &m[j - 1], &then);

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
			if (last[st] + lacks(&s[ns - 1], st) >
			    last[state] + lacks(&s[ns - 1], state))
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

static int add_place(struct lj_trace *t, uint32_t mcofs, int32_t step)
{
	if (t->nplaces && t->places[t->nplaces - 1].step == step)
		return 0;
	if (t->nplaces && t->places[t->nplaces - 1].mcofs == mcofs)
		t->nplaces--;
	t->places[t->nplaces++] = (struct lj_place){mcofs, step};
	return 0;
}

/* Machine code [from, to) was assembled from references [first, end). */
static int assign_piece(struct lj_trace *t, uint32_t from, uint32_t to, uint32_t first,
			uint32_t end)
{
	struct machine *m __cleanup(cleanup_free) = calloc(to - from + 1, sizeof(*m));
	struct source *s __cleanup(cleanup_free) = calloc(end - first + 1, sizeof(*s));
	uint32_t *owner __cleanup(cleanup_free) = calloc(to - from + 1, sizeof(*owner));
	uint32_t nm = 0, ns = 0, at, ref, j;
	bool one = true;
	int r;

	if (!m || !s || !owner)
		return -ENOMEM;
	for (ref = first; ref < end; ref++)
		if (makes_code(lj_ins_at(t, ref)))
			source_of(t, ref, &s[ns++]);
	for (j = 1; j < ns; j++)
		one = one && s[j].step == s[0].step;
	if (!ns &&
	    first > LJ_REF_BIAS + 1) /* the trace ends: it stores what it kept in registers */
		source_of(t, first - 1, &s[ns++]);
	if (one)
		return add_place(t, from, ns ? s[0].step : -1);
	for (at = from; at < to;) {
		struct x86_insn in;

		if (!x86_decode(t->code_bytes + at, to - at, &in))
			break;
		m[nm].ofs = at;
		m[nm].work = work_of(&in, &m[nm].reg);
		nm++;
		at += in.len;
	}
	r = divide(s, ns, m, nm, owner);
	if (r == -E2BIG)
		return add_place(t, from, -1);
	for (j = 0; j < nm && !r; j++)
		r = add_place(t, m[j].ofs, s[owner[j]].step);
	if (!r && at < to)
		r = add_place(t, at, -1); /* machine code that we cannot read */
	return r;
}

int lj_trace_assign(struct lj_trace *t)
{
	uint32_t from = 0, first = LJ_REF_BIAS + 1, i;
	int r = 0;

	t->places = calloc(t->szmcode + 2, sizeof(*t->places));
	if (!t->places)
		return -ENOMEM;
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
