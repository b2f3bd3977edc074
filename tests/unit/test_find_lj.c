// SPDX-License-Identifier: BSD-2-Clause
/* Parts of unwind/lj/find.h by themselves; the whole is run scene by scene in test_walk_lj.c. */
#include <criterion/criterion.h>
#include <string.h>

#include "lj_scene.h"
#include "lj_layouts.h"

static struct lj_walk w;
static struct lj_scene s;

static void scene(const char *name)
{
	const struct lj_layout *lj;
	const char *layout;
	size_t i;

	lj = lj_layout_scene(0, &layout);
	for (i = 0; lj_scene_at(i) && strcmp(lj_scene_at(i)->name, name); i++)
		;
	cr_assert_not_null(lj_scene_at(i), "%s", name);
	lj_scene_init(&s, lj_scene_at(i), lj);
	w.lj = *lj;
	w.vm_start = s.in.vm_start;
	w.vm_end = s.in.vm_end;
	w.stack_hi = s.in.stack_hi;
	lb_begin(&w.cache, 1);
}

static void done(void)
{
	lj_scene_free(&s);
}

static int find(uint64_t g)
{
	lb_begin(&w.cache, w.cache.sample + 1);
	return lj_find_vm(&s.img.mem.mem, &w, &s.in.regs, g);
}

Test(find_lj, state_letters)
{
	static const char letters[] = "JJJJGCIC"; /* ASM .. INTERP, and before there is one */
	int state;

	for (state = LJ_VMST_ASM; state <= 0; state++)
		cr_expect_eq(lj_state_letter(state), letters[state - LJ_VMST_ASM], "%d", state);
	cr_expect_eq(lj_state_letter(1), 'N');
	cr_expect_eq(lj_state_letter(65535), 'N');
	cr_expect_eq(lj_state_letter(-8), 'J');
}

Test(find_lj, vm, .fini = done)
{
	scene("calls");
	cr_assert_eq(find(s.img.g), 0);
	cr_expect_eq(w.g, s.img.g);
	cr_expect_eq(w.L, s.img.main_L);
	cr_expect_eq(w.cframe, s.cframe);
	cr_expect_eq(w.vmstate, LJ_VMST_INTERP);
	cr_expect_eq(w.base, s.st.base);
	cr_expect_eq(w.state, 'I');
}

/* The cframe has to lie between sp and the end of the stack, as a whole. */
Test(find_lj, bounds_of_the_stack, .fini = done)
{
	scene("calls");
	s.in.regs.sp = s.cframe;
	cr_expect_eq(find(s.img.g), 0);
	s.in.regs.sp = s.cframe + 8;
	cr_expect_eq(find(s.img.g), -1);
	s.in.regs.sp = s.cframe;
	w.stack_hi = s.cframe + s.img.lj.cframe_size;
	cr_expect_eq(find(s.img.g), 0);
	w.stack_hi--;
	cr_expect_eq(find(s.img.g), -1);
}

Test(find_lj, pointers_that_are_none, .fini = done)
{
	static const uint64_t bad[] = {0, 1, 8, 1ULL << 47, ~0ULL, ~7ULL};
	size_t i;

	scene("calls");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(find(bad[i]), -1);
	cr_expect_eq(find(s.img.g + 4), -1);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		lji_run(&s.img, bad[i]);
		cr_expect_eq(find(s.img.g), -1);
	}
}

Test(find_lj, fit, .fini = done)
{
	const struct lb_mem *mem = &s.img.mem.mem;
	uint64_t base, pc;

	scene("calls");
	cr_assert_eq(find(s.img.g), 0);
	base = s.st.base;
	pc = lji_bc(&s.img, LJ_TV_GCPTR(lji_get64(&s.img, base - 16)), 0);
	cr_expect_eq(lj_fit(mem, &w, base, pc), LJ_FIT_LUA);
	cr_expect_eq(lj_fit(mem, &w, base, pc + 4 * 64), LJ_FIT_LUA, "behind the last");
	cr_expect_eq(lj_fit(mem, &w, base, pc + 4 * 65), LJ_FIT_OTHER);
	cr_expect_eq(lj_fit(mem, &w, base, pc - 4), LJ_FIT_OTHER);
	cr_expect_eq(lj_fit(mem, &w, base, pc + 2), LJ_FIT_OTHER, "not aligned");
	cr_expect_eq(lj_fit(mem, &w, base + 8, pc), LJ_FIT_NOT, "a link");
	cr_expect_eq(lj_fit(mem, &w, base + 1, pc), LJ_FIT_NOT);
	cr_expect_eq(lj_fit(mem, &w, w.stack, pc), LJ_FIT_NOT);
	cr_expect_eq(lj_fit(mem, &w, w.maxstack + 8 * 65, pc), LJ_FIT_NOT);
}

Test(find_lj, sites)
{
	static struct lj_build build;

	build.rbp_site[0] = 1 << 3;
	build.rbp_site[LB_VM_TEXT / 8 - 1] = 1 << 7;
	cr_expect(lj_site(build.rbp_site, 3));
	cr_expect_not(lj_site(build.rbp_site, 2));
	cr_expect_not(lj_site(build.rbp_site, 4));
	cr_expect(lj_site(build.rbp_site, LB_VM_TEXT - 1));
	cr_expect_not(lj_site(build.rbp_site, LB_VM_TEXT + 3));
	cr_expect_not(lj_site(build.rbp_site, -1ULL));
}
