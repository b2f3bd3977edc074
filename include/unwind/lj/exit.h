/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The topmost frame where a trace is entered or left. The source of BASE and pc changes from one
 * instruction to the next (lj_asm.c, asm_head_*; lj_asm_x86.h, asm_exitstub_gen; vm_x64.dasc):
 *
 *	where				vmstate		source
 *	head of a trace			the one before	the trace that the instruction pointer is in
 *	machine code			this trace	the last snapshot at or before it
 *	a guard fails: exit stub	this trace	the exit's number: in the stub's code, then
 *	vm_exit_handler			this trace	... pushed below the trace's stack, then
 *	vm_exit_handler			EXIT		... in RD, the trace's number in RA, then
 *	lj_trace_exit			EXIT		... in J.exitno and J.parent, then
 *	... once frames are restored	EXIT		L->base and SAVE_PC
 *	a trace ends: vm_exit_interp	this trace	BASE and PC
 */
#ifndef LUABPF_UNWIND_LJ_EXIT_H
#define LUABPF_UNWIND_LJ_EXIT_H

#include <unwind/lj/trace.h>

/*
 * Traces tried by lj_step_heads(). A trace sets vmstate by one of its first instructions: before,
 * vmstate is that of the trace that has jumped there, at its end or by a patched side exit. The new
 * trace is the former's link, its root, or one of the side traces of that root.
 */
#define LJ_HEADS_MOST 512

/* The fields of a trace that lead to those it may jump to. */
struct lj_kin {
	__u64 mcode;
	__u32 szmcode, link, root, nextside;
};

static __always_inline int lj_read_kin(const struct lb_mem *mem, struct lj_walk *w,
				       struct lj_kin *kin, __u32 no)
{
	__u64 trace = lj_trace_at(mem, w, no);
	__u32 from = LJ_AT(w, TRACE_STARTINS);
	const __u8 *bytes;

	if (!trace || lj_at(mem, w, &bytes, LJ_TRACE_KIN_READ, trace + from))
		return -1;
	kin->mcode = lb_word(bytes, LJ_AT(w, TRACE_MCODE) - from);
	kin->szmcode = lb_half(bytes, LJ_AT(w, TRACE_SZMCODE) - from);
	kin->link = lb_short(bytes, LJ_AT(w, TRACE_LINK) - from);
	kin->root = lb_short(bytes, LJ_AT(w, TRACE_ROOT) - from);
	kin->nextside = lb_short(bytes, LJ_AT(w, TRACE_NEXTSIDE) - from);
	return 0;
}

/* next_side, while the trace of vmstate itself is tried */
#define LJ_HEADS_BEGIN 0xffff

static __always_inline int lj_search_heads(struct lj_walk *w, __u64 ip)
{
	w->traces.next = w->trace;
	w->traces.side = LJ_HEADS_BEGIN;
	w->traces.n = LJ_HEADS_MOST;
	w->traces.ip = ip;
	w->phase = LJ_PHASE_HEADS;
	return 0;
}

LB_SUBPROG int lj_step_heads(const struct lb_mem *mem, struct lj_walk *w)
{
	struct lj_kin kin = {};
	__u32 no;

	if (!w)
		return LB_STOP;
	no = w->traces.next;
	if (no && lj_read_kin(mem, w, &kin, no))
		return lj_stop(w, LB_STATUS_BAD_TRACE);
	if (w->traces.ip - kin.mcode < kin.szmcode) { /* found: PHASE_TRACES enters it */
		w->trace = no;
		w->traces.mcofs = (__u32)(w->traces.ip - kin.mcode);
		w->traces.n = 0;
		w->phase = LJ_PHASE_TRACES;
		return LB_MORE;
	}
	if (w->traces.side == LJ_HEADS_BEGIN) {
		w->traces.next = kin.link;
		w->traces.side = (__u16)(kin.root ? kin.root : no);
	} else {
		w->traces.next = w->traces.side ? w->traces.side : kin.nextside;
		w->traces.side = 0;
	}
	if ((w->traces.next || w->traces.side) && --w->traces.n)
		return LB_MORE;
	/* none of them: takes the current trace at its beginning */
	return lj_enter_snapshot(mem, w, 0) ? lj_stop(w, LB_STATUS_BAD_TRACE) : LB_MORE;
}

LB_SUBPROG int lj_top_trace(const struct lb_mem *mem, struct lj_walk *w, const struct lb_regs *regs,
			    __u32 traceno)
{
	__u32 offset, snapno;

	if (!w || !regs || lj_take_trace(mem, w, traceno))
		return -1;
	offset = lj_mcode_offset(mem, w, regs);
	if (offset == LJ_NO_EXIT && w->vmstate < 0)
		return -1;
	w->trace = traceno;
	w->rec.traceno = traceno; /* without a place in its code, if it is being left */
	w->base = w->jit_base;
	if (offset != LJ_NO_EXIT) {
		lj_enter_mcode(w, offset);
		return 0;
	}
	snapno = lj_exit_number(mem, w, regs);
	if (snapno < w->gctrace.nsnap)
		return lj_enter_snapshot(mem, w, snapno);
	return lj_search_heads(w, regs->ip);
}

/*
 * vm_exit_interp, at the end of a trace or after vm_exit_handler: BASE is the interpreter's, PC
 * points to the next instruction. Where a JLOOP has replaced that, PC points to the copy in another
 * trace (GCtrace.startins); after a stitched trace, to the header of its C function.
 */
static __always_inline int lj_top_trace_ended(const struct lb_mem *mem, struct lj_walk *w,
					      const struct lb_regs *regs)
{
	if (lj_fit(mem, w, regs->base, regs->pc) == LJ_FIT_NOT)
		return -1;
	w->exact = 1;
	w->rec.traceno = (__u32)w->vmstate;
	return lj_top_is(w, regs->base, regs->pc);
}

/* Finds the side exit that is being handled. Returns 0 with its trace as the current one, or -1. */
static __always_inline int lj_which_exit(const struct lb_mem *mem, struct lj_walk *w,
					 const struct lb_regs *regs, __u32 *exitno)
{
	__u64 J = w->g + w->lj.g2trace;
	__u32 parent;

	if (w->jit_base && lj_in_vm(w, regs->ip)) { /* vm_exit_handler has not called C yet */
		parent = (__u32)regs->ra;
		*exitno = (__u32)regs->rd;
	} else if (lj_read(mem, w, &parent, sizeof(parent), J + w->lj.j_parent) ||
		   lj_read(mem, w, exitno, sizeof(*exitno), J + w->lj.j_exitno)) {
		return -1;
	}
	return lj_take_trace(mem, w, parent) || *exitno >= w->gctrace.nsnap ? -1 : 0;
}

/*
 * vmstate EXIT: takes the exit's snapshot, or the frames on the Lua stack once lj_snap_restore has
 * written them: it moves L->base up to them, and then stores the snapshot's pc in the cframe.
 */
LB_SUBPROG int lj_top_exit(const struct lb_mem *mem, struct lj_walk *w, const struct lb_regs *regs)
{
	__u32 exitno;

	if (!w || !regs)
		return -1;
	if (lj_which_exit(mem, w, regs, &exitno))
		return lj_top_stored(mem, w);
	if (w->jit_base)
		w->base = w->jit_base;
	if (lj_enter_snapshot(mem, w, exitno))
		return -1;
	if (w->jit_base || lj_saved_pc(mem, w, w->base) != w->snap_pc ||
	    !lj_fits(lj_fit(mem, w, w->base, w->snap_pc)))
		return 0;
	w->rec.stack.n = 0;
	w->map = 0;
	lj_enter_frames(w);
	w->exact = 1;
	return lj_top_is(w, w->base, w->snap_pc);
}

#endif
