// SPDX-License-Identifier: BSD-2-Clause
/* What follows from it that a C function on top is PUC Lua's own: does it run another lua_State? */
#include "puc_scene.h"

#define THREAD LB_FRAME_THREAD

static void put_thread(struct puc_scene *s, uint64_t tv, uint64_t co)
{
	pui_put(&s->img, tv + PUC_TV_VALUE, 8, co);
	pui_put(&s->img, tv + PUC_TV_TT, 1, PUC_TT_THREAD);
}

/* The current function has this coroutine as its first argument, or as its upvalue. */
static void argument(struct puc_scene *s, uint64_t co)
{
	put_thread(s, s->st.func + PUC_TV_SIZE, co);
}

static void upvalue(struct puc_scene *s, uint64_t co)
{
	put_thread(s, s->st.fn.value + s->img.puc.closure_p + 8, co);
}

/* The main chunk runs; two coroutines are made, and a function for each. */
struct two {
	struct pui_fn f, g;
	uint64_t co, inner;
};

static struct two begin_two(struct puc_scene *s)
{
	struct two t;

	ps_begin(s);
	t.f = ps_func(s, 10);
	t.g = ps_func(s, 30);
	t.co = pui_thread(&s->img);
	t.inner = pui_thread(&s->img);
	return t;
}

/* The inner one runs, and may be remembered, or the main thread is. */
static void in_inner(struct puc_scene *s, const struct two *t)
{
	ps_hint(s, t->inner);
	ps_hint(s, s->img.main_L);
	ps_in_vm(s, 4);
	ps_want_lua(s, t->g, 4, THREAD);
}

static void own_in_c(struct puc_scene *s)
{
	ps_in_c(s);
	ps_want_c(s, PS_OWN, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

/* luaL_Buffer: a lot of text on the C stack; no register leads to anything. */
static void own_function(struct puc_scene *s)
{
	ps_begin(s);
	ps_call_c(s, 5, PS_OWN);
	pui_c_code(&s->img, 400);
	ps_clobber(s);
	own_in_c(s);
}

/* What the buffer held before are a coroutine's remains. */
static void own_function_remains(struct puc_scene *s)
{
	uint64_t co;

	ps_begin(s);
	co = pui_thread(&s->img);
	ps_call_c(s, 5, PS_OWN);
	pui_word(&s->img, co);
	pui_word(&s->img, PS_SITE);
	pui_word(&s->img, co);
	own_in_c(s);
}

static void own_function_in_coroutine(struct puc_scene *s)
{
	struct pui_fn f;
	uint64_t co;

	ps_begin(s);
	f = ps_func(s, 10);
	co = pui_thread(&s->img);
	ps_call_c(s, 5, PS_RESUME);
	argument(s, co);
	ps_resume_lua(s, co, f);
	ps_call_c(s, 9, PS_OWN);
	ps_in_c(s);
	ps_want_c(s, PS_OWN, THREAD);
	ps_want_lua(s, f, 9, 0);
	ps_want_c(s, PS_RESUME, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

static void collect(struct puc_scene *s)
{
	pui_enter(&s->img, PS_GC_SITE, 4);
	pui_enter(&s->img, PS_GC_CALLEE, 4);
	own_in_c(s);
	s->state = 'G';
}

/* It calls the API, that calls luaC_step, that calls on, */
static void own_function_collects(struct puc_scene *s)
{
	ps_begin(s);
	ps_call_c(s, 5, PS_OWN);
	pui_enter(&s->img, PS_OWN_SITE, 4);
	pui_enter(&s->img, PS_API_GC, 3);
	collect(s);
}

/* or jumps to it. */
static void own_function_collects_by_jump(struct puc_scene *s)
{
	ps_begin(s);
	ps_call_c(s, 5, PS_OWN);
	pui_enter(&s->img, PS_OWN_SITE, 4);
	collect(s);
}

/* luaL_Buffer begins with what the collector's call left there. */
static void begin_with_remains(struct puc_scene *s, uint64_t f)
{
	ps_begin(s);
	ps_call_c(s, 5, f);
	pui_word(&s->img, PS_API_GC);
	pui_c_code(&s->img, 5);
	pui_word(&s->img, PS_GC_SITE);
	pui_word(&s->img, PS_GC_CALLEE);
}

static void own_in(struct puc_scene *s, uint64_t f, uint64_t ip)
{
	ps_sample(s, ip);
	s->state = 'C';
	ps_want_c(s, f, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

/* Then the function itself runs, */
static void own_function_after_collecting(struct puc_scene *s)
{
	begin_with_remains(s, PS_OWN);
	own_in(s, PS_OWN, PS_OWN_SITE + 4);
}

/* or something that it called: memcpy(). */
static void own_function_calls_after_collecting(struct puc_scene *s)
{
	begin_with_remains(s, PS_OWN);
	pui_enter(&s->img, PS_OWN_SITE, 3);
	own_in(s, PS_OWN, PS_LIBC);
}

/* A host's function: the call that entered the collector was overwritten. */
static void function_calls_after_collecting(struct puc_scene *s)
{
	ps_begin(s);
	ps_call_c(s, 5, PS_CFUNC);
	pui_word(&s->img, PS_GC_SITE);
	pui_word(&s->img, PS_GC_CALLEE);
	pui_c_code(&s->img, 5);
	own_in(s, PS_CFUNC, PS_LIBC);
}

/* A function of the core has a frame in which the collector's call has left something. */
static void core_after_collecting(struct puc_scene *s)
{
	ps_begin(s);
	ps_call_c(s, 5, PS_OWN);
	pui_enter(&s->img, PS_OWN_SITE, 4);
	pui_enter(&s->img, PS_API_CORE, 3);
	pui_word(&s->img, PS_GC_SITE);
	pui_enter(&s->img, PS_CORE + 0x20, 3);
	own_in(s, PS_OWN, PS_HELPER);
}

/* Numbers that lead into the collector's text, where no call returns to. */
static void numbers_like_text(struct puc_scene *s)
{
	ps_begin(s);
	ps_call_c(s, 5, PS_CFUNC);
	pui_word(&s->img, PS_API_GC);
	pui_word(&s->img, PS_GC_SITE + 0x44);
	own_in(s, PS_CFUNC, PS_LIBC);
}

/* A return address into the collector, far up: it returned long ago. */
static void own_function_has_collected(struct puc_scene *s)
{
	ps_begin(s);
	ps_call_c(s, 5, PS_OWN);
	pui_word(&s->img, PS_GC_SITE);
	pui_c_code(&s->img, 100);
	own_in_c(s);
}

/* coroutine.resume and coroutine.wrap; two resumers deep, so that one is no main thread. */
static void resumed(struct puc_scene *s, void (*has)(struct puc_scene *s, uint64_t co), uint64_t by)
{
	struct pui_fn f, g;
	uint64_t co, inner;

	ps_begin(s);
	f = ps_func(s, 10);
	g = ps_func(s, 30);
	co = pui_thread(&s->img);
	inner = pui_thread(&s->img);
	ps_call_c(s, 5, by);
	has(s, co);
	ps_resume_lua(s, co, f);
	ps_call_c(s, 7, by);
	has(s, inner);
	pui_c_code(&s->img, 60);
	ps_resume_lua(s, inner, g);
	ps_hint(s, inner);
	ps_hint(s, co);
	ps_hint(s, s->img.main_L);
	ps_hint(s, 0);
	ps_in_vm(s, 4);
	ps_want_lua(s, g, 4, THREAD);
	ps_want_c(s, by, THREAD);
	ps_want_lua(s, f, 7, 0);
	ps_want_c(s, by, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

static void resumed_by_argument(struct puc_scene *s)
{
	resumed(s, argument, PS_RESUME);
}

static void resumed_by_upvalue(struct puc_scene *s)
{
	resumed(s, upvalue, PS_WRAP);
}

/* main resumes a coroutine whose function, the host's, resumes another. */
static void argument_of_another(struct puc_scene *s)
{
	struct two t = begin_two(s);

	ps_call_c(s, 5, PS_RESUME);
	argument(s, t.co);
	ps_resume(s, t.co);
	pui_push(&s->img, &s->st, pui_cclosure(&s->img, PS_CFUNC));
	ps_resume_lua(s, t.inner, t.g);
	in_inner(s, &t);
	ps_want_c(s, PS_CFUNC, THREAD);
	ps_want_c(s, PS_RESUME, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

/* What coroutine.wrap returned is given a coroutine, which its own coroutine resumes. */
static void argument_of_wrap(struct puc_scene *s)
{
	struct two t = begin_two(s);

	ps_call_c(s, 5, PS_WRAP);
	upvalue(s, t.co);
	argument(s, t.inner);
	ps_resume_lua(s, t.co, t.f);
	ps_call_c(s, 7, PS_RESUME);
	argument(s, t.inner);
	ps_resume_lua(s, t.inner, t.g);
	in_inner(s, &t);
	ps_want_c(s, PS_RESUME, THREAD);
	ps_want_lua(s, t.f, 7, 0);
	ps_want_c(s, PS_WRAP, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

/* The host's function has the coroutine as its argument, and resumes one that resumes it. */
static void argument_of_the_host(struct puc_scene *s)
{
	struct two t = begin_two(s);

	ps_call_c(s, 5, PS_CFUNC);
	argument(s, t.inner);
	ps_resume(s, t.co);
	pui_push(&s->img, &s->st, pui_cclosure(&s->img, PS_CFUNC2));
	ps_resume_lua(s, t.inner, t.g);
	in_inner(s, &t);
	ps_want_c(s, PS_CFUNC2, THREAD);
	ps_want_c(s, PS_CFUNC, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

/* coroutine.resume, or what runs like it: its coroutine is the one. */
static void resume_is_on_top(struct puc_scene *s)
{
	struct pui_fn f;
	uint64_t co;

	ps_begin(s);
	f = ps_func(s, 10);
	co = pui_thread(&s->img);
	ps_call_c(s, 5, PS_RESUME);
	argument(s, co);
	ps_resume_lua(s, co, f);
	ps_hint(s, s->img.main_L);
	ps_hint(s, co);
	ps_in_vm(s, 3);
	ps_want_lua(s, f, 3, THREAD);
	ps_want_c(s, PS_RESUME, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

/* A C hook, which has no CallInfo, resumes a coroutine while an own function runs. */
static void hook_in_own_function(struct puc_scene *s)
{
	struct pui_fn f;
	uint64_t co;

	ps_begin(s);
	f = ps_func(s, 10);
	co = pui_thread(&s->img);
	ps_call_c(s, 5, PS_OWN);
	ps_hook(s);
	ps_resume_lua(s, co, f);
	ps_hint(s, s->img.main_L);
	ps_hint(s, co);
	ps_in_vm(s, 3);
	ps_want_lua(s, f, 3, THREAD);
	ps_want_c(s, PS_OWN, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

const struct puc_scene_row puc_scenes_own[] = {
	{"own_function", own_function},
	{"own_function_remains", own_function_remains},
	{"own_function_in_coroutine", own_function_in_coroutine},
	{"own_function_collects", own_function_collects},
	{"own_function_collects_by_jump", own_function_collects_by_jump},
	{"own_function_has_collected", own_function_has_collected},
	{"own_function_after_collecting", own_function_after_collecting},
	{"own_function_calls_after_collecting", own_function_calls_after_collecting},
	{"function_calls_after_collecting", function_calls_after_collecting},
	{"core_after_collecting", core_after_collecting},
	{"numbers_like_text", numbers_like_text},
	{"resumed_by_argument", resumed_by_argument},
	{"resumed_by_upvalue", resumed_by_upvalue},
	{"argument_of_another", argument_of_another},
	{"argument_of_wrap", argument_of_wrap},
	{"argument_of_the_host", argument_of_the_host},
	{"resume_is_on_top", resume_is_on_top},
	{"hook_in_own_function", hook_in_own_function},
	{NULL, NULL},
};
