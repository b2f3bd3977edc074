// SPDX-License-Identifier: BSD-2-Clause
/* Dead ends that look right: branches that were not taken, without an instruction of their own. */
#include "lj_traced_make.h"

/*
 *	if x % 1.5 == 1.5 then	--- MODVN at 1, ISNEN at 2
 *	  y = y / 1.5		--- DIVVN at 4
 *	end
 *	if x % 1.5 == 1.5 then	--- MODVN at 5, ISNEN at 6
 *	  y = y / 1.5		--- DIVVN at 8
 *	end
 *	y = y / 1.5		--- DIVVN at 9
 * The second comparison is the first one: neither it nor its remainder is there again.
 */
void tr_remainder(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0xf2, 0x0f, 0x10, 0x32,		    /*  0 movsd xmm6, [rdx]: x */
		0x0f, 0x28, 0xfe,		    /*  4 movaps xmm7, xmm6 */
		0xf2, 0x41, 0x0f, 0x5e, 0x7e, 0x10, /*  7 divsd xmm7, [r14+16] */
		0x66, 0x0f, 0x3a, 0x0b, 0xff, 0x09, /* 13 roundsd xmm7, xmm7, 9 */
		0xf2, 0x41, 0x0f, 0x59, 0x7e, 0x10, /* 19 mulsd xmm7, [r14+16] */
		0xf2, 0x0f, 0x5c, 0xf7,		    /* 25 subsd xmm6, xmm7 */
		0x66, 0x41, 0x0f, 0x2e, 0x76, 0x10, /* 29 ucomisd xmm6, [r14+16] */
		0x0f, 0x84, 0x00, 0x10, 0x00, 0x00, /* 35 je exit */
		0xf2, 0x0f, 0x10, 0x7a, 0x08,	    /* 41 movsd xmm7, [rdx+8]: y */
		0xf2, 0x41, 0x0f, 0x5e, 0x7e, 0x10, /* 46 divsd xmm7, [r14+16] */
		0xf2, 0x0f, 0x11, 0x7a, 0x08,	    /* 52 movsd [rdx+8], xmm7 */
		0xe9, 0x00, 0x10, 0x00, 0x00,	    /* 57 jmp to another trace */
	};
	static const uint32_t bc[] = {
		HEADER(5),	     ABC(MODVN, 2, 0, 0), AD(ISNEN, 2, 0), JUMP(JMP, 3, 3, 5),
		ABC(DIVVN, 1, 1, 0), ABC(MODVN, 2, 0, 0), AD(ISNEN, 2, 0), JUMP(JMP, 3, 7, 9),
		ABC(DIVVN, 1, 1, 0), ABC(DIVVN, 1, 1, 0), AD(RET0, 0, 1),
	};
	uint16_t divisor, x, y, r;

	t->main = tr_prototype(t, bc, 11, 1.5);
	tr_begins_at(t, 1);
	divisor = tr_number(t, 1.5);
	tr_snapshot(t, 0, 1, NULL, 0);
	x = tr_ins(t, LJ_IR_SLOAD, NUM | GUARD, 2, SLOAD_TYPECHECK, XMM6);
	r = tr_ins(t, LJ_IR_DIV, NUM, x, divisor, XMM7);
	r = tr_ins(t, LJ_IR_FPMATH, NUM, r, 0, XMM7);
	r = tr_ins(t, LJ_IR_MUL, NUM, r, divisor, XMM7);
	r = tr_ins(t, LJ_IR_SUB, NUM, x, r, XMM6);
	tr_snapshot(t, 29, 4, NULL, 0);
	tr_ins(t, LJ_IR_NE, NUM | GUARD, r, divisor, NO_REG);
	y = tr_ins(t, LJ_IR_SLOAD, NUM | GUARD, 3, SLOAD_TYPECHECK, XMM7);
	y = tr_ins(t, LJ_IR_DIV, NUM, y, divisor, XMM7);
	tr_snapshot(t, 52, 10, (struct traced_slot[]){{3, y}}, 1);
	tr_machine_code(t, code, sizeof(code), 0);
	tr_is(t, 0, 1, LB_NO_PC, 1);
	tr_is(t, 29, 2, LB_NO_PC, 4);
	tr_is(t, 41, 9, LB_NO_PC, 4);
	tr_is(t, 52, 9, LB_NO_PC, 10);
	tr_is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	function f(x)
 *	  if 1 < -1 then up(x) end	--- ISGE at 3, UGET at 5, CALL at 7
 *	  return x / 1.5		--- DIVVN at 8
 *	end
 *	x = f(x)			--- UGET at 1, CALL at 3
 * f is upvalue 0 of main, and up of f: f does not call itself, for its upvalue was not fetched.
 */
void tr_not_fetched(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0x48, 0x8b, 0x42, 0xf0,		    /*  0 mov rax, [rdx-16]: main */
		0x48, 0x8b, 0x40, 0x20,		    /*  4 mov rax, [rax+32] */
		0x48, 0x8b, 0x00,		    /*  8 mov rax, [rax]: f */
		0xf2, 0x0f, 0x10, 0x32,		    /* 11 movsd xmm6, [rdx]: x */
		0x81, 0xf8, 0x00, 0x10, 0x00, 0x00, /* 15 cmp eax, function */
		0x0f, 0x85, 0x00, 0x10, 0x00, 0x00, /* 21 jne exit */
		0xf2, 0x41, 0x0f, 0x5e, 0x76, 0x10, /* 27 divsd xmm6, [r14+16] */
		0xf2, 0x0f, 0x11, 0x32,		    /* 33 movsd [rdx], xmm6 */
		0xe9, 0x00, 0x10, 0x00, 0x00,	    /* 37 jmp to another trace */
	};
	static const uint32_t bc[] = {
		HEADER(9),	    AD(UGET, 5, 0), AD(MOV, 7, 0),
		ABC(CALL, 5, 2, 2), AD(MOV, 0, 5),  AD(RET0, 0, 1),
	};
	static const uint32_t callee[] = {
		HEADER(7),	     AD(KSHORT, 1, 1), AD(UNM, 2, 1), AD(ISGE, 1, 2),
		JUMP(JMP, 3, 4, 8),  AD(UGET, 3, 0),   AD(MOV, 5, 0), ABC(CALL, 3, 1, 2),
		ABC(DIVVN, 3, 0, 0), AD(RET1, 3, 2),
	};
	uint16_t divisor, f, x, at;
	uint64_t called;

	t->main = tr_prototype(t, bc, 6, 0);
	t->callee = tr_prototype(t, callee, 10, 1.5);
	tr_begins_at(t, 1);
	called = tr_closure(t, t->callee);
	tr_set_upvalue(t, called, called);
	tr_change_upvalue(t, called);
	f = tr_constant(t, LJ_IR_KGC, LJ_IRT_FUNC, called);
	divisor = tr_number(t, 1.5);
	tr_snapshot(t, 0, 1, NULL, 0);
	at = tr_ins(t, LJ_IR_SLOAD, LJ_IRT_FUNC, 0, 16, EAX);
	at = tr_ins(t, LJ_IR_UREFC, LJ_IRT_P64, at, 0, EAX);
	at = tr_ins(t, LJ_IR_ULOAD, LJ_IRT_FUNC, at, 0, EAX);
	x = tr_ins(t, LJ_IR_SLOAD, NUM, 2, 0, XMM6);
	tr_ins(t, LJ_IR_EQ, LJ_IRT_FUNC | GUARD, at, f, NO_REG);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, divisor, XMM6);
	tr_snapshot(t, 33, 5, (struct traced_slot[]){{2, x}}, 1);
	tr_machine_code(t, code, sizeof(code), 0);
	tr_is(t, 0, 1, LB_NO_PC, 1);
	tr_is(t, 11, 2, LB_NO_PC, 1);
	tr_is(t, 15, 3, LB_NO_PC, 1);
	tr_is(t, 27, 8, 3, 1);
	tr_is(t, 33, 8, 3, 5);
	tr_is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	if f() then		--- CALL at 2, ISF at 3
 *	  x = x / 1.5		--- DIVVN at 5
 *	else
 *	  x = x / 1.5		--- DIVVN at 7
 *	end
 * f returns nothing: that is nil here.
 */
void tr_nothing_returned(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0xf2, 0x0f, 0x10, 0x32,		    /*  0 movsd xmm6, [rdx]: x */
		0xf2, 0x41, 0x0f, 0x5e, 0x76, 0x10, /*  4 divsd xmm6, [r14+16] */
		0xf2, 0x0f, 0x11, 0x32,		    /* 10 movsd [rdx], xmm6 */
		0xe9, 0x00, 0x10, 0x00, 0x00,	    /* 14 jmp to another trace */
	};
	static const uint32_t bc[] = {
		HEADER(8),	    AD(UGET, 5, 0),	 ABC(CALL, 5, 2, 1),
		AD(ISF, 0, 5),	    JUMP(JMP, 6, 4, 7),	 ABC(DIVVN, 0, 0, 0),
		JUMP(JMP, 6, 6, 8), ABC(DIVVN, 0, 0, 0), AD(RET0, 0, 1),
	};
	static const uint32_t callee[] = {HEADER(2), AD(RET0, 0, 1)};
	uint64_t fn, called;
	uint16_t x;

	t->main = tr_prototype(t, bc, 9, 1.5);
	t->callee = tr_prototype(t, callee, 2, 0);
	tr_begins_at(t, 1);
	called = tr_closure(t, t->callee);
	fn = tr_closure(t, t->main);
	tr_set_upvalue(t, fn, called);
	tr_constant(t, LJ_IR_KGC, LJ_IRT_FUNC, fn);
	tr_constant(t, LJ_IR_KGC, LJ_IRT_FUNC, called);
	tr_snapshot(t, 0, 1, NULL, 0);
	x = tr_ins(t, LJ_IR_SLOAD, NUM | GUARD, 2, SLOAD_TYPECHECK, XMM6);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, tr_number(t, 1.5), XMM6);
	tr_snapshot(t, 10, 8, (struct traced_slot[]){{2, x}}, 1);
	tr_machine_code(t, code, sizeof(code), 0);
	tr_is(t, 0, 7, LB_NO_PC, 1);
	tr_is(t, 10, 7, LB_NO_PC, 8);
	tr_is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	for i = 1, n do x = x / 1.5 end		--- DIVVN at 5, FORL at 6
 *	for i = 1, n do x = -x; y = -y end	--- UNM at 11 and 12, FORL at 13
 *	y = y / 1.5				--- DIVVN at 14
 * Two turns each. The second loop's guards are the first one's.
 */
void tr_same_end(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0x8b, 0x6a, 0x08,		    /*  0 mov ebp, [rdx+8]: n */
		0x83, 0xfd, 0x01,		    /*  3 cmp ebp, 1 */
		0x0f, 0x8c, 0x00, 0x10, 0x00, 0x00, /*  6 jl exit */
		0xf2, 0x0f, 0x10, 0x32,		    /* 12 movsd xmm6, [rdx]: x */
		0xf2, 0x41, 0x0f, 0x5e, 0x76, 0x10, /* 16 divsd xmm6, [r14+16] */
		0x83, 0xfd, 0x02,		    /* 22 cmp ebp, 2 */
		0x0f, 0x8c, 0x00, 0x10, 0x00, 0x00, /* 25 jl exit */
		0xf2, 0x41, 0x0f, 0x5e, 0x76, 0x10, /* 31 divsd xmm6, [r14+16] */
		0x83, 0xfd, 0x03,		    /* 37 cmp ebp, 3 */
		0x0f, 0x8d, 0x00, 0x10, 0x00, 0x00, /* 40 jge exit */
		0x41, 0x0f, 0x57, 0x76, 0x20,	    /* 46 xorps xmm6, [r14+32] */
		0xf2, 0x0f, 0x10, 0x7a, 0x30,	    /* 51 movsd xmm7, [rdx+48]: y */
		0x41, 0x0f, 0x57, 0x7e, 0x20,	    /* 56 xorps xmm7, [r14+32] */
		0x41, 0x0f, 0x57, 0x76, 0x20,	    /* 61 xorps xmm6, [r14+32] */
		0x41, 0x0f, 0x57, 0x7e, 0x20,	    /* 66 xorps xmm7, [r14+32] */
		0xf2, 0x41, 0x0f, 0x5e, 0x7e, 0x10, /* 71 divsd xmm7, [r14+16] */
		0xf2, 0x0f, 0x11, 0x32,		    /* 77 movsd [rdx], xmm6 */
		0xe9, 0x00, 0x10, 0x00, 0x00,	    /* 81 jmp to another trace */
	};
	static const uint32_t bc[] = {
		HEADER(9),	     AD(KSHORT, 2, 1),	    AD(MOV, 3, 1),	   AD(KSHORT, 4, 1),
		JUMP(FORI, 2, 4, 7), ABC(DIVVN, 0, 0, 0),   JUMP(FORL, 2, 6, 5),   AD(KSHORT, 2, 1),
		AD(MOV, 3, 1),	     AD(KSHORT, 4, 1),	    JUMP(FORI, 2, 10, 14), AD(UNM, 0, 0),
		AD(UNM, 6, 6),	     JUMP(FORL, 2, 13, 11), ABC(DIVVN, 6, 6, 0),   AD(RET0, 0, 1),
	};
	uint16_t divisor, sign, three, n, x, y;

	t->main = tr_prototype(t, bc, 16, 1.5);
	tr_begins_at(t, 1);
	divisor = tr_number(t, 1.5);
	sign = tr_number(t, -0.0);
	tr_snapshot(t, 0, 1, NULL, 0);
	n = tr_ins(t, LJ_IR_SLOAD, INT | GUARD, 3, SLOAD_TYPECHECK, EBP);
	tr_snapshot(t, 3, 7, NULL, 0);
	tr_ins(t, LJ_IR_GE, INT | GUARD, n, tr_integer(t, 1), NO_REG);
	x = tr_ins(t, LJ_IR_SLOAD, NUM | GUARD, 2, SLOAD_TYPECHECK, XMM6);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, divisor, XMM6);
	tr_snapshot(t, 22, 7, (struct traced_slot[]){{2, x}}, 1);
	tr_ins(t, LJ_IR_GE, INT | GUARD, n, tr_integer(t, 2), NO_REG);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, divisor, XMM6);
	three = tr_integer(t, 3);
	tr_snapshot(t, 37, 5, (struct traced_slot[]){{2, x}, {4, three}, {7, three}}, 3);
	tr_ins(t, LJ_IR_LT, INT | GUARD, n, three, NO_REG);
	x = tr_ins(t, LJ_IR_NEG, NUM, x, sign, XMM6);
	y = tr_ins(t, LJ_IR_SLOAD, NUM | GUARD, 8, SLOAD_TYPECHECK, XMM7);
	y = tr_ins(t, LJ_IR_NEG, NUM, y, sign, XMM7);
	x = tr_ins(t, LJ_IR_NEG, NUM, x, sign, XMM6);
	y = tr_ins(t, LJ_IR_NEG, NUM, y, sign, XMM7);
	y = tr_ins(t, LJ_IR_DIV, NUM, y, divisor, XMM7);
	tr_snapshot(t, 77, 15, (struct traced_slot[]){{2, x}, {8, y}}, 2);
	tr_machine_code(t, code, sizeof(code), 0);
	tr_is(t, 3, 4, LB_NO_PC, 7);
	tr_is(t, 12, 5, LB_NO_PC, 7);
	tr_is(t, 22, 6, LB_NO_PC, 7);
	tr_is(t, 31, 5, LB_NO_PC, 7);
	tr_is(t, 37, 6, LB_NO_PC, 5);
	tr_is(t, 46, 11, LB_NO_PC, 5);
	tr_is(t, 51, 12, LB_NO_PC, 5);
	tr_is(t, 61, 11, LB_NO_PC, 5);
	tr_is(t, 66, 12, LB_NO_PC, 5);
	tr_is(t, 71, 14, LB_NO_PC, 5);
	tr_is(t, 77, 14, LB_NO_PC, 15);
	tr_is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	if 1 < -1 then	--- ISGE at 3
 *	  x = x / 1.5	--- DIVVN at 5
 *	else
 *	  x = x / 1.5	--- DIVVN at 7
 *	end
 *	x = x * 1.5	--- MULVN at 8
 * What is compared is constant, and not known here: the quotient may be of either.
 */
void tr_ambiguous(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0xf2, 0x0f, 0x10, 0x32,		    /*  0 movsd xmm6, [rdx]: x */
		0xf2, 0x41, 0x0f, 0x5e, 0x76, 0x10, /*  4 divsd xmm6, [r14+16] */
		0xf2, 0x41, 0x0f, 0x59, 0x76, 0x10, /* 10 mulsd xmm6, [r14+16] */
		0xf2, 0x0f, 0x11, 0x32,		    /* 16 movsd [rdx], xmm6 */
		0xe9, 0x00, 0x10, 0x00, 0x00,	    /* 20 jmp to another trace */
	};
	static const uint32_t bc[] = {
		HEADER(5),	     AD(KSHORT, 1, 1),	  AD(UNM, 2, 1),      AD(ISGE, 1, 2),
		JUMP(JMP, 3, 4, 7),  ABC(DIVVN, 0, 0, 0), JUMP(JMP, 3, 6, 8), ABC(DIVVN, 0, 0, 0),
		ABC(MULVN, 0, 0, 0), AD(RET0, 0, 1),
	};
	uint16_t number, x;

	t->main = tr_prototype(t, bc, 10, 1.5);
	t->decides = true;
	tr_begins_at(t, 1);
	number = tr_number(t, 1.5);
	tr_snapshot(t, 0, 1, NULL, 0);
	x = tr_ins(t, LJ_IR_SLOAD, NUM | GUARD, 2, SLOAD_TYPECHECK, XMM6);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, number, XMM6);
	x = tr_ins(t, LJ_IR_MUL, NUM, x, number, XMM6);
	tr_snapshot(t, 16, 9, (struct traced_slot[]){{2, x}}, 1);
	tr_machine_code(t, code, sizeof(code), 0);
	tr_is(t, 0, LB_NO_PC, LB_NO_PC, 1);
	tr_is(t, 10, 8, LB_NO_PC, 1);
	tr_is(t, 16, 8, LB_NO_PC, 9);
	tr_is(t, (uint32_t)sizeof(code), 0, 0, 0);
}
