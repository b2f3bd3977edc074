// SPDX-License-Identifier: BSD-2-Clause
/* What branches and ends are made of: comparisons that leave more than a guard, values that show
 * where a test went, and what a trace does before another one goes on. */
#include "lj_traced_make.h"

/*
 *	x = x + y	--- ADDVV at 1
 *	return		--- RET0 at 2
 * A side trace that goes on as another, where a number is expected: at the instruction that ends
 * it.
 */
void tr_converted(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0x8b, 0x2a,			    /*  0 mov ebp, [rdx]: x */
		0x8b, 0x5a, 0x08,		    /*  2 mov ebx, [rdx+8]: y */
		0x03, 0xeb,			    /*  5 add ebp, ebx */
		0x0f, 0x80, 0x00, 0x10, 0x00, 0x00, /*  7 jo exit */
		0xf2, 0x0f, 0x2a, 0xf5,		    /* 13 cvtsi2sd xmm6, ebp */
		0xf2, 0x0f, 0x11, 0x32,		    /* 17 movsd [rdx], xmm6 */
		0xe9, 0x00, 0x10, 0x00, 0x00,	    /* 21 jmp to another trace */
	};
	static const uint32_t bc[] = {HEADER(2), ABC(ADDVV, 0, 0, 1), AD(RET0, 0, 1)};
	uint16_t x, y;

	t->main = tr_prototype(t, bc, 3, 1.5);
	tr_begins_at(t, 1);
	tr_snapshot(t, 0, 1, NULL, 0);
	x = tr_ins(t, LJ_IR_SLOAD, INT | GUARD, 2, SLOAD_TYPECHECK, EBP);
	y = tr_ins(t, LJ_IR_SLOAD, INT | GUARD, 3, SLOAD_TYPECHECK, EBX);
	x = tr_ins(t, LJ_IR_ADDOV, INT | GUARD, x, y, EBP);
	x = tr_ins(t, LJ_IR_CONV, NUM, x, 467, XMM6);
	tr_snapshot(t, 17, 2, (struct traced_slot[]){{2, x}}, 1);
	tr_machine_code(t, code, sizeof(code), 0);
	tr_is(t, 0, 1, LB_NO_PC, 1);
	tr_is(t, 13, 2, LB_NO_PC, 1);
	tr_is(t, 17, 2, LB_NO_PC, 2);
	tr_is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	if a == b then	--- ISNEV at 1
 *	  x = x / 1.5	--- DIVVN at 3
 *	else
 *	  x = x / 1.5	--- DIVVN at 5
 *	end
 * Tables that are two: they could be equal yet, if they had a metatable.
 */
void tr_equality(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0x48, 0x8b, 0x32,		    /*  0 mov rsi, [rdx]: a */
		0x48, 0x8b, 0x5a, 0x08,		    /*  3 mov rbx, [rdx+8]: b */
		0x48, 0x3b, 0xf3,		    /*  7 cmp rsi, rbx */
		0x0f, 0x84, 0x00, 0x10, 0x00, 0x00, /* 10 je exit */
		0x48, 0x83, 0x7e, 0x20, 0x00,	    /* 16 cmp qword [rsi+32], 0 */
		0x0f, 0x85, 0x00, 0x10, 0x00, 0x00, /* 21 jne exit */
		0xf2, 0x0f, 0x10, 0x72, 0x10,	    /* 27 movsd xmm6, [rdx+16]: x */
		0xf2, 0x41, 0x0f, 0x5e, 0x76, 0x10, /* 32 divsd xmm6, [r14+16] */
		0xf2, 0x0f, 0x11, 0x72, 0x10,	    /* 38 movsd [rdx+16], xmm6 */
		0xe9, 0x00, 0x10, 0x00, 0x00,	    /* 43 jmp to another trace */
	};
	static const uint32_t bc[] = {
		HEADER(5),	    AD(ISNEV, 0, 1),	 JUMP(JMP, 4, 2, 5), ABC(DIVVN, 2, 2, 0),
		JUMP(JMP, 4, 4, 6), ABC(DIVVN, 2, 2, 0), AD(RET0, 0, 1),
	};
	uint16_t a, b, meta, x;

	t->main = tr_prototype(t, bc, 7, 1.5);
	tr_begins_at(t, 1);
	tr_snapshot(t, 0, 1, NULL, 0);
	a = tr_ins(t, LJ_IR_SLOAD, LJ_IRT_TAB | GUARD, 2, SLOAD_TYPECHECK, ESI);
	b = tr_ins(t, LJ_IR_SLOAD, LJ_IRT_TAB | GUARD, 3, SLOAD_TYPECHECK, EBX);
	tr_snapshot(t, 7, 1, NULL, 0);
	tr_ins(t, LJ_IR_NE, LJ_IRT_TAB | GUARD, a, b, NO_REG);
	meta = tr_ins(t, LJ_IR_FLOAD, LJ_IRT_TAB, a, 5, NO_REG);
	tr_ins(t, LJ_IR_EQ, LJ_IRT_TAB | GUARD, meta, tr_constant(t, LJ_IR_KNULL, LJ_IRT_TAB, 0),
	       NO_REG);
	x = tr_ins(t, LJ_IR_SLOAD, NUM | GUARD, 4, SLOAD_TYPECHECK, XMM6);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, tr_number(t, 1.5), XMM6);
	tr_snapshot(t, 38, 6, (struct traced_slot[]){{4, x}}, 1);
	tr_machine_code(t, code, sizeof(code), 0);
	tr_is(t, 7, 1, LB_NO_PC, 1);
	tr_is(t, 27, 5, LB_NO_PC, 1);
	tr_is(t, 38, 5, LB_NO_PC, 6);
	tr_is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	if byte(s, 1) then	--- CALL at 4, IST at 5
 *	  x = x / 1.5		--- DIVVN at 9
 *	else
 *	  x = x / 1.5		--- DIVVN at 7
 *	end
 * A byte of cdata may stand for false; that of a string is a number.
 */
void tr_character(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0x8b, 0x72, 0x08,		    /*  0 mov esi, [rdx+8]: s */
		0x0f, 0xb6, 0x5e, 0x18,		    /*  3 movzx ebx, byte [rsi+24]: c */
		0xf2, 0x0f, 0x10, 0x32,		    /*  7 movsd xmm6, [rdx]: x */
		0xf2, 0x41, 0x0f, 0x5e, 0x76, 0x10, /* 11 divsd xmm6, [r14+16] */
		0xf2, 0x0f, 0x11, 0x32,		    /* 17 movsd [rdx], xmm6 */
		0xe9, 0x00, 0x10, 0x00, 0x00,	    /* 21 jmp to another trace */
	};
	static const uint32_t bc[] = {
		HEADER(8),	     AD(UGET, 3, 0),	  AD(MOV, 5, 1),      AD(KSHORT, 6, 1),
		ABC(CALL, 3, 2, 3),  AD(IST, 0, 3),	  JUMP(JMP, 4, 6, 9), ABC(DIVVN, 0, 0, 0),
		JUMP(JMP, 4, 8, 10), ABC(DIVVN, 0, 0, 0), AD(RET0, 0, 1),
	};
	const uint8_t byte = 16; /* LuaJIT's IRT_U8 */
	uint16_t s, c, x;

	t->main = tr_prototype(t, bc, 11, 1.5);
	tr_begins_at(t, 1);
	tr_snapshot(t, 0, 1, NULL, 0);
	s = tr_ins(t, LJ_IR_SLOAD, LJ_IRT_STR, 3, SLOAD_TYPECHECK, ESI);
	c = tr_ins(t, LJ_IR_STRREF, LJ_IRT_P64, s, tr_integer(t, 0), NO_REG);
	c = tr_ins(t, LJ_IR_XLOAD, byte, c, 1, EBX);
	x = tr_ins(t, LJ_IR_SLOAD, NUM | GUARD, 2, SLOAD_TYPECHECK, XMM6);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, tr_number(t, 1.5), XMM6);
	tr_snapshot(t, 17, 10, (struct traced_slot[]){{2, x}, {5, c}}, 2);
	tr_machine_code(t, code, sizeof(code), 0);
	tr_is(t, 3, 4, LB_NO_PC, 1);
	tr_is(t, 7, 9, LB_NO_PC, 1);
	tr_is(t, 17, 9, LB_NO_PC, 10);
	tr_is(t, (uint32_t)sizeof(code), 0, 0, 0);
}
