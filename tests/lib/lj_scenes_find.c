// SPDX-License-Identifier: BSD-2-Clause
/* Which VM runs on this thread, if any: idle and stale ones must never be charged. */
#include "lj_scene.h"

#define THREAD LB_FRAME_THREAD

/* main in C code of the library; nothing in a register leads there. */
static void found_as_known(struct lj_scene *s)
{
	sc_begin(s);
	sc_in_helper(s, lji_bc(&s->img, s->main, 9));
	want_lua(s, s->main, 8, THREAD);
}

static void found_by_register(struct lj_scene *s)
{
	found_as_known(s);
	s->in.known[0] = 0;
	s->in.regs.gl = s->img.g + s->img.lj.g2disp;
}

static void found_by_search(struct lj_scene *s)
{
	found_as_known(s);
	s->in.known[0] = 0;
}

/* In the VM the register leads to another VM than the one known. */
static void found_by_text(struct lj_scene *s)
{
	uint64_t known;

	sc_begin(s);
	known = s->img.g;
	lji_new_vm(&s->img);
	sc_begin(s);
	sc_in_vm(s, s->st.base, lji_bc(&s->img, s->main, 9));
	s->in.known[0] = known;
	s->in.regs.gl = s->img.g + s->img.lj.g2disp;
	want_lua(s, s->main, 8, THREAD);
}

/* Two VMs on one C stack: Lua called C, which called the other VM. The inner one runs. */
static void innermost_vm(struct lj_scene *s)
{
	uint64_t outer, main;

	sc_begin(s);
	outer = s->img.g;
	main = s->main;
	lji_call(&s->img, &s->st, s->main, 5, 3, lji_cfunc(&s->img, SC_CFUNC));
	sc_in_c(s);
	lji_new_vm(&s->img);
	sc_begin(s);
	sc_in_helper(s, lji_bc(&s->img, s->main, 9));
	s->in.known[0] = outer;
	s->in.known[1] = s->img.g;
	s->state = 'I';
	s->vm_is_guess = true;
	want_lua(s, s->main, 8, THREAD);
	want_vm(s, outer);
	want_c(s, SC_CFUNC, THREAD);
	want_lua(s, main, 5, 0);
}

/* The inner one is done: the outer one's C function goes on. */
static void outer_vm_again(struct lj_scene *s)
{
	uint64_t outer, c, main, sp;

	sc_begin(s);
	outer = s->img.g;
	main = s->main;
	c = lji_cfunc(&s->img, SC_CFUNC);
	lji_call(&s->img, &s->st, s->main, 5, 3, c);
	sc_in_c(s);
	sp = s->img.sp;
	lji_new_vm(&s->img);
	sc_begin(s);
	sc_in_helper(s, lji_bc(&s->img, s->main, 9));
	s->in.regs.sp = sp;
	s->in.known[0] = outer;
	s->in.known[1] = s->img.g;
	s->state = 'C';
	want_c(s, SC_CFUNC, THREAD);
	want_lua(s, main, 5, 0);
}

static void outside(struct lj_scene *s)
{
	s->end = LB_STATUS_OUTSIDE;
}

/* No thread of the VM has a cframe: it is idle. */
static void idle(struct lj_scene *s)
{
	found_as_known(s);
	lji_put64(&s->img, s->img.main_L + LJI_OFF(&s->img, L_CFRAME), 0);
	s->in.regs.gl = s->img.g + s->img.lj.g2disp;
	outside(s);
}

/* Its cframe is below sp: left by a longjmp, or the C stack is another's. */
static void stale_cframe(struct lj_scene *s)
{
	found_as_known(s);
	s->in.regs.sp = LJI_CSTACK_END - 64;
	outside(s);
}

/* It runs on another thread's C stack. */
static void other_thread(struct lj_scene *s)
{
	found_as_known(s);
	s->in.regs.sp = LJI_CSTACK - 0x100000;
	s->in.stack_hi = LJI_CSTACK - 0x80000;
	outside(s);
}

static void no_vm_yet(struct lj_scene *s)
{
	found_as_known(s);
	lji_run(&s->img, 0);
	outside(s);
}

static void cur_L_is_no_thread(struct lj_scene *s)
{
	found_as_known(s);
	lji_put8(&s->img, s->img.main_L + LJI_OFF(&s->img, L_GCT), LJ_GCT_FUNC);
	outside(s);
}

static void cur_L_of_other_vm(struct lj_scene *s)
{
	found_as_known(s);
	lji_put_ref(&s->img, s->img.main_L + LJI_OFF(&s->img, L_GLREF), s->img.g + 16);
	outside(s);
}

static void garbage_pointers(struct lj_scene *s)
{
	found_as_known(s);
	s->in.known[0] = 0xdead00000000beefULL;
	s->in.known[1] = 0x7ffffffff008ULL;
	s->in.regs.gl = s->img.lj.g2disp;
	lji_run(&s->img, 0x8000000000000ULL);
	outside(s);
}

const struct lj_scene_row lj_scenes_find[] = {
	{"found_as_known", found_as_known},
	{"found_by_register", found_by_register},
	{"found_by_search", found_by_search},
	{"found_by_text", found_by_text},
	{"innermost_vm", innermost_vm},
	{"outer_vm_again", outer_vm_again},
	{"idle", idle},
	{"stale_cframe", stale_cframe},
	{"other_thread", other_thread},
	{"no_vm_yet", no_vm_yet},
	{"cur_L_is_no_thread", cur_L_is_no_thread},
	{"cur_L_of_other_vm", cur_L_of_other_vm},
	{"garbage_pointers", garbage_pointers},
	{NULL, NULL},
};
