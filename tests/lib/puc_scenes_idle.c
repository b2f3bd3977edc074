// SPDX-License-Identifier: BSD-2-Clause
/* Nothing of a VM runs on this thread; or it is broken, and nothing of it may be shown. */
#include <string.h>

#include "puc_scene.h"

static void outside(struct puc_scene *s)
{
	s->end = LB_STATUS_OUTSIDE;
}

static void put_L(struct puc_scene *s, uint16_t field, uint32_t size, uint64_t value)
{
	pui_put(&s->img, s->img.main_L + field, size, value);
}

static void put_ci(struct puc_scene *s, uint16_t field, uint32_t size, uint64_t value)
{
	pui_put(&s->img, s->st.ci + field, size, value);
}

/* The host runs, with its lua_State in a variable; Lua was called before, and has returned. */
static void idle(struct puc_scene *s)
{
	ps_begin(s);
	pui_pop(&s->img, &s->st);
	put_L(s, s->img.puc.L_errorJmp, 8, 0);
	ps_clobber(s);
	s->img.gprs.r[PUI_RBX] = s->st.L;
	ps_sample(s, PUI_LIBC);
	outside(s);
}

static void never_ran(struct puc_scene *s)
{
	s->st.L = s->img.main_L;
	pui_word(&s->img, s->img.main_L);
	ps_sample(s, PUI_LIBC);
	outside(s);
}

/* The host has lua_load compile: protected, and no function runs. */
static void compiling(struct puc_scene *s)
{
	s->st.L = s->img.main_L;
	s->img.gprs.r[PUI_RBX] = s->img.main_L;
	pui_protect(&s->img, s->img.main_L);
	pui_enter(&s->img, PUI_TEXT + 0xe000, 8);
	ps_sample(s, PS_HELPER);
	outside(s);
}

/* The VM runs on another thread, whose C stack is elsewhere; this one has a pointer to it. */
static void on_other_thread(struct puc_scene *s)
{
	ps_begin(s);
	ps_in_vm(s, 3);
	put_L(s, s->img.puc.L_errorJmp, 8, PUI_CSTACK_END + 0x1000);
	ps_sample(s, PS_LIBC);
	outside(s);
}

static void errorJmp_below_sp(struct puc_scene *s)
{
	ps_begin(s);
	ps_in_vm(s, 3);
	put_L(s, s->img.puc.L_errorJmp, 8, s->img.sp - 256);
	ps_sample(s, PS_LIBC);
	outside(s);
}

/* Nobody protects it, and this thread does but remember it: its C stack knows nothing of it. */
static void unprotected_elsewhere(struct puc_scene *s)
{
	uint64_t sp = s->img.sp;

	ps_begin_unprotected(s);
	ps_in_vm(s, 3);
	s->img.sp = sp;
	ps_clobber(s);
	ps_sample(s, PS_LIBC);
	outside(s);
}

/* The same, and it holds a pointer to it: it waits for the lock, say. */
static void unprotected_elsewhere_seen(struct puc_scene *s)
{
	uint64_t sp = s->img.sp;

	ps_begin_unprotected(s);
	ps_in_vm(s, 3);
	s->img.sp = sp;
	pui_word(&s->img, s->st.L);
	ps_clobber(s);
	pui_enter(&s->img, PUI_LIBC + 0x400, 6);
	s->img.gprs.r[PUI_RBX] = s->st.L;
	ps_sample(s, PS_LIBC);
	outside(s);
}

static void no_vm(struct puc_scene *s)
{
	pui_c_code(&s->img, 300);
	ps_clobber(s);
	ps_sample(s, PS_LIBC);
	ps_only_hint(s, 0);
	outside(s);
}

/* A thread whose stack ends a few words above sp. */
static void short_stack(struct puc_scene *s)
{
	no_vm(s);
	s->in.stack_hi = s->in.regs.sp + 24;
}

static void sp_at_the_end(struct puc_scene *s)
{
	no_vm(s);
	s->in.stack_hi = s->in.regs.sp;
}

/* lua_newstate: before its first thread has a stack; and before global_State knows that thread. */
static void under_construction(struct puc_scene *s)
{
	const struct puc_layout *l = &s->img.puc;

	s->st.L = s->img.main_L;
	s->img.gprs.r[PUI_RBX] = s->img.main_L;
	put_L(s, l->L_stack, 8, 0);
	put_L(s, l->L_stack_last, 8, 0);
	put_L(s, l->L_ci, 8, 0);
	if (l->flags & PUC_CI_ARRAY)
		put_L(s, l->L_base_ci, 8, 0);
	pui_protect(&s->img, s->img.main_L);
	pui_enter(&s->img, PUI_TEXT + 0xe000, 8);
	ps_sample(s, PS_HELPER);
	outside(s);
}

static void without_mainthread(struct puc_scene *s)
{
	const struct puc_layout *l = &s->img.puc;

	ps_begin(s);
	ps_in_vm(s, 3);
	if (l->flags & PUC_MAIN_EMBEDDED)
		s->absent = true;
	else
		pui_put(&s->img, s->img.g + l->g_mainthread, 8, 0);
	outside(s);
}

/* lua_close: all is freed, the last being the stack and the lua_State. */
static void closing(struct puc_scene *s)
{
	uint64_t stack;

	ps_begin(s);
	pui_pop(&s->img, &s->st);
	stack = pui_get(&s->img, s->st.L + s->img.puc.L_stack, 8);
	memset(pui_at(&s->img, stack, 256), 0xdd, 256);
	ps_sample(s, PS_IP_GC);
	outside(s);
}

static void closed(struct puc_scene *s)
{
	const struct puc_layout *l = &s->img.puc;

	ps_begin(s);
	ps_in_vm(s, 3);
	memset(pui_at(&s->img, s->img.main_L, l->L_size), 0xdd, l->L_size);
	ps_only_hint(s, s->img.main_L);
	outside(s);
}

/* ---- broken ---------------------------------------------------------------------------------- */

/*
 * main calls f, which calls g, which runs. What is broken is f: of the topmost call one might think
 * that it is not made yet. s->st is that of f.
 */
static struct pui_fn broken(struct puc_scene *s)
{
	struct pui_stack of_f;
	struct pui_fn f;

	ps_begin(s);
	f = ps_func(s, 10);
	pui_call(&s->img, &s->st, 5, f);
	of_f = s->st;
	pui_call(&s->img, &s->st, 6, ps_func(s, 30));
	ps_in_vm(s, 3);
	s->st = of_f;
	s->lost = true;
	return f;
}

static void previous_is_itself(struct puc_scene *s)
{
	broken(s);
	if (s->img.puc.flags & PUC_CI_ARRAY)
		s->absent = true;
	else
		put_ci(s, s->img.puc.ci_previous, 8, s->st.ci);
}

static void previous_goes_round(struct puc_scene *s)
{
	uint64_t first;

	ps_begin(s);
	first = s->st.ci;
	pui_call(&s->img, &s->st, 5, ps_func(s, 10));
	pui_call(&s->img, &s->st, 5, ps_func(s, 10));
	ps_in_vm(s, 3);
	s->lost = true;
	if (s->img.puc.flags & PUC_CI_ARRAY)
		s->absent = true;
	else
		pui_put(&s->img, first + s->img.puc.ci_previous, 8, s->st.ci);
}

static void previous_is(struct puc_scene *s, uint64_t value)
{
	broken(s);
	if (s->img.puc.flags & PUC_CI_ARRAY)
		s->absent = true;
	else
		put_ci(s, s->img.puc.ci_previous, 8, value);
}

static void previous_is_null(struct puc_scene *s)
{
	previous_is(s, 0);
}

static void previous_is_nowhere(struct puc_scene *s)
{
	previous_is(s, 0x666000);
}

static void previous_is_kernel(struct puc_scene *s)
{
	previous_is(s, 0xffff888000000000ULL);
}

static void ci_nowhere(struct puc_scene *s)
{
	broken(s);
	put_L(s, s->img.puc.L_ci, 8, 0x666000);
}

static void ci_unaligned(struct puc_scene *s)
{
	broken(s);
	put_L(s, s->img.puc.L_ci, 8, pui_get(&s->img, s->st.L + s->img.puc.L_ci, 8) + 4);
}

/* 5.1: the walk must not run past the array's beginning. */
static void ci_below_base(struct puc_scene *s)
{
	broken(s);
	if (s->img.puc.flags & PUC_CI_ARRAY)
		put_L(s, s->img.puc.L_base_ci, 8, s->st.ci + 2 * s->img.puc.ci_size);
	else
		s->absent = true;
}

static void ci_between_elements(struct puc_scene *s)
{
	broken(s);
	if (s->img.puc.flags & PUC_CI_ARRAY)
		put_L(s, s->img.puc.L_base_ci, 8, pui_base_ci(&s->img, s->st.L) + 8);
	else
		s->absent = true;
}

/* Where the chain ends, no function was called: its slot is the first. */
static void base_is_none(struct puc_scene *s)
{
	broken(s);
	pui_put(&s->img, pui_base_ci(&s->img, s->st.L) + s->img.puc.ci_func, 8, s->st.func - 48);
}

/* A call's function lies where there is none, and what is there looks like one. */
static void func_is(struct puc_scene *s, uint64_t slot)
{
	put_ci(s, s->img.puc.ci_func, 8, slot);
	pui_put(&s->img, slot, 8, s->st.fn.value);
	pui_put(&s->img, slot + PUC_TV_TT, 4, s->st.fn.tt);
}

static void func_below_stack(struct puc_scene *s)
{
	uint64_t ci;

	broken(s);
	ci = pui_get(&s->img, s->st.L + s->img.puc.L_ci, 8);
	pui_pop(&s->img, &s->st); /* to main, so that the order is right */
	put_L(s, s->img.puc.L_ci, 8, ci);
	func_is(s, pui_get(&s->img, s->st.L + s->img.puc.L_stack, 8) - 16);
}

static void func_beyond_stack(struct puc_scene *s)
{
	broken(s);
	put_ci(s, s->img.puc.ci_func, 8,
	       pui_get(&s->img, s->st.L + s->img.puc.L_stack_last, 8) + 1024);
}

static void func_unaligned(struct puc_scene *s)
{
	broken(s);
	func_is(s, s->st.func + 4);
}

/* A call's function lies below that of the call which made it. */
static void func_out_of_order(struct puc_scene *s)
{
	broken(s);
	func_is(s, s->st.func - 16 * 8);
}

static void func_is_number(struct puc_scene *s)
{
	broken(s);
	pui_put(&s->img, s->st.func + PUC_TV_TT, 4, 3);
}

static void closure_nowhere(struct puc_scene *s)
{
	broken(s);
	pui_put(&s->img, s->st.func, 8, 0x666000);
}

/* What cannot be read is not what is not there yet. */
static void top_nowhere(struct puc_scene *s)
{
	broken(s);
	pui_put(&s->img, s->st.func + 16 * 6, 8, 0x666000);
}

static void proto_is(struct puc_scene *s, uint64_t value)
{
	struct pui_fn f = broken(s);

	pui_put(&s->img, f.value + s->img.puc.closure_p, 8, value);
}

static void proto_null(struct puc_scene *s)
{
	proto_is(s, 0);
}

static void proto_nowhere(struct puc_scene *s)
{
	proto_is(s, 0x666000);
}

static void proto_not_48_bits(struct puc_scene *s)
{
	struct pui_fn f = broken(s);
	uint64_t p = pui_proto_of(&s->img, f);

	pui_put(&s->img, f.value + s->img.puc.closure_p, 8, p | 1ULL << 60);
}

static void proto_is_string(struct puc_scene *s)
{
	struct pui_fn f = broken(s);

	pui_put(&s->img, pui_proto_of(&s->img, f) + PUC_GC_TT, 1, 4);
}

/* There cannot be so many instructions, and pc is among those that there are. */
static void sizecode_huge(struct puc_scene *s)
{
	ps_begin(s);
	pui_put(&s->img, pui_proto_of(&s->img, s->main) + s->img.puc.p_sizecode, 4, 0x7fffffff);
	ps_in_vm(s, 3);
	ps_want_lua(s, s->main, 3, LB_FRAME_THREAD);
}

static void sizecode_negative(struct puc_scene *s)
{
	struct pui_fn f = broken(s);

	pui_put(&s->img, pui_proto_of(&s->img, f) + s->img.puc.p_sizecode, 4, 0xffffffff);
}

/* C functions have an address in 48 bits, as anything that is sent. */
static void c_function_not_48_bits(struct puc_scene *s)
{
	ps_begin(s);
	ps_call_c(s, 5, PS_CFUNC | 1ULL << 55);
	ps_call_lua(s, ps_func(s, 10));
	ps_in_vm(s, 3);
	s->lost = true;
}

static void l_G_of_another(struct puc_scene *s)
{
	broken(s);
	put_L(s, s->img.puc.L_l_G, 8, s->img.g + 16);
}

/* The chain of a coroutine's lua_longjmps has to go outwards, and to stay on the C stack. */
static void longjmp_is(struct puc_scene *s, uint64_t offset)
{
	uint64_t lj;

	ps_begin(s);
	ps_call_c(s, 5, PS_CFUNC);
	ps_resume_lua(s, pui_thread(&s->img), ps_func(s, 10));
	ps_in_vm(s, 3);
	lj = pui_get(&s->img, s->L + s->img.puc.L_errorJmp, 8);
	pui_put(&s->img, lj + PUC_LONGJMP_PREVIOUS, 8, lj + offset);
	s->end = LB_STATUS_STACK_CHANGING;
	s->inner_is_guess = true;
}

static void longjmp_is_itself(struct puc_scene *s)
{
	longjmp_is(s, 0);
}

static void longjmp_goes_inwards(struct puc_scene *s)
{
	longjmp_is(s, -64ULL);
}

static void longjmp_unaligned(struct puc_scene *s)
{
	longjmp_is(s, 12);
}

static void longjmp_beyond(struct puc_scene *s)
{
	longjmp_is(s, 1 << 20);
}

static void L_unaligned(struct puc_scene *s)
{
	uint32_t i;

	ps_begin(s);
	s->img.sp = PUI_CSTACK_END - 1024;
	for (i = 0; i < LB_GPRS; i++)
		s->img.gprs.r[i] = s->st.L + 1 + i % 7;
	ps_sample(s, PS_LIBC);
	ps_only_hint(s, s->st.L + 4);
	s->lost = true;
}

const struct puc_scene_row puc_scenes_idle[] = {
	{"idle", idle},
	{"never_ran", never_ran},
	{"compiling", compiling},
	{"on_other_thread", on_other_thread},
	{"errorJmp_below_sp", errorJmp_below_sp},
	{"unprotected_elsewhere", unprotected_elsewhere},
	{"unprotected_elsewhere_seen", unprotected_elsewhere_seen},
	{"no_vm", no_vm},
	{"short_stack", short_stack},
	{"sp_at_the_end", sp_at_the_end},
	{"under_construction", under_construction},
	{"without_mainthread", without_mainthread},
	{"closing", closing},
	{"closed", closed},
	{"previous_is_itself", previous_is_itself},
	{"previous_goes_round", previous_goes_round},
	{"previous_is_null", previous_is_null},
	{"previous_is_nowhere", previous_is_nowhere},
	{"previous_is_kernel", previous_is_kernel},
	{"ci_nowhere", ci_nowhere},
	{"ci_unaligned", ci_unaligned},
	{"ci_below_base", ci_below_base},
	{"ci_between_elements", ci_between_elements},
	{"base_is_none", base_is_none},
	{"func_below_stack", func_below_stack},
	{"func_beyond_stack", func_beyond_stack},
	{"func_unaligned", func_unaligned},
	{"func_out_of_order", func_out_of_order},
	{"func_is_number", func_is_number},
	{"closure_nowhere", closure_nowhere},
	{"top_nowhere", top_nowhere},
	{"proto_null", proto_null},
	{"proto_nowhere", proto_nowhere},
	{"proto_not_48_bits", proto_not_48_bits},
	{"proto_is_string", proto_is_string},
	{"sizecode_huge", sizecode_huge},
	{"sizecode_negative", sizecode_negative},
	{"c_function_not_48_bits", c_function_not_48_bits},
	{"l_G_of_another", l_G_of_another},
	{"longjmp_is_itself", longjmp_is_itself},
	{"longjmp_goes_inwards", longjmp_goes_inwards},
	{"longjmp_unaligned", longjmp_unaligned},
	{"longjmp_beyond", longjmp_beyond},
	{"L_unaligned", L_unaligned},
	{NULL, NULL},
};
