/* SPDX-License-Identifier: BSD-2-Clause */
/* What a machine instruction does, and what one of the intermediate code needs done. For
 * lj_trace*.c only. */
#ifndef JIT_WORK_H
#define JIT_WORK_H

#include "model.h"
#include "arch/x86_64/insn.h"

enum work {
	W_NONE, /* moves, address arithmetic for others, what is not known */
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
	W_INSIDE, /* the same, to a place nearby: a search, a call that is left out */
	W_CALL,
	W_SPILL,  /* to the C stack */
	W_RELOAD, /* from there */
	W_FCONST, /* a number that is constant, into a register */
	W_GC,	  /* does the collector have to run now? */
};

struct machine {
	uint32_t ofs;
	enum work work;
	uint8_t reg; /* that it writes, XMM registers from 16 on; 0xff: not known */
	bool of_vm;  /* its operand in memory is the VM's own (r14) */
	bool glued;  /* of the same instruction as the one before it */
	bool turns;  /* moves a register's contents to another, and does not save them from the
			next, which overwrites them */
};

/* reg: the register that it writes, XMM registers from 16 on; 0xff: not known. */
enum work lj_work_of(const struct x86_insn *in, uint8_t *reg);

/* The register that it copies to another; 0xff: it is no such move. */
uint8_t lj_work_moved(const struct x86_insn *in);

/* The work that may be an instruction's own, as bits 1 << enum work; 0: it has none. */
uint32_t lj_work_own(const struct lj_ins *ir);

/* Becomes many instructions of any kind: searches, tables and objects made in line, barriers. */
bool lj_work_is_manifold(uint8_t o);

#endif
