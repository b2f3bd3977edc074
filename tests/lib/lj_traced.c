// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include <luabpf/layout.h>

#include "lj_traced.h"
#include "vm/lj_bc.h"
#include "vm/lj_ir.h"
#include "vm/lj_recognise.h"

#define AD(op, a, d) ((uint32_t)LJ_BC_##op | (uint32_t)(a) << 8 | (uint32_t)(d) << 16)
#define ABC(op, a, b, c) AD(op, a, (uint32_t)(b) << 8 | (c))
#define JUMP(op, a, from, to) AD(op, a, 0x8000 + (to) - (from)-1)
#define HEADER(framesize) (0x59u | (framesize) << 8) /* FUNCF */

enum { CONSTS = 64, INS = 64, SNAPS = 16, MAP = 128, MCODE_AT = 128 };
enum { SLOAD_TYPECHECK = 4, NUM = LJ_IRT_NUM, INT = LJ_IRT_INT, GUARD = LJ_IRT_GUARD };

/* Registers that the assembler gave: general ones, XMM from 16 on, none. */
enum { EAX = 0, ECX = 1, EBX = 3, EBP = 5, ESI = 6, XMM6 = 22, XMM7 = 23, NO_REG = 0x80 };

static uint64_t string(struct arena *a, const char *text)
{
	uint32_t len = (uint32_t)strlen(text);
	uint64_t s = arena_take(a, LJ_STR_SIZE + len + 1);

	arena_put8(a, s + LJ_STR_GCT, LJ_GCT_STR);
	arena_put32(a, s + LJ_STR_LEN, len);
	arena_put(a, s + LJ_STR_SIZE, text, len + 1);
	return s;
}

/* Without line information: positions are all that is asked for. object: its constant; 0: none. */
static uint64_t prototype_with(struct arena *a, const uint32_t *bc, uint32_t nbc, double number,
			       uint64_t object)
{
	uint32_t size = LJ_PROTO_SIZE + 4 * ((nbc + 1) & ~1u) + 16;
	uint64_t chunk = string(a, "=traced"), pt = arena_take(a, size);

	arena_put8(a, pt + LJ_PROTO_GCT, LJ_GCT_PROTO);
	arena_put32(a, pt + LJ_PROTO_SIZEBC, nbc);
	arena_put64(a, pt + LJ_PROTO_K, pt + size - 8);
	arena_put32(a, pt + LJ_PROTO_SIZEKN, 1);
	arena_put32(a, pt + LJ_PROTO_SIZEKGC, object != 0);
	arena_put32(a, pt + LJ_PROTO_SIZEPT, size);
	arena_put64(a, pt + LJ_PROTO_CHUNKNAME, chunk);
	arena_put32(a, pt + LJ_PROTO_FIRSTLINE, 1);
	arena_put32(a, pt + LJ_PROTO_NUMLINE, 9);
	arena_put(a, pt + LJ_PROTO_SIZE, bc, 4ULL * nbc);
	arena_put64(a, pt + size - 16, object);
	arena_put(a, pt + size - 8, &number, 8);
	return pt;
}

static uint64_t prototype(struct arena *a, const uint32_t *bc, uint32_t nbc, double number)
{
	return prototype_with(a, bc, nbc, number, 0);
}

static uint64_t tv(int32_t type, uint64_t object)
{
	return (uint64_t)(int64_t)type << 47 | object;
}

/* A table with one key. */
static uint64_t table(struct arena *a, uint64_t key, uint64_t value)
{
	uint64_t node = arena_take(a, LJ_NODE_SIZE), t = arena_take(a, LJ_TAB_SIZE);

	arena_put64(a, node + LJ_NODE_VAL, value);
	arena_put64(a, node + LJ_NODE_KEY, key);
	arena_put8(a, t + 9, (uint8_t)~LJ_TTAB);
	arena_put64(a, t + LJ_TAB_NODE, node);
	return t;
}

/* With room for one upvalue. */
static uint64_t closure(struct arena *a, uint64_t pt)
{
	uint64_t fn = arena_take(a, LJ_FUNC_READ);

	arena_put8(a, fn + LJ_FUNC_GCT, LJ_GCT_FUNC);
	arena_put64(a, fn + LJ_FUNC_PC, pt + LJ_PROTO_SIZE);
	return fn;
}

/* fn's upvalue is `value` for ever. */
static void set_upvalue(struct arena *a, uint64_t fn, uint64_t value)
{
	uint64_t uv = arena_take(a, 48);

	arena_put8(a, uv + 11, 1); /* immutable */
	arena_put64(a, uv + 16, tv(LJ_TFUNC, value));
	arena_put64(a, uv + 32, uv + 16); /* v */
	arena_put64(a, fn + 40, uv);	  /* uvptr[0] */
}

/* ---- the trace ---------------------------------------------------------------------------------
 */

static void put16(struct lj_traced *t, uint64_t at, uint16_t v)
{
	arena_put(t->arena, at, &v, 2);
}

static void put_ins(struct lj_traced *t, uint32_t ref, const struct lj_ins *ins)
{
	arena_put(t->arena, t->ir + 8ULL * ref, ins, sizeof(*ins));
}

void lj_traced_set_ins(struct lj_traced *t, uint32_t ref, uint8_t o, uint16_t op1, uint16_t op2)
{
	put_ins(t, ref, &(struct lj_ins){.op1 = op1, .op2 = op2, .o = o, .t = NUM, .r = NO_REG});
}

static uint16_t constant(struct lj_traced *t, uint8_t o, uint8_t type, uint64_t value)
{
	t->nk -= 2;
	put_ins(t, t->nk, &(struct lj_ins){.o = o, .t = type});
	arena_put64(t->arena, t->ir + 8ULL * t->nk + 8, value);
	arena_put32(t->arena, t->trace + LJ_TRACE_NK, t->nk);
	return (uint16_t)t->nk;
}

static uint16_t number(struct lj_traced *t, double d)
{
	uint64_t bits;

	memcpy(&bits, &d, sizeof(bits));
	return constant(t, LJ_IR_KNUM, NUM, bits);
}

/* The same constant again where there is one, as LuaJIT does. */
static uint16_t integer(struct lj_traced *t, int16_t i)
{
	const struct lj_ins k = {
		.op1 = (uint16_t)i, .op2 = i < 0 ? 0xffff : 0, .o = LJ_IR_KINT, .t = INT};
	uint64_t bits;
	uint32_t ref;

	memcpy(&bits, &k, sizeof(bits));
	for (ref = t->nk; ref < LJ_REF_BIAS; ref++)
		if (arena_get64(t->arena, t->ir + 8ULL * ref) == bits)
			return (uint16_t)ref;
	t->nk--;
	put_ins(t, t->nk, &k);
	arena_put32(t->arena, t->trace + LJ_TRACE_NK, t->nk);
	return (uint16_t)t->nk;
}

static uint16_t ins(struct lj_traced *t, uint8_t o, uint8_t type, uint16_t op1, uint16_t op2,
		    uint8_t r)
{
	put_ins(t, t->nins, &(struct lj_ins){.op1 = op1, .op2 = op2, .t = type, .o = o, .r = r});
	arena_put32(t->arena, t->trace + LJ_TRACE_NINS, t->nins + 1);
	return (uint16_t)t->nins++;
}

struct slot {
	uint8_t slot;
	uint16_t ref;
};

/* A snapshot before the next instruction, on main's frame. */
static void snapshot(struct lj_traced *t, uint16_t mcofs, uint32_t pc, const struct slot *slots,
		     uint32_t n)
{
	struct arena *a = t->arena;
	uint64_t head = t->trace + LJ_TRACE_NSNAP, at = t->main + LJ_PROTO_SIZE + 4ULL * pc;
	uint16_t nsnap;
	uint32_t nmap, i;
	uint64_t snap, map;

	memcpy(&nsnap, arena_at(a, head, 2), 2);
	memcpy(&nmap, arena_at(a, t->trace + LJ_TRACE_NSNAPMAP, 4), 4);
	snap = arena_get64(a, t->trace + LJ_TRACE_SNAP) + (uint64_t)LJ_SNAP_SIZE * nsnap;
	map = arena_get64(a, t->trace + LJ_TRACE_SNAPMAP) + 4ULL * nmap;
	arena_put32(a, snap + LJ_SNAP_MAPOFS, nmap);
	put16(t, snap + LJ_SNAP_REF, (uint16_t)t->nins);
	put16(t, snap + LJ_SNAP_MCOFS, mcofs);
	arena_put8(a, snap + LJ_SNAP_NENT, (uint8_t)n);
	for (i = 0; i < n; i++)
		arena_put32(a, map + 4ULL * i, (uint32_t)slots[i].slot << 24 | slots[i].ref);
	arena_put64(a, map + 4ULL * n, at << 8);
	put16(t, head, nsnap + 1);
	arena_put32(a, t->trace + LJ_TRACE_NSNAPMAP, nmap + n + 2);
}

static void machine_code(struct lj_traced *t, const uint8_t *code, uint32_t size, uint32_t loop)
{
	uint64_t at = arena_take(t->arena, size);

	arena_put(t->arena, at, code, size);
	arena_put64(t->arena, t->trace + LJ_TRACE_MCODE, at);
	arena_put32(t->arena, t->trace + LJ_TRACE_SZMCODE, size);
	arena_put32(t->arena, t->trace + LJ_TRACE_MCLOOP, loop);
}

static void begins_at(struct lj_traced *t, uint32_t pc)
{
	arena_put64(t->arena, t->trace + LJ_TRACE_STARTPT, t->main);
	arena_put64(t->arena, t->trace + LJ_TRACE_STARTPC, t->main + LJ_PROTO_SIZE + 4ULL * pc);
}

static void is(struct lj_traced *t, uint32_t mcofs, uint32_t pc, uint32_t callpc, uint32_t snap_pc)
{
	t->place[t->nplaces].mcofs = mcofs;
	t->place[t->nplaces].pc = pc;
	t->place[t->nplaces].callpc = callpc;
	t->place[t->nplaces++].snap_pc = snap_pc;
}

static void trace(struct lj_traced *t)
{
	struct arena *a = t->arena;
	uint64_t traces;

	t->g = arena_take(a, 2048);
	traces = arena_take(a, 64);
	t->trace = arena_take(a, 128);
	t->ir = arena_take(a, 8 * (CONSTS + INS)) + 8 * CONSTS - 8ULL * LJ_REF_BIAS;
	arena_put64(a, t->g + t->build.lj.g2trace, traces);
	arena_put64(a, traces + 8 * LJ_TRACED_NO, t->trace);
	arena_put8(a, t->trace + LJ_TRACE_GCT, LJ_GCT_TRACE);
	arena_put32(a, t->trace + LJ_TRACE_TRACENO, LJ_TRACED_NO);
	arena_put64(a, t->trace + LJ_TRACE_IR, t->ir);
	arena_put64(a, t->trace + LJ_TRACE_SNAP, arena_take(a, SNAPS * LJ_SNAP_SIZE));
	arena_put64(a, t->trace + LJ_TRACE_SNAPMAP, arena_take(a, 4 * MAP));
	t->nk = LJ_REF_BIAS - 3;
	arena_put32(a, t->trace + LJ_TRACE_NK, t->nk);
	t->nins = LJ_REF_BIAS;
	ins(t, LJ_IR_BASE, 0, 0, 0, NO_REG);
}

void lj_traced_init(struct lj_traced *t, const struct lj_traced_row *row)
{
	const char *name;

	memset(t, 0, sizeof(*t));
	t->arena = arena_new(NULL);
	t->build.lj = *lj_layout_row(0, &name);
	t->build.lj.ir = 1;
	trace(t);
	row->make(t);
}

void lj_traced_free(struct lj_traced *t)
{
	arena_free(&t->arena);
}

/* ---- what they were made from ------------------------------------------------------------------
 */

/* `for i = ..., 100`: adds 1 to i, and a guard at mcofs that leaves to pc when it is past the end.
 */
static uint16_t next_turn(struct lj_traced *t, uint16_t i, uint32_t mcofs, uint32_t pc,
			  const struct slot *slots, uint32_t n)
{
	i = ins(t, LJ_IR_ADD, INT, i, integer(t, 1), EBP);
	snapshot(t, mcofs, pc, slots, n);
	ins(t, LJ_IR_LE, INT | GUARD, i, integer(t, 100), NO_REG);
	return i;
}

/*
 *	for i = ... do
 *	  x = x + 1	--- ADDVN at 2
 *	  y = y / 1.5	--- DIVVN at 3
 *	end		--- FORL at 4
 * No guard but the loop's own.
 */
static void lines(struct lj_traced *t)
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

	t->main = prototype(t->arena, bc, 6, 1.5);
	begins_at(t, 4);
	one = dividend = number(t, 1.5);
	snapshot(t, 0, 2, NULL, 0);
	i = ins(t, LJ_IR_SLOAD, INT | GUARD, 4, SLOAD_TYPECHECK, EBP);
	x = ins(t, LJ_IR_SLOAD, NUM | GUARD, 2, SLOAD_TYPECHECK, XMM7);
	x = ins(t, LJ_IR_ADD, NUM, x, one, XMM7);
	y = ins(t, LJ_IR_SLOAD, NUM | GUARD, 3, SLOAD_TYPECHECK, XMM6);
	y = ins(t, LJ_IR_DIV, NUM, y, dividend, XMM6);
	i = next_turn(t, i, 27, 5, (struct slot[]){{2, x}, {3, y}}, 2);
	snapshot(t, 36, 2, (struct slot[]){{2, x}, {3, y}, {4, i}}, 3);
	ins(t, LJ_IR_LOOP, 0, 0, 0, NO_REG);
	x = ins(t, LJ_IR_ADD, NUM, x, one, XMM7);
	y = ins(t, LJ_IR_DIV, NUM, y, dividend, XMM6);
	i = next_turn(t, i, 51, 5, (struct slot[]){{2, x}, {3, y}}, 2);
	ins(t, LJ_IR_PHI, NUM, (uint16_t)(x - 8), x, NO_REG);
	machine_code(t, code, sizeof(code), 36);
	is(t, 3, 2, LB_NO_PC, 2);
	is(t, 13, 3, LB_NO_PC, 2);
	is(t, 24, 4, LB_NO_PC, 2);
	is(t, 27, 4, LB_NO_PC, 5);
	is(t, 36, 2, LB_NO_PC, 2);
	is(t, 42, 3, LB_NO_PC, 2);
	is(t, 48, 4, LB_NO_PC, 2);
	is(t, 51, 4, LB_NO_PC, 5);
	is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	local function f(x) return x / 1.5 end	--- DIVVN at 1
 *	for i = ... do
 *	  x = f(x)				--- UGET at 2, CALL at 4
 *	end					--- FORL at 6
 * f never changes: nothing of the call is left in the intermediate code.
 */
static void inlined(struct lj_traced *t)
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

	t->main = prototype(t->arena, bc, 8, 0);
	t->callee = prototype(t->arena, callee, 3, 1.5);
	begins_at(t, 6);
	fn = closure(t->arena, t->main);
	set_upvalue(t->arena, fn, closure(t->arena, t->callee));
	constant(t, LJ_IR_KGC, LJ_IRT_FUNC, fn);
	constant(t, LJ_IR_KGC, LJ_IRT_FUNC,
		 arena_get64(t->arena, arena_get64(t->arena, fn + 40) + 16) & ((1ULL << 47) - 1));
	dividend = number(t, 1.5);
	snapshot(t, 0, 2, NULL, 0);
	i = ins(t, LJ_IR_SLOAD, INT | GUARD, 3, SLOAD_TYPECHECK, EBP);
	x = ins(t, LJ_IR_SLOAD, NUM | GUARD, 2, SLOAD_TYPECHECK, XMM6);
	x = ins(t, LJ_IR_DIV, NUM, x, dividend, XMM6);
	i = next_turn(t, i, 16, 7, (struct slot[]){{2, x}}, 1);
	snapshot(t, 25, 2, (struct slot[]){{2, x}, {3, i}}, 2);
	ins(t, LJ_IR_LOOP, 0, 0, 0, NO_REG);
	x = ins(t, LJ_IR_DIV, NUM, x, dividend, XMM6);
	i = next_turn(t, i, 34, 7, (struct slot[]){{2, x}}, 1);
	machine_code(t, code, sizeof(code), 25);
	is(t, 7, 1, 4, 2);
	is(t, 13, 6, LB_NO_PC, 2);
	is(t, 16, 6, LB_NO_PC, 7);
	is(t, 25, 1, 4, 2);
	is(t, 31, 6, LB_NO_PC, 2);
	is(t, 34, 6, LB_NO_PC, 7);
	is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	if x < y then	--- ISGE at 1, JMP
 *	  x = x + 1.5	--- ADDVN at 3
 *	end
 *	return		--- RET0 at 4
 * A side trace: one guard, whose snapshot is where the branch does not go.
 */
static void branch(struct lj_traced *t)
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

	t->main = prototype(t->arena, bc, 5, 1.5);
	begins_at(t, 1);
	k = number(t, 1.5);
	snapshot(t, 0, 1, NULL, 0);
	x = ins(t, LJ_IR_SLOAD, NUM | GUARD, 2, SLOAD_TYPECHECK, XMM7);
	y = ins(t, LJ_IR_SLOAD, NUM | GUARD, 3, SLOAD_TYPECHECK, XMM6);
	snapshot(t, 9, 4, NULL, 0);
	ins(t, LJ_IR_LT, NUM | GUARD, x, y, NO_REG);
	snapshot(t, 19, 3, NULL, 0);
	x = ins(t, LJ_IR_ADD, NUM, x, k, XMM7);
	snapshot(t, 25, 4, (struct slot[]){{2, x}}, 1);
	machine_code(t, code, sizeof(code), 0);
	is(t, 0, 1, LB_NO_PC, 1);
	is(t, 9, 1, LB_NO_PC, 4);
	is(t, 19, 3, LB_NO_PC, 3);
	is(t, 25, 3, LB_NO_PC, 4);
	is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	function mt.__add(o, x) return x / 1.5 end	--- DIVVN at 1
 *	for i = ... do
 *	  x = o + x					--- ADDVV at 2
 *	  x = o + x					--- ADDVV at 3
 *	end						--- FORL at 4
 * The second time all that led to the metamethod is there already.
 */
static void metamethods(struct lj_traced *t)
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

	t->main = prototype(t->arena, bc, 6, 0);
	t->callee = prototype(t->arena, callee, 3, 1.5);
	begins_at(t, 4);
	add = constant(t, LJ_IR_KGC, LJ_IRT_FUNC, closure(t->arena, t->callee));
	key = constant(t, LJ_IR_KGC, LJ_IRT_STR, string(t->arena, "__add"));
	null = constant(t, LJ_IR_KNULL, LJ_IRT_TAB, 0);
	dividend = number(t, 1.5);
	snapshot(t, 0, 2, NULL, 0);
	i = ins(t, LJ_IR_SLOAD, INT | GUARD, 4, SLOAD_TYPECHECK, EBP);
	o = ins(t, LJ_IR_SLOAD, LJ_IRT_TAB | GUARD, 3, SLOAD_TYPECHECK, EBX);
	x = ins(t, LJ_IR_SLOAD, NUM | GUARD, 2, SLOAD_TYPECHECK, XMM6);
	mt = ins(t, LJ_IR_FLOAD, LJ_IRT_TAB, o, 5, ECX);
	ins(t, LJ_IR_NE, LJ_IRT_TAB | GUARD, mt, null, NO_REG);
	node = ins(t, LJ_IR_FLOAD, LJ_IRT_P64, mt, 7, ECX);
	node = ins(t, LJ_IR_HREFK, LJ_IRT_P64 | GUARD, node, key, NO_REG);
	found = ins(t, LJ_IR_HLOAD, LJ_IRT_FUNC | GUARD, node, 0, EBX);
	ins(t, LJ_IR_EQ, LJ_IRT_FUNC | GUARD, found, add, NO_REG);
	x = ins(t, LJ_IR_DIV, NUM, x, dividend, XMM6);
	x = ins(t, LJ_IR_DIV, NUM, x, dividend, XMM6);
	i = next_turn(t, i, 54, 5, (struct slot[]){{2, x}}, 1);
	snapshot(t, 63, 2, (struct slot[]){{2, x}, {4, i}}, 2);
	ins(t, LJ_IR_LOOP, 0, 0, 0, NO_REG);
	x = ins(t, LJ_IR_DIV, NUM, x, dividend, XMM6);
	x = ins(t, LJ_IR_DIV, NUM, x, dividend, XMM6);
	i = next_turn(t, i, 78, 5, (struct slot[]){{2, x}}, 1);
	machine_code(t, code, sizeof(code), 63);
	is(t, 3, 2, LB_NO_PC, 2);
	is(t, 39, 1, 2, 2);
	is(t, 45, 1, 3, 2);
	is(t, 51, 4, LB_NO_PC, 2);
	is(t, 54, 4, LB_NO_PC, 5);
	is(t, 63, 1, 2, 2);
	is(t, 69, 1, 3, 2);
	is(t, 75, 4, LB_NO_PC, 2);
	is(t, 78, 4, LB_NO_PC, 5);
	is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/* The VM has one C type, a struct of no fields, number 1, with this metatable. */
static void c_type(struct lj_traced *t, uint64_t mt)
{
	struct arena *a = t->arena;
	uint64_t cts = arena_take(a, 48), types = arena_take(a, 48);
	uint64_t key;
	double id = -1;

	memcpy(&key, &id, sizeof(key));
	arena_put64(a, t->g + t->build.lj.jit_base + 8, cts); /* ctype_state */
	arena_put64(a, cts, types);
	arena_put32(a, cts + 8, 2);
	arena_put64(a, cts + 24, t->g);
	arena_put64(a, cts + 40, table(a, key, tv(LJ_TTAB, mt))); /* miscmap */
	arena_put32(a, types + 24, 1u << 28);			  /* CT_STRUCT */
}

/*
 *	function methods:half(x) return x / 1.5 end	--- DIVVN at 1
 *	for i = ... do
 *	  x = q:half(x)					--- TGETS at 2, CALL at 5
 *	end						--- FORL at 7
 * q is a cdata: all that is left of the call is that it is one of this type.
 */
static void metatype(struct lj_traced *t)
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
	uint64_t name = string(t->arena, "half"), fn, index;
	uint16_t dividend, i, q, x, type;

	t->main = prototype_with(t->arena, bc, 9, 0, name);
	t->callee = prototype(t->arena, callee, 3, 1.5);
	begins_at(t, 7);
	fn = closure(t->arena, t->callee);
	index = table(t->arena, tv(LJ_TSTR, name), tv(LJ_TFUNC, fn));
	c_type(t, table(t->arena, tv(LJ_TSTR, string(t->arena, "__index")), tv(LJ_TTAB, index)));
	constant(t, LJ_IR_KGC, LJ_IRT_FUNC, fn);
	dividend = number(t, 1.5);
	snapshot(t, 0, 2, NULL, 0);
	i = ins(t, LJ_IR_SLOAD, INT | GUARD, 4, SLOAD_TYPECHECK, EBP);
	q = ins(t, LJ_IR_SLOAD, LJ_IRT_CDATA | GUARD, 3, SLOAD_TYPECHECK, EBX);
	type = ins(t, LJ_IR_FLOAD, LJ_IRT_U16, q, 20, ECX);
	ins(t, LJ_IR_EQ, INT | GUARD, type, integer(t, 1), NO_REG);
	x = ins(t, LJ_IR_SLOAD, NUM | GUARD, 2, SLOAD_TYPECHECK, XMM6);
	x = ins(t, LJ_IR_DIV, NUM, x, dividend, XMM6);
	i = next_turn(t, i, 32, 8, (struct slot[]){{2, x}}, 1);
	snapshot(t, 41, 2, (struct slot[]){{2, x}, {4, i}}, 2);
	ins(t, LJ_IR_LOOP, 0, 0, 0, NO_REG);
	x = ins(t, LJ_IR_DIV, NUM, x, dividend, XMM6);
	i = next_turn(t, i, 50, 8, (struct slot[]){{2, x}}, 1);
	machine_code(t, code, sizeof(code), 41);
	is(t, 3, 2, LB_NO_PC, 2);
	is(t, 19, 4, LB_NO_PC, 2);
	is(t, 23, 1, 5, 2);
	is(t, 29, 7, LB_NO_PC, 2);
	is(t, 32, 7, LB_NO_PC, 8);
	is(t, 41, 1, 5, 2);
	is(t, 47, 7, LB_NO_PC, 2);
	is(t, 50, 7, LB_NO_PC, 8);
	is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	y = t[k]	--- TGETV at 1
 *	if y < x then	--- ISGE at 2, JMP
 *	  x = x / 1.5	--- DIVVN at 4
 *	end
 *	return		--- RET0 at 5
 * A side trace. The key is searched in line: by jumps that are no guards.
 */
static void search(struct lj_traced *t)
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

	t->main = prototype(t->arena, bc, 6, 1.5);
	begins_at(t, 1);
	dividend = number(t, 1.5);
	snapshot(t, 0, 1, NULL, 0);
	table_ref = ins(t, LJ_IR_SLOAD, LJ_IRT_TAB, 4, SLOAD_TYPECHECK, ESI);
	k = ins(t, LJ_IR_SLOAD, LJ_IRT_STR, 5, SLOAD_TYPECHECK, EAX);
	y = ins(t, LJ_IR_HREF, LJ_IRT_P64, table_ref, k, EBX);
	y = ins(t, LJ_IR_HLOAD, NUM | GUARD, y, 0, XMM7);
	x = ins(t, LJ_IR_SLOAD, NUM, 2, SLOAD_TYPECHECK, XMM6);
	snapshot(t, 45, 5, (struct slot[]){{3, y}}, 1);
	ins(t, LJ_IR_LT, NUM | GUARD, y, x, NO_REG);
	snapshot(t, 55, 4, (struct slot[]){{3, y}}, 1);
	x = ins(t, LJ_IR_DIV, NUM, x, dividend, XMM6);
	snapshot(t, 61, 5, (struct slot[]){{2, x}, {3, y}}, 2);
	machine_code(t, code, sizeof(code), 0);
	is(t, 0, 1, LB_NO_PC, 1);
	is(t, 41, 2, LB_NO_PC, 1);
	is(t, 45, 2, LB_NO_PC, 5);
	is(t, 55, 4, LB_NO_PC, 4);
	is(t, 61, 4, LB_NO_PC, 5);
	is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	if x and x >= y and x >= y and y >= z then	--- ISF at 1, ISLT at 3, 5 and 7
 *	  ...						--- RET0 at 9
 * A side trace. All jump to one place: the test leaves no guard, nor does what was compared before.
 */
static void comparisons(struct lj_traced *t)
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

	t->main = prototype(t->arena, bc, 11, 0);
	begins_at(t, 1);
	snapshot(t, 0, 1, NULL, 0);
	x = ins(t, LJ_IR_SLOAD, NUM | GUARD, 2, SLOAD_TYPECHECK, XMM7);
	y = ins(t, LJ_IR_SLOAD, NUM | GUARD, 3, SLOAD_TYPECHECK, XMM6);
	snapshot(t, 9, 10, NULL, 0);
	ins(t, LJ_IR_GE, NUM | GUARD, x, y, NO_REG);
	snapshot(t, 19, 5, NULL, 0);
	z = ins(t, LJ_IR_SLOAD, NUM | GUARD, 4, SLOAD_TYPECHECK, XMM7);
	snapshot(t, 24, 10, NULL, 0);
	ins(t, LJ_IR_GE, NUM | GUARD, y, z, NO_REG);
	snapshot(t, 34, 9, NULL, 0);
	machine_code(t, code, sizeof(code), 0);
	is(t, 9, 3, LB_NO_PC, 10);
	is(t, 19, 7, LB_NO_PC, 5);
	is(t, 24, 7, LB_NO_PC, 10);
	is(t, 34, 7, LB_NO_PC, 9);
	is(t, (uint32_t)sizeof(code), 0, 0, 0);
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

	begins_at(t, 1);
	snapshot(t, 0, 1, NULL, 0);
	x = ins(t, LJ_IR_SLOAD, NUM | GUARD, 2, SLOAD_TYPECHECK, XMM6);
	y = ins(t, LJ_IR_SLOAD, NUM | GUARD, 3, SLOAD_TYPECHECK, XMM7);
	x = ins(t, LJ_IR_DIV, NUM, x, y, XMM6);
	snapshot(t, 13, end, (struct slot[]){{2, x}}, 1);
	machine_code(t, code, sizeof(code), 0);
	is(t, 9, pc, LB_NO_PC, 1);
	is(t, 13, pc, LB_NO_PC, end);
	is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	if up ~= 1.5 and x < y then	--- ISEQN at 2, ISGE at 4
 *	  x = x / y			--- DIVVV at 6
 *	else
 *	  x = x / y			--- DIVVV at 8
 *	end
 * What up is, is not known. x and y were not compared: it did not go where they are.
 */
static void not_compared(struct lj_traced *t)
{
	static const uint32_t bc[] = {
		HEADER(5),	     AD(UGET, 4, 0),	 AD(ISEQN, 4, 0),     JUMP(JMP, 4, 3, 8),
		AD(ISGE, 0, 1),	     JUMP(JMP, 4, 5, 8), ABC(DIVVV, 0, 0, 1), JUMP(JMP, 4, 7, 9),
		ABC(DIVVV, 0, 0, 1), AD(RET0, 0, 1),
	};

	t->main = prototype(t->arena, bc, 10, 1.5);
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
static void known(struct lj_traced *t)
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
	uint64_t key = string(t->arena, "k");

	t->main = prototype_with(t->arena, bc, 15, 1.5, key);
	t->decides = true;
	one_division(t, 13, 14);
}

/*
 *	c, d, e = byte(s, 1), byte(s, 2), byte(s, 2)	--- CALL at 4, 8, 12
 *	local _ = c / 1.5				--- DIVVN at 13, which nothing is left of
 *	x = e / 1.5					--- DIVVN at 14
 * The third is what the second was.
 */
static void characters(struct lj_traced *t)
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

	t->main = prototype(t->arena, bc, 16, 1.5);
	begins_at(t, 1);
	k = number(t, 1.5);
	snapshot(t, 0, 1, NULL, 0);
	s = ins(t, LJ_IR_SLOAD, LJ_IRT_STR, 3, SLOAD_TYPECHECK, ESI);
	c = ins(t, LJ_IR_STRREF, LJ_IRT_P64, s, integer(t, 0), NO_REG);
	c = ins(t, LJ_IR_XLOAD, INT, c, 1, EBX);
	d = ins(t, LJ_IR_STRREF, LJ_IRT_P64, s, integer(t, 1), NO_REG);
	d = ins(t, LJ_IR_XLOAD, INT, d, 1, EBP);
	x = ins(t, LJ_IR_CONV, NUM, d, 467, XMM6);
	x = ins(t, LJ_IR_DIV, NUM, x, k, XMM6);
	snapshot(t, 21, 15, (struct slot[]){{5, c}}, 1);
	machine_code(t, code, sizeof(code), 0);
	is(t, 3, 4, LB_NO_PC, 1);
	is(t, 7, 8, LB_NO_PC, 1);
	is(t, 11, 14, LB_NO_PC, 1);
	is(t, 21, 14, LB_NO_PC, 15);
	is(t, (uint32_t)sizeof(code), 0, 0, 0);
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
static void returned(struct lj_traced *t)
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

	t->main = prototype(t->arena, bc, 9, 0);
	t->callee = prototype(t->arena, callee, 2, 0);
	begins_at(t, 1);
	g = closure(t->arena, t->callee);
	fn = closure(t->arena, t->main);
	set_upvalue(t->arena, fn, g);
	constant(t, LJ_IR_KGC, LJ_IRT_FUNC, fn);
	constant(t, LJ_IR_KGC, LJ_IRT_FUNC, g);
	proto = constant(t, LJ_IR_KGC, LJ_IRT_PROTO, t->main);
	pc = constant(t, LJ_IR_KPTR, LJ_IRT_P64, t->main + LJ_PROTO_SIZE + 4 * 3);
	snapshot(t, 0, 1, NULL, 0);
	ins(t, LJ_IR_RETF, LJ_IRT_P64 | GUARD, proto, pc, NO_REG);
	snapshot(t, 14, 3, NULL, 0);
	x = ins(t, LJ_IR_SLOAD, NUM | GUARD, 2, SLOAD_TYPECHECK, XMM6);
	y = ins(t, LJ_IR_SLOAD, NUM | GUARD, 3, SLOAD_TYPECHECK, XMM7);
	x = ins(t, LJ_IR_DIV, NUM, x, y, XMM6);
	x = ins(t, LJ_IR_DIV, NUM, x, y, XMM6);
	snapshot(t, 31, 8, (struct slot[]){{2, x}}, 1);
	machine_code(t, code, sizeof(code), 0);
	is(t, 14, 3, LB_NO_PC, 3);
	is(t, 27, 7, LB_NO_PC, 3);
	is(t, 31, 7, LB_NO_PC, 8);
	is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	x = t.k(x)	--- TGETS at 1, CALL at 3: function f(x) return x / 1.5 end
 *	u[w] = x	--- TSETV at 5
 *	t.k()		--- TGETS at 6, CALL at 7: a function of C's
 *	x = x / 1.5	--- DIVVN at 8
 * The store may have changed t: the trace looks again.
 */
static void looked_up_again(struct lj_traced *t)
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
	uint64_t name = string(t->arena, "k"), c;
	uint16_t dividend, f, g, key, tab, node, found, x, u, w;

	t->main = prototype_with(t->arena, bc, 10, 1.5, name);
	t->callee = prototype(t->arena, callee, 3, 1.5);
	begins_at(t, 1);
	c = closure(t->arena, t->callee);
	arena_put8(t->arena, c + LJ_FUNC_FFID, 1);
	f = constant(t, LJ_IR_KGC, LJ_IRT_FUNC, closure(t->arena, t->callee));
	g = constant(t, LJ_IR_KGC, LJ_IRT_FUNC, c);
	key = constant(t, LJ_IR_KGC, LJ_IRT_STR, name);
	dividend = number(t, 1.5);
	snapshot(t, 0, 1, NULL, 0);
	tab = ins(t, LJ_IR_SLOAD, LJ_IRT_TAB, 3, SLOAD_TYPECHECK, ESI);
	node = ins(t, LJ_IR_FLOAD, LJ_IRT_P64, tab, 7, ECX);
	node = ins(t, LJ_IR_HREFK, LJ_IRT_P64, node, key, NO_REG);
	found = ins(t, LJ_IR_HLOAD, LJ_IRT_FUNC, node, 0, EBX);
	ins(t, LJ_IR_EQ, LJ_IRT_FUNC | GUARD, found, f, NO_REG);
	x = ins(t, LJ_IR_SLOAD, NUM, 2, SLOAD_TYPECHECK, XMM6);
	x = ins(t, LJ_IR_DIV, NUM, x, dividend, XMM6);
	u = ins(t, LJ_IR_SLOAD, LJ_IRT_TAB, 4, SLOAD_TYPECHECK, EBP);
	w = ins(t, LJ_IR_SLOAD, LJ_IRT_STR, 5, SLOAD_TYPECHECK, EBX);
	u = ins(t, LJ_IR_NEWREF, LJ_IRT_P64, u, w, EAX);
	ins(t, LJ_IR_HSTORE, NUM, u, x, NO_REG);
	node = ins(t, LJ_IR_FLOAD, LJ_IRT_P64, tab, 7, ECX);
	node = ins(t, LJ_IR_HREFK, LJ_IRT_P64, node, key, NO_REG);
	found = ins(t, LJ_IR_HLOAD, LJ_IRT_FUNC, node, 0, EBX);
	ins(t, LJ_IR_EQ, LJ_IRT_FUNC | GUARD, found, g, NO_REG);
	x = ins(t, LJ_IR_DIV, NUM, x, dividend, XMM6);
	snapshot(t, 70, 9, (struct slot[]){{2, x}}, 1);
	machine_code(t, code, sizeof(code), 0);
	is(t, 25, 1, 3, 1);
	is(t, 31, 5, LB_NO_PC, 1);
	is(t, 46, 6, LB_NO_PC, 1);
	is(t, 52, 7, LB_NO_PC, 1);
	is(t, 64, 8, LB_NO_PC, 1);
	is(t, 70, 8, LB_NO_PC, 9);
	is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	function mt.__add(o, x) return x / 1.5 end	--- DIVVN at 1
 *	x = q + x					--- ADDVV at 1
 * q is a cdata: that it is one of this type is made sure of before the call.
 */
static void operators(struct lj_traced *t)
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

	t->main = prototype(t->arena, bc, 3, 0);
	t->callee = prototype(t->arena, callee, 3, 1.5);
	begins_at(t, 1);
	fn = closure(t->arena, t->callee);
	c_type(t, table(t->arena, tv(LJ_TSTR, string(t->arena, "__add")), tv(LJ_TFUNC, fn)));
	constant(t, LJ_IR_KGC, LJ_IRT_FUNC, fn);
	dividend = number(t, 1.5);
	snapshot(t, 0, 1, NULL, 0);
	x = ins(t, LJ_IR_SLOAD, NUM, 2, 2, XMM6); /* the parent trace left it there */
	q = ins(t, LJ_IR_SLOAD, LJ_IRT_CDATA, 3, SLOAD_TYPECHECK, EBX);
	type = ins(t, LJ_IR_FLOAD, LJ_IRT_U16, q, 20, NO_REG);
	ins(t, LJ_IR_EQ, INT | GUARD, type, integer(t, 1), NO_REG);
	x = ins(t, LJ_IR_DIV, NUM, x, dividend, XMM6);
	snapshot(t, 20, 2, (struct slot[]){{2, x}}, 1);
	machine_code(t, code, sizeof(code), 0);
	is(t, 0, 1, LB_NO_PC, 1);
	is(t, 14, 1, 1, 1);
	is(t, 20, 1, 1, 2);
	is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	local function f() return up / up end	--- UGET at 1, DIVVV at 2
 *	x = f()					--- UGET at 1, CALL at 2
 * f never changes: the trace makes sure that main is the function which has it. up does change; it
 * lies where f, which is a constant then, has it.
 */
static void upvalues(struct lj_traced *t)
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

	t->main = prototype(t->arena, bc, 5, 0);
	t->callee = prototype(t->arena, callee, 4, 0);
	begins_at(t, 1);
	called = closure(t->arena, t->callee);
	set_upvalue(t->arena, called, called);
	arena_put8(t->arena, arena_get64(t->arena, called + 40) + 11, 0); /* mutable */
	fn = closure(t->arena, t->main);
	set_upvalue(t->arena, fn, called);
	own = constant(t, LJ_IR_KGC, LJ_IRT_FUNC, fn);
	f = constant(t, LJ_IR_KGC, LJ_IRT_FUNC, called);
	snapshot(t, 0, 1, NULL, 0);
	x = ins(t, LJ_IR_SLOAD, LJ_IRT_FUNC, 0, 16, EAX);
	ins(t, LJ_IR_EQ, LJ_IRT_FUNC | GUARD, x, own, NO_REG);
	x = ins(t, LJ_IR_UREFO, LJ_IRT_P64 | GUARD, f, 0, EAX);
	x = ins(t, LJ_IR_ULOAD, NUM | GUARD, x, 0, XMM7);
	x = ins(t, LJ_IR_DIV, NUM, x, x, XMM7);
	snapshot(t, 48, 4, (struct slot[]){{2, x}}, 1);
	machine_code(t, code, sizeof(code), 0);
	is(t, 0, 1, LB_NO_PC, 1);
	is(t, 20, 1, 2, 1);
	is(t, 44, 2, 2, 1);
	is(t, 48, 2, 2, 4);
	is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	if t.k then	--- TGETS at 1, ISF at 2
 *	  x = x / y	--- DIVVV at 4
 *	else
 *	  x = x / y	--- DIVVV at 6
 *	end
 * t has no keys at all: it is not looked for.
 */
static void no_keys(struct lj_traced *t)
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

	t->main = prototype_with(t->arena, bc, 8, 0, string(t->arena, "k"));
	begins_at(t, 1);
	snapshot(t, 0, 1, NULL, 0);
	tab = ins(t, LJ_IR_SLOAD, LJ_IRT_TAB, 4, SLOAD_TYPECHECK, ESI);
	mask = ins(t, LJ_IR_FLOAD, INT, tab, 9, NO_REG);
	ins(t, LJ_IR_EQ, INT | GUARD, mask, integer(t, 0), NO_REG);
	x = ins(t, LJ_IR_SLOAD, NUM, 2, SLOAD_TYPECHECK, XMM6);
	y = ins(t, LJ_IR_SLOAD, NUM, 3, SLOAD_TYPECHECK, XMM7);
	x = ins(t, LJ_IR_DIV, NUM, x, y, XMM6);
	snapshot(t, 26, 7, (struct slot[]){{2, x}}, 1);
	machine_code(t, code, sizeof(code), 0);
	is(t, 0, 1, LB_NO_PC, 1);
	is(t, 13, 6, LB_NO_PC, 1);
	is(t, 26, 6, LB_NO_PC, 7);
	is(t, (uint32_t)sizeof(code), 0, 0, 0);
}

/*
 *	for i = ... do	--- JFORI at 1
 *	  x = x / 1.5	--- DIVVN at 2
 *	end		--- FORL at 3
 * It grew from the first exit of a loop's trace: it begins with what the loop begins with.
 */
static void first_exit(struct lj_traced *t)
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

	t->main = prototype(t->arena, bc, 5, 1.5);
	begins_at(t, 2);
	put_ins(t, LJ_REF_BIAS, &(struct lj_ins){.op1 = LJ_TRACED_NO - 1, .o = LJ_IR_BASE});
	dividend = number(t, 1.5);
	snapshot(t, 0, 2, NULL, 0);
	i = ins(t, LJ_IR_SLOAD, INT | GUARD, 4, SLOAD_TYPECHECK, EBP);
	ins(t, LJ_IR_LE, INT | GUARD, i, integer(t, 100), NO_REG);
	x = ins(t, LJ_IR_SLOAD, NUM | GUARD, 2, SLOAD_TYPECHECK, XMM6);
	x = ins(t, LJ_IR_DIV, NUM, x, dividend, XMM6);
	i = next_turn(t, i, 25, 4, (struct slot[]){{2, x}}, 1);
	snapshot(t, 34, 2, (struct slot[]){{2, x}, {4, i}}, 2);
	machine_code(t, code, sizeof(code), 0);
	is(t, 0, 1, LB_NO_PC, 2);
	is(t, 12, 2, LB_NO_PC, 2);
	is(t, 22, 3, LB_NO_PC, 2);
	is(t, 25, 3, LB_NO_PC, 4);
	is(t, 34, 0, 0, 0);
}

/*
 *	for i = ... do
 *	  s = a .. b	--- CAT at 2
 *	  t[i] = s	--- TSETV at 3, a key that t does not have
 *	end		--- FORL at 4
 */
static void new_key(struct lj_traced *t)
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

	t->main = prototype(t->arena, bc, 6, 1.5);
	begins_at(t, 4);
	snapshot(t, 0, 2, NULL, 0);
	i = ins(t, LJ_IR_SLOAD, INT | GUARD, 8, SLOAD_TYPECHECK, EBP);
	a = ins(t, LJ_IR_SLOAD, LJ_IRT_STR | GUARD, 2, SLOAD_TYPECHECK, ESI);
	b = ins(t, LJ_IR_SLOAD, LJ_IRT_STR | GUARD, 3, SLOAD_TYPECHECK, EBX);
	hdr = ins(t, LJ_IR_BUFHDR, LJ_IRT_P64, constant(t, LJ_IR_KPTR, LJ_IRT_P64, 0x1000), 0, 7);
	s = ins(t, LJ_IR_BUFPUT, LJ_IRT_P64, hdr, a, EAX);
	s = ins(t, LJ_IR_BUFPUT, LJ_IRT_P64, s, b, EAX);
	s = ins(t, LJ_IR_BUFSTR, LJ_IRT_STR, s, hdr, EBX);
	tab = ins(t, LJ_IR_SLOAD, LJ_IRT_TAB | GUARD, 4, SLOAD_TYPECHECK, ESI);
	key = ins(t, LJ_IR_CONV, NUM, i, LJ_IRT_NUM << 5 | INT, XMM7);
	key = ins(t, LJ_IR_NEWREF, LJ_IRT_P64, tab, key, EAX);
	ins(t, LJ_IR_HSTORE, LJ_IRT_STR, key, s, NO_REG);
	i = next_turn(t, i, 54, 5, (struct slot[]){{6, s}}, 1);
	snapshot(t, 63, 2, (struct slot[]){{6, s}, {8, i}}, 2);
	machine_code(t, code, sizeof(code), 0);
	is(t, 3, 2, LB_NO_PC, 2);
	is(t, 35, 3, LB_NO_PC, 2);
	is(t, 51, 4, LB_NO_PC, 2);
	is(t, 54, 4, LB_NO_PC, 5);
	is(t, 63, 0, 0, 0);
}

const struct lj_traced_row lj_traced_rows[] = {
	{"lines", lines},
	{"inlined", inlined},
	{"branch", branch},
	{"metamethods", metamethods},
	{"metatype", metatype},
	{"search", search},
	{"comparisons", comparisons},
	{"not_compared", not_compared},
	{"known", known},
	{"characters", characters},
	{"returned", returned},
	{"looked_up_again", looked_up_again},
	{"operator", operators},
	{"upvalues", upvalues},
	{"no_keys", no_keys},
	{"first_exit", first_exit},
	{"new_key", new_key},
};
const size_t lj_traced_count = sizeof(lj_traced_rows) / sizeof(lj_traced_rows[0]);
_Static_assert(sizeof(lj_traced_rows) / sizeof(lj_traced_rows[0]) <= LJ_TRACED_ROWS, "rows");
