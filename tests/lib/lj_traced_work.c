// SPDX-License-Identifier: BSD-2-Clause
/*
 * Whose a machine instruction is where the intermediate code does not say: around calls, searches.
 */
#include "lj_traced_make.h"

static uint16_t buffer(struct lj_traced *t)
{
	return tr_ins(t, LJ_IR_BUFHDR, LJ_IRT_P64, tr_constant(t, LJ_IR_KPTR, LJ_IRT_P64, 0x1000),
		      0, 7);
}

/*
 *	s = a .. b	--- CAT at 1
 *	x = x / 1.5	--- DIVVN at 2
 *	return		--- RET0 at 3
 * A side trace. The calls take all registers: what is in them is loaded again behind the last.
 */
void tr_left_behind(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0x48, 0x8b, 0x32,		    /*  0 mov rsi, [rdx]: a */
		0x48, 0x8b, 0x5a, 0x08,		    /*  3 mov rbx, [rdx+8]: b */
		0xf2, 0x0f, 0x10, 0x7a, 0x10,	    /*  7 movsd xmm7, [rdx+16]: x */
		0xf2, 0x0f, 0x11, 0x7c, 0x24, 0x08, /* 12 movsd [rsp+8], xmm7 */
		0x49, 0x8d, 0x7e, 0x20,		    /* 18 lea rdi, [r14+32] */
		0xe8, 0x00, 0x10, 0x00, 0x00,	    /* 22 call lj_buf_putstr */
		0x48, 0x89, 0xde,		    /* 27 mov rsi, rbx */
		0xe8, 0x00, 0x10, 0x00, 0x00,	    /* 30 call lj_buf_putstr */
		0xe8, 0x00, 0x20, 0x00, 0x00,	    /* 35 call lj_buf_tostr */
		0x48, 0x89, 0xc3,		    /* 40 mov rbx, rax */
		0xf2, 0x0f, 0x10, 0x7c, 0x24, 0x08, /* 43 movsd xmm7, [rsp+8] */
		0xf2, 0x41, 0x0f, 0x10, 0x76, 0x10, /* 49 movsd xmm6, [r14+16] */
		0xf2, 0x0f, 0x5e, 0xfe,		    /* 55 divsd xmm7, xmm6 */
		0xf2, 0x0f, 0x11, 0x7a, 0x10,	    /* 59 movsd [rdx+16], xmm7 */
		0xe9, 0x00, 0x10, 0x00, 0x00,	    /* 64 jmp to another trace */
	};
	static const uint32_t bc[] = {HEADER(6), ABC(CAT, 3, 0, 1), ABC(DIVVN, 2, 2, 0),
				      AD(RET0, 0, 1)};
	uint16_t a, b, x, s, hdr;

	t->main = tr_prototype(t, bc, 4, 1.5);
	tr_begins_at(t, 1);
	tr_snapshot(t, 0, 1, NULL, 0);
	a = tr_ins(t, LJ_IR_SLOAD, LJ_IRT_STR, 2, SLOAD_TYPECHECK, ESI);
	b = tr_ins(t, LJ_IR_SLOAD, LJ_IRT_STR, 3, SLOAD_TYPECHECK, EBX);
	hdr = buffer(t);
	s = tr_ins(t, LJ_IR_BUFPUT, LJ_IRT_P64, hdr, a, EAX);
	s = tr_ins(t, LJ_IR_BUFPUT, LJ_IRT_P64, s, b, EAX);
	s = tr_ins(t, LJ_IR_BUFSTR, LJ_IRT_STR, s, hdr, EBX);
	x = tr_ins(t, LJ_IR_SLOAD, NUM, 4, SLOAD_TYPECHECK, XMM7);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, tr_number(t, 1.5), XMM7);
	tr_snapshot(t, 59, 3, (struct traced_slot[]){{4, x}, {5, s}}, 2);
	tr_machine_code(t, code, sizeof(code), 0);
	tr_is(t, 22, 1, LB_NO_PC, 1);
	tr_is(t, 55, 2, LB_NO_PC, 1);
	tr_is(t, 59, 2, LB_NO_PC, 3);
	tr_is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	x = {}		--- TNEW at 1
 *	y = {}		--- TNEW at 2
 *	return		--- RET0 at 3
 * A side trace. It begins with the question whether the collector has to run, which is a call, too.
 */
void tr_gc_check(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0x49, 0x8b, 0x7e, 0x30,		    /*  0 mov rdi, [r14+48]: gc.total */
		0x49, 0x3b, 0x7e, 0x38,		    /*  4 cmp rdi, [r14+56]: gc.threshold */
		0x72, 0x16,			    /*  8 jb 32 */
		0xbe, 0x02, 0x00, 0x00, 0x00,	    /* 10 mov esi, 2 */
		0x49, 0x8d, 0x7e, 0x20,		    /* 15 lea rdi, [r14+32] */
		0xe8, 0x00, 0x10, 0x00, 0x00,	    /* 19 call lj_gc_step_jit */
		0x85, 0xc0,			    /* 24 test eax, eax */
		0x0f, 0x85, 0x00, 0x10, 0x00, 0x00, /* 26 jne exit */
		0x31, 0xf6,			    /* 32 xor esi, esi */
		0xe8, 0x00, 0x20, 0x00, 0x00,	    /* 34 call lj_tab_new1 */
		0x48, 0x89, 0xc3,		    /* 39 mov rbx, rax */
		0x31, 0xf6,			    /* 42 xor esi, esi */
		0xe8, 0x00, 0x20, 0x00, 0x00,	    /* 44 call lj_tab_new1 */
		0x48, 0x89, 0x02,		    /* 49 mov [rdx], rax */
		0xe9, 0x00, 0x10, 0x00, 0x00,	    /* 52 jmp to another trace */
	};
	static const uint32_t bc[] = {HEADER(4), AD(TNEW, 0, 0), AD(TNEW, 1, 0), AD(RET0, 0, 1)};
	uint16_t x, y;

	t->main = tr_prototype(t, bc, 4, 1.5);
	tr_begins_at(t, 1);
	tr_snapshot(t, 0, 1, NULL, 0);
	x = tr_ins(t, LJ_IR_TNEW, LJ_IRT_TAB, 0, 0, EBX);
	y = tr_ins(t, LJ_IR_TNEW, LJ_IRT_TAB, 0, 0, EAX);
	tr_snapshot(t, 49, 3, (struct traced_slot[]){{2, x}, {3, y}}, 2);
	tr_machine_code(t, code, sizeof(code), 0);
	tr_is(t, 34, 1, LB_NO_PC, 1);
	tr_is(t, 42, 2, LB_NO_PC, 1);
	tr_is(t, 49, 2, LB_NO_PC, 3);
	tr_is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	i = n / 1.5	--- DIVVN at 1
 *	j = i + 1.5	--- ADDVN at 2
 *	x = t[j]	--- TGETV at 3
 *	y = u[j]	--- TGETV at 4
 *	return		--- RET0 at 5
 * A side trace. The index is made an integer, and added to once more as one (lj_opt_narrow.c).
 */
void tr_index_sum(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0x8b, 0x72, 0x10,		    /*  0 mov esi, [rdx+16]: t */
		0x8b, 0x4a, 0x18,		    /*  3 mov ecx, [rdx+24]: u */
		0xf2, 0x0f, 0x10, 0x72, 0x20,	    /*  6 movsd xmm6, [rdx+32]: n */
		0xf2, 0x41, 0x0f, 0x5e, 0x76, 0x10, /* 11 divsd xmm6, [r14+16] */
		0xf2, 0x0f, 0x2c, 0xee,		    /* 17 cvttsd2si ebp, xmm6 */
		0x83, 0xc5, 0x01,		    /* 21 add ebp, 1 */
		0x3b, 0x6e, 0x30,		    /* 24 cmp ebp, [rsi+48]: t's size */
		0x0f, 0x83, 0x00, 0x10, 0x00, 0x00, /* 27 jae exit */
		0x48, 0x8b, 0x5e, 0x10,		    /* 33 mov rbx, [rsi+16] */
		0xf2, 0x0f, 0x10, 0x3c, 0xeb,	    /* 37 movsd xmm7, [rbx+rbp*8]: x */
		0x3b, 0x69, 0x30,		    /* 42 cmp ebp, [rcx+48]: u's size */
		0x0f, 0x83, 0x00, 0x10, 0x00, 0x00, /* 45 jae exit */
		0x48, 0x8b, 0x41, 0x10,		    /* 51 mov rax, [rcx+16] */
		0xf2, 0x0f, 0x10, 0x34, 0xe8,	    /* 55 movsd xmm6, [rax+rbp*8]: y */
		0xf2, 0x0f, 0x11, 0x32,		    /* 60 movsd [rdx], xmm6 */
		0xe9, 0x00, 0x10, 0x00, 0x00,	    /* 64 jmp to another trace */
	};
	static const uint32_t bc[] = {
		HEADER(8),	     ABC(DIVVN, 6, 4, 0), ABC(ADDVN, 5, 6, 0),
		ABC(TGETV, 0, 2, 5), ABC(TGETV, 1, 3, 5), AD(RET0, 0, 1),
	};
	uint16_t tab[2], n, index, size, array, x[2], i;

	t->main = tr_prototype(t, bc, 6, 1);
	tr_begins_at(t, 1);
	tr_snapshot(t, 0, 1, NULL, 0);
	n = tr_ins(t, LJ_IR_SLOAD, NUM, 6, SLOAD_TYPECHECK, XMM6);
	n = tr_ins(t, LJ_IR_DIV, NUM, n, tr_number(t, 1), XMM6);
	index = tr_ins(t, LJ_IR_ADD, NUM, n, tr_number(t, 1), NO_REG);
	for (i = 0; i < 2; i++)
		tab[i] = tr_ins(t, LJ_IR_SLOAD, LJ_IRT_TAB, 4 + i, SLOAD_TYPECHECK, i ? ECX : ESI);
	lj_traced_set_ins(t, index, LJ_IR_NOP, 0, 0); /* as nobody uses it */
	index = tr_ins(t, LJ_IR_CONV, INT | GUARD, n, 2 << 12 | INT << 5 | NUM, EBP);
	index = tr_ins(t, LJ_IR_ADD, INT, index, tr_integer(t, 1), EBP);
	for (i = 0; i < 2; i++) {
		size = tr_ins(t, LJ_IR_FLOAD, INT, tab[i], 8, NO_REG);
		tr_ins(t, LJ_IR_ABC, INT | GUARD, size, index, NO_REG);
		array = tr_ins(t, LJ_IR_FLOAD, LJ_IRT_P64, tab[i], 6, i ? EAX : EBX);
		x[i] = tr_ins(t, LJ_IR_AREF, LJ_IRT_P64, array, index, NO_REG);
		x[i] = tr_ins(t, LJ_IR_ALOAD, NUM, x[i], 0, i ? XMM6 : XMM7);
	}
	tr_snapshot(t, 60, 5, (struct traced_slot[]){{2, x[0]}, {3, x[1]}}, 2);
	tr_machine_code(t, code, sizeof(code), 0);
	tr_is(t, 11, 1, LB_NO_PC, 1);
	tr_is(t, 17, 3, LB_NO_PC, 1);
	tr_is(t, 42, 4, LB_NO_PC, 1);
	tr_is(t, 60, 4, LB_NO_PC, 5);
	tr_is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	x = t[k]	--- TGETV at 1
 *	y = {}		--- TNEW at 2
 *	return		--- RET0 at 3
 * A side trace. t has no k: the search itself leaves when it finds one, and goes round by a jump
 * back. It is asked for by two: the one that searches got a register, and makes no code.
 */
void tr_merged_search(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0x48, 0x8b, 0x72, 0x10,		    /*   0 mov rsi, [rdx+16]: t */
		0xf2, 0x0f, 0x10, 0x7a, 0x18,	    /*   4 movsd xmm7, [rdx+24]: k */
		0xf2, 0x0f, 0x2c, 0xdf,		    /*   9 cvttsd2si ebx, xmm7 */
		0x0f, 0x57, 0xf6,		    /*  13 xorps xmm6, xmm6 */
		0xf2, 0x0f, 0x2a, 0xf3,		    /*  16 cvtsi2sd xmm6, ebx */
		0x66, 0x0f, 0x2e, 0xfe,		    /*  20 ucomisd xmm7, xmm6 */
		0x0f, 0x85, 0x00, 0x10, 0x00, 0x00, /*  24 jne exit */
		0x0f, 0x8a, 0x00, 0x10, 0x00, 0x00, /*  30 jp exit */
		0x3b, 0x5e, 0x30,		    /*  36 cmp ebx, [rsi+48]: t's size */
		0x0f, 0x82, 0x00, 0x10, 0x00, 0x00, /*  39 jb exit */
		0x66, 0x48, 0x0f, 0x7e, 0xf9,	    /*  45 movq rcx, xmm7 */
		0x8b, 0xd9,			    /*  50 mov ebx, ecx */
		0x48, 0xc1, 0xe9, 0x20,		    /*  52 shr rcx, 32 */
		0x31, 0xcb,			    /*  56 xor ebx, ecx */
		0x23, 0x4e, 0x34,		    /*  58 and ecx, [rsi+52] */
		0x8d, 0x0c, 0x49,		    /*  61 lea ecx, [rcx+rcx*2] */
		0xc1, 0xe1, 0x03,		    /*  64 shl ecx, 3 */
		0x48, 0x03, 0x4e, 0x28,		    /*  67 add rcx, [rsi+40] */
		0x83, 0x79, 0x0c, 0xf2,		    /*  71 cmp dword [rcx+12], -14 */
		0x73, 0x0d,			    /*  75 jae 90 */
		0x66, 0x0f, 0x2e, 0x79, 0x08,	    /*  77 ucomisd xmm7, [rcx+8] */
		0x7a, 0x06,			    /*  82 jp 90 */
		0x0f, 0x84, 0x00, 0x10, 0x00, 0x00, /*  84 je exit */
		0x48, 0x8b, 0x49, 0x10,		    /*  90 mov rcx, [rcx+16] */
		0x48, 0x85, 0xc9,		    /*  94 test rcx, rcx */
		0x75, 0xe4,			    /*  97 jne 71 */
		0x31, 0xf6,			    /*  99 xor esi, esi */
		0xe8, 0x00, 0x20, 0x00, 0x00,	    /* 101 call lj_tab_new1 */
		0x48, 0x89, 0x02,		    /* 106 mov [rdx], rax */
		0xe9, 0x00, 0x10, 0x00, 0x00,	    /* 109 jmp to another trace */
	};
	static const uint32_t bc[] = {HEADER(6), ABC(TGETV, 0, 2, 3), AD(TNEW, 1, 0),
				      AD(RET0, 0, 1)};
	uint16_t tab, k, index, size, at, y;

	t->main = tr_prototype(t, bc, 4, 1.5);
	tr_begins_at(t, 1);
	tr_snapshot(t, 0, 1, NULL, 0);
	tab = tr_ins(t, LJ_IR_SLOAD, LJ_IRT_TAB, 4, SLOAD_TYPECHECK, ESI);
	k = tr_ins(t, LJ_IR_SLOAD, NUM, 5, SLOAD_TYPECHECK, XMM7);
	index = tr_ins(t, LJ_IR_CONV, INT | GUARD, k, 2 << 12 | INT << 5 | NUM, EBX);
	size = tr_ins(t, LJ_IR_FLOAD, INT, tab, 8, NO_REG);
	tr_ins(t, LJ_IR_ULE, INT | GUARD, size, index, NO_REG);
	at = tr_ins(t, LJ_IR_HREF, LJ_IRT_P64, tab, k, ECX);
	tr_ins(t, LJ_IR_EQ, LJ_IRT_P64 | GUARD, at, tr_constant(t, LJ_IR_KKPTR, LJ_IRT_P64, 0x1000),
	       NO_REG);
	y = tr_ins(t, LJ_IR_TNEW, LJ_IRT_TAB, 0, 0, EAX);
	tr_snapshot(t, 106, 3, (struct traced_slot[]){{3, y}}, 1);
	tr_machine_code(t, code, sizeof(code), 0);
	tr_is(t, 0, 1, LB_NO_PC, 1);
	tr_is(t, 71, 1, LB_NO_PC, 1);
	tr_is(t, 90, 1, LB_NO_PC, 1);
	tr_is(t, 99, 2, LB_NO_PC, 1);
	tr_is(t, 106, 2, LB_NO_PC, 3);
	tr_is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	for j = 1, 2 do		--- KSHORT at 1, 2, 3; FORI at 4
 *	  x = x + y		--- ADDVV at 5
 *	  z = x - y		--- SUBVV at 6
 *	end			--- FORL at 7
 *	return			--- RET0 at 8
 * A side trace. The loop has no guard; the second turn begins with a snapshot, which stands where
 * the first one does, and by which j is 2.
 */
void tr_turns(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0x8b, 0x6a, 0x10,		    /*  0 mov ebp, [rdx+16]: x */
		0x8b, 0x5a, 0x18,		    /*  3 mov ebx, [rdx+24]: y */
		0x03, 0xeb,			    /*  6 add ebp, ebx */
		0x0f, 0x80, 0x00, 0x10, 0x00, 0x00, /*  8 jo exit */
		0x8b, 0xcd,			    /* 14 mov ecx, ebp */
		0x2b, 0xcb,			    /* 16 sub ecx, ebx */
		0x0f, 0x80, 0x00, 0x10, 0x00, 0x00, /* 18 jo exit */
		0x03, 0xeb,			    /* 24 add ebp, ebx */
		0x0f, 0x80, 0x00, 0x10, 0x00, 0x00, /* 26 jo exit */
		0x8b, 0xcd,			    /* 32 mov ecx, ebp */
		0x2b, 0xcb,			    /* 34 sub ecx, ebx */
		0x0f, 0x80, 0x00, 0x10, 0x00, 0x00, /* 36 jo exit */
		0x89, 0x4a, 0x20,		    /* 42 mov [rdx+32], ecx */
		0xe9, 0x00, 0x10, 0x00, 0x00,	    /* 45 jmp to another trace */
	};
	static const uint32_t bc[] = {
		HEADER(8),	     AD(KSHORT, 3, 1),	  AD(KSHORT, 4, 2),
		AD(KSHORT, 5, 1),    JUMP(FORI, 3, 4, 8), ABC(ADDVV, 0, 0, 1),
		ABC(SUBVV, 2, 0, 1), JUMP(FORL, 3, 7, 5), AD(RET0, 0, 1),
	};
	uint16_t x, y, z, two = tr_integer(t, 2);

	t->main = tr_prototype(t, bc, 9, 1.5);
	tr_begins_at(t, 1);
	tr_snapshot(t, 0, 1, NULL, 0);
	x = tr_ins(t, LJ_IR_SLOAD, INT | GUARD, 2, SLOAD_TYPECHECK, EBP);
	y = tr_ins(t, LJ_IR_SLOAD, INT | GUARD, 3, SLOAD_TYPECHECK, EBX);
	x = tr_ins(t, LJ_IR_ADDOV, INT | GUARD, x, y, EBP);
	z = tr_ins(t, LJ_IR_SUBOV, INT | GUARD, x, y, ECX);
	tr_snapshot(t, 24, 5, (struct traced_slot[]){{2, x}, {4, z}, {5, two}, {8, two}}, 4);
	x = tr_ins(t, LJ_IR_ADDOV, INT | GUARD, x, y, EBP);
	z = tr_ins(t, LJ_IR_SUBOV, INT | GUARD, x, y, ECX);
	tr_snapshot(t, 42, 8, (struct traced_slot[]){{2, x}, {4, z}}, 2);
	tr_machine_code(t, code, sizeof(code), 0);
	tr_is(t, 0, 5, LB_NO_PC, 1);
	tr_is(t, 14, 6, LB_NO_PC, 1);
	tr_is(t, 24, 5, LB_NO_PC, 5);
	tr_is(t, 32, 6, LB_NO_PC, 5);
	tr_is(t, 42, 6, LB_NO_PC, 8);
	tr_is(t, (uint32_t)sizeof(code), 0, 0, 0);
}
