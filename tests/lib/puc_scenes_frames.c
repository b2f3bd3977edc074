// SPDX-License-Identifier: BSD-2-Clause
/* Kinds of calls on the stack of one lua_State. */
#include "puc_scene.h"

#define THREAD LB_FRAME_THREAD
#define TAIL LB_FRAME_TAIL
#define FIN LB_FRAME_FIN
#define HOOK LB_FRAME_HOOK

/* A flag that is shown where this version has the bit for it. */
static uint8_t if_told(uint32_t bit, uint8_t flag)
{
	return bit ? flag : 0;
}

static void main_alone(struct puc_scene *s)
{
	ps_begin(s);
	ps_in_helper(s, 8);
	ps_want_lua(s, s->main, 8, THREAD);
}

/* main calls f at 5 and f calls g at 7, which stands at 3. */
static void calls(struct puc_scene *s)
{
	struct pui_fn f, g;

	ps_begin(s);
	f = ps_func(s, 10);
	g = ps_func(s, 30);
	pui_call(&s->img, &s->st, 5, f);
	pui_call(&s->img, &s->st, 7, g);
	ps_in_helper(s, 3);
	ps_want_lua(s, g, 3, THREAD);
	ps_want_lua(s, f, 7, 0);
	ps_want_lua(s, s->main, 5, 0);
}

/* Before 5.4.2, or with metamethods, each Lua function has a C frame of luaV_execute. */
static void calls_by_c(struct puc_scene *s)
{
	struct pui_fn f, g;

	ps_begin(s);
	f = ps_func(s, 10);
	g = ps_func(s, 30);
	ps_helper(s, 5, 3);
	ps_call_lua(s, f);
	ps_helper(s, 7, 3);
	ps_call_lua(s, g);
	ps_in_vm(s, 3);
	ps_want_lua(s, g, 3, THREAD);
	ps_want_lua(s, f, 7, 0);
	ps_want_lua(s, s->main, 5, 0);
}

static void c_function(struct puc_scene *s)
{
	ps_begin(s);
	ps_call_c(s, 5, PS_CFUNC);
	ps_in_c(s);
	ps_want_c(s, PS_CFUNC, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

static void light_c_function(struct puc_scene *s)
{
	ps_begin(s);
	ps_helper(s, 6, 3);
	pui_push(&s->img, &s->st, pui_light(&s->img, PS_CFUNC));
	ps_in_c(s);
	ps_want_c(s, PS_CFUNC, THREAD);
	ps_want_lua(s, s->main, 6, 0);
}

/* The host calls a C function: the interpreter's way to begin. */
static void c_at_the_bottom(struct puc_scene *s)
{
	struct pui_fn f;

	s->img.gprs.r[PUI_RBX] = s->img.main_L;
	pui_protect(&s->img, s->img.main_L);
	s->st = pui_stack(&s->img, s->img.main_L);
	pui_push(&s->img, &s->st, pui_light(&s->img, PS_CFUNC));
	f = ps_func(s, 10);
	ps_call_lua(s, f);
	ps_in_vm(s, 12);
	s->L = s->img.main_L;
	ps_want_lua(s, f, 12, THREAD);
	ps_want_c(s, PS_CFUNC, 0);
}

static void c_calls_lua(struct puc_scene *s)
{
	struct pui_fn f;

	ps_begin(s);
	f = ps_func(s, 10);
	ps_call_c(s, 5, PS_CFUNC);
	pui_c_code(&s->img, 21);
	ps_call_lua(s, f);
	ps_in_helper(s, 20);
	ps_want_lua(s, f, 20, THREAD);
	ps_want_c(s, PS_CFUNC, 0);
	ps_want_lua(s, s->main, 5, 0);
}

static void pcall(struct puc_scene *s)
{
	struct pui_fn f;

	ps_begin(s);
	f = ps_func(s, 10);
	ps_call_c(s, 5, PS_CFUNC);
	pui_protect(&s->img, s->st.L);
	ps_call_lua(s, f);
	ps_in_vm(s, 20);
	ps_want_lua(s, f, 20, THREAD);
	ps_want_c(s, PS_CFUNC, 0);
	ps_want_lua(s, s->main, 5, 0);
}

static void pcall_in_pcall(struct puc_scene *s)
{
	struct pui_fn f, g;

	ps_begin(s);
	f = ps_func(s, 10);
	g = ps_func(s, 30);
	ps_call_c(s, 5, PS_CFUNC);
	pui_protect(&s->img, s->st.L);
	ps_call_lua(s, f);
	ps_call_c(s, 6, PS_CFUNC);
	pui_protect(&s->img, s->st.L);
	ps_call_lua(s, g);
	ps_call_c(s, 7, PS_CFUNC2);
	ps_in_c(s);
	ps_want_c(s, PS_CFUNC2, THREAD);
	ps_want_lua(s, g, 7, 0);
	ps_want_c(s, PS_CFUNC, 0);
	ps_want_lua(s, f, 6, 0);
	ps_want_c(s, PS_CFUNC, 0);
	ps_want_lua(s, s->main, 5, 0);
}

static void metamethod(struct puc_scene *s)
{
	struct pui_fn f;

	ps_begin(s);
	f = ps_func(s, 10);
	ps_helper(s, 14, 3);
	ps_call_lua(s, f);
	ps_in_helper(s, 2);
	ps_want_lua(s, f, 2, THREAD);
	ps_want_lua(s, s->main, 14, 0);
}

/*
 * The collector runs a finalizer in the middle of main. The mark is on the call that is
 * interrupted: GCTM (lgc.c) sets it while L->ci is still that.
 */
static void enter_finalizer(struct puc_scene *s, uint32_t pos, struct pui_fn f)
{
	ps_collect(s, pos); /* GCTM calls luaD_pcall */
	pui_callstatus(&s->img, &s->st, s->img.puc.cist_fin);
	pui_protect(&s->img, s->st.L);
	ps_call_lua(s, f);
}

static void finalizer(struct puc_scene *s)
{
	struct pui_fn f;

	ps_begin(s);
	f = ps_func(s, 10);
	enter_finalizer(s, 13, f);
	ps_in_helper(s, 1);
	ps_want_lua(s, f, 1, THREAD | if_told(s->img.puc.cist_fin, FIN));
	ps_want_lua(s, s->main, 13, 0);
}

static void finalizer_calls(struct puc_scene *s)
{
	struct pui_fn f, g;

	ps_begin(s);
	f = ps_func(s, 10);
	g = ps_func(s, 30);
	enter_finalizer(s, 13, f);
	pui_call(&s->img, &s->st, 7, g);
	ps_in_vm(s, 2);
	ps_want_lua(s, g, 2, THREAD);
	ps_want_lua(s, f, 7, if_told(s->img.puc.cist_fin, FIN));
	ps_want_lua(s, s->main, 13, 0);
}

static void finalizer_in_finalizer(struct puc_scene *s)
{
	uint8_t fin = if_told(s->img.puc.cist_fin, FIN);
	struct pui_fn f, g;

	ps_begin(s);
	f = ps_func(s, 10);
	g = ps_func(s, 30);
	enter_finalizer(s, 13, f);
	enter_finalizer(s, 7, g);
	ps_in_vm(s, 4);
	ps_want_lua(s, g, 4, THREAD | fin);
	ps_want_lua(s, f, 7, fin);
	ps_want_lua(s, s->main, 13, 0);
}

static void finalizer_in_c(struct puc_scene *s)
{
	ps_begin(s);
	ps_collect(s, 13);
	pui_callstatus(&s->img, &s->st, s->img.puc.cist_fin);
	pui_protect(&s->img, s->st.L);
	pui_push(&s->img, &s->st, pui_cclosure(&s->img, PS_CFUNC));
	pui_enter(&s->img, PUI_TEXT + 0x6000, 6);
	ps_in_c(s);
	s->state = 'C';
	ps_want_c(s, PS_CFUNC, THREAD | if_told(s->img.puc.cist_fin, FIN));
	ps_want_lua(s, s->main, 13, 0);
}

/* collectgarbage() calls a finalizer. luaD_pcall has an errorJmp for it, but in 5.1: there GCTM calls luaD_call. */
static void finalizer_of_collect(struct puc_scene *s)
{
	ps_begin(s);
	ps_call_c(s, 13, PS_OWN);
	pui_enter(&s->img, PS_API_GC, 3);
	pui_enter(&s->img, PS_GC_PCALL, 1);
	pui_enter(&s->img, PS_PCALL, 1);
	pui_callstatus(&s->img, &s->st, s->img.puc.cist_fin);
	if (s->img.puc.version > 51)
		pui_protect(&s->img, s->st.L);
	pui_push(&s->img, &s->st, pui_cclosure(&s->img, PS_CFUNC));
	ps_in_c(s);
	s->state = s->img.puc.version > 51 ? 'C' : 0; /* 5.1: the collector or C */
	ps_want_c(s, PS_CFUNC, THREAD | if_told(s->img.puc.cist_fin, FIN));
	ps_want_c(s, PS_OWN, 0);
	ps_want_lua(s, s->main, 13, 0);
}

/* debug.sethook: the C function that is the hook has no CallInfo; it calls a Lua function. */
static void hook(struct puc_scene *s)
{
	struct pui_fn f;

	ps_begin(s);
	f = ps_func(s, 10);
	ps_helper(s, 22, 3);
	pui_callstatus(&s->img, &s->st, s->img.puc.cist_hooked);
	pui_enter(&s->img, PUI_TEXT + 0xb000, 14); /* luaD_hook calls hookf */
	ps_call_lua(s, f);
	ps_in_vm(s, 3);
	ps_want_lua(s, f, 3, THREAD | if_told(s->img.puc.cist_hooked, HOOK));
	ps_want_lua(s, s->main, 22, 0);
}

/*
 * main calls a C function, which calls f protected, which calls another C function, which throws.
 * That was caught: all is back in the first C function, and what was thrown lies in f's place.
 */
static void throw_and_catch(struct puc_scene *s, uint64_t moved)
{
	struct pui_fn f;
	uint64_t slot;

	ps_begin(s);
	f = ps_func(s, 10);
	ps_call_c(s, 5, PS_CFUNC);
	pui_push(&s->img, &s->st, f);
	slot = s->st.func;
	pui_put(&s->img, s->st.ci + s->img.puc.ci_func, 8, slot + moved);
	pui_call(&s->img, &s->st, 6, pui_cclosure(&s->img, PS_CFUNC2));
	pui_put(&s->img, slot + PUC_TV_TT, 4, 4);
}

static void error_caught(struct puc_scene *s)
{
	throw_and_catch(s, 0);
	ps_in_c(s);
	ps_want_c(s, PS_CFUNC, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

/* That cannot be while luaV_execute runs. */
static void error_caught_in_vm(struct puc_scene *s)
{
	throw_and_catch(s, 0);
	ps_sample(s, PS_IP);
	s->lost = true;
}

/* The stack is being moved: f's CallInfo has its old place still. */
static void error_or_moved(struct puc_scene *s)
{
	throw_and_catch(s, 1 << 30);
	ps_in_c(s);
	s->lost = true;
}

/* The function on top was entered by so many tail calls, which 5.1 counts. */
static void tail_calls(struct puc_scene *s, uint32_t n)
{
	pui_callstatus(&s->img, &s->st, s->img.puc.version == 51 ? n : s->img.puc.cist_tail);
}

/* f was called by a tail call from a function that is gone. */
static void tail_call(struct puc_scene *s)
{
	struct pui_fn f;

	ps_begin(s);
	f = ps_func(s, 10);
	pui_call(&s->img, &s->st, 5, f);
	tail_calls(s, 3);
	ps_in_vm(s, 3);
	ps_want_lua(s, f, 3, THREAD | TAIL);
	ps_want_lua(s, s->main, 5, 0);
}

/*
 * 5.1: luaD_precall makes a CallInfo that another call had, whose number of tail calls is left
 * over. Then luaV_execute counts the tail call that it was made for.
 */
static void tail_calls_left_over(struct puc_scene *s)
{
	struct pui_fn f;

	ps_begin(s);
	f = ps_func(s, 10);
	pui_call(&s->img, &s->st, 5, f);
	if (s->img.puc.version == 51)
		tail_calls(s, 2);
	pui_pc(&s->img, s->main, 5);
	ps_sample(s, PS_HELPER);
	ps_want_lua(s, f, 0, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

static void tail_called_at_the_first(struct puc_scene *s)
{
	struct pui_fn f;

	ps_begin(s);
	f = ps_func(s, 10);
	pui_call(&s->img, &s->st, 5, f);
	tail_calls(s, 1);
	pui_pc(&s->img, f, 0);
	pui_enter(&s->img, PS_SITE, 4);
	ps_sample(s, PS_HELPER);
	ps_want_lua(s, f, 0, THREAD | TAIL);
	ps_want_lua(s, s->main, 5, 0);
}

static void tail_call_below(struct puc_scene *s)
{
	struct pui_fn f, g;

	ps_begin(s);
	f = ps_func(s, 10);
	g = ps_func(s, 30);
	pui_call(&s->img, &s->st, 5, f);
	tail_calls(s, 1);
	pui_call(&s->img, &s->st, 6, g);
	ps_in_vm(s, 3);
	ps_want_lua(s, g, 3, THREAD);
	ps_want_lua(s, f, 6, TAIL);
	ps_want_lua(s, s->main, 5, 0);
}

/* A function with a hook of its own that was itself called by a tail call. */
static void hooked_tail_call(struct puc_scene *s)
{
	const struct puc_layout *l = &s->img.puc;
	struct pui_fn f, g;

	ps_begin(s);
	f = ps_func(s, 10);
	g = ps_func(s, 30);
	pui_call(&s->img, &s->st, 5, f);
	pui_callstatus(&s->img, &s->st, (l->cist_tail & INT32_MAX) | l->cist_hooked);
	pui_call(&s->img, &s->st, 6, g);
	ps_in_vm(s, 3);
	ps_want_lua(s, g, 3, THREAD | if_told(l->cist_hooked, HOOK));
	ps_want_lua(s, f, 6, TAIL);
	ps_want_lua(s, s->main, 5, 0);
}

static void vararg(struct puc_scene *s)
{
	struct pui_fn f;

	ps_begin(s);
	f = ps_func(s, 10);
	pui_call(&s->img, &s->st, 5, f);
	pui_vararg(&s->img, &s->st, 3);
	ps_in_vm(s, 11);
	ps_want_lua(s, f, 11, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

static void vararg_below(struct puc_scene *s)
{
	struct pui_fn f, g;

	ps_begin(s);
	f = ps_func(s, 10);
	g = ps_func(s, 30);
	pui_call(&s->img, &s->st, 5, f);
	pui_vararg(&s->img, &s->st, 3);
	pui_call(&s->img, &s->st, 9, g);
	ps_in_vm(s, 11);
	ps_want_lua(s, g, 11, THREAD);
	ps_want_lua(s, f, 9, 0);
	ps_want_lua(s, s->main, 5, 0);
}

/* luac -s: no lines. The walk has no use for them. */
static void stripped(struct puc_scene *s)
{
	const struct puc_layout *l = &s->img.puc;
	uint64_t p;

	ps_begin(s);
	p = pui_proto_of(&s->img, s->main);
	pui_put(&s->img, p + l->p_lineinfo, 8, 0);
	pui_put(&s->img, p + l->p_sizelineinfo, 4, 0);
	pui_put(&s->img, p + l->p_source, 8, 0);
	ps_in_vm(s, 11);
	ps_want_lua(s, s->main, 11, THREAD);
}

/* The function that calls itself stands at another place in each call. */
static void recursion(struct puc_scene *s)
{
	struct pui_fn f;
	uint32_t i;

	ps_begin(s);
	f = ps_func(s, 10);
	pui_call(&s->img, &s->st, 5, f);
	for (i = 10; i < 15; i++)
		pui_call(&s->img, &s->st, i, f);
	ps_in_vm(s, 33);
	ps_want_lua(s, f, 33, THREAD);
	while (--i >= 10)
		ps_want_lua(s, f, i, 0);
	ps_want_lua(s, s->main, 5, 0);
}

static void large_function(struct puc_scene *s)
{
	struct pui_fn f = pui_lua(&s->img, pui_proto(&s->img, 10, 3000));

	ps_begin(s);
	pui_call(&s->img, &s->st, 5, f);
	ps_in_vm(s, 2998);
	ps_want_lua(s, f, 2998, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

/* The next object begins so many bytes before a page's end. */
static void to_page_end(struct puc_scene *s, size_t before)
{
	size_t left = LB_PAGE - s->img.used % LB_PAGE;

	pui_alloc(&s->img, left + (left <= before ? LB_PAGE : 0) - before);
}

/* Each kind of object reaches from one page into the next. */
static void across_pages(struct puc_scene *s)
{
	struct pui_fn f;
	uint64_t p, co;

	ps_begin(s);
	ps_call_c(s, 5, PS_CFUNC);
	to_page_end(s, 64);
	p = pui_proto(&s->img, 10, PUI_CODE);
	to_page_end(s, 16);
	f = pui_lua(&s->img, p);
	to_page_end(s, 48);
	co = pui_thread(&s->img);
	to_page_end(s, 16);
	ps_resume_lua(s, co, f);
	to_page_end(s, 32);
	pui_call(&s->img, &s->st, 7, f);
	ps_in_vm(s, 3);
	ps_want_lua(s, f, 3, THREAD);
	ps_want_lua(s, f, 7, 0);
	ps_want_c(s, PS_CFUNC, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

static void deep(struct puc_scene *s, uint32_t depth)
{
	struct pui_fn f;
	uint32_t i;

	pui_grow(&s->img, s->img.main_L, 8 * depth, depth + 4);
	ps_begin(s);
	f = ps_func(s, 10);
	pui_call(&s->img, &s->st, 5, f);
	for (i = 0; i < depth - 2; i++)
		pui_call(&s->img, &s->st, 7, f);
	ps_in_vm(s, 12);
	ps_want_lua(s, f, 12, THREAD);
	for (i = 0; i < depth - 2 && s->nwant < LB_MAX_FRAMES; i++)
		ps_want_lua(s, f, 7, 0);
	if (s->nwant < LB_MAX_FRAMES)
		ps_want_lua(s, s->main, 5, 0);
	else
		s->flags = LB_SAMPLE_CUT;
}

static void deep_126(struct puc_scene *s)
{
	deep(s, 126);
}

static void deep_127(struct puc_scene *s)
{
	deep(s, 127);
}

static void deep_128(struct puc_scene *s)
{
	deep(s, 128);
}

static void deep_250(struct puc_scene *s)
{
	deep(s, 250);
}

const struct puc_scene_row puc_scenes_frames[] = {
	{"main_alone", main_alone},
	{"calls", calls},
	{"calls_by_c", calls_by_c},
	{"c_function", c_function},
	{"light_c_function", light_c_function},
	{"c_at_the_bottom", c_at_the_bottom},
	{"c_calls_lua", c_calls_lua},
	{"pcall", pcall},
	{"pcall_in_pcall", pcall_in_pcall},
	{"metamethod", metamethod},
	{"finalizer", finalizer},
	{"finalizer_calls", finalizer_calls},
	{"finalizer_in_finalizer", finalizer_in_finalizer},
	{"finalizer_in_c", finalizer_in_c},
	{"finalizer_of_collect", finalizer_of_collect},
	{"hook", hook},
	{"error_caught", error_caught},
	{"error_caught_in_vm", error_caught_in_vm},
	{"error_or_moved", error_or_moved},
	{"tail_call", tail_call},
	{"tail_calls_left_over", tail_calls_left_over},
	{"tail_called_at_the_first", tail_called_at_the_first},
	{"tail_call_below", tail_call_below},
	{"hooked_tail_call", hooked_tail_call},
	{"vararg", vararg},
	{"vararg_below", vararg_below},
	{"stripped", stripped},
	{"recursion", recursion},
	{"large_function", large_function},
	{"across_pages", across_pages},
	{"deep_126", deep_126},
	{"deep_127", deep_127},
	{"deep_128", deep_128},
	{"deep_250", deep_250},
	{NULL, NULL},
};
