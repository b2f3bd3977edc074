/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One machine instruction, in 32 bytes: all instructions of a function are kept at once
 * (detect/puc/vm.c). Only arch/<processor>/ knows its operation; others follow the flow of control
 * by the functions below, and ask the patterns of this folder.
 */
#ifndef ARCH_INSN_H
#define ARCH_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	INSN_REGS = 16, /* general registers, by their number in an instruction's encoding */
	INSN_NO_REG = 0xff,
	INSN_BYTES = 15 /* the longest instruction */
};

enum insn_flow {
	INSN_NEXT, /* the next instruction runs */
	INSN_CALL,
	INSN_JUMP,
	INSN_BRANCH, /* a conditional jump */
	INSN_END     /* a return, or a trap */
};

struct insn {
	uint16_t op;  /* the operation, by arch/<processor>/insn.h */
	uint8_t flow; /* enum insn_flow */
	uint8_t len;
	uint8_t size;	     /* bytes of the first operand */
	uint8_t reg[2];	     /* the first two operands, where they are registers; INSN_NO_REG */
	bool has_mem;	     /* an operand is in memory */
	uint16_t mem_size;   /* bytes; 0 if it only computes the address */
	uint8_t base, index; /* INSN_NO_REG */
	bool has_imm;
	bool relative;	 /* imm is a distance from the instruction's end: jumps, calls */
	uint16_t writes; /* bit r: may write general register r; not what a call's callee does */
	int32_t disp;
	int64_t imm;
};

/* False when the bytes are no instruction, or end before it does. */
bool insn_decode(const uint8_t *p, size_t n, struct insn *in);

/* True if the kernel emulates it where a uprobe is, so that a hit costs one trap. */
bool insn_is_emulated(const struct insn *in);

/* "rax"; NULL: no general register. */
const char *insn_reg_name(uint32_t reg);

static inline bool insn_writes(const struct insn *in, uint8_t r)
{
	return in->writes >> r & 1;
}

static inline bool insn_is_call(const struct insn *in)
{
	return in->flow == INSN_CALL;
}

static inline bool insn_is_branch(const struct insn *in)
{
	return in->flow == INSN_BRANCH;
}

/* A jump to a target that the instruction holds. */
static inline bool insn_is_jump(const struct insn *in)
{
	return in->flow == INSN_JUMP && in->relative;
}

static inline bool insn_is_indirect_jump(const struct insn *in)
{
	return in->flow == INSN_JUMP && !in->relative;
}

/* Control goes on neither at the next instruction nor at a target that the instruction holds. */
static inline bool insn_ends(const struct insn *in)
{
	return in->flow == INSN_END || insn_is_indirect_jump(in);
}

#endif
