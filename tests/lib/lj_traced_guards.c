// SPDX-License-Identifier: BSD-2-Clause
/* Traces as LuaJIT stored them until 2021-03, without the offsets of snapshots' machine code: made of those with. */
#include <string.h>

#include "lj_traced.h"

static uint32_t half(struct test_arena *a, uint64_t addr)
{
	uint32_t v;

	memcpy(&v, arena_at(a, addr, sizeof(v)), sizeof(v));
	return v;
}

static uint32_t snapshots(const struct lj_traced *t)
{
	return half(t->arena, t->trace + LJ_OFF(&t->build.lj, TRACE_NSNAP)) & 0xffff;
}

static uint64_t snapshot(const struct lj_traced *t, uint32_t i)
{
	return arena_get64(t->arena, t->trace + LJ_OFF(&t->build.lj, TRACE_SNAP)) +
	       (uint64_t)LJ_SNAP_SIZE * i;
}

static uint32_t mcofs(const struct lj_traced *t, uint32_t i)
{
	return half(t->arena, snapshot(t, i) + LJ_SNAP_MCOFS) & 0xffff;
}

/* Makes a group of exit stubs, and the branches of the machine code lead there, by the snapshots that they lie in. */
static void put_stubs(struct lj_traced *t)
{
	struct test_arena *a = t->arena;
	uint64_t group = arena_take(a, 4 * 32 + 8),
		 mcode = arena_get64(a, t->trace + LJ_OFF(&t->build.lj, TRACE_MCODE));
	uint32_t size = half(a, t->trace + LJ_OFF(&t->build.lj, TRACE_SZMCODE)), snapno = 0;

	for (uint32_t i = 0; i < 31; i++) /* push i; jmp behind the last one */
		arena_put32(a, group + 4 * i, 0xeb006a | i << 8 | (122 - 4 * i) << 24);
	arena_put32(a, group + 4 * 31, 0x006a1f6a); /* push 31; push 0: the upper byte */
	for (uint32_t at = 0; at + 5 <= size; at++) {
		const uint8_t *code = arena_at(a, mcode + at, 2);
		bool jcc = code[0] == 0x0f && (code[1] & 0xf0) == 0x80;

		while (snapno + 1 < snapshots(t) && mcofs(t, snapno + 1) <= at)
			snapno++;
		if (!jcc && code[0] != 0xe9)
			continue;
		arena_put32(a, mcode + at + 1 + jcc,
			    (uint32_t)(group + 4 * snapno - mcode - at - 5 - jcc));
		at += 4 + jcc;
	}
}

void lj_traced_without_mcofs(struct lj_traced *t, bool of_2017)
{
	struct test_arena *a = t->arena;
	uint32_t n = snapshots(t), size = of_2017 ? LJ_SNAP_SIZE_2017 : LJ_SNAP_SIZE;
	uint64_t to = arena_take(a, size * n + 8);

	put_stubs(t);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t from = snapshot(t, i), at = to + (uint64_t)size * i;
		uint32_t ofs = half(a, from + LJ_SNAP_MAPOFS),
			 ref = half(a, from + LJ_SNAP_REF) & 0xffff;

		arena_put32(a, at, of_2017 ? ofs | ref << 16 : ofs);
		if (!of_2017)
			arena_put32(a, at + LJ_SNAP_REF, ref);
		arena_put8(a, at + (of_2017 ? LJ_SNAP_NENT - 4 : LJ_SNAP_NENT - 2),
			   (uint8_t)half(a, from + LJ_SNAP_NENT));
	}
	arena_put64(a, t->trace + LJ_OFF(&t->build.lj, TRACE_SNAP), to);
	if (of_2017) {
		arena_put32(a, t->trace + LJ_OFF(&t->build.lj, TRACE_NSNAPMAP),
			    n | half(a, t->trace + LJ_OFF(&t->build.lj, TRACE_NSNAPMAP)) << 16);
		arena_put(a, t->trace + LJ_OFF(&t->build.lj, TRACE_NSNAP), &(uint16_t){0}, 2);
	}
	t->build.lj.mcofs = 0;
}
