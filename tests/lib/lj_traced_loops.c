// SPDX-License-Identifier: BSD-2-Clause
/* Loops without a call that is left: how their lines are distinguished, and where they begin. */
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

	t->main = tr_prototype(t, bc, 6, 1.5);
	tr_begins_at(t, 4);
	one = dividend = tr_number(t, 1.5);
	tr_snapshot(t, 0, 2, NULL, 0);
	i = tr_ins(t, LJ_IR_SLOAD, INT | GUARD, 4, SLOAD_TYPECHECK, EBP);
	x = tr_ins(t, LJ_IR_SLOAD, NUM | GUARD, 2, SLOAD_TYPECHECK, XMM7);
	x = tr_ins(t, LJ_IR_ADD, NUM, x, one, XMM7);
	y = tr_ins(t, LJ_IR_SLOAD, NUM | GUARD, 3, SLOAD_TYPECHECK, XMM6);
	y = tr_ins(t, LJ_IR_DIV, NUM, y, dividend, XMM6);
	i = tr_next_turn(t, i, 27, 5, (struct traced_slot[]){{2, x}, {3, y}}, 2);
	tr_snapshot(t, 36, 2, (struct traced_slot[]){{2, x}, {3, y}, {4, i}}, 3);
	tr_ins(t, LJ_IR_LOOP, 0, 0, 0, NO_REG);
	x = tr_ins(t, LJ_IR_ADD, NUM, x, one, XMM7);
	y = tr_ins(t, LJ_IR_DIV, NUM, y, dividend, XMM6);
	i = tr_next_turn(t, i, 51, 5, (struct traced_slot[]){{2, x}, {3, y}}, 2);
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
	uint64_t fn, called;

	t->main = tr_prototype(t, bc, 8, 0);
	t->callee = tr_prototype(t, callee, 3, 1.5);
	tr_begins_at(t, 6);
	fn = tr_closure(t, t->main);
	called = tr_closure(t, t->callee);
	tr_set_upvalue(t, fn, called);
	tr_constant(t, LJ_IR_KGC, LJ_IRT_FUNC, fn);
	tr_constant(t, LJ_IR_KGC, LJ_IRT_FUNC, called);
	dividend = tr_number(t, 1.5);
	tr_snapshot(t, 0, 2, NULL, 0);
	i = tr_ins(t, LJ_IR_SLOAD, INT | GUARD, 3, SLOAD_TYPECHECK, EBP);
	x = tr_ins(t, LJ_IR_SLOAD, NUM | GUARD, 2, SLOAD_TYPECHECK, XMM6);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, dividend, XMM6);
	i = tr_next_turn(t, i, 16, 7, (struct traced_slot[]){{2, x}}, 1);
	tr_snapshot(t, 25, 2, (struct traced_slot[]){{2, x}, {3, i}}, 2);
	tr_ins(t, LJ_IR_LOOP, 0, 0, 0, NO_REG);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, dividend, XMM6);
	i = tr_next_turn(t, i, 34, 7, (struct traced_slot[]){{2, x}}, 1);
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

	t->main = tr_prototype(t, bc, 5, 1.5);
	tr_begins_at(t, 1);
	k = tr_number(t, 1.5);
	tr_snapshot(t, 0, 1, NULL, 0);
	x = tr_ins(t, LJ_IR_SLOAD, NUM | GUARD, 2, SLOAD_TYPECHECK, XMM7);
	y = tr_ins(t, LJ_IR_SLOAD, NUM | GUARD, 3, SLOAD_TYPECHECK, XMM6);
	tr_snapshot(t, 9, 4, NULL, 0);
	tr_ins(t, LJ_IR_LT, NUM | GUARD, x, y, NO_REG);
	tr_snapshot(t, 19, 3, NULL, 0);
	x = tr_ins(t, LJ_IR_ADD, NUM, x, k, XMM7);
	tr_snapshot(t, 25, 4, (struct traced_slot[]){{2, x}}, 1);
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

	t->main = tr_prototype(t, bc, 5, 1.5);
	tr_begins_at(t, 2);
	tr_put_ins(t, LJ_REF_BIAS, &(struct lj_ins){.op1 = LJ_TRACED_NO - 1, .o = LJ_IR_BASE});
	dividend = tr_number(t, 1.5);
	tr_snapshot(t, 0, 2, NULL, 0);
	i = tr_ins(t, LJ_IR_SLOAD, INT | GUARD, 4, SLOAD_TYPECHECK, EBP);
	tr_ins(t, LJ_IR_LE, INT | GUARD, i, tr_integer(t, 100), NO_REG);
	x = tr_ins(t, LJ_IR_SLOAD, NUM | GUARD, 2, SLOAD_TYPECHECK, XMM6);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, dividend, XMM6);
	i = tr_next_turn(t, i, 25, 4, (struct traced_slot[]){{2, x}}, 1);
	tr_snapshot(t, 34, 2, (struct traced_slot[]){{2, x}, {4, i}}, 2);
	tr_machine_code(t, code, sizeof(code), 0);
	tr_is(t, 0, 1, LB_NO_PC, 2);
	tr_is(t, 12, 2, LB_NO_PC, 2);
	tr_is(t, 22, 3, LB_NO_PC, 2);
	tr_is(t, 25, 3, LB_NO_PC, 4);
	tr_is(t, 34, 0, 0, 0);
}

/*
 *	for i = ..., ..., s do
 *	  t[i] = true	--- KPRI at 2, TSETV at 3, a key that t does not have
 *	end		--- FORL at 4
 * The step is none that is known: whether the end plus that is an integer is made sure of first.
 */
void tr_stepped(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0x8b, 0x5a, 0x10,			  /*  0 mov ebx, [rdx+16]: the end */
		0x8b, 0x4a, 0x18,			  /*  3 mov ecx, [rdx+24]: s */
		0x85, 0xc9,				  /*  6 test ecx, ecx */
		0x0f, 0x8c, 0x00, 0x10, 0x00, 0x00,	  /*  8 jl exit */
		0x8b, 0xf1,				  /* 14 mov esi, ecx */
		0x03, 0xf3,				  /* 16 add esi, ebx */
		0x0f, 0x80, 0x00, 0x10, 0x00, 0x00,	  /* 18 jo exit */
		0x8b, 0x6a, 0x08,			  /* 24 mov ebp, [rdx+8]: i */
		0x48, 0x8b, 0x3a,			  /* 27 mov rdi, [rdx]: t */
		0x3b, 0x6f, 0x30,			  /* 30 cmp ebp, [rdi+48]: t's size */
		0x0f, 0x82, 0x00, 0x10, 0x00, 0x00,	  /* 33 jb exit */
		0x83, 0x7f, 0x34, 0x00,			  /* 39 cmp dword [rdi+52], 0 */
		0x0f, 0x85, 0x00, 0x10, 0x00, 0x00,	  /* 43 jne exit */
		0xf2, 0x0f, 0x2a, 0xf5,			  /* 49 cvtsi2sd xmm6, ebp */
		0xe8, 0x00, 0x30, 0x00, 0x00,		  /* 53 call lj_tab_newkey */
		0x48, 0xc7, 0x00, 0xff, 0xff, 0xff, 0xff, /* 58 mov qword [rax], true */
		0x03, 0xe9,				  /* 65 add ebp, ecx */
		0x3b, 0xeb,				  /* 67 cmp ebp, ebx */
		0x0f, 0x8f, 0x00, 0x10, 0x00, 0x00,	  /* 69 jg exit */
		0xe9, 0x00, 0x10, 0x00, 0x00,		  /* 75 jmp to another trace */
	};
	static const uint32_t bc[] = {
		HEADER(6),	     JUMP(FORI, 1, 1, 5), AD(KPRI, 5, LJ_IRT_TRUE),
		ABC(TSETV, 5, 0, 4), JUMP(FORL, 1, 4, 2), AD(RET0, 0, 1),
	};
	const uint16_t yes = LJ_REF_BIAS - 3;
	uint16_t end, step, i, tab, at, key;

	t->main = tr_prototype(t, bc, 6, 1.5);
	tr_begins_at(t, 4);
	tr_put_ins(t, yes, &(struct lj_ins){.o = LJ_IR_KPRI, .t = LJ_IRT_TRUE});
	tr_snapshot(t, 0, 2, NULL, 0);
	end = tr_ins(t, LJ_IR_SLOAD, INT | GUARD, 4, SLOAD_TYPECHECK, EBX);
	step = tr_ins(t, LJ_IR_SLOAD, INT | GUARD, 5, SLOAD_TYPECHECK, ECX);
	tr_ins(t, LJ_IR_GE, INT | GUARD, step, tr_integer(t, 0), NO_REG);
	i = tr_ins(t, LJ_IR_ADDOV, INT | GUARD, step, end, ESI);
	tr_ins(t, LJ_IR_USE, INT, i, 0, NO_REG);
	i = tr_ins(t, LJ_IR_SLOAD, INT | GUARD, 3, SLOAD_TYPECHECK, EBP);
	tab = tr_ins(t, LJ_IR_SLOAD, LJ_IRT_TAB | GUARD, 2, SLOAD_TYPECHECK, EDI);
	at = tr_ins(t, LJ_IR_FLOAD, INT, tab, 8, NO_REG);
	tr_ins(t, LJ_IR_ULE, INT | GUARD, at, i, NO_REG);
	at = tr_ins(t, LJ_IR_FLOAD, INT, tab, 9, NO_REG);
	tr_ins(t, LJ_IR_EQ, INT | GUARD, at, tr_integer(t, 0), NO_REG);
	key = tr_ins(t, LJ_IR_CONV, NUM, i, 467, XMM6);
	at = tr_ins(t, LJ_IR_NEWREF, LJ_IRT_P64, tab, key, EAX);
	tr_ins(t, LJ_IR_HSTORE, LJ_IRT_TRUE, at, yes, NO_REG);
	i = tr_ins(t, LJ_IR_ADD, INT, i, step, EBP);
	tr_snapshot(t, 67, 5, NULL, 0);
	tr_ins(t, LJ_IR_LE, INT | GUARD, i, end, NO_REG);
	tr_snapshot(t, 75, 2, (struct traced_slot[]){{3, i}}, 1);
	tr_machine_code(t, code, sizeof(code), 0);
	tr_is(t, 0, 4, LB_NO_PC, 2);
	tr_is(t, 27, 3, LB_NO_PC, 2);
	tr_is(t, 65, 4, LB_NO_PC, 2);
	tr_is(t, 67, 4, LB_NO_PC, 5);
	tr_is(t, 75, 4, LB_NO_PC, 2);
	tr_is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	for i = ... do
 *	  x = {}	--- TNEW at 2
 *	end		--- FORL at 3
 * Each turn begins with the question whether the collector has to run: the allocation's, as is what is
 * loaded again behind the call.
 */
void tr_gc_turn(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0x8b, 0x6a, 0x08,		    /*  0 mov ebp, [rdx+8]: i */
		0x31, 0xf6,			    /*  3 xor esi, esi */
		0xe8, 0x00, 0x20, 0x00, 0x00,	    /*  5 call lj_tab_new1 */
		0x48, 0x89, 0xc3,		    /* 10 mov rbx, rax */
		0x83, 0xc5, 0x01,		    /* 13 add ebp, 1 */
		0x83, 0xfd, 0x64,		    /* 16 cmp ebp, 100 */
		0x0f, 0x8f, 0x00, 0x10, 0x00, 0x00, /* 19 jg exit */
		0x49, 0x8b, 0x7e, 0x30,		    /* 25 mov rdi, [r14+48]: gc.total */
		0x49, 0x3b, 0x7e, 0x38,		    /* 29 cmp rdi, [r14+56]: gc.threshold */
		0x72, 0x16,			    /* 33 jb 57 */
		0xbe, 0x02, 0x00, 0x00, 0x00,	    /* 35 mov esi, 2 */
		0x49, 0x8d, 0x7e, 0x20,		    /* 40 lea rdi, [r14+32] */
		0xe8, 0x00, 0x10, 0x00, 0x00,	    /* 44 call lj_gc_step_jit */
		0x85, 0xc0,			    /* 49 test eax, eax */
		0x0f, 0x85, 0x00, 0x10, 0x00, 0x00, /* 51 jne exit */
		0x8b, 0x4c, 0x24, 0x30,		    /* 57 mov ecx, [rsp+48] */
		0x31, 0xf6,			    /* 61 xor esi, esi */
		0xe8, 0x00, 0x20, 0x00, 0x00,	    /* 63 call lj_tab_new1 */
		0x48, 0x89, 0xc3,		    /* 68 mov rbx, rax */
		0x83, 0xc5, 0x01,		    /* 71 add ebp, 1 */
		0x83, 0xfd, 0x64,		    /* 74 cmp ebp, 100 */
		0x7e, 0xca,			    /* 77 jle 25 */
		0xe9, 0x00, 0x10, 0x00, 0x00,	    /* 79 jmp exit */
	};
	static const uint32_t bc[] = {
		HEADER(6), JUMP(FORI, 1, 1, 4), AD(TNEW, 0, 0), JUMP(FORL, 1, 3, 2), AD(RET0, 0, 1),
	};
	uint16_t i, x;

	t->main = tr_prototype(t, bc, 5, 1.5);
	tr_begins_at(t, 3);
	tr_snapshot(t, 0, 2, NULL, 0);
	i = tr_ins(t, LJ_IR_SLOAD, INT, 3, SLOAD_TYPECHECK, EBP);
	x = tr_ins(t, LJ_IR_TNEW, LJ_IRT_TAB, 0, 0, EBX);
	i = tr_next_turn(t, i, 16, 4, (struct traced_slot[]){{2, x}}, 1);
	tr_snapshot(t, 25, 2, (struct traced_slot[]){{2, x}, {3, i}}, 2);
	tr_ins(t, LJ_IR_LOOP, 0, 0, 0, NO_REG);
	x = tr_ins(t, LJ_IR_TNEW, LJ_IRT_TAB, 0, 0, EBX);
	i = tr_next_turn(t, i, 74, 4, (struct traced_slot[]){{2, x}}, 1);
	tr_ins(t, LJ_IR_PHI, INT, (uint16_t)(i - 4), i, EBP);
	tr_machine_code(t, code, sizeof(code), 25);
	tr_is(t, 3, 2, LB_NO_PC, 2);
	tr_is(t, 13, 3, LB_NO_PC, 2);
	tr_is(t, 16, 3, LB_NO_PC, 4);
	tr_is(t, 25, 2, LB_NO_PC, 2);
	tr_is(t, 71, 3, LB_NO_PC, 2);
	tr_is(t, 74, 3, LB_NO_PC, 4);
	tr_is(t, (uint32_t)sizeof(code), 0, 0, 0);
}
