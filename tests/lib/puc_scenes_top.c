// SPDX-License-Identifier: BSD-2-Clause
/* Where the topmost function stands, and in which state the VM is. */
#include <string.h>

#include "puc_scene.h"

#define THREAD LB_FRAME_THREAD

static bool exact(const struct puc_scene *s)
{
	return s->img.puc.flags & PUC_SAVEDPC_EXACT;
}

/* main has called something at 3 since, so its saved pc is not the beginning. */
static void begin(struct puc_scene *s)
{
	ps_begin(s);
	pui_call(&s->img, &s->st, 3, ps_func(s, 10));
	pui_pop(&s->img, &s->st);
}

static void want_main(struct puc_scene *s, uint32_t pos)
{
	ps_want_lua(s, s->main, pos, THREAD);
}

/* What the scene is about needs a pc register. */
static void needs_register(struct puc_scene *s)
{
	s->absent = exact(s);
}

static void pc_in_register(struct puc_scene *s)
{
	begin(s);
	ps_in_vm(s, 40);
	want_main(s, 40);
}

/* The last instruction stands before the end of the code, the first one at its beginning. */
static void at_the_last(struct puc_scene *s)
{
	begin(s);
	ps_in_vm(s, PUI_CODE - 1);
	want_main(s, PUI_CODE - 1);
}

static void at_the_first(struct puc_scene *s)
{
	begin(s);
	ps_in_vm(s, 0);
	want_main(s, 0);
}

/* Nothing was executed yet: "next" is the first. */
static void entered(struct puc_scene *s)
{
	ps_begin(s);
	s->img.gprs.r[PUI_PC_REG] = pui_code(&s->img, s->main, 0);
	ps_sample(s, PS_IP);
	want_main(s, 0);
}

/* No register was learned: of those that point into the code, the one that is ahead. */
static void any_register(struct puc_scene *s)
{
	begin(s);
	s->in.build.pc_reg = PUC_NO_REG;
	ps_in_vm(s, 40);
	if (!exact(s)) {
		s->img.gprs.r[PUI_R15] = pui_code(&s->img, s->main, 40);
		ps_sample(s, PS_IP);
	}
	want_main(s, 40);
}

/* The register that was learned is right, whatever others hold. */
static void learned_register(struct puc_scene *s)
{
	needs_register(s);
	begin(s);
	ps_in_vm(s, 40);
	s->img.gprs.r[PUI_R15] = pui_code(&s->img, s->main, 60);
	s->img.gprs.r[PUI_RAX] = pui_code(&s->img, s->main, 1);
	ps_sample(s, PS_IP);
	want_main(s, 40);
}

static void register_out_of_range(struct puc_scene *s)
{
	begin(s);
	s->img.gprs.r[PUI_PC_REG] = 0x1234;
	ps_sample(s, PS_IP);
	want_main(s, 3);
}

static void register_beyond(struct puc_scene *s)
{
	begin(s);
	s->img.gprs.r[PUI_PC_REG] = pui_code(&s->img, s->main, PUI_CODE + 1);
	ps_sample(s, PS_IP);
	want_main(s, 3);
}

static void register_before(struct puc_scene *s)
{
	begin(s);
	s->img.gprs.r[PUI_PC_REG] = pui_code(&s->img, s->main, 0) - 4;
	ps_sample(s, PS_IP);
	want_main(s, 3);
}

static void register_unaligned(struct puc_scene *s)
{
	begin(s);
	s->img.gprs.r[PUI_PC_REG] = pui_code(&s->img, s->main, 9) + 2;
	ps_sample(s, PS_IP);
	want_main(s, 3);
}

/* At ip, pc's register is as after 40, and the fetch's register has an address in main's code. */
static void fetch(struct puc_scene *s, uint64_t ip, int64_t offset)
{
	needs_register(s);
	begin(s);
	pui_pc(&s->img, s->main, 40);
	s->img.gprs.r[PS_FETCH_REG] = pui_code(&s->img, s->main, 0) + (uint64_t)offset;
	ps_sample(s, ip);
}

/* A jump back to 7: what stands before that did not run. */
static void fetches(struct puc_scene *s)
{
	fetch(s, PS_FETCH, 4 * 7);
	want_main(s, 7);
}

static void fetches_the_first(struct puc_scene *s)
{
	fetch(s, PS_FETCH + PS_FETCH_SIZE - 1, 0);
	want_main(s, 0);
}

static void fetches_the_last(struct puc_scene *s)
{
	fetch(s, PS_FETCH + 4, 4 * (PUI_CODE - 1));
	want_main(s, PUI_CODE - 1);
}

/* Entered, and the register of pc is the caller's: what was saved is older than the fetch. */
static void fetches_the_callee(struct puc_scene *s)
{
	struct pui_fn f;

	needs_register(s);
	begin(s);
	f = ps_func(s, 30);
	pui_pc(&s->img, s->main, 5);
	pui_call(&s->img, &s->st, 5, f);
	s->img.gprs.r[PS_FETCH_REG] = pui_code(&s->img, f, 2);
	ps_sample(s, PS_FETCH);
	ps_want_lua(s, f, 2, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

/* pc's register is one before the target of the jump. */
static void jumps(struct puc_scene *s)
{
	fetch(s, PS_JUMP + PS_JUMP_SIZE - 1, 4 * 7);
	want_main(s, 7);
}

static void before_the_fetch(struct puc_scene *s)
{
	fetch(s, PS_FETCH - 1, 4 * 7);
	want_main(s, 40);
}

static void after_the_fetch(struct puc_scene *s)
{
	fetch(s, PS_FETCH + PS_FETCH_SIZE, 4 * 7);
	want_main(s, 40);
}

static void fetches_beyond(struct puc_scene *s)
{
	fetch(s, PS_FETCH, 4 * PUI_CODE);
	want_main(s, 40);
}

static void fetches_before(struct puc_scene *s)
{
	fetch(s, PS_FETCH, -4);
	want_main(s, 40);
}

static void fetches_unaligned(struct puc_scene *s)
{
	fetch(s, PS_FETCH, 4 * 7 + 2);
	want_main(s, 40);
}

static void no_fetch_known(struct puc_scene *s)
{
	memset(s->in.build.fetch, 0, sizeof(s->in.build.fetch));
	fetch(s, PUI_VM, 4 * 7);
	want_main(s, 40);
}

/* The call is made, the register is still the caller's. */
static void just_called(struct puc_scene *s)
{
	struct pui_fn f;

	begin(s);
	f = ps_func(s, 30);
	pui_pc(&s->img, s->main, 5);
	pui_call(&s->img, &s->st, 5, f);
	ps_sample(s, PS_IP);
	ps_want_lua(s, f, 0, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

/* luaD_precall has made a CallInfo the topmost one, and not filled it in yet. */
static void call_under_way(struct puc_scene *s)
{
	const struct puc_layout *l = &s->img.puc;

	begin(s);
	ps_helper(s, 5, 3);
	pui_push(&s->img, &s->st, ps_func(s, 30));
	pui_put(&s->img, s->st.ci + l->ci_func, 8, s->st.func + 48);
	pui_put(&s->img, s->st.func + 48 + PUC_TV_TT, 4, 0);
	ps_sample(s, PS_HELPER);
	want_main(s, 5);
}

/* The host has called main: luaD_precall is done, and luaV_execute has not begun. */
static void about_to_execute(struct puc_scene *s)
{
	s->img.gprs.r[PUI_RBX] = s->img.main_L;
	pui_protect(&s->img, s->img.main_L);
	s->main = ps_func(s, 0);
	s->L = s->img.main_L;
	s->st = pui_stack(&s->img, s->L);
	pui_push(&s->img, &s->st, s->main);
	ps_sample(s, PS_HELPER);
	want_main(s, 0);
}

/* It has returned, the register is still that of the function that did. */
static void just_returned(struct puc_scene *s)
{
	struct pui_fn f;

	begin(s);
	f = ps_func(s, 30);
	pui_call(&s->img, &s->st, 5, f);
	pui_pc(&s->img, f, 40);
	pui_pop(&s->img, &s->st);
	ps_sample(s, PS_IP);
	want_main(s, 5);
}

/* 5.1: L->savedpc is set after L->ci. f is being entered; its CallInfo had another call's pc. */
static void entered_before_savedpc(struct puc_scene *s)
{
	const struct puc_layout *l = &s->img.puc;
	struct pui_fn f;

	s->absent = !(l->flags & PUC_CI_ARRAY);
	if (s->absent)
		return;
	begin(s);
	f = ps_func(s, 30);
	pui_pc(&s->img, s->main, 5);
	pui_call(&s->img, &s->st, 5, f);
	pui_put(&s->img, s->st.ci + l->ci_savedpc, 8, pui_code(&s->img, f, 20));
	pui_put(&s->img, s->L + l->L_savedpc, 8, pui_code(&s->img, s->main, 6));
	ps_sample(s, PS_HELPER);
	ps_want_lua(s, f, 0, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

/* The same: what f called at 8 has returned. */
static void returned_before_savedpc(struct puc_scene *s)
{
	const struct puc_layout *l = &s->img.puc;
	struct pui_fn f, g;

	s->absent = !(l->flags & PUC_CI_ARRAY);
	if (s->absent)
		return;
	begin(s);
	f = ps_func(s, 30);
	g = ps_func(s, 50);
	pui_call(&s->img, &s->st, 5, f);
	pui_call(&s->img, &s->st, 8, g);
	pui_pc(&s->img, g, 3);
	pui_pop(&s->img, &s->st);
	pui_put(&s->img, s->L + l->L_savedpc, 8, pui_code(&s->img, g, 4));
	ps_sample(s, PS_HELPER);
	ps_want_lua(s, f, 8, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

/* A function of the VM that cannot fail is called without pc being saved, and leaves it alone. */
static void helper_leaves_register(struct puc_scene *s)
{
	needs_register(s);
	begin(s);
	pui_pc(&s->img, s->main, 40);
	pui_enter(&s->img, PS_SITE, 4);
	ps_sample(s, PS_HELPER);
	want_main(s, 40);
}

/* The same; it needs the register and so has pushed it. */
static void helper_pushes_register(struct puc_scene *s)
{
	needs_register(s);
	begin(s);
	pui_pc(&s->img, s->main, 40);
	pui_enter(&s->img, PS_SITE, 4);
	s->img.gprs.r[PUI_PC_REG] = 0x14;
	ps_sample(s, PS_HELPER);
	want_main(s, 40);
}

/* The same; of the instruction, the register that it was fetched by is left alone. */
static void helper_pushes_only_pc(struct puc_scene *s)
{
	helper_pushes_register(s);
	s->img.gprs.r[PS_FETCH_REG] = pui_code(&s->img, s->main, 40);
	ps_sample(s, PS_HELPER);
}

/* And calls another, in another library. */
static void pushed_further_up(struct puc_scene *s)
{
	needs_register(s);
	begin(s);
	pui_pc(&s->img, s->main, 40);
	pui_enter(&s->img, PS_SITE, 12);
	s->img.gprs.r[PUI_PC_REG] = 0x14;
	pui_enter(&s->img, PS_HELPER, 5);
	ps_sample(s, PS_LIBC);
	want_main(s, 40);
}

/* The same; and what leads to the lua_State lies further up than the pushed register. */
static void pushed_found_by_stack(struct puc_scene *s)
{
	needs_register(s);
	begin(s);
	pui_pc(&s->img, s->main, 40);
	s->img.gprs.r[PUI_RBP] = 0x16;
	pui_word(&s->img, s->st.L); /* a local of luaV_execute's */
	pui_c_code(&s->img, 2);
	pui_enter(&s->img, PS_SITE, 12);
	ps_clobber(s);
	pui_c_code(&s->img, 5);
	ps_sample(s, PS_HELPER);
	ps_only_hint(s, 0);
	want_main(s, 40);
}

static void pc_saved_only(struct puc_scene *s)
{
	begin(s);
	s->img.gprs.r[PUI_PC_REG] = 0x15;
	pui_enter(&s->img, PS_SITE, 4);
	pui_savepc(&s->img, &s->st, 50);
	ps_sample(s, PS_HELPER);
	want_main(s, 50);
}

/* luaV_execute keeps it in its own frame while it needs the register. */
static void pc_spilled(struct puc_scene *s)
{
	needs_register(s);
	begin(s);
	pui_word(&s->img, pui_code(&s->img, s->main, 41)); /* next to its locals */
	pui_word(&s->img, 0x17);
	s->img.gprs.r[PUI_PC_REG] = 0x15;
	ps_sample(s, PUI_VM + 0x40);
	want_main(s, 40);
}

/* The topmost call returns a function, which luaD_poscall has written over its own already. */
static void returns_function(struct puc_scene *s, struct pui_fn fn)
{
	struct pui_fn result = ps_func(s, 90);

	s->absent = s->img.puc.flags & PUC_CI_ARRAY;
	ps_begin(s);
	pui_call(&s->img, &s->st, 20, fn);
	pui_put(&s->img, s->st.func + PUC_TV_VALUE, 8, result.value);
	pui_put(&s->img, s->st.func + PUC_TV_TT, 1, result.tt);
	s->img.gprs.r[PUI_PC_REG] = pui_code(&s->img, s->main, 7); /* of long ago */
	ps_sample(s, PS_IP);
	want_main(s, 20);
}

static void c_returns_function(struct puc_scene *s)
{
	returns_function(s, pui_cclosure(&s->img, PS_CFUNC));
}

static void lua_returns_function(struct puc_scene *s)
{
	returns_function(s, ps_func(s, 70));
}

/*
 * Back in main, or just in what it calls: the register has the other's pc still, and in
 * luaV_execute's frame an old one is left.
 */
static void between(struct puc_scene *s, struct pui_fn top, uint64_t pc)
{
	s->absent = !s->img.puc.op_return;
	pui_word(&s->img, pui_code(&s->img, top, 41));
	pui_word(&s->img, 0x17);
	s->img.gprs.r[PUI_PC_REG] = pc;
	ps_sample(s, PS_IP);
}

static void returned_frame_is_old(struct puc_scene *s)
{
	struct pui_fn f = ps_func(s, 30);

	ps_begin(s);
	pui_call(&s->img, &s->st, 20, f);
	pui_pop(&s->img, &s->st);
	pui_put(&s->img, pui_code(&s->img, f, 9), 4, s->img.puc.op_return + 2 + 0x1280);
	between(s, s->main, pui_code(&s->img, f, 10));
	want_main(s, 20);
}

static void called_frame_is_old(struct puc_scene *s)
{
	struct pui_fn f = ps_func(s, 30);

	ps_begin(s);
	pui_call(&s->img, &s->st, 20, f);
	between(s, f, pui_code(&s->img, s->main, 21));
	ps_want_lua(s, f, 0, THREAD);
	ps_want_lua(s, s->main, 20, 0);
}

/* What is left there of an earlier call is no pc while it has called. */
static void pc_left_in_frame(struct puc_scene *s)
{
	begin(s);
	pui_savepc(&s->img, &s->st, 50);
	pui_word(&s->img, pui_code(&s->img, s->main, 41));
	pui_word(&s->img, 0x17);
	s->img.gprs.r[PUI_PC_REG] = 0x15;
	pui_enter(&s->img, PS_SITE, 4);
	ps_sample(s, PS_HELPER);
	want_main(s, 50);
}

/* Words beyond luaV_execute's frame are not what it has kept or a helper has pushed. */
static void pushed_by_others(struct puc_scene *s)
{
	s->main = ps_func(s, 0);
	s->img.gprs.r[PUI_RBX] = s->img.main_L;
	pui_protect(&s->img, s->img.main_L);
	pui_word(&s->img, pui_code(&s->img, s->main, 60));
	s->L = s->img.main_L;
	s->st = pui_stack(&s->img, s->L);
	pui_push(&s->img, &s->st, s->main);
	pui_execute(&s->img, &s->st);
	s->img.gprs.r[PUI_PC_REG] = 0x15;
	pui_enter(&s->img, PS_SITE, 4);
	pui_savepc(&s->img, &s->st, 50);
	ps_sample(s, PS_HELPER);
	want_main(s, 50);
}

/* Nothing points into the code: the line is unknown, the function is not. */
static void pc_nowhere(struct puc_scene *s)
{
	const struct puc_layout *l = &s->img.puc;
	uint64_t at = l->L_savedpc == PUC_NONE ? 0 : s->img.main_L + l->L_savedpc;

	ps_begin(s);
	pui_put(&s->img, at ? at : s->st.ci + l->ci_savedpc, 8, 0);
	s->img.gprs.r[PUI_PC_REG] = 0x15;
	ps_sample(s, PS_IP);
	want_main(s, LB_NO_PC);
}

static void caller_pc_nowhere(struct puc_scene *s)
{
	uint64_t ci;
	struct pui_fn f;

	ps_begin(s);
	f = ps_func(s, 10);
	ci = s->st.ci;
	pui_call(&s->img, &s->st, 3, f);
	pui_put(&s->img, ci + s->img.puc.ci_savedpc, 8, pui_code(&s->img, f, 5) + (1 << 20));
	ps_in_vm(s, 7);
	ps_want_lua(s, f, 7, THREAD);
	ps_want_lua(s, s->main, LB_NO_PC, 0);
}

/* ---- states ---------------------------------------------------------------------------------- */

static void collector(struct puc_scene *s)
{
	ps_begin(s);
	ps_collect(s, 15);
	ps_sample(s, PS_IP_GC);
	s->state = 'G';
	want_main(s, 15);
}

/* Its entry itself, called by the VM. */
static void collector_entry(struct puc_scene *s)
{
	ps_begin(s);
	ps_helper(s, 15, 3);
	ps_sample(s, PS_IP_GC);
	s->state = 'G';
	want_main(s, 15);
}

/* It calls free(). */
static void collector_in_libc(struct puc_scene *s)
{
	ps_begin(s);
	ps_collect(s, 15);
	pui_enter(&s->img, PS_GC_CALLEE, 4);
	pui_enter(&s->img, PUI_TEXT + 0xc000, 9);
	ps_sample(s, PS_LIBC);
	s->state = 'G';
	want_main(s, 15);
}

/* A C function allocates: lua_newuserdata. */
static void collector_from_c(struct puc_scene *s)
{
	ps_begin(s);
	ps_call_c(s, 5, PS_CFUNC);
	pui_enter(&s->img, PS_API_GC, 3);
	pui_enter(&s->img, PS_GC_SITE, 4);
	pui_enter(&s->img, PS_GC_CALLEE, 4);
	ps_sample(s, PS_LIBC);
	s->state = 'G';
	ps_want_c(s, PS_CFUNC, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

/* A function was called, and luaD_precall collects before luaV_execute begins. */
static void collector_from_precall(struct puc_scene *s)
{
	about_to_execute(s);
	pui_enter(&s->img, PS_PRECALL_GC, 3);
	pui_enter(&s->img, PS_GC_SITE, 4);
	pui_enter(&s->img, PS_GC_CALLEE, 4);
	ps_sample(s, PS_LIBC);
	s->state = 'G';
}

static void collector_in_coroutine(struct puc_scene *s)
{
	struct pui_fn f;

	ps_begin(s);
	f = ps_func(s, 10);
	ps_call_c(s, 5, PS_CFUNC);
	ps_resume_lua(s, pui_thread(&s->img), f);
	ps_collect(s, 15);
	ps_sample(s, PS_IP_GC);
	s->state = 'G';
	ps_want_lua(s, f, 15, THREAD);
	ps_want_c(s, PS_CFUNC, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

/* luaC_newobj allocates, and collects nothing. */
static void allocates(struct puc_scene *s)
{
	begin(s);
	ps_helper(s, 15, 3);
	ps_sample(s, PS_NEWOBJ + 4);
	want_main(s, 15);
}

static void allocates_in_libc(struct puc_scene *s)
{
	begin(s);
	ps_helper(s, 15, 3);
	pui_enter(&s->img, PS_NEWOBJ + PS_NEWOBJ_SIZE - 4, 2);
	ps_sample(s, PS_LIBC);
	want_main(s, 15);
}

static void allocates_from_c(struct puc_scene *s)
{
	ps_begin(s);
	ps_call_c(s, 5, PS_CFUNC);
	pui_enter(&s->img, PS_API_NEW, 3); /* lua_newuserdata */
	pui_enter(&s->img, PS_NEWOBJ + 8, 2);
	ps_sample(s, PS_LIBC);
	s->state = 'C';
	ps_want_c(s, PS_CFUNC, THREAD);
	ps_want_lua(s, s->main, 5, 0);
}

/* The collector is below what runs: a finalizer, and the C code that it calls. */
static void finalizer_calls_c(struct puc_scene *s)
{
	uint8_t fin = s->img.puc.cist_fin ? LB_FRAME_FIN : 0;
	struct pui_fn f;

	ps_begin(s);
	f = ps_func(s, 10);
	ps_collect(s, 15);
	pui_callstatus(&s->img, &s->st, s->img.puc.cist_fin);
	pui_protect(&s->img, s->st.L);
	ps_call_lua(s, f);
	ps_call_c(s, 6, PS_CFUNC);
	ps_in_c(s);
	ps_want_c(s, PS_CFUNC, THREAD);
	ps_want_lua(s, f, 6, fin);
	ps_want_lua(s, s->main, 15, 0);
}

/* luaV_execute of a finalizer runs, and the C stack further up has a call of the collector. */
static void finalizer_in_vm(struct puc_scene *s)
{
	uint8_t fin = s->img.puc.cist_fin ? LB_FRAME_FIN : 0;
	struct pui_fn f;

	ps_begin(s);
	f = ps_func(s, 10);
	ps_collect(s, 15);
	pui_callstatus(&s->img, &s->st, s->img.puc.cist_fin);
	pui_protect(&s->img, s->st.L);
	ps_call_lua(s, f);
	ps_clobber(s);
	ps_in_vm(s, 6);
	ps_only_hint(s, 0);
	ps_want_lua(s, f, 6, THREAD | fin);
	ps_want_lua(s, s->main, 15, 0);
}

/* Where the collector is, is not known: no state but the function's. */
static void collector_unknown(struct puc_scene *s)
{
	collector_in_libc(s);
	s->in.gc_lo = 0;
	s->in.gc_hi = 0;
	s->state = 'I';
}

/* Lua runs, C code of the VM that is not the collector. */
static void helper_is_interpreter(struct puc_scene *s)
{
	begin(s);
	ps_helper(s, 15, 3);
	pui_enter(&s->img, PS_HELPER, 3);
	ps_sample(s, PS_LIBC);
	want_main(s, 15);
}

const struct puc_scene_row puc_scenes_top[] = {
	{"pc_in_register", pc_in_register},
	{"at_the_last", at_the_last},
	{"at_the_first", at_the_first},
	{"entered", entered},
	{"any_register", any_register},
	{"learned_register", learned_register},
	{"register_out_of_range", register_out_of_range},
	{"register_beyond", register_beyond},
	{"register_before", register_before},
	{"register_unaligned", register_unaligned},
	{"fetches", fetches},
	{"fetches_the_first", fetches_the_first},
	{"fetches_the_last", fetches_the_last},
	{"fetches_the_callee", fetches_the_callee},
	{"jumps", jumps},
	{"before_the_fetch", before_the_fetch},
	{"after_the_fetch", after_the_fetch},
	{"fetches_beyond", fetches_beyond},
	{"fetches_before", fetches_before},
	{"fetches_unaligned", fetches_unaligned},
	{"no_fetch_known", no_fetch_known},
	{"just_called", just_called},
	{"call_under_way", call_under_way},
	{"about_to_execute", about_to_execute},
	{"just_returned", just_returned},
	{"entered_before_savedpc", entered_before_savedpc},
	{"returned_before_savedpc", returned_before_savedpc},
	{"helper_leaves_register", helper_leaves_register},
	{"helper_pushes_register", helper_pushes_register},
	{"helper_pushes_only_pc", helper_pushes_only_pc},
	{"pushed_further_up", pushed_further_up},
	{"pushed_found_by_stack", pushed_found_by_stack},
	{"pc_saved_only", pc_saved_only},
	{"pc_spilled", pc_spilled},
	{"pc_left_in_frame", pc_left_in_frame},
	{"c_returns_function", c_returns_function},
	{"lua_returns_function", lua_returns_function},
	{"returned_frame_is_old", returned_frame_is_old},
	{"called_frame_is_old", called_frame_is_old},
	{"pushed_by_others", pushed_by_others},
	{"pc_nowhere", pc_nowhere},
	{"caller_pc_nowhere", caller_pc_nowhere},
	{"collector", collector},
	{"collector_entry", collector_entry},
	{"collector_in_libc", collector_in_libc},
	{"collector_from_c", collector_from_c},
	{"collector_from_precall", collector_from_precall},
	{"collector_in_coroutine", collector_in_coroutine},
	{"allocates", allocates},
	{"allocates_in_libc", allocates_in_libc},
	{"allocates_from_c", allocates_from_c},
	{"finalizer_calls_c", finalizer_calls_c},
	{"finalizer_in_vm", finalizer_in_vm},
	{"collector_unknown", collector_unknown},
	{"helper_is_interpreter", helper_is_interpreter},
	{NULL, NULL},
};
