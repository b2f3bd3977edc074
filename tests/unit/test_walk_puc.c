// SPDX-License-Identifier: BSD-2-Clause
/*
 * The walker of PUC Lua over built images: each scene is a test, run for every known layout, and
 * for all that the thread may remember; and again with reads that fail.
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

#include <unwind/puc/unwind.h>

#include "fail_each.h"
#include "puc_scene.h"
#include "detect/puc/recognise.h"
#include "walk_host.h"

static struct criterion_test_params scenes(void)
{
	return cr_make_param_array(size_t, scene_shares(), SCENE_SHARES);
}

static void each_scene(size_t share, void (*run)(const struct puc_scene_row *row))
{
	const struct puc_scene_row *row;
	size_t i;

	for (i = share; (row = puc_scene_at(i)); i += SCENE_SHARES)
		run(row);
}

Test(walk_puc, every_share_has_scenes)
{
	const char *name;

	cr_assert_not_null(puc_scene_at(SCENE_SHARES - 1));
	cr_assert_not_null(puc_layout_row(1, &name));
	cr_assert_null(puc_layout_row(1000, &name));
}

/* A scene that no version has would test nothing. */
static void some_version_has(const struct puc_scene_row *row)
{
	const struct puc_layout *puc;
	struct puc_scene s;
	const char *layout;
	size_t i, n = 0;

	for (i = 0; (puc = puc_layout_row(i, &layout)); i++) {
		puc_scene_init(&s, row, puc);
		n += !s.absent;
		puc_scene_free(&s);
	}
	cr_expect_gt(n, 0, "%s", row->name);
}

ParameterizedTestParameters(walk_puc, exists)
{
	return scenes();
}

ParameterizedTest(size_t *share, walk_puc, exists)
{
	each_scene(*share, some_version_has);
}

static void every_hint(const struct puc_scene_row *row, const struct puc_layout *puc,
		       const char *layout)
{
	static struct puc_walk walk;
	struct puc_scene s;
	char why[2048];
	uint32_t steps, i;

	puc_scene_init(&s, row, puc);
	for (i = 0; !s.absent && puc_scene_hint(&s, i); i++) {
		steps = walk_host_puc(&s.img.mem.mem, &s.in, &walk);
		cr_expect(puc_scene_check(&s, &walk, why, sizeof(why)), "%s (%s), hint %u: %s",
			  row->name, layout, i, why);
		cr_expect_leq(steps, LB_MAX_STEPS, "%s", row->name);
	}
	puc_scene_free(&s);
}

static void every_layout(const struct puc_scene_row *row)
{
	const struct puc_layout *puc;
	const char *layout;
	size_t i;

	for (i = 0; (puc = puc_layout_row(i, &layout)); i++)
		every_hint(row, puc, layout);
}

ParameterizedTestParameters(walk_puc, scene)
{
	return scenes();
}

ParameterizedTest(size_t *share, walk_puc, scene)
{
	each_scene(*share, every_layout);
}

/* A host's main loop is no resumer: words on its stack are not followed. */
Test(walk_puc, reads_for_a_host)
{
	const struct puc_layout *puc;
	const char *layout;
	size_t i, row = 0;

	while (strcmp(puc_scene_at(row)->name, "coroutine_by_host_loop"))
		row++;
	for (i = 0; (puc = puc_layout_row(i, &layout)); i++) {
		static struct puc_walk walk;
		struct mem_counting counting;
		uint32_t reads, failed;
		struct puc_scene s;

		puc_scene_init(&s, puc_scene_at(row), puc);
		puc_scene_hint(&s, 1);
		mem_counting_init(&counting, &s.img.mem.mem, &reads, &failed);
		walk_host_puc(&counting.mem, &s.in, &walk);
		cr_expect_eq(walk.end, LB_STATUS_RESOLVED);
		cr_expect_eq(failed, 0, "%s: %u of %u reads fail", layout, failed, reads);
		cr_expect_leq(reads, 16, "%s: %u reads", layout, reads);
		puc_scene_free(&s);
	}
}

/* Fingerprints belong to the prototype, not to the address of its function or to the sample. */
static void fingerprints(const struct puc_layout *puc)
{
	static struct puc_walk a, b;
	struct puc_scene s;
	uint64_t name;

	puc_scene_init(&s, &puc_scenes_frames[1], puc);
	walk_host_puc(&s.img.mem.mem, &s.in, &a);
	s.in.sample++;
	walk_host_puc(&s.img.mem.mem, &s.in, &b);
	cr_assert_eq(a.rec.stack.n, 3);
	cr_expect_neq(a.rec.stack.frame[0].fp, 0);
	cr_expect_neq(a.rec.stack.frame[0].fp, a.rec.stack.frame[1].fp);
	cr_expect_arr_eq(a.rec.stack.frame, b.rec.stack.frame, 3 * sizeof(struct lb_frame));
	pui_put(&s.img, LB_FRAME_PTR(&a.rec.stack.frame[0]) + puc->p_linedefined, 4, 31);
	walk_host_puc(&s.img.mem.mem, &s.in, &b);
	cr_expect_neq(a.rec.stack.frame[0].fp, b.rec.stack.frame[0].fp);
	cr_expect_eq(a.rec.stack.frame[1].fp, b.rec.stack.frame[1].fp);
	name = pui_get(&s.img, LB_FRAME_PTR(&a.rec.stack.frame[1]) + puc->p_source, 8);
	pui_put(&s.img, name + 12, 4, 0x12345678); /* hash */
	pui_put(&s.img, name + 16, 8, 0x1234);	   /* length */
	s.in.sample++;
	walk_host_puc(&s.img.mem.mem, &s.in, &b);
	cr_expect_neq(a.rec.stack.frame[1].fp, b.rec.stack.frame[1].fp, "another name");
	puc_scene_free(&s);
}

Test(walk_puc, fingerprints)
{
	const struct puc_layout *puc;
	const char *layout;
	size_t i;

	for (i = 0; (puc = puc_layout_row(i, &layout)); i++)
		fingerprints(puc);
}

/* ---- what an earlier sample has proved ------------------------------------------------------- */

/* Each scene comes out the same. */
Test(walk_puc, proved)
{
	static struct puc_walk walk;
	const struct puc_layout *puc;
	const struct puc_scene_row *row;
	const char *layout;
	struct puc_scene s;
	char why[2048];
	size_t i, n, again;

	for (i = 0; (puc = puc_layout_row(i, &layout)); i++) {
		for (n = 0; (row = puc_scene_at(n)); n++) {
			puc_scene_init(&s, row, puc);
			s.in.epoch = 7;
			walk_host_puc(&s.img.mem.mem, &s.in, &walk);
			for (again = 0; again < 2; again++) {
				s.in.sample++;
				walk_host_puc_next(&s.img.mem.mem, &s.in, &walk);
				cr_expect(s.absent || puc_scene_check(&s, &walk, why, sizeof(why)),
					  "%s (%s): %s", row->name, layout, why);
			}
			puc_scene_free(&s);
		}
	}
}

/* calls(): three Lua functions. */
static void prove_begin(struct puc_scene *s, const struct puc_layout *puc, struct puc_walk *walk)
{
	puc_scene_init(s, &puc_scenes_frames[1], puc);
	s->in.epoch = 7;
	walk_host_puc(&s->img.mem.mem, &s->in, walk);
	cr_assert_eq(walk->rec.stack.n, 3);
}

static void prove_next(struct puc_scene *s, struct puc_walk *walk)
{
	s->in.sample++;
	walk_host_puc_next(&s->img.mem.mem, &s->in, walk);
	cr_expect_eq(walk->end, LB_STATUS_RESOLVED);
	cr_assert_eq(walk->rec.stack.n, 3);
}

/* A fingerprint counts in the epoch in which it was made, and in no other. */
static void epoch_ends(const struct puc_layout *puc)
{
	static struct puc_walk walk;
	struct lb_frame before[3];
	struct puc_scene s;
	uint32_t i;

	prove_begin(&s, puc, &walk);
	memcpy(before, walk.rec.stack.frame, sizeof(before));
	for (i = 0; i < 3; i++)
		pui_put(&s.img, LB_FRAME_PTR(&before[i]) + puc->p_linedefined, 4, 77 + i);
	prove_next(&s, &walk);
	cr_expect_arr_eq(walk.rec.stack.frame, before, sizeof(before));
	s.in.epoch = 8;
	prove_next(&s, &walk);
	for (i = 0; i < 3; i++)
		cr_expect_neq(walk.rec.stack.frame[i].fp, before[i].fp, "frame %u", i);
	s.in.epoch = 0;
	for (i = 0; i < 3; i++)
		pui_put(&s.img, LB_FRAME_PTR(&before[i]) + puc->p_linedefined, 4, 7 + i);
	memcpy(before, walk.rec.stack.frame, sizeof(before));
	prove_next(&s, &walk);
	for (i = 0; i < 3; i++)
		cr_expect_neq(walk.rec.stack.frame[i].fp, before[i].fp, "frame %u", i);
	puc_scene_free(&s);
}

static uint64_t previous(struct puc_scene *s, uint64_t ci)
{
	const struct puc_layout *puc = &s->img.puc;

	return puc->flags & PUC_CI_ARRAY ? ci - puc->ci_size
					 : pui_get(&s->img, ci + puc->ci_previous, 8);
}

static uint64_t closure_of(struct puc_scene *s, uint64_t ci)
{
	return pui_get(&s->img, pui_get(&s->img, ci + s->img.puc.ci_func, 8), 8);
}

static void swap(struct puc_scene *s, uint64_t a, uint64_t b)
{
	uint64_t word = pui_get(&s->img, a, 8);

	pui_put(&s->img, a, 8, pui_get(&s->img, b, 8));
	pui_put(&s->img, b, 8, word);
}

/* A closure at the address of another one is recognised by savedpc. */
static void another_closure(const struct puc_layout *puc)
{
	static struct puc_walk walk, fresh;
	uint64_t ci[3], proto[3];
	struct puc_scene s;
	uint32_t i;

	prove_begin(&s, puc, &walk);
	for (i = 0; i < 3; i++) {
		ci[i] = i ? previous(&s, ci[i - 1]) : s.st.ci;
		proto[i] = LB_FRAME_PTR(&walk.rec.stack.frame[i]);
	}
	/* each of the two below gets the other's prototype, and stands in its code */
	swap(&s, closure_of(&s, ci[1]) + puc->closure_p, closure_of(&s, ci[2]) + puc->closure_p);
	swap(&s, ci[1] + puc->ci_savedpc, ci[2] + puc->ci_savedpc);
	prove_next(&s, &walk);
	cr_expect_eq(LB_FRAME_PTR(&walk.rec.stack.frame[1]), proto[2]);
	cr_expect_eq(LB_FRAME_PTR(&walk.rec.stack.frame[2]), proto[1]);
	walk_host_puc(&s.img.mem.mem, &s.in, &fresh);
	cr_expect_arr_eq(walk.rec.stack.frame, fresh.rec.stack.frame, 3 * sizeof(struct lb_frame));
	puc_scene_free(&s);
}

/* A C closure that has resumed a coroutine, at the address of a Lua closure that was proved; its CallInfo still has
 * that one's savedpc. The tag of the slot is the same in versions with one for both kinds. */
static void c_closure(const struct puc_layout *puc)
{
	static struct puc_walk walk;
	uint64_t ci, closure, c, lua;
	struct puc_scene s;
	char why[2048];

	/* "coroutine" */
	puc_scene_init(&s, &puc_scenes_threads[2], puc);
	ci = pui_get(&s.img, s.img.main_L + puc->L_ci, 8);
	closure = closure_of(&s, ci);
	lua = closure_of(&s, previous(&s, ci));
	c = pui_get(&s.img, closure + puc->closure_p, 8);
	pui_put(&s.img, ci + puc->ci_savedpc, 8,
		pui_get(&s.img, previous(&s, ci) + puc->ci_savedpc, 8));
	pui_put(&s.img, closure + puc->closure_isC, 1, 0);
	pui_put(&s.img, closure + puc->closure_p, 8, pui_get(&s.img, lua + puc->closure_p, 8));
	s.in.epoch = 7;
	walk_host_puc(&s.img.mem.mem, &s.in, &walk);
	cr_assert_eq(LB_FRAME_KIND(&walk.rec.stack.frame[1]), LB_FRAME_LUA);
	pui_put(&s.img, closure + puc->closure_isC, 1, 1);
	pui_put(&s.img, closure + puc->closure_p, 8, c);
	s.in.sample++;
	walk_host_puc_next(&s.img.mem.mem, &s.in, &walk);
	cr_expect(puc_scene_check(&s, &walk, why, sizeof(why)), "%s", why);
	puc_scene_free(&s);
}

Test(walk_puc, epoch)
{
	const struct puc_layout *puc;
	const char *layout;
	size_t i;

	for (i = 0; (puc = puc_layout_row(i, &layout)); i++) {
		epoch_ends(puc);
		another_closure(puc);
		if (puc->closure_isC != PUC_NONE)
			c_closure(puc);
	}
}

/* ---- failing reads --------------------------------------------------------------------------- */

/* The length of the frames of one lua_State. */
static uint32_t segment(const struct lb_frame *f, uint32_t n)
{
	uint32_t i = 1;

	while (i < n && !(LB_FRAME_FLAGS(&f[i]) & LB_FRAME_THREAD) &&
	       LB_FRAME_KIND(&f[i]) != LB_FRAME_VM)
		i++;
	return i;
}

/*
 * The search of the C stack is a heuristic: it cannot recognise a lua_State that cannot be read. So
 * it may miss the innermost one, or one that resumed it. But each lua_State that is found is
 * complete and true; of the last one of a cut stack, the frames that are there are true.
 */
static bool segments_are_true(const struct lb_stack *got, const struct lb_stack *intact)
{
	uint32_t g = 0, i = 0, k, n;

	for (; i < intact->n && g < got->n; i += n) {
		n = segment(&intact->frame[i], intact->n - i);
		for (k = 0; k < n && g + k < got->n; k++)
			if (!scene_is_true(&got->frame[g + k], &intact->frame[i + k]))
				break;
		if (k == n || (got->flags & LB_SAMPLE_CUT && g + k == got->n))
			g += k;
	}
	return g == got->n;
}

static const char *judge(const struct puc_scene *s, const struct puc_walk *got,
			 const struct puc_walk *intact)
{
	const char *why = scene_bad_end((const struct lb_walk *)got);

	if (why || got->end != LB_STATUS_RESOLVED)
		return why; /* lost, and counted: its frames are shown nowhere */
	if (s->inner_is_guess && got->L != intact->L)
		return NULL;
	/* a stack that is cut was not followed to what is wrong with it */
	if (intact->end != LB_STATUS_RESOLVED && !(got->rec.stack.flags & LB_SAMPLE_CUT))
		return "resolved, the intact walk is not";
	if (!got->rec.stack.n || !segments_are_true(&got->rec.stack, &intact->rec.stack))
		return "a wrong stack";
	if (got->L == intact->L && got->state != intact->state)
		return "a wrong state";
	return NULL;
}

static void with_failing_reads(struct puc_scene *s, const char *name)
{
	static struct puc_walk intact, walk;
	char got[2048] = "", where[64];
	struct fail_each f;
	const char *why;
	uint32_t steps;

	walk_host_puc(&s->img.mem.mem, &s->in, &intact);
	fail_each_init(&f, &s->img.mem.mem);
	while (fail_each_next(&f)) {
		steps = walk_host_puc(&f.mem.mem, &s->in, &walk);
		why = judge(s, &walk, &intact);
		if (why)
			puc_scene_check(s, &walk, got, sizeof(got));
		cr_expect_null(why, "%s (%u), %s: %s: %s", name, s->img.puc.version,
			       fail_each_tell(&f, where, sizeof(where)), why, got);
		cr_expect_leq(steps, LB_MAX_STEPS, "%s", name);
	}
}

static void every_failure(const struct puc_scene_row *row, const struct puc_layout *puc)
{
	struct puc_scene s;
	uint32_t hint;

	puc_scene_init(&s, row, puc);
	for (hint = 0; !s.absent && hint < 2 && puc_scene_hint(&s, hint); hint++)
		with_failing_reads(&s, row->name);
	puc_scene_free(&s);
}

/* The walker's ways differ by version, not by layout. */
static bool is_last_of_version(size_t i)
{
	const struct puc_layout *puc, *next;
	const char *name;

	puc = puc_layout_row(i, &name);
	next = puc_layout_row(i + 1, &name);
	return !next || next->version != puc->version;
}

static void kth_fails(const struct puc_scene_row *row)
{
	const struct puc_layout *puc;
	const char *layout;
	size_t i;

	for (i = 0; (puc = puc_layout_row(i, &layout)); i++)
		if (is_last_of_version(i))
			every_failure(row, puc);
}

ParameterizedTestParameters(walk_puc, kth_read_fails)
{
	return scenes();
}

ParameterizedTest(size_t *share, walk_puc, kth_read_fails)
{
	each_scene(*share, kth_fails);
}
