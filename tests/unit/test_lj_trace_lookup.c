/* SPDX-License-Identifier: BSD-2-Clause */
/* On which frames a place in a trace stands, where the trace does not know all of them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>

#include "jit/jit.h"
#include "jit/model.h"

#define PLACE 10 /* bytes of machine code made from each step */

/* A trace that began in frame 0, which runs code 0; frame i runs code i. Step i is made in frame i,
 * at pc 10 + i. */
static struct {
	struct lj_trace t;
	struct lj_code codes[4];
	struct lj_tframe frames[4];
	struct bc_event history[4];
	struct lj_mc_entry mc_entries[4];
	struct lj_tsnap snap;
	struct lj_trace_frame exact_frames[LJ_TRACE_FRAMES], snap_frames[LJ_TRACE_FRAMES];
	uint32_t nsnap_frames;
} s;

static uint64_t proto(uint32_t i)
{
	return 0x10000 + 0x1000 * i;
}

static void start(void)
{
	uint32_t i;

	for (i = 0; i < 4; i++) {
		s.codes[i] = (struct lj_code){.proto = proto(i), .fp = 70 + i, .sizebc = 100};
		s.frames[i] = (struct lj_tframe){.parent = -1, .code = i};
		s.history[i] = (struct bc_event){.pc = 10 + i, .frame = i};
		s.mc_entries[i] = (struct lj_mc_entry){.mcofs = PLACE * i, .step = (int32_t)i};
	}
	s.snap = (struct lj_tsnap){.pc = proto(0) + LJ_PROTO_SIZE + 4 * 9, .step = 0, .frame = 0};
	s.t = (struct lj_trace){
		.codes = s.codes,
		.ncodes = 4,
		.frames = s.frames,
		.nframes = 4,
		.history = s.history,
		.nhistory = 4,
		.mc_entries = s.mc_entries,
		.nmc_entries = 4,
		.snap = &s.snap,
		.nsnap = 1,
		.npre = 1,
	};
}

/* Frame f returns to frame to, which the trace did not begin on. */
static void returns(uint32_t f, uint32_t to)
{
	s.frames[f].parent = (int32_t)to;
	s.frames[f].callpc = 40;
	s.frames[to].returned = true;
}

static int look(uint32_t step)
{
	return lj_trace_frames(&s.t, PLACE * step + 1, s.exact_frames, s.snap_frames,
			       &s.nsnap_frames);
}

Test(lj_trace_lookup, in_the_frame_of_the_snapshot, .init = start)
{
	cr_assert_eq(look(0), 1);
	cr_assert_eq(s.nsnap_frames, 1);
	cr_expect_eq(s.exact_frames[0].proto, proto(0));
	cr_expect_eq(s.exact_frames[0].fp, 70);
	cr_expect_eq(s.exact_frames[0].pc, 10);
	cr_expect_eq(s.snap_frames[0].proto, proto(0));
	cr_expect_eq(s.snap_frames[0].pc, 9);
}

Test(lj_trace_lookup, in_an_inlined_function, .init = start)
{
	s.frames[1].parent = 0;
	s.frames[1].callpc = 30;
	cr_assert_eq(look(1), 2);
	cr_assert_eq(s.nsnap_frames, 1);
	cr_expect_eq(s.exact_frames[0].proto, proto(1));
	cr_expect_eq(s.exact_frames[1].proto, proto(0));
	cr_expect_eq(s.exact_frames[1].pc, 30);
}

/* The trace is left for a C function, on whose frame its last snapshot stands. */
Test(lj_trace_lookup, before_a_c_function, .init = start)
{
	s.snap.pc = 1;
	cr_expect_eq(look(0), -ENOENT);
	s.snap.on_c = true;
	s.snap.callpc = 20;
	cr_assert_eq(look(0), 1);
	cr_assert_eq(s.nsnap_frames, 2);
	cr_expect_eq(s.exact_frames[0].pc, 10);
	cr_expect(!s.exact_frames[0].is_c);
	cr_expect(s.snap_frames[0].is_c);
	cr_expect_eq(s.snap_frames[1].proto, proto(0));
	cr_expect_eq(s.snap_frames[1].pc, 20);
}

/* Without GC64 the links follow the pc: of the frame at 8, of the continuation below it, of the frame at 3. */
Test(lj_trace_lookup, links_behind_the_entries)
{
	static const uint32_t map[] = {
		0 << 24 | LJ_SNAP_FRAME | 0x7ff0, 2 << 24 | 0x8001,
		3 << 24 | LJ_SNAP_FRAME | 0x7ff1, 7 << 24 | LJ_SNAP_CONT | 0x7ff2,
		8 << 24 | LJ_SNAP_FRAME | 0x7ff3, 9 << 24 | 0x8002,
	};
	static const uint32_t links[] = {0x2a, 0x4000, 0x5000};
	const struct lj_trace t = {.lj.gc32 = 1};
	struct lj_tsnap snap = {.map = map, .nent = 6, .links = links, .nlinks = 3};

	cr_expect_eq(lj_snap_link(&t, &snap, 8), 0x2a);
	cr_expect_eq(lj_snap_contpc(&t, &snap, 8), 0x4000);
	cr_expect_eq(lj_snap_link(&t, &snap, 3), 0x5000);
	cr_expect_eq(lj_snap_link(&t, &snap, 0), 0, "the trace's own frame has none");
	cr_expect_eq(lj_snap_link(&t, &snap, 2), 0, "no frame");
	snap.nlinks = 2;
	cr_expect_eq(lj_snap_link(&t, &snap, 3), 0, "behind the last one");
}

/*
 * Before the trace has seen that it was called from there, it may have been called from anywhere.
 */
Test(lj_trace_lookup, before_it_returns, .init = start)
{
	returns(0, 1);
	cr_assert_eq(look(0), 1);
	cr_expect_eq(s.nsnap_frames, 1);
	cr_expect_eq(s.snap_frames[0].proto, proto(0));
}

Test(lj_trace_lookup, after_it_has_returned, .init = start)
{
	returns(0, 1);
	cr_assert_eq(look(1), 1);
	cr_assert_eq(s.nsnap_frames, 2);
	cr_expect_eq(s.exact_frames[0].proto, proto(1));
	cr_expect_eq(s.snap_frames[1].proto, proto(1));
	cr_expect_eq(s.snap_frames[1].pc, 40);
	cr_expect(s.snap_frames[1].returned);
}

/* What was returned to calls: frame 2. And returns, to 3: that is not known before, either. */
Test(lj_trace_lookup, in_what_is_called_behind_a_return, .init = start)
{
	returns(0, 1);
	s.frames[2].parent = 1;
	returns(1, 3);
	cr_assert_eq(look(2), 2);
	cr_assert_eq(s.nsnap_frames, 2);
	cr_expect_eq(s.exact_frames[0].proto, proto(2));
	cr_expect_eq(s.exact_frames[1].proto, proto(1));
	cr_assert_eq(look(3), 1);
	cr_assert_eq(s.nsnap_frames, 3);
	cr_expect_eq(s.snap_frames[2].proto, proto(3));
}

/* Frame 1 has taken the place of the lowest one, and frame 2 that of frame 1. */
Test(lj_trace_lookup, in_what_the_lowest_frame_calls_in_its_place, .init = start)
{
	s.frames[1].tail_called_by = 1;
	s.frames[2].tail_called_by = 2;
	cr_assert_eq(look(1), 1);
	cr_assert_eq(s.nsnap_frames, 1);
	cr_expect_eq(s.exact_frames[0].proto, proto(1));
	cr_expect_eq(s.snap_frames[0].proto, proto(0));
	returns(2, 3);
	cr_assert_eq(look(2), 1);
	cr_assert_eq(s.nsnap_frames, 1);
	cr_expect_eq(s.exact_frames[0].proto, proto(2));
	/* behind the return the snapshot's frame is not known to stand on what is returned to */
	cr_expect_eq(look(3), -ENOENT);
}

/* pcall() between a frame and the one below is cut off with it. */
Test(lj_trace_lookup, through_pcall, .init = start)
{
	s.frames[0].via_pcall = 20;
	returns(0, 1);
	cr_assert_eq(look(0), 2);
	cr_assert_eq(s.nsnap_frames, 2);
	cr_expect(s.exact_frames[1].fast);
	cr_expect_eq(s.exact_frames[1].proto, 20);
	cr_expect(s.snap_frames[1].fast);
}

Test(lj_trace_lookup, nothing_in_common, .init = start)
{
	cr_expect_eq(look(1), -ENOENT);
	s.mc_entries[0].step = -1;
	cr_expect_eq(look(0), -ENOENT, "not known");
	s.mc_entries[0].step = 4;
	cr_expect_eq(look(0), -ENOENT, "no such step");
	s.mc_entries[0].step = 0;
	s.snap.step = s.snap.frame = -1;
	cr_expect_eq(look(0), -ENOENT, "a snapshot that was not met");
	s.snap.step = s.snap.frame = 0;
	s.snap.pc = 1;
	cr_expect_eq(look(0), -ENOENT, "no bytecode");
}
