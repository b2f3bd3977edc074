// SPDX-License-Identifier: BSD-2-Clause
#include "arch/insn_data.h"

#include "insn.h"

/* True if the instruction adds or subtracts a constant. */
static bool add_constant(const struct insn *in, int64_t *by)
{
	*by = in->op == ZYDIS_MNEMONIC_SUB ? -in->imm : in->imm;
	return in->has_imm && (in->op == ZYDIS_MNEMONIC_ADD || in->op == ZYDIS_MNEMONIC_SUB);
}

bool insn_def(const struct insn *in, struct insn_def *def)
{
	bool direct = in->has_mem && in->index == INSN_NO_REG && in->base < INSN_REGS;
	int64_t by;

	if (in->size != 8 || in->reg[0] >= INSN_REGS)
		return false;
	if (add_constant(in, &by))
		*def = (struct insn_def){.from = in->reg[0], .by = by};
	else if (in->op == ZYDIS_MNEMONIC_MOV && in->reg[1] < INSN_REGS)
		*def = (struct insn_def){.from = in->reg[1]};
	else if ((in->op == ZYDIS_MNEMONIC_MOV || in->op == ZYDIS_MNEMONIC_LEA) && direct)
		*def = (struct insn_def){
			.from = in->base, .load = in->op == ZYDIS_MNEMONIC_MOV, .by = in->disp};
	else
		return false;
	def->reg = in->reg[0];
	return true;
}

bool insn_accesses_field(const struct insn *in)
{
	return in->mem_size && in->mem_size <= 8 && in->index == INSN_NO_REG &&
	       in->base < INSN_REGS && (in->reg[0] == INSN_NO_REG || in->reg[0] < X86_XMM) &&
	       (in->reg[1] == INSN_NO_REG || in->reg[1] < X86_XMM);
}

bool insn_sets_constant(const struct insn *in, uint8_t reg, int64_t *value)
{
	*value = in->imm;
	return in->op == ZYDIS_MNEMONIC_MOV && in->reg[0] == reg && in->has_imm;
}

bool insn_sets_address(const struct insn *in, uint8_t reg)
{
	return in->op == ZYDIS_MNEMONIC_LEA && in->reg[0] == reg && in->base == X86_RIP;
}

bool insn_sets_bits(const struct insn *in, int32_t offset, int64_t bits)
{
	return in->op == ZYDIS_MNEMONIC_OR && x86_is_field(in) && in->has_imm &&
	       in->disp == offset && in->imm == bits;
}

bool insn_shifts_right(const struct insn *in, int64_t by)
{
	return (in->op == ZYDIS_MNEMONIC_SHR || in->op == ZYDIS_MNEMONIC_SAR) && in->has_imm &&
	       in->imm == by;
}

bool insn_has_mask(const struct insn *in, int64_t mask)
{
	return (in->op == ZYDIS_MNEMONIC_AND || in->op == ZYDIS_MNEMONIC_MOV) && in->has_imm &&
	       in->imm == mask;
}

const uint8_t insn_arg[INSN_ARGS] = {X86_RDI, X86_RSI, X86_RDX, X86_RCX, X86_R8, X86_R9};

bool insn_is_caller_saved(uint8_t reg)
{
	return reg <= X86_RDX || reg == X86_RSI || reg == X86_RDI ||
	       (reg >= X86_R8 && reg <= X86_R11);
}
