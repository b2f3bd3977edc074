// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where the topmost frame is found, in each phase of the interpreter. The windows of a few
 * instructions around calls and returns are those of vm_x64.dasc: its labels are named here.
 */
#include "lj_scene.h"

#define THREAD LB_FRAME_THREAD

/* BASE and PC are in registers, L->base is that of a frame long gone. */
static void interpreter(struct lj_scene *s)
{
	uint64_t f = sc_begin_call(s);

	lji_call(&s->img, &s->st, s->main, 5, 3, f);
	sc_in_vm(s, s->st.base, lji_bc(&s->img, f, 12));
	want_lua(s, f, 11, THREAD);
	want_main_at_call(s);
}

/* The VM fetches the instruction at 12, to which a jump or a branch that was not taken has set PC;
 * the instructions at 10 and 11 show it. */
static void fetches(struct lj_scene *s, uint8_t before, uint8_t op, uint32_t shown)
{
	uint64_t f = sc_begin_call(s);

	lji_call(&s->img, &s->st, s->main, 5, 3, f);
	lji_ins(&s->img, f, 10, before, 0);
	lji_ins(&s->img, f, 11, op, 0);
	sc_in_vm(s, s->st.base, lji_bc(&s->img, f, 12));
	s->in.regs.ip = SC_IP_JUMP;
	want_lua(s, f, shown, THREAD);
	want_main_at_call(s);
}

/* branchPC, ins_NEXT: PC is the target's, and what stands before that did not run. */
static void jumped(struct lj_scene *s)
{
	fetches(s, LJ_OP_COMPARES + 2, LJ_OP_COMPARES + 3, 12);
}

static void jumped_behind_jump(struct lj_scene *s)
{
	fetches(s, LJ_OP_COMPARES, LJ_OP_JMP, 12);
}

/* BC_ISLT and the like, BC_FORL: the branch was not taken. */
static void compared(struct lj_scene *s)
{
	fetches(s, LJ_OP_COMPARES - 1, LJ_OP_JMP, 11);
}

static void loop_done(struct lj_scene *s)
{
	fetches(s, LJ_OP_COMPARES + 2, LJ_OP_FORI + 2, 11);
}

static void iteration_done(struct lj_scene *s)
{
	fetches(s, LJ_OP_COMPARES + 2, LJ_OP_JITERL, 11);
}

/* The VM has called into itself (vm_floor, vm_mod): sp is a word or two below the cframe. */
static void interpreter_sub(struct lj_scene *s)
{
	interpreter(s);
	lji_vm_calls(&s->img, SC_SITE);
	lji_vm_calls(&s->img, SC_SITE);
	s->in.regs.sp = s->img.sp;
}

/* func is about to be called by an instruction with this A: its link is not stored. */
static void push_call(struct lj_scene *s, uint64_t func, uint8_t a)
{
	lji_push(&s->img, &s->st, func, a + lji_frame_slots(&s->img), 0);
}

/* BC_CALL, ins_call: BASE is the callee's, PC still the caller's, the link not stored. */
static void call_before_link(struct lj_scene *s)
{
	uint64_t f = sc_begin_call(s);

	push_call(s, f, 3);
	sc_in_vm(s, s->st.base, sc_pc_of_call(s));
	sc_unlink(s, 0x7ff8000000000000);
	want_main_at_call(s);
}

/* ... the link is stored, PC still the caller's. */
static void call_after_link(struct lj_scene *s)
{
	uint64_t f = sc_begin_call(s);

	lji_call(&s->img, &s->st, s->main, 5, 3, f);
	sc_in_vm(s, s->st.base, sc_pc_of_call(s));
	want_main_at_call(s);
}

/* ins_callt: PC is the callee's first instruction, RA and OP not decoded yet. */
static void call_entry(struct lj_scene *s)
{
	uint64_t f = sc_begin_call(s);

	lji_call(&s->img, &s->st, s->main, 5, 3, f);
	sc_in_vm(s, s->st.base, lji_bc(&s->img, f, 0));
	want_lua(s, f, 0, THREAD);
	want_main_at_call(s);
}

/* The function calls itself: BASE and the caller's PC look like a frame, the link is garbage. */
static void call_recursive(struct lj_scene *s)
{
	uint64_t f = sc_begin_call(s);

	lji_call(&s->img, &s->st, s->main, 5, 3, f);
	lji_ins(&s->img, f, 7, LJ_OP_CALLM + 1, 4);
	push_call(s, f, 4);
	sc_in_vm(s, s->st.base, lji_bc(&s->img, f, 8));
	sc_unlink(s, 0xfffe800000000003);
	want_lua(s, f, 7, THREAD);
	want_main_at_call(s);
}

/* ... the slot holds the link of an earlier call: only the instruction shows it. */
static void call_recursive_stale(struct lj_scene *s)
{
	sc_two_slots(s);
	call_recursive(s);
	lji_put_link(&s->img, s->st.base, s->in.regs.pc);
	s->in.regs.ip = SC_IP_LINK;
}

/* ... it is stored: PC is still the caller's, for one instruction. */
static void call_recursive_stored(struct lj_scene *s)
{
	uint64_t f;

	call_recursive(s);
	f = lji_func_at(&s->img, s->st.base);
	lji_put_link(&s->img, s->st.base, s->in.regs.pc);
	s->in.regs.ip = SC_IP_LINK + 4;
	s->nwant = 0;
	want_lua(s, f, 7, THREAD);
	want_lua(s, f, 7, 0);
	want_main_at_call(s);
}

/* The same at the bottom of the stack's frames: the link slot is a nil. */
static void call_recursive_main(struct lj_scene *s)
{
	sc_begin_call(s);
	push_call(s, s->main, 3);
	sc_in_vm(s, s->st.base, sc_pc_of_call(s));
	sc_unlink(s, ~0ULL);
	want_main_at_call(s);
}

/* BC_CALL of a C function or fast function, link not stored. */
static void call_ff_before_link(struct lj_scene *s)
{
	sc_begin_call(s);
	push_call(s, lji_ff(&s->img, FF_FLOOR), 3);
	sc_in_vm(s, s->st.base, sc_pc_of_call(s));
	sc_unlink(s, 0x7ff8000000000000);
	want_main_at_call(s);
}

static void call_c_before_link(struct lj_scene *s)
{
	sc_begin_call(s);
	push_call(s, lji_cfunc(&s->img, SC_CFUNC), 3);
	sc_in_vm(s, s->st.base, sc_pc_of_call(s));
	sc_unlink(s, 0x7ff8000000000000);
	want_main_at_call(s);
}

/* ... stored: it is on top. */
static void call_c_after_link(struct lj_scene *s)
{
	sc_begin_call(s);
	lji_call(&s->img, &s->st, s->main, 5, 3, lji_cfunc(&s->img, SC_CFUNC));
	sc_in_vm(s, s->st.base, sc_pc_of_call(s));
	want_c(s, SC_CFUNC, THREAD);
	want_main_at_call(s);
}

/* BC_FUNCC before it calls: PC is behind the function's only instruction. */
static void funcc_entry(struct lj_scene *s)
{
	uint64_t c;

	sc_begin_call(s);
	c = lji_cfunc(&s->img, SC_CFUNC);
	lji_call(&s->img, &s->st, s->main, 5, 3, c);
	sc_in_vm(s, s->st.base, lji_get64(&s->img, c + LJ_FUNC_PC) + 4);
	want_c(s, SC_CFUNC, THREAD);
	want_main_at_call(s);
}

/* ... vmstate is C already. */
static void funcc_calls(struct lj_scene *s)
{
	funcc_entry(s);
	lji_sync(&s->img, &s->st);
	lji_vmstate(&s->img, LJ_VMST_C);
	s->state = 'C';
}

/* ... after it: PC is the caller's. */
static void funcc_return(struct lj_scene *s)
{
	funcc_entry(s);
	lji_sync(&s->img, &s->st);
	s->in.regs.pc = sc_pc_of_call(s);
}

/* ... PC not fetched yet: rbx was the callee's to keep, it is still that of BC_FUNCC. */
static void funcc_returned(struct lj_scene *s)
{
	funcc_entry(s);
	lji_sync(&s->img, &s->st);
	lji_vmstate(&s->img, LJ_VMST_C);
	s->in.regs.base = 0x1122; /* rdx is not */
	s->state = 'C';
}

/* fff_res: a fast function has written its result over its own frame, PC is the caller's. */
static void ff_result(struct lj_scene *s)
{
	sc_begin_call(s);
	lji_call(&s->img, &s->st, s->main, 5, 3, lji_ff(&s->img, FF_FLOOR));
	lji_put64(&s->img, s->st.base - LJI_OFF(&s->img, FRAME_BYTES), 0x4008000000000000);
	sc_in_vm(s, s->st.base, sc_pc_of_call(s));
	want_main_at_call(s);
}

/* ... the result is a fast function, with another over the link: pairs(). */
static void ff_result_function(struct lj_scene *s)
{
	ff_result(s);
	lji_put_func(&s->img, s->st.base, LJ_TFUNC, lji_ff(&s->img, FF_FLOOR));
	lji_put_link(&s->img, s->st.base, 0x4008000000000000);
}

/* BC_RET of a C function: KBASE has moved its one result down, a fast function: coroutine.wrap(). */
static void ret_function(struct lj_scene *s)
{
	sc_two_slots(s);
	call_c_after_link(s);
	lji_put_func(&s->img, s->st.base, LJ_TFUNC, lji_ff(&s->img, FF_FLOOR));
	s->in.regs.kept[LB_KEPT_KBASE] = s->st.base + 8;
	s->nwant = 0;
	want_main_at_call(s);
}

/* ... KBASE is where it begins. */
static void ret_function_unmoved(struct lj_scene *s)
{
	sc_two_slots(s);
	call_c_after_link(s);
	s->in.regs.kept[LB_KEPT_KBASE] = s->st.base;
}

/* BC_RET: PC is the caller's, nothing moved yet. */
static void ret_pc(struct lj_scene *s)
{
	uint64_t f = sc_begin_call(s);

	lji_call(&s->img, &s->st, s->main, 5, 3, f);
	sc_in_vm(s, s->st.base, sc_pc_of_call(s));
	want_main_at_call(s);
}

/* ... the results are over the function and the link. */
static void ret_results(struct lj_scene *s)
{
	ret_pc(s);
	sc_return_over(s);
}

/* ... BASE is the caller's. */
static void ret_base(struct lj_scene *s)
{
	ret_results(s);
	s->in.regs.base = s->st.base - 8 * (3 + lji_frame_slots(&s->img));
}

/* BC_RET in a vararg function: PC is the distance to its frame proper. */
static void ret_vararg(struct lj_scene *s)
{
	uint64_t f = sc_begin_call(s);

	lji_call(&s->img, &s->st, s->main, 5, 3, f);
	lji_vararg(&s->img, &s->st, f, 6);
	sc_in_vm(s, s->st.base, 6 * 8 | LJ_FRAME_VARG);
	want_main_at_call(s);
}

/* ... BASE is that of the frame proper, PC not fetched again. */
static void ret_vararg_base(struct lj_scene *s)
{
	ret_vararg(s);
	s->in.regs.base = s->st.base - 48;
	s->in.regs.rb = 48;
}

/* ... PC is the caller's. */
static void ret_vararg_pc(struct lj_scene *s)
{
	ret_vararg_base(s);
	s->in.regs.pc = sc_pc_of_call(s);
}

/* vm_returnp from pcall: PC is the distance, then the pcall's caller's. */
static void ret_pcall(struct lj_scene *s)
{
	uint64_t f = sc_begin_call(s);

	lji_call(&s->img, &s->st, s->main, 5, 3, lji_ff(&s->img, FF_PCALL));
	lji_push(&s->img, &s->st, f, 2, LJ_FRAME_PCALL);
	sc_in_vm(s, s->st.base, 2 * 8 | LJ_FRAME_PCALL);
	want_ff(s, FF_PCALL, THREAD);
	want_main_at_call(s);
}

static void ret_pcall_base(struct lj_scene *s)
{
	ret_pcall(s);
	s->in.regs.base = s->st.base - 16;
	s->in.regs.pc = 2 * 8;
}

static void ret_pcall_pc(struct lj_scene *s)
{
	ret_pcall_base(s);
	s->in.regs.pc = sc_pc_of_call(s);
}

/* cont_dispatch: a metamethod is done, PC is the distance to its caller. */
static void cont_pc(struct lj_scene *s)
{
	uint64_t f = sc_begin_call(s);

	lji_cont(&s->img, &s->st, f, 20, LJI_VM + 0x700, lji_bc(&s->img, s->main, 15));
	sc_in_vm(s, s->st.base, 20 * 8 | LJ_FRAME_CONT);
	want_lua(s, s->main, 14, THREAD);
}

/* ... BASE is the caller's, RB the metamethod's. */
static void cont_base(struct lj_scene *s)
{
	cont_pc(s);
	s->in.regs.pc = 20 * 8;
	s->in.regs.rb = s->st.base;
	s->in.regs.base = s->st.base - 20 * 8;
}

/* ... PC is the caller's. */
static void cont_done(struct lj_scene *s)
{
	cont_base(s);
	s->in.regs.pc = lji_bc(&s->img, s->main, 15);
}

/* BC_CALLT: PC is the link, the callee copied over the function. */
static void callt(struct lj_scene *s)
{
	uint64_t f = sc_begin_call(s);

	lji_call(&s->img, &s->st, s->main, 5, 3, f);
	lji_put_func(&s->img, s->st.base, LJ_TFUNC, sc_func(s, 70));
	sc_in_vm(s, s->st.base, sc_pc_of_call(s));
	want_main_at_call(s);
}

/* BC_CALLT in a vararg function: PC is the distance to its frame proper, without the type. */
static void callt_vararg(struct lj_scene *s)
{
	ret_vararg(s);
	s->in.regs.pc = 6 * 8;
}

/* ... the callee copied over the function of the frame proper, PC the link. */
static void callt_vararg_copied(struct lj_scene *s)
{
	ret_vararg_pc(s);
	lji_put_func(&s->img, s->in.regs.base, LJ_TFUNC, sc_func(s, 70));
}

/* A C function that main called has called f, which returns to it (vm_return). */
static uint64_t returns_to_c(struct lj_scene *s)
{
	uint64_t f;

	sc_begin(s);
	f = sc_func(s, 10);
	lji_call(&s->img, &s->st, s->main, 5, 3, lji_cfunc(&s->img, SC_CFUNC));
	lji_sync(&s->img, &s->st);
	lji_vm_calls(&s->img, SC_SITE);
	lji_c_code(&s->img, 21);
	lji_cframe(&s->img, s->st.L, 1, s->st.L, 0);
	lji_push(&s->img, &s->st, f, 8, LJ_FRAME_CP);
	lji_vmstate(&s->img, LJ_VMST_C);
	s->state = 'C';
	want_c(s, SC_CFUNC, THREAD);
	want_lua(s, s->main, 5, 0);
	return f;
}

static void return_to_c(struct lj_scene *s)
{
	returns_to_c(s);
	sc_in_vm(s, s->st.base, 8 * 8 | LJ_FRAME_CP);
}

/* ... L->base is a callee's of f, f's frame overwritten, PC the distance without its type. */
static void return_to_c_stale(struct lj_scene *s)
{
	struct lji_stack deeper;
	uint64_t f = returns_to_c(s);

	deeper = s->st;
	lji_call(&s->img, &deeper, f, 9, 6, sc_func(s, 50));
	lji_sync(&s->img, &deeper);
	lji_put64(&s->img, s->st.base - LJI_OFF(&s->img, FRAME_BYTES), 0x4008000000000000);
	sc_in_vm(s, s->st.base, 8 * 8);
}

/* ... PC is the caller's base. */
static void return_to_c_base(struct lj_scene *s)
{
	return_to_c_stale(s);
	s->in.regs.pc = s->st.base - 64;
	s->in.regs.base = s->st.base + 8;
}

/* f had called a C function before: L->base is still that one's, which is dead. */
static void return_to_c_dead(struct lj_scene *s)
{
	struct lji_stack deeper;
	uint64_t f = returns_to_c(s);

	deeper = s->st;
	lji_call(&s->img, &deeper, f, 9, 6, lji_cfunc(&s->img, SC_CFUNC + 64));
	lji_sync(&s->img, &deeper);
	sc_in_vm(s, s->st.base, 8 * 8);
}

static void return_to_c_dead_base(struct lj_scene *s)
{
	return_to_c_dead(s);
	s->in.regs.pc = s->st.base - 64;
	s->in.regs.base = s->st.base + 8;
}

/* lua_call in a C function: vm_call has pushed registers and changed no state yet. */
static void c_enters_vm(struct lj_scene *s)
{
	sc_begin(s);
	lji_call(&s->img, &s->st, s->main, 5, 3, lji_cfunc(&s->img, SC_CFUNC));
	sc_in_c(s);
	lji_c_code(&s->img, 21);
	sc_in_vm(s, 1, LJ_FRAME_C);
	want_c(s, SC_CFUNC, THREAD);
	want_lua(s, s->main, 5, 0);
}

/* ... whose rbx, the VM's PC, holds what looks like an address and is none. */
static void c_enters_vm_pc(struct lj_scene *s)
{
	c_enters_vm(s);
	s->in.regs.pc = 0x1020800;
}

/* A hook of the host's calls into the VM: it has no frame, main's callee f is on top, at 12. */
static void hook_enters_vm(struct lj_scene *s)
{
	uint64_t f;

	sc_begin(s);
	f = sc_func(s, 10);
	lji_call(&s->img, &s->st, s->main, 5, 3, f);
	lji_sync(&s->img, &s->st);
	lji_set_pc(&s->img, s->cframe, lji_bc(&s->img, f, 13));
	lji_vm_calls(&s->img, SC_SITE);
	lji_c_code(&s->img, 30);
	s->cframe = lji_cframe(&s->img, s->st.L, 1, s->st.L, 0);
	lji_vmstate(&s->img, LJ_VMST_C);
	sc_in_vm(s, 1, LJ_FRAME_CP);
	s->state = 'C';
	want_lua(s, f, 12, THREAD);
	want_lua(s, s->main, 5, 0);
}

static void hook_enters_vm_state(struct lj_scene *s)
{
	hook_enters_vm(s);
	lji_vmstate(&s->img, LJ_VMST_INTERP);
	s->in.regs.base = s->st.base;
	s->state = 'I';
}

/* ... and what it has called, g, returns. */
static void hook_leaves_vm(struct lj_scene *s)
{
	uint64_t g = sc_func(s, 50);

	hook_enters_vm(s);
	lji_push(&s->img, &s->st, g, 8, LJ_FRAME_CP);
	lji_sync(&s->img, &s->st);
	lji_set_pc(&s->img, s->cframe, lji_bc(&s->img, g, 3));
	lji_put64(&s->img, s->st.base - LJI_OFF(&s->img, FRAME_BYTES), 0x4008000000000000);
	sc_in_vm(s, s->st.base, 8 * 8);
}

static void hook_leaves_vm_negative(struct lj_scene *s)
{
	hook_leaves_vm(s);
	s->in.regs.pc = 8 * 8 - s->st.base;
}

static void hook_leaves_vm_base(struct lj_scene *s)
{
	hook_leaves_vm(s);
	s->in.regs.pc = s->st.base - 8 * 8;
	s->in.regs.base = s->st.base + 8;
}

/* main returns to the host, L->base is stale: no frame is left, and none must be made up. */
static void return_to_host(struct lj_scene *s)
{
	uint64_t f;
	struct lji_stack deeper;

	sc_begin(s);
	f = sc_func(s, 10);
	deeper = s->st;
	lji_call(&s->img, &deeper, s->main, 9, 6, f);
	lji_sync(&s->img, &deeper);
	lji_set_pc(&s->img, s->cframe, lji_bc(&s->img, f, 30));
	lji_vmstate(&s->img, LJ_VMST_C);
	sc_in_vm(s, s->st.base, 2 * 8);
	s->end = LB_STATUS_OUTSIDE;
}

static void return_to_host_base(struct lj_scene *s)
{
	return_to_host(s);
	s->in.regs.pc = s->st.base - 16;
}

/* The function of a coroutine returns: its stack is empty, the resumer is on top. */
static void coroutine_returns(struct lj_scene *s)
{
	struct lji_stack deeper;
	uint64_t co, f, cframe;

	sc_begin(s);
	f = sc_func(s, 10);
	co = lji_thread(&s->img);
	lji_call(&s->img, &s->st, s->main, 5, 3, lji_ff(&s->img, FF_RESUME));
	lji_sync(&s->img, &s->st);
	cframe = lji_cframe(&s->img, co, 0, 0, LJI_RESUME);
	lji_put64(&s->img, cframe + s->img.lj.cframe_size - 8, LJI_VM + 0x900);
	lji_run(&s->img, co);
	s->st = lji_stack(&s->img, co);
	lji_push(&s->img, &s->st, f, 2, LJ_FRAME_CP);
	deeper = s->st;
	lji_call(&s->img, &deeper, f, 9, 6, lji_cfunc(&s->img, SC_CFUNC));
	lji_sync(&s->img, &deeper);
	lji_vmstate(&s->img, LJ_VMST_C);
	sc_in_vm(s, s->st.base, 2 * 8);
	s->state = 'C';
	want_ff(s, FF_RESUME, THREAD);
	want_lua(s, s->main, 5, 0);
}

/* vm_call: the host has entered the VM, the frame is not made yet. */
static void enter_from_host(struct lj_scene *s)
{
	sc_begin(s);
	lji_put64(&s->img, s->st.base - 8, 0);
	sc_in_vm(s, s->st.base - 16, 16 | LJ_FRAME_CP);
	s->end = LB_STATUS_OUTSIDE; /* there is no frame to show yet */
}

/* ... BASE is main's, PC the link that is about to be stored. */
static void enter_from_host_base(struct lj_scene *s)
{
	enter_from_host(s);
	s->in.regs.base = s->st.base;
}

/* vm_resume: the child's cframe is made and named by it, cur_L still the parent. */
static void resume_enter(struct lj_scene *s)
{
	uint64_t co, f, cframe;

	sc_begin_call(s);
	f = sc_func(s, 10);
	co = lji_thread(&s->img);
	lji_call(&s->img, &s->st, s->main, 5, 3, lji_ff(&s->img, FF_RESUME));
	lji_sync(&s->img, &s->st);
	cframe = lji_cframe(&s->img, co, 0, 0, LJI_RESUME);
	lji_put64(&s->img, cframe + s->img.lj.cframe_size - 8, LJI_VM + 0x900);
	lji_put64(&s->img, lji_get64(&s->img, co + LJI_OFF(&s->img, L_BASE)), LJI_TV(LJ_TFUNC, f));
	sc_in_vm(s, s->st.base + 8, LJ_FRAME_CP);
	want_ff(s, FF_RESUME, THREAD);
	want_main_at_call(s);
}

/* coroutine.resume has called vm_resume, which pushes registers: the parent's frame is on top. */
static void resume_pushes(struct lj_scene *s)
{
	resume_enter(s);
	lji_put64(&s->img,
		  lji_get64(&s->img, s->img.g + s->img.lj.cur_L) + LJI_OFF(&s->img, L_CFRAME),
		  s->cframe);
	s->in.regs.sp = s->cframe - 24;
	lji_put64(&s->img, s->img.sp + LJI_OFF(&s->img, CFRAME_L), 0);
}

/* coroutine.yield: the child's cframe is 0, cur_L still the child; its epilogue pops. */
static void yield(struct lj_scene *s, uint32_t popped)
{
	uint64_t f, co, child;

	sc_begin_call(s);
	f = sc_func(s, 10);
	co = lji_thread(&s->img);
	lji_call(&s->img, &s->st, s->main, 5, 3, lji_ff(&s->img, FF_RESUME));
	lji_sync(&s->img, &s->st);
	child = lji_cframe(&s->img, co, 0, 0, LJI_RESUME);
	lji_put64(&s->img, co + LJI_OFF(&s->img, L_CFRAME), 0);
	lji_put8(&s->img, co + LJI_OFF(&s->img, L_STATUS), 1);
	lji_run(&s->img, co);
	s->st = lji_stack(&s->img, co);
	lji_push(&s->img, &s->st, f, 2, LJ_FRAME_CP);
	lji_sync(&s->img, &s->st);
	sc_in_vm(s, s->st.base, lji_bc(&s->img, f, 3));
	s->in.regs.sp = child + popped;
	want_ff(s, FF_RESUME, THREAD);
	want_lua(s, s->main, 5, 0);
}

static void yield_leave(struct lj_scene *s)
{
	yield(s, 0);
}

static void yield_pops(struct lj_scene *s)
{
	yield(s, 56);
}

static void yield_returned(struct lj_scene *s)
{
	yield(s, 80);
}

const struct lj_scene_row lj_scenes_top[] = {
	{"interpreter", interpreter},
	{"jumped", jumped},
	{"jumped_behind_jump", jumped_behind_jump},
	{"compared", compared},
	{"loop_done", loop_done},
	{"iteration_done", iteration_done},
	{"interpreter_sub", interpreter_sub},
	{"call_before_link", call_before_link},
	{"call_after_link", call_after_link},
	{"call_entry", call_entry},
	{"call_recursive", call_recursive},
	{"call_recursive_stale", call_recursive_stale},
	{"call_recursive_stored", call_recursive_stored},
	{"call_recursive_main", call_recursive_main},
	{"call_ff_before_link", call_ff_before_link},
	{"call_c_before_link", call_c_before_link},
	{"call_c_after_link", call_c_after_link},
	{"funcc_entry", funcc_entry},
	{"funcc_calls", funcc_calls},
	{"funcc_return", funcc_return},
	{"funcc_returned", funcc_returned},
	{"ff_result", ff_result},
	{"ff_result_function", ff_result_function},
	{"ret_function", ret_function},
	{"ret_function_unmoved", ret_function_unmoved},
	{"ret_pc", ret_pc},
	{"ret_results", ret_results},
	{"ret_base", ret_base},
	{"ret_vararg", ret_vararg},
	{"ret_vararg_base", ret_vararg_base},
	{"ret_vararg_pc", ret_vararg_pc},
	{"ret_pcall", ret_pcall},
	{"ret_pcall_base", ret_pcall_base},
	{"ret_pcall_pc", ret_pcall_pc},
	{"cont_pc", cont_pc},
	{"cont_base", cont_base},
	{"cont_done", cont_done},
	{"callt", callt},
	{"callt_vararg", callt_vararg},
	{"callt_vararg_copied", callt_vararg_copied},
	{"return_to_c", return_to_c},
	{"return_to_c_stale", return_to_c_stale},
	{"return_to_c_base", return_to_c_base},
	{"return_to_c_dead", return_to_c_dead},
	{"return_to_c_dead_base", return_to_c_dead_base},
	{"c_enters_vm", c_enters_vm},
	{"c_enters_vm_pc", c_enters_vm_pc},
	{"hook_enters_vm", hook_enters_vm},
	{"hook_enters_vm_state", hook_enters_vm_state},
	{"hook_leaves_vm", hook_leaves_vm},
	{"hook_leaves_vm_negative", hook_leaves_vm_negative},
	{"hook_leaves_vm_base", hook_leaves_vm_base},
	{"coroutine_returns", coroutine_returns},
	{"return_to_host", return_to_host},
	{"return_to_host_base", return_to_host_base},
	{"enter_from_host", enter_from_host},
	{"enter_from_host_base", enter_from_host_base},
	{"resume_enter", resume_enter},
	{"resume_pushes", resume_pushes},
	{"yield_leave", yield_leave},
	{"yield_pops", yield_pops},
	{"yield_returned", yield_returned},
	{NULL, NULL},
};
