/* SPDX-License-Identifier: BSD-2-Clause */
/* Classes of work: of a machine instruction, and those that an IR instruction needs (for jit/
 * only). */
#ifndef JIT_WORK_H
#define JIT_WORK_H

#include "model.h"
#include "arch/x86_64/insn.h"

enum work {
	W_NONE, /* moves, address arithmetic for others, unknown instructions */
	W_FADD,
	W_FSUB,
	W_FMUL,
	W_FDIV,
	W_FMIN,
	W_FMAX,
	W_FSQRT,
	W_FAND, /* abs */
	W_FXOR, /* negation */
	W_ROUND,
	W_CVT,
	W_ADD,
	W_SUB,
	W_AND,
	W_OR,
	W_XOR,
	W_LEA,
	W_MUL,
	W_SHIFT,
	W_NEG,
	W_NOT,
	W_BSWAP,
	W_LOAD,
	W_STORE,
	W_COMPARE,
	W_JUMP,	  /* conditional, to an exit */
	W_INSIDE, /* conditional, within one instruction's code: a search, a skipped call */
	W_CALL,
	W_SPILL,  /* to the C stack */
	W_RELOAD, /* from there */
	W_FCONST, /* a number that is constant, into a register */
	W_GC,	  /* part of the check whether the collector has to run */
};

struct machine {
	uint32_t ofs;
	enum work work;
	uint8_t reg; /* written register, XMM registers from 16 on; 0xff: not known */
	bool of_vm;  /* its operand in memory is the VM's own (r14) */
	bool glued;  /* assembled from the same IR instruction as the one before it */
	bool turns;  /* a register move that is not a save of a register that the next instruction
		      * overwrites */
};

/* Returns the class of a machine instruction. reg: the register that it writes, XMM registers from
 * 16 on; 0xff: not known. */
enum work lj_work_of(const struct x86_insn *in, uint8_t *reg);

/* Returns the register that it copies to another; 0xff: it is no such move. */
uint8_t lj_work_moved(const struct x86_insn *in);

/* Returns the classes that may be an IR instruction's own work, as bits 1 << enum work; 0: none. */
uint32_t lj_work_own(const struct lj_ins *ir);

/* True for operations that become many instructions of any kind: searches, inline allocation,
 * barriers. */
bool lj_work_is_manifold(uint8_t o);

#endif
