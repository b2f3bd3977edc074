// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where the topmost frame is found while the VM has called C: helpers, the collector, the compiler;
 * and where no frame is left or made.
 */
#include "lj_scene.h"

#define THREAD LB_FRAME_THREAD

/* A helper before which BASE went to rbp only; rbp and rbx are as they were. */
static void helper_rbp(struct lj_scene *s)
{
	uint64_t f = sc_begin_call(s);

	lji_call(&s->img, &s->st, s->main, 5, 3, f);
	lji_vm_calls(&s->img, SC_SITE_RBP);
	s->in.regs = (struct lb_regs){.ip = SC_HELPER,
				      .sp = s->img.sp,
				      .base = 3,
				      .pc = lji_bc(&s->img, f, 12),
				      .rb = s->st.base};
	want_lua(s, f, 11, THREAD);
	want_main_at_call(s);
}

/* The helper has returned, BASE is not yet taken back: its register holds what C left in it. */
static void helper_rbp_returned(struct lj_scene *s)
{
	helper_rbp(s);
	s->in.regs.ip = LJI_VM + SC_SITE_RBP;
	s->in.regs.sp = s->cframe;
	s->in.regs.base = 0x40;
	s->in.regs.gl = s->img.g + s->img.lj.g2disp;
}

/* The same in a function that calls itself, so that what was stored looks as good. */
static void helper_rbp_returned_recursive(struct lj_scene *s)
{
	sc_begin(s);
	lji_call(&s->img, &s->st, s->main, 5, 3, s->main);
	lji_sync(&s->img, &s->st);
	lji_call(&s->img, &s->st, s->main, 5, 3, s->main);
	sc_in_vm(s, 0x40, lji_bc(&s->img, s->main, 12));
	s->in.regs.ip = LJI_VM + SC_SITE_RBP;
	s->in.regs.rb = s->st.base;
	lji_put64(&s->img, s->img.sp - 8, LJI_VM + SC_SITE_RBP);
	want_lua(s, s->main, 11, THREAD);
	want_main_at_call(s);
	want_main_at_call(s);
}

static void push_word(struct lj_scene *s, uint64_t word)
{
	s->img.sp -= 8;
	lji_put64(&s->img, s->img.sp, word);
	s->in.regs.sp = s->img.sp;
}

/* ... which it has pushed, with others. */
static void helper_rbp_pushed(struct lj_scene *s)
{
	helper_rbp(s);
	push_word(s, 0x7777);
	push_word(s, 0x1111);
	push_word(s, s->in.regs.rb);
	push_word(s, s->in.regs.pc);
	s->in.regs.rb = s->img.sp;
	s->in.regs.pc = 0x55;
	lji_c_code(&s->img, 20);
	s->in.regs.sp = s->img.sp;
}

/* ... rbp pushed, as a frame pointer; rbx still in its register. */
static void helper_rbp_frame_pointer(struct lj_scene *s)
{
	helper_rbp(s);
	push_word(s, s->in.regs.rb);
	s->in.regs.rb = s->img.sp;
	lji_c_code(&s->img, 20);
	s->in.regs.sp = s->img.sp;
}

/* A fast function's call of libm: its frame is at rbp. */
static void helper_rbp_ff(struct lj_scene *s)
{
	sc_begin_call(s);
	lji_call(&s->img, &s->st, s->main, 5, 3, lji_ff(&s->img, FF_FLOOR));
	lji_vm_calls(&s->img, SC_SITE_RBP);
	s->in.regs = (struct lb_regs){
		.ip = SC_HELPER, .sp = s->img.sp, .pc = sc_pc_of_call(s), .rb = s->st.base};
	want_ff(s, FF_FLOOR, THREAD);
	want_main_at_call(s);
}

/* As helper_rbp(), of a function that a trace was stitched around: its result has replaced it. */
static void helper_rbp_stitched(struct lj_scene *s)
{
	sc_two_slots(s);
	sc_begin_call(s);
	lji_cont(&s->img, &s->st, lji_ff(&s->img, FF_FLOOR), 20, LJI_VM + 0x700,
		 lji_bc(&s->img, s->main, 15));
	lji_vm_calls(&s->img, SC_SITE_RBP);
	lji_put64(&s->img, s->st.base - 16, 0x4014000000000000);
	s->in.regs = (struct lb_regs){
		.ip = SC_HELPER, .sp = s->img.sp, .pc = s->img.g + 0x100, .rb = s->st.base};
	want_lua(s, s->main, 14, THREAD);
}

/* ... of one that runs in C, before which BASE and PC were stored. */
static void helper_stitched(struct lj_scene *s)
{
	sc_two_slots(s);
	helper_rbp_stitched(s);
	s->img.sp += 8;
	lji_sync(&s->img, &s->st);
	lji_set_pc(&s->img, s->cframe, s->in.regs.pc);
	lji_vm_calls(&s->img, SC_SITE);
	s->in.regs.pc = 0x55;
	s->in.regs.rb = 0x40;
}

/* A hook is about to be called: L->base is stored, PC in its register or pushed only. */
static void dispatch_ins(struct lj_scene *s)
{
	uint64_t f = sc_begin_call(s);

	lji_call(&s->img, &s->st, s->main, 5, 3, f);
	lji_sync(&s->img, &s->st);
	lji_vm_calls(&s->img, SC_SITE);
	s->in.regs = (struct lb_regs){.ip = SC_HELPER,
				      .sp = s->img.sp,
				      .base = 3,
				      .pc = lji_bc(&s->img, f, 12),
				      .rb = 0x40};
	want_lua(s, f, 11, THREAD);
	want_main_at_call(s);
}

static void dispatch_ins_pushed(struct lj_scene *s)
{
	dispatch_ins(s);
	push_word(s, 0x7777);
	push_word(s, s->st.base); /* what may be a base is none here */
	push_word(s, s->in.regs.pc);
	s->in.regs.pc = 0x55;
	lji_c_code(&s->img, 20);
	s->in.regs.sp = s->img.sp;
}

/* Neither register nor stack has it: what was stored is all there is. */
static void helper_rbp_lost(struct lj_scene *s)
{
	uint64_t f;

	sc_begin(s);
	f = sc_func(s, 10);
	lji_call(&s->img, &s->st, s->main, 5, 3, f);
	sc_in_helper(s, lji_bc(&s->img, f, 30));
	lji_put64(&s->img, s->cframe - 8, LJI_VM + SC_SITE_RBP);
	want_lua(s, f, 29, THREAD);
	want_main_at_call(s);
}

/*
 * lj_meta_tailcall: a C function that main's metamethod call has run is to be replaced by another,
 * which is in its place already. A dummy frame on top says so to the VM.
 */
static void meta_tailcall(struct lj_scene *s)
{
	sc_begin(s);
	lji_cont(&s->img, &s->st, sc_func(s, 10), 20, LJI_VM + 0x700, lji_bc(&s->img, s->main, 15));
	lji_cont(&s->img, &s->st, s->main, 6, 0, 20 * 8 | LJ_FRAME_CONT);
	lji_put_func(&s->img, s->st.base, LJ_TTHREAD, s->st.L);
	sc_in_c(s);
	want_lua(s, s->main, 14, THREAD);
}

static void meta_tailcall_returned(struct lj_scene *s)
{
	meta_tailcall(s);
	sc_in_vm(s, s->st.base, 0x123);
	s->in.regs.sp = s->cframe;
	s->in.regs.gl = s->img.g + s->img.lj.g2disp;
	lji_vmstate(&s->img, LJ_VMST_INTERP);
	s->state = 'I';
}

/* lua_close: finalizers are over, or between two of them; no function is on the stack. */
static void vm_closes(struct lj_scene *s)
{
	sc_begin(s);
	s->st = lji_stack(&s->img, s->img.main_L);
	lji_put64(&s->img, s->img.main_L + LJI_OFF(&s->img, L_CFRAME), 0);
	lji_cframe(&s->img, s->img.main_L, -16, s->img.main_L, 0);
	sc_in_c(s);
	s->end = LB_STATUS_OUTSIDE;
}

/* lua_newstate: nothing has set the state yet. */
static void vm_opens(struct lj_scene *s)
{
	vm_closes(s);
	lji_put32(&s->img, s->cframe - s->img.lj.cframe_size + LJI_OFF(&s->img, CFRAME_NRES),
		  0); /* nor a stack made */
	lji_vmstate(&s->img, 0);
}

/* L->base is stale: a function runs, but what runs it is no cpcall. Not found is not outside. */
static void stale_bottom(struct lj_scene *s)
{
	sc_begin(s);
	s->st = lji_stack(&s->img, s->img.main_L);
	sc_in_c(s);
	s->end = LB_STATUS_STACK_CHANGING;
	s->lost = s->img.lj.gc32; /* there is no slot below the bottom's: it is a fault */
}

/* Tarantool, after an FFI callback: vmstate is a word that was never stored there. */
static void vmstate_garbage(struct lj_scene *s)
{
	sc_begin(s);
	lji_call(&s->img, &s->st, s->main, 5, 3, lji_cfunc(&s->img, SC_CFUNC));
	sc_in_c(s);
	lji_vmstate(&s->img, 0x7ffd);
	want_c(s, SC_CFUNC, THREAD);
	want_main_at_call(s);
}

static void collector(struct lj_scene *s)
{
	sc_begin(s);
	sc_in_helper(s, lji_bc(&s->img, s->main, 9));
	lji_vmstate(&s->img, LJ_VMST_GC);
	s->state = 'G';
	want_lua(s, s->main, 8, THREAD);
}

static void collector_in_c(struct lj_scene *s)
{
	sc_begin(s);
	lji_call(&s->img, &s->st, s->main, 5, 3, lji_cfunc(&s->img, SC_CFUNC));
	sc_in_c(s);
	lji_vmstate(&s->img, LJ_VMST_GC);
	s->state = 'G';
	want_c(s, SC_CFUNC, THREAD);
	want_lua(s, s->main, 5, 0);
}

static void recorder(struct lj_scene *s)
{
	sc_begin(s);
	sc_in_helper(s, lji_bc(&s->img, s->main, 9));
	lji_vmstate(&s->img, LJ_VMST_RECORD);
	s->detail = -LJ_VMST_RECORD;
	s->state = 'J';
	want_lua(s, s->main, 8, THREAD);
}

static void assembler(struct lj_scene *s)
{
	recorder(s);
	lji_vmstate(&s->img, LJ_VMST_ASM);
	s->detail = -LJ_VMST_ASM;
}

/*
 * A callback of C code's is entered, or left: its function has a frame, and has not begun or has
 * returned.
 */
static void ffi_callback_idle(struct lj_scene *s)
{
	sc_begin_callback(s);
	sc_in_helper(s, 0x1234);
	want_ff(s, FF_CALLBACK, THREAD);
	want_lua(s, s->main, 5, 0);
}

/* C code that the FFI has called goes on after its callback, in the state that this has left. */
static void ffi_callback_done(struct lj_scene *s)
{
	uint64_t call;

	sc_begin(s);
	call = lji_ff(&s->img, FF_CALLBACK);
	lji_put32(&s->img, lji_bc(&s->img, call, 0), s->img.lj.bc_funcf + 6u);
	lji_call(&s->img, &s->st, s->main, 5, 3, call);
	sc_in_helper(s, s->main);
	s->in.regs.ip = SC_CFUNC;
	s->state = 'C';
	want_ff(s, FF_CALLBACK, THREAD);
	want_main_at_call(s);
}

const struct lj_scene_row lj_scenes_called[] = {
	{"helper_rbp", helper_rbp},
	{"helper_rbp_pushed", helper_rbp_pushed},
	{"helper_rbp_frame_pointer", helper_rbp_frame_pointer},
	{"helper_rbp_ff", helper_rbp_ff},
	{"helper_rbp_stitched", helper_rbp_stitched},
	{"helper_stitched", helper_stitched},
	{"helper_rbp_lost", helper_rbp_lost},
	{"dispatch_ins", dispatch_ins},
	{"dispatch_ins_pushed", dispatch_ins_pushed},
	{"helper_rbp_returned", helper_rbp_returned},
	{"helper_rbp_returned_recursive", helper_rbp_returned_recursive},
	{"meta_tailcall", meta_tailcall},
	{"meta_tailcall_returned", meta_tailcall_returned},
	{"vm_closes", vm_closes},
	{"vm_opens", vm_opens},
	{"stale_bottom", stale_bottom},
	{"vmstate_garbage", vmstate_garbage},
	{"collector", collector},
	{"collector_in_c", collector_in_c},
	{"recorder", recorder},
	{"assembler", assembler},
	{"ffi_callback_idle", ffi_callback_idle},
	{"ffi_callback_done", ffi_callback_done},
	{NULL, NULL},
};
