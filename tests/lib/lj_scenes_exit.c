// SPDX-License-Identifier: BSD-2-Clause
/* A trace is left by an exit: its stub, vm_exit_handler, and what these call. */
#include "lj_scene_compiled.h"

/* A stub of exit 2 has pushed both bytes of its number. */
static void exit_stub(struct lj_scene *s)
{
	struct compiled_scene c = sc_compiled(s);

	s->img.sp -= 16;
	lji_put64(&s->img, s->img.sp + 8, 2);
	lji_put64(&s->img, s->img.sp, 0);
	s->in.regs.ip = LJI_MCODE + 0x100000;
	s->in.regs.sp = s->img.sp;
	sc_want_snapshot(s, &c, 2);
}

/* Exit 0x102 does not exist: a word of the caller looks like a number. */
static void exit_stub_bad(struct lj_scene *s)
{
	struct compiled_scene c = sc_compiled(s);

	s->img.sp -= 16;
	lji_put64(&s->img, s->img.sp + 8, 2);
	lji_put64(&s->img, s->img.sp, 1);
	s->in.regs.ip = LJI_MCODE + 0x100000;
	s->in.regs.sp = s->img.sp;
	sc_want_snapshot(s, &c, 0);
}

/*
 * At the first instruction of a stub, the third of four (there are 32):
 *
 *	push 0; jmp +10; push 1; jmp +6; push 2; jmp +2; push 3; push hi; jmp vm_exit_handler
 */
#define STUBS (LJI_MCODE + 0x3800)
static struct compiled_scene stub(struct lj_scene *s, uint8_t hi)
{
	struct compiled_scene c = sc_compiled(s);

	lji_put64(&s->img, STUBS, 0x06eb016a0aeb006a);
	lji_put64(&s->img, STUBS + 8, 0x006a036a02eb026a | (uint64_t)hi << 56);
	lji_put64(&s->img, STUBS + 16, 0xe9);
	s->in.regs.ip = STUBS + 8;
	return c;
}

static void exit_stub_begins(struct lj_scene *s)
{
	struct compiled_scene c = stub(s, 0);

	sc_want_snapshot(s, &c, 2);
}

/* The last one of its group needs no jump. */
static void exit_stub_last(struct lj_scene *s)
{
	struct compiled_scene c = stub(s, 0);

	s->in.regs.ip = STUBS + 12;
	sc_want_snapshot(s, &c, 3);
}

/* There is no exit 0x102. */
static void exit_stub_of_others(struct lj_scene *s)
{
	struct compiled_scene c = stub(s, 1);

	sc_want_snapshot(s, &c, 0);
}

/* It has pushed the lower byte, and is to jump; or is there. */
static struct compiled_scene stub_pushed(struct lj_scene *s, uint64_t at)
{
	struct compiled_scene c = stub(s, 0);

	s->img.sp -= 8;
	lji_put64(&s->img, s->img.sp, 2);
	s->in.regs.ip = at;
	s->in.regs.sp = s->img.sp;
	sc_want_snapshot(s, &c, 2);
	return c;
}

static void exit_stub_jumps(struct lj_scene *s)
{
	stub_pushed(s, STUBS + 10);
}

static void exit_stub_has_jumped(struct lj_scene *s)
{
	stub_pushed(s, STUBS + 14);
}

/* vm_exit_handler pushes registers: the state is not set yet. */
static void exit_handler_pushes(struct lj_scene *s)
{
	exit_stub(s);
	lji_c_code(&s->img, 5);
	sc_in_vm(s, 0x4, 0x5);
}

/* ... it has put others where the number was. */
static void exit_handler_has_number(struct lj_scene *s)
{
	exit_stub(s);
	lji_put64(&s->img, s->img.sp + 8, 0x7f0012345678);
	lji_put64(&s->img, s->img.sp, s->in.regs.gl);
	lji_c_code(&s->img, 14);
	sc_in_vm(s, 0x4, 0x5);
	s->in.regs.rd = 2;
}

/* vm_exit_handler: the state is set; J.parent and J.exitno are an older exit's, or not. */
static struct compiled_scene exits(struct lj_scene *s)
{
	struct compiled_scene c = sc_compiled(s);

	lji_vmstate(&s->img, LJ_VMST_EXIT);
	s->detail = -LJ_VMST_EXIT;
	lji_exit(&s->img, 3, 2);
	lji_sync(&s->img, &s->st);
	s->img.sp -= 264;
	sc_in_vm(s, 0x4, 0x5);
	s->in.regs.ra = 3;
	s->in.regs.rd = 2;
	s->state = 'J';
	sc_want_snapshot(s, &c, 2);
	return c;
}

static void exit_handler(struct lj_scene *s)
{
	exits(s);
}

static void exit_handler_begins(struct lj_scene *s)
{
	exits(s);
	lji_exit(&s->img, 1, 1);
}

/* lj_trace_exit: jit_base is cleared, L->base still the trace's, SAVE_PC of no function. */
static struct compiled_scene exits_in_c(struct lj_scene *s)
{
	struct compiled_scene c = exits(s);

	lji_jit_base(&s->img, 0);
	lji_vm_calls(&s->img, SC_SITE);
	lji_c_code(&s->img, 20);
	s->in.regs = (struct lb_regs){.ip = SC_HELPER, .sp = s->img.sp};
	return c;
}

static void exit_before_restore(struct lj_scene *s)
{
	exits_in_c(s);
}

/* ... nor when it is another one of the same function. */
static void exit_stale_pc(struct lj_scene *s)
{
	struct compiled_scene c = exits_in_c(s);

	lji_set_pc(&s->img, s->cframe, lji_bc(&s->img, c.f, 31));
}

/* lj_snap_restore is done: the frames are real, L->base is h's, the pc is stored. */
static void exit_restored(struct lj_scene *s)
{
	struct compiled_scene c = exits_in_c(s);

	lji_set_pc(&s->img, s->cframe, lji_bc(&s->img, c.h, 3));
	lji_call(&s->img, &s->st, c.f, 12, 4, c.g);
	lji_call(&s->img, &s->st, c.g, 9, 2, c.h);
	lji_sync(&s->img, &s->st);
	s->want[0].word &= ~((uint64_t)TRACE << 48);
	s->want[1].word &= ~((uint64_t)TRACE << 48);
	s->want[2].word &= ~((uint64_t)TRACE << 48);
}

/* ... the pc is not stored yet. */
static void exit_restoring(struct lj_scene *s)
{
	struct compiled_scene c = exits_in_c(s);

	lji_call(&s->img, &s->st, c.f, 12, 4, c.g);
	lji_call(&s->img, &s->st, c.g, 9, 2, c.h);
	lji_sync(&s->img, &s->st);
	s->want[1].word &= ~((uint64_t)TRACE << 48);
	s->want[2].word &= ~((uint64_t)TRACE << 48);
}

/*
 * The same; the snapshot has the function at the trace's base, too, as after a tail call: f. That is not the function at
 * L->base.
 */
static void exit_restoring_base(struct lj_scene *s)
{
	struct compiled_scene c = exits_in_c(s);
	const uint64_t link = lji_ins(&s->img, c.f, 12, LJ_OP_CALLM + 1, 4) + 4;
	const struct lji_entry entries[] = {
		{0, LJI_TV(LJ_TFUNC, c.f)}, {1, 0}, {6, LJI_TV(LJ_TFUNC, c.g)}, {7, link}};

	s->nwant = 0;
	lji_snap(&s->img, &c.t, 0x150, lji_bc(&s->img, c.g, 8), 6, entries, 4);
	lji_exit(&s->img, 3, 5);
	lji_call(&s->img, &s->st, c.f, 12, 4, c.g);
	lji_sync(&s->img, &s->st);
	want_lua(s, c.g, 8, THREAD | TRACE);
	want_lua(s, c.f, 12, 0);
	want_lua(s, s->main, 5, 0);
}

/* An exit out of f itself, its SAVE_PC stored: nothing is inlined. */
static void exit_restored_flat(struct lj_scene *s)
{
	struct compiled_scene c = exits_in_c(s);

	s->nwant = 0;
	lji_set_pc(&s->img, s->cframe, lji_bc(&s->img, c.f, 10));
	lji_exit(&s->img, 3, 0);
	want_lua(s, c.f, 10, THREAD);
	want_lua(s, s->main, 5, 0);
}

const struct lj_scene_row lj_scenes_exit[] = {
	{"exit_stub", exit_stub},
	{"exit_stub_bad", exit_stub_bad},
	{"exit_stub_begins", exit_stub_begins},
	{"exit_stub_last", exit_stub_last},
	{"exit_stub_of_others", exit_stub_of_others},
	{"exit_stub_jumps", exit_stub_jumps},
	{"exit_stub_has_jumped", exit_stub_has_jumped},
	{"exit_handler_pushes", exit_handler_pushes},
	{"exit_handler_has_number", exit_handler_has_number},
	{"exit_handler", exit_handler},
	{"exit_handler_begins", exit_handler_begins},
	{"exit_before_restore", exit_before_restore},
	{"exit_stale_pc", exit_stale_pc},
	{"exit_restored", exit_restored},
	{"exit_restoring", exit_restoring},
	{"exit_restoring_base", exit_restoring_base},
	{"exit_restored_flat", exit_restored_flat},
	{NULL, NULL},
};
