// SPDX-License-Identifier: BSD-2-Clause
#include "insn.h"

/* The number of the register that this one is a part of; X86_NONE: neither general nor XMM. */
static uint8_t number_of(ZydisRegister reg)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	if (whole >= ZYDIS_REGISTER_RAX && whole <= ZYDIS_REGISTER_R15)
		return (uint8_t)(whole - ZYDIS_REGISTER_RAX);
	if (whole >= ZYDIS_REGISTER_ZMM0 && whole <= ZYDIS_REGISTER_ZMM31)
		return (uint8_t)(X86_XMM + whole - ZYDIS_REGISTER_ZMM0);
	return reg == ZYDIS_REGISTER_RIP ? X86_RIP : X86_NONE;
}

static void put_memory(const ZydisDecodedOperand *op, struct x86_insn *in)
{
	in->has_mem = true;
	in->base = number_of(op->mem.base);
	in->index = number_of(op->mem.index);
	in->disp = (int32_t)op->mem.disp.value;
	if (op->mem.type == ZYDIS_MEMOP_TYPE_MEM && in->category != ZYDIS_CATEGORY_WIDENOP &&
	    in->category != ZYDIS_CATEGORY_PREFETCH)
		in->mem_size = (uint16_t)(op->size / 8);
}

static void put_visible(const ZydisDecodedOperand *op, struct x86_insn *in)
{
	switch (op->type) {
	case ZYDIS_OPERAND_TYPE_REGISTER:
		if (op->id < 2)
			in->reg[op->id] = number_of(op->reg.value);
		break;
	case ZYDIS_OPERAND_TYPE_MEMORY:
		put_memory(op, in);
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

static void put_written(ZydisRegister reg, struct x86_insn *in)
{
	uint8_t number = number_of(reg);

	if (number < X86_REGS)
		in->writes |= (uint16_t)(1 << number);
}

bool x86_decode(const uint8_t *p, size_t n, struct x86_insn *in)
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
	*in = (struct x86_insn){
		.mnemonic = (uint16_t)insn.mnemonic,
		.category = (uint8_t)insn.meta.category,
		.len = insn.length,
		.size = insn.operand_count ? (uint8_t)(op[0].size / 8) : 0,
		.reg = {X86_NONE, X86_NONE},
		.base = X86_NONE,
		.index = X86_NONE,
	};
	for (i = 0; i < insn.operand_count; i++) {
		if (i < insn.operand_count_visible)
			put_visible(&op[i], in);
		if (op[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			put_written(op[i].reg.value, in);
	}
	return true;
}
