/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * VMs inside each other on one C stack, the same for both families. The walk begins with the
 * innermost VM. A frame of kind LB_FRAME_VM stands between the frames of two VMs.
 */
#ifndef LUABPF_UNWIND_OUTER_H
#define LUABPF_UNWIND_OUTER_H

#include <unwind/unwind.h>

/* Begins a walk: no VM has been left. */
static __always_inline void lb_outer_begin(struct lb_walk *w)
{
	w->outward = 0;
	w->whole = 0;
	w->inner_L = 0;
}

/* The VM's frames are complete: the search for the one that called it begins, of any global_State. */
static __always_inline void lb_outer_leave(struct lb_walk *w)
{
	w->below_g = w->g;
	w->g = 0;
	w->outward = 1;
}

/*
 * The frames so far are complete, and the next are those of VM g, which called below_g: appends the
 * frame between them. If g is below_g, another thread of the same VM called it.
 */
static __always_inline void lb_outer_join(struct lb_walk *w, __u64 g)
{
	__u32 n = w->rec.stack.n;
	struct lb_frame *f = &w->rec.stack.frame[n & LB_MAX_FRAMES];

	if (!w->inner_L) {
		w->inner_L = w->L;
		w->inner_g = w->below_g;
	}
	w->whole = n;
	if (g == w->below_g || n >= LB_MAX_FRAMES)
		return;
	f->word = LB_FRAME_WORD(LB_FRAME_VM, 0, g & LB_FRAME_PTR_MASK);
	f->pc = 0;
	f->fp = 0;
	w->rec.stack.n = n + 1;
}

/* Ends a walk. A search that found no outer VM leaves the VM that it began at. Removes an outer VM's
 * frames if its walk failed and others are left. The record has the innermost VM. */
static __always_inline void lb_outer_end(struct lb_walk *w)
{
	if (w->outward) {
		w->outward = 0;
		w->g = w->below_g;
	}
	if (!w->inner_L)
		return;
	if (w->end != LB_STATUS_RESOLVED && w->whole) {
		w->rec.stack.n = w->whole;
		w->rec.stack.flags |= LB_SAMPLE_CUT;
		w->end = LB_STATUS_RESOLVED;
	}
	w->g = w->inner_g;
	w->L = w->inner_L;
}

#endif
