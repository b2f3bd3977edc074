/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The topmost frame in compiled code, or called from there: finds the trace by its number, and the
 * snapshot by binary search over mcofs, or in builds without that by the next guard's exit.
 */
#ifndef LUABPF_UNWIND_LJ_TRACE_H
#define LUABPF_UNWIND_LJ_TRACE_H

#include <unwind/lj/top.h>
#include <unwind/lj/snap.h>
#include <machine/lj_exit.h>

static __always_inline int lj_has_snaps(const struct lj_walk *w)
{
	return !(w->gctrace.snaps & 3);
}

/* Makes traceno the current trace. Returns 0, or -1. */
static __always_inline int lj_take_trace(const struct lb_mem *mem, struct lj_walk *w, __u32 traceno)
{
	return lj_gctrace(mem, w, &w->gctrace, traceno) || !lj_has_snaps(w) ? -1 : 0;
}

/*
 * Returns the offset in the current trace's machine code from which it has called C; LJ_NO_EXIT
 * when it has not. The return address is at a fixed distance below the cframe: 16 bytes of BC_JLOOP
 * and spadjust of the trace. While the collector runs, another trace may have called it, and this
 * word be a stale one of this trace's.
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
 * Returns the offset of the last byte of the instruction that the processor waited for, which
 * undoes the skid: an interrupt is taken when the oldest instruction retires, and ip is that of the
 * next. At the head of a loop it is the jump back, the last instruction of the trace, even if the
 * loop was just entered. At the first instruction of a trace the wait was before the trace.
 */
static __always_inline __u32 lj_mcode_waited(const struct lj_walk *w, const struct lb_regs *regs,
					     __u32 offset)
{
	if (!regs->behind || !offset)
		return offset;
	return (offset == w->gctrace.mcloop ? w->gctrace.szmcode : offset) - 1;
}

/* The same for this sample: of the interrupted instruction, or of a call of C; LJ_NO_EXIT. */
static __always_inline __u32 lj_mcode_offset(const struct lb_mem *mem, struct lj_walk *w,
					     const struct lb_regs *regs)
{
	__u64 offset = regs->ip - w->gctrace.mcode;

	if (offset < w->gctrace.szmcode)
		return lj_mcode_waited(w, regs, (__u32)offset);
	return lj_mcode_called(mem, w);
}

/* Returns 0 and the address and number of a snapshot's entries, or -1. */
static __always_inline int lj_snap_map(const struct lb_mem *mem, struct lj_walk *w, __u32 snapno,
				       __u64 *map, __u32 *nent)
{
	__u32 are = w->gctrace.snaps_are;
	__u32 size = are == LJ_SNAPS_2017 ? LJ_SNAP_SIZE_2017 : LJ_SNAP_SIZE, mapofs;
	const __u8 *head;

	if (lj_at(mem, w, &head, LJ_SNAP_SIZE, w->gctrace.snaps + (__u64)size * snapno))
		return -1;
	mapofs = lb_half(head, LJ_SNAP_MAPOFS);
	*nent = lb_byte(head, LJ_SNAP_NENT);
	if (are == LJ_SNAPS_2019)
		*nent = lb_byte(head, LJ_SNAP_NENT - 2);
	if (are == LJ_SNAPS_2017) {
		mapofs &= 0xffff;
		*nent = lb_byte(head, LJ_SNAP_NENT - 4);
	}
	*map = w->gctrace.maps + 4ULL * mapofs;
	return 0;
}

/* Reads the entries of a snapshot, the pc behind them, and the topmost frame's slot. In GC32 that is
 * the first of LJ_WANT_TOP, and the links are read, too. */
static __always_inline int lj_read_map(const struct lb_mem *mem, struct lj_walk *w, __u64 map,
				       __u32 nent)
{
	__u64 remaining = w->gctrace.nsnapmap - ((map - w->gctrace.maps) >> 2);

	if (!lj_is_32(w)) {
		if (mem_read(mem, w->snapmap, 4 * (nent + 2), map))
			return -1;
		w->pc = (__u64)w->snapmap[nent] | (__u64)w->snapmap[nent + 1] << 32;
		w->cursor.slot = (__s32)(w->pc & 0xff);
		w->pc >>= 8;
		return 0;
	}
	if (remaining > LJ_SNAPMAP)
		remaining = LJ_SNAPMAP;
	if (nent >= remaining || mem_read(mem, w->snapmap, 4 * (__u32)remaining, map))
		return -1;
	w->pc = w->snapmap[nent & (LJ_SNAPMAP - 1)];
	w->cursor.slot = nent != 0;
	w->cursor.nsnapmap = (__u32)remaining;
	w->cursor.next_link = nent + 1;
	return 0;
}

/* Sets the walk on the frames of a snapshot of the current trace, which began at w->base. */
LB_SUBPROG int lj_enter_snapshot(const struct lb_mem *mem, struct lj_walk *w, __u32 snapno)
{
	__u32 nent;
	__u64 map;

	if (!w)
		return -1;
	w->map = 0;
	if (lj_snap_map(mem, w, snapno, &map, &nent))
		return -1;
	if (!lj_take_virtual(w, map))
		return 0;
	if (lj_read_map(mem, w, map, nent))
		return -1;
	w->snap_pc = w->pc;
	w->exact = 1;
	w->cursor.entry = (__s32)nent - 1;
	w->base_func = 0;
	if (nent > !lj_is_32(w) && lj_snap_base(mem, w))
		return -1;
	w->cursor.want = lj_is_32(w) ? LJ_WANT_TOP : LJ_WANT_LINK;
	w->skip = 0;
	w->flags |= LB_FRAME_TRACE;
	w->phase = w->cursor.slot ? LJ_PHASE_SNAP : LJ_PHASE_FRAME;
	if (!w->cursor.slot)
		lj_keep_virtual(w);
	return 0;
}

/* Returns the first of the two entries that w->snaps.mcofs may have. */
static __always_inline struct lj_snap_cache *lj_snap_cache(struct lj_walk *w)
{
	__u32 i = (w->gctrace.fp >> 8) + w->snaps.mcofs / LJ_SNAP_CACHE_BYTES;

	return &w->snap_cache[i * 2 & (LJ_SNAP_CACHE - 2)];
}

static __always_inline void lj_keep_snap(struct lj_walk *w)
{
	struct lj_snap_cache *cached =
		lj_snap_cache(w) + (w->snaps.lo & 1); /* neighbours keep both */

	if (!w->map || w->snaps.mcofs >= LJ_MCOFS_MOST)
		return;
	cached->fp = w->gctrace.fp;
	cached->epoch = w->epoch;
	cached->mapofs = (__u32)((w->map - w->gctrace.maps) / 4);
	cached->lo = (__u16)w->snaps.lo_mcofs;
	cached->hi = (__u16)w->snaps.hi_mcofs;
}

static __always_inline int lj_is_cached(const struct lj_walk *w, const struct lj_snap_cache *cached)
{
	return w->snaps.mcofs >= cached->lo && w->snaps.mcofs < cached->hi &&
	       cached->fp == w->gctrace.fp;
}

/* Sets the walk on an offset in the current trace's machine code. */
static __always_inline void lj_enter_mcode(struct lj_walk *w, __u32 mcofs)
{
	const struct lj_snap_cache *cached;

	w->snaps.mcofs = mcofs;
	w->rec.traceno = w->trace;
	w->rec.mcofs = mcofs;
	w->in_loop = w->gctrace.mcloop && mcofs >= w->gctrace.mcloop;
	w->rec.trace_fp = w->gctrace.fp;
	cached = lj_snap_cache(w);
	cached += !lj_is_cached(w, cached);
	if (lj_is_cached(w, cached) && lb_is_proved(lj_common(w), cached->epoch) &&
	    !lj_take_virtual(w, w->gctrace.maps + 4ULL * cached->mapofs))
		return;
	w->snaps.lo = w->gctrace.snaps_are == LJ_SNAPS_MCOFS ? 0 : mcofs;
	w->snaps.size = 0;
	w->snaps.block = 0;
	w->snaps.hi = w->gctrace.nsnap;
	w->snaps.lo_mcofs = 0;
	w->snaps.hi_mcofs = LJ_MCOFS_MOST;
	w->phase = w->gctrace.snaps_are == LJ_SNAPS_MCOFS ? LJ_PHASE_MCODE : LJ_PHASE_GUARDS;
}

/*
 * The collector hides the number of the trace that has called it (gc_onestep), and it is not the
 * thread's last one. The trace is the one whose machine code its return address leads to. A stale
 * word may match another trace, too: the result counts only if exactly one of all traces matches.
 */
#define LJ_TRACES_MOST 4096
#define LJ_TRACES_RUN 4
static __always_inline int lj_search_traces(const struct lb_mem *mem, struct lj_walk *w)
{
	if (lj_read(mem, w, &w->traces.n, sizeof(w->traces.n), w->g + w->lj.g2trace + 12) ||
	    w->traces.n > LJ_TRACES_MOST)
		return -1;
	w->traces.next = 1;
	w->phase = LJ_PHASE_TRACES;
	return 0;
}

static __always_inline enum lb_more lj_traces_searched(const struct lb_mem *mem, struct lj_walk *w)
{
	w->phase = w->trace ? LJ_PHASE_FRAME : LJ_PHASE_STORED;
	if (!w->trace)
		return LB_MORE;
	if (lj_take_trace(mem, w, w->trace))
		return lj_stop(w, LB_STATUS_BAD_TRACE);
	w->base = w->jit_base;
	lj_enter_mcode(w, w->traces.mcofs);
	return LB_MORE;
}

LB_SUBPROG int lj_step_traces(const struct lb_mem *mem, struct lj_walk *w)
{
	__u32 i;

	if (!w)
		return LB_STOP;
	LB_ROLLED
	for (i = 0; i < LJ_TRACES_RUN; i++) {
		__u32 no = w->traces.next, offset;

		if (no >= w->traces.n)
			return lj_traces_searched(mem, w);
		w->traces.next = no + 1;
		if (lj_take_trace(mem, w, no))
			continue;
		offset = lj_mcode_called(mem, w);
		if (offset == LJ_NO_EXIT)
			continue;
		if (w->trace) { /* ambiguous */
			w->trace = 0;
			w->traces.next = w->traces.n;
			continue;
		}
		w->trace = no;
		w->traces.mcofs = offset;
	}
	return LB_MORE;
}

/*
 * Binary search for the rightmost snapshot at or left of an offset (lj_trace.c, lj_trace_unwind).
 */
#define LJ_MCODE_RUN 4
static __always_inline enum lb_more lj_step_mcode(const struct lb_mem *mem, struct lj_walk *w)
{
	__u32 i;

	LB_ROLLED
	for (i = 0; i < LJ_MCODE_RUN && w->snaps.lo < w->snaps.hi; i++) {
		__u32 mid = (w->snaps.lo + w->snaps.hi) >> 1, mcofs;
		const __u8 *at;

		if (lj_at(mem, w, &at, 2,
			  w->gctrace.snaps + (__u64)LJ_SNAP_SIZE * mid + LJ_SNAP_MCOFS))
			return lj_stop(w, LB_STATUS_FAULT);
		mcofs = lb_short(at, 0);
		if (w->snaps.mcofs < mcofs) {
			w->snaps.hi = mid;
			w->snaps.hi_mcofs = mcofs;
		} else {
			w->snaps.lo = mid + 1;
			w->snaps.lo_mcofs = mcofs;
		}
	}
	if (w->snaps.lo < w->snaps.hi)
		return LB_MORE;
	if (lj_enter_snapshot(mem, w, w->snaps.lo ? w->snaps.lo - 1 : 0))
		return lj_stop(w, LB_STATUS_BAD_TRACE);
	lj_keep_snap(w);
	return LB_MORE;
}

/* ---- snapshots without mcofs ----------------------------------------------------------------- */

/*
 * They have no offset of their machine code. But each guard's branch leads
 * to the exit stub of its snapshot: the first branch from w->snaps.mcofs on has the number. It may
 * be the next snapshot's, when code without a guard lies between.
 */
#define LJ_GUARD_BLOCK 128 /* bytes of machine code that are searched at once */
#define LJ_GUARD_READ (LJ_GUARD_BLOCK + 8)
static long lj_jump_step(__u32 i, struct lj_walk **walk)
{
	struct lj_walk *w = *walk;

	i &= LJ_GUARD_BLOCK - 1;
	if (i < w->snaps.jump || !lj_is_jump((const __u8 *)w->block + i))
		return 0;
	w->snaps.jump = i;
	w->snaps.jump_found = 1;
	return 1;
}

/* Returns the offset of a jump in the block, from `at` on; LJ_GUARD_BLOCK: not found. */
static __always_inline __u32 lj_search_jump(struct lj_walk *w, __u32 at)
{
	w->snaps.jump = at;
	w->snaps.jump_found = 0;
	lb_rare_loop(LJ_GUARD_BLOCK, lj_jump_step, &w);
	return w->snaps.jump_found ? w->snaps.jump : LJ_GUARD_BLOCK;
}

/*
 * True if a snapshot goes on behind the loop at which the trace began, in the trace's own frame. In
 * GC32 the links of other frames would follow its pc.
 */
static __always_inline int lj_ends_loop(const struct lb_mem *mem, struct lj_walk *w, __u32 snapno)
{
	__u64 map, next = w->gctrace.maps + 4ULL * w->gctrace.nsnapmap;
	const __u8 *pc;
	__u32 nent, n;

	if (!w->gctrace.loop_exit || lj_snap_map(mem, w, snapno, &map, &nent))
		return 0;
	map += 4ULL * nent;
	if (!lj_is_32(w))
		return !lj_at(mem, w, &pc, 8, map) && lb_word(pc, 0) == w->gctrace.loop_exit << 8;
	if (snapno + 1 < w->gctrace.nsnap && lj_snap_map(mem, w, snapno + 1, &next, &n))
		return 0;
	return next == map + 4 && !lj_at(mem, w, &pc, 4, map) &&
	       lb_half(pc, 0) == w->gctrace.loop_exit;
}

/*
 * Enters a snapshot that the search has found by the guard before `end`; where the guard ends the
 * loop, the first one, at the loop's beginning: the code before such a guard is the loop's.
 */
static __always_inline enum lb_more lj_guard_found(const struct lb_mem *mem, struct lj_walk *w,
						   __u32 snapno, __u32 end)
{
	if (lj_ends_loop(mem, w, snapno))
		snapno = 0;
	if (lj_enter_snapshot(mem, w, snapno))
		return lj_stop(w, LB_STATUS_BAD_TRACE);
	w->snaps.lo = snapno;
	w->snaps.lo_mcofs = w->snaps.mcofs;
	w->snaps.hi_mcofs = end < LJ_MCOFS_MOST ? end : LJ_MCOFS_MOST;
	lj_keep_snap(w);
	return LB_MORE;
}

/* Reads the block of machine code that begins at w->snaps.lo. */
static __always_inline int lj_read_code(const struct lb_mem *mem, struct lj_walk *w)
{
	__u32 remaining = w->gctrace.szmcode - w->snaps.lo, size;

	size = remaining < LJ_GUARD_READ ? remaining : LJ_GUARD_READ;
	w->snaps.block = w->snaps.lo;
	w->snaps.size = size;
	return mem_read(mem, w->block, size & 255, w->gctrace.mcode + w->snaps.lo);
}

/* Tries one branch, from w->snaps.lo on, or skips a block without any. */
LB_SUBPROG int lj_step_guards(const struct lb_mem *mem, struct lj_walk *w)
{
	__u32 i, size, snapno;
	const __u8 *code;
	__u64 to;

	if (!w)
		return LB_STOP;
	if (w->snaps.lo - w->snaps.block >= w->snaps.size) {
		if (w->snaps.lo >= w->gctrace.szmcode) /* past the last guard */
			return lj_guard_found(mem, w, w->gctrace.nsnap - 1, w->snaps.lo);
		if (lj_read_code(mem, w))
			return lj_stop(w, LB_STATUS_FAULT);
	}
	i = lj_search_jump(w, w->snaps.lo - w->snaps.block);
	code = (const __u8 *)w->block + (i & (LJ_GUARD_BLOCK - 1));
	size = lj_jump_size(code);
	if (i >= LJ_GUARD_BLOCK || i + size > w->snaps.size) {
		w->snaps.lo = w->snaps.block +
			      (w->snaps.size < LJ_GUARD_READ ? w->snaps.size : LJ_GUARD_BLOCK);
		w->snaps.size = 0;
		return LB_MORE;
	}
	w->snaps.lo = w->snaps.block + i + 1;
	to = w->snaps.block + i + size + lj_jump_target(code, size);
	if (to < w->gctrace.szmcode)
		return LB_MORE;
	if (to + LJ_STUB_REACH >= 2 * LJ_STUB_REACH)
		return LB_MORE;
	snapno = lj_stub_number(mem, w, w->gctrace.mcode + to, lj_jump_is_sure(size));
	if (w->fault)
		return lj_stop(w, LB_STATUS_FAULT);
	return snapno < w->gctrace.nsnap ? lj_guard_found(mem, w, snapno, w->snaps.lo) : LB_MORE;
}

#endif
