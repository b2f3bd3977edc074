/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The walker for LuaJIT, x86-64. It is compiled for GC64 and for GC32 (lj_is_gc32()). Its user calls
 * these, in this order; input and result are in struct lj_walk (state.h):
 *
 *     lj_find_vm()     0 if VM g runs on this thread: for each VM that may
 *     lj_walk_begin()  sets the walk on the topmost frame
 *     lj_step()        a bounded piece of the walk, until LB_STOP or for LB_MAX_STEPS
 *     lj_walk_end()    completes the sample: its frames are in rec.stack, its status in end
 *     lj_walk_again()  after LB_STATUS_STACK_CHANGING: 0 if the walk is to be stepped once more
 *
 * A frame on the Lua stack (lj_frame.h, LJ_FR2):
 *
 *      base-4  base-3  base-2  base-1      | base ...
 *     [cont    contpc] func    PC/delta|ft | slots ...
 *
 * In GC32 all of these are halves, so that a frame takes one slot:
 *
 *             base-2   base-1              | base ...
 *     [cont | contpc]  func | PC/delta|ft  | slots ...
 *
 * The walk keeps the base of the current frame, the pc at which it stands, and the cframe (the VM's
 * frame on the C stack) that runs it. It emits the frame and goes to the one below by its link:
 *
 *     LUA    the link is the caller's pc; the instruction before it holds the distance
 *     CONT   metamethod: distance in the link, pc in the continuation's slot
 *     C, CP  called from C: distance in the link, pc from SAVE_PC of the next cframe up the C stack
 *     VARG   a vararg function has two frames: this one is emitted, the one below it is skipped
 *     PCALL  distance in the link
 *
 * At the bottom of a coroutine the walk goes on in the lua_State that resumed it: the VM's resume
 * puts the child's cframe directly below the parent's.
 *
 * In compiled code the frames of inlined functions are only virtual. The last snapshot at or before
 * the instruction pointer has them (that of the next guard, in builds without mcofs): for each frame
 * the slots of its link and its function (lj_snap.c). In GC64 both are constants of the trace's IR, but
 * for a function that the trace computes; snap.h has the rest. They are walked first, in the same way.
 */
#ifndef LUABPF_UNWIND_LJ_UNWIND_H
#define LUABPF_UNWIND_LJ_UNWIND_H

#include <unwind/lj/find.h>
#include <unwind/lj/stack.h>

/* True if another thread than cur_L may run, outside of the VM. */
static __always_inline int lj_may_be_other(const struct lj_walk *w)
{
	return w->state == 'C' || w->state == 'I' ||
	       (lj_is_20(w) && !w->jit_base && w->vmstate < 0);
}

/*
 * Sets the walk on the topmost frame of the VM that lj_find_vm() found. traceno: the trace that
 * this thread ran last, as vmstate does not have it while compiled code calls the collector.
 * Returns 0, or -1. The caller has set w->end to LB_STATUS_STACK_CHANGING, which another reason replaces.
 */
LB_SUBPROG int lj_walk_begin(const struct lb_mem *mem, struct lj_walk *w,
			     const struct lj_build *build, const struct lb_regs *regs,
			     __u32 traceno)
{
	if (!w || !build || !regs)
		return -1;
	lb_outer_begin(lj_common(w));
	w->in_loop = 0;
	if (lj_may_be_other(w) && !lj_in_vm(w, regs->ip) && lj_find_nearer(mem, w, regs->sp)) {
		w->end = w->fault ? LB_STATUS_FAULT : LB_STATUS_LOOP;
		return -1;
	}
	/* in memory, where the verifier does not follow its value */
	w->moving = (__u8)lj_is_moving(mem, w, regs);
	if (w->moving)
		lj_find_moved(mem, w, regs);
	if (!lj_find_by_state(mem, w, build, regs, traceno) || !lj_top_dummy(mem, w, regs))
		return 0;
	/* a coroutine that is being started or ended has no frame: its resumer is on top */
	if (w->vmstate < 0 && !w->moving && !lj_is_main(w) && lj_on_stack(w, w->base) &&
	    !lj_read_cframe(mem, w, ~0ULL) && !w->saved.prev) {
		w->phase = LJ_PHASE_PARENT;
		return 0;
	}
	return -1;
}

/*
 * Sets up again a walk that ended as LB_STATUS_STACK_CHANGING in the assembler VM, although BASE
 * and PC fitted. Returns 0, or -1. Two cases:
 * - a function calls itself: PC is still the caller's, and the link's slot not written yet
 * - a fast function's results have overwritten its link, which was stored as the pc (SAVE_PC)
 */
LB_SUBPROG int lj_walk_again(const struct lb_mem *mem, struct lj_walk *w,
			     const struct lb_regs *regs, __u64 base)
{
	__u64 pc;
	int fit;

	if (!w || !regs || w->vmstate != LJ_VMST_INTERP || !lj_in_vm(w, regs->ip) ||
	    w->rec.stack.n > 2)
		return -1;
	w->rec.stack.n = 0;
	lj_enter_frames(w);
	if (!lj_top_linked(mem, w, regs->base, regs->pc, LJ_FIT_NOT))
		return 0;
	pc = lj_saved_pc(mem, w, base);
	fit = lj_fit(mem, w, base, 0);
	if (!lj_top_linked(mem, w, base, pc, fit))
		return 0;
	if (fit < LJ_FIT_C || !(pc & 7) || pc >= 1 << 20 || lj_link_leads(mem, w, base))
		return -1;
	w->link = pc;
	w->link_known = 1;
	return lj_top_is(w, base, 0);
}

/*
 * Runs a step of the current phase (enum lj_phase). Those up to GUARDS find the topmost frame and emit
 * nothing; SNAP and FRAME emit frames; PARENT and SEARCH find the next lua_State.
 */
LB_SUBPROG int lj_step(const struct lb_mem *mem, struct lj_walk *w)
{
	if (!w)
		return LB_STOP;
	switch (w->phase) {
	case LJ_PHASE_LEAF:
		return lj_step_leaf(mem, w);
	case LJ_PHASE_STORED:
		return lj_step_stored(mem, w);
	case LJ_PHASE_TRACES:
		return lj_step_traces(mem, w);
	case LJ_PHASE_HEADS:
		return lj_step_heads(mem, w);
	case LJ_PHASE_MCODE:
		return lj_step_mcode(mem, w);
	case LJ_PHASE_GUARDS:
		return lj_step_guards(mem, w);
	case LJ_PHASE_SNAP:
		return lj_step_snap(mem, w);
	case LJ_PHASE_FRAME:
		return lj_step_frame(mem, w);
	case LJ_PHASE_PARENT:
		return lj_step_parent(mem, w);
	default:
		return lj_step_search(mem, w);
	}
}

/* Returns LB_STATE_DETAIL() of the walk's state. */
static __always_inline __u8 lj_state_detail(const struct lb_mem *mem, struct lj_walk *w)
{
	__u16 gcstate; /* with the byte behind it */

	if (w->state == 'N')
		return w->in_loop ? LB_IN_LOOP : 0;
	if (w->state == 'J')
		return (__u8)-w->vmstate;
	if (w->state != 'G' ||
	    lj_guess(mem, w, &gcstate, sizeof(gcstate), w->g + lj_gc_state(&w->lj)))
		return 0;
	return (__u8)gcstate + 1;
}

/*
 * Completes a walk that has stopped, or taken LB_MAX_STEPS. If a search took the rest of these, the
 * sample is kept: for a resumer the stack is marked as cut, for an outer VM it is not.
 */
LB_SUBPROG int lj_walk_end(const struct lb_mem *mem, struct lj_walk *w)
{
	if (!w)
		return 0;
	if (w->end == LB_STATUS_LOOP && w->phase == LJ_PHASE_SEARCH && w->rec.stack.n) {
		if (!w->outward)
			w->rec.stack.flags |= LB_SAMPLE_CUT;
		w->end = LB_STATUS_RESOLVED;
	}
	lb_outer_end(lj_common(w));
	w->detail = lj_state_detail(mem, w);
	return 0;
}

#endif
