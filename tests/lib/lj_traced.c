// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include <unwind/lj/layout.h>

#include "lj_traced_make.h"
#include "lua/lj/bc.h"
#include "lua/lj/proto_parts.h"
#include "detect/lj/ir.h"
#include "lj_layouts.h"

enum { CONSTS = 64, INS = 64, SNAPS = 16, MAP = 128 }; /* room for so many */

/* The offset of a field in this build. */
#define AT(t, name) LJ_OFF(&(t)->build.lj, name)

void tr_put_ref(struct lj_traced *t, uint64_t addr, uint64_t value)
{
	arena_put(t->arena, addr, &value, lj_ref_size(&t->build.lj));
}

uint64_t tr_string(struct lj_traced *t, const char *text)
{
	uint32_t len = (uint32_t)strlen(text), start = lj_str_text(&t->build.lj);
	uint64_t s = arena_take(t->arena, start + len + 1);

	arena_put8(t->arena, s + AT(t, STR_GCT), LJ_GCT_STR);
	arena_put32(t->arena, s + t->build.lj.str_len, len);
	arena_put(t->arena, s + start, text, len + 1);
	return s;
}

/* GC32: a call's arguments follow its function, without a slot for its link. They are the results of the instructions
 * before it. */
static void move_arguments(uint32_t *bc, uint32_t nbc)
{
	uint32_t i, k;

	for (i = 0; i < nbc; i++)
		for (k = i; lj_bc_op(bc[i]) == LJ_BC_CALL && k-- > 0;) {
			if (lj_bc_a(bc[k]) < lj_bc_a(bc[i]) + 2)
				break;
			bc[k] -= 1u << 8;
		}
}

/* Gives instructions the build's numbers. */
static void number_code(struct lj_traced *t, uint32_t *bc, uint32_t nbc)
{
	uint32_t i, ins;

	for (i = 0; i < nbc; i++) {
		ins = bc[i];
		while (lj_bc_of_21(&t->build.lj, bc[i]) > ins)
			bc[i]--;
		t->unfit |= lj_bc_of_21(&t->build.lj, bc[i]) != ins;
	}
}

/* Constants of objects are below K, numbers above. */
uint64_t tr_prototype_with(struct lj_traced *t, const uint32_t *bc, uint32_t nbc, double number,
			   uint64_t object)
{
	uint32_t head = AT(t, PROTO_SIZE), size = head + 4 * ((nbc + 1) & ~1u) + 16;
	uint64_t chunk = tr_string(t, "=traced"), pt = arena_take(t->arena, size);
	struct test_arena *a = t->arena;
	uint32_t *code = arena_at(a, pt + head, 4ULL * nbc);

	arena_put8(a, pt + AT(t, PROTO_GCT), LJ_GCT_PROTO);
	arena_put32(a, pt + AT(t, PROTO_SIZEBC), nbc);
	tr_put_ref(t, pt + AT(t, PROTO_K), pt + size - 8);
	arena_put32(a, pt + AT(t, PROTO_SIZEKN), 1);
	arena_put32(a, pt + AT(t, PROTO_SIZEKGC), object != 0);
	arena_put32(a, pt + AT(t, PROTO_SIZEPT), size);
	tr_put_ref(t, pt + AT(t, PROTO_CHUNKNAME), chunk);
	arena_put32(a, pt + AT(t, PROTO_FIRSTLINE), 1);
	arena_put32(a, pt + AT(t, PROTO_NUMLINE), 9);
	memcpy(code, bc, 4ULL * nbc);
	if (lj_is_gc32(&t->build.lj))
		move_arguments(code, nbc);
	number_code(t, code, nbc);
	tr_put_ref(t, pt + size - 8 - lj_ref_size(&t->build.lj), object);
	arena_put(a, pt + size - 8, &number, 8);
	return pt;
}

uint64_t tr_prototype(struct lj_traced *t, const uint32_t *bc, uint32_t nbc, double number)
{
	return tr_prototype_with(t, bc, nbc, number, 0);
}

uint64_t tr_tv(const struct lj_traced *t, int32_t type, uint64_t object)
{
	return (uint64_t)(int64_t)type << (lj_is_gc32(&t->build.lj) ? 32 : 47) | object;
}

uint64_t tr_table(struct lj_traced *t, uint64_t key, uint64_t value)
{
	uint64_t node = arena_take(t->arena, LJ_NODE_SIZE),
		 table = arena_take(t->arena, AT(t, TAB_SIZE));

	arena_put64(t->arena, node + LJ_NODE_VAL, value);
	arena_put64(t->arena, node + LJ_NODE_KEY, key);
	arena_put8(t->arena, table + AT(t, TAB_GCT), (uint8_t)~LJ_TTAB);
	tr_put_ref(t, table + AT(t, TAB_NODE), node);
	return table;
}

uint64_t tr_closure(struct lj_traced *t, uint64_t pt)
{
	uint64_t fn = arena_take(t->arena, AT(t, FUNC_UPVALUE));

	arena_put8(t->arena, fn + AT(t, FUNC_GCT), LJ_GCT_FUNC);
	tr_put_ref(t, fn + AT(t, FUNC_PC), pt + AT(t, PROTO_SIZE));
	return fn;
}

void tr_set_upvalue(struct lj_traced *t, uint64_t fn, uint64_t value)
{
	uint64_t uv = arena_take(t->arena, 48), tv = uv + 40;

	arena_put8(t->arena, uv + AT(t, UPVAL_IMMUTABLE), 1);
	arena_put64(t->arena, tv, tr_tv(t, LJ_TFUNC, value));
	tr_put_ref(t, uv + AT(t, UPVAL_V), tv);
	tr_put_ref(t, fn + AT(t, FUNC_UVPTR), uv);
}

void tr_change_upvalue(struct lj_traced *t, uint64_t fn)
{
	uint64_t uv = arena_get64(t->arena, fn + AT(t, FUNC_UVPTR));

	if (lj_is_gc32(&t->build.lj))
		uv = (uint32_t)uv;
	arena_put8(t->arena, uv + AT(t, UPVAL_IMMUTABLE), 0);
}

/* ---- the trace ------------------------------------------------------------------------------- */

static void tr_put16(struct lj_traced *t, uint64_t at, uint16_t v)
{
	arena_put(t->arena, at, &v, 2);
}

/* GC32: an address has 32 bits. */
static uint8_t type_of(const struct lj_traced *t, uint8_t type)
{
	bool address = (type & LJ_IRT_TYPE) == LJ_IRT_P64;

	return lj_is_gc32(&t->build.lj) && address ? (uint8_t)((type & ~LJ_IRT_TYPE) | LJ_IRT_P32)
						   : type;
}

/* GC32: a frame takes one slot less. */
static uint32_t slot_of(const struct lj_traced *t, uint32_t slot)
{
	return slot - (slot && lj_is_gc32(&t->build.lj));
}

/* Returns the build's number of an operation. */
static uint8_t number_of(struct lj_traced *t, uint8_t o)
{
	uint8_t n = o;

	while (n && lj_ir_of(t->build.lj.ir, n) > o)
		n--;
	while (n < LJ_IR__MAX && lj_ir_of(t->build.lj.ir, n) < o) /* ATAN2 */
		n++;
	t->unfit |= lj_ir_of(t->build.lj.ir, n) != o;
	return n;
}

void tr_put_ins(struct lj_traced *t, uint32_t ref, const struct lj_ins *ins)
{
	struct lj_ins numbered = *ins;

	numbered.o = number_of(t, ins->o);
	arena_put(t->arena, t->ir + 8ULL * ref, &numbered, sizeof(numbered));
}

void lj_traced_set_ins(struct lj_traced *t, uint32_t ref, uint8_t o, uint16_t op1, uint16_t op2)
{
	tr_put_ins(t, ref, &(struct lj_ins){.op1 = op1, .op2 = op2, .o = o, .t = NUM, .r = NO_REG});
}

static uint16_t constant_begins(struct lj_traced *t, uint32_t words, const struct lj_ins *ins)
{
	t->nk -= words;
	tr_put_ins(t, t->nk, ins);
	arena_put32(t->arena, t->trace + AT(t, TRACE_NK), t->nk);
	return (uint16_t)t->nk;
}

uint16_t tr_constant(struct lj_traced *t, uint8_t o, uint8_t type, uint64_t value)
{
	bool is_short = lj_is_gc32(&t->build.lj) && o != LJ_IR_KNUM;
	uint64_t number;

	if (!is_short && t->build.lj.v20) { /* at the address in the instruction */
		number = arena_take(t->arena, 8);
		arena_put64(t->arena, number, value);
		value = number;
		is_short = true;
	}
	if (is_short) /* in the instruction itself */
		return constant_begins(t, 1,
				       &(struct lj_ins){.op1 = (uint16_t)value,
							.op2 = (uint16_t)(value >> 16),
							.o = o,
							.t = type_of(t, type)});
	constant_begins(t, 2, &(struct lj_ins){.o = o, .t = type});
	arena_put64(t->arena, t->ir + 8ULL * t->nk + 8, value);
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
	struct lj_ins numbered = k;
	uint64_t bits;
	uint32_t ref;

	numbered.o = number_of(t, k.o);
	memcpy(&bits, &numbered, sizeof(bits));
	for (ref = t->nk; ref < LJ_REF_BIAS; ref++)
		if (arena_get64(t->arena, t->ir + 8ULL * ref) == bits)
			return (uint16_t)ref;
	return constant_begins(t, 1, &k);
}

uint16_t tr_ins(struct lj_traced *t, uint8_t o, uint8_t type, uint16_t op1, uint16_t op2, uint8_t r)
{
	if (o == LJ_IR_SLOAD)
		op1 = (uint16_t)slot_of(t, op1);
	tr_put_ins(t, t->nins,
		   &(struct lj_ins){.op1 = op1, .op2 = op2, .t = type_of(t, type), .o = o, .r = r});
	arena_put32(t->arena, t->trace + AT(t, TRACE_NINS), t->nins + 1);
	return (uint16_t)t->nins++;
}

void tr_snapshot(struct lj_traced *t, uint16_t mcofs, uint32_t pc, const struct traced_slot *slots,
		 uint32_t n)
{
	struct test_arena *a = t->arena;
	uint64_t head = t->trace + AT(t, TRACE_NSNAP), at = t->main + AT(t, PROTO_SIZE) + 4ULL * pc;
	bool gc32 = lj_is_gc32(&t->build.lj);
	uint16_t nsnap;
	uint32_t nmap, i;
	uint64_t snap, map;

	memcpy(&nsnap, arena_at(a, head, 2), 2);
	memcpy(&nmap, arena_at(a, t->trace + AT(t, TRACE_NSNAPMAP), 4), 4);
	snap = arena_get64(a, t->trace + AT(t, TRACE_SNAP)) + (uint64_t)LJ_SNAP_SIZE * nsnap;
	map = arena_get64(a, t->trace + AT(t, TRACE_SNAPMAP)) + 4ULL * nmap;
	arena_put32(a, snap + LJ_SNAP_MAPOFS, nmap);
	tr_put16(t, snap + LJ_SNAP_REF, (uint16_t)t->nins);
	tr_put16(t, snap + LJ_SNAP_MCOFS, mcofs);
	arena_put8(a, snap + LJ_SNAP_NENT, (uint8_t)n);
	for (i = 0; i < n; i++)
		arena_put32(a, map + 4ULL * i, slot_of(t, slots[i].slot) << 24 | slots[i].ref);
	arena_put64(a, map + 4ULL * n, gc32 ? at : at << 8);
	tr_put16(t, head, nsnap + 1);
	arena_put32(a, t->trace + AT(t, TRACE_NSNAPMAP), nmap + n + (gc32 ? 1 : 2));
}

void tr_machine_code(struct lj_traced *t, const uint8_t *code, uint32_t size, uint32_t loop)
{
	uint64_t at = arena_take(t->arena, size);

	arena_put(t->arena, at, code, size);
	arena_put64(t->arena, t->trace + AT(t, TRACE_MCODE), at);
	arena_put32(t->arena, t->trace + AT(t, TRACE_SZMCODE), size);
	arena_put32(t->arena, t->trace + AT(t, TRACE_MCLOOP), loop);
}

void tr_begins_at(struct lj_traced *t, uint32_t pc)
{
	tr_put_ref(t, t->trace + AT(t, TRACE_STARTPT), t->main);
	tr_put_ref(t, t->trace + AT(t, TRACE_STARTPC), t->main + AT(t, PROTO_SIZE) + 4ULL * pc);
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
	tr_put_ref(t, traces + lj_ref_size(&t->build.lj) * LJ_TRACED_NO, t->trace);
	arena_put8(a, t->trace + AT(t, TRACE_GCT), LJ_GCT_TRACE);
	arena_put32(a, t->trace + AT(t, TRACE_TRACENO), LJ_TRACED_NO);
	arena_put64(a, t->trace + AT(t, TRACE_IR), t->ir);
	arena_put64(a, t->trace + AT(t, TRACE_SNAP), arena_take(a, SNAPS * LJ_SNAP_SIZE));
	arena_put64(a, t->trace + AT(t, TRACE_SNAPMAP), arena_take(a, 4 * MAP));
	t->nk = LJ_REF_BIAS - 3;
	arena_put32(a, t->trace + AT(t, TRACE_NK), t->nk);
	t->nins = LJ_REF_BIAS;
	tr_ins(t, LJ_IR_BASE, 0, 0, 0, NO_REG);
}

void lj_traced_init(struct lj_traced *t, const struct lj_traced_row *row,
		    enum lj_traced_build build)
{
	const char *name;

	memset(t, 0, sizeof(*t));
	t->arena = arena_new(NULL);
	t->build.lj = *lj_layout_scene(build, &name);
	t->build.lj.ir = build == LJ_TRACED_20 ? LJ_IR_20 : LJ_IR_2021_07;
	t->build.lj.mcofs = 1; /* until lj_traced_without_mcofs() */
	trace(t);
	t->name = row->name;
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
