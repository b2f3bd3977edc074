// SPDX-License-Identifier: BSD-2-Clause
#include "sym/lj_trace_work.h"

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
		return store ? W_SPILL : W_RELOAD;
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
	enum work move;

	*reg = in->reg + 16;
	switch (in->op) {
	case 0x10:
	case 0x12:
		move = move_work(in, false);
		return x86_is_mem(in) && move == W_NONE ? W_FCONST : move;
	case 0x6e:
		return move_work(in, false);
	case 0x11:
	case 0x13:
	case 0x7e:
	case 0xd6: /* movd, 7e with 66: to a general register or memory */
		*reg = in->op == 0x7e && in->word && !x86_is_mem(in) ? in->rm : 0xff;
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
		return !x86_is_mem(in) && in->reg == in->rm ? W_FCONST : W_FXOR;
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

enum work lj_work_of(const struct x86_insn *in, uint8_t *reg)
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

bool lj_work_moves(const struct x86_insn *in, uint8_t *from)
{
	if (x86_is_mem(in))
		return false;
	*from = in->map == 1 ? in->rm + 16 : in->op == 0x89 ? in->reg : in->rm;
	return in->map ? in->map == 1 && in->op == 0x28 : in->op == 0x89 || in->op == 0x8b;
}

#define W(name) (1u << W_##name)

uint32_t lj_work_own(const struct lj_ins *ir)
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
	case LJ_IR_HREF: /* the size of the hash, first */
		return W(LOAD);
	case LJ_IR_ALOAD ... LJ_IR_VLOAD:
		if (ir->o == LJ_IR_SLOAD && ir->op2 & LJ_IRSLOAD_PARENT)
			return 0; /* where the trace that this one grew from has it */
		return W(LOAD) | (ir->o == LJ_IR_SLOAD || ir->o == LJ_IR_XLOAD ? W(CVT) : 0);
	case LJ_IR_ASTORE ... LJ_IR_XSTORE:
		return W(STORE);
	case LJ_IR_BUFHDR:
	case LJ_IR_RETF:
		return W(STORE);
	case LJ_IR_MOD:
	case LJ_IR_POW:
	case LJ_IR_LDEXP:
	case LJ_IR_NEWREF:
	case LJ_IR_SNEW ... LJ_IR_CNEWI:
	case LJ_IR_BUFPUT:
	case LJ_IR_BUFSTR:
	case LJ_IR_TOSTR:
	case LJ_IR_STRTO:
	case LJ_IR_CALLN ... LJ_IR_CALLXS:
		return W(CALL);
	case LJ_IR_ALEN:
	case LJ_IR_GCSTEP:
		return W(CALL) | W(STORE);
	default:
		return 0;
	}
}

bool lj_work_is_manifold(uint8_t o)
{
	return o == LJ_IR_HREF || (o >= LJ_IR_SNEW && o <= LJ_IR_OBAR) || o == LJ_IR_GCSTEP ||
	       o == LJ_IR_ALEN || o == LJ_IR_RETF || (o >= LJ_IR_CALLN && o <= LJ_IR_CALLXS);
}
