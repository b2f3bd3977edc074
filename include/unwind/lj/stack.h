/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The real frames, on the Lua stack: runs of plain frames in one go, any other by itself, down to
 * the bottom of a thread. unwind.h has the picture of a frame.
 */
#ifndef LUABPF_UNWIND_LJ_STACK_H
#define LUABPF_UNWIND_LJ_STACK_H

#include <unwind/lj/outer.h>

/*
 * Below the frame at base is C code. Which cframe that belongs to matters only when a Lua function
 * lies directly below (a finalizer or a hook has interrupted it), which is rare: so it is looked for
 * when the next boundary comes, or such a function.
 */
static __always_inline void lj_boundary(const struct lb_mem *mem, struct lj_walk *w, __u64 delta)
{
	w->pc = 0;
	/* the bottom of the main thread: nothing lies below */
	if (w->base - delta == lj_bottom_base(w) && lj_is_main(w))
		return;
	if (w->boundary)
		lj_cross_c(mem, w, w->boundary, w->boundary_below);
	w->boundary = w->base - 8;
	w->boundary_below = w->base - delta - 8;
	w->pc = 0;
}

/*
 * At its end a trace makes its virtual frames real and moves jit_base up to the topmost one, before
 * it leaves its machine code. Then the frame at jit_base is not that of the function which the
 * virtual frames were called from: there are none any more, and the snapshot's pc is that of this
 * frame.
 */
static __always_inline int lj_snap_is_real(struct lj_walk *w, int index)
{
	const struct lj_seen *seen = &w->seen[index & (LJ_SEEN - 1)];

	w->joint = 0;
	if (!w->pc || seen->kind != LB_FRAME_LUA || lj_pc_inside(seen, w->pc) ||
	    !lj_pc_inside(seen, w->snap_pc))
		return 0;
	w->rec.stack.n = 0;
	w->pc = w->snap_pc;
	w->exact = 1;
	w->flags = LB_FRAME_THREAD | LB_FRAME_TRACE;
	return 1;
}

/* LUA, a pc; or C or CP, a distance. */
static __always_inline int lj_is_plain_link(const struct lj_walk *w, __u64 base, __u64 link)
{
	if (link & 1)
		return !(link & 2) && link >= 8 && link <= base - w->stack;
	return !(link & 2) && link >= 1 << 20 && !(link >> 47);
}

/* A plain frame of a run. */
struct lj_plain {
	__u64 base; /* of a vararg function: of the frame proper, which lies below */
	__u64 link;
	__u64 func;
	__u64 offset; /* of pc, in bytes from the first instruction */
};

/* Reads the slots of the frame at f->base. Returns 0 when it is plain. */
static __always_inline int lj_read_plain(const struct lb_mem *mem, struct lj_walk *w,
					 struct lj_plain *f)
{
	const __u8 *bytes;
	__u64 func;

	bytes = lj_guess_at(mem, w, LJ_AT(w, FRAME_BYTES), f->base - LJ_AT(w, FRAME_BYTES));
	if (!bytes)
		return -1;
	func = lj_frame_func(w, bytes);
	f->link = lj_frame_link(w, bytes);
	if ((f->link & 7) == LJ_FRAME_VARG &&
	    f->link < f->base - w->stack - LJ_AT(w, FRAME_BYTES)) {
		f->base -= f->link & ~7ULL;
		bytes = lj_guess_at(mem, w, LJ_AT(w, FRAME_BYTES), f->base - LJ_AT(w, FRAME_BYTES));
		if (!bytes)
			return -1;
		f->link = lj_frame_link(w, bytes);
	}
	f->func = lj_tv_gcptr(w, func);
	return lj_is_func(w, func) && lj_is_plain_link(w, f->base, f->link) ? 0 : -1;
}

/* Looks its function up. Returns 0 when that is a Lua function which has pc. */
static __always_inline int lj_prove_plain(const struct lb_mem *mem, struct lj_walk *w,
					  struct lj_plain *f, __u64 pc, __u32 exact)
{
	const struct lj_seen *seen = &w->seen[lj_seen_index(f->func)];

	if ((seen->func != f->func || seen->sample != w->cache.sample) &&
	    !lj_is_proved(w, f->func, pc) && lj_func(mem, w, f->func) < 0)
		return -1;
	f->offset = pc - seen->bc;
	return seen->kind == LB_FRAME_LUA && f->offset < 4ULL * seen->sizebc + !exact ? 0 : -1;
}

/* How far below its base that of its caller lies is in seen->distance, then. Returns 0, or -1 when
 * its link is no call's. */
static __always_inline int lj_measure_plain(const struct lb_mem *mem, struct lj_walk *w,
					    const struct lj_plain *f)
{
	struct lj_seen *seen = &w->seen[lj_seen_index(f->func)];
	const __u8 *ins;
	__u32 distance;

	if (seen->link == f->link)
		return 0;
	ins = lj_guess_at(mem, w, 4, f->link - 4);
	distance = ins ? lj_distance(w, lb_half(ins, 0)) : 0;
	if (!distance)
		return -1;
	seen->link = f->link;
	seen->distance = distance;
	return 0;
}

struct lj_run {
	const struct lb_mem *mem;
	struct lj_walk *w;
};

/* Appends the frame at w->base, if it is a plain one, and goes to the one below. Returns 0 when that
 * may be one, too. */
static long lj_run_step(__u32 turn, struct lj_run *run)
{
	const struct lb_mem *mem = mem_accessor(run->mem);
	struct lj_walk *w = run->w;
	struct lj_plain plain = {.base = w->base};
	__u32 n = w->rec.stack.n, exact = w->exact;
	const struct lj_seen *seen;
	struct lb_frame *f;

	(void)turn;
	if (n >= LB_MAX_FRAMES || plain.base <= lj_bottom_base(w) ||
	    lj_read_plain(mem, w, &plain) || (w->base_func && w->base_func != plain.func) ||
	    lj_prove_plain(mem, w, &plain, w->pc, exact) ||
	    (!(plain.link & 1) && lj_measure_plain(mem, w, &plain)))
		return 1;
	seen = &w->seen[lj_seen_index(plain.func)];
	f = &w->rec.stack.frame[n & LB_MAX_FRAMES];
	f->word = LB_FRAME_WORD(LB_FRAME_LUA, w->flags, seen->ptr);
	f->fp = seen->fp;
	f->pc = (__u32)(plain.offset >> 2) - (plain.offset != 0 && !exact);
	w->rec.stack.n = n + 1;
	w->flags = 0;
	w->exact = 0;
	w->joint = 0;
	w->base_func = 0;
	w->base = plain.base;
	if (plain.link & 1) {
		w->entered = plain.link & ~7ULL;
		w->linked = 0;
		return 1;
	}
	w->pc = plain.link;
	w->linked = 1;
	w->base -= 8ULL * seen->distance;
	return 0;
}

/*
 * A run of plain frames: Lua functions that Lua functions called, vararg functions among them, and
 * one at the end that C code called. lj_step_frame() takes any other frame.
 */
static __always_inline void lj_run_frames(const struct lb_mem *mem, struct lj_walk *w)
{
	struct lj_run run = {.mem = mem, .w = w};

	if (w->skip | w->link_known || (w->boundary && !w->linked) || !lj_may_be_base(w, w->base) ||
	    w->pc & 3)
		return;
	lb_loop(LB_MAX_FRAMES, lj_run_step, &run);
}

/*
 * True at the last instruction of a trace without a loop, the jump to another trace. The store of
 * jit_base precedes it.
 */
static __always_inline int lj_is_at_tail(const struct lj_walk *w)
{
	return w->vmstate > 0 && w->rec.trace_fp && !w->gctrace.mcloop &&
	       w->rec.mcofs + 6 >= w->gctrace.szmcode;
}

/*
 * True if a side exit, or the end of the trace, has made the snapshot's one virtual frame real: it is
 * the frame at base, of the function at index. Then its link is the call that the snapshot has.
 */
static __always_inline int lj_virtual_is_real(const struct lj_walk *w, int index, __u64 link)
{
	return (w->vmstate == LJ_VMST_EXIT || lj_is_at_tail(w)) && w->joint && link == w->pc &&
	       index >= 0 && lj_pc_inside(&w->seen[index & (LJ_SEEN - 1)], w->snap_pc);
}

/*
 * Looks up the function of the frame at base, whose slots hold func and link. In compiled code that
 * may be the one before a tail call; pc is one of the other's then.
 */
static __always_inline int lj_base_function(const struct lb_mem *mem, struct lj_walk *w, __u64 func,
					    __u64 link)
{
	__u64 other = w->base_func;
	int index = lj_func_at(mem, w, func, w->pc);
	int instead;

	w->base_func = 0;
	if (!other || other == func || lj_virtual_is_real(w, index, link) ||
	    (index >= 0 && lj_pc_inside(&w->seen[index & (LJ_SEEN - 1)], w->pc)))
		return index;
	instead = lj_func(mem, w, other);
	if (instead < 0 || !lj_pc_inside(&w->seen[instead & (LJ_SEEN - 1)], w->pc))
		return index < 0 ? index : lj_func(mem, w, func);
	return instead;
}

/*
 * A callback that C code makes into Lua has its frame before its function runs (lj_ccallback_enter)
 * and after that has returned (lj_ccallback_leave). Then C code runs, called from the frame below.
 */
static __always_inline int lj_is_idle_callback(const struct lb_mem *mem, struct lj_walk *w,
					       __u64 link, int index)
{
	const struct lj_seen *seen = &w->seen[index & (LJ_SEEN - 1)];
	const __u8 *cont;

	return !w->rec.stack.n && (link & 7) == LJ_FRAME_CONT && seen->kind == LB_FRAME_LUA &&
	       !lj_pc_inside(seen, w->pc) &&
	       !lj_at(mem, w, &cont, 8, w->base - 2 * LJ_AT(w, FRAME_BYTES)) &&
	       lj_frame_func(w, cont) == LJ_CONT_FFI_CALLBACK;
}

/*
 * Goes on in the thread that resumed this one. The main thread has no resumer, but another VM's C
 * function may have called it.
 */
static __always_inline enum lb_more lj_bottom(const struct lb_mem *mem, struct lj_walk *w)
{
	if (lj_is_main(w))
		return lj_step_outer(mem, w) ? LB_STOP : LB_MORE;
	w->phase = LJ_PHASE_PARENT;
	return LB_MORE;
}

/*
 * Ends the walk at a frame that cannot be read: mremap() has moved its page, or it is paged out. Those above it are shown, but
 * how C code called a frame, and whether virtual frames have become real, is known by the frame below only. fault: of an
 * earlier read.
 */
static __always_inline enum lb_more lj_unreadable(struct lj_walk *w, __u32 fault)
{
	if (!w->rec.stack.n || fault || w->boundary || w->joint)
		return lj_stop(w, LB_STATUS_FAULT);
	w->fault = 0;
	return lj_cut(w);
}

/*
 * C code calls back into the thread that has used the FFI last. Has that yielded since? Then it had
 * no cframe when the callback made one, and its frames below do not run.
 */
static __always_inline int lj_is_in_yielded(const struct lb_mem *mem, struct lj_walk *w)
{
	if (w->boundary)
		lj_cross_c(mem, w, w->boundary, w->boundary_below);
	w->boundary = 0;
	return !lj_read_cframe(mem, w, w->base - 8) && !w->saved.prev;
}

static __always_inline enum lb_more lj_step_frame(const struct lb_mem *mem, struct lj_walk *w)
{
	const __u8 *bytes;
	__u64 func, link, delta, cont;
	__u32 distance, fault = w->fault;
	int index;

	w->entered = 0;
	lj_run_frames(mem, w);
	if (w->entered) {
		lj_boundary(mem, w, w->entered);
		w->base -= w->entered;
	}
	/* frame slot = base - 8; the lowest frame's is stack + 8, which belongs to no function */
	if (lj_at_bottom(w))
		return lj_bottom(mem, w);
	if (!lj_may_be_base(w, w->base) || w->rec.stack.n > LB_MAX_FRAMES)
		return lj_stop(w, LB_STATUS_STACK_CHANGING);
	if (lj_at(mem, w, &bytes, LJ_AT(w, FRAME_BYTES), w->base - LJ_AT(w, FRAME_BYTES)))
		return lj_unreadable(w, fault);
	func = lj_frame_func(w, bytes);
	link = w->link_known ? w->link : lj_frame_link(w, bytes);
	w->link_known = 0;

	if (w->skip) {
		w->skip = 0;
	} else if (lj_tv_gcptr(w, func) != w->L) { /* dummy frames of errors in C hold L itself */
		if (!lj_is_func(w, func))
			return lj_stop(w, LB_STATUS_STACK_CHANGING);
		index = lj_base_function(mem, w, lj_tv_gcptr(w, func), link);
		if (index < 0)
			return lj_stop(w, LB_STATUS_STACK_CHANGING);
		if (w->joint && lj_snap_is_real(w, index))
			return LB_MORE;
		if (!lj_is_idle_callback(mem, w, link, index) && lj_emit(mem, w, index))
			return LB_STOP;
	}

	delta = link & ~7ULL;
	switch (link & 7) {
	case LJ_FRAME_LUA:
	case LJ_FRAME_LUAP: /* bit 2 belongs to the pc, which is 4-byte aligned */
		distance = lj_call_distance(mem, w, link);
		if (!distance)
			return lj_stop(w, LB_STATUS_STACK_CHANGING);
		w->pc = link;
		w->linked = 1;
		delta = 8ULL * distance;
		break;
	case LJ_FRAME_CONT:
		if (lj_at(mem, w, &bytes, LJ_AT(w, FRAME_BYTES),
			  w->base - 2 * LJ_AT(w, FRAME_BYTES)))
			return lj_stop(w, LB_STATUS_FAULT);
		cont = lj_frame_func(w, bytes);
		w->pc = lj_frame_link(w, bytes);
		if (cont == LJ_CONT_FFI_CALLBACK) { /* C code lies between */
			if (lj_is_in_yielded(mem, w))
				return lj_bottom(mem, w);
			lj_boundary(mem, w, delta);
		} else if (cont == LJ_CONT_TAILCALL) { /* the function below is yet to be called */
			w->pc = 0;
			w->skip = 1;
		}
		break;
	case LJ_FRAME_C:
	case LJ_FRAME_CP:
		lj_boundary(mem, w, delta);
		break;
	case LJ_FRAME_VARG:
		w->skip = 1;
		break;
	default: /* PCALL, PCALLH: below is the fast function itself */
		w->pc = 0;
		break;
	}
	if (!delta || delta > w->base - w->stack)
		return lj_stop(w, LB_STATUS_STACK_CHANGING);
	w->base -= delta;
	return lj_at_bottom(w) ? lj_bottom(mem, w) : LB_MORE;
}

#endif
