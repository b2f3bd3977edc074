/* SPDX-License-Identifier: BSD-2-Clause */
/* LuaJIT's IR (lj_ir.h), with 2.1's numbers. A trace keeps the IR that its machine code was compiled from. */
#ifndef DETECT_LJ_IR_H
#define DETECT_LJ_IR_H

#include <stdbool.h>
#include <stdint.h>

enum lj_ir_numbers { /* lj_layout.ir */
		     LJ_IR_UNKNOWN,
		     LJ_IR_2021_07,
		     LJ_IR_2020_05,   /* without TMPREF */
		     LJ_IR_TARANTOOL, /* of 2023: without ALEN, too */
		     LJ_IR_2017,      /* without both, with ATAN2 */
		     LJ_IR_20,	      /* LuaJIT 2.0: without PROF, LREF, buffers and CALLA, too */
		     LJ_IR__NUMBERS,
};

enum lj_ir {
#define LJ_IR(name, kind, op1, op2) LJ_IR_##name,
#include "ir.def"
#undef LJ_IR
	LJ_IR__MAX,
};

/* One instruction. References are biased: those below LJ_REF_BIAS are constants. */
struct lj_ins {
	uint16_t op1, op2;
	uint8_t t; /* LJ_IRT_*, flags */
	uint8_t o; /* enum lj_ir */
	uint8_t r; /* register that the assembler allocated; 0x80: none */
	uint8_t s; /* spill slot */
};
_Static_assert(sizeof(struct lj_ins) == 8, "IRIns");

enum {
	LJ_IRT_NIL = 0,
	LJ_IRT_FALSE = 1,
	LJ_IRT_TRUE = 2,
	LJ_IRT_STR = 4,
	LJ_IRT_P32 = 5,
	LJ_IRT_FUNC = 8,
	LJ_IRT_P64 = 9,
	LJ_IRT_CDATA = 10,
	LJ_IRT_TAB = 11,
	LJ_IRT_UDATA = 12,
	LJ_IRT_FLOAT = 13, /* from here on: numbers */
	LJ_IRT_NUM = 14,
	LJ_IRT_U16 = 18,
	LJ_IRT_INT = 19,
	LJ_IRT_U32 = 20,
	LJ_IRT_I64 = 21,
	LJ_IRT_U64 = 22,
	LJ_IRT_TYPE = 0x1f,
	LJ_IRT_GUARD = 0x80,
};

enum lj_ir_kind {
	LJ_IRK_N = 0x00, /* normal: depends on its operands only */
	LJ_IRK_C = 0x10, /* flag: commutative */
	LJ_IRK_A = 0x20,
	LJ_IRK_L = 0x40,
	LJ_IRK_S = 0x60, /* also the mask */
	LJ_IRK_W = 0x80, /* flag */
	LJ_IRK_NW = LJ_IRK_N | LJ_IRK_W,
	LJ_IRK_CW = LJ_IRK_C | LJ_IRK_W,
	LJ_IRK_AW = LJ_IRK_A | LJ_IRK_W,
	LJ_IRK_LW = LJ_IRK_L | LJ_IRK_W,
};
enum lj_ir_operand { LJ_IRM_ref, LJ_IRM_lit, LJ_IRM_cst, LJ_IRM_none };

#define LJ_IRSLOAD_PARENT 1 /* flag in operand 2 of SLOAD */
/* Operand 2 of FPMATH (IRFPMDEF): the first four are the same in all versions. Up to TRUNC, it rounds. */
#define LJ_IRFPM_FLOOR 0
#define LJ_IRFPM_CEIL 1
#define LJ_IRFPM_TRUNC 2
#define LJ_IRFPM_SQRT 3

/* As lj_ir_mode in the VM: operands, kind (enum lj_ir_kind), the weak flag inverted. */
extern const uint8_t lj_ir_mode[LJ_IR__MAX];

/* Returns the operation (enum lj_ir) that has number o in a numbering, which is not LJ_IR_UNKNOWN; LJ_IR__MAX if no
 * operation has it. */
uint8_t lj_ir_of(uint8_t numbers, uint8_t o);

/* True if these bytes are the VM's table lj_ir_mode in this numbering. */
bool lj_ir_is_mode(uint8_t numbers, const uint8_t mode[LJ_IR__MAX]);

static inline enum lj_ir_kind lj_ir_kind(uint8_t o)
{
	return o < LJ_IR__MAX ? (enum lj_ir_kind)(lj_ir_mode[o] & LJ_IRK_S) : LJ_IRK_S;
}
static inline bool lj_ir_op1_is_ref(uint8_t o)
{
	return o < LJ_IR__MAX && (lj_ir_mode[o] & 3) == LJ_IRM_ref;
}
static inline bool lj_ir_op2_is_ref(uint8_t o)
{
	return o < LJ_IR__MAX && (lj_ir_mode[o] >> 2 & 3) == LJ_IRM_ref;
}

#endif
