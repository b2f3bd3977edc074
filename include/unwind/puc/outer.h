/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * From a VM to the one that called it. A C function of a VM may run another VM on the same C stack.
 * puc_leave_vm() begins the search for the nearest active lua_State of any VM of the same build
 * above the inner VM's outermost lua_longjmp, as for a resumer.
 */
#ifndef LUABPF_UNWIND_PUC_OUTER_H
#define LUABPF_UNWIND_PUC_OUTER_H

#include <unwind/puc/scan.h>

/*
 * The search has ended. Sets the walk on the lua_State that it found. If a function that calls no
 * other VM is on top there, that one runs: the VM above has called it back, unprotected.
 */
LB_SUBPROG int puc_enter_outer(struct puc_walk *w)
{
	if (!w)
		return LB_STOP;
	if (w->search.depth == ~0ULL || puc_scan_missed(w)) {
		puc_note_alone(w);
		return puc_end(w, LB_STATUS_RESOLVED);
	}
	w->outward = 0;
	w->phase = PUC_PHASE_FRAME;
	if (w->search.may_call) {
		lb_outer_join(puc_common(w), w->search.best.g);
	} else {
		w->phase = PUC_PHASE_TOP;
		w->search.child = 0;
		w->inner_L = 0;
		w->L = w->search.best.L;
		w->mains[w->rec.tid & (PUC_MAINS - 1)] = w->search.best.main_L;
		w->inner = w->regs.sp;
		w->rec.stack.n = 0;
	}
	w->g = w->search.best.g;
	puc_enter(w, &w->search.best);
	return LB_MORE;
}

#endif
