// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls: metamethods, C types' operators, returns to below the trace, upvalues of which function.
 */
#include <string.h>

#include "lj_traced_make.h"

/*
 *	function mt.__add(o, x) return x / 1.5 end	--- DIVVN at 1
 *	for i = ... do
 *	  x = o + x					--- ADDVV at 2
 *	  x = o + x					--- ADDVV at 3
 *	end						--- FORL at 4
 * The second time all that led to the metamethod is there already.
 */
void tr_metamethods(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0x8b, 0x6a, 0x10,		    /*  0 mov ebp, [rdx+16]: i */
		0x8b, 0x5a, 0x08,		    /*  3 mov ebx, [rdx+8]: o */
		0xf2, 0x0f, 0x10, 0x32,		    /*  6 movsd xmm6, [rdx]: x */
		0x8b, 0x4b, 0x20,		    /* 10 mov ecx, [rbx+32]: mt */
		0x85, 0xc9,			    /* 13 test ecx, ecx */
		0x0f, 0x84, 0x00, 0x10, 0x00, 0x00, /* 15 je exit */
		0x8b, 0x49, 0x28,		    /* 21 mov ecx, [rcx+40] */
		0x8b, 0x59, 0x08,		    /* 24 mov ebx, [rcx+8]: mt.__add */
		0x81, 0xfb, 0x00, 0x10, 0x00, 0x00, /* 27 cmp ebx, function */
		0x0f, 0x85, 0x00, 0x10, 0x00, 0x00, /* 33 jne exit */
		0xf2, 0x41, 0x0f, 0x5e, 0x76, 0x10, /* 39 divsd xmm6, [r14+16] */
		0xf2, 0x41, 0x0f, 0x5e, 0x76, 0x10, /* 45 divsd xmm6, [r14+16] */
		0x83, 0xc5, 0x01,		    /* 51 add ebp, 1 */
		0x83, 0xfd, 0x64,		    /* 54 cmp ebp, 100 */
		0x0f, 0x8f, 0x00, 0x10, 0x00, 0x00, /* 57 jg exit */
		0xf2, 0x41, 0x0f, 0x5e, 0x76, 0x10, /* 63 divsd xmm6, [r14+16] */
		0xf2, 0x41, 0x0f, 0x5e, 0x76, 0x10, /* 69 divsd xmm6, [r14+16] */
		0x83, 0xc5, 0x01,		    /* 75 add ebp, 1 */
		0x83, 0xfd, 0x64,		    /* 78 cmp ebp, 100 */
		0x7e, 0xec,			    /* 81 jle 63 */
		0xe9, 0x00, 0x10, 0x00, 0x00,	    /* 83 jmp exit */
	};
	static const uint32_t bc[] = {
		HEADER(6),	     JUMP(FORI, 2, 1, 5), ABC(ADDVV, 0, 1, 0),
		ABC(ADDVV, 0, 1, 0), JUMP(FORL, 2, 4, 2), AD(RET0, 0, 1),
	};
	static const uint32_t callee[] = {HEADER(3), ABC(DIVVN, 2, 1, 0), AD(RET1, 2, 2)};
	uint16_t dividend, add, key, null, i, o, x, mt, node, found;

	t->main = tr_prototype(t, bc, 6, 0);
	t->callee = tr_prototype(t, callee, 3, 1.5);
	tr_begins_at(t, 4);
	add = tr_constant(t, LJ_IR_KGC, LJ_IRT_FUNC, tr_closure(t, t->callee));
	key = tr_constant(t, LJ_IR_KGC, LJ_IRT_STR, tr_string(t, "__add"));
	null = tr_constant(t, LJ_IR_KNULL, LJ_IRT_TAB, 0);
	dividend = tr_number(t, 1.5);
	tr_snapshot(t, 0, 2, NULL, 0);
	i = tr_ins(t, LJ_IR_SLOAD, INT | GUARD, 4, SLOAD_TYPECHECK, EBP);
	o = tr_ins(t, LJ_IR_SLOAD, LJ_IRT_TAB | GUARD, 3, SLOAD_TYPECHECK, EBX);
	x = tr_ins(t, LJ_IR_SLOAD, NUM | GUARD, 2, SLOAD_TYPECHECK, XMM6);
	mt = tr_ins(t, LJ_IR_FLOAD, LJ_IRT_TAB, o, 5, ECX);
	tr_ins(t, LJ_IR_NE, LJ_IRT_TAB | GUARD, mt, null, NO_REG);
	node = tr_ins(t, LJ_IR_FLOAD, LJ_IRT_P64, mt, 7, ECX);
	node = tr_ins(t, LJ_IR_HREFK, LJ_IRT_P64 | GUARD, node, key, NO_REG);
	found = tr_ins(t, LJ_IR_HLOAD, LJ_IRT_FUNC | GUARD, node, 0, EBX);
	tr_ins(t, LJ_IR_EQ, LJ_IRT_FUNC | GUARD, found, add, NO_REG);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, dividend, XMM6);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, dividend, XMM6);
	i = tr_next_turn(t, i, 54, 5, (struct traced_slot[]){{2, x}}, 1);
	tr_snapshot(t, 63, 2, (struct traced_slot[]){{2, x}, {4, i}}, 2);
	tr_ins(t, LJ_IR_LOOP, 0, 0, 0, NO_REG);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, dividend, XMM6);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, dividend, XMM6);
	i = tr_next_turn(t, i, 78, 5, (struct traced_slot[]){{2, x}}, 1);
	tr_machine_code(t, code, sizeof(code), 63);
	tr_is(t, 3, 2, LB_NO_PC, 2);
	tr_is(t, 39, 1, 2, 2);
	tr_is(t, 45, 1, 3, 2);
	tr_is(t, 51, 4, LB_NO_PC, 2);
	tr_is(t, 54, 4, LB_NO_PC, 5);
	tr_is(t, 63, 1, 2, 2);
	tr_is(t, 69, 1, 3, 2);
	tr_is(t, 75, 4, LB_NO_PC, 2);
	tr_is(t, 78, 4, LB_NO_PC, 5);
	tr_is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/* The VM has one C type, a struct of no fields, number 1, with this metatable. */
static void c_type(struct lj_traced *t, uint64_t mt)
{
	struct test_arena *a = t->arena;
	const struct lj_layout *lj = &t->build.lj;
	uint64_t cts = arena_take(a, 48), types = arena_take(a, 48);
	uint64_t key;
	double id = -1;

	memcpy(&key, &id, sizeof(key));
	tr_put_ref(t, t->g + lj->jit_base + lj_ref_size(lj), cts); /* ctype_state */
	arena_put64(a, cts, types);
	arena_put32(a, cts + 8, 2);
	arena_put64(a, cts + 24, t->g);
	tr_put_ref(t, cts + 40, tr_table(t, key, tr_tv(t, LJ_TTAB, mt))); /* miscmap */
	arena_put32(a, types + LJ_OFF(lj, CTYPE_SIZE), 1u << 28);	  /* CT_STRUCT */
}

/*
 *	function methods:half(x) return x / 1.5 end	--- DIVVN at 1
 *	for i = ... do
 *	  x = q:half(x)					--- TGETS at 2, CALL at 5
 *	end						--- FORL at 7
 * q is a cdata: all that is left of the call is that it is one of this type.
 */
void tr_metatype(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0x8b, 0x6a, 0x10,		    /*  0 mov ebp, [rdx+16]: i */
		0x8b, 0x5a, 0x08,		    /*  3 mov ebx, [rdx+8]: q */
		0x0f, 0xb7, 0x4b, 0x0a,		    /*  6 movzx ecx, word [rbx+10]: its type */
		0x83, 0xf9, 0x01,		    /* 10 cmp ecx, 1 */
		0x0f, 0x85, 0x00, 0x10, 0x00, 0x00, /* 13 jne exit */
		0xf2, 0x0f, 0x10, 0x32,		    /* 19 movsd xmm6, [rdx]: x */
		0xf2, 0x41, 0x0f, 0x5e, 0x76, 0x10, /* 23 divsd xmm6, [r14+16] */
		0x83, 0xc5, 0x01,		    /* 29 add ebp, 1 */
		0x83, 0xfd, 0x64,		    /* 32 cmp ebp, 100 */
		0x0f, 0x8f, 0x00, 0x10, 0x00, 0x00, /* 35 jg exit */
		0xf2, 0x41, 0x0f, 0x5e, 0x76, 0x10, /* 41 divsd xmm6, [r14+16] */
		0x83, 0xc5, 0x01,		    /* 47 add ebp, 1 */
		0x83, 0xfd, 0x64,		    /* 50 cmp ebp, 100 */
		0x7e, 0xf2,			    /* 53 jle 41 */
		0xe9, 0x00, 0x10, 0x00, 0x00,	    /* 55 jmp exit */
	};
	static const uint32_t bc[] = {
		HEADER(10),    JUMP(FORI, 2, 1, 8), ABC(TGETS, 6, 1, 0),
		AD(MOV, 8, 1), AD(MOV, 9, 0),	    ABC(CALL, 6, 2, 3),
		AD(MOV, 0, 6), JUMP(FORL, 2, 7, 2), AD(RET0, 0, 1),
	};
	static const uint32_t callee[] = {HEADER(3), ABC(DIVVN, 2, 1, 0), AD(RET1, 2, 2)};
	uint64_t name = tr_string(t, "half"), fn, index;
	uint16_t dividend, i, q, x, type;

	t->main = tr_prototype_with(t, bc, 9, 0, name);
	t->callee = tr_prototype(t, callee, 3, 1.5);
	tr_begins_at(t, 7);
	fn = tr_closure(t, t->callee);
	index = tr_table(t, tr_tv(t, LJ_TSTR, name), tr_tv(t, LJ_TFUNC, fn));
	c_type(t,
	       tr_table(t, tr_tv(t, LJ_TSTR, tr_string(t, "__index")), tr_tv(t, LJ_TTAB, index)));
	tr_constant(t, LJ_IR_KGC, LJ_IRT_FUNC, fn);
	dividend = tr_number(t, 1.5);
	tr_snapshot(t, 0, 2, NULL, 0);
	i = tr_ins(t, LJ_IR_SLOAD, INT | GUARD, 4, SLOAD_TYPECHECK, EBP);
	q = tr_ins(t, LJ_IR_SLOAD, LJ_IRT_CDATA | GUARD, 3, SLOAD_TYPECHECK, EBX);
	type = tr_ins(t, LJ_IR_FLOAD, LJ_IRT_U16, q, 20, ECX);
	tr_ins(t, LJ_IR_EQ, INT | GUARD, type, tr_integer(t, 1), NO_REG);
	x = tr_ins(t, LJ_IR_SLOAD, NUM | GUARD, 2, SLOAD_TYPECHECK, XMM6);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, dividend, XMM6);
	i = tr_next_turn(t, i, 32, 8, (struct traced_slot[]){{2, x}}, 1);
	tr_snapshot(t, 41, 2, (struct traced_slot[]){{2, x}, {4, i}}, 2);
	tr_ins(t, LJ_IR_LOOP, 0, 0, 0, NO_REG);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, dividend, XMM6);
	i = tr_next_turn(t, i, 50, 8, (struct traced_slot[]){{2, x}}, 1);
	tr_machine_code(t, code, sizeof(code), 41);
	tr_is(t, 3, 2, LB_NO_PC, 2);
	tr_is(t, 19, 4, LB_NO_PC, 2);
	tr_is(t, 23, 1, 5, 2);
	tr_is(t, 29, 7, LB_NO_PC, 2);
	tr_is(t, 32, 7, LB_NO_PC, 8);
	tr_is(t, 41, 1, 5, 2);
	tr_is(t, 47, 7, LB_NO_PC, 2);
	tr_is(t, 50, 7, LB_NO_PC, 8);
	tr_is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	function mt.__add(o, x) return x / 1.5 end	--- DIVVN at 1
 *	x = q + x					--- ADDVV at 1
 * q is a cdata: that it is one of this type is made sure of before the call.
 */
void tr_operators(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0x8b, 0x5a, 0x08,		    /*  0 mov ebx, [rdx+8]: q */
		0x66, 0x83, 0x7b, 0x0a, 0x01,	    /*  3 cmp word [rbx+10], 1: its type */
		0x0f, 0x85, 0x00, 0x10, 0x00, 0x00, /*  8 jne exit */
		0xf2, 0x41, 0x0f, 0x5e, 0x76, 0x10, /* 14 divsd xmm6, [r14+16] */
		0xf2, 0x0f, 0x11, 0x32,		    /* 20 movsd [rdx], xmm6 */
		0xe9, 0x00, 0x10, 0x00, 0x00,	    /* 24 jmp to another trace */
	};
	static const uint32_t bc[] = {HEADER(4), ABC(ADDVV, 0, 1, 0), AD(RET0, 0, 1)};
	static const uint32_t callee[] = {HEADER(3), ABC(DIVVN, 2, 1, 0), AD(RET1, 2, 2)};
	uint16_t dividend, q, x, type;
	uint64_t fn;

	t->main = tr_prototype(t, bc, 3, 0);
	t->callee = tr_prototype(t, callee, 3, 1.5);
	tr_begins_at(t, 1);
	fn = tr_closure(t, t->callee);
	c_type(t, tr_table(t, tr_tv(t, LJ_TSTR, tr_string(t, "__add")), tr_tv(t, LJ_TFUNC, fn)));
	tr_constant(t, LJ_IR_KGC, LJ_IRT_FUNC, fn);
	dividend = tr_number(t, 1.5);
	tr_snapshot(t, 0, 1, NULL, 0);
	x = tr_ins(t, LJ_IR_SLOAD, NUM, 2, 2, XMM6); /* the parent trace left it there */
	q = tr_ins(t, LJ_IR_SLOAD, LJ_IRT_CDATA, 3, SLOAD_TYPECHECK, EBX);
	type = tr_ins(t, LJ_IR_FLOAD, LJ_IRT_U16, q, 20, NO_REG);
	tr_ins(t, LJ_IR_EQ, INT | GUARD, type, tr_integer(t, 1), NO_REG);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, dividend, XMM6);
	tr_snapshot(t, 20, 2, (struct traced_slot[]){{2, x}}, 1);
	tr_machine_code(t, code, sizeof(code), 0);
	tr_is(t, 0, 1, LB_NO_PC, 1);
	tr_is(t, 14, 1, 1, 1);
	tr_is(t, 20, 1, 1, 2);
	tr_is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	return x			--- RET1 at 1: to below the trace's own frame
 *	f()				--- CALL at 2: this; behind it
 *	x = x / y			--- DIVVV at 3
 *	g()				--- CALL at 5
 *	local _ = y / y			--- DIVVV at 6, which nothing is left of
 *	x = x / y			--- DIVVV at 7
 * g's return is within the trace: x is what it was before.
 */
void tr_returned(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0x48, 0x81, 0x7a, 0xf8, 0x00, 0x10, 0, 0, /*  0 cmp qword [rdx-8], pc */
		0x0f, 0x85, 0x00, 0x10, 0x00, 0x00,	  /*  8 jne exit */
		0xf2, 0x0f, 0x10, 0x32,			  /* 14 movsd xmm6, [rdx]: x */
		0xf2, 0x0f, 0x10, 0x7a, 0x08,		  /* 18 movsd xmm7, [rdx+8]: y */
		0xf2, 0x0f, 0x5e, 0xf7,			  /* 23 divsd xmm6, xmm7 */
		0xf2, 0x0f, 0x5e, 0xf7,			  /* 27 divsd xmm6, xmm7 */
		0xf2, 0x0f, 0x11, 0x32,			  /* 31 movsd [rdx], xmm6 */
		0xe9, 0x00, 0x10, 0x00, 0x00,		  /* 35 jmp to another trace */
	};
	static const uint32_t bc[] = {
		HEADER(8),	     AD(RET1, 0, 2),	  ABC(CALL, 5, 1, 1),
		ABC(DIVVV, 0, 0, 1), AD(UGET, 4, 0),	  ABC(CALL, 4, 1, 1),
		ABC(DIVVV, 3, 1, 1), ABC(DIVVV, 0, 0, 1), AD(RET0, 0, 1),
	};
	static const uint32_t callee[] = {HEADER(1), AD(RET0, 0, 1)};
	uint16_t proto, pc, x, y;
	uint64_t fn, g;

	t->main = tr_prototype(t, bc, 9, 0);
	t->callee = tr_prototype(t, callee, 2, 0);
	tr_begins_at(t, 1);
	g = tr_closure(t, t->callee);
	fn = tr_closure(t, t->main);
	tr_set_upvalue(t, fn, g);
	tr_constant(t, LJ_IR_KGC, LJ_IRT_FUNC, fn);
	tr_constant(t, LJ_IR_KGC, LJ_IRT_FUNC, g);
	proto = tr_constant(t, LJ_IR_KGC, LJ_IRT_PROTO, t->main);
	pc = tr_constant(t, LJ_IR_KPTR, LJ_IRT_P64,
			 t->main + LJ_OFF(&t->build.lj, PROTO_SIZE) + 4 * 3);
	tr_snapshot(t, 0, 1, NULL, 0);
	tr_ins(t, LJ_IR_RETF, LJ_IRT_P64 | GUARD, proto, pc, NO_REG);
	tr_snapshot(t, 14, 3, NULL, 0);
	x = tr_ins(t, LJ_IR_SLOAD, NUM | GUARD, 2, SLOAD_TYPECHECK, XMM6);
	y = tr_ins(t, LJ_IR_SLOAD, NUM | GUARD, 3, SLOAD_TYPECHECK, XMM7);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, y, XMM6);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, y, XMM6);
	tr_snapshot(t, 31, 8, (struct traced_slot[]){{2, x}}, 1);
	tr_machine_code(t, code, sizeof(code), 0);
	tr_is(t, 14, 3, LB_NO_PC, 3);
	tr_is(t, 27, 7, LB_NO_PC, 3);
	tr_is(t, 31, 7, LB_NO_PC, 8);
	tr_is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	local function f() return up / up end	--- UGET at 1, DIVVV at 2
 *	x = f()					--- UGET at 1, CALL at 2
 * f never changes: the trace makes sure that main is the function which has it. up does change; it
 * lies where f, which is a constant then, has it.
 */
void tr_upvalues(struct lj_traced *t)
{
	static const uint8_t code[] = {
		0xc4, 0xe3, 0xfb, 0xf0, 0x42, 0xf0, 0x2f, /*  0 rorx rax, [rdx-16], 47: main */
		0x48, 0xc1, 0xe8, 0x11,			  /*  7 shr rax, 17 */
		0x48, 0x3b, 0xc1,			  /* 11 cmp rax, rcx */
		0x0f, 0x85, 0x00, 0x10, 0x00, 0x00,	  /* 14 jne exit */
		0x49, 0x8b, 0x86, 0x00, 0x10, 0x00, 0x00, /* 20 mov rax, [r14+...] */
		0x81, 0x78, 0x04, 0,	0,    0xf9, 0xff, /* 27 cmp dword [rax+4], number */
		0x0f, 0x83, 0x00, 0x10, 0x00, 0x00,	  /* 34 jae exit */
		0xf2, 0x0f, 0x10, 0x38,			  /* 40 movsd xmm7, [rax]: up */
		0xf2, 0x0f, 0x5e, 0xff,			  /* 44 divsd xmm7, xmm7 */
		0xf2, 0x0f, 0x11, 0x3a,			  /* 48 movsd [rdx], xmm7 */
		0xe9, 0x00, 0x10, 0x00, 0x00,		  /* 52 jmp to another trace */
	};
	static const uint32_t bc[] = {
		HEADER(8), AD(UGET, 5, 0), ABC(CALL, 5, 2, 1), AD(MOV, 0, 5), AD(RET0, 0, 1),
	};
	static const uint32_t callee[] = {HEADER(2), AD(UGET, 0, 0), ABC(DIVVV, 0, 0, 0),
					  AD(RET1, 0, 2)};
	uint16_t own, f, x;
	uint64_t fn, called;

	t->main = tr_prototype(t, bc, 5, 0);
	t->callee = tr_prototype(t, callee, 4, 0);
	tr_begins_at(t, 1);
	called = tr_closure(t, t->callee);
	tr_set_upvalue(t, called, called);
	tr_change_upvalue(t, called);
	fn = tr_closure(t, t->main);
	tr_set_upvalue(t, fn, called);
	own = tr_constant(t, LJ_IR_KGC, LJ_IRT_FUNC, fn);
	f = tr_constant(t, LJ_IR_KGC, LJ_IRT_FUNC, called);
	tr_snapshot(t, 0, 1, NULL, 0);
	x = tr_ins(t, LJ_IR_SLOAD, LJ_IRT_FUNC, 0, 16, EAX);
	tr_ins(t, LJ_IR_EQ, LJ_IRT_FUNC | GUARD, x, own, NO_REG);
	x = tr_ins(t, LJ_IR_UREFO, LJ_IRT_P64 | GUARD, f, 0, EAX);
	x = tr_ins(t, LJ_IR_ULOAD, NUM | GUARD, x, 0, XMM7);
	x = tr_ins(t, LJ_IR_DIV, NUM, x, x, XMM7);
	tr_snapshot(t, 48, 4, (struct traced_slot[]){{2, x}}, 1);
	tr_machine_code(t, code, sizeof(code), 0);
	tr_is(t, 0, 1, LB_NO_PC, 1);
	tr_is(t, 20, 1, 2, 1);
	tr_is(t, 44, 2, 2, 1);
	tr_is(t, 48, 2, 2, 4);
	tr_is(t, (uint32_t)sizeof(code), 0, 0, 0);
}
