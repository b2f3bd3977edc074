/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The walker for PUC Lua 5.1 to 5.5. Its user calls these, in this order; input and result are in
 * struct puc_walk (state.h):
 *
 *     puc_walk_begin()  finds the lua_State that runs on this thread, or begins the search for it
 *     puc_step()        emits a few frames, until LB_STOP or for LB_MAX_STEPS
 *     puc_walk_end()    completes the sample: its frames are in rec.stack, its status in end
 *
 * A lua_State has a chain of CallInfos, one for each function that was called and has not returned
 * (lstate.h); in 5.1 an array, later a list. L->ci is the innermost, base_ci the outermost, which
 * belongs to no function:
 *
 *     L->ci --previous--> CallInfo --previous--> ... --previous--> base_ci
 *              |func              |func                               |func
 *     stack: [ function args ... ][ function args ... ]     ...     [ nil ] = L->stack
 *
 * A step appends frames and goes down the chain. Each walk proves the layout: it has to come to
 * base_ci over slots of the Lua stack, one below the other, that hold functions.
 *
 * A coroutine has no pointer to its resumer, but both have a struct lua_longjmp on the C stack:
 * luaD_rawrunprotected (ldo.c) keeps one there for each protected call, and L->errorJmp points to
 * the innermost of L's. L's outermost is that of lua_resume. The resumer is the next active
 * lua_State above it.
 *
 *     sp -> | C functions called by L             |
 *           | lua_longjmp    <- L->errorJmp       |
 *           | luaV_execute and so on, all of L    |  higher addresses
 *           | lua_longjmp    previous == NULL     |      |
 *           | lua_resume(L)                       |      v
 *           | C functions, luaV_execute of parent |
 *           | lua_longjmp    <- parent->errorJmp  |
 *           | ...                                 |
 */
#ifndef LUABPF_UNWIND_PUC_UNWIND_H
#define LUABPF_UNWIND_PUC_UNWIND_H

#include <unwind/puc/find.h>

/*
 * Finds the lua_State that runs on this thread. Returns 0 if it was found, 1 if the steps have to
 * search the C stack first. They end as LB_STATUS_OUTSIDE if no lua_State runs here.
 */
LB_SUBPROG int puc_walk_begin(const struct lb_mem *mem, struct puc_walk *w)
{
	if (!w)
		return 1;
	w->g = 0;
	w->L = 0;
	w->inner = w->stack_hi; /* of several VMs, one in which none is found is no inner one */
	w->vmstate = 0;
	w->fault = 0;
	w->flags = 0;
	w->top.noted = 0;
	w->top.popped = 0;
	w->code.steps = 0;
	w->steps = 0;
	w->state = 'I';
	w->search.child = 0;
	lb_outer_begin(puc_common(w));
	w->look.done = 0;
	w->far.part = 0;
	w->scan.most = 0;
	puc_scan_from(w, w->regs.sp, w->regs.sp - 1);
	if (w->L_hint && puc_consider(mem, w, w->L_hint, 0))
		return puc_take_best(w);
	if (w->search.depth != ~0ULL && puc_is_far_known(w))
		w->scan.end = puc_scan_reach(w);
	w->scan.known[0] = w->L_hint;
	w->scan.known[1] = w->L_hint && w->search.try.L == w->L_hint ? w->search.try.main_L : 0;
	if (w->search.depth != ~0ULL && !puc_in_vm(w, w->regs.ip))
		return 1;
	if (puc_consider_regs(mem, w, w->regs.sp))
		return puc_take_best(w);
	return 1;
}

LB_SUBPROG int puc_step(const struct lb_mem *mem, struct puc_walk *w)
{
	if (!w)
		return LB_STOP;
	if (++w->steps == LB_MAX_STEPS && w->rec.stack.n)
		return w->outward ? puc_end(w, LB_STATUS_RESOLVED) : puc_cut(w);
	switch (w->phase) {
	case PUC_PHASE_SCAN:
		return puc_step_scan(mem, w);
	case PUC_PHASE_WEIGH:
		return puc_step_weigh(mem, w);
	case PUC_PHASE_NOTE:
		return puc_step_note(mem, w);
	case PUC_PHASE_TOP:
		if (puc_step_top(mem, w))
			return LB_STOP;
		return w->phase == PUC_PHASE_FRAME ? puc_step_frames(mem, w) : LB_MORE;
	case PUC_PHASE_COLLECTS:
		return puc_step_collects(mem, w);
	case PUC_PHASE_FRAME:
		return puc_step_frames(mem, w);
	case PUC_PHASE_CODE:
		return puc_step_code(mem, w);
	default:
		return puc_step_jmp(mem, w);
	}
}

/* Completes a walk that has stopped: an outer VM's frames that could not be walked are cut. */
LB_SUBPROG int puc_walk_end(const struct lb_mem *mem, struct puc_walk *w)
{
	__u16 gcstate; /* with the byte behind it */

	if (!w)
		return 0;
	lb_outer_end(puc_common(w));
	w->detail = 0;
	if (w->state == 'G' &&
	    !puc_guess(mem, w, &gcstate, sizeof(gcstate), w->g + w->puc.g_gcstate))
		w->detail = (__u8)gcstate + 1;
	return 0;
}

#endif
