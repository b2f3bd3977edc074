// SPDX-License-Identifier: BSD-2-Clause
/* Parts of unwind/puc/find.h by themselves; the whole is run scene by scene in test_walk_puc.c. */
#include <criterion/criterion.h>
#include <string.h>

#include <unwind/puc/unwind.h>

#include "puc_scene.h"
#include "detect/puc/recognise.h"

static struct puc_walk w;
static struct puc_scene s;

static void scene(const char *name, const char *release)
{
	const struct puc_layout *puc;
	const char *layout;
	size_t i;

	puc = puc_layout_of(release, &layout);
	cr_assert_not_null(puc, "%s", release);
	for (i = 0; puc_scene_at(i) && strcmp(puc_scene_at(i)->name, name); i++)
		;
	cr_assert_not_null(puc_scene_at(i), "%s", name);
	puc_scene_init(&s, puc_scene_at(i), puc);
	memset(&w, 0, sizeof(w));
	puc_set_build(&w, &s.in.build);
	w.stdlib = s.in.stdlib;
	w.regs = s.in.regs;
	w.gprs = s.in.gprs;
	w.vm_start = s.in.vm_start;
	w.vm_end = s.in.vm_end;
	w.text_lo = s.in.text_lo;
	w.text_hi = s.in.text_hi;
	w.gc_lo = s.in.gc_lo;
	w.gc_hi = s.in.gc_hi;
	w.stack_hi = s.in.stack_hi;
}

static void done(void)
{
	puc_scene_free(&s);
}

/* Takes the sample up to where it is known which lua_State runs. */
static int find(void)
{
	lb_begin(&w.cache, w.cache.sample + 1);
	return puc_walk_begin(&s.img.mem.mem, &w);
}

static int steps(void)
{
	int i;

	for (i = 0; i < LB_MAX_STEPS; i++)
		if (puc_step(&s.img.mem.mem, &w) != LB_MORE)
			break;
	return i;
}

static void put_L(uint16_t field, uint32_t size, uint64_t value)
{
	pui_put(&s.img, s.img.main_L + field, size, value);
}

/* The thread that ran last runs still: no search, and hardly a read. */
Test(find_puc, remembered, .fini = done)
{
	scene("calls", "5.4.6");
	w.L_hint = s.img.main_L;
	memset(&w.gprs, 0, sizeof(w.gprs));
	cr_assert_eq(find(), 0);
	cr_expect_eq(w.L, s.img.main_L);
	cr_expect_eq(w.L, s.img.main_L);
	cr_expect_eq(w.g, s.img.g);
}

Test(find_puc, in_a_register, .fini = done)
{
	size_t i;

	scene("calls", "5.4.6");
	for (i = 0; i < LB_GPRS; i++) {
		memset(&w.gprs, 0, sizeof(w.gprs));
		w.gprs.r[i] = s.img.main_L;
		cr_expect_eq(find(), 0, "register %zu", i);
		cr_expect_eq(w.L, s.img.main_L);
	}
}

/* Nothing that was found in a sample before is left in the next. */
Test(find_puc, forgets, .fini = done)
{
	scene("calls", "5.4.6");
	w.L_hint = s.img.main_L;
	cr_assert_eq(find(), 0);
	w.L_hint = 0;
	memset(&w.gprs, 0, sizeof(w.gprs));
	w.regs.sp = PUI_CSTACK_END - 256;
	w.regs.ip = PS_LIBC;
	cr_expect_eq(find(), 1);
	cr_expect_eq(w.L, 0);
	cr_expect_eq(w.g, 0);
	steps();
	cr_expect_eq(w.end, LB_STATUS_OUTSIDE);
}

/* errorJmp has to lie between sp and the end of the stack. */
Test(find_puc, bounds_of_the_stack, .fini = done)
{
	uint64_t lj;

	scene("calls", "5.4.6");
	lj = pui_get(&s.img, s.img.main_L + s.img.puc.L_errorJmp, 8);
	w.L_hint = s.img.main_L;
	w.regs.sp = lj;
	cr_expect_eq(find(), 0);
	w.regs.sp = lj + 8;
	cr_expect_eq(find(), 1);
	w.regs.sp = lj;
	w.stack_hi = lj + 8;
	cr_expect_eq(find(), 0);
	w.stack_hi = lj;
	cr_expect_eq(find(), 1);
}

Test(find_puc, pointers_that_are_none, .fini = done)
{
	static const uint64_t bad[] = {1, 8, 1ULL << 47, ~0ULL, ~7ULL, PUI_TEXT, 0x8000000000000};
	size_t i;

	scene("calls", "5.4.6");
	memset(&w.gprs, 0, sizeof(w.gprs));
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		w.L_hint = bad[i];
		cr_expect_eq(find(), 1, "%#lx", (unsigned long)bad[i]);
	}
	w.L_hint = s.img.main_L + 4;
	cr_expect_eq(find(), 1);
}

struct change {
	uint16_t field; /* of the lua_State */
	uint32_t size;
	uint64_t value;
};

static void is_not_active(const struct change *c)
{
	uint64_t was = pui_get(&s.img, s.img.main_L + c->field, c->size);

	put_L(c->field, c->size, c->value);
	cr_expect_eq(find(), 1, "%u: %#lx", c->field, (unsigned long)c->value);
	put_L(c->field, c->size, was);
	cr_expect_eq(find(), 0);
}

/* Each of the things that make a lua_State one that is active. */
Test(find_puc, not_active, .fini = done)
{
	const struct puc_layout *l = &s.img.puc;
	size_t i;

	scene("calls", "5.4.6");
	const struct change bad[] = {
		{PUC_GC_TT, 1, 7},
		{l->L_l_G, 8, 0},
		{l->L_l_G, 8, 0x666000},
		{l->L_ci, 8, 0},
		{l->L_ci, 8, pui_base_ci(&s.img, s.img.main_L)},
		{l->L_stack, 8, 0},
		{l->L_stack_last, 8, 0},
		{l->L_errorJmp, 8, 0x666000},
		{l->L_errorJmp, 8, ~7ULL},
	};

	w.L_hint = s.img.main_L;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		is_not_active(&bad[i]);
}

Test(find_puc, pc_inside)
{
	cr_expect(puc_pc_inside(0x1000, 64, 0x1000));
	cr_expect(puc_pc_inside(0x1000, 64, 0x1040), "behind the last");
	cr_expect_not(puc_pc_inside(0x1000, 64, 0x1044));
	cr_expect_not(puc_pc_inside(0x1000, 64, 0xffc));
	cr_expect_not(puc_pc_inside(0x1000, 64, 0x1002));
	cr_expect_not(puc_pc_inside(0x1000, 64, 0));
}

/* A register of the scene's own. */
Test(find_puc, any_pc)
{
	memset(&w, 0, sizeof(w));
	w.top.code_lo = 0x1000;
	w.top.code_size = 64;
	cr_expect_eq(puc_any_pc(&w), 0);
	w.gprs.r[3] = 0x1010;
	w.gprs.r[7] = 0x1014;
	w.gprs.r[15] = 0x100c;
	w.gprs.r[1] = 0x1044;
	cr_expect_eq(puc_any_pc(&w), 0x1014);
}

static int walk(void)
{
	w.rec.stack.n = 0;
	find();
	return steps();
}

/* Two coroutines deep: the search that the first sample needs is spared in the second. */
Test(find_puc, resumers_are_remembered, .fini = done)
{
	int first, then;
	uint32_t n;

	scene("resumed_by_argument", "5.4.6");
	w.L_hint = s.L;
	first = walk();
	n = w.rec.stack.n;
	cr_assert_eq(w.end, LB_STATUS_RESOLVED);
	then = walk();
	cr_expect_eq(w.end, LB_STATUS_RESOLVED);
	cr_expect_eq(w.rec.stack.n, n);
	cr_expect_lt(then, first, "%d steps, then %d", first, then);
}

/* The C stack ends near sp: the words behind the block's end are those of an earlier sample. */
Test(find_puc, words_of_an_earlier_sample, .fini = done)
{
	size_t i;

	scene("c_function", "5.4.6");
	put_L(s.img.puc.L_errorJmp, 8, w.regs.sp + 200);
	w.stack_hi = w.regs.sp + 208;
	w.L_hint = s.img.main_L;
	/* returns into the collector, from a call of the function that is outermost on the stack */
	pui_call_site(&s.img, PS_GC_SITE, PUI_TEXT + 0x6000 - 0x40);
	for (i = 0; i < PUC_BLOCK; i++)
		w.block.word[i] = PS_GC_SITE;
	walk();
	cr_expect_eq(w.end, LB_STATUS_RESOLVED);
	cr_expect_eq(w.state, 'C', "%c", w.state);
}

/* No lua_State is found in the bound of steps: it is not as deep as that of an earlier sample. */
Test(find_puc, depth_of_an_earlier_sample, .fini = done)
{
	scene("calls", "5.4.6");
	w.inner = 1;
	w.L_hint = 0;
	memset(&w.gprs, 0, sizeof(w.gprs));
	w.regs.ip = PS_LIBC;
	find();
	cr_expect_eq(w.inner, w.stack_hi);
}

Test(find_puc, resumed)
{
	uint64_t child = 0x10000, other, third;

	memset(&w, 0, sizeof(w));
	for (other = child + 16; puc_resumed(&w, other) != puc_resumed(&w, child); other += 16)
		;
	for (third = other + 16; puc_resumed(&w, third) != puc_resumed(&w, child); third += 16)
		;
	cr_expect_eq(puc_resumed_by(&w, child), 0);
	puc_note_resumed(&w, child, 1);
	puc_note_resumed(&w, other, 2);
	cr_expect_eq(puc_resumed_by(&w, child), 1);
	cr_expect_eq(puc_resumed_by(&w, other), 2);
	puc_note_resumed(&w, child, 3);
	puc_note_resumed(&w, other, 4);
	cr_expect_eq(puc_resumed_by(&w, child), 3);
	cr_expect_eq(puc_resumed_by(&w, other), 4);
	puc_note_resumed(&w, third, 5); /* in the place of the older */
	cr_expect_eq(puc_resumed_by(&w, child), 0);
	cr_expect_eq(puc_resumed_by(&w, other), 4);
	cr_expect_eq(puc_resumed_by(&w, third), 5);
}

/* ---- a lua_State and its VM in pages that share a place in the cache ------------------------- */

#define PAGE_L 0x210000000000ULL
#define PAGE_G (PAGE_L + 65ULL * LB_PAGE)
#define C_STACK 0x220000000000ULL

static uint64_t page_L[LB_PAGE / 8], page_g[LB_PAGE / 8];

static int read_pages(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr)
{
	(void)mem;
	if (addr - PAGE_L <= LB_PAGE - size)
		memcpy(dst, (char *)page_L + (addr - PAGE_L), size);
	else if (addr - PAGE_G <= LB_PAGE - size)
		memcpy(dst, (char *)page_g + (addr - PAGE_G), size);
	else
		return -1;
	return 0;
}

static void put_in(uint64_t *page, uint64_t offset, uint64_t value)
{
	memcpy((char *)page + offset, &value, sizeof(value));
}

/* What is read of the one is taken before the other is read. */
Test(find_puc, head_before_its_window_is_lost)
{
	const struct lb_mem mem = {.read = read_pages};
	const struct puc_layout *l;
	const char *layout;
	uint64_t at, main_L, g;

	l = puc_layout_of("5.1.5", &layout);
	cr_assert_not_null(l);
	cr_assert_eq(lb_page_index(PAGE_L), lb_page_index(PAGE_G));
	for (at = 0; at < LB_PAGE / 2; at += 16) {
		memset(&w, 0, sizeof(w));
		memset(page_L, 0xff, sizeof(page_L)); /* allowhook, too */
		memset(page_g, 0, sizeof(page_g));
		w.puc = *l;
		lb_begin(&w.cache, 1);
		w.search.floor = C_STACK;
		w.stack_hi = C_STACK + LB_PAGE;
		main_L = PAGE_G + at;
		g = main_L + l->L_size;
		put_in(page_L, PUC_GC_TT, PUC_TT_THREAD);
		put_in(page_L, l->L_l_G, g);
		put_in(page_L, l->L_ci, PAGE_L + 0x828);
		put_in(page_L, l->L_stack, PAGE_L + 0xa00);
		put_in(page_L, l->L_stack_last, PAGE_L + 0xf00);
		put_in(page_L, l->L_base_ci, PAGE_L + 0x800);
		put_in(page_L, l->L_errorJmp, C_STACK + 0x100);
		put_in(page_g, at + PUC_GC_TT, PUC_TT_THREAD);
		put_in(page_g, at + l->L_l_G, g);
		put_in(page_g, at + l->L_size + l->g_mainthread, main_L);
		cr_assert_eq(puc_try(&mem, &w, PAGE_L), C_STACK + 0x100);
		cr_expect_eq(w.search.try.hooked, 0, "main lua_State at %#lx", (unsigned long)at);
	}
}
