/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The virtual frames of compiled code: the functions that a trace has inlined exist in its
 * snapshots only, as slots with references into the trace's IR (lj_snap.c). They are walked first;
 * unwind/lj/stack.h walks the real frames below.
 *
 * GC32 (LJ_FR2 is 0): a frame is one slot, flagged SNAP_FRAME, with a reference to its function. The
 * links are no constants: they follow the entries, that of the topmost frame first, each as it
 * would be on the Lua stack; that of a continuation's frame with the continuation's pc.
 */
#ifndef LUABPF_UNWIND_LJ_SNAP_H
#define LUABPF_UNWIND_LJ_SNAP_H

#include <unwind/lj/frame.h>

/* The slot that a step on a virtual frame reads: first its link, with the distance to the next. */
enum lj_want {
	LJ_WANT_LINK,
	LJ_WANT_FUNC,
	LJ_WANT_PROTO,	/* the function is none of the constants, but its prototype is */
	LJ_WANT_CONTPC, /* below the function of a metamethod's frame */
	LJ_WANT_TOP,	/* GC32: the topmost frame's slot */
};

/*
 * Reads the value of a slot: in the snapshot it is a 64-bit constant of the IR, whose value follows
 * its instruction (lj_ir.h, LJ_GC64). A slot that the trace did not change, or loaded from the
 * stack, is read from the stack.
 */
static __always_inline int lj_snap_value(const struct lb_mem *mem, struct lj_walk *w, __s32 slot,
					 __u32 entry, __u64 *value)
{
	__u32 ref = entry & 0xffff;

	if ((__s32)(entry >> 24) == slot && ref < LJ_REF_BIAS - 3) /* GC32: in the instruction */
		return lj_read_ref(mem, w, value,
				   w->gctrace.ir + 8ULL * ref + (lj_is_32(w) ? 0 : 8));
	w->map = 0; /* the stack's value may differ next time */
	return lj_read_ref(mem, w, value, w->jit_base + 8ULL * slot - LJ_AT(w, FRAME_BYTES));
}

/*
 * Sets w->base_func to the function at the trace's base after a tail call: the first slot, a
 * constant. The second, the link, has an entry after a tail call only (snapshot_slots). Entries are
 * sorted by slot.
 */
static __always_inline int lj_snap_base(const struct lb_mem *mem, struct lj_walk *w)
{
	__u32 entry = w->snapmap[0];
	__u64 value;

	if (entry >> 24 || (entry & 0xffff) >= LJ_REF_BIAS - 3 ||
	    (!lj_is_32(w) && w->snapmap[1] >> 24 != 1))
		return 0;
	if (lj_snap_value(mem, w, 0, entry, &value))
		return -1;
	w->base_func = lj_tv_gcptr(w, value);
	return 0;
}

/* Computes from the current virtual frame's link the distance to the next one. */
static __always_inline enum lb_more lj_snap_link(const struct lb_mem *mem, struct lj_walk *w,
						 __u64 link)
{
	__u64 distance = link >> 3;

	w->link = link;
	if ((link & 3) == LJ_FRAME_LUA)
		distance = lj_call_distance(mem, w, link);
	if (!distance || distance > (__u64)w->cursor.slot)
		return lj_stop(w, LB_STATUS_BAD_TRACE);
	w->cursor.distance = (__s32)distance;
	w->cursor.want = LJ_WANT_FUNC;
	return LB_MORE;
}

static __always_inline struct lj_virtual *lj_virtual(struct lj_walk *w, __u64 map)
{
	return &w->virtual[lb_table_index(map << 1, LJ_VIRTUAL_BITS)]; /* 8 bytes at the least */
}

/* Caches the virtual frames of the current snapshot, which are walked. Returns 0 when they are
 * kept. */
LB_SUBPROG int lj_keep_virtual(struct lj_walk *w)
{
	struct lj_virtual *v;
	__u32 i, n;

	if (!w || !w->map || w->rec.stack.n > LJ_VIRTUAL_FRAMES)
		return -1;
	v = lj_virtual(w, w->map);
	n = w->rec.stack.n;
	v->map = w->map;
	v->pc = w->pc;
	v->snap_pc = w->snap_pc;
	v->base_func = w->base_func;
	v->fp = w->gctrace.fp;
	v->epoch = w->epoch;
	v->n = n;
	v->flags = w->flags;
	v->skip = w->skip;
	v->exact = w->exact;
	v->joint = w->joint;
	LB_ROLLED
	for (i = 0; i < LJ_VIRTUAL_FRAMES && i < n; i++)
		v->frame[i] = w->rec.stack.frame[i];
	return 0;
}

/* Takes the cached frames of a snapshot, which begin the stack. Returns 0, or -1: not cached. */
static __always_inline int lj_take_virtual(struct lj_walk *w, __u64 map)
{
	const struct lj_virtual *v = lj_virtual(w, map);
	__u32 i, n = v->n;

	w->map = w->rec.stack.n || w->flags != LB_FRAME_THREAD ? 0 : map;
	if (!w->map || v->map != map || v->fp != w->gctrace.fp ||
	    !lb_is_proved(lj_common(w), v->epoch))
		return -1;
	w->pc = v->pc;
	w->snap_pc = v->snap_pc;
	w->base_func = v->base_func;
	w->flags = v->flags;
	w->skip = v->skip;
	w->exact = v->exact;
	w->joint = v->joint;
	LB_ROLLED
	for (i = 0; i < LJ_VIRTUAL_FRAMES && i < n; i++)
		w->rec.stack.frame[i] = v->frame[i];
	w->rec.stack.n = n;
	w->phase = LJ_PHASE_FRAME;
	return 0;
}

/* Goes to the virtual frame below, whose pc is given. */
static __always_inline enum lb_more lj_snap_next(struct lj_walk *w, __u64 pc)
{
	w->pc = pc;
	w->cursor.slot -= w->cursor.distance;
	w->cursor.want = LJ_WANT_LINK;
	if (w->cursor.slot)
		return LB_MORE;
	/* the remaining frames are on the real stack, the topmost at jit_base */
	w->flags |= LB_FRAME_TRACE;
	w->joint = 1;
	w->phase = LJ_PHASE_FRAME;
	lj_keep_virtual(w);
	return LB_MORE;
}

/* Emits the current virtual frame, whose function is in seen[index]. */
static __always_inline enum lb_more lj_snap_func(const struct lb_mem *mem, struct lj_walk *w,
						 int index)
{
	if (index < 0)
		return lj_stop(w, LB_STATUS_BAD_TRACE);
	if (!w->skip) {
		w->flags |= LB_FRAME_TRACE;
		if (lj_emit(mem, w, index))
			return LB_STOP;
	}
	w->skip = (w->link & 7) == LJ_FRAME_VARG;
	if ((w->link & 7) == LJ_FRAME_CONT) {
		w->cursor.want = LJ_WANT_CONTPC;
		return LB_MORE;
	}
	return lj_snap_next(w, (w->link & 3) == LJ_FRAME_LUA ? w->link : 0);
}

/* Sets the snapshots' number and shape. In 2019 nsnapmap is a u32, whose high half is 0. */
static __always_inline void lj_read_nsnap(const struct lj_walk *w, struct lj_gctrace *t,
					  const struct lj_trace_words *words)
{
	t->nsnap = (__u16)(words->kind >> 8 * (LJ_TRACE_NSNAP - LJ_TRACE_KIND));
	if (lj_is_32(w))
		t->nsnapmap = (__u32)(words->nk >> 32);
	t->snaps_are = LJ_SNAPS_MCOFS;
	if (w->lj.mcofs)
		return;
	t->snaps_are = LJ_SNAPS_2019;
	if (words->nk >> 48) {
		t->snaps_are = LJ_SNAPS_2017;
		t->nsnap = (__u16)(words->nk >> 32);
		if (lj_is_32(w))
			t->nsnapmap = (__u32)(words->nk >> 48);
	}
}

/*
 * Returns the address of the bytecode behind the loop at whose end (FORL, ITERL) or head (LOOP) a
 * root trace began; 0: it began at no loop. Where there is a number or a register in the place of a
 * jump, the operand is less than 0x4000.
 */
static __always_inline __u64 lj_loop_exit(struct lj_walk *w, const __u8 *head, __u32 startins)
{
	__s32 jump = (__s32)(startins >> 16) - 0x8000;
	__u64 startpc = lb_word(head, LJ_AT(w, TRACE_STARTPC));

	if (lj_is_32(w))
		startpc = (__u32)startpc;
	if (jump < -0x4000 || lb_short(head, LJ_AT(w, TRACE_ROOT)))
		return 0;
	return startpc + 4 + (jump > 0 ? 4ULL * (__u32)jump : 0);
}

/* Returns the address of trace traceno, or 0 if no trace has this number. */
static __always_inline __u64 lj_trace_at(const struct lb_mem *mem, struct lj_walk *w, __u32 traceno)
{
	__u64 traces, trace;

	if (lj_read(mem, w, &traces, sizeof(traces), w->g + w->lj.g2trace) ||
	    lj_read_ref(mem, w, &trace, traces + (lj_is_32(w) ? 4ULL : 8ULL) * traceno))
		return 0;
	return trace;
}

/* Reads the head of trace traceno. Returns 0, or -1 if no trace has this number. */
static __always_inline int lj_read_gctrace(const struct lb_mem *mem, struct lj_walk *w,
					   struct lj_gctrace *t, __u32 traceno)
{
	struct lj_trace_words words;
	const __u8 *head;
	__u64 trace;

	if (!traceno || traceno > 0xffff)
		return -1;
	trace = lj_trace_at(mem, w, traceno);
	if (!trace || lj_at(mem, w, &head, LJ_AT(w, TRACE_READ), trace))
		return -1;
	words = lj_trace_words(&w->lj, head);
	if (LJ_KIND_GCT(words.kind) != LJ_GCT_TRACE ||
	    lb_short(head, LJ_AT(w, TRACE_TRACENO)) != traceno)
		return -1;
	t->ir = words.ir;
	t->snaps = lb_word(head, LJ_AT(w, TRACE_SNAP));
	t->maps = lb_word(head, LJ_AT(w, TRACE_SNAPMAP));
	t->mcode = words.mcode;
	t->szmcode = (__u32)(words.start >> 32);
	t->nk = (__u32)words.nk;
	lj_read_nsnap(w, t, &words);
	t->loop_exit = w->lj.mcofs ? 0 : lj_loop_exit(w, head, (__u32)words.start);
	t->spadjust = lb_short(head, LJ_AT(w, TRACE_SPADJUST));
	t->mcloop = lb_half(head, LJ_AT(w, TRACE_MCLOOP));
	t->fp = lj_fp_trace(&words);
	return 0;
}

LB_SUBPROG int lj_gctrace(const struct lb_mem *mem, struct lj_walk *w, struct lj_gctrace *t,
			  __u32 traceno)
{
	return w && t ? lj_read_gctrace(mem, w, t, traceno) : -1;
}

#define LJ_MAX_PARENTS 8

/* Goes to the constants of the parent trace: IR_BASE names it (lj_record_setup). */
static __always_inline int lj_snap_parent(const struct lb_mem *mem, struct lj_walk *w)
{
	__u64 ins;

	if (w->cursor.parents >= LJ_MAX_PARENTS ||
	    lj_read(mem, w, &ins, sizeof(ins), w->cursor.consts + 8ULL * LJ_REF_BIAS) ||
	    lj_gctrace(mem, w, &w->parent, ins & 0xffff))
		return -1;
	w->cursor.parents++;
	w->cursor.consts = w->parent.ir;
	w->cursor.constant = w->parent.nk;
	return 0;
}

/*
 * Finds a function that the trace computes (it is specialized to the prototype, not to the
 * closure), and that is no constant. Its prototype is one, for the collector (rec_call_specialize):
 * the one that has the pc. In a side trace an ancestor may have that constant. One constant a step.
 */
static __always_inline enum lb_more lj_snap_proto(const struct lb_mem *mem, struct lj_walk *w)
{
	const __u8 *ins;
	__u64 proto;
	int index;

	if (w->cursor.constant >= LJ_REF_BIAS - 3) {
		if (!lj_snap_parent(mem, w))
			return LB_MORE;
		/* trace stitching: the trace is about to leave for a C function, whose caller is on
		 * top */
		if ((w->link & 7) != LJ_FRAME_CONT || w->skip)
			return lj_stop(w, LB_STATUS_BAD_TRACE);
		w->cursor.want = LJ_WANT_CONTPC;
		return LB_MORE;
	}
	if (lj_at(mem, w, &ins, 16, w->cursor.consts + 8ULL * w->cursor.constant))
		return lj_stop(w, LB_STATUS_FAULT);
	w->cursor.constant++;
	proto = lj_is_32(w) ? lb_half(ins, 0) : lb_word(ins, 8);
	if ((lb_half(ins, 4) & 0x1f) != LJ_IRT_PROTO ||
	    w->pc - proto - LJ_AT(w, PROTO_SIZE) >= 1 << 24)
		return LB_MORE;
	index = lj_proto(mem, w, proto);
	if (index < 0 || !lj_pc_inside(&w->seen[index & (LJ_SEEN - 1)], w->pc))
		return LB_MORE;
	return lj_snap_func(mem, w, index);
}

/* GC32: takes the next of the links that follow the snapshot's entries. Returns 0, or -1. */
static __always_inline int lj_snap_next_link(struct lj_walk *w, __u64 *link)
{
	__u32 i = w->cursor.next_link;

	if (i >= w->cursor.nsnapmap || i >= LJ_SNAPMAP)
		return -1;
	w->cursor.next_link = i + 1;
	*link = w->snapmap[i & (LJ_SNAPMAP - 1)];
	return 0;
}

/* GC32: finds the topmost frame, an entry a step; if there is none, it is the trace's own. */
static __always_inline enum lb_more lj_snap_top(struct lj_walk *w)
{
	__u32 i = (__u32)w->cursor.entry,
	      entry = i < LJ_SNAPMAP ? w->snapmap[i & (LJ_SNAPMAP - 1)] : 0;

	if (i < LJ_SNAPMAP && !(entry & LJ_SNAP_FRAME)) {
		w->cursor.entry--;
		return LB_MORE;
	}
	w->cursor.slot = (__s32)(entry >> 24);
	w->cursor.want = LJ_WANT_LINK;
	if (!w->cursor.slot) {
		w->phase = LJ_PHASE_FRAME;
		lj_keep_virtual(w);
	}
	return LB_MORE;
}

/* GC32: takes a link, with what belongs to it. */
static __always_inline enum lb_more lj_step_link(const struct lb_mem *mem, struct lj_walk *w)
{
	__u64 link;

	if (lj_snap_next_link(w, &link))
		return lj_stop(w, LB_STATUS_BAD_TRACE);
	return w->cursor.want == LJ_WANT_LINK ? lj_snap_link(mem, w, link) : lj_snap_next(w, link);
}

/* Reads one entry of the snapshot's map, from its end: entries are sorted by slot. */
static __always_inline enum lb_more lj_step_entry(const struct lb_mem *mem, struct lj_walk *w)
{
	__s32 slot = w->cursor.want == LJ_WANT_LINK   ? w->cursor.slot + 1
		     : w->cursor.want == LJ_WANT_FUNC ? w->cursor.slot
						      : w->cursor.slot - 1;
	__u32 entry = 0, i = (__u32)w->cursor.entry;
	__u64 value;

	if (w->cursor.want == LJ_WANT_PROTO)
		return lj_snap_proto(mem, w);
	if (lj_is_32(w) && w->cursor.want == LJ_WANT_TOP)
		return lj_snap_top(w);
	if (lj_is_32(w) && w->cursor.want != LJ_WANT_FUNC)
		return lj_step_link(mem, w);
	if (i < LJ_SNAPMAP)
		entry = w->snapmap[i & (LJ_SNAPMAP - 1)];
	if ((__s32)(entry >> 24) > slot) {
		w->cursor.entry--;
		return LB_MORE;
	}
	if (w->cursor.want == LJ_WANT_FUNC && (__s32)(entry >> 24) == slot &&
	    (entry & 0xffff) >= LJ_REF_BIAS) {
		w->cursor.constant = w->gctrace.nk;
		w->cursor.consts = w->gctrace.ir;
		w->cursor.parents = 0;
		w->cursor.want = LJ_WANT_PROTO;
		return LB_MORE;
	}
	if (lj_snap_value(mem, w, slot, entry, &value))
		return lj_stop(w, LB_STATUS_FAULT);
	if (w->cursor.want == LJ_WANT_LINK)
		return lj_snap_link(mem, w, value);
	if (w->cursor.want == LJ_WANT_FUNC)
		return lj_snap_func(mem, w, lj_func_at(mem, w, lj_tv_gcptr(w, value), w->pc));
	return lj_snap_next(w, value);
}

/* Entries per step: the overhead of a step is larger than the work of one. */
#define LJ_SNAP_RUN 4
static __always_inline enum lb_more lj_step_snap(const struct lb_mem *mem, struct lj_walk *w)
{
	__u32 i;

	LB_ROLLED
	for (i = 0; i < LJ_SNAP_RUN && w->phase == LJ_PHASE_SNAP; i++)
		if (lj_step_entry(mem, w))
			return LB_STOP;
	return LB_MORE;
}

#endif
