/* SPDX-License-Identifier: BSD-2-Clause */
/* LuaJIT 2.1's bytecode: numbers and operands, and each instruction's effect on names (bc.def). */
#ifndef LUA_LJ_BC_H
#define LUA_LJ_BC_H

#include <stdbool.h>
#include <stdint.h>

enum lj_bc {
#define LJ_BC(name, a, b, c, mm) LJ_BC_##name,
#include "bc.def"
#undef LJ_BC
	LJ_BC__LISTED, /* from here on: function headers and what newer builds insert before them */
};

/* The kind of an operand (lj_bc.h, BCMode). */
enum lj_bc_mode {
	LJ_BCM_NONE,
	LJ_BCM_DST,  /* writes slot A */
	LJ_BCM_BASE, /* writes slots from A on */
	LJ_BCM_VAR,
	LJ_BCM_RBASE,
	LJ_BCM_UV,
	LJ_BCM_LIT,
	LJ_BCM_LITS, /* signed */
	LJ_BCM_PRI,
	LJ_BCM_NUM, /* a constant's number */
	LJ_BCM_STR, /* likewise, of collectable constants, as the rest but JUMP */
	LJ_BCM_TAB,
	LJ_BCM_FUNC,
	LJ_BCM_JUMP,
	LJ_BCM_CDATA,
};

/* Metamethods that instructions call (lj_obj.h, MMDEF). */
enum lj_mm {
	LJ_MM_NONE,
	LJ_MM_OTHER, /* not one of these */
	LJ_MM_CALL, /* of an instruction: it calls a value, by this metamethod if it is no function */
	LJ_MM_INDEX,
	LJ_MM_NEWINDEX,
	LJ_MM_GC,
	LJ_MM_EQ,
	LJ_MM_LEN,
	LJ_MM_LT,
	LJ_MM_LE,
	LJ_MM_CONCAT,
	LJ_MM_ADD,
	LJ_MM_SUB,
	LJ_MM_MUL,
	LJ_MM_DIV,
	LJ_MM_MOD,
	LJ_MM_POW,
	LJ_MM_UNM,
	LJ_MM__MAX,
};

/* Returns a metamethod's name, "__add"; "" for NONE and OTHER. */
const char *lj_mm_name(enum lj_mm mm);

/* Returns the metamethod that has this name, or LJ_MM_OTHER. */
enum lj_mm lj_mm_named(const char *name);

struct lj_bc_row {
	char name[7];
	uint8_t a, b, c; /* enum lj_bc_mode */
	uint8_t mm;	 /* enum lj_mm */
};

extern const struct lj_bc_row lj_bc_rows[LJ_BC__LISTED];

/* lj_bc.h: |B|C|A|OP| or |D|A|OP|, least significant byte last */
static inline uint8_t lj_bc_op(uint32_t ins)
{
	return ins & 0xff;
}
static inline uint8_t lj_bc_a(uint32_t ins)
{
	return ins >> 8 & 0xff;
}
static inline uint8_t lj_bc_b(uint32_t ins)
{
	return ins >> 24;
}
static inline uint8_t lj_bc_c(uint32_t ins)
{
	return ins >> 16 & 0xff;
}
static inline uint16_t lj_bc_d(uint32_t ins)
{
	return ins >> 16;
}

/* Returns what operand A is; NONE for those that are not listed. */
static inline enum lj_bc_mode lj_bc_mode_a(uint32_t ins)
{
	uint8_t op = lj_bc_op(ins);

	return op < LJ_BC__LISTED ? (enum lj_bc_mode)lj_bc_rows[op].a : LJ_BCM_NONE;
}

/* True if the instruction writes slot A, or slots from A on. */
static inline bool lj_bc_writes(uint32_t ins)
{
	return lj_bc_mode_a(ins) == LJ_BCM_DST || lj_bc_mode_a(ins) == LJ_BCM_BASE;
}

static inline enum lj_mm lj_bc_mm(uint32_t ins)
{
	uint8_t op = lj_bc_op(ins);

	return op < LJ_BC__LISTED ? (enum lj_mm)lj_bc_rows[op].mm : LJ_MM_NONE;
}

static inline bool lj_bc_is_call(uint32_t ins)
{
	return lj_bc_mm(ins) == LJ_MM_CALL;
}

/* True if it may call a metamethod of its operands. */
static inline bool lj_bc_has_mm(uint32_t ins)
{
	return lj_bc_mm(ins) > LJ_MM_CALL;
}

/* True if it computes a value from operands whose metamethod may compute it instead. */
static inline bool lj_bc_is_arith(uint32_t ins)
{
	return lj_bc_op(ins) >= LJ_BC_UNM && lj_bc_op(ins) <= LJ_BC_CAT;
}

#endif
