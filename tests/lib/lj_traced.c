// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include <unwind/lj/layout.h>

#include "lj_traced_make.h"
#include "lua/lj/bc.h"
#include "detect/lj/ir.h"
#include "lj_layouts.h"

enum { CONSTS = 64, INS = 64, SNAPS = 16, MAP = 128 }; /* room for so many */

uint64_t tr_string(struct test_arena *a, const char *text)
{
	uint32_t len = (uint32_t)strlen(text);
	uint64_t s = arena_take(a, LJ_STR_SIZE + len + 1);

	arena_put8(a, s + LJ_STR_GCT, LJ_GCT_STR);
	arena_put32(a, s + LJ_STR_LEN, len);
	arena_put(a, s + LJ_STR_SIZE, text, len + 1);
	return s;
}

uint64_t tr_prototype_with(struct test_arena *a, const uint32_t *bc, uint32_t nbc, double number,
			   uint64_t object)
{
	uint32_t size = LJ_PROTO_SIZE + 4 * ((nbc + 1) & ~1u) + 16;
	uint64_t chunk = tr_string(a, "=traced"), pt = arena_take(a, size);

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

uint64_t tr_prototype(struct test_arena *a, const uint32_t *bc, uint32_t nbc, double number)
{
	return tr_prototype_with(a, bc, nbc, number, 0);
}

uint64_t tr_tv(int32_t type, uint64_t object)
{
	return (uint64_t)(int64_t)type << 47 | object;
}

uint64_t tr_table(struct test_arena *a, uint64_t key, uint64_t value)
{
	uint64_t node = arena_take(a, LJ_NODE_SIZE), t = arena_take(a, LJ_TAB_SIZE);

	arena_put64(a, node + LJ_NODE_VAL, value);
	arena_put64(a, node + LJ_NODE_KEY, key);
	arena_put8(a, t + 9, (uint8_t)~LJ_TTAB);
	arena_put64(a, t + LJ_TAB_NODE, node);
	return t;
}

uint64_t tr_closure(struct test_arena *a, uint64_t pt)
{
	uint64_t fn = arena_take(a, LJ_FUNC_READ);

	arena_put8(a, fn + LJ_FUNC_GCT, LJ_GCT_FUNC);
	arena_put64(a, fn + LJ_FUNC_PC, pt + LJ_PROTO_SIZE);
	return fn;
}

void tr_set_upvalue(struct test_arena *a, uint64_t fn, uint64_t value)
{
	uint64_t uv = arena_take(a, 48);

	arena_put8(a, uv + 11, 1); /* immutable */
	arena_put64(a, uv + 16, tr_tv(LJ_TFUNC, value));
	arena_put64(a, uv + 32, uv + 16); /* v */
	arena_put64(a, fn + 40, uv);	  /* uvptr[0] */
}

/* ---- the trace ------------------------------------------------------------------------------- */

static void tr_put16(struct lj_traced *t, uint64_t at, uint16_t v)
{
	arena_put(t->arena, at, &v, 2);
}

void tr_put_ins(struct lj_traced *t, uint32_t ref, const struct lj_ins *ins)
{
	arena_put(t->arena, t->ir + 8ULL * ref, ins, sizeof(*ins));
}

void lj_traced_set_ins(struct lj_traced *t, uint32_t ref, uint8_t o, uint16_t op1, uint16_t op2)
{
	tr_put_ins(t, ref, &(struct lj_ins){.op1 = op1, .op2 = op2, .o = o, .t = NUM, .r = NO_REG});
}

uint16_t tr_constant(struct lj_traced *t, uint8_t o, uint8_t type, uint64_t value)
{
	t->nk -= 2;
	tr_put_ins(t, t->nk, &(struct lj_ins){.o = o, .t = type});
	arena_put64(t->arena, t->ir + 8ULL * t->nk + 8, value);
	arena_put32(t->arena, t->trace + LJ_TRACE_NK, t->nk);
	return (uint16_t)t->nk;
}

uint16_t tr_number(struct lj_traced *t, double d)
{
	uint64_t bits;

	memcpy(&bits, &d, sizeof(bits));
	return tr_constant(t, LJ_IR_KNUM, NUM, bits);
}

uint16_t tr_integer(struct lj_traced *t, int16_t i)
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
	tr_put_ins(t, t->nk, &k);
	arena_put32(t->arena, t->trace + LJ_TRACE_NK, t->nk);
	return (uint16_t)t->nk;
}

uint16_t tr_ins(struct lj_traced *t, uint8_t o, uint8_t type, uint16_t op1, uint16_t op2, uint8_t r)
{
	tr_put_ins(t, t->nins, &(struct lj_ins){.op1 = op1, .op2 = op2, .t = type, .o = o, .r = r});
	arena_put32(t->arena, t->trace + LJ_TRACE_NINS, t->nins + 1);
	return (uint16_t)t->nins++;
}

void tr_snapshot(struct lj_traced *t, uint16_t mcofs, uint32_t pc, const struct traced_slot *slots,
		 uint32_t n)
{
	struct test_arena *a = t->arena;
	uint64_t head = t->trace + LJ_TRACE_NSNAP, at = t->main + LJ_PROTO_SIZE + 4ULL * pc;
	uint16_t nsnap;
	uint32_t nmap, i;
	uint64_t snap, map;

	memcpy(&nsnap, arena_at(a, head, 2), 2);
	memcpy(&nmap, arena_at(a, t->trace + LJ_TRACE_NSNAPMAP, 4), 4);
	snap = arena_get64(a, t->trace + LJ_TRACE_SNAP) + (uint64_t)LJ_SNAP_SIZE * nsnap;
	map = arena_get64(a, t->trace + LJ_TRACE_SNAPMAP) + 4ULL * nmap;
	arena_put32(a, snap + LJ_SNAP_MAPOFS, nmap);
	tr_put16(t, snap + LJ_SNAP_REF, (uint16_t)t->nins);
	tr_put16(t, snap + LJ_SNAP_MCOFS, mcofs);
	arena_put8(a, snap + LJ_SNAP_NENT, (uint8_t)n);
	for (i = 0; i < n; i++)
		arena_put32(a, map + 4ULL * i, (uint32_t)slots[i].slot << 24 | slots[i].ref);
	arena_put64(a, map + 4ULL * n, at << 8);
	tr_put16(t, head, nsnap + 1);
	arena_put32(a, t->trace + LJ_TRACE_NSNAPMAP, nmap + n + 2);
}

void tr_machine_code(struct lj_traced *t, const uint8_t *code, uint32_t size, uint32_t loop)
{
	uint64_t at = arena_take(t->arena, size);

	arena_put(t->arena, at, code, size);
	arena_put64(t->arena, t->trace + LJ_TRACE_MCODE, at);
	arena_put32(t->arena, t->trace + LJ_TRACE_SZMCODE, size);
	arena_put32(t->arena, t->trace + LJ_TRACE_MCLOOP, loop);
}

void tr_begins_at(struct lj_traced *t, uint32_t pc)
{
	arena_put64(t->arena, t->trace + LJ_TRACE_STARTPT, t->main);
	arena_put64(t->arena, t->trace + LJ_TRACE_STARTPC, t->main + LJ_PROTO_SIZE + 4ULL * pc);
}

void tr_is(struct lj_traced *t, uint32_t mcofs, uint32_t pc, uint32_t callpc, uint32_t snap_pc)
{
	t->place[t->nplaces].mcofs = mcofs;
	t->place[t->nplaces].pc = pc;
	t->place[t->nplaces].callpc = callpc;
	t->place[t->nplaces++].snap_pc = snap_pc;
}

static void trace(struct lj_traced *t)
{
	struct test_arena *a = t->arena;
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
	tr_ins(t, LJ_IR_BASE, 0, 0, 0, NO_REG);
}

void lj_traced_init(struct lj_traced *t, const struct lj_traced_row *row)
{
	const char *name;

	memset(t, 0, sizeof(*t));
	t->arena = arena_new(NULL);
	t->build.lj = *lj_layout_scene(0, &name);
	t->build.lj.ir = LJ_IR_2021_07;
	trace(t);
	row->make(t);
}

void lj_traced_free(struct lj_traced *t)
{
	arena_free(&t->arena);
}

uint16_t tr_next_turn(struct lj_traced *t, uint16_t i, uint32_t mcofs, uint32_t pc,
		      const struct traced_slot *slots, uint32_t n)
{
	i = tr_ins(t, LJ_IR_ADD, INT, i, tr_integer(t, 1), EBP);
	tr_snapshot(t, mcofs, pc, slots, n);
	tr_ins(t, LJ_IR_LE, INT | GUARD, i, tr_integer(t, 100), NO_REG);
	return i;
}

const struct lj_traced_row lj_traced_rows[] = {
	{"lines", tr_lines},
	{"inlined", tr_inlined},
	{"branch", tr_branch},
	{"metamethods", tr_metamethods},
	{"metatype", tr_metatype},
	{"search", tr_search},
	{"comparisons", tr_comparisons},
	{"not_compared", tr_not_compared},
	{"known", tr_known},
	{"characters", tr_characters},
	{"returned", tr_returned},
	{"looked_up_again", tr_looked_up_again},
	{"operator", tr_operators},
	{"upvalues", tr_upvalues},
	{"no_keys", tr_no_keys},
	{"first_exit", tr_first_exit},
	{"new_key", tr_new_key},
	{"left_behind", tr_left_behind},
	{"gc_check", tr_gc_check},
	{"merged_search", tr_merged_search},
	{"turns", tr_turns},
	{"index_sum", tr_index_sum},
	{"stepped", tr_stepped},
	{"gc_turn", tr_gc_turn},
	{"converted", tr_converted},
	{"equality", tr_equality},
	{"character", tr_character},
	{"remainder", tr_remainder},
	{"not_fetched", tr_not_fetched},
	{"nothing_returned", tr_nothing_returned},
	{"same_end", tr_same_end},
	{"ambiguous", tr_ambiguous},
};
const size_t lj_traced_count = sizeof(lj_traced_rows) / sizeof(lj_traced_rows[0]);
_Static_assert(sizeof(lj_traced_rows) / sizeof(lj_traced_rows[0]) <= LJ_TRACED_ROWS, "rows");
