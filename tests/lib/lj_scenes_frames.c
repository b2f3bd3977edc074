// SPDX-License-Identifier: BSD-2-Clause
/* Kinds of frames on the Lua stack, and what joins the stacks of coroutines. */
#include "lj_scene.h"

#define THREAD LB_FRAME_THREAD
#define HOOK LB_FRAME_HOOK

/* main calls f at 5 and f calls g at 7, which is on top and stands at 3. */
static void calls(struct lj_scene *s)
{
	uint64_t f, g;

	sc_begin(s);
	f = sc_func(s, 10);
	g = sc_func(s, 30);
	lji_call(&s->img, &s->st, s->main, 5, 3, f);
	lji_call(&s->img, &s->st, f, 7, 9, g);
	sc_in_helper(s, lji_bc(&s->img, g, 4));
	want_lua(s, g, 3, THREAD);
	want_lua(s, f, 7, 0);
	want_lua(s, s->main, 5, 0);
}

static void main_alone(struct lj_scene *s)
{
	sc_begin(s);
	sc_in_helper(s, lji_bc(&s->img, s->main, 9));
	want_lua(s, s->main, 8, THREAD);
}

/* The pc cannot be distinguished from "just entered": the first instruction. */
static void at_entry(struct lj_scene *s)
{
	sc_begin(s);
	sc_in_helper(s, lji_bc(&s->img, s->main, 0));
	want_lua(s, s->main, 0, THREAD);
}

/* SAVE_PC holds no pc of this function: line unknown. */
static void no_pc(struct lj_scene *s)
{
	sc_begin(s);
	sc_in_helper(s, 0);
	want_lua(s, s->main, LB_NO_PC, THREAD);
}

static void c_function(struct lj_scene *s)
{
	sc_begin(s);
	lji_call(&s->img, &s->st, s->main, 5, 3, lji_cfunc(&s->img, SC_CFUNC));
	sc_in_c(s);
	want_c(s, SC_CFUNC, THREAD);
	want_lua(s, s->main, 5, 0);
}

/* A C function calls Lua by lua_call (type C) or lua_pcall (type CP). */
static void c_calls_lua(struct lj_scene *s, uint32_t type)
{
	uint64_t f;

	sc_begin(s);
	f = sc_func(s, 10);
	lji_call(&s->img, &s->st, s->main, 5, 3, lji_cfunc(&s->img, SC_CFUNC));
	lji_vm_calls(&s->img, SC_SITE);
	lji_c_code(&s->img, 21);
	lji_cframe(&s->img, s->st.L, 1, s->st.L, 0);
	lji_push(&s->img, &s->st, f, 8, type);
	sc_in_helper(s, lji_bc(&s->img, f, 21));
	want_lua(s, f, 20, THREAD);
	want_c(s, SC_CFUNC, 0);
	want_lua(s, s->main, 5, 0);
}

static void c_calls_lua_call(struct lj_scene *s)
{
	c_calls_lua(s, LJ_FRAME_C);
}

static void c_calls_lua_pcall(struct lj_scene *s)
{
	c_calls_lua(s, LJ_FRAME_CP);
}

/* The collector runs a finalizer in the middle of main: its pc is that of the outer cframe. */
static void finalizer(struct lj_scene *s)
{
	uint64_t f;

	sc_begin(s);
	f = sc_func(s, 10);
	lji_set_pc(&s->img, s->cframe, lji_bc(&s->img, s->main, 14));
	lji_vm_calls(&s->img, SC_SITE);
	lji_c_code(&s->img, 10);
	lji_cframe(&s->img, s->st.L, 1, s->st.L, 0);
	lji_push(&s->img, &s->st, f, 12, LJ_FRAME_CP);
	sc_in_helper(s, lji_bc(&s->img, f, 2));
	want_lua(s, f, 1, THREAD | HOOK);
	want_lua(s, s->main, 13, 0);
}

/* Two of them, each in a function of its own: cframes and boundaries go in step. */
static void finalizer_in_finalizer(struct lj_scene *s)
{
	uint64_t f, g, outer;

	sc_begin(s);
	f = sc_func(s, 10);
	g = sc_func(s, 30);
	lji_set_pc(&s->img, s->cframe, lji_bc(&s->img, s->main, 14));
	lji_vm_calls(&s->img, SC_SITE);
	outer = lji_cframe(&s->img, s->st.L, 1, lji_bc(&s->img, f, 8), 0);
	lji_push(&s->img, &s->st, f, 12, LJ_FRAME_CP);
	lji_vm_calls(&s->img, SC_SITE);
	lji_cframe(&s->img, s->st.L, 1, s->st.L, 0);
	lji_push(&s->img, &s->st, g, 12, LJ_FRAME_CP);
	sc_in_helper(s, lji_bc(&s->img, g, 5));
	lji_set_pc(&s->img, outer, lji_bc(&s->img, f, 8));
	want_lua(s, g, 4, THREAD | HOOK);
	want_lua(s, f, 7, HOOK);
	want_lua(s, s->main, 13, 0);
}

/* A finalizer in the same function at another place: a cframe out of step shows a wrong line. */
static void finalizer_recursive(struct lj_scene *s)
{
	uint64_t f;

	sc_begin(s);
	f = sc_func(s, 10);
	lji_call(&s->img, &s->st, s->main, 5, 3, f);
	lji_set_pc(&s->img, s->cframe, lji_bc(&s->img, f, 40));
	lji_vm_calls(&s->img, SC_SITE);
	lji_cframe(&s->img, s->st.L, 1, lji_bc(&s->img, f, 30), 0);
	lji_push(&s->img, &s->st, f, 12, LJ_FRAME_CP);
	lji_vm_calls(&s->img, SC_SITE);
	lji_cframe(&s->img, s->st.L, 1, s->st.L, 0);
	lji_push(&s->img, &s->st, f, 12, LJ_FRAME_CP);
	sc_in_helper(s, lji_bc(&s->img, f, 20));
	want_lua(s, f, 19, THREAD | HOOK);
	want_lua(s, f, 29, HOOK);
	want_lua(s, f, 39, 0);
	want_lua(s, s->main, 5, 0);
}

/*
 * lua_cpcall within a C function: its cframe has no frame on the Lua stack, but a negative NRES,
 * the height of the stack.
 */
static void cpcall(struct lj_scene *s)
{
	uint64_t f, stack;

	sc_begin(s);
	f = sc_func(s, 10);
	stack = lji_get_ref(&s->img, s->st.L + LJI_OFF(&s->img, L_STACK));
	lji_set_pc(&s->img, s->cframe, lji_bc(&s->img, s->main, 6));
	lji_call(&s->img, &s->st, s->main, 5, 3, lji_cfunc(&s->img, SC_CFUNC));
	lji_vm_calls(&s->img, SC_SITE);
	lji_c_code(&s->img, 5);
	lji_cframe(&s->img, s->st.L, (int32_t)(stack - (s->st.base + 16)), s->st.L, 0);
	lji_vm_calls(&s->img, SC_SITE);
	lji_c_code(&s->img, 5);
	lji_cframe(&s->img, s->st.L, 1, s->st.L, 0);
	lji_push(&s->img, &s->st, f, 8, LJ_FRAME_CP);
	sc_in_helper(s, lji_bc(&s->img, f, 21));
	want_lua(s, f, 20, THREAD);
	want_c(s, SC_CFUNC, 0);
	want_lua(s, s->main, 5, 0);
}

/* The compiler runs in such a cframe: the function it is about stands at the outer one's pc. */
static void cpcall_on_top(struct lj_scene *s)
{
	uint64_t stack;

	sc_begin(s);
	stack = lji_get_ref(&s->img, s->st.L + LJI_OFF(&s->img, L_STACK));
	lji_set_pc(&s->img, s->cframe, lji_bc(&s->img, s->main, 33));
	lji_vm_calls(&s->img, SC_SITE);
	lji_sync(&s->img, &s->st);
	lji_cframe(&s->img, s->st.L, (int32_t)(stack - (s->st.base + 64)), s->st.L, 0);
	lji_vm_calls(&s->img, SC_SITE);
	lji_c_code(&s->img, 9);
	lji_vmstate(&s->img, LJ_VMST_OPT);
	s->detail = -LJ_VMST_OPT;
	s->in.regs = (struct lb_regs){.ip = SC_HELPER, .sp = s->img.sp};
	s->state = 'J';
	want_lua(s, s->main, 32, THREAD);
}

/* A metamethod: the continuation's slots hold the pc. */
static void metamethod(struct lj_scene *s)
{
	uint64_t f;

	sc_begin(s);
	f = sc_func(s, 10);
	lji_cont(&s->img, &s->st, f, 20, LJI_VM + 0x700, lji_bc(&s->img, s->main, 15));
	sc_in_helper(s, lji_bc(&s->img, f, 3));
	want_lua(s, f, 2, THREAD);
	want_lua(s, s->main, 14, 0);
}

/* C code called through the FFI calls back into Lua. */
static void ffi_callback(struct lj_scene *s)
{
	uint64_t f = sc_begin_callback(s);

	sc_in_helper(s, lji_bc(&s->img, f, 3));
	want_lua(s, f, 2, THREAD);
	want_ff(s, FF_CALLBACK, 0);
	want_lua(s, s->main, 5, 0);
}

/* A callback out of a finalizer-like place: pc of the Lua function below is the outer cframe's. */
static void ffi_callback_on_lua(struct lj_scene *s)
{
	uint64_t f;

	sc_begin(s);
	f = sc_func(s, 10);
	lji_set_pc(&s->img, s->cframe, lji_bc(&s->img, s->main, 18));
	lji_vm_calls(&s->img, SC_SITE);
	lji_c_code(&s->img, 14);
	lji_cframe(&s->img, s->st.L, 0, s->st.L, 0);
	lji_cont(&s->img, &s->st, f, 10, LJ_CONT_FFI_CALLBACK, 0);
	sc_in_helper(s, lji_bc(&s->img, f, 3));
	want_lua(s, f, 2, THREAD | HOOK);
	want_lua(s, s->main, 17, 0);
}

static void vararg(struct lj_scene *s)
{
	uint64_t f;

	sc_begin(s);
	f = sc_func(s, 10);
	lji_call(&s->img, &s->st, s->main, 5, 3, f);
	lji_vararg(&s->img, &s->st, f, 6);
	sc_in_helper(s, lji_bc(&s->img, f, 12));
	want_lua(s, f, 11, THREAD);
	want_lua(s, s->main, 5, 0);
}

static void vararg_below(struct lj_scene *s)
{
	uint64_t f, g;

	sc_begin(s);
	f = sc_func(s, 10);
	g = sc_func(s, 30);
	lji_call(&s->img, &s->st, s->main, 5, 3, f);
	lji_vararg(&s->img, &s->st, f, 6);
	lji_call(&s->img, &s->st, f, 9, 2, g);
	sc_in_helper(s, lji_bc(&s->img, g, 12));
	want_lua(s, g, 11, THREAD);
	want_lua(s, f, 9, 0);
	want_lua(s, s->main, 5, 0);
}

static void protected_call(struct lj_scene *s, uint32_t type, uint32_t slots)
{
	uint64_t f;

	sc_begin(s);
	f = sc_func(s, 10);
	lji_call(&s->img, &s->st, s->main, 5, 3, lji_ff(&s->img, FF_PCALL));
	lji_push(&s->img, &s->st, f, slots, type);
	sc_in_helper(s, lji_bc(&s->img, f, 12));
	want_lua(s, f, 11, THREAD);
	want_ff(s, FF_PCALL, 0);
	want_lua(s, s->main, 5, 0);
}

static void pcall(struct lj_scene *s)
{
	protected_call(s, LJ_FRAME_PCALL, 2);
}

static void xpcall_in_hook(struct lj_scene *s)
{
	protected_call(s, LJ_FRAME_PCALLH, 3);
}

/*
 * An error thrown where no function runs: a frame whose function slot holds L itself, on it the
 * error handler.
 */
static void dummy_frame(struct lj_scene *s)
{
	uint64_t f;

	sc_begin(s);
	f = sc_func(s, 10);
	lji_set_pc(&s->img, s->cframe, lji_bc(&s->img, s->main, 22));
	lji_vm_calls(&s->img, SC_SITE);
	lji_cframe(&s->img, s->st.L, 1, s->st.L, 0);
	lji_push(&s->img, &s->st, 0, 10, LJ_FRAME_C);
	lji_put_func(&s->img, s->st.base, LJ_TTHREAD, s->st.L);
	lji_vm_calls(&s->img, SC_SITE);
	lji_cframe(&s->img, s->st.L, 1, s->st.L, 0);
	lji_push(&s->img, &s->st, f, 4, LJ_FRAME_CP);
	sc_in_helper(s, lji_bc(&s->img, f, 4));
	want_lua(s, f, 3, THREAD | HOOK);
	want_lua(s, s->main, 21, 0);
}

static void deep(struct lj_scene *s, int depth)
{
	uint64_t f;
	int i;

	sc_begin(s);
	f = sc_func(s, 10);
	lji_call(&s->img, &s->st, s->main, 5, 3, f);
	for (i = 0; i < depth - 2; i++)
		lji_call(&s->img, &s->st, f, 7, 3, f);
	sc_in_helper(s, lji_bc(&s->img, f, 13));
	want_lua(s, f, 12, THREAD);
	for (i = 0; i < depth - 2 && s->nwant < LB_MAX_FRAMES; i++)
		want_lua(s, f, 7, 0);
	if (s->nwant < LB_MAX_FRAMES)
		want_lua(s, s->main, 5, 0);
	else
		s->flags = LB_SAMPLE_CUT;
}

static void deep_126(struct lj_scene *s)
{
	deep(s, 126);
}

static void deep_127(struct lj_scene *s)
{
	deep(s, 127);
}

static void deep_128(struct lj_scene *s)
{
	deep(s, 128);
}

static void deep_250(struct lj_scene *s)
{
	deep(s, 250);
}

/* The current thread calls coroutine.resume at 5 in `from`; the VM resumes co, which runs f. */
static uint64_t resume(struct lj_scene *s, uint64_t from, uint64_t f)
{
	uint64_t co = lji_thread(&s->img), cframe;

	lji_call(&s->img, &s->st, from, 5, 3, lji_ff(&s->img, FF_RESUME));
	lji_sync(&s->img, &s->st);
	cframe = lji_cframe(&s->img, co, 0, 0, LJI_RESUME);
	lji_put64(&s->img, cframe + s->img.lj.cframe_size - 8, LJI_VM + 0x900);
	s->st = lji_stack(&s->img, co);
	lji_push(&s->img, &s->st, f, 2, LJ_FRAME_CP);
	lji_run(&s->img, co);
	return co;
}

static void coroutine(struct lj_scene *s)
{
	uint64_t f;

	sc_begin(s);
	f = sc_func(s, 10);
	resume(s, s->main, f);
	sc_in_helper(s, lji_bc(&s->img, f, 3));
	want_lua(s, f, 2, THREAD);
	want_ff(s, FF_RESUME, THREAD);
	want_lua(s, s->main, 5, 0);
}

static void coroutine_in_coroutine(struct lj_scene *s)
{
	uint64_t f, g;

	sc_begin(s);
	f = sc_func(s, 10);
	g = sc_func(s, 30);
	resume(s, s->main, f);
	resume(s, f, g);
	sc_in_helper(s, lji_bc(&s->img, g, 3));
	want_lua(s, g, 2, THREAD);
	want_ff(s, FF_RESUME, THREAD);
	want_lua(s, f, 5, 0);
	want_ff(s, FF_RESUME, THREAD);
	want_lua(s, s->main, 5, 0);
}

/* In a coroutine a C function calls Lua: two cframes of its own before that of the resumer. */
static void coroutine_with_c(struct lj_scene *s)
{
	uint64_t f, g;

	sc_begin(s);
	f = sc_func(s, 10);
	g = sc_func(s, 30);
	resume(s, s->main, f);
	lji_call(&s->img, &s->st, f, 8, 3, lji_cfunc(&s->img, SC_CFUNC));
	lji_vm_calls(&s->img, SC_SITE);
	lji_c_code(&s->img, 30);
	lji_cframe(&s->img, s->st.L, 1, s->st.L, 0);
	lji_push(&s->img, &s->st, g, 8, LJ_FRAME_C);
	sc_in_helper(s, lji_bc(&s->img, g, 3));
	want_lua(s, g, 2, THREAD);
	want_c(s, SC_CFUNC, 0);
	want_lua(s, f, 8, 0);
	want_ff(s, FF_RESUME, THREAD);
	want_lua(s, s->main, 5, 0);
}

/* lua_resume by a C function, `words` of C stack away. */
static void resumed_by_c(struct lj_scene *s, uint32_t words)
{
	uint64_t f, co;

	sc_begin(s);
	f = sc_func(s, 10);
	co = lji_thread(&s->img);
	lji_call(&s->img, &s->st, s->main, 5, 3, lji_cfunc(&s->img, SC_CFUNC));
	lji_sync(&s->img, &s->st);
	lji_vm_calls(&s->img, SC_SITE);
	lji_c_code(&s->img, words);
	lji_cframe(&s->img, co, 0, 0, LJI_RESUME);
	s->st = lji_stack(&s->img, co);
	lji_push(&s->img, &s->st, f, 2, LJ_FRAME_CP);
	lji_run(&s->img, co);
	sc_in_helper(s, lji_bc(&s->img, f, 3));
	want_lua(s, f, 2, THREAD);
	s->resumer_is_guess = true;
	want_c(s, SC_CFUNC, THREAD);
	want_lua(s, s->main, 5, 0);
}

static void coroutine_by_c(struct lj_scene *s)
{
	resumed_by_c(s, 33);
}

static void coroutine_by_c_far(struct lj_scene *s)
{
	resumed_by_c(s, LJI_CSTACK_SIZE / 8 - 200);
}

/* lua_call(), which jumps into the VM, so that the cframe's return address is the C function's. */
static void coroutine_by_called_c(struct lj_scene *s)
{
	coroutine_by_c(s);
	lji_put64(&s->img, s->cframe + s->img.lj.cframe_size - 8, SC_CFUNC + 99);
}

/*
 * A coroutine's C function has resumed another thread, which has yielded, and works in C frames of
 * so many words. cur_L is that other thread still.
 */
static void goes_on_in_c(struct lj_scene *s, uint32_t words)
{
	uint64_t f;

	sc_begin(s);
	f = sc_func(s, 10);
	resume(s, s->main, f);
	lji_call(&s->img, &s->st, f, 8, 3, lji_cfunc(&s->img, SC_CFUNC));
	lji_set_pc(&s->img,
		   lji_get64(&s->img, s->st.L + LJI_OFF(&s->img, L_CFRAME)) & LJ_CFRAME_RAWMASK,
		   lji_bc(&s->img, f, 9));
	sc_in_c(s);
	lji_c_code(&s->img, words);
	s->in.regs.sp = s->img.sp;
	lji_run(&s->img, lji_thread(&s->img));
	s->inner_is_guess = true;
	want_c(s, SC_CFUNC, THREAD);
	want_lua(s, f, 8, 0);
	want_ff(s, FF_RESUME, THREAD);
	want_lua(s, s->main, 5, 0);
}

static void goes_on_near(struct lj_scene *s)
{
	goes_on_in_c(s, 100);
}

static void goes_on_far(struct lj_scene *s)
{
	goes_on_in_c(s, 2500);
}

/* main's C function calls back; the thread that has used the FFI last has yielded in idle(). */
static void callback_in_yielded(struct lj_scene *s)
{
	uint64_t idle, f, co;

	sc_begin(s);
	idle = sc_func(s, 10);
	f = sc_func(s, 30);
	co = lji_thread(&s->img);
	lji_call(&s->img, &s->st, s->main, 5, 3, lji_cfunc(&s->img, SC_CFUNC));
	lji_sync(&s->img, &s->st);
	lji_vm_calls(&s->img, SC_SITE);
	lji_c_code(&s->img, 14);
	lji_cframe(&s->img, co, 0, 0, 0);
	s->st = lji_stack(&s->img, co);
	lji_push(&s->img, &s->st, idle, 2, LJ_FRAME_CP);
	lji_cont(&s->img, &s->st, f, 10, LJ_CONT_FFI_CALLBACK, 0);
	lji_run(&s->img, co);
	sc_in_helper(s, lji_bc(&s->img, f, 3));
	want_lua(s, f, 2, THREAD);
	s->resumer_is_guess = true;
	want_c(s, SC_CFUNC, THREAD);
	want_lua(s, s->main, 5, 0);
}

/* lua_resume by a host's main loop: nothing runs below. */
static void resumed_by_host(struct lj_scene *s)
{
	uint64_t f = sc_func(s, 10), co = lji_thread(&s->img);

	lji_cframe(&s->img, co, 0, 0, LJI_RESUME);
	s->st = lji_stack(&s->img, co);
	lji_push(&s->img, &s->st, f, 2, LJ_FRAME_CP);
	lji_run(&s->img, co);
	lji_vmstate(&s->img, LJ_VMST_INTERP);
	sc_in_helper(s, lji_bc(&s->img, f, 3));
	want_lua(s, f, 2, THREAD);
}

/* The C stack ends in a page that cannot be read: there may be a resumer behind. */
static void coroutine_by_c_too_far(struct lj_scene *s)
{
	sc_begin(s);
	resumed_by_host(s);
	s->in.stack_hi += 0x1000;
	s->nwant = 1;
	s->flags = LB_SAMPLE_CUT;
	lji_put64(&s->img, s->img.main_L + LJI_OFF(&s->img, L_CFRAME), 0);
}

static void coroutine_by_host(struct lj_scene *s)
{
	lji_c_code(&s->img, 400);
	resumed_by_host(s);
}

/* The same, with words above it of which a cframe could be made: a return address, and garbage. */
static void coroutine_by_host_loop(struct lj_scene *s)
{
	uint32_t i;

	for (i = 0; i < 20; i++) {
		lji_c_code(&s->img, 9);
		lji_put64(&s->img, s->img.sp, LJI_TEXT + 0x40000);
		lji_c_code(&s->img, s->img.lj.cframe_size / 8);
		lji_put64(&s->img, s->img.sp + LJI_OFF(&s->img, CFRAME_L), 0x10700000000);
		lji_put64(&s->img, s->img.sp + s->img.lj.cframe_prev, i + 1);
	}
	resumed_by_host(s);
}

/* Another thread's cframe above the main thread's: nobody resumes the main thread. */
static void main_is_the_bottom(struct lj_scene *s)
{
	uint64_t co = lji_thread(&s->img);
	struct lji_stack st = lji_stack(&s->img, co);

	lji_cframe(&s->img, co, 0, 0, LJI_RESUME);
	lji_push(&s->img, &st, sc_func(s, 10), 2, LJ_FRAME_CP);
	lji_sync(&s->img, &st);
	lji_c_code(&s->img, 20);
	main_alone(s);
}

/* After an exit to a patched loop header the pc stored is behind GCtrace.startins. */
static void pc_in_trace(struct lj_scene *s)
{
	struct lji_trace t;
	uint64_t f;

	sc_begin(s);
	f = sc_func(s, 10);
	lji_call(&s->img, &s->st, s->main, 5, 3, f);
	t = lji_trace(&s->img, 2, lji_proto_of(&s->img, f), lji_bc(&s->img, f, 17), 64, 0);
	sc_in_helper(s, t.addr + LJI_OFF(&s->img, TRACE_STARTINS) + 4);
	want_lua(s, f, 17, THREAD);
	want_lua(s, s->main, 5, 0);
}

const struct lj_scene_row lj_scenes_frames[] = {
	{"main_alone", main_alone},
	{"at_entry", at_entry},
	{"no_pc", no_pc},
	{"calls", calls},
	{"c_function", c_function},
	{"c_calls_lua_call", c_calls_lua_call},
	{"c_calls_lua_pcall", c_calls_lua_pcall},
	{"finalizer", finalizer},
	{"finalizer_in_finalizer", finalizer_in_finalizer},
	{"finalizer_recursive", finalizer_recursive},
	{"cpcall", cpcall},
	{"cpcall_on_top", cpcall_on_top},
	{"metamethod", metamethod},
	{"ffi_callback", ffi_callback},
	{"ffi_callback_on_lua", ffi_callback_on_lua},
	{"vararg", vararg},
	{"vararg_below", vararg_below},
	{"pcall", pcall},
	{"xpcall_in_hook", xpcall_in_hook},
	{"dummy_frame", dummy_frame},
	{"deep_126", deep_126},
	{"deep_127", deep_127},
	{"deep_128", deep_128},
	{"deep_250", deep_250},
	{"coroutine", coroutine},
	{"coroutine_in_coroutine", coroutine_in_coroutine},
	{"coroutine_with_c", coroutine_with_c},
	{"coroutine_by_c", coroutine_by_c},
	{"coroutine_by_c_far", coroutine_by_c_far},
	{"coroutine_by_called_c", coroutine_by_called_c},
	{"coroutine_by_c_too_far", coroutine_by_c_too_far},
	{"callback_in_yielded", callback_in_yielded},
	{"goes_on_near", goes_on_near},
	{"goes_on_far", goes_on_far},
	{"coroutine_by_host", coroutine_by_host},
	{"coroutine_by_host_loop", coroutine_by_host_loop},
	{"main_is_the_bottom", main_is_the_bottom},
	{"pc_in_trace", pc_in_trace},
	{NULL, NULL},
};
