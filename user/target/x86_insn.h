/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lengths of x86-64 instructions, and which general register each may write: as much as it takes to
 * follow a few instructions of compiled or assembled user code. Not a disassembler.
 */
#ifndef TARGET_X86_INSN_H
#define TARGET_X86_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	X86_RAX = 0,
	X86_RCX = 1,
	X86_RDX = 2,
	X86_RBX = 3,
	X86_RSP = 4,
	X86_RBP = 5,
	X86_RSI = 6,
	X86_RDI = 7,
	X86_REGS = 16,
	X86_RIP = 16,	/* as a base */
	X86_NONE = 0xff /* no base, no index */
};

struct x86_insn {
	uint8_t len;
	uint8_t map; /* 0: one-byte opcodes, 1: 0F, 2: 0F 38, 3: 0F 3A or VEX */
	uint8_t op;
	bool modrm;
	bool wide;	  /* REX.W */
	bool word;	  /* prefix 66: operands of 16 bits */
	uint8_t mod, reg; /* reg: with REX.R */
	uint8_t rm;	  /* with REX.B */
	bool sib;
	uint8_t base, index; /* of a memory operand; mod is not 3 */
	int32_t disp;
	int64_t imm; /* sign-extended; of jumps and calls, the distance from the end */
};

/* False when the bytes are no instruction that this knows, or end before it does. */
bool x86_decode(const uint8_t *p, size_t n, struct x86_insn *in);

/* May the instruction write general register r? True when in doubt. What a call's callee does is
 * not told. */
bool x86_writes(const struct x86_insn *in, uint8_t r);

static inline bool x86_is_call(const struct x86_insn *in)
{
	return in->map == 0 && (in->op == 0xe8 || (in->op == 0xff && (in->reg & 7) == 2));
}

static inline bool x86_is_mem(const struct x86_insn *in)
{
	return in->modrm && in->mod != 3;
}

static inline bool x86_is_jcc_rel(const struct x86_insn *in)
{
	return (in->map == 0 && in->op >= 0x70 && in->op <= 0x7f) ||
	       (in->map == 1 && in->op >= 0x80 && in->op <= 0x8f);
}

static inline bool x86_is_jmp_rel(const struct x86_insn *in)
{
	return in->map == 0 && (in->op == 0xe9 || in->op == 0xeb);
}

/* Control does not go on at the next instruction, nor at a place that the bytes tell. */
static inline bool x86_ends(const struct x86_insn *in)
{
	return in->map == 0 &&
	       (in->op == 0xc3 || in->op == 0xc2 || in->op == 0xcc || in->op == 0xf4 ||
		(in->op == 0xff && (in->reg & 7) >= 4 && (in->reg & 7) <= 5));
}

#endif
