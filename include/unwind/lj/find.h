/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * From registers to the topmost Lua frame: the lua_State that runs on this thread, its BASE and its
 * pc. Each part of the VM keeps them elsewhere (vm_x64.dasc):
 *
 * - assembler VM: BASE and PC in registers; for a few instructions around calls and returns only
 *   one of the two has changed yet (unwind/lj/top.h)
 * - helper in C: L->base and SAVE_PC were stored before the call; or, at some call sites, BASE was
 *   only kept in rbp
 * - C function, collector: L->base
 * - compiled code: jit_base and the last snapshot at or before the instruction pointer
 *   (unwind/lj/trace.h); during a side exit the exit's snapshot (unwind/lj/exit.h)
 *
 * lj_find_vm() checks that VM g runs on this thread. lj_find_by_state() sets the walk on its topmost
 * frame; its searches are steps of the walk, bounded by LB_MAX_STEPS.
 */
#ifndef LUABPF_UNWIND_LJ_FIND_H
#define LUABPF_UNWIND_LJ_FIND_H

#include <unwind/lj/exit.h>
#include <unwind/lj/moved.h>
#include <unwind/lj/outer.h>

static __always_inline __u8 lj_state_letter(__s32 vmstate)
{
	return vmstate > 0			  ? 'N'
	       : vmstate == LJ_VMST_INTERP	  ? 'I'
	       : vmstate == LJ_VMST_C || !vmstate ? 'C' /* 0: not set yet, lua_newstate runs */
	       : vmstate == LJ_VMST_GC		  ? 'G'
						  : 'J';
}

/* Returns a stored vmstate as most builds number it (LJ_VMST_*). */
static __always_inline __s32 lj_vmstate(const struct lj_walk *w, __s32 stored)
{
	__s32 more = w->lj.interp_states - 1;

	if (stored >= LJ_VMST_INTERP)
		return stored;
	return stored + more >= LJ_VMST_INTERP ? LJ_VMST_INTERP : stored + more;
}

/*
 * True if vmstate is no trace's number, though it is positive: outside of the assembler VM compiled code
 * has a jit_base. Tarantool's VM restores vmstate as it leaves an FFI callback, whose entry has not
 * saved it: that of its C frame's last use stays until the VM is entered again, or any word.
 */
static __always_inline int lj_vmstate_is_garbage(const struct lj_walk *w,
						 const struct lb_regs *regs)
{
	return w->vmstate > 0 && !w->jit_base &&
	       (!lj_in_vm(w, regs->ip) || w->cframe - regs->sp > 16);
}

/* Words read above sp: what an epilogue of the VM has yet to pop, and a cframe up to its L. */
#define LJ_SWITCH 16

static __always_inline int lj_is_above(const struct lj_walk *w, const struct lb_regs *regs,
				       __u64 cframe)
{
	return cframe >= regs->sp && cframe + w->lj.cframe_size <= w->stack_hi;
}

/* Sets the walk on L if it is a thread of VM g that runs on this C stack. Returns 0, or -1. */
LB_SUBPROG int lj_find_outer(const struct lb_mem *mem, struct lj_walk *w,
			     const struct lb_regs *regs, __u64 g, __u64 L)
{
	if (!w || !regs || lj_read_thread(mem, w, L) || w->head.g != g ||
	    !lj_is_above(w, regs, w->head.cframe))
		return -1;
	lj_enter_L(w, L, w->head.cframe);
	w->fault = 0;
	return 0;
}

/* Returns the main thread of VM g, whose struct precedes that of g; 0: g is not a VM. */
LB_SUBPROG __u64 lj_main(const struct lb_mem *mem, struct lj_walk *w, __u64 g)
{
	__u64 size;

	if (!w)
		return 0;
	LB_ROLLED
	for (size = LJ_AT(w, L_SIZE_LEAST); size <= LJ_AT(w, L_SIZE_LEAST) + 16; size += 8)
		if (!lj_read_thread(mem, w, g - size) && w->head.g == g)
			return g - size;
	return 0;
}

/* Tries outer threads of VM g, in C code, as cur_L does not run here. Returns 0 with one, or -1. */
static __always_inline int lj_find_main(const struct lb_mem *mem, struct lj_walk *w,
					const struct lb_regs *regs, __u64 g)
{
	if (w->vmstate > 0 || lj_in_vm(w, regs->ip))
		return -1;
	if (w->L_hint && !lj_find_outer(mem, w, regs, g, w->L_hint))
		return 0;
	return lj_find_outer(mem, w, regs, g, lj_main(mem, w, g));
}

struct lj_switch {
	const struct lb_mem *mem;
	struct lj_walk *w;
	__u64 sp;
};

static long lj_switch_step(__u32 i, struct lj_switch *ctx)
{
	struct lj_walk *w = ctx->w;
	__u64 L = lj_block_L(w, i & (LJ_SWITCH - 1)), cframe = ctx->sp + 8 * i;

	if (!L || !lj_owns_cframe(mem_accessor(ctx->mem), w, L, cframe))
		return 0;
	lj_enter_L(w, L, cframe);
	w->switched = 1;
	return 1;
}

/*
 * Finds the thread while the VM switches coroutines: that of the cframe at sp, or above the words
 * that the epilogue has yet to pop. Returns 1; 0: not found; -1: the C stack cannot be read.
 */
LB_SUBPROG int lj_find_switched(const struct lb_mem *mem, struct lj_walk *w, __u64 sp)
{
	struct lj_switch ctx = {.mem = mem, .w = w, .sp = sp};

	if (!w)
		return -1;
	if (mem_read(mem, w->block, 8 * LJ_SWITCH, sp)) {
		w->fault = 1;
		return -1;
	}
	w->switched = 0;
	lb_rare_loop(LJ_SWITCH - LJ_AT(w, CFRAME_L) / 8, lj_switch_step, &ctx);
	return w->switched;
}

/*
 * Returns 0 if VM g runs on this C stack: the cframe of its running thread lies above sp, in the
 * same mapping. Sets L, cframe, vmstate and base. cur_L is stale in two cases:
 * - while the assembler VM switches coroutines (lj_find_switched())
 * - in C code, after its thread has yielded or returned (lj_find_nearer()): an outer thread runs
 * LuaJIT 2.0 has none but in compiled code: it is as if it was freed, and the same two find the thread.
 */
LB_SUBPROG int lj_find_vm(const struct lb_mem *mem, struct lj_walk *w, const struct lb_regs *regs,
			  __u64 g)
{
	const __u8 *bytes;
	__u64 L, cframe, jit_base;
	int r, freed;

	if (!w || !regs)
		return -1;
	w->g = 0;
	w->trace = 0;
	w->fault = 0; /* another VM, tried before, may be closed */
	if (g & 7 || !g || g >> 47 || lj_at(mem, w, &bytes, 24, g + w->lj.cur_L))
		return -1;
	L = lj_ref(w, bytes, 0);
	jit_base = lj_jit_base(w, bytes);
	freed = !L;
	if (freed)
		L = lj_main(mem, w, g);
	r = lj_read_thread(mem, w, L);
	w->fault |= r < 0;
	if (r || w->head.g != g)
		return -1;
	cframe = w->head.cframe;
	lj_enter_L(w, L, cframe);
	w->jit_base = jit_base;
	if (lj_at(mem, w, &bytes, 4, g + w->lj.vmstate))
		return -1;
	w->vmstate = lj_vmstate(w, (__s32)lb_half(bytes, 0));
	if (lj_vmstate_is_garbage(w, regs))
		w->vmstate = LJ_VMST_C;
	w->state = lj_state_letter(w->vmstate);
	if (freed && w->state != 'C' && !lj_is_20(w))
		return -1;
	if (lj_in_vm(w, regs->ip) && (w->vmstate == LJ_VMST_INTERP || lj_is_20(w)) &&
	    cframe - regs->sp > 16) {
		r = lj_find_switched(mem, w, regs->sp);
		if (r)
			return r < 0 ? r : 0;
	}
	w->runs = !freed;
	if (lj_is_above(w, regs, w->cframe))
		return 0;
	w->runs = 0;
	return lj_find_main(mem, w, regs, g);
}

static __always_inline int lj_find_by_state(const struct lb_mem *mem, struct lj_walk *w,
					    const struct lj_build *build,
					    const struct lb_regs *regs, __u32 traceno)
{
	int in_vm = lj_in_vm(w, regs->ip);

	if (w->vmstate > 0) {
		if (in_vm && w->cframe - regs->sp <= 16 && !lj_top_trace_ended(mem, w, regs))
			return 0;
		if (!lj_top_trace(mem, w, regs, (__u32)w->vmstate))
			return 0;
		w->end = LB_STATUS_BAD_TRACE;
		return -1;
	}
	if (w->vmstate == LJ_VMST_EXIT)
		return lj_top_exit(mem, w, regs);
	if (w->vmstate == LJ_VMST_GC && w->jit_base &&
	    (!lj_top_trace(mem, w, regs, traceno) || !lj_search_traces(mem, w)))
		return 0;
	if (w->vmstate == LJ_VMST_INTERP) {
		/* not in the prologue or epilogue, where the registers have C code's values */
		if (in_vm && w->cframe - regs->sp <= 16)
			return lj_top_interp(mem, w, build, regs);
		if (w->jit_base) /* first instruction of a trace: vmstate is not set yet */
			return lj_top_is(w, w->jit_base, regs->pc);
		return lj_top_helper(mem, w, build, regs);
	}
	if (w->vmstate == LJ_VMST_C && in_vm)
		return lj_top_return_to_c(mem, w, build, regs);
	if (w->vmstate == LJ_VMST_C)
		return lj_top_helper(mem, w, build, regs);
	return lj_top_stored(mem, w);
}

/* True while the VM calls a function for the host: BASE is L->base or already the callee's. */
static __always_inline int lj_enters(const struct lj_walk *w, const struct lb_regs *regs)
{
	__u64 type = regs->pc & 7, delta = regs->pc & ~7ULL;

	return (type == LJ_FRAME_C || type == LJ_FRAME_CP) &&
	       (regs->base == w->base || regs->base - delta == w->base);
}

/*
 * Takes a topmost dummy frame: its function slot holds the thread itself. Returns 0, or -1. Cases:
 * - a C function is about to be replaced by another (lj_meta_tailcall)
 * - the Lua stack has overflowed, and the function for which it has no room has no frame
 * - the bottom of the stack: the host's call is being set up, or lua_newstate or lua_close run C
 *   code by lj_vm_cpcall
 * Elsewhere in the VM L->base may be stale, and is not used.
 */
LB_SUBPROG int lj_top_dummy(const struct lb_mem *mem, struct lj_walk *w, const struct lb_regs *regs)
{
	int interp, bottom, in_vm, enters;
	__u64 tv;

	if (!w || !regs)
		return -1;
	interp = w->vmstate == LJ_VMST_INTERP;
	bottom = lj_at_bottom(w);
	in_vm = lj_in_vm(w, regs->ip);
	enters = interp && in_vm && lj_enters(w, regs);
	if (w->vmstate > 0 || (interp && !enters && (bottom || (in_vm && regs->base != w->base))))
		return -1;
	if (lj_read_func(mem, w, w->base, &tv) || (!lj_is_32(w) && LJ_TV_TYPE(tv) != LJ_TTHREAD) ||
	    lj_tv_gcptr(w, tv) != w->L || (interp && !in_vm && !lj_link_leads(mem, w, w->base)))
		return -1;
	if (bottom && w->vmstate && !enters && lj_read_cframe(mem, w, w->base - 8) <= 0)
		return -1;
	w->fault = 0; /* an earlier attempt read by a word that is no pc */
	return lj_top_is(w, w->base, 0);
}

#endif
