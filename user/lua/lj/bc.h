/* SPDX-License-Identifier: BSD-2-Clause */
/* LuaJIT 2.1's bytecode: numbers and operands, and each instruction's effect on names (bc.def). */
#ifndef LUA_LJ_BC_H
#define LUA_LJ_BC_H

#include <stdbool.h>
#include <stdint.h>

enum lj_bc {
#define LJ_BC(name, a, mm) LJ_BC_##name,
#include "bc.def"
#undef LJ_BC
	LJ_BC__LISTED, /* from here on: function headers and what newer builds insert before them */
};

enum lj_bc_mode {
	LJ_BCM_OTHER,
	LJ_BCM_DST,  /* writes slot A */
	LJ_BCM_BASE, /* writes slots from A on */
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
	uint8_t a;  /* enum lj_bc_mode */
	uint8_t mm; /* enum lj_mm */
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

static inline enum lj_bc_mode lj_bc_mode_a(uint32_t ins)
{
	uint8_t op = lj_bc_op(ins);

	return op < LJ_BC__LISTED ? (enum lj_bc_mode)lj_bc_rows[op].a : LJ_BCM_OTHER;
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
