// SPDX-License-Identifier: BSD-2-Clause
/* Which lua_State runs, of several that the C stack leads to; and who resumed it. */
#include <string.h>

#include "puc_scene.h"

#define THREAD LB_FRAME_THREAD

enum { LUA_YIELD = 1, LUA_ERRRUN = 2 }; /* L->status (lua.h) */

/* main calls coroutine.resume at 5, which resumes a coroutine that runs f. */
static struct pui_fn one_coroutine(struct puc_scene *s)
{
	struct pui_fn f;

	ps_begin(s);
	f = ps_func(s, 10);
	ps_call_c(s, 5, PS_CFUNC);
	ps_resume_lua(s, pui_thread(&s->img), f);
	return f;
}

static void want_one_coroutine(struct puc_scene *s, struct pui_fn f, uint32_t pos)
{
	ps_want_lua(s, f, pos, THREAD);
	ps_want_c(s, PS_CFUNC, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

static void coroutine(struct puc_scene *s)
{
	struct pui_fn f = one_coroutine(s);

	ps_in_vm(s, 3);
	want_one_coroutine(s, f, 3);
}

static void coroutine_in_helper(struct puc_scene *s)
{
	struct pui_fn f = one_coroutine(s);

	ps_in_helper(s, 3);
	want_one_coroutine(s, f, 3);
}

static void coroutine_in_c(struct puc_scene *s)
{
	struct pui_fn f = one_coroutine(s);

	ps_call_c(s, 9, PS_CFUNC2);
	ps_in_c(s);
	ps_want_c(s, PS_CFUNC2, THREAD);
	ps_want_lua(s, f, 9, 0);
	ps_want_c(s, PS_CFUNC, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

static void three_deep(struct puc_scene *s)
{
	struct pui_fn f = one_coroutine(s), g = ps_func(s, 30);

	ps_hint(s, s->st.L);
	ps_call_c(s, 7, PS_CFUNC2);
	ps_resume_lua(s, pui_thread(&s->img), g);
	ps_hint(s, s->st.L);
	ps_hint(s, s->img.main_L);
	ps_hint(s, 0);
	ps_in_vm(s, 4);
	ps_want_lua(s, g, 4, THREAD);
	ps_want_c(s, PS_CFUNC2, THREAD);
	ps_want_lua(s, f, 7, 0);
	ps_want_c(s, PS_CFUNC, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

/* The same, in a C function with a buffer, far from whoever pushed a lua_State last. */
static void three_deep_in_c(struct puc_scene *s)
{
	struct pui_fn f = one_coroutine(s), g = ps_func(s, 30);

	ps_call_c(s, 7, PS_CFUNC2);
	ps_resume_lua(s, pui_thread(&s->img), g);
	ps_call_c(s, 9, PS_CFUNC);
	pui_c_code(&s->img, 200);
	ps_clobber(s);
	ps_in_c(s);
	ps_want_c(s, PS_CFUNC, THREAD);
	ps_want_lua(s, g, 9, 0);
	ps_want_c(s, PS_CFUNC2, THREAD);
	ps_want_lua(s, f, 7, 0);
	ps_want_c(s, PS_CFUNC, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

/* The resumer is not the lua_State that lies nearest above: all that C code knows main, too. */
static void main_is_everywhere(struct puc_scene *s)
{
	struct pui_fn f = one_coroutine(s), g = ps_func(s, 30);

	ps_call_c(s, 7, PS_CFUNC2);
	pui_c_code(&s->img, 30);
	pui_word(&s->img, s->img.main_L);
	pui_word(&s->img, s->img.main_L);
	ps_resume_lua(s, pui_thread(&s->img), g);
	pui_word(&s->img, s->img.main_L);
	ps_in_helper(s, 4);
	ps_want_lua(s, g, 4, THREAD);
	ps_want_c(s, PS_CFUNC2, THREAD);
	ps_want_lua(s, f, 7, 0);
	ps_want_c(s, PS_CFUNC, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

enum { NEST = 12 };

static void nest(struct puc_scene *s)
{
	struct pui_fn f[NEST];
	uint32_t i;

	ps_begin(s);
	f[0] = s->main;
	for (i = 1; i < NEST; i++) {
		f[i] = ps_func(s, 10 * (int)i);
		ps_call_c(s, i, PS_CFUNC);
		ps_resume_lua(s, pui_thread(&s->img), f[i]);
	}
	ps_in_vm(s, i);
	ps_want_lua(s, f[NEST - 1], NEST, THREAD);
	while (--i) {
		ps_want_c(s, PS_CFUNC, THREAD);
		ps_want_lua(s, f[i - 1], i, 0);
	}
}

/* A hook in C is called without a CallInfo of its own, and resumes another thread. */
static void hook_resumes(struct puc_scene *s)
{
	struct pui_fn f;

	ps_begin(s);
	f = ps_func(s, 10);
	ps_helper(s, 22, 3);
	ps_hook(s);
	pui_enter(&s->img, PUI_TEXT + 0xb000, 14); /* luaD_hook */
	ps_resume_lua(s, pui_thread(&s->img), f);
	ps_in_vm(s, 3);
	ps_want_lua(s, f, 3, THREAD);
	ps_want_lua(s, s->main, 22, THREAD);
}

/* In the coroutine a pcall: its longjmps are two, the outer of which the search starts from. */
static void pcall_in_coroutine(struct puc_scene *s)
{
	struct pui_fn f = one_coroutine(s), g = ps_func(s, 30);

	ps_call_c(s, 8, PS_CFUNC2);
	pui_protect(&s->img, s->st.L);
	ps_call_lua(s, g);
	ps_in_vm(s, 3);
	ps_want_lua(s, g, 3, THREAD);
	ps_want_c(s, PS_CFUNC2, 0);
	ps_want_lua(s, f, 8, 0);
	ps_want_c(s, PS_CFUNC, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

/* The resumer protects itself: its innermost longjmp lies above the coroutine's. */
static void coroutine_in_pcall(struct puc_scene *s)
{
	struct pui_fn f, g;

	ps_begin(s);
	f = ps_func(s, 10);
	g = ps_func(s, 30);
	ps_call_c(s, 5, PS_CFUNC2);
	pui_protect(&s->img, s->st.L);
	ps_call_lua(s, f);
	ps_call_c(s, 6, PS_CFUNC);
	ps_resume_lua(s, pui_thread(&s->img), g);
	ps_in_vm(s, 3);
	ps_want_lua(s, g, 3, THREAD);
	ps_want_c(s, PS_CFUNC, THREAD);
	ps_want_lua(s, f, 6, 0);
	ps_want_c(s, PS_CFUNC2, 0);
	ps_want_lua(s, s->main, 5, 0);
}

/* coroutine.wrap(string.rep): there is no Lua function in it. */
static void coroutine_of_c(struct puc_scene *s)
{
	ps_begin(s);
	ps_call_c(s, 5, PS_CFUNC);
	s->L = pui_thread(&s->img);
	ps_resume(s, s->L);
	pui_push(&s->img, &s->st, pui_light(&s->img, PS_CFUNC2));
	pui_enter(&s->img, PUI_TEXT + 0x6000, 6);
	s->img.gprs.r[PUI_RBX] = s->st.L;
	ps_in_c(s);
	ps_want_c(s, PS_CFUNC2, THREAD);
	ps_want_c(s, PS_CFUNC, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

/* lua_resume by a host's main loop, which is none of Lua's functions: nothing runs below. */
static void resumed_by_host(struct puc_scene *s)
{
	struct pui_fn f = ps_func(s, 10);

	s->L = pui_thread(&s->img);
	pui_enter(&s->img, PUI_LIBC + 0x200, 40);
	pui_enter(&s->img, PUI_LIBC + 0x300, 7); /* lua_resume */
	pui_protect(&s->img, s->L);
	s->st = pui_stack(&s->img, s->L);
	pui_push(&s->img, &s->st, f);
	pui_execute(&s->img, &s->st);
	ps_in_vm(s, 3);
	ps_want_lua(s, f, 3, THREAD);
}

static void coroutine_by_host(struct puc_scene *s)
{
	s->img.gprs.r[PUI_RBX] = s->img.main_L;
	resumed_by_host(s);
}

/* As coroutine_by_host(), with 80 words more on the C stack, none of which is a lua_State. */
static void coroutine_by_host_loop(struct puc_scene *s)
{
	uint32_t i;

	for (i = 0; i < 40; i++) {
		pui_word(&s->img, 0x10700000000 + i); /* two numbers */
		pui_word(&s->img, PUI_HEAP + 64 * i);
	}
	resumed_by_host(s);
}

/* Nobody protects the main thread's call: its errorJmp is NULL although it is active. */
static void coroutine_of_unprotected(struct puc_scene *s)
{
	struct pui_fn f;

	ps_begin_unprotected(s);
	f = ps_func(s, 10);
	ps_call_c(s, 5, PS_CFUNC);
	ps_resume_lua(s, pui_thread(&s->img), f);
	ps_in_vm(s, 3);
	want_one_coroutine(s, f, 3);
}

static void unprotected(struct puc_scene *s)
{
	ps_begin_unprotected(s);
	ps_in_vm(s, 3);
	ps_want_lua(s, s->main, 3, THREAD);
}

/* After an error that was not caught, and lua_atpanic(), which did not return. */
static void called_after_panic(struct puc_scene *s)
{
	unprotected(s);
	pui_status(&s->img, s->img.main_L, LUA_ERRRUN);
}

static void unprotected_in_c(struct puc_scene *s)
{
	ps_begin_unprotected(s);
	ps_call_c(s, 5, PS_CFUNC);
	ps_in_c(s);
	ps_want_c(s, PS_CFUNC, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

/* lua_newthread and lua_pcall: a thread that was called, not resumed. */
static void thread_that_was_called(struct puc_scene *s)
{
	struct pui_fn f;

	ps_begin(s);
	f = ps_func(s, 10);
	ps_call_c(s, 5, PS_CFUNC);
	s->L = pui_thread(&s->img);
	pui_enter(&s->img, PUI_TEXT + 0x7000, 3);
	s->img.gprs.r[PUI_RBP] = s->L;
	pui_protect(&s->img, s->L);
	s->st = pui_stack(&s->img, s->L);
	ps_call_lua(s, f);
	ps_in_vm(s, 3);
	want_one_coroutine(s, f, 3);
}

/* The same of one that has failed before: its status stays. */
static void failed_thread_that_was_called(struct puc_scene *s)
{
	thread_that_was_called(s);
	pui_status(&s->img, s->L, LUA_ERRRUN);
}

/* lua_newthread and lua_call: nothing protects it but what protects its caller. */
static void thread_called_unprotected(struct puc_scene *s)
{
	struct pui_fn f;

	ps_begin(s);
	f = ps_func(s, 10);
	ps_call_c(s, 5, PS_CFUNC);
	s->L = pui_thread(&s->img);
	s->st = pui_stack(&s->img, s->L);
	ps_call_lua(s, f);
	ps_in_vm(s, 3);
	want_one_coroutine(s, f, 3);
}

/* An error in a coroutine was thrown to lua_resume, which unwinds to the pcall (ldo.c, recover). */
static void recovering(struct puc_scene *s)
{
	struct pui_fn f;

	ps_begin(s);
	f = ps_func(s, 10);
	ps_call_c(s, 5, PS_CFUNC);
	s->L = pui_thread(&s->img);
	pui_enter(&s->img, PUI_LIBC + 0x300, 2);
	pui_enter(&s->img, PUI_TEXT + 0x7800, 7); /* lua_resume */
	s->st = pui_stack(&s->img, s->L);
	pui_push(&s->img, &s->st, f);
	pui_call(&s->img, &s->st, 8, pui_light(&s->img, PS_CFUNC2));
	s->img.gprs.r[PUI_RBX] = s->L;
	pui_enter(&s->img, PS_HELPER, 4); /* luaF_close */
	ps_sample(s, PS_HELPER + 64);
	s->absent = s->img.puc.version == 51; /* there pcall has a lua_longjmp of its own */
	/*
	 * Not tried with main remembered: the walk then begins there, until errorJmp is set again.
	 */
	ps_hint(s, s->L);
	ps_hint(s, 0);
	s->state = 'C';
	ps_want_c(s, PS_CFUNC2, THREAD);
	ps_want_lua(s, f, 8, 0);
	ps_want_c(s, PS_CFUNC, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

/* lua_resume has protected the coroutine and not called its function yet. */
static void about_to_call(struct puc_scene *s)
{
	ps_begin(s);
	ps_call_c(s, 5, PS_CFUNC);
	ps_hint(s, s->st.L);
	ps_resume(s, pui_thread(&s->img));
	ps_hint(s, s->st.L);
	ps_hint(s, 0);
	ps_sample(s, PS_HELPER);
	s->state = 'C';
	ps_want_c(s, PS_CFUNC, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

/* ---- lua_States that the C stack holds nearer than the running one, and that do not run ------ */

/* A thread that called fn and stands at pos in it, by whichever way it came to a stop. */
static uint64_t stopped(struct puc_scene *s, uint8_t status)
{
	uint64_t L = pui_thread(&s->img);
	struct pui_stack st = pui_stack(&s->img, L);
	struct pui_fn f = ps_func(s, 70), yield = pui_light(&s->img, PS_CFUNC2);

	pui_push(&s->img, &st, f);
	pui_savepc(&s->img, &st, 20);
	if (status == LUA_YIELD)
		pui_call(&s->img, &st, 20, yield);
	pui_status(&s->img, L, status);
	return L;
}

/* It lies in registers and all over the innermost C frames. */
static void spread(struct puc_scene *s, uint64_t L)
{
	uint32_t i;

	pui_word(&s->img, L);
	pui_c_code(&s->img, 3);
	pui_word(&s->img, L);
	for (i = 0; i < LB_GPRS; i += 2)
		s->img.gprs.r[i] = L;
}

static void beside(struct puc_scene *s, uint64_t other)
{
	struct pui_fn f = one_coroutine(s);

	ps_hint(s, s->st.L);
	ps_hint(s, other);
	ps_hint(s, s->img.main_L);
	ps_hint(s, 0);
	ps_helper(s, 9, 4);
	spread(s, other);
	ps_sample(s, PS_HELPER);
	want_one_coroutine(s, f, 9);
}

static void beside_yielded(struct puc_scene *s)
{
	beside(s, stopped(s, LUA_YIELD));
}

static void beside_dead(struct puc_scene *s)
{
	beside(s, stopped(s, LUA_ERRRUN));
}

/* Its errorJmp was left behind, and leads to what is another's now. */
static void beside_dead_with_errorJmp(struct puc_scene *s)
{
	uint64_t L = stopped(s, LUA_ERRRUN);

	beside(s, L);
	pui_put(&s->img, L + s->img.puc.L_errorJmp, 8, s->img.sp + 24);
}

static void beside_not_started(struct puc_scene *s)
{
	beside(s, pui_thread(&s->img));
}

static void beside_finished(struct puc_scene *s)
{
	uint64_t L = stopped(s, 0);
	struct pui_stack st = pui_stack(&s->img, L);

	pui_put(&s->img, L + s->img.puc.L_ci, 8, st.ci);
	beside(s, L);
}

/* Memory that once was a lua_State: everything in it is right but its type. */
static void beside_collected(struct puc_scene *s)
{
	uint64_t L = stopped(s, 0);

	pui_put(&s->img, L + PUC_GC_TT, 1, 5);
	beside(s, L);
	pui_put(&s->img, L + s->img.puc.L_errorJmp, 8, s->img.sp + 24);
}

/* A lua_State of a VM that was closed. */
static void beside_other_vm(struct puc_scene *s)
{
	uint64_t g = s->img.g, main_L = s->img.main_L, other;

	pui_new_vm(&s->img);
	other = stopped(s, 0);
	memset(pui_at(&s->img, s->img.g, PUI_G_SIZE), 0, PUI_G_SIZE);
	s->img.g = g;
	s->img.main_L = main_L;
	beside(s, other);
	pui_put(&s->img, other + s->img.puc.L_errorJmp, 8, s->img.sp + 24);
}

/* ---- where it lies --------------------------------------------------------------------------- */

/* The code that runs keeps no lua_State in a register; the C stack has it, some way up. */
static void found_by_stack(struct puc_scene *s)
{
	ps_begin(s);
	ps_helper(s, 8, 60);
	ps_clobber(s);
	ps_sample(s, PS_HELPER);
	ps_want_lua(s, s->main, 8, THREAD);
}

/* Behind a luaL_Buffer of 5.1 (BUFSIZ bytes). */
static void behind_a_buffer(struct puc_scene *s)
{
	ps_begin(s);
	ps_call_c(s, 8, PS_CFUNC);
	ps_clobber(s);
	pui_c_code(&s->img, 1040);
	ps_in_c(s);
	ps_want_c(s, PS_CFUNC, THREAD);
	ps_want_lua(s, s->main, 8, 0);
}

/* ---- two VMs on a thread --------------------------------------------------------------------- */

static void innermost_vm(struct puc_scene *s)
{
	struct pui_fn main;
	uint64_t g;

	ps_begin(s);
	main = s->main;
	g = s->img.g;
	ps_hint(s, s->st.L);
	ps_call_c(s, 5, PS_CFUNC);
	pui_new_vm(&s->img);
	ps_begin(s);
	ps_hint(s, s->st.L);
	ps_hint(s, 0);
	s->inner_is_guess = true;
	ps_in_vm(s, 9);
	ps_want_lua(s, s->main, 9, THREAD);
	ps_want_vm(s, g);
	ps_want_c(s, PS_CFUNC, THREAD);
	ps_want_lua(s, main, 5, 0);
}

/*
 * The same, called unprotected, and in a function of the VM's that pushes nothing: its lua_State is
 * in a register, and the outer one's is next to luaV_execute's frame.
 */
static void innermost_vm_unprotected(struct puc_scene *s)
{
	struct pui_fn main;
	uint64_t outer, g;

	ps_begin(s);
	outer = s->st.L;
	main = s->main;
	g = s->img.g;
	ps_call_c(s, 5, PS_CFUNC);
	pui_new_vm(&s->img);
	ps_begin_unprotected(s);
	ps_only_hint(s, outer);
	ps_hint(s, s->st.L);
	ps_hint(s, 0);
	s->inner_is_guess = true;
	pui_savepc(&s->img, &s->st, 9);
	pui_pc(&s->img, s->st.fn, 9);
	pui_word(&s->img, PS_SITE);
	pui_word(&s->img, outer);
	ps_sample(s, PS_HELPER);
	ps_want_lua(s, s->main, 9, THREAD);
	ps_want_vm(s, g);
	ps_want_c(s, PS_CFUNC, THREAD);
	ps_want_lua(s, main, 5, 0);
}

/* The inner one is done: the outer one's C function goes on. */
static void outer_vm_again(struct puc_scene *s)
{
	struct pui_stack inner;
	struct pui_fn main;
	uint64_t outer;

	ps_begin(s);
	outer = s->st.L;
	main = s->main;
	ps_call_c(s, 5, PS_CFUNC);
	pui_new_vm(&s->img);
	inner = pui_stack(&s->img, s->img.main_L);
	pui_push(&s->img, &inner, ps_func(s, 10));
	pui_pop(&s->img, &inner);
	pui_word(&s->img, inner.L);
	s->img.gprs.r[PUI_RBX] = inner.L;
	ps_in_c(s);
	s->L = outer;
	ps_hint(s, inner.L);
	ps_hint(s, outer);
	ps_hint(s, 0);
	ps_want_c(s, PS_CFUNC, THREAD);
	ps_want_lua(s, main, 5, 0);
}

/* The state that closes runs what is left to be run. */
static void closing_with_finalizer(struct puc_scene *s)
{
	struct pui_fn f = ps_func(s, 10);

	s->img.gprs.r[PUI_RBX] = s->img.main_L;
	pui_protect(&s->img, s->img.main_L);
	s->L = s->img.main_L;
	s->st = pui_stack(&s->img, s->L);
	pui_callstatus(&s->img, &s->st, s->img.puc.cist_fin);
	pui_enter(&s->img, PS_GC_SITE, 4);
	ps_call_lua(s, f);
	ps_in_vm(s, 2);
	ps_want_lua(s, f, 2, THREAD | (s->img.puc.cist_fin ? LB_FRAME_FIN : 0));
}

/* The running C function calls a function of a new VM, which calls a C function. Returns the new VM's main thread. */
static uint64_t called_in_new_vm(struct puc_scene *s)
{
	struct pui_fn f;
	uint64_t L;

	pui_new_vm(&s->img);
	L = s->img.main_L;
	f = ps_func(s, 30);
	pui_enter(&s->img, PUI_TEXT + 0x7000, 5); /* lua_pcall */
	pui_protect(&s->img, L);
	s->st = pui_stack(&s->img, L);
	pui_push(&s->img, &s->st, f);
	pui_execute(&s->img, &s->st);
	ps_call_c(s, 7, PS_CFUNC2);
	return L;
}

/*
 * A C function of main's calls another VM by lua_pcall, whose C function calls main by lua_call:
 * main runs, although its errorJmp is the outer one.
 */
static void called_unprotected(struct puc_scene *s)
{
	struct pui_fn f;
	struct pui_stack outer;
	uint64_t L = s->img.main_L, inner;

	ps_begin(s);
	f = ps_func(s, 10);
	ps_call_c(s, 5, PS_CFUNC);
	outer = s->st;
	inner = called_in_new_vm(s);
	ps_hint(s, inner);
	ps_hint(s, L);
	ps_hint(s, 0);
	s->st = outer;
	ps_call_lua(s, f);
	ps_in_helper(s, 3);
	s->inner_is_guess = true;
	ps_want_lua(s, f, 3, THREAD);
	ps_want_c(s, PS_CFUNC, 0);
	ps_want_lua(s, s->main, 5, 0);
}

/*
 * As called_unprotected(), from a coroutine's C function, and main calls a C function with a buffer: of three
 * lua_States with C functions on top, the one that is outermost by its errorJmp runs.
 */
static void called_from_coroutine(struct puc_scene *s)
{
	struct pui_fn f, work;
	struct pui_stack outer;
	uint64_t L = s->img.main_L, inner, co;

	ps_begin(s);
	f = ps_func(s, 10);
	work = ps_func(s, 20);
	ps_call_c(s, 5, PS_CFUNC);
	outer = s->st;
	co = pui_thread(&s->img);
	ps_resume_lua(s, co, f);
	ps_call_c(s, 6, PS_CFUNC2);
	inner = called_in_new_vm(s);
	ps_hint(s, inner);
	ps_hint(s, co);
	ps_hint(s, L);
	ps_hint(s, 0);
	s->st = outer;
	ps_call_lua(s, work);
	pui_pc(&s->img, work, 8); /* 5.1: the register is the saved pc, too */
	ps_call_c(s, 8, PS_CFUNC);
	pui_c_code(&s->img, 200);
	ps_clobber(s);
	ps_in_c(s);
	s->L = L;
	s->inner_is_guess = true;
	ps_want_c(s, PS_CFUNC, THREAD);
	ps_want_lua(s, work, 8, 0);
	ps_want_c(s, PS_CFUNC, 0);
	ps_want_lua(s, s->main, 5, 0);
}

const struct puc_scene_row puc_scenes_threads[] = {
	{"called_unprotected", called_unprotected},
	{"called_from_coroutine", called_from_coroutine},
	{"coroutine", coroutine},
	{"coroutine_in_helper", coroutine_in_helper},
	{"coroutine_in_c", coroutine_in_c},
	{"three_deep", three_deep},
	{"three_deep_in_c", three_deep_in_c},
	{"main_is_everywhere", main_is_everywhere},
	{"nest", nest},
	{"hook_resumes", hook_resumes},
	{"pcall_in_coroutine", pcall_in_coroutine},
	{"coroutine_in_pcall", coroutine_in_pcall},
	{"coroutine_of_c", coroutine_of_c},
	{"coroutine_by_host", coroutine_by_host},
	{"coroutine_by_host_loop", coroutine_by_host_loop},
	{"coroutine_of_unprotected", coroutine_of_unprotected},
	{"unprotected", unprotected},
	{"unprotected_in_c", unprotected_in_c},
	{"thread_that_was_called", thread_that_was_called},
	{"failed_thread_that_was_called", failed_thread_that_was_called},
	{"called_after_panic", called_after_panic},
	{"thread_called_unprotected", thread_called_unprotected},
	{"recovering", recovering},
	{"about_to_call", about_to_call},
	{"beside_yielded", beside_yielded},
	{"beside_dead", beside_dead},
	{"beside_dead_with_errorJmp", beside_dead_with_errorJmp},
	{"beside_not_started", beside_not_started},
	{"beside_finished", beside_finished},
	{"beside_collected", beside_collected},
	{"beside_other_vm", beside_other_vm},
	{"found_by_stack", found_by_stack},
	{"behind_a_buffer", behind_a_buffer},
	{"innermost_vm", innermost_vm},
	{"innermost_vm_unprotected", innermost_vm_unprotected},
	{"outer_vm_again", outer_vm_again},
	{"closing_with_finalizer", closing_with_finalizer},
	{NULL, NULL},
};
