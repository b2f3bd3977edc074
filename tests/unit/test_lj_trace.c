// SPDX-License-Identifier: BSD-2-Clause
/*
 * Traces built whole (lj_traced.h): which bytecode each place in their machine code was made from;
 * and what becomes of a sample that stands there. That it holds for what LuaJIT itself makes is for
 * tests/e2e/test_compiled.py to show.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "lj_traced.h"
#include "lua/lj/proto.h"
#include "jit/jit.h"
#include "jit/cache.h"
#include "detect/lj/ir.h"

static struct criterion_test_params every_row(void)
{
	static size_t numbers[LJ_TRACED_ROWS];
	size_t i;

	for (i = 0; i < lj_traced_count; i++)
		numbers[i] = i;
	return cr_make_param_array(size_t, numbers, lj_traced_count);
}

static int read_it(struct lj_traced *t, const struct lb_mem *mem, struct lj_trace **out)
{
	return lj_trace_read(mem, &t->build.lj, t->g, LJ_TRACED_NO, NULL, out);
}

static void expect_places(struct lj_traced *t, const struct lj_traced_row *row)
{
	struct lj_trace_frame exact_frames[LJ_TRACE_FRAMES], snap_frames[LJ_TRACE_FRAMES];
	struct lj_trace *trace __cleanup(lj_trace_free) = NULL;
	uint32_t i, ofs, nsnap_frames;

	cr_assert_eq(read_it(t, arena_mem(t->arena), &trace), 0, "%s", row->name);
	for (i = 0; i + 1 < t->nplaces; i++)
		for (ofs = t->place[i].mcofs; ofs < t->place[i + 1].mcofs; ofs++) {
			bool inside = t->place[i].callpc != LB_NO_PC;
			int n = lj_trace_frames(trace, ofs, exact_frames, snap_frames,
						&nsnap_frames);

			if (t->place[i].pc == LB_NO_PC) {
				cr_expect_eq(n, -ENOENT, "%s at %u: %d", row->name, ofs, n);
				continue;
			}
			cr_assert_eq(n, 1 + inside, "%s at %u: %d", row->name, ofs, n);
			cr_expect_eq(exact_frames[0].proto, inside ? t->callee : t->main,
				     "%s at %u", row->name, ofs);
			cr_expect_eq(exact_frames[0].pc, t->place[i].pc, "%s at %u: %u", row->name,
				     ofs, exact_frames[0].pc);
			if (inside) {
				cr_expect_eq(exact_frames[1].proto, t->main);
				cr_expect_eq(exact_frames[1].pc, t->place[i].callpc);
			}
			cr_expect_eq(nsnap_frames, 1);
			cr_expect_eq(snap_frames[0].proto, t->main);
			cr_expect_eq(snap_frames[0].pc, t->place[i].snap_pc, "%s at %u: %u",
				     row->name, ofs, snap_frames[0].pc);
		}
}

ParameterizedTestParameters(lj_trace, places)
{
	return every_row();
}

/* Each byte of the machine code, and the frames that its snapshot says. */
ParameterizedTest(size_t *index, lj_trace, places)
{
	const struct lj_traced_row *row = &lj_traced_rows[*index];
	struct lj_traced t;

	lj_traced_init(&t, row, LJ_TRACED_GC64);
	expect_places(&t, row);
	lj_traced_free(&t);
	lj_traced_init(&t, row, LJ_TRACED_GC32);
	expect_places(&t, row);
	lj_traced_free(&t);
}

ParameterizedTestParameters(lj_trace, reads_that_fail)
{
	return every_row();
}

/* Whichever read fails: an error, or a trace of which less is known; never another answer. */
static void expect_reads_to_fail(struct lj_traced *t)
{
	struct lj_trace_frame exact_frames[LJ_TRACE_FRAMES], snap_frames[LJ_TRACE_FRAMES];
	uint32_t k, i, nsnap_frames;
	unsigned all;

	for (all = 0; all < 2; all++)
		for (k = 0;; k++) {
			struct lj_trace *trace __cleanup(lj_trace_free) = NULL;
			struct arena_failing f;
			int r;

			arena_failing_init(&f, arena_mem(t->arena), k, all);
			r = read_it(t, &f.mem, &trace);
			if (f.reads <= k)
				break;
			cr_assert(r <= 0);
			cr_assert_eq(!r, !!trace);
			for (i = 0; trace && i + 1 < t->nplaces; i++) {
				int n = lj_trace_frames(trace, t->place[i].mcofs, exact_frames,
							snap_frames, &nsnap_frames);

				/* a function that cannot be read is not entered: its caller's call
				 * is the result */
				if (n > 0)
					cr_expect(exact_frames[0].pc == t->place[i].pc ||
							  t->callee || t->decides,
						  "%s: read %u: %u at %u", t->name, k,
						  exact_frames[0].pc, t->place[i].mcofs);
			}
		}
}

ParameterizedTest(size_t *index, lj_trace, reads_that_fail)
{
	struct lj_traced t;

	lj_traced_init(&t, &lj_traced_rows[*index], LJ_TRACED_GC64);
	expect_reads_to_fail(&t);
	lj_traced_free(&t);
	lj_traced_init(&t, &lj_traced_rows[*index], LJ_TRACED_GC32);
	expect_reads_to_fail(&t);
	lj_traced_free(&t);
	lj_traced_init(&t, &lj_traced_rows[*index], LJ_TRACED_20);
	lj_traced_without_mcofs(&t, true);
	if (!t.unfit && lj_traced_has_branches(&t))
		expect_reads_to_fail(&t);
	lj_traced_free(&t);
}

/* Bytes that are no trace, or none that could be. */
Test(lj_trace, refused)
{
	struct lj_trace *trace = NULL;
	struct lj_traced t;

	lj_traced_init(&t, &lj_traced_rows[0], LJ_TRACED_GC64);
	cr_expect_eq(
		lj_trace_read(arena_mem(t.arena), &t.build.lj, t.g, LJ_TRACED_NO + 1, NULL, &trace),
		-EBADMSG, "no such trace");
	arena_put32(t.arena, t.trace + LJ_TRACE_SZMCODE, 50);
	cr_expect_eq(read_it(&t, arena_mem(t.arena), &trace), -EBADMSG,
		     "a snapshot beyond the machine code");
	arena_put32(t.arena, t.trace + LJ_TRACE_SZMCODE, 61);
	arena_put32(t.arena, t.trace + LJ_TRACE_MCLOOP, 61);
	cr_expect_eq(read_it(&t, arena_mem(t.arena), &trace), -EBADMSG,
		     "a loop beyond the machine code");
	arena_put32(t.arena, t.trace + LJ_TRACE_MCLOOP, 36);
	lj_traced_set_ins(&t, LJ_REF_BIAS + 3, LJ_IR_ADD, LJ_REF_BIAS + 3, LJ_REF_BIAS + 2);
	cr_expect_eq(read_it(&t, arena_mem(t.arena), &trace), -EBADMSG, "an operand of itself");
	lj_traced_set_ins(&t, LJ_REF_BIAS + 3, LJ_IR_ADD, LJ_REF_BIAS + 2, LJ_REF_BIAS + 4);
	cr_expect_eq(read_it(&t, arena_mem(t.arena), &trace), -EBADMSG,
		     "an operand that comes later");
	lj_traced_set_ins(&t, LJ_REF_BIAS + 3, LJ_IR_ADD, LJ_REF_BIAS + 2, 100);
	cr_expect_eq(read_it(&t, arena_mem(t.arena), &trace), -EBADMSG, "below all constants");
	lj_traced_set_ins(&t, LJ_REF_BIAS + 3, LJ_IR__MAX, 0, 0);
	cr_expect_eq(read_it(&t, arena_mem(t.arena), &trace), -EBADMSG, "no such operation");
	lj_traced_set_ins(&t, LJ_REF_BIAS, LJ_IR_ADD, LJ_REF_BIAS - 1, LJ_REF_BIAS - 1);
	cr_expect_eq(read_it(&t, arena_mem(t.arena), &trace), -EBADMSG, "no BASE");
	cr_expect_null(trace);
	lj_traced_free(&t);
}

/* All snapshots lie behind the loop's beginning: nothing was recorded before it. */
Test(lj_trace, no_snapshot_before_the_loop)
{
	struct lj_trace *trace = NULL;
	struct lj_traced t;
	uint64_t snaps;
	uint16_t ref;
	uint32_t i;

	lj_traced_init(&t, &lj_traced_rows[0], LJ_TRACED_GC64);
	snaps = arena_get64(t.arena, t.trace + LJ_TRACE_SNAP);
	ref = (uint16_t)t.nins;
	for (i = 0; i < 4; i++)
		arena_put(t.arena, snaps + i * LJ_SNAP_SIZE + LJ_SNAP_REF, &ref, 2);
	cr_expect_eq(read_it(&t, arena_mem(t.arena), &trace), -EBADMSG);
	cr_expect_null(trace);
	lj_traced_free(&t);
}

static void init_named(struct lj_traced *t, const char *name)
{
	size_t i;

	for (i = 0; strcmp(lj_traced_rows[i].name, name) != 0;)
		cr_assert_lt(++i, lj_traced_count, "%s", name);
	lj_traced_init(t, &lj_traced_rows[i], LJ_TRACED_GC64);
}

/* A constant's bytes may look like any instruction, whose operands nobody has checked. */
Test(lj_trace, constants_like_instructions)
{
	struct lj_trace *trace __cleanup(lj_trace_free) = NULL;
	struct lj_traced t;

	init_named(&t, "new_key");
	lj_traced_set_ins(&t, t.nk, LJ_IR_BUFPUT, 0, 0xffff);
	lj_traced_set_ins(&t, LJ_REF_BIAS + 7, LJ_IR_BUFSTR, (uint16_t)t.nk, LJ_REF_BIAS + 4);
	cr_expect_leq(read_it(&t, arena_mem(t.arena), &trace), 0);
	lj_trace_free(&trace);
	lj_traced_free(&t);
	init_named(&t, "search");
	lj_traced_set_ins(&t, t.nk, LJ_IR_FLOAD, LJ_REF_BIAS - 2, 0);
	lj_traced_set_ins(&t, t.nk + 1, LJ_IR_NEWREF, 0, 0);
	lj_traced_set_ins(&t, LJ_REF_BIAS - 2, LJ_IR_TNEW, 0, 0);
	lj_traced_set_ins(&t, LJ_REF_BIAS + 1, LJ_IR_AREF, (uint16_t)t.nk, (uint16_t)t.nk);
	cr_expect_leq(read_it(&t, arena_mem(t.arena), &trace), 0);
	lj_traced_free(&t);
}

/* The bytecode is not what the snapshots were made from: there is no way from one to the next. */
Test(lj_trace, no_way)
{
	struct lj_trace *trace = NULL;
	struct lj_traced t;

	lj_traced_init(&t, &lj_traced_rows[0], LJ_TRACED_GC64);
	arena_put32(t.arena, t.main + LJ_PROTO_SIZE + 4 * 3, 0x4c); /* DIVVN becomes a return */
	cr_expect_eq(read_it(&t, arena_mem(t.arena), &trace), -EBADMSG);
	cr_expect_null(trace);
	lj_traced_free(&t);
}

/* ---- samples --------------------------------------------------------------------------------- */

struct sampled {
	struct lj_traced t;
	struct lj_traces *traces;
	struct lb_rec_sample rec;
	uint32_t main_print, callee_print;
};

static uint32_t print_of(struct lj_traced *t, uint64_t proto)
{
	struct lj_proto *p __cleanup(lj_proto_free) = NULL;

	cr_assert_eq(lj_proto_read(arena_mem(t->arena), &t->build.lj, proto, &p), 0);
	return lj_proto_fingerprint(p);
}

/* A sample of "inlined" at mcofs, with `below` more frames below main's. */
static void sample(struct sampled *s, uint32_t mcofs, uint32_t below)
{
	struct lj_trace *trace __cleanup(lj_trace_free) = NULL;
	const struct lb_mem *mem;
	uint32_t i;

	memset(s, 0, sizeof(*s));
	lj_traced_init(&s->t, &lj_traced_rows[1], LJ_TRACED_GC64);
	s->main_print = print_of(&s->t, s->t.main);
	s->callee_print = print_of(&s->t, s->t.callee);
	mem = arena_mem(s->t.arena);
	cr_assert_eq(read_it(&s->t, mem, &trace), 0);
	cr_assert_eq(lj_traces_new(mem, &s->traces), 0);
	s->rec.vm = s->t.g;
	s->rec.traceno = LJ_TRACED_NO;
	s->rec.trace_fp = lj_trace_fp(trace);
	s->rec.mcofs = mcofs;
	s->rec.stack.n = 1 + below;
	s->rec.stack.frame[0] = (struct lb_frame){
		.word = LB_FRAME_WORD(LB_FRAME_LUA,
				      LB_FRAME_THREAD | LB_FRAME_TRACE | LB_FRAME_TAIL, s->t.main),
		.pc = 2,
		.fp = s->main_print,
	};
	for (i = 0; i < below; i++)
		s->rec.stack.frame[1 + i] =
			(struct lb_frame){.word = LB_FRAME_WORD(LB_FRAME_C, 0, 0x1000 + i)};
}

static void unsample(struct sampled *s)
{
	lj_traces_free(&s->traces);
	lj_traced_free(&s->t);
}

/* The inlined function comes on top; what is true of a stack's top and of main's frame stays so. */
Test(lj_trace, attributed)
{
	struct lb_stack *stack;
	struct sampled s;

	sample(&s, 7, 2);
	stack = &s.rec.stack;
	cr_assert_eq(lj_traces_attribute(s.traces, &s.t.build, NULL, &s.rec), 0);
	cr_assert_eq(stack->n, 4);
	cr_expect_eq(stack->frame[0].word,
		     LB_FRAME_WORD(LB_FRAME_LUA, LB_FRAME_THREAD | LB_FRAME_TRACE, s.t.callee));
	cr_expect_eq(stack->frame[0].pc, 1);
	cr_expect_eq(stack->frame[0].fp, s.callee_print);
	cr_expect_eq(stack->frame[1].word,
		     LB_FRAME_WORD(LB_FRAME_LUA, LB_FRAME_TRACE | LB_FRAME_TAIL, s.t.main));
	cr_expect_eq(stack->frame[1].pc, 4);
	cr_expect_eq(stack->frame[1].fp, s.main_print);
	cr_expect_eq(LB_FRAME_PTR(&stack->frame[3]), 0x1001);
	unsample(&s);
}

/* The same of a build in which an operation has another number. */
Test(lj_trace, attributed_by_another_numbering)
{
	struct sampled s;
	uint32_t ref;

	sample(&s, 7, 2);
	s.t.build.lj.ir = LJ_IR_TARANTOOL;
	for (ref = LJ_REF_BIAS; ref < s.t.nins; ref++) {
		uint64_t at = s.t.ir + 8ULL * ref;
		uint8_t o = (uint8_t)(arena_get64(s.t.arena, at) >> 8 * offsetof(struct lj_ins, o));
		uint8_t n = o;

		while (lj_ir_of(LJ_IR_TARANTOOL, n) > o)
			n--;
		arena_put8(s.t.arena, at + offsetof(struct lj_ins, o), n);
	}
	arena_mem(s.t.arena); /* as it is now */
	cr_assert_eq(lj_traces_attribute(s.traces, &s.t.build, NULL, &s.rec), 0);
	cr_expect_eq(LB_FRAME_PTR(&s.rec.stack.frame[0]), s.t.callee);
	unsample(&s);
}

/* A stack that is full loses its lowest frame, and says so. */
Test(lj_trace, attributed_full)
{
	struct sampled s;

	sample(&s, 7, LB_MAX_FRAMES - 1);
	cr_assert_eq(lj_traces_attribute(s.traces, &s.t.build, NULL, &s.rec), 0);
	cr_expect_eq(s.rec.stack.n, LB_MAX_FRAMES);
	cr_expect_eq(s.rec.stack.flags, LB_SAMPLE_CUT);
	cr_expect_eq(LB_FRAME_PTR(&s.rec.stack.frame[LB_MAX_FRAMES - 1]),
		     0x1000 + LB_MAX_FRAMES - 3);
	unsample(&s);
}

static void stays(struct sampled *s, const char *why)
{
	struct lb_rec_sample before = s->rec;

	cr_expect_eq(lj_traces_attribute(s->traces, &s->t.build, NULL, &s->rec), -ENOENT, "%s",
		     why);
	cr_expect_eq(memcmp(&before, &s->rec, sizeof(before)), 0, "%s", why);
	unsample(s);
}

/* What does not fit together stays as it was sampled. */
Test(lj_trace, not_attributed)
{
	struct sampled s;

	sample(&s, 7, 1);
	s.rec.trace_fp ^= 1;
	stays(&s, "another trace had the number");
	sample(&s, 7, 1);
	s.rec.stack.frame[0].pc = 3;
	stays(&s, "another snapshot");
	sample(&s, 7, 1);
	s.rec.stack.frame[0].fp ^= 1;
	stays(&s, "another prototype");
	sample(&s, 7, 1);
	s.rec.stack.n = 0;
	stays(&s, "no stack");
	sample(&s, 7, 1);
	s.rec.traceno = 5;
	stays(&s, "no such trace");
	sample(&s, 7, 1);
	s.t.build.lj.ir = LJ_IR_UNKNOWN;
	stays(&s, "intermediate code that is not known");
}

/* A trace that cannot be read just now is read at its next sample. */
Test(lj_trace, attributed_later)
{
	struct lb_rec_sample again;
	struct arena_failing f;
	struct sampled s;

	sample(&s, 7, 1);
	again = s.rec;
	arena_failing_init(&f, arena_mem(s.t.arena), 0, false);
	lj_traces_free(&s.traces);
	cr_assert_eq(lj_traces_new(&f.mem, &s.traces), 0);
	cr_expect_eq(lj_traces_attribute(s.traces, &s.t.build, NULL, &s.rec), -ENOENT);
	cr_assert_eq(lj_traces_attribute(s.traces, &s.t.build, NULL, &again), 0);
	cr_expect_eq(again.stack.n, 3);
	unsample(&s);
}

/* What cannot be read at all does not cost an attempt at each sample. */
Test(lj_trace, given_up)
{
	struct arena_failing f;
	struct sampled s;
	unsigned before;
	int i;

	sample(&s, 7, 1);
	arena_failing_init(&f, arena_mem(s.t.arena), 0, true);
	lj_traces_free(&s.traces);
	cr_assert_eq(lj_traces_new(&f.mem, &s.traces), 0);
	for (i = 0; i < 100; i++)
		cr_expect_eq(lj_traces_attribute(s.traces, &s.t.build, NULL, &s.rec), -ENOENT);
	before = f.reads;
	cr_expect_eq(lj_traces_attribute(s.traces, &s.t.build, NULL, &s.rec), -ENOENT);
	cr_expect_eq(f.reads, before);
	unsample(&s);
}

/* Of the trace's prototypes, when they are copied. */
struct saw {
	struct sampled *s;
	unsigned main, callee, others;
	bool closes; /* the VM, at the last one */
};

static void saw(void *arg, uint64_t proto, uint32_t fp)
{
	struct saw *w = arg;
	struct lj_traced *t = &w->s->t;

	w->main += proto == t->main && fp == w->s->main_print;
	w->callee += proto == t->callee && fp == w->s->callee_print;
	w->others += proto != t->main && proto != t->callee;
	if (!w->closes || proto != t->callee)
		return;
	arena_put64(t->arena, t->trace + LJ_TRACE_IR, 0x5a5a5a5a5a50);
	arena_mem(t->arena);
}

/* A VM that is closed meanwhile leaves its memory to another: what was read may be of both. */
Test(lj_trace, gone_before_it_was_read)
{
	bool closes;

	for (closes = false;; closes = true) {
		struct sampled s;
		struct saw w = {.s = &s, .closes = closes};

		sample(&s, 7, 1);
		lj_traces_watch(s.traces, saw, &w);
		cr_expect_eq(lj_traces_attribute(s.traces, &s.t.build, NULL, &s.rec),
			     closes ? -ENOENT : 0);
		cr_expect_eq(w.main, 1);
		cr_expect_eq(w.callee, 1);
		cr_expect_eq(w.others, 0);
		unsample(&s);
		if (closes)
			break;
	}
}

/* The sample as it would be at another place of its trace, in main. */
Test(lj_trace, elsewhere)
{
	struct lb_rec_sample snapshot, exact, attributed;
	struct sampled s;
	uint32_t i;

	sample(&s, 7, 2);
	attributed = s.rec;
	cr_expect_eq(lj_traces_elsewhere(s.traces, &s.rec, 0, &snapshot, &exact), -ENOENT,
		     "it was not read yet");
	cr_assert_eq(lj_traces_attribute(s.traces, &s.t.build, NULL, &attributed), 0);
	for (i = 0; i + 1 < s.t.nplaces; i++) {
		uint32_t inside = s.t.place[i].callpc != LB_NO_PC;
		int r = lj_traces_elsewhere(s.traces, &s.rec, s.t.place[i].mcofs, &snapshot,
					    &exact);

		if (s.t.place[i].pc == LB_NO_PC) {
			cr_expect_eq(r, -ENOENT);
			continue;
		}
		cr_assert_eq(r, 0, "%u", i);
		cr_expect_eq(snapshot.mcofs, s.t.place[i].mcofs);
		cr_expect_eq(snapshot.stack.n, 3);
		cr_expect_eq(LB_FRAME_PTR(&snapshot.stack.frame[0]), s.t.main);
		cr_expect_eq(snapshot.stack.frame[0].pc, s.t.place[i].snap_pc);
		cr_expect_eq(exact.stack.n, 3 + inside);
		cr_expect_eq(LB_FRAME_PTR(&exact.stack.frame[0]), inside ? s.t.callee : s.t.main);
		cr_expect_eq(exact.stack.frame[0].pc, s.t.place[i].pc);
		cr_expect_eq(LB_FRAME_PTR(&exact.stack.frame[exact.stack.n - 1]), 0x1001);
	}
	s.rec.stack.frame[0].pc = 3;
	cr_expect_eq(lj_traces_elsewhere(s.traces, &s.rec, 0, &snapshot, &exact), -ENOENT,
		     "it does not stand on its snapshot");
	unsample(&s);
}
