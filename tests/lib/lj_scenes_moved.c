// SPDX-License-Identifier: BSD-2-Clause
/* While a Lua stack is moved, as it grows; and while one that cannot grow is unwound. */
#include "lj_scene.h"

#define THREAD LB_FRAME_THREAD
/* Where the stack was. */
static uint64_t old_of(const struct lj_scene *s)
{
	return s->img.lj.gc32 ? 0x500000d0 : 0x2000500000d0;
}

static uint64_t stack_of(struct lj_scene *s)
{
	return lji_get_ref(&s->img, s->st.L + LJI_OFF(&s->img, L_STACK));
}

/* main calls f, whose frame has no room: L->stack is the new block's, L->base the old one's. */
static void moving(struct lj_scene *s)
{
	uint64_t f;

	sc_begin(s);
	f = sc_func(s, 10);
	lji_call(&s->img, &s->st, s->main, 5, 3, f);
	sc_in_helper(s, lji_bc(&s->img, f, 1));
	lji_put64(&s->img, s->st.L + LJI_OFF(&s->img, L_BASE),
		  s->st.base - stack_of(s) + old_of(s));
	want_lua(s, f, 0, THREAD);
	want_main_at_call(s);
}

static void moving_delta(struct lj_scene *s)
{
	moving(s);
	s->in.regs.rb = stack_of(s) - old_of(s);
}

static void moving_old(struct lj_scene *s)
{
	moving(s);
	s->in.regs.kept[2] = old_of(s);
}

/* The delta was pushed. In between is a word that leads to no frame. */
static void moving_pushed(struct lj_scene *s)
{
	moving(s);
	lji_put64(&s->img, s->img.sp + 16, stack_of(s) - old_of(s) + 8);
	lji_put64(&s->img, s->img.sp + 40, stack_of(s) - old_of(s));
}

/* A trace is left, whose callee's frame has no room. */
static void moving_exit(struct lj_scene *s)
{
	struct lji_trace t;
	uint64_t f;

	sc_begin(s);
	f = sc_func(s, 10);
	lji_call(&s->img, &s->st, s->main, 5, 3, f);
	t = lji_trace(&s->img, 4, s->main, lji_bc(&s->img, s->main, 1), 200, 16);
	lji_snap(&s->img, &t, 20, lji_bc(&s->img, f, 9), 0, NULL, 0);
	sc_in_helper(s, lji_bc(&s->img, f, 1));
	lji_put64(&s->img, s->st.L + LJI_OFF(&s->img, L_BASE),
		  s->st.base - stack_of(s) + old_of(s));
	lji_vmstate(&s->img, LJ_VMST_EXIT);
	s->detail = -LJ_VMST_EXIT;
	lji_exit(&s->img, 4, 0);
	s->in.regs.kept[0] = stack_of(s) - old_of(s);
	s->state = 'J';
	want_lua(s, f, 9, THREAD | LB_FRAME_TRACE);
	want_main_at_call(s);
}

/* Nothing says where it is. */
static void moving_lost(struct lj_scene *s)
{
	sc_begin(s);
	lji_call(&s->img, &s->st, s->main, 5, 3, sc_func(s, 10));
	sc_in_helper(s, lji_bc(&s->img, s->main, 1));
	lji_put64(&s->img, s->st.L + LJI_OFF(&s->img, L_BASE),
		  s->st.base - stack_of(s) + old_of(s));
	s->end = LB_STATUS_STACK_CHANGING;
}

/* A coroutine's: its resumer is not on top. */
static void moving_coroutine(struct lj_scene *s)
{
	uint64_t co, f;

	sc_begin(s);
	f = sc_func(s, 10);
	lji_call(&s->img, &s->st, s->main, 5, 3, lji_ff(&s->img, FF_RESUME));
	lji_sync(&s->img, &s->st);
	co = lji_thread(&s->img);
	lji_cframe(&s->img, co, 0, co, LJI_RESUME);
	s->st = lji_stack(&s->img, co);
	lji_push(&s->img, &s->st, f, 2, LJ_FRAME_C);
	sc_in_helper(s, lji_bc(&s->img, f, 1));
	lji_put64(&s->img, co + LJI_OFF(&s->img, L_BASE), s->st.base - stack_of(s) + old_of(s));
	lji_run(&s->img, co);
	s->end = LB_STATUS_STACK_CHANGING;
}

/* The old block is unmapped already, L->stack still its address: the new one's, or its chunk's. */
static void moved(struct lj_scene *s)
{
	uint64_t size;

	moving(s);
	size = lji_get_ref(&s->img, s->st.L + LJI_OFF(&s->img, L_MAXSTACK)) - stack_of(s);
	s->in.regs.rd = stack_of(s);
	lji_put_ref(&s->img, s->st.L + LJI_OFF(&s->img, L_STACK), old_of(s));
	lji_put_ref(&s->img, s->st.L + LJI_OFF(&s->img, L_MAXSTACK), old_of(s) + size);
}

static void moved_chunk(struct lj_scene *s)
{
	moved(s);
	s->in.regs.base = s->in.regs.rd - 16;
	s->in.regs.rd = 0;
}

/*
 * The old block is unmapped and the new one's address nowhere. What a register points to was the
 * coroutine's stack, too, when it was smaller, and is free. The resumer is not on top.
 */
static void moved_stale(struct lj_scene *s)
{
	uint64_t L, stack, size, freed;

	moving_coroutine(s);
	L = s->st.L;
	stack = stack_of(s);
	size = lji_get_ref(&s->img, L + LJI_OFF(&s->img, L_MAXSTACK)) - stack;
	lji_put_ref(&s->img, L + LJI_OFF(&s->img, L_STACK), old_of(s));
	lji_put_ref(&s->img, L + LJI_OFF(&s->img, L_MAXSTACK), old_of(s) + size);
	freed = lji_alloc(&s->img, size);
	lji_put64(&s->img, freed, lji_get64(&s->img, stack)); /* its first slot: the thread */
	s->in.regs.rd = freed;
}

/* f cannot be called, as the stack is at its limit: in its frame is a dummy, an error is thrown. */
static void overflow(struct lj_scene *s)
{
	uint64_t f = sc_begin_call(s);

	lji_call(&s->img, &s->st, s->main, 5, 3, f);
	sc_in_helper(s, lji_bc(&s->img, f, 1));
	lji_put_func(&s->img, s->st.base, LJ_TTHREAD, s->st.L);
	want_main_at_call(s);
}

/* What stands there is a thread that is no frame's. */
static void no_overflow(struct lj_scene *s)
{
	sc_two_slots(s);
	overflow(s);
	lji_put64(&s->img, s->st.base - 8, LJI_TV(LJ_TTHREAD, s->st.L));
	s->nwant = 0;
	s->end = LB_STATUS_STACK_CHANGING;
}

const struct lj_scene_row lj_scenes_moved[] = {
	{"moving_delta", moving_delta},
	{"moving_old", moving_old},
	{"moving_pushed", moving_pushed},
	{"moving_exit", moving_exit},
	{"moving_lost", moving_lost},
	{"moving_coroutine", moving_coroutine},
	{"moved", moved},
	{"moved_chunk", moved_chunk},
	{"moved_stale", moved_stale},
	{"overflow", overflow},
	{"no_overflow", no_overflow},
	{0},
};
