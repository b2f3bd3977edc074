// SPDX-License-Identifier: BSD-2-Clause
#include "work.h"

static enum work move_work(const struct x86_insn *in)
{
	bool store = in->reg[0] == X86_NONE;

	if (!in->has_mem)
		return W_NONE;
	if (in->base == X86_RSP)
		return store ? W_SPILL : W_RELOAD;
	if (in->base == X86_RIP || in->base == X86_NONE || in->base == X86_R14)
		return W_NONE; /* a constant; r14: the VM's state */
	return store ? W_STORE : W_LOAD;
}

/* A move to or from an XMM register. */
static enum work xmm_move_work(const struct x86_insn *in)
{
	enum work move = move_work(in);

	return in->has_mem && in->reg[0] != X86_NONE && move == W_NONE ? W_FCONST : move;
}

/* True for the zeroing idiom: the exclusive or of a register with itself. */
static bool is_zero(const struct x86_insn *in)
{
	return !in->has_mem && in->reg[0] == in->reg[1];
}

static enum work integer_work(const struct x86_insn *in)
{
	switch (in->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
	case ZYDIS_MNEMONIC_MOVZX:
		return move_work(in);
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_INC:
		return W_ADD;
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_DEC:
		return W_SUB;
	case ZYDIS_MNEMONIC_AND:
		return W_AND;
	case ZYDIS_MNEMONIC_OR:
		return W_OR;
	case ZYDIS_MNEMONIC_XOR:
		return is_zero(in) ? W_NONE : W_XOR;
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_TEST:
		return W_COMPARE;
	case ZYDIS_MNEMONIC_LEA:
		return W_LEA;
	case ZYDIS_MNEMONIC_MUL:
	case ZYDIS_MNEMONIC_IMUL:
	case ZYDIS_MNEMONIC_DIV:
	case ZYDIS_MNEMONIC_IDIV:
		return W_MUL;
	case ZYDIS_MNEMONIC_RORX: /* loads tagged pointers */
		return in->has_mem ? move_work(in) : W_SHIFT;
	case ZYDIS_MNEMONIC_SHL:
	case ZYDIS_MNEMONIC_SHR:
	case ZYDIS_MNEMONIC_SAR:
	case ZYDIS_MNEMONIC_ROL:
	case ZYDIS_MNEMONIC_ROR:
	case ZYDIS_MNEMONIC_SHLX:
	case ZYDIS_MNEMONIC_SHRX:
	case ZYDIS_MNEMONIC_SARX:
		return W_SHIFT;
	case ZYDIS_MNEMONIC_NOT:
		return W_NOT;
	case ZYDIS_MNEMONIC_NEG:
		return W_NEG;
	case ZYDIS_MNEMONIC_BSWAP:
		return W_BSWAP;
	default:
		return W_NONE;
	}
}

/* Single and double precision. LuaJIT uses a few vector instructions, for one number. */
static enum work number_work(const struct x86_insn *in)
{
	switch (in->mnemonic) {
	case ZYDIS_MNEMONIC_MOVSS:
	case ZYDIS_MNEMONIC_MOVSD:
	case ZYDIS_MNEMONIC_MOVLPD:
	case ZYDIS_MNEMONIC_MOVUPS:
	case ZYDIS_MNEMONIC_MOVD:
	case ZYDIS_MNEMONIC_MOVQ:
		return xmm_move_work(in);
	case ZYDIS_MNEMONIC_CVTSI2SS:
	case ZYDIS_MNEMONIC_CVTSI2SD:
	case ZYDIS_MNEMONIC_CVTSS2SI:
	case ZYDIS_MNEMONIC_CVTSD2SI:
	case ZYDIS_MNEMONIC_CVTTSS2SI:
	case ZYDIS_MNEMONIC_CVTTSD2SI:
	case ZYDIS_MNEMONIC_CVTSS2SD:
	case ZYDIS_MNEMONIC_CVTSD2SS:
	case ZYDIS_MNEMONIC_CVTPS2PD:
	case ZYDIS_MNEMONIC_CVTPD2PS:
	case ZYDIS_MNEMONIC_CVTDQ2PD:
		return W_CVT;
	case ZYDIS_MNEMONIC_UCOMISS:
	case ZYDIS_MNEMONIC_UCOMISD:
		return W_COMPARE;
	case ZYDIS_MNEMONIC_ADDSS:
	case ZYDIS_MNEMONIC_ADDSD:
		return W_FADD;
	case ZYDIS_MNEMONIC_SUBSS:
	case ZYDIS_MNEMONIC_SUBSD:
		return W_FSUB;
	case ZYDIS_MNEMONIC_MULSD:
		return W_FMUL;
	case ZYDIS_MNEMONIC_DIVSD:
		return W_FDIV;
	case ZYDIS_MNEMONIC_MINSD:
		return W_FMIN;
	case ZYDIS_MNEMONIC_MAXSD:
		return W_FMAX;
	case ZYDIS_MNEMONIC_SQRTSD:
		return W_FSQRT;
	case ZYDIS_MNEMONIC_ROUNDSD:
		return W_ROUND;
	case ZYDIS_MNEMONIC_ANDPS:
	case ZYDIS_MNEMONIC_ANDPD:
		return W_FAND;
	case ZYDIS_MNEMONIC_XORPS:
	case ZYDIS_MNEMONIC_XORPD:
		return is_zero(in) ? W_FCONST : W_FXOR;
	default:
		return W_NONE;
	}
}

enum work lj_work_of(const struct x86_insn *in, uint8_t *reg)
{
	enum work work = integer_work(in);

	*reg = in->reg[0];
	if (x86_is_jcc_rel(in))
		return W_JUMP;
	if (x86_is_call(in)) {
		*reg = X86_RAX;
		return W_CALL;
	}
	return work == W_NONE ? number_work(in) : work;
}

uint8_t lj_work_moved(const struct x86_insn *in)
{
	bool move = in->mnemonic == ZYDIS_MNEMONIC_MOV || in->mnemonic == ZYDIS_MNEMONIC_MOVAPS;

	return move && in->reg[0] != X86_NONE ? in->reg[1] : X86_NONE;
}

#define W(name) (1u << W_##name)

uint32_t lj_work_own(const struct lj_ins *ir)
{
	bool fp = (ir->t & LJ_IRT_TYPE) == LJ_IRT_NUM || (ir->t & LJ_IRT_TYPE) == LJ_IRT_FLOAT;

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
	case LJ_IR_HREF: /* the size of the hash is first */
		return W(LOAD);
	case LJ_IR_ALOAD ... LJ_IR_VLOAD:
		if (ir->o == LJ_IR_SLOAD && ir->op2 & LJ_IRSLOAD_PARENT)
			return 0; /* in the parent trace's register or spill slot */
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
