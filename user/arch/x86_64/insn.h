/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One x86-64 instruction as Zydis decodes it, in 32 bytes instead of the kilobyte of Zydis's own
 * records: all instructions of a function are kept at once (detect/puc/vm.c).
 */
#ifndef ARCH_X86_64_INSN_H
#define ARCH_X86_64_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <Zydis/Zydis.h>

enum {
	X86_RAX = 0,
	X86_RCX = 1,
	X86_RDX = 2,
	X86_RBX = 3,
	X86_RSP = 4,
	X86_RBP = 5,
	X86_RSI = 6,
	X86_RDI = 7,
	X86_R14 = 14,
	X86_REGS = 16,
	X86_RIP = 16, /* as a base */
	X86_XMM = 16, /* as an operand: XMM0 and those behind it */
	X86_NONE = 0xff
};

struct x86_insn {
	uint16_t mnemonic; /* ZydisMnemonic */
	uint8_t category;  /* ZydisInstructionCategory */
	uint8_t len;
	uint8_t size;	     /* bytes of the first operand */
	uint8_t reg[2];	     /* the first two operands, where they are registers; X86_NONE */
	bool has_mem;	     /* an operand is in memory */
	uint16_t mem_size;   /* bytes; 0 of lea, nop, prefetch, which do not access it */
	uint8_t base, index; /* X86_NONE */
	bool has_imm;
	bool relative;	 /* imm is a distance from the instruction's end: jumps, calls */
	uint16_t writes; /* bit r: may write general register r; not what a call's callee does */
	int32_t disp;
	int64_t imm;
};

/* False when the bytes are no instruction, or end before it does. */
bool x86_decode(const uint8_t *p, size_t n, struct x86_insn *in);

static inline bool x86_writes(const struct x86_insn *in, uint8_t r)
{
	return in->writes >> r & 1;
}

static inline bool x86_is_call(const struct x86_insn *in)
{
	return in->category == ZYDIS_CATEGORY_CALL;
}

/* An operand that is [register + disp]; not on the C stack. */
static inline bool x86_is_field(const struct x86_insn *in)
{
	return in->has_mem && in->index == X86_NONE && in->base < X86_REGS && in->base != X86_RSP;
}

static inline bool x86_is_jcc_rel(const struct x86_insn *in)
{
	return in->category == ZYDIS_CATEGORY_COND_BR;
}

static inline bool x86_is_jmp_rel(const struct x86_insn *in)
{
	return in->mnemonic == ZYDIS_MNEMONIC_JMP && in->relative;
}

static inline bool x86_is_jmp_indirect(const struct x86_insn *in)
{
	return in->mnemonic == ZYDIS_MNEMONIC_JMP && !in->relative;
}

/* Control goes on neither at the next instruction nor at a target that the instruction holds. */
static inline bool x86_ends(const struct x86_insn *in)
{
	return in->category == ZYDIS_CATEGORY_RET || in->mnemonic == ZYDIS_MNEMONIC_INT3 ||
	       in->mnemonic == ZYDIS_MNEMONIC_HLT || in->mnemonic == ZYDIS_MNEMONIC_UD2 ||
	       x86_is_jmp_indirect(in);
}

#endif
