/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decodes PUC Lua's bytecode, 5.1 to 5.5, into one form for all versions, as far as lines and names
 * depend on it. The versions number and encode instructions differently (lua/puc/bc51.def ..
 * lua/puc/bc55.def).
 */
#ifndef LUA_PUC_BC_H
#define LUA_PUC_BC_H

#include <stdbool.h>
#include <stdint.h>

/* Kinds of instructions, as far as names depend on them; their names are Lua's (lopcodes.h). */
enum puc_bc {
	PUC_BC_OTHER, /* gives no name; may write a register */
	PUC_BC_MOVE,
	PUC_BC_LOADK,
	PUC_BC_LOADKX, /* its constant is the argument of the EXTRAARG that follows */
	PUC_BC_LOADNIL,
	PUC_BC_GETUPVAL,
	PUC_BC_GETGLOBAL, /* 5.1 */
	PUC_BC_GETTABUP,
	PUC_BC_GETTABLE,
	PUC_BC_GETI,
	PUC_BC_GETFIELD,
	PUC_BC_SETUPVAL,
	PUC_BC_SETGLOBAL, /* 5.1 */
	PUC_BC_SETTABUP,
	PUC_BC_SETTABLE,
	PUC_BC_SETI,
	PUC_BC_SETFIELD,
	PUC_BC_NEWTABLE,
	PUC_BC_SELF,
	PUC_BC_MMBIN, /* MMBIN, MMBINI, MMBINK: operand C is the event */
	PUC_BC_JMP,
	PUC_BC_TEST, /* 5.2: ldebug.c takes operand A for changed */
	PUC_BC_CALL,
	PUC_BC_TAILCALL,
	PUC_BC_TFORCALL, /* 5.1: TFORLOOP */
	PUC_BC_FORPREP,	 /* TFORPREP, too */
	PUC_BC_FORLOOP,	 /* TFORLOOP, too */
	PUC_BC_RETURN,
	PUC_BC_SETLIST, /* 5.1: if C is 0, the next word is data */
	PUC_BC_CLOSURE,
	PUC_BC_VARARG,
};

struct puc_ins {
	uint8_t op;	/* enum puc_bc */
	bool writes_a;	/* testAMode() */
	const char *mm; /* the metamethod that it may call, with "__"; "" for none */
	uint32_t a, b, c;
	bool k;	     /* 5.4 on: operand C of stores, and of SELF, is a constant */
	uint32_t bx; /* constant or child prototype; LOADKX: not its own, see puc_bc_ax() */
	int32_t sj;  /* jumps: from the instruction after */
};

/* version: 51 .. 55. An instruction that the version does not have is PUC_BC_OTHER. */
struct puc_ins puc_bc_decode(unsigned version, uint32_t ins);

/* The operand of an EXTRAARG. */
uint32_t puc_bc_ax(unsigned version, uint32_t ins);

/* True if this operand of an RK instruction is a constant (up to 5.3); its index is *k. */
bool puc_bc_isk(uint32_t operand, uint32_t *k);

/* Returns the metamethod's name of an MMBIN's event (ltm.h, TMS); "" for other events. */
const char *puc_bc_event(uint32_t event);

#endif
