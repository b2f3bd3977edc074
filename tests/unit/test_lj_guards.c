// SPDX-License-Identifier: BSD-2-Clause
/* Traces whose snapshots do not say where their machine code begins (LuaJIT until 2021-03): the guards' branches show it. */
#include <errno.h>
#include <string.h>

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <unwind/abi.h>

#include "base/cleanup.h"
#include "jit/guards.h"
#include "jit/jit.h"
#include "lj_traced.h"

/* A group of exit stubs, as LuaJIT makes them for 32 exits: here for 3, of numbers from 0x100 on. */
static const uint8_t stubs[] = {
	0x6a, 0x00, 0xeb, 0x06,		    /*  0 push 0; jmp 10 */
	0x6a, 0x01, 0xeb, 0x02,		    /*  4 push 1; jmp 10 */
	0x6a, 0x02, 0x6a, 0x01,		    /*  8 push 2; push 1: the upper byte */
	0xe9, 0x00, 0x00, 0x00, 0x00, 0x90, /* 12 jmp ->vm_exit_handler */
};

/* Traces have up to 0x103 snapshots here. The branches lead to `to`, counted from the first stub. */
static int found(uint32_t at, int32_t to, uint8_t opcode, uint32_t snapno, uint32_t mcofs)
{
	struct test_arena *a = arena_new(NULL);
	uint64_t group = arena_take(a, sizeof(stubs)), mcode = arena_take(a, 64);
	struct lj_tsnap snaps[0x103] = {};
	uint8_t code[64];
	struct lj_trace t = {
		.snap = snaps, .nsnap = 0x103, .code_bytes = code, .szmcode = sizeof(code)};
	int32_t rel = (int32_t)(group - mcode) + to - (int32_t)at - (opcode == 0xe9 ? 5 : 6);
	int r;

	memset(code, 0x90, sizeof(code));
	if (opcode == 0xe9) {
		code[at] = opcode;
		memcpy(&code[at + 1], &rel, 4);
	} else {
		code[at] = 0x0f;
		code[at + 1] = opcode;
		memcpy(&code[at + 2], &rel, 4);
	}
	arena_put(a, group, stubs, sizeof(stubs));
	arena_put(a, mcode, code, sizeof(code));
	r = lj_trace_guards(&t, arena_mem(a), mcode);
	for (uint32_t i = 0; i < t.nsnap && !r; i++)
		cr_expect_eq(snaps[i].mcofs, i >= snapno ? mcofs : 0, "%u: %u", i, snaps[i].mcofs);
	arena_free(&a);
	return r;
}

Test(lj_guards, stubs)
{
	/* jg: snapshot 0x100 ends behind it, and 0x101 begins; jc; jmp */
	cr_expect_eq(found(7, 0, 0x8f, 0x101, 13), 0);
	cr_expect_eq(found(7, 4, 0x82, 0x102, 13), 0);
	cr_expect_eq(found(0, 4, 0xe9, 0x102, 5), 0);
	/* the last snapshot: none begins behind it */
	cr_expect_eq(found(7, 8, 0x8f, 0x103, 0), 0);
}

Test(lj_guards, other_targets)
{
	cr_expect_eq(found(7, 2, 0x8f, 0x103, 0), 0, "within a stub");
	cr_expect_eq(found(7, 12, 0x8f, 0x103, 0), 0, "another jump");
	cr_expect_eq(found(7, 0x10000000, 0x8f, 0x103, 0), 0, "too far");
	cr_expect_eq(found(7, 0, 0x10, 0x103, 0), 0, "no branch: movups");
	cr_expect_lt(found(7, -64, 0x8f, 0x103, 0), 0, "cannot be read");
}

/* Branches in another order than their exits, and a snapshot without any, which begins where the next one does. */
Test(lj_guards, begin_in_order)
{
	struct test_arena *a = arena_new(NULL);
	uint64_t group = arena_take(a, sizeof(stubs)), mcode = arena_take(a, 64);
	struct lj_tsnap snaps[5] = {};
	uint8_t code[18] = {0x0f, 0x8f, 0, 0, 0, 0, 0x0f, 0x8f, 0, 0, 0, 0, 0x0f, 0x8f, 0, 0, 0, 0};
	uint8_t low[sizeof(stubs)];
	struct lj_trace t = {
		.snap = snaps, .nsnap = 5, .code_bytes = code, .szmcode = sizeof(code)};
	static const int stub[] = {2, 0, 2};

	memcpy(low, stubs, sizeof(stubs));
	low[11] = 0;
	arena_put(a, group, low, sizeof(low));
	for (int i = 0; i < 3; i++) {
		int32_t rel = (int32_t)(group - mcode) + 4 * stub[i] - 6 * (i + 1);

		memcpy(&code[6 * i + 2], &rel, 4);
	}
	cr_assert_eq(lj_trace_guards(&t, arena_mem(a), mcode), 0);
	cr_expect_eq(snaps[0].mcofs, 0);
	cr_expect_eq(snaps[1].mcofs, 12);
	cr_expect_eq(snaps[2].mcofs, 12);
	cr_expect_eq(snaps[3].mcofs, 18);
	cr_expect_eq(snaps[4].mcofs, 18);
	arena_free(&a);
}

/* ---- whole traces ---------------------------------------------------------------------------- */

/* Each byte of the machine code has the line that it has in a build with mcofs. */
static void expect_places(size_t index, enum lj_traced_build build, bool of_2017)
{
	struct lj_trace_frame exact_frames[LJ_TRACE_FRAMES], snap_frames[LJ_TRACE_FRAMES];
	struct lj_trace *trace __cleanup(lj_trace_free) = NULL;
	const char *name = lj_traced_rows[index].name;
	uint32_t i, ofs, nsnap_frames;
	struct lj_traced t;

	lj_traced_init(&t, &lj_traced_rows[index], build);
	if (t.unfit || !lj_traced_has_branches(&t)) {
		lj_traced_free(&t);
		return;
	}
	lj_traced_without_mcofs(&t, of_2017);
	cr_assert_eq(
		lj_trace_read(arena_mem(t.arena), &t.build.lj, t.g, LJ_TRACED_NO, NULL, &trace), 0,
		"%s", name);
	if (!index)
		cr_expect_gt(trace->snap[trace->nsnap - 1].mcofs, 0, "the stubs are found");
	for (i = 0; i + 1 < t.nplaces; i++)
		for (ofs = t.place[i].mcofs; ofs < t.place[i + 1].mcofs; ofs++) {
			int n = lj_trace_frames(trace, ofs, exact_frames, snap_frames,
						&nsnap_frames);

			if (t.place[i].pc == LB_NO_PC)
				continue;
			cr_assert_gt(n, 0, "%s at %u: %d", name, ofs, n);
			cr_expect_eq(exact_frames[0].pc, t.place[i].pc, "%s at %u: %u, not %u",
				     name, ofs, exact_frames[0].pc, t.place[i].pc);
		}
	lj_traced_free(&t);
}

ParameterizedTestParameters(lj_guards, places)
{
	static size_t index[LJ_TRACED_ROWS];

	for (size_t i = 0; i < lj_traced_count; i++)
		index[i] = i;
	return cr_make_param_array(size_t, index, lj_traced_count);
}

ParameterizedTest(size_t *index, lj_guards, places)
{
	expect_places(*index, LJ_TRACED_GC64, false);
	expect_places(*index, LJ_TRACED_GC64, true);
	expect_places(*index, LJ_TRACED_GC32, false);
	expect_places(*index, LJ_TRACED_GC32, true);
	expect_places(*index, LJ_TRACED_20, true);
}
