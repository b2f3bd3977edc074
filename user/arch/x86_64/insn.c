// SPDX-License-Identifier: BSD-2-Clause
#include "insn.h"

/* The number of the register that this one is a part of; INSN_NO_REG: neither general nor XMM. */
static uint8_t number_of(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	if (whole >= ZYDIS_REGISTER_RAX && whole <= ZYDIS_REGISTER_R15)
		return (uint8_t)(whole - ZYDIS_REGISTER_RAX);
	if (whole >= ZYDIS_REGISTER_ZMM0 && whole <= ZYDIS_REGISTER_ZMM31)
		return (uint8_t)(X86_XMM + whole - ZYDIS_REGISTER_ZMM0);
	return reg == ZYDIS_REGISTER_RIP ? X86_RIP : INSN_NO_REG;
}

static void put_memory(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *op,
		       struct insn *in)
{
	ZydisInstructionCategory category = insn->meta.category;

	in->has_mem = true;
	in->base = number_of(op->mem.base);
	in->index = number_of(op->mem.index);
	in->disp = (int32_t)op->mem.disp.value;
	if (op->mem.type == ZYDIS_MEMOP_TYPE_MEM && category != ZYDIS_CATEGORY_WIDENOP &&
	    category != ZYDIS_CATEGORY_PREFETCH)
		in->mem_size = (uint16_t)(op->size / 8);
}

static void put_visible(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *op,
			struct insn *in)
{
	switch (op->type) {
	case ZYDIS_OPERAND_TYPE_REGISTER:
		if (op->id < 2)
			in->reg[op->id] = number_of(op->reg.value);
		break;
	case ZYDIS_OPERAND_TYPE_MEMORY:
		put_memory(insn, op, in);
		break;
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		in->has_imm = true;
		in->relative = op->imm.is_relative;
		in->imm = op->imm.value.s;
		break;
	default:
		break;
	}
}

static void put_written(ZydisRegister reg, struct insn *in)
{
	uint8_t number = number_of(reg);

	if (number < INSN_REGS)
		in->writes |= (uint16_t)(1 << number);
}

static enum insn_flow flow_of(const ZydisDecodedInstruction *insn)
{
	switch (insn->mnemonic) {
	case ZYDIS_MNEMONIC_JMP:
		return INSN_JUMP;
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_UD2:
		return INSN_END;
	default:
		break;
	}
	switch (insn->meta.category) {
	case ZYDIS_CATEGORY_CALL:
		return INSN_CALL;
	case ZYDIS_CATEGORY_COND_BR:
		return INSN_BRANCH;
	case ZYDIS_CATEGORY_RET:
		return INSN_END;
	default:
		return INSN_NEXT;
	}
}

bool insn_decode(const uint8_t *p, size_t n, struct insn *in)
{
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction insn;
	ZydisDecoderContext context;
	ZydisDecoder decoder;
	uint8_t i;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(&decoder, &context, p, n, &insn)) ||
	    ZYAN_FAILED(
		    ZydisDecoderDecodeOperands(&decoder, &context, &insn, op, insn.operand_count)))
		return false;
	*in = (struct insn){
		.op = (uint16_t)insn.mnemonic,
		.flow = (uint8_t)flow_of(&insn),
		.len = insn.length,
		.size = insn.operand_count ? (uint8_t)(op[0].size / 8) : 0,
		.reg = {INSN_NO_REG, INSN_NO_REG},
		.base = INSN_NO_REG,
		.index = INSN_NO_REG,
	};
	for (i = 0; i < insn.operand_count; i++) {
		if (i < insn.operand_count_visible)
			put_visible(&insn, &op[i], in);
		if (op[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			put_written(op[i].reg.value, in);
	}
	return true;
}

bool insn_is_emulated(const struct insn *in)
{
	return (in->op == ZYDIS_MNEMONIC_PUSH && in->reg[0] != INSN_NO_REG && !in->has_mem) ||
	       (in->op == ZYDIS_MNEMONIC_NOP && in->len == 1);
}

const char *insn_reg_name(uint32_t reg)
{
	static const char *const names[INSN_REGS] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp",
						     "rsi", "rdi", "r8",  "r9",	 "r10", "r11",
						     "r12", "r13", "r14", "r15"};

	return reg < INSN_REGS ? names[reg] : NULL;
}
