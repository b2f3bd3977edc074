/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * From a VM to the one that called it. A C function of a VM may run another VM on the same C stack.
 * puc_leave_vm() begins the search for the nearest active lua_State of any VM of the same build
 * above the inner VM's outermost lua_longjmp, as for a resumer.
 */
#ifndef LUABPF_UNWIND_PUC_OUTER_H
#define LUABPF_UNWIND_PUC_OUTER_H

#include <unwind/puc/scan.h>

/* Appends the frame that says that the best, of another VM, called the VM above. */
static __always_inline void puc_join(struct puc_walk *w)
{
	__u32 n = w->rec.stack.n;
	struct lb_frame *f = &w->rec.stack.frame[n & LB_MAX_FRAMES];

	if (!w->inner_L) {
		w->inner_L = w->L;
		w->inner_g = w->below_g;
	}
	w->whole = n;
	if (w->best.g == w->below_g || n >= LB_MAX_FRAMES)
		return;
	f->word = LB_FRAME_WORD(LB_FRAME_VM, 0, w->best.g & LB_FRAME_PTR_MASK);
	f->pc = w->rec.build;
	f->fp = 0;
	w->rec.stack.n = n + 1;
}

/*
 * The search has ended. Sets the walk on the lua_State that it found. If a function that calls no
 * other VM is on top there, that one runs: the VM above has called it back, unprotected.
 */
LB_SUBPROG int puc_enter_outer(struct puc_walk *w)
{
	if (!w)
		return LB_STOP;
	w->outward = 0;
	if (w->key == ~0ULL || puc_scan_missed(w)) {
		w->g = w->below_g;
		puc_note_alone(w);
		return puc_end(w, LB_STATUS_RESOLVED);
	}
	w->phase = PUC_PHASE_FRAME;
	if (w->open) {
		puc_join(w);
	} else {
		w->phase = PUC_PHASE_TOP;
		w->child = 0;
		w->inner_L = 0;
		w->L = w->best.L;
		w->mains[w->rec.tid & (PUC_MAINS - 1)] = w->best.main_L;
		w->inner = w->regs.sp;
		w->rec.stack.n = 0;
	}
	w->g = w->best.g;
	puc_enter(w, &w->best);
	return LB_MORE;
}

/* Completes a walk that has stopped: an outer VM's frames that could not be walked are cut. */
LB_SUBPROG int puc_walk_ended(struct puc_walk *w)
{
	if (!w)
		return 0;
	if (!w->g)
		w->g = w->below_g;
	if (!w->inner_L)
		return 0;
	if (w->end != LB_STATUS_RESOLVED) {
		w->rec.stack.n = w->whole;
		w->rec.stack.flags |= LB_SAMPLE_CUT;
		w->end = LB_STATUS_RESOLVED;
	}
	w->g = w->inner_g;
	w->L = w->inner_L;
	return 0;
}

#endif
