// SPDX-License-Identifier: BSD-2-Clause
/*
 * The LuaJIT walker over built images: each scene is a test, run for every known layout; and again
 * with reads that fail.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

#include "fail_each.h"
#include "lj_scene.h"
#include "lua/lj/proto.h"
#include "lj_layouts.h"
#include "walk_host.h"

static struct criterion_test_params scenes(void)
{
	return cr_make_param_array(size_t, scene_shares(), SCENE_SHARES);
}

static void each_scene(size_t share, void (*run)(const struct lj_scene_row *row))
{
	const struct lj_scene_row *row;
	size_t i;

	for (i = share; (row = lj_scene_at(i)); i += SCENE_SHARES)
		run(row);
}

Test(walk_lj, every_share_has_scenes)
{
	const char *name;

	cr_assert_not_null(lj_scene_at(SCENE_SHARES - 1));
	cr_assert_not_null(lj_layout_scene(1, &name));
	cr_assert_null(lj_layout_scene(1000, &name));
}

static void as_expected(const struct lj_scene_row *row)
{
	static struct lj_walk walk;
	const struct lj_layout *lj;
	struct lj_scene s;
	const char *layout;
	char why[2048];
	uint32_t steps;
	size_t i;

	for (i = 0; (lj = lj_layout_scene(i, &layout)); i++) {
		lj_scene_init(&s, row, lj);
		steps = walk_host(&s.img.mem.mem, &s.in, &walk);
		cr_expect(s.absent || lj_scene_check(&s, &walk, why, sizeof(why)), "%s (%s): %s",
			  row->name, layout, why);
		cr_expect_leq(steps, 2 * LB_MAX_STEPS, "%s", row->name);
		lj_scene_free(&s);
	}
}

ParameterizedTestParameters(walk_lj, scene)
{
	return scenes();
}

ParameterizedTest(size_t *share, walk_lj, scene)
{
	each_scene(*share, as_expected);
}

/* Sets a scene up for the first layout. */
static void open_scene(struct lj_scene *s, const struct lj_scene_row *row)
{
	const char *layout;

	lj_scene_init(s, row, lj_layout_scene(0, &layout));
}

static const struct lj_scene_row *scene_called(const char *name)
{
	const struct lj_scene_row *row;
	size_t i;

	for (i = 0; (row = lj_scene_at(i)) && strcmp(row->name, name); i++)
		;
	cr_assert_not_null(row, "%s", name);
	return row;
}

/* A host's main loop is no resumer: words on its stack are not followed. */
Test(walk_lj, reads_for_a_host)
{
	const struct lj_layout *lj;
	const char *layout;
	const struct lj_scene_row *row = scene_called("coroutine_by_host_loop");
	size_t i;

	for (i = 0; (lj = lj_layout_scene(i, &layout)); i++) {
		static struct lj_walk walk;
		struct mem_counting counting;
		uint32_t reads, failed;
		struct lj_scene s;

		lj_scene_init(&s, row, lj);
		mem_counting_init(&counting, &s.img.mem.mem, &reads, &failed);
		walk_host(&counting.mem, &s.in, &walk);
		cr_expect_eq(walk.end, LB_STATUS_RESOLVED);
		cr_expect_eq(failed, 0, "%s: %u of %u reads fail", layout, failed, reads);
		cr_expect_leq(reads, 48, "%s: %u reads", layout, reads);
		lj_scene_free(&s);
	}
}

/* Each fingerprint is the one that user space makes of the same memory. */
static void same_fingerprints_in(const struct lj_scene_row *row, const struct lj_layout *lj,
				 const char *layout)
{
	static struct lj_walk walk;
	struct lj_scene s;
	uint32_t i;

	lj_scene_init(&s, row, lj);
	walk_host(&s.img.mem.mem, &s.in, &walk);
	for (i = 0; i < walk.rec.stack.n; i++) {
		const struct lb_frame *f = &walk.rec.stack.frame[i];
		struct lj_proto *p = NULL;

		if (LB_FRAME_KIND(f) != LB_FRAME_LUA)
			continue;
		cr_assert_eq(lj_proto_read(&s.img.mem.mem, lj, LB_FRAME_PTR(f), &p), 0, "%s (%s)",
			     row->name, layout);
		cr_expect_eq(lj_proto_fingerprint(p), f->fp, "%s (%s), frame %u", row->name, layout,
			     i);
		lj_proto_free(&p);
	}
	lj_scene_free(&s);
}

static void same_fingerprints(const struct lj_scene_row *row)
{
	const struct lj_layout *lj;
	const char *layout;
	size_t i;

	for (i = 0; (lj = lj_layout_scene(i, &layout)); i++)
		same_fingerprints_in(row, lj, layout);
}

ParameterizedTestParameters(walk_lj, user_space_has_the_same_fingerprints)
{
	return scenes();
}

ParameterizedTest(size_t *share, walk_lj, user_space_has_the_same_fingerprints)
{
	each_scene(*share, same_fingerprints);
}

/* Fingerprints belong to the prototype, not to the address of its function or to the sample. */
Test(walk_lj, fingerprints)
{
	static struct lj_walk a, b;
	struct lj_scene s;
	uint64_t name_of;

	open_scene(&s, &lj_scenes_frames[3]);
	walk_host(&s.img.mem.mem, &s.in, &a);
	s.in.sample++;
	walk_host(&s.img.mem.mem, &s.in, &b);
	cr_assert_eq(a.rec.stack.n, 3);
	cr_expect_neq(a.rec.stack.frame[0].fp, 0);
	cr_expect_neq(a.rec.stack.frame[0].fp, a.rec.stack.frame[1].fp);
	cr_expect_arr_eq(a.rec.stack.frame, b.rec.stack.frame, 3 * sizeof(struct lb_frame));
	lji_put32(&s.img, LB_FRAME_PTR(&a.rec.stack.frame[0]) + LJ_PROTO_FIRSTLINE, 31);
	walk_host(&s.img.mem.mem, &s.in, &b);
	cr_expect_neq(a.rec.stack.frame[0].fp, b.rec.stack.frame[0].fp);
	cr_expect_eq(a.rec.stack.frame[1].fp, b.rec.stack.frame[1].fp);
	name_of = lji_get64(&s.img, LB_FRAME_PTR(&a.rec.stack.frame[1]) + LJ_PROTO_CHUNKNAME);
	lji_put32(&s.img, name_of + LJ_STR_HASH, 0x12345678);
	s.in.sample++;
	walk_host(&s.img.mem.mem, &s.in, &b);
	cr_expect_neq(a.rec.stack.frame[1].fp, b.rec.stack.frame[1].fp, "another name");
	lj_scene_free(&s);
}

/* ---- what an earlier sample has proved ------------------------------------------------------- */

/* The same, and so no frame is another. */
static void proved_again(const struct lj_scene_row *row)
{
	static struct lj_walk walk;
	const struct lj_layout *lj;
	struct lj_scene s;
	const char *layout;
	char why[2048];
	size_t i, again;

	for (i = 0; (lj = lj_layout_scene(i, &layout)); i++) {
		lj_scene_init(&s, row, lj);
		s.in.epoch = 7;
		walk_host(&s.img.mem.mem, &s.in, &walk);
		for (again = 0; again < 2; again++) {
			s.in.sample++;
			walk_host_next(&s.img.mem.mem, &s.in, &walk);
			cr_expect(s.absent || lj_scene_check(&s, &walk, why, sizeof(why)),
				  "%s (%s): %s", row->name, layout, why);
		}
		lj_scene_free(&s);
	}
}

ParameterizedTestParameters(walk_lj, proved)
{
	return scenes();
}

ParameterizedTest(size_t *share, walk_lj, proved)
{
	each_scene(*share, proved_again);
}

struct proving {
	struct lj_scene s;
	struct lb_frame before[3];
};

/* calls(): three Lua functions, seen twice. */
static void prove_begin(struct proving *t, struct lj_walk *walk)
{

	open_scene(&t->s, &lj_scenes_frames[3]);
	t->s.in.epoch = 7;
	walk_host(&t->s.img.mem.mem, &t->s.in, walk);
	cr_assert_eq(walk->rec.stack.n, 3);
	memcpy(t->before, walk->rec.stack.frame, sizeof(t->before));
}

static void prove_next(struct proving *t, struct lj_walk *walk)
{
	t->s.in.sample++;
	walk_host_next(&t->s.img.mem.mem, &t->s.in, walk);
	cr_expect_eq(walk->end, LB_STATUS_RESOLVED);
	cr_assert_eq(walk->rec.stack.n, 3);
}

/* A fingerprint counts in the epoch in which it was made, and in no other. */
Test(walk_lj, epoch_ends)
{
	static struct lj_walk walk;
	struct proving t;
	uint32_t i;

	prove_begin(&t, &walk);
	for (i = 0; i < 3; i++)
		lji_put32(&t.s.img, LB_FRAME_PTR(&t.before[i]) + LJ_PROTO_FIRSTLINE, 77 + (int)i);
	prove_next(&t, &walk);
	cr_expect_arr_eq(walk.rec.stack.frame, t.before, sizeof(t.before));
	t.s.in.epoch = 8;
	prove_next(&t, &walk);
	for (i = 0; i < 3; i++)
		cr_expect_neq(walk.rec.stack.frame[i].fp, t.before[i].fp, "frame %u", i);
	t.s.in.epoch = 0;
	for (i = 0; i < 3; i++)
		lji_put32(&t.s.img, LB_FRAME_PTR(&t.before[i]) + LJ_PROTO_FIRSTLINE, 7 + (int)i);
	memcpy(t.before, walk.rec.stack.frame, sizeof(t.before));
	prove_next(&t, &walk);
	for (i = 0; i < 3; i++)
		cr_expect_neq(walk.rec.stack.frame[i].fp, t.before[i].fp, "frame %u", i);
	lj_scene_free(&t.s);
}

/* A closure at the address of another one is recognised by pc. */
Test(walk_lj, another_closure)
{
	static struct lj_walk walk, fresh;
	uint64_t closure, other;
	struct proving t;

	prove_begin(&t, &walk);
	/* of the function in the middle, which calls the topmost at 7, from its slot 9 */
	other = lji_function(&t.s.img, 50);
	lji_ins(&t.s.img, other, 7, LJ_OP_CALLM + 1, 9);
	closure = LJ_TV_GCPTR(lji_get64(&t.s.img, t.s.st.base - 8 * (2 + 9) - 16));
	lji_put64(&t.s.img, closure + LJ_FUNC_PC, lji_bc(&t.s.img, other, 0));
	lji_put64(&t.s.img, t.s.st.base - 8, lji_bc(&t.s.img, other, 8));
	prove_next(&t, &walk);
	cr_expect_eq(LB_FRAME_PTR(&walk.rec.stack.frame[1]), lji_proto_of(&t.s.img, other));
	walk_host(&t.s.img.mem.mem, &t.s.in, &fresh);
	cr_expect_arr_eq(walk.rec.stack.frame, fresh.rec.stack.frame, sizeof(t.before));
	lj_scene_free(&t.s);
}

/* Takes samples all over the machine code, with what was kept of those before and without. */
static void compare_places(struct lj_scene *s, struct lj_walk *walk, uint64_t mcode)
{
	static struct lj_walk fresh;
	uint32_t i, at;

	for (i = 0; i < 2000; i++) {
		at = i * 37 % 0x160;
		s->in.regs.ip = mcode + at;
		s->in.sample++;
		walk_host_next(&s->img.mem.mem, &s->in, walk);
		walk_host(&s->img.mem.mem, &s->in, &fresh);
		cr_assert_eq(walk->end, fresh.end, "%#x", at);
		cr_assert_eq(walk->rec.stack.n, fresh.rec.stack.n, "%#x", at);
		cr_assert_arr_eq(walk->rec.stack.frame, fresh.rec.stack.frame,
				 fresh.rec.stack.n * sizeof(struct lb_frame), "%#x", at);
	}
}

/* Which snapshot is left of a place is kept for all places up to the next. */
Test(walk_lj, places_in_machine_code)
{
	static struct lj_walk walk;
	struct lj_scene s;
	uint64_t mcode;
	uint32_t i;

	open_scene(&s, scene_called("mcode_inlined"));
	mcode = s.in.regs.ip - 0x60;
	s.in.epoch = 7;
	walk_host(&s.img.mem.mem, &s.in, &walk);
	compare_places(&s, &walk, mcode);
	/* snapshots that begin within places that share entries; two at one place */
	for (i = 0; i < walk.gctrace.nsnap; i++)
		lji_put8(&s.img, walk.gctrace.snaps + LJ_SNAP_SIZE * i + LJ_SNAP_MCOFS,
			 (uint8_t)(i < 2 ? 0x25 : 0x27 + 7 * i));
	s.in.epoch = 8;
	compare_places(&s, &walk, mcode);
	lj_scene_free(&s);
}

/* Virtual frames of a snapshot that are kept in epoch 7. */
static struct lj_virtual *kept(struct lj_walk *walk)
{
	size_t i;

	for (i = 0; i < LJ_VIRTUALS; i++)
		if (walk->virtual[i].epoch == 7)
			return &walk->virtual[i];
	return NULL;
}

/* Gives a trace's number to another one, the like of it. */
static void number_of_another(struct lj_scene *s, uint32_t no)
{
	uint64_t at = s->img.traces + 8ULL * no, trace = lji_get64(&s->img, at);
	uint64_t other = lji_alloc(&s->img, LJ_TRACE_READ);
	int i;

	for (i = 0; i < LJ_TRACE_READ; i += 8)
		lji_put64(&s->img, other + i, lji_get64(&s->img, trace + i));
	lji_put64(&s->img, other + LJ_TRACE_STARTINS,
		  lji_get64(&s->img, other + LJ_TRACE_STARTINS) + 1);
	lji_put64(&s->img, at, other);
}

/* Virtual frames are kept for their trace, if all of them are constants of the trace. */
Test(walk_lj, virtual_frames_are_kept)
{
	static struct lj_walk walk;
	struct lj_scene s;
	char why[2048];

	open_scene(&s, scene_called("mcode_slots_on_stack"));
	s.in.epoch = 7;
	walk_host(&s.img.mem.mem, &s.in, &walk);
	cr_expect(lj_scene_check(&s, &walk, why, sizeof(why)), "%s", why);
	cr_expect_null(kept(&walk));
	lj_scene_free(&s);

	open_scene(&s, scene_called("mcode_inlined"));
	s.in.epoch = 7;
	walk_host(&s.img.mem.mem, &s.in, &walk);
	cr_assert_not_null(kept(&walk));
	cr_assert_gt(kept(&walk)->n, 0);
	kept(&walk)->n--; /* so that its use shows */
	s.in.sample++;
	walk_host_next(&s.img.mem.mem, &s.in, &walk);
	cr_expect_not(lj_scene_check(&s, &walk, why, sizeof(why)), "it was not used");
	number_of_another(&s, walk.trace);
	s.in.sample++;
	walk_host_next(&s.img.mem.mem, &s.in, &walk);
	cr_expect(lj_scene_check(&s, &walk, why, sizeof(why)), "of another trace: %s", why);
	lj_scene_free(&s);
}

/* What is kept of a trace is for that one only: with its number and at its address another may
 * lie. */
Test(walk_lj, another_trace_in_its_place)
{
	static struct lj_walk walk;
	struct lj_scene s;
	char why[2048];
	uint32_t fp;
	uint64_t trace;

	open_scene(&s, scene_called("mcode_inlined"));
	s.in.epoch = 7;
	walk_host(&s.img.mem.mem, &s.in, &walk);
	cr_assert_not_null(kept(&walk));
	kept(&walk)->n--; /* so that its use shows */
	fp = walk.rec.trace_fp;
	trace = lji_get64(&s.img, s.img.traces + 8ULL * walk.trace);
	lji_put64(&s.img, trace + LJ_TRACE_MCODE, lji_get64(&s.img, trace + LJ_TRACE_MCODE) - 16);
	lji_put32(&s.img, trace + LJ_TRACE_SZMCODE, 0xffff);
	s.in.regs.ip -= 16;
	s.in.sample++;
	walk_host_next(&s.img.mem.mem, &s.in, &walk);
	cr_expect(lj_scene_check(&s, &walk, why, sizeof(why)), "%s", why);
	cr_expect_neq(walk.rec.trace_fp, fp);
	lji_put64(&s.img, s.img.traces + 8ULL * walk.trace, 0);
	s.in.sample++;
	walk_host_next(&s.img.mem.mem, &s.in, &walk);
	cr_expect_eq(walk.end, LB_STATUS_BAD_TRACE, "it was flushed");
	lj_scene_free(&s);
}

/* How the walk of a scene ends with a word of it changed by so much. */
static enum lb_status end_with(const char *scene, uint64_t (*word)(struct lj_scene *s), uint64_t by)
{
	static struct lj_walk walk;
	struct lj_scene s;
	uint64_t addr;

	open_scene(&s, scene_called(scene));
	addr = word(&s);
	lji_put64(&s.img, addr, lji_get64(&s.img, addr) + by);
	walk_host(&s.img.mem.mem, &s.in, &walk);
	lj_scene_free(&s);
	return walk.end;
}

static uint64_t function_in_slot(struct lj_scene *s)
{
	return s->st.base - 16;
}

static uint64_t proto_of_function(struct lj_scene *s)
{
	return LJ_TV_GCPTR(lji_get64(&s->img, function_in_slot(s))) + LJ_FUNC_PC;
}

static uint64_t constants_of_proto(struct lj_scene *s)
{
	return lji_get64(&s->img, proto_of_function(s)) - LJ_PROTO_SIZE + LJ_PROTO_K;
}

static uint64_t first_constant(struct lj_scene *s)
{
	return lji_get64(&s->img, constants_of_proto(s)) - 8;
}

static uint64_t snapshots_of_trace(struct lj_scene *s)
{
	return lji_get64(&s->img, s->img.traces + 8 * 3) + LJ_TRACE_SNAP;
}

/*
 * No object has an unaligned address: none is read there, which the sanitizers of unit-san would
 * report. A damaged constant changes the fingerprint only.
 */
Test(walk_lj, not_aligned)
{
	uint64_t by;

	cr_expect_eq(end_with("calls", function_in_slot, 0), LB_STATUS_RESOLVED);
	cr_expect_eq(end_with("mcode_inlined", snapshots_of_trace, 0), LB_STATUS_RESOLVED);
	for (by = 1; by < 8; by++) {
		cr_expect_eq(end_with("calls", function_in_slot, by), LB_STATUS_STACK_CHANGING);
		cr_expect_eq(end_with("calls", proto_of_function, by), LB_STATUS_STACK_CHANGING);
		cr_expect_eq(end_with("calls", constants_of_proto, by), LB_STATUS_RESOLVED);
		cr_expect_eq(end_with("calls", first_constant, by), LB_STATUS_RESOLVED);
		if (by & 3)
			cr_expect_eq(end_with("mcode_inlined", snapshots_of_trace, by),
				     LB_STATUS_BAD_TRACE);
	}
}

/* ---- failing reads --------------------------------------------------------------------------- */

/* Are got's frames those of the resumer, which intact has below those of its first thread? */
static bool is_outer_thread(const struct lb_stack *got, const struct lb_stack *intact)
{
	uint32_t below = intact->n - got->n, n;

	if (!got->n || got->n >= intact->n || !(intact->frame[below].word >> 48 & LB_FRAME_THREAD))
		return false;
	for (n = 0; n < got->n; n++)
		if (!scene_is_true(&got->frame[n], &intact->frame[below + n]))
			return false;
	return true;
}

/*
 * GC32: the slot of a frame's function has no tag, so that a function or prototype that cannot be read
 * is taken for none, and another frame may be the topmost. Those of a function that runs are in
 * memory.
 */
static bool is_guess(struct lj_scene *s, uint64_t where)
{
	struct lj_image *img = &s->img;
	uint64_t at = where / 64 * 64 - img->heap_at; /* reads are made by such blocks */
	size_t i;

	for (i = 0; i < img->nobjects; i++) {
		uint32_t offset = img->objects[i].offset;
		uint8_t gct = img->heap[offset + LJI_OFF(img, FUNC_GCT)];

		if (at < offset + img->objects[i].size && offset < at + 64 &&
		    (gct == LJ_GCT_FUNC || gct == LJ_GCT_PROTO))
			return img->lj.gc32;
	}
	return false;
}

static const char *judge(const struct lj_scene *s, const struct lj_walk *got,
			 const struct lj_walk *intact)
{
	const struct lb_stack *g = &got->rec.stack, *i = &intact->rec.stack;
	const char *why = scene_bad_end((const struct lb_walk *)got);
	uint32_t n;

	if (why || got->end != LB_STATUS_RESOLVED)
		return why; /* lost, and counted: its frames are shown nowhere */
	if (intact->end != LB_STATUS_RESOLVED)
		return "resolved, the intact walk is not";
	if (s->vm_is_guess && got->g != intact->g)
		return NULL;
	/* LuaJIT 2.0 says nowhere which thread runs: it is the innermost that can be read */
	if ((s->inner_is_guess || s->in.build.lj.v20) && is_outer_thread(g, i))
		return NULL;
	for (n = 0; n < g->n && n < i->n; n++)
		if (!scene_is_true(&g->frame[n], &i->frame[n]))
			return "a wrong frame";
	if (s->resumer_is_guess && g->n < i->n && i->frame[n].word >> 48 & LB_FRAME_THREAD)
		return NULL;
	if (g->n < i->n && LB_FRAME_KIND(&i->frame[n]) == LB_FRAME_VM)
		return NULL; /* that another VM called it is shown only where all of that is read */
	if (g->n && g->n < i->n && g->flags & LB_SAMPLE_CUT)
		return NULL; /* the frames below could not be read */
	return g->n == i->n ? NULL : "resolved, but frames are missing or too many";
}

static void every_failure(const struct lj_scene_row *row, const struct lj_layout *lj,
			  const char *layout)
{
	static struct lj_walk intact, walk;
	char got[2048] = "", where[64];
	struct fail_each f;
	struct lj_scene s;
	const char *why;
	uint32_t steps;
	bool is_cut = false;

	lj_scene_init(&s, row, lj);
	walk_host(&s.img.mem.mem, &s.in, &intact);
	fail_each_init(&f, &s.img.mem.mem);
	while (!s.absent && fail_each_next(&f)) {
		steps = walk_host(&f.mem.mem, &s.in, &walk);
		why = is_guess(&s, f.where) ? scene_bad_end((const struct lb_walk *)&walk)
					    : judge(&s, &walk, &intact);
		if (why)
			lj_scene_check(&s, &walk, got, sizeof(got));
		cr_expect_null(why, "%s (%s), %s: %s: %s", row->name, layout,
			       fail_each_tell(&f, where, sizeof(where)), why, got);
		cr_expect_leq(steps, 2 * LB_MAX_STEPS, "%s", row->name);
		is_cut |= walk.end == LB_STATUS_RESOLVED && walk.rec.stack.flags & LB_SAMPLE_CUT;
	}
	cr_expect(is_cut || strcmp(row->name, "calls") != 0,
		  "%s: frames above others that cannot be read", layout);
	lj_scene_free(&s);
}

static void kth_fails(const struct lj_scene_row *row)
{
	const struct lj_layout *lj;
	const char *layout;
	size_t i;

	for (i = 0; (lj = lj_layout_scene(i, &layout)); i++)
		every_failure(row, lj, layout);
}

ParameterizedTestParameters(walk_lj, kth_read_fails)
{
	return scenes();
}

ParameterizedTest(size_t *share, walk_lj, kth_read_fails)
{
	each_scene(*share, kth_fails);
}
