// SPDX-License-Identifier: BSD-2-Clause
/* Values: what was compared, looked up, made or known when the trace was recorded. */
#include "lj_traced_make.h"

/*
 *	y = t[k]	--- TGETV at 1
 *	if y < x then	--- ISGE at 2, JMP
 *	  x = x / 1.5	--- DIVVN at 4
 *	end
 *	return		--- RET0 at 5
 * A side trace. The key is searched in line: by jumps that are no guards.
 */
void tr_search(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0x8b, 0x72, 0x10,			  /*  0 mov esi, [rdx+16]: t */
		0x8b, 0x42, 0x18,			  /*  3 mov eax, [rdx+24]: k */
		0x8b, 0x5e, 0x34,			  /*  6 mov ebx, [rsi+52] */
		0x23, 0x58, 0x0c,			  /*  9 and ebx, [rax+12] */
		0x3b, 0x43, 0x08,			  /* 12 cmp eax, [rbx+8] */
		0x74, 0x07,				  /* 15 je 24 */
		0x8b, 0x5b, 0x10,			  /* 17 mov ebx, [rbx+16] */
		0x85, 0xdb,				  /* 20 test ebx, ebx */
		0x75, 0xf4,				  /* 22 jne 12 */
		0x81, 0x7b, 0x04, 0,	0,    0xf9, 0xff, /* 24 cmp dword [rbx+4], number */
		0x0f, 0x83, 0x00, 0x10, 0x00, 0x00,	  /* 31 jae exit */
		0xf2, 0x0f, 0x10, 0x3b,			  /* 37 movsd xmm7, [rbx]: y */
		0xf2, 0x0f, 0x10, 0x32,			  /* 41 movsd xmm6, [rdx]: x */
		0x66, 0x0f, 0x2e, 0xf7,			  /* 45 ucomisd xmm6, xmm7 */
		0x0f, 0x86, 0x00, 0x10, 0x00, 0x00,	  /* 49 jbe exit */
		0xf2, 0x41, 0x0f, 0x5e, 0x76, 0x10,	  /* 55 divsd xmm6, [r14+16] */
		0xf2, 0x0f, 0x11, 0x32,			  /* 61 movsd [rdx], xmm6 */
		0xe9, 0x00, 0x10, 0x00, 0x00,		  /* 65 jmp to another trace */
	};
	static const uint32_t bc[] = {
		HEADER(4),	    ABC(TGETV, 1, 2, 3), AD(ISGE, 1, 0),
		JUMP(JMP, 4, 3, 5), ABC(DIVVN, 0, 0, 0), AD(RET0, 0, 1),
	};
	uint16_t dividend, table_ref, k, x, y;

	t->main = tr_prototype(t, bc, 6, 1.5);
	tr_begins_at(t, 1);
	dividend = tr_number(t, 1.5);
	tr_snapshot(t, 0, 1, NULL, 0);
	table_ref = tr_ins(t, LJ_IR_SLOAD, LJ_IRT_TAB, 4, SLOAD_TYPECHECK, ESI);
	k = tr_ins(t, LJ_IR_SLOAD, LJ_IRT_STR, 5, SLOAD_TYPECHECK, EAX);
	y = tr_ins(t, LJ_IR_HREF, LJ_IRT_P64, table_ref, k, EBX);
	y = tr_ins(t, LJ_IR_HLOAD, NUM | GUARD, y, 0, XMM7);
	x = tr_ins(t, LJ_IR_SLOAD, NUM, 2, SLOAD_TYPECHECK, XMM6);
	tr_snapshot(t, 45, 5, (struct traced_slot[]){{3, y}}, 1);
	tr_ins(t, LJ_IR_LT, NUM | GUARD, y, x, NO_REG);
	tr_snapshot(t, 55, 4, (struct traced_slot[]){{3, y}}, 1);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, dividend, XMM6);
	tr_snapshot(t, 61, 5, (struct traced_slot[]){{2, x}, {3, y}}, 2);
	tr_machine_code(t, code, sizeof(code), 0);
	tr_is(t, 0, 1, LB_NO_PC, 1);
	tr_is(t, 41, 2, LB_NO_PC, 1);
	tr_is(t, 45, 2, LB_NO_PC, 5);
	tr_is(t, 55, 4, LB_NO_PC, 4);
	tr_is(t, 61, 4, LB_NO_PC, 5);
	tr_is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	if x and x >= y and x >= y and y >= z then	--- ISF at 1, ISLT at 3, 5 and 7
 *	  ...						--- RET0 at 9
 * A side trace. All jump to one place: the test leaves no guard, nor does what was compared before.
 */
void tr_comparisons(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0xf2, 0x0f, 0x10, 0x3a,		    /*  0 movsd xmm7, [rdx]: x */
		0xf2, 0x0f, 0x10, 0x72, 0x08,	    /*  4 movsd xmm6, [rdx+8]: y */
		0x66, 0x0f, 0x2e, 0xfe,		    /*  9 ucomisd xmm7, xmm6 */
		0x0f, 0x82, 0x00, 0x10, 0x00, 0x00, /* 13 jb exit */
		0xf2, 0x0f, 0x10, 0x7a, 0x10,	    /* 19 movsd xmm7, [rdx+16]: z */
		0x66, 0x0f, 0x2e, 0xf7,		    /* 24 ucomisd xmm6, xmm7 */
		0x0f, 0x82, 0x00, 0x10, 0x00, 0x00, /* 28 jb exit */
		0xe9, 0x00, 0x10, 0x00, 0x00,	    /* 34 jmp to another trace */
	};
	static const uint32_t bc[] = {
		HEADER(4),	     AD(ISF, 0, 0),  JUMP(JMP, 4, 2, 10), AD(ISLT, 0, 1),
		JUMP(JMP, 4, 4, 10), AD(ISLT, 0, 1), JUMP(JMP, 4, 6, 10), AD(ISLT, 1, 2),
		JUMP(JMP, 4, 8, 10), AD(RET0, 0, 1), AD(RET0, 0, 1),
	};
	uint16_t x, y, z;

	t->main = tr_prototype(t, bc, 11, 0);
	tr_begins_at(t, 1);
	tr_snapshot(t, 0, 1, NULL, 0);
	x = tr_ins(t, LJ_IR_SLOAD, NUM | GUARD, 2, SLOAD_TYPECHECK, XMM7);
	y = tr_ins(t, LJ_IR_SLOAD, NUM | GUARD, 3, SLOAD_TYPECHECK, XMM6);
	tr_snapshot(t, 9, 10, NULL, 0);
	tr_ins(t, LJ_IR_GE, NUM | GUARD, x, y, NO_REG);
	tr_snapshot(t, 19, 5, NULL, 0);
	z = tr_ins(t, LJ_IR_SLOAD, NUM | GUARD, 4, SLOAD_TYPECHECK, XMM7);
	tr_snapshot(t, 24, 10, NULL, 0);
	tr_ins(t, LJ_IR_GE, NUM | GUARD, y, z, NO_REG);
	tr_snapshot(t, 34, 9, NULL, 0);
	tr_machine_code(t, code, sizeof(code), 0);
	tr_is(t, 9, 3, LB_NO_PC, 10);
	tr_is(t, 19, 7, LB_NO_PC, 5);
	tr_is(t, 24, 7, LB_NO_PC, 10);
	tr_is(t, 34, 7, LB_NO_PC, 9);
	tr_is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/* What two ways through main become, one like the other: x = x / y. */
static void one_division(struct lj_traced *t, uint32_t pc, uint32_t end)
{
	static const uint8_t code[] = {
		0xf2, 0x0f, 0x10, 0x32,	      /*  0 movsd xmm6, [rdx]: x */
		0xf2, 0x0f, 0x10, 0x7a, 0x08, /*  4 movsd xmm7, [rdx+8]: y */
		0xf2, 0x0f, 0x5e, 0xf7,	      /*  9 divsd xmm6, xmm7 */
		0xf2, 0x0f, 0x11, 0x32,	      /* 13 movsd [rdx], xmm6 */
		0xe9, 0x00, 0x10, 0x00, 0x00, /* 17 jmp to another trace */
	};
	uint16_t x, y;

	tr_begins_at(t, 1);
	tr_snapshot(t, 0, 1, NULL, 0);
	x = tr_ins(t, LJ_IR_SLOAD, NUM | GUARD, 2, SLOAD_TYPECHECK, XMM6);
	y = tr_ins(t, LJ_IR_SLOAD, NUM | GUARD, 3, SLOAD_TYPECHECK, XMM7);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, y, XMM6);
	tr_snapshot(t, 13, end, (struct traced_slot[]){{2, x}}, 1);
	tr_machine_code(t, code, sizeof(code), 0);
	tr_is(t, 9, pc, LB_NO_PC, 1);
	tr_is(t, 13, pc, LB_NO_PC, end);
	tr_is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	if up ~= 1.5 and x < y then	--- ISEQN at 2, ISGE at 4
 *	  x = x / y			--- DIVVV at 6
 *	else
 *	  x = x / y			--- DIVVV at 8
 *	end
 * What up is, is not known. x and y were not compared: it did not go where they are.
 */
void tr_not_compared(struct lj_traced *t)
{
	static const uint32_t bc[] = {
		HEADER(5),	     AD(UGET, 4, 0),	 AD(ISEQN, 4, 0),     JUMP(JMP, 4, 3, 8),
		AD(ISGE, 0, 1),	     JUMP(JMP, 4, 5, 8), ABC(DIVVV, 0, 0, 1), JUMP(JMP, 4, 7, 9),
		ABC(DIVVV, 0, 0, 1), AD(RET0, 0, 1),
	};

	t->main = tr_prototype(t, bc, 10, 1.5);
	one_division(t, 8, 9);
}

/*
 *	if #"k" == 1.5 then	--- LEN at 2, ISNEN at 3
 *	  x = x / y		--- DIVVV at 6
 *	elseif not x then	--- NOT at 8, ISF at 9
 *	  x = x / y		--- DIVVV at 11
 *	else
 *	  x = x / y		--- DIVVV at 13
 *	end
 * The length is known, and that x is a number: neither leaves a guard.
 */
void tr_known(struct lj_traced *t)
{
	static const uint32_t bc[] = {
		HEADER(5),
		AD(KSTR, 3, 0),
		AD(LEN, 3, 3),
		AD(ISNEN, 3, 0),
		JUMP(JMP, 4, 4, 8),
		JUMP(JMP, 4, 5, 6),
		ABC(DIVVV, 0, 0, 1),
		JUMP(JMP, 4, 7, 14),
		AD(NOT, 3, 0),
		AD(ISF, 3, 3),
		JUMP(JMP, 4, 10, 13),
		ABC(DIVVV, 0, 0, 1),
		JUMP(JMP, 4, 12, 14),
		ABC(DIVVV, 0, 0, 1),
		AD(RET0, 0, 1),
	};
	uint64_t key = tr_string(t, "k");

	t->main = tr_prototype_with(t, bc, 15, 1.5, key);
	t->decides = true;
	one_division(t, 13, 14);
}

/*
 *	c, d, e = byte(s, 1), byte(s, 2), byte(s, 2)	--- CALL at 4, 8, 12
 *	local _ = c / 1.5				--- DIVVN at 13, which nothing is left of
 *	x = e / 1.5					--- DIVVN at 14
 * The third is what the second was.
 */
void tr_characters(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0x8b, 0x72, 0x08,		    /*  0 mov esi, [rdx+8]: s */
		0x0f, 0xb6, 0x5e, 0x18,		    /*  3 movzx ebx, byte [rsi+24]: c */
		0x0f, 0xb6, 0x6e, 0x19,		    /*  7 movzx ebp, byte [rsi+25]: d */
		0xf2, 0x0f, 0x2a, 0xf5,		    /* 11 cvtsi2sd xmm6, ebp */
		0xf2, 0x41, 0x0f, 0x5e, 0x76, 0x10, /* 15 divsd xmm6, [r14+16] */
		0xf2, 0x0f, 0x11, 0x32,		    /* 21 movsd [rdx], xmm6 */
		0xe9, 0x00, 0x10, 0x00, 0x00,	    /* 25 jmp to another trace */
	};
	static const uint32_t bc[] = {
		HEADER(12),	    AD(UGET, 3, 0),	 AD(MOV, 5, 1),	      AD(KSHORT, 6, 1),
		ABC(CALL, 3, 2, 3), AD(UGET, 4, 0),	 AD(MOV, 6, 1),	      AD(KSHORT, 7, 2),
		ABC(CALL, 4, 2, 3), AD(UGET, 5, 0),	 AD(MOV, 7, 1),	      AD(KSHORT, 8, 2),
		ABC(CALL, 5, 2, 3), ABC(DIVVN, 6, 3, 0), ABC(DIVVN, 0, 5, 0), AD(RET0, 0, 1),
	};
	uint16_t k, s, c, d, x;

	t->main = tr_prototype(t, bc, 16, 1.5);
	tr_begins_at(t, 1);
	k = tr_number(t, 1.5);
	tr_snapshot(t, 0, 1, NULL, 0);
	s = tr_ins(t, LJ_IR_SLOAD, LJ_IRT_STR, 3, SLOAD_TYPECHECK, ESI);
	c = tr_ins(t, LJ_IR_STRREF, LJ_IRT_P64, s, tr_integer(t, 0), NO_REG);
	c = tr_ins(t, LJ_IR_XLOAD, INT, c, 1, EBX);
	d = tr_ins(t, LJ_IR_STRREF, LJ_IRT_P64, s, tr_integer(t, 1), NO_REG);
	d = tr_ins(t, LJ_IR_XLOAD, INT, d, 1, EBP);
	x = tr_ins(t, LJ_IR_CONV, NUM, d, 467, XMM6);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, k, XMM6);
	tr_snapshot(t, 21, 15, (struct traced_slot[]){{5, c}}, 1);
	tr_machine_code(t, code, sizeof(code), 0);
	tr_is(t, 3, 4, LB_NO_PC, 1);
	tr_is(t, 7, 8, LB_NO_PC, 1);
	tr_is(t, 11, 14, LB_NO_PC, 1);
	tr_is(t, 21, 14, LB_NO_PC, 15);
	tr_is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	x = t.k(x)	--- TGETS at 1, CALL at 3: function f(x) return x / 1.5 end
 *	u[w] = x	--- TSETV at 5
 *	t.k()		--- TGETS at 6, CALL at 7: a function of C's
 *	x = x / 1.5	--- DIVVN at 8
 * The store may have changed t: the trace looks again.
 */
void tr_looked_up_again(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0x8b, 0x72, 0x08,		    /*  0 mov esi, [rdx+8]: t */
		0x8b, 0x4e, 0x28,		    /*  3 mov ecx, [rsi+40] */
		0x8b, 0x59, 0x08,		    /*  6 mov ebx, [rcx+8]: t.k */
		0x81, 0xfb, 0x00, 0x10, 0x00, 0x00, /*  9 cmp ebx, function */
		0x0f, 0x85, 0x00, 0x10, 0x00, 0x00, /* 15 jne exit */
		0xf2, 0x0f, 0x10, 0x32,		    /* 21 movsd xmm6, [rdx]: x */
		0xf2, 0x41, 0x0f, 0x5e, 0x76, 0x10, /* 25 divsd xmm6, [r14+16] */
		0x8b, 0x6a, 0x10,		    /* 31 mov ebp, [rdx+16]: u */
		0x8b, 0x5a, 0x18,		    /* 34 mov ebx, [rdx+24]: w */
		0xe8, 0x00, 0x10, 0x00, 0x00,	    /* 37 call lj_tab_newkey */
		0xf2, 0x0f, 0x11, 0x30,		    /* 42 movsd [rax], xmm6 */
		0x8b, 0x4e, 0x28,		    /* 46 mov ecx, [rsi+40] */
		0x8b, 0x59, 0x08,		    /* 49 mov ebx, [rcx+8]: t.k */
		0x81, 0xfb, 0x00, 0x10, 0x00, 0x00, /* 52 cmp ebx, function */
		0x0f, 0x85, 0x00, 0x10, 0x00, 0x00, /* 58 jne exit */
		0xf2, 0x41, 0x0f, 0x5e, 0x76, 0x10, /* 64 divsd xmm6, [r14+16] */
		0xf2, 0x0f, 0x11, 0x32,		    /* 70 movsd [rdx], xmm6 */
		0xe9, 0x00, 0x10, 0x00, 0x00,	    /* 74 jmp to another trace */
	};
	static const uint32_t bc[] = {
		HEADER(8),	     ABC(TGETS, 4, 1, 0), AD(MOV, 6, 0),       ABC(CALL, 4, 2, 2),
		AD(MOV, 0, 4),	     ABC(TSETV, 0, 2, 3), ABC(TGETS, 4, 1, 0), ABC(CALL, 4, 1, 1),
		ABC(DIVVN, 0, 0, 0), AD(RET0, 0, 1),
	};
	static const uint32_t callee[] = {HEADER(2), ABC(DIVVN, 1, 0, 0), AD(RET1, 1, 2)};
	uint64_t name = tr_string(t, "k"), c;
	uint16_t dividend, f, g, key, tab, node, found, x, u, w;

	t->main = tr_prototype_with(t, bc, 10, 1.5, name);
	t->callee = tr_prototype(t, callee, 3, 1.5);
	tr_begins_at(t, 1);
	c = tr_closure(t, t->callee);
	arena_put8(t->arena, c + LJ_OFF(&t->build.lj, FUNC_FFID), 1);
	f = tr_constant(t, LJ_IR_KGC, LJ_IRT_FUNC, tr_closure(t, t->callee));
	g = tr_constant(t, LJ_IR_KGC, LJ_IRT_FUNC, c);
	key = tr_constant(t, LJ_IR_KGC, LJ_IRT_STR, name);
	dividend = tr_number(t, 1.5);
	tr_snapshot(t, 0, 1, NULL, 0);
	tab = tr_ins(t, LJ_IR_SLOAD, LJ_IRT_TAB, 3, SLOAD_TYPECHECK, ESI);
	node = tr_ins(t, LJ_IR_FLOAD, LJ_IRT_P64, tab, 7, ECX);
	node = tr_ins(t, LJ_IR_HREFK, LJ_IRT_P64, node, key, NO_REG);
	found = tr_ins(t, LJ_IR_HLOAD, LJ_IRT_FUNC, node, 0, EBX);
	tr_ins(t, LJ_IR_EQ, LJ_IRT_FUNC | GUARD, found, f, NO_REG);
	x = tr_ins(t, LJ_IR_SLOAD, NUM, 2, SLOAD_TYPECHECK, XMM6);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, dividend, XMM6);
	u = tr_ins(t, LJ_IR_SLOAD, LJ_IRT_TAB, 4, SLOAD_TYPECHECK, EBP);
	w = tr_ins(t, LJ_IR_SLOAD, LJ_IRT_STR, 5, SLOAD_TYPECHECK, EBX);
	u = tr_ins(t, LJ_IR_NEWREF, LJ_IRT_P64, u, w, EAX);
	tr_ins(t, LJ_IR_HSTORE, NUM, u, x, NO_REG);
	node = tr_ins(t, LJ_IR_FLOAD, LJ_IRT_P64, tab, 7, ECX);
	node = tr_ins(t, LJ_IR_HREFK, LJ_IRT_P64, node, key, NO_REG);
	found = tr_ins(t, LJ_IR_HLOAD, LJ_IRT_FUNC, node, 0, EBX);
	tr_ins(t, LJ_IR_EQ, LJ_IRT_FUNC | GUARD, found, g, NO_REG);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, dividend, XMM6);
	tr_snapshot(t, 70, 9, (struct traced_slot[]){{2, x}}, 1);
	tr_machine_code(t, code, sizeof(code), 0);
	tr_is(t, 25, 1, 3, 1);
	tr_is(t, 31, 5, LB_NO_PC, 1);
	tr_is(t, 46, 6, LB_NO_PC, 1);
	tr_is(t, 52, 7, LB_NO_PC, 1);
	tr_is(t, 64, 8, LB_NO_PC, 1);
	tr_is(t, 70, 8, LB_NO_PC, 9);
	tr_is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	if t.k then	--- TGETS at 1, ISF at 2
 *	  x = x / y	--- DIVVV at 4
 *	else
 *	  x = x / y	--- DIVVV at 6
 *	end
 * t has no keys at all: it is not looked for.
 */
void tr_no_keys(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0x8b, 0x72, 0x10,		    /*  0 mov esi, [rdx+16]: t */
		0x83, 0x7e, 0x34, 0x00,		    /*  3 cmp dword [rsi+52], 0 */
		0x0f, 0x85, 0x00, 0x10, 0x00, 0x00, /*  7 jne exit */
		0xf2, 0x0f, 0x10, 0x32,		    /* 13 movsd xmm6, [rdx]: x */
		0xf2, 0x0f, 0x10, 0x7a, 0x08,	    /* 17 movsd xmm7, [rdx+8]: y */
		0xf2, 0x0f, 0x5e, 0xf7,		    /* 22 divsd xmm6, xmm7 */
		0xf2, 0x0f, 0x11, 0x32,		    /* 26 movsd [rdx], xmm6 */
		0xe9, 0x00, 0x10, 0x00, 0x00,	    /* 30 jmp to another trace */
	};
	static const uint32_t bc[] = {
		HEADER(5),	     ABC(TGETS, 3, 2, 0), AD(ISF, 0, 3),       JUMP(JMP, 4, 3, 6),
		ABC(DIVVV, 0, 0, 1), JUMP(JMP, 4, 5, 7),  ABC(DIVVV, 0, 0, 1), AD(RET0, 0, 1),
	};
	uint16_t tab, mask, x, y;

	t->main = tr_prototype_with(t, bc, 8, 0, tr_string(t, "k"));
	tr_begins_at(t, 1);
	tr_snapshot(t, 0, 1, NULL, 0);
	tab = tr_ins(t, LJ_IR_SLOAD, LJ_IRT_TAB, 4, SLOAD_TYPECHECK, ESI);
	mask = tr_ins(t, LJ_IR_FLOAD, INT, tab, 9, NO_REG);
	tr_ins(t, LJ_IR_EQ, INT | GUARD, mask, tr_integer(t, 0), NO_REG);
	x = tr_ins(t, LJ_IR_SLOAD, NUM, 2, SLOAD_TYPECHECK, XMM6);
	y = tr_ins(t, LJ_IR_SLOAD, NUM, 3, SLOAD_TYPECHECK, XMM7);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, y, XMM6);
	tr_snapshot(t, 26, 7, (struct traced_slot[]){{2, x}}, 1);
	tr_machine_code(t, code, sizeof(code), 0);
	tr_is(t, 0, 1, LB_NO_PC, 1);
	tr_is(t, 13, 6, LB_NO_PC, 1);
	tr_is(t, 26, 6, LB_NO_PC, 7);
	tr_is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	for i = ... do
 *	  s = a .. b	--- CAT at 2
 *	  t[i] = s	--- TSETV at 3, a key that t does not have
 *	end		--- FORL at 4
 */
void tr_new_key(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0x8b, 0x6a, 0x30,		    /*  0 mov ebp, [rdx+48]: i */
		0x48, 0x8b, 0x32,		    /*  3 mov rsi, [rdx]: a */
		0x48, 0x8b, 0x5a, 0x08,		    /*  6 mov rbx, [rdx+8]: b */
		0x49, 0x8d, 0x7e, 0x20,		    /* 10 lea rdi, [r14+32]: the buffer */
		0xe8, 0x00, 0x10, 0x00, 0x00,	    /* 14 call lj_buf_putstr */
		0x48, 0x89, 0xde,		    /* 19 mov rsi, rbx */
		0xe8, 0x00, 0x10, 0x00, 0x00,	    /* 22 call lj_buf_putstr */
		0xe8, 0x00, 0x20, 0x00, 0x00,	    /* 27 call lj_buf_tostr */
		0x48, 0x89, 0xc3,		    /* 32 mov rbx, rax */
		0x48, 0x8b, 0x72, 0x10,		    /* 35 mov rsi, [rdx+16]: t */
		0xf2, 0x0f, 0x2a, 0xfd,		    /* 39 cvtsi2sd xmm7, ebp */
		0xe8, 0x00, 0x30, 0x00, 0x00,	    /* 43 call lj_tab_newkey */
		0x48, 0x89, 0x18,		    /* 48 mov [rax], rbx */
		0x83, 0xc5, 0x01,		    /* 51 add ebp, 1 */
		0x83, 0xfd, 0x64,		    /* 54 cmp ebp, 100 */
		0x0f, 0x8f, 0x00, 0x10, 0x00, 0x00, /* 57 jg exit */
		0xe9, 0x00, 0x10, 0x00, 0x00,	    /* 63 jmp to another trace */
	};
	static const uint32_t bc[] = {
		HEADER(10),	     JUMP(FORI, 6, 1, 5), ABC(CAT, 4, 0, 1),
		ABC(TSETV, 4, 2, 9), JUMP(FORL, 6, 4, 2), AD(RET0, 0, 1),
	};
	uint16_t i, a, b, hdr, s, tab, key;

	t->main = tr_prototype(t, bc, 6, 1.5);
	tr_begins_at(t, 4);
	tr_snapshot(t, 0, 2, NULL, 0);
	i = tr_ins(t, LJ_IR_SLOAD, INT | GUARD, 8, SLOAD_TYPECHECK, EBP);
	a = tr_ins(t, LJ_IR_SLOAD, LJ_IRT_STR | GUARD, 2, SLOAD_TYPECHECK, ESI);
	b = tr_ins(t, LJ_IR_SLOAD, LJ_IRT_STR | GUARD, 3, SLOAD_TYPECHECK, EBX);
	hdr = tr_ins(t, LJ_IR_BUFHDR, LJ_IRT_P64, tr_constant(t, LJ_IR_KPTR, LJ_IRT_P64, 0x1000), 0,
		     7);
	s = tr_ins(t, LJ_IR_BUFPUT, LJ_IRT_P64, hdr, a, EAX);
	s = tr_ins(t, LJ_IR_BUFPUT, LJ_IRT_P64, s, b, EAX);
	s = tr_ins(t, LJ_IR_BUFSTR, LJ_IRT_STR, s, hdr, EBX);
	tab = tr_ins(t, LJ_IR_SLOAD, LJ_IRT_TAB | GUARD, 4, SLOAD_TYPECHECK, ESI);
	key = tr_ins(t, LJ_IR_CONV, NUM, i, LJ_IRT_NUM << 5 | INT, XMM7);
	key = tr_ins(t, LJ_IR_NEWREF, LJ_IRT_P64, tab, key, EAX);
	tr_ins(t, LJ_IR_HSTORE, LJ_IRT_STR, key, s, NO_REG);
	i = tr_next_turn(t, i, 54, 5, (struct traced_slot[]){{6, s}}, 1);
	tr_snapshot(t, 63, 2, (struct traced_slot[]){{6, s}, {8, i}}, 2);
	tr_machine_code(t, code, sizeof(code), 0);
	tr_is(t, 3, 2, LB_NO_PC, 2);
	tr_is(t, 35, 3, LB_NO_PC, 2);
	tr_is(t, 51, 4, LB_NO_PC, 2);
	tr_is(t, 54, 4, LB_NO_PC, 5);
	tr_is(t, 63, 0, 0, 0);
}
