// SPDX-License-Identifier: BSD-2-Clause
/* Loops without a call that is left: what tells their lines apart, and where they begin. */
#include "lj_traced_make.h"

/*
 *	for i = ... do
 *	  x = x + 1	--- ADDVN at 2
 *	  y = y / 1.5	--- DIVVN at 3
 *	end		--- FORL at 4
 * No guard but the loop's own.
 */
void tr_lines(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0x8b, 0x6a, 0x10,		    /*  0 mov ebp, [rdx+16]: i */
		0xf2, 0x0f, 0x10, 0x3a,		    /*  3 movsd xmm7, [rdx]: x */
		0xf2, 0x41, 0x0f, 0x58, 0x7e, 0x08, /*  7 addsd xmm7, [r14+8] */
		0xf2, 0x0f, 0x10, 0x72, 0x08,	    /* 13 movsd xmm6, [rdx+8]: y */
		0xf2, 0x41, 0x0f, 0x5e, 0x76, 0x10, /* 18 divsd xmm6, [r14+16] */
		0x83, 0xc5, 0x01,		    /* 24 add ebp, 1 */
		0x83, 0xfd, 0x64,		    /* 27 cmp ebp, 100 */
		0x0f, 0x8f, 0x00, 0x10, 0x00, 0x00, /* 30 jg exit */
		0xf2, 0x41, 0x0f, 0x58, 0x7e, 0x08, /* 36 addsd xmm7, [r14+8] */
		0xf2, 0x41, 0x0f, 0x5e, 0x76, 0x10, /* 42 divsd xmm6, [r14+16] */
		0x83, 0xc5, 0x01,		    /* 48 add ebp, 1 */
		0x83, 0xfd, 0x64,		    /* 51 cmp ebp, 100 */
		0x7e, 0xec,			    /* 54 jle 36 */
		0xe9, 0x00, 0x10, 0x00, 0x00,	    /* 56 jmp exit */
	};
	static const uint32_t bc[] = {
		HEADER(6),	     JUMP(FORI, 2, 1, 5), ABC(ADDVN, 0, 0, 0),
		ABC(DIVVN, 1, 1, 0), JUMP(FORL, 2, 4, 2), AD(RET0, 0, 1),
	};
	uint16_t one, dividend, i, x, y;

	t->main = tr_prototype(t->arena, bc, 6, 1.5);
	tr_begins_at(t, 4);
	one = dividend = tr_number(t, 1.5);
	tr_snapshot(t, 0, 2, NULL, 0);
	i = tr_ins(t, LJ_IR_SLOAD, INT | GUARD, 4, SLOAD_TYPECHECK, EBP);
	x = tr_ins(t, LJ_IR_SLOAD, NUM | GUARD, 2, SLOAD_TYPECHECK, XMM7);
	x = tr_ins(t, LJ_IR_ADD, NUM, x, one, XMM7);
	y = tr_ins(t, LJ_IR_SLOAD, NUM | GUARD, 3, SLOAD_TYPECHECK, XMM6);
	y = tr_ins(t, LJ_IR_DIV, NUM, y, dividend, XMM6);
	i = tr_next_turn(t, i, 27, 5, (struct slot[]){{2, x}, {3, y}}, 2);
	tr_snapshot(t, 36, 2, (struct slot[]){{2, x}, {3, y}, {4, i}}, 3);
	tr_ins(t, LJ_IR_LOOP, 0, 0, 0, NO_REG);
	x = tr_ins(t, LJ_IR_ADD, NUM, x, one, XMM7);
	y = tr_ins(t, LJ_IR_DIV, NUM, y, dividend, XMM6);
	i = tr_next_turn(t, i, 51, 5, (struct slot[]){{2, x}, {3, y}}, 2);
	tr_ins(t, LJ_IR_PHI, NUM, (uint16_t)(x - 8), x, NO_REG);
	tr_machine_code(t, code, sizeof(code), 36);
	tr_is(t, 3, 2, LB_NO_PC, 2);
	tr_is(t, 13, 3, LB_NO_PC, 2);
	tr_is(t, 24, 4, LB_NO_PC, 2);
	tr_is(t, 27, 4, LB_NO_PC, 5);
	tr_is(t, 36, 2, LB_NO_PC, 2);
	tr_is(t, 42, 3, LB_NO_PC, 2);
	tr_is(t, 48, 4, LB_NO_PC, 2);
	tr_is(t, 51, 4, LB_NO_PC, 5);
	tr_is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	local function f(x) return x / 1.5 end	--- DIVVN at 1
 *	for i = ... do
 *	  x = f(x)				--- UGET at 2, CALL at 4
 *	end					--- FORL at 6
 * f never changes: nothing of the call is left in the intermediate code.
 */
void tr_inlined(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0x8b, 0x6a, 0x08,		    /*  0 mov ebp, [rdx+8]: i */
		0xf2, 0x0f, 0x10, 0x32,		    /*  3 movsd xmm6, [rdx]: x */
		0xf2, 0x41, 0x0f, 0x5e, 0x76, 0x10, /*  7 divsd xmm6, [r14+16] */
		0x83, 0xc5, 0x01,		    /* 13 add ebp, 1 */
		0x83, 0xfd, 0x64,		    /* 16 cmp ebp, 100 */
		0x0f, 0x8f, 0x00, 0x10, 0x00, 0x00, /* 19 jg exit */
		0xf2, 0x41, 0x0f, 0x5e, 0x76, 0x10, /* 25 divsd xmm6, [r14+16] */
		0x83, 0xc5, 0x01,		    /* 31 add ebp, 1 */
		0x83, 0xfd, 0x64,		    /* 34 cmp ebp, 100 */
		0x7e, 0xf2,			    /* 37 jle 25 */
		0xe9, 0x00, 0x10, 0x00, 0x00,	    /* 39 jmp exit */
	};
	static const uint32_t bc[] = {
		HEADER(8),	    JUMP(FORI, 1, 1, 7), AD(UGET, 5, 0),      AD(MOV, 7, 0),
		ABC(CALL, 5, 2, 2), AD(MOV, 0, 5),	 JUMP(FORL, 1, 6, 2), AD(RET0, 0, 1),
	};
	static const uint32_t callee[] = {HEADER(2), ABC(DIVVN, 1, 0, 0), AD(RET1, 1, 2)};
	uint16_t dividend, i, x;
	uint64_t fn;

	t->main = tr_prototype(t->arena, bc, 8, 0);
	t->callee = tr_prototype(t->arena, callee, 3, 1.5);
	tr_begins_at(t, 6);
	fn = tr_closure(t->arena, t->main);
	tr_set_upvalue(t->arena, fn, tr_closure(t->arena, t->callee));
	tr_constant(t, LJ_IR_KGC, LJ_IRT_FUNC, fn);
	tr_constant(t, LJ_IR_KGC, LJ_IRT_FUNC,
		    arena_get64(t->arena, arena_get64(t->arena, fn + 40) + 16) &
			    ((1ULL << 47) - 1));
	dividend = tr_number(t, 1.5);
	tr_snapshot(t, 0, 2, NULL, 0);
	i = tr_ins(t, LJ_IR_SLOAD, INT | GUARD, 3, SLOAD_TYPECHECK, EBP);
	x = tr_ins(t, LJ_IR_SLOAD, NUM | GUARD, 2, SLOAD_TYPECHECK, XMM6);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, dividend, XMM6);
	i = tr_next_turn(t, i, 16, 7, (struct slot[]){{2, x}}, 1);
	tr_snapshot(t, 25, 2, (struct slot[]){{2, x}, {3, i}}, 2);
	tr_ins(t, LJ_IR_LOOP, 0, 0, 0, NO_REG);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, dividend, XMM6);
	i = tr_next_turn(t, i, 34, 7, (struct slot[]){{2, x}}, 1);
	tr_machine_code(t, code, sizeof(code), 25);
	tr_is(t, 7, 1, 4, 2);
	tr_is(t, 13, 6, LB_NO_PC, 2);
	tr_is(t, 16, 6, LB_NO_PC, 7);
	tr_is(t, 25, 1, 4, 2);
	tr_is(t, 31, 6, LB_NO_PC, 2);
	tr_is(t, 34, 6, LB_NO_PC, 7);
	tr_is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	if x < y then	--- ISGE at 1, JMP
 *	  x = x + 1.5	--- ADDVN at 3
 *	end
 *	return		--- RET0 at 4
 * A side trace: one guard, whose snapshot is where the branch does not go.
 */
void tr_branch(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0xf2, 0x0f, 0x10, 0x3a,		    /*  0 movsd xmm7, [rdx]: x */
		0xf2, 0x0f, 0x10, 0x72, 0x08,	    /*  4 movsd xmm6, [rdx+8]: y */
		0x66, 0x0f, 0x2e, 0xf7,		    /*  9 ucomisd xmm6, xmm7 */
		0x0f, 0x86, 0x00, 0x10, 0x00, 0x00, /* 13 jbe exit */
		0xf2, 0x41, 0x0f, 0x58, 0x7e, 0x08, /* 19 addsd xmm7, [r14+8] */
		0xf2, 0x0f, 0x11, 0x3a,		    /* 25 movsd [rdx], xmm7 */
		0xe9, 0x00, 0x10, 0x00, 0x00,	    /* 29 jmp to another trace */
	};
	static const uint32_t bc[] = {
		HEADER(2), AD(ISGE, 0, 1), JUMP(JMP, 2, 2, 4), ABC(ADDVN, 0, 0, 0), AD(RET0, 0, 1),
	};
	uint16_t x, y, k;

	t->main = tr_prototype(t->arena, bc, 5, 1.5);
	tr_begins_at(t, 1);
	k = tr_number(t, 1.5);
	tr_snapshot(t, 0, 1, NULL, 0);
	x = tr_ins(t, LJ_IR_SLOAD, NUM | GUARD, 2, SLOAD_TYPECHECK, XMM7);
	y = tr_ins(t, LJ_IR_SLOAD, NUM | GUARD, 3, SLOAD_TYPECHECK, XMM6);
	tr_snapshot(t, 9, 4, NULL, 0);
	tr_ins(t, LJ_IR_LT, NUM | GUARD, x, y, NO_REG);
	tr_snapshot(t, 19, 3, NULL, 0);
	x = tr_ins(t, LJ_IR_ADD, NUM, x, k, XMM7);
	tr_snapshot(t, 25, 4, (struct slot[]){{2, x}}, 1);
	tr_machine_code(t, code, sizeof(code), 0);
	tr_is(t, 0, 1, LB_NO_PC, 1);
	tr_is(t, 9, 1, LB_NO_PC, 4);
	tr_is(t, 19, 3, LB_NO_PC, 3);
	tr_is(t, 25, 3, LB_NO_PC, 4);
	tr_is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	for i = ... do	--- JFORI at 1
 *	  x = x / 1.5	--- DIVVN at 2
 *	end		--- FORL at 3
 * It grew from the first exit of a loop's trace: it begins with what the loop begins with.
 */
void tr_first_exit(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0x8b, 0x6a, 0x10,		    /*  0 mov ebp, [rdx+16]: i */
		0x83, 0xfd, 0x64,		    /*  3 cmp ebp, 100 */
		0x0f, 0x8f, 0x00, 0x10, 0x00, 0x00, /*  6 jg exit */
		0xf2, 0x0f, 0x10, 0x32,		    /* 12 movsd xmm6, [rdx]: x */
		0xf2, 0x41, 0x0f, 0x5e, 0x76, 0x10, /* 16 divsd xmm6, [r14+16] */
		0x83, 0xc5, 0x01,		    /* 22 add ebp, 1 */
		0x83, 0xfd, 0x64,		    /* 25 cmp ebp, 100 */
		0x0f, 0x8f, 0x00, 0x10, 0x00, 0x00, /* 28 jg exit */
		0xe9, 0x00, 0x10, 0x00, 0x00,	    /* 34 jmp to the loop's trace */
	};
	static const uint32_t bc[] = {
		HEADER(6),	     JUMP(JFORI, 2, 1, 4), ABC(DIVVN, 0, 0, 0),
		JUMP(FORL, 2, 3, 2), AD(RET0, 0, 1),
	};
	uint16_t dividend, i, x;

	t->main = tr_prototype(t->arena, bc, 5, 1.5);
	tr_begins_at(t, 2);
	tr_put_ins(t, LJ_REF_BIAS, &(struct lj_ins){.op1 = LJ_TRACED_NO - 1, .o = LJ_IR_BASE});
	dividend = tr_number(t, 1.5);
	tr_snapshot(t, 0, 2, NULL, 0);
	i = tr_ins(t, LJ_IR_SLOAD, INT | GUARD, 4, SLOAD_TYPECHECK, EBP);
	tr_ins(t, LJ_IR_LE, INT | GUARD, i, tr_integer(t, 100), NO_REG);
	x = tr_ins(t, LJ_IR_SLOAD, NUM | GUARD, 2, SLOAD_TYPECHECK, XMM6);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, dividend, XMM6);
	i = tr_next_turn(t, i, 25, 4, (struct slot[]){{2, x}}, 1);
	tr_snapshot(t, 34, 2, (struct slot[]){{2, x}, {4, i}}, 2);
	tr_machine_code(t, code, sizeof(code), 0);
	tr_is(t, 0, 1, LB_NO_PC, 2);
	tr_is(t, 12, 2, LB_NO_PC, 2);
	tr_is(t, 22, 3, LB_NO_PC, 2);
	tr_is(t, 25, 3, LB_NO_PC, 4);
	tr_is(t, 34, 0, 0, 0);
}
