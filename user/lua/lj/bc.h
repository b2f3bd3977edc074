/* SPDX-License-Identifier: BSD-2-Clause */
/* LuaJIT 2.1's bytecode: numbers and operands, and each instruction's effect on names (bc.def). */
#ifndef LUA_LJ_BC_H
#define LUA_LJ_BC_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

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

struct lj_bc_row {
	uint8_t a;	/* enum lj_bc_mode */
	const char *mm; /* metamethod with its "__", "call" for a call, "" for none */
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

static inline const char *lj_bc_mm(uint32_t ins)
{
	uint8_t op = lj_bc_op(ins);

	return op < LJ_BC__LISTED ? lj_bc_rows[op].mm : "";
}

static inline bool lj_bc_is_call(uint32_t ins)
{
	return !strcmp(lj_bc_mm(ins), "call");
}

/* True if it computes a value from operands whose metamethod may compute it instead. */
static inline bool lj_bc_is_arith(uint32_t ins)
{
	return lj_bc_op(ins) >= LJ_BC_UNM && lj_bc_op(ins) <= LJ_BC_CAT;
}

#endif
