/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The topmost frame in compiled code, or called from there: which trace, which of its snapshots.
 */
#ifndef LUABPF_FIND_LJ_TRACE_H
#define LUABPF_FIND_LJ_TRACE_H

#include "find_lj_top.h"
#include "walk_lj_snap.h"

static __always_inline int lj_has_snaps(const struct lj_walk *w)
{
	return !(w->gctrace.snaps & 3);
}

/* Makes trace traceno the one in hand. */
static __always_inline int lj_take_trace(const struct lb_mem *mem, struct lj_walk *w, __u32 traceno)
{
	return lj_gctrace(mem, w, &w->gctrace, traceno) || !lj_has_snaps(w) ? -1 : 0;
}

#define LJ_NO_EXIT 0xffffffffu

/* test eax, eax; jnz rel32: behind the call of the collector, and of no other, the trace is left
 * when it says so (asm_gc_check). */
#define LJ_GC_CALLED 0x850fc085u

/*
 * Offset into the machine code of the trace in hand from which it has called C; LJ_NO_EXIT when
 * it has not. The return address is at a known place: BC_JLOOP took 16 bytes below the cframe, the
 * trace spadjust. Where the collector runs another trace may have called it, and a word of an
 * earlier call of this one's be left.
 */
static __always_inline __u32 lj_mcode_called(const struct lb_mem *mem, struct lj_walk *w)
{
	__u64 word, offset;

	if (lj_read(mem, w, &word, sizeof(word), w->cframe - 16 - w->gctrace.spadjust - 8))
		return LJ_NO_EXIT;
	offset = word - w->gctrace.mcode - 1;
	if (offset >= w->gctrace.szmcode)
		return LJ_NO_EXIT;
	if (w->vmstate == LJ_VMST_GC &&
	    (lj_read(mem, w, &word, sizeof(word), w->gctrace.mcode + offset + 1) ||
	     (__u32)word != LJ_GC_CALLED))
		return LJ_NO_EXIT;
	return (__u32)offset;
}

/*
 * Offset of the instruction that the processor waited for. An interrupt is taken when the oldest
 * instruction retires, and ip is that of the next: what takes long is the one before. The last
 * byte of that is as good as its first. At the head of a loop it is the jump back, the last
 * instruction of the trace; a loop that was entered just now shows so, too. What comes before the
 * first instruction of a trace is none of its own.
 */
static __always_inline __u32 lj_mcode_waited(const struct lj_walk *w, const struct lb_regs *regs,
					     __u32 offset)
{
	if (!regs->behind || !offset)
		return offset;
	return (offset == w->gctrace.mcloop ? w->gctrace.szmcode : offset) - 1;
}

/* Ditto, at which this sample stands. */
static __always_inline __u32 lj_mcode_offset(const struct lb_mem *mem, struct lj_walk *w,
					     const struct lb_regs *regs)
{
	__u64 offset = regs->ip - w->gctrace.mcode;

	if (offset < w->gctrace.szmcode)
		return lj_mcode_waited(w, regs, (__u32)offset);
	return lj_mcode_called(mem, w);
}

/* Sets the walk on the frames of a snapshot of the trace in hand, which began at w->base. */
LB_SUBPROG int lj_enter_snapshot(const struct lb_mem *mem, struct lj_walk *w, __u32 snapno)
{
	const __u8 *head;
	__u32 nent;
	__u64 map;

	if (!w)
		return -1;
	w->map = 0;
	if (lj_at(mem, w, &head, LJ_SNAP_SIZE, w->gctrace.snaps + (__u64)LJ_SNAP_SIZE * snapno))
		return -1;
	nent = lb_byte(head, LJ_SNAP_NENT);
	map = w->gctrace.maps + 4ULL * lb_half(head, LJ_SNAP_MAPOFS);
	if (!lj_take_virtual(w, map))
		return 0;
	if (mem_read(mem, w->snapmap, 4 * (nent + 2), map))
		return -1;
	w->pc = (__u64)w->snapmap[nent] | (__u64)w->snapmap[nent + 1] << 32;
	w->slot = (__s32)(w->pc & 0xff);
	w->pc >>= 8;
	w->snap_pc = w->pc;
	w->exact = 1;
	w->entry = (__s32)nent - 1;
	w->base_func = 0;
	if (nent > 1 && lj_snap_base(mem, w))
		return -1;
	w->want = LJ_WANT_LINK;
	w->skip = 0;
	w->flags |= LB_FRAME_TRACE;
	w->phase = w->slot ? LJ_PHASE_SNAP : LJ_PHASE_FRAME;
	if (!w->slot)
		lj_keep_virtual(w);
	return 0;
}

/* The first of the two entries that the place in hand may have. */
static __always_inline struct lj_left *lj_left(struct lj_walk *w)
{
	__u32 i = (w->gctrace.print >> 8) + w->mcofs / LJ_LEFT_PLACES;

	return &w->left[i * 2 & (LJ_LEFTS - 2)];
}

static __always_inline void lj_keep_left(struct lj_walk *w)
{
	struct lj_left *left = lj_left(w) + (w->lo & 1); /* neighbours keep both */

	if (!w->map || w->mcofs >= LJ_LEFT_MOST)
		return;
	left->print = w->gctrace.print;
	left->epoch = w->epoch;
	left->mapofs = (__u32)((w->map - w->gctrace.maps) / 4);
	left->lo = (__u16)w->lo_mcofs;
	left->hi = (__u16)w->hi_mcofs;
}

static __always_inline int lj_is_left(const struct lj_walk *w, const struct lj_left *left)
{
	return w->mcofs >= left->lo && w->mcofs < left->hi && left->print == w->gctrace.print;
}

/* Sets the walk on a place in the machine code of the trace in hand. */
static __always_inline int lj_enter_mcode(struct lj_walk *w, __u32 mcofs)
{
	const struct lj_left *left;

	if (!w)
		return 0;
	w->mcofs = mcofs;
	w->rec.traceno = w->trace;
	w->rec.mcofs = mcofs;
	w->rec.trace_print = w->gctrace.print;
	left = lj_left(w);
	left += !lj_is_left(w, left);
	if (lj_is_left(w, left) && lb_is_proved(lj_common(w), left->epoch) &&
	    !lj_take_virtual(w, w->gctrace.maps + 4ULL * left->mapofs))
		return 0;
	w->lo = 0;
	w->hi = w->gctrace.nsnap;
	w->lo_mcofs = 0;
	w->hi_mcofs = LJ_LEFT_MOST;
	w->phase = LJ_PHASE_MCODE;
	return 0;
}

/*
 * The collector hides the number of the trace that has called it (gc_onestep), and it is not the
 * one that this thread was seen in last. It is the trace whose machine code its return address
 * leads to: but where another one would have its own, a word of an earlier call may be left. So
 * there has to be one only, of all.
 */
#define LJ_TRACES_MOST 4096
#define LJ_TRACES_RUN 4
static __always_inline int lj_search_traces(const struct lb_mem *mem, struct lj_walk *w)
{
	if (lj_read(mem, w, &w->ntraces, sizeof(w->ntraces), w->g + w->lj.g2trace + 12) ||
	    w->ntraces > LJ_TRACES_MOST)
		return -1;
	w->next_trace = 1;
	w->phase = LJ_PHASE_TRACES;
	return 0;
}

static __always_inline enum lb_more lj_traces_searched(const struct lb_mem *mem, struct lj_walk *w)
{
	w->phase = w->trace ? LJ_PHASE_FRAME : LJ_PHASE_STORED;
	if (!w->trace)
		return LB_MORE;
	if (lj_take_trace(mem, w, w->trace))
		return lj_end(w, LB_END_BAD_TRACE);
	w->base = w->jit_base;
	lj_enter_mcode(w, w->trace_mcofs);
	return LB_MORE;
}

LB_SUBPROG int lj_step_traces(const struct lb_mem *mem, struct lj_walk *w)
{
	__u32 i;

	if (!w)
		return LB_STOP;
	LB_ROLLED
	for (i = 0; i < LJ_TRACES_RUN; i++) {
		__u32 no = w->next_trace, offset;

		if (no >= w->ntraces)
			return lj_traces_searched(mem, w);
		w->next_trace = no + 1;
		if (lj_take_trace(mem, w, no))
			continue;
		offset = lj_mcode_called(mem, w);
		if (offset == LJ_NO_EXIT)
			continue;
		if (w->trace) { /* which of them? */
			w->trace = 0;
			w->next_trace = w->ntraces;
			continue;
		}
		w->trace = no;
		w->trace_mcofs = offset;
	}
	return LB_MORE;
}

/*
 * Narrows the search for the rightmost snapshot at or left of a place in the machine code
 * (lj_trace.c, lj_trace_unwind).
 */
#define LJ_MCODE_RUN 4
static __always_inline enum lb_more lj_step_mcode(const struct lb_mem *mem, struct lj_walk *w)
{
	__u32 i;

	LB_ROLLED
	for (i = 0; i < LJ_MCODE_RUN && w->lo < w->hi; i++) {
		__u32 mid = (w->lo + w->hi) >> 1, mcofs;
		const __u8 *at;

		if (lj_at(mem, w, &at, 2,
			  w->gctrace.snaps + (__u64)LJ_SNAP_SIZE * mid + LJ_SNAP_MCOFS))
			return lj_end(w, LB_END_FAULT);
		mcofs = lb_short(at, 0);
		if (w->mcofs < mcofs) {
			w->hi = mid;
			w->hi_mcofs = mcofs;
		} else {
			w->lo = mid + 1;
			w->lo_mcofs = mcofs;
		}
	}
	if (w->lo < w->hi)
		return LB_MORE;
	if (lj_enter_snapshot(mem, w, w->lo ? w->lo - 1 : 0))
		return lj_end(w, LB_END_BAD_TRACE);
	lj_keep_left(w);
	return LB_MORE;
}

#endif
