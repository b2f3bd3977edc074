// SPDX-License-Identifier: BSD-2-Clause
#include "arch/insn_work.h"

#include "insn.h"

static enum work move_work(const struct insn *in)
{
	bool store = in->reg[0] == INSN_NO_REG;

	if (!in->has_mem)
		return W_NONE;
	if (in->base == X86_RSP)
		return store ? W_SPILL : W_RELOAD;
	if (in->base == X86_RIP || in->base == INSN_NO_REG || in->base == X86_R14)
		return W_NONE; /* a constant; r14: the VM's state */
	return store ? W_STORE : W_LOAD;
}

/* A move to or from an XMM register. */
static enum work xmm_move_work(const struct insn *in)
{
	enum work move = move_work(in);

	return in->has_mem && in->reg[0] != INSN_NO_REG && move == W_NONE ? W_FCONST : move;
}

/* True for the zeroing idiom: the exclusive or of a register with itself. */
static bool is_zero(const struct insn *in)
{
	return !in->has_mem && in->reg[0] == in->reg[1];
}

static enum work integer_work(const struct insn *in)
{
	switch (in->op) {
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
static enum work number_work(const struct insn *in)
{
	switch (in->op) {
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

enum work insn_work_of(const struct insn *in, uint8_t *reg)
{
	enum work work = integer_work(in);

	*reg = in->reg[0];
	if (insn_is_branch(in))
		return W_JUMP;
	if (insn_is_call(in)) {
		*reg = X86_RAX;
		return W_CALL;
	}
	return work == W_NONE ? number_work(in) : work;
}

uint8_t insn_moved(const struct insn *in)
{
	bool move = in->op == ZYDIS_MNEMONIC_MOV || in->op == ZYDIS_MNEMONIC_MOVAPS;

	return move && in->reg[0] != INSN_NO_REG ? in->reg[1] : INSN_NO_REG;
}

/* Without GC64 by its address. */
bool insn_is_of_vm(const struct insn *in)
{
	return in->base == X86_R14 ||
	       (in->has_mem && in->base == INSN_NO_REG && in->index == INSN_NO_REG);
}

bool insn_is_trace_head(const struct insn *in)
{
	return insn_is_of_vm(in) && in->op == ZYDIS_MNEMONIC_MOV &&
	       (in->has_imm || in->reg[0] == X86_RDX);
}
