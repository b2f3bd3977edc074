// SPDX-License-Identifier: BSD-2-Clause
#include "arch/puc_loop.h"

#include <string.h>

#include "insn.h"

#define INSN_SIZE 4 /* sizeof(Instruction), lopcodes.h */

bool puc_is_fetch(const struct insn *in)
{
	return in->op == ZYDIS_MNEMONIC_MOV && in->size == INSN_SIZE && in->reg[0] != INSN_NO_REG &&
	       x86_is_field(in) && (in->disp == 0 || in->disp == -INSN_SIZE);
}

/* add r, 4 or lea r, [from + 4] */
uint8_t puc_stepped(const struct insn *in, uint8_t from)
{
	bool adds = in->op == ZYDIS_MNEMONIC_ADD && in->reg[0] == from && in->imm == INSN_SIZE;
	bool leads = in->op == ZYDIS_MNEMONIC_LEA && x86_is_field(in) && in->base == from &&
		     in->disp == INSN_SIZE;

	return in->size == 8 && (adds || leads) ? in->reg[0] : INSN_NO_REG;
}

bool puc_moves_local(const struct insn *in, unsigned operand, uint8_t reg)
{
	return in->op == ZYDIS_MNEMONIC_MOV && in->size == 8 && x86_is_field(in) &&
	       in->base == X86_RBP && in->disp < 0 && in->reg[operand] == reg;
}

bool puc_is_opcode(const struct insn *in, uint8_t mask)
{
	return in->op == ZYDIS_MNEMONIC_AND && in->size >= 4 && in->reg[0] != INSN_NO_REG &&
	       in->imm == mask;
}

/* and r32, mask: its last two bytes, and the opcode before them */
bool puc_has_opcode(const uint8_t *text, size_t size, uint8_t mask)
{
	const uint8_t *p = text, *end = text + size - 2;

	while (p < end && (p = memchr(p, 0x83, (size_t)(end - p)))) {
		if ((p[1] & 0xf8) == 0xe0 && p[2] == mask)
			return true;
		p++;
	}
	return false;
}

bool puc_refutes(const struct insn *in, uint8_t opcode, uint8_t limit)
{
	return in->op == ZYDIS_MNEMONIC_CMP && in->reg[0] == opcode && in->has_imm &&
	       (in->imm > limit || in->imm < limit - 3);
}

/* mov (%r13,%rax,8),%rax */
bool puc_loads_by_index(const struct insn *in)
{
	return in->op == ZYDIS_MNEMONIC_MOV && in->size == 8 && in->has_mem &&
	       in->index != INSN_NO_REG && in->reg[0] != INSN_NO_REG;
}

bool puc_is_save(const struct insn *in)
{
	return in->op == ZYDIS_MNEMONIC_MOV && in->size == 8 && in->reg[1] != INSN_NO_REG &&
	       x86_is_field(in);
}

bool puc_takes_address(const struct insn *in, uint16_t field)
{
	return in->op == ZYDIS_MNEMONIC_LEA && in->size == 8 && x86_is_field(in) &&
	       in->disp == field;
}

/* lea -0x7fffc(pc,Bx,4),pc */
bool puc_jumps_pc(const struct insn *in, uint8_t pc_reg)
{
	return in->op == ZYDIS_MNEMONIC_LEA && in->size == 8 && in->base == pc_reg &&
	       in->index != INSN_NO_REG && in->reg[0] == pc_reg;
}
