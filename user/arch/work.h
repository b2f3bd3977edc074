/* SPDX-License-Identifier: BSD-2-Clause */
/* Classes of work: what an instruction of compiled code is for, whatever the processor. */
#ifndef ARCH_WORK_H
#define ARCH_WORK_H

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

#endif
