/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * One frame: the base it may have, the distance to the one below, the cframe that runs it, and its
 * record in the sample. The steps of the walk are built of these: stack.h, snap.h, resume.h.
 */
#ifndef LUABPF_UNWIND_LJ_FRAME_H
#define LUABPF_UNWIND_LJ_FRAME_H

#include <unwind/lj/func.h>

static __always_inline int lj_in_vm(const struct lj_walk *w, __u64 ip)
{
	return ip - w->vm_start < w->vm_end - w->vm_start;
}

/* True if base may be a frame's. Errors and metamethods may use some slots above maxstack. */
static __always_inline int lj_may_be_base(const struct lj_walk *w, __u64 base)
{
	return !(base & 7) && base > w->stack + LJ_AT(w, FRAME_BYTES) - 8 &&
	       base <= w->maxstack + 8 * 64;
}

/*
 * Distance in slots from a frame to the one below, by the instruction before the pc that is its
 * FRAME_LUA link (BC_CALLM .. BC_ITERN): its A. 0 when that is no call.
 */
static __always_inline __u32 lj_distance(const struct lj_walk *w, __u32 ins)
{
	return lj_op(w, ins) - LJ_OP_CALLM > LJ_OP_ITERN - LJ_OP_CALLM
		       ? 0
		       : LJ_AT(w, FRAME_BYTES) / 8 + (ins >> 8 & 0xff);
}

/* The same, by the link. */
LB_SUBPROG __u32 lj_call_distance(const struct lb_mem *mem, struct lj_walk *w, __u64 pc)
{
	__u32 ins;

	if (!w || pc & 3 || pc < 1 << 20 || pc >> 47 || lj_read(mem, w, &ins, sizeof(ins), pc - 4))
		return 0;
	return lj_distance(w, ins);
}

/*
 * Reads what the current cframe has saved. A frame that lua_cpcall made has no frame on the Lua
 * stack; its SAVE_NRES is negative and says how high the stack was (lj_debug.c, debug_framepc):
 * returns 1 when it is such a one and `frame` lies below that mark, 0 when it counts, < 0 on
 * failure.
 */
LB_SUBPROG int lj_read_cframe(const struct lb_mem *mem, struct lj_walk *w, __u64 frame)
{
	const __u8 *bytes;
	__s32 nres;

	if (!w || !w->cframe || lj_at(mem, w, &bytes, LJ_CFRAME_PREV_MOST + 8, w->cframe))
		return -1;
	w->saved.pc = lj_ref(w, bytes, LJ_AT(w, CFRAME_PC));
	w->saved.prev =
		(w->lj.cframe_prev == LJ_CFRAME_PREV ? lb_word(bytes, LJ_CFRAME_PREV)
						     : lb_word(bytes, LJ_CFRAME_PREV_MOST)) &
		LJ_CFRAME_RAWMASK;
	nres = (__s32)lb_half(bytes, LJ_AT(w, CFRAME_NRES));
	return nres < 0 && frame < w->stack + (__u64)(-(__s64)nres);
}

#define LJ_MAX_CPCALLS 8

/*
 * Crosses a boundary from Lua to the C code that called it, between two frames (their slots at
 * `frame` and `below`): takes the next outer cframe, and from it the pc at which a Lua function
 * below stands (the function that a finalizer or a hook interrupted).
 */
LB_SUBPROG int lj_cross_c(const struct lb_mem *mem, struct lj_walk *w, __u64 frame, __u64 below)
{
	int crossed = 0, i, r;

	if (!w)
		return -1;
	w->pc = 0;
	for (i = 0; i < LJ_MAX_CPCALLS; i++) {
		r = lj_read_cframe(mem, w, crossed ? below : frame);
		if (r < 0)
			return -1;
		if (!r && crossed) {
			w->pc = w->saved.pc;
			return 0;
		}
		if (!r)
			crossed = 1;
		if (!w->saved.prev) /* the outermost: LJ_PHASE_PARENT goes on from it */
			return 0;
		w->cframe = w->saved.prev;
	}
	return -1;
}

/*
 * True if the function on top, whose first instruction is at bc, runs in C although the state is the
 * interpreter's: an FFI callback has returned and left it so. A fast function with an instruction of
 * its own calls C in the interpreter's state, too.
 */
LB_SUBPROG int lj_runs_c(const struct lb_mem *mem, struct lj_walk *w, __u64 bc)
{
	__u32 ins;

	return w && !lj_in_vm(w, w->regs.ip) && !lj_guess(mem, w, &ins, sizeof(ins), bc) &&
	       (ins & 0xff) - w->lj.bc_funcf - LJ_FUNCC < 2;
}

/* Appends the frame of a function that stands at w->pc. */
static __always_inline enum lb_more lj_emit(const struct lb_mem *mem, struct lj_walk *w, int index)
{
	const struct lj_seen *seen = &w->seen[index & (LJ_SEEN - 1)];
	__u32 n = w->rec.stack.n;
	struct lb_frame *f;

	if (n >= LB_MAX_FRAMES)
		return lj_cut(w);
	f = &w->rec.stack.frame[lb_loaded(n) & LB_MAX_FRAMES]; /* clang would drop the mask */
	f->word = LB_FRAME_WORD(seen->kind, w->flags, seen->ptr);
	f->fp = seen->fp;
	f->pc = LB_NO_PC;
	if (seen->kind == LB_FRAME_FF) {
		f->pc = (__u32)seen->ptr;
	} else if (seen->kind == LB_FRAME_LUA) {
		if (w->boundary && w->boundary_below == w->base - 8) {
			lj_cross_c(mem, w, w->boundary, w->boundary_below);
			w->boundary = 0;
			if (n) /* a hook, a finalizer, an event handler or a callback */
				w->rec.stack.frame[(n - 1) & LB_MAX_FRAMES].word |=
					LB_FRAME_WORD(0, LB_FRAME_HOOK, 0);
		}
		f->pc = lj_position(mem, w, index, w->pc);
		if (f->pc == LB_NO_PC && w->linked)
			return lj_stop(w, LB_STATUS_STACK_CHANGING);
	} else if (w->linked) {
		return lj_stop(w, LB_STATUS_STACK_CHANGING); /* C functions make no calls by a pc */
	}
	if (!n && seen->kind != LB_FRAME_LUA && w->state == 'I' && lj_runs_c(mem, w, seen->bc))
		w->state = 'C';
	w->linked = 0;
	w->flags = 0;
	w->exact = 0;
	w->rec.stack.n = n + 1;
	return LB_MORE;
}

/* The main thread's lua_State lies directly before the global_State (GG_State). */
static __always_inline int lj_is_main(const struct lj_walk *w)
{
	return w->g - w->L <= LJ_AT(w, L_SIZE_MOST);
}

/* True if the walk has come to the bottom of this thread's stack. */
static __always_inline int lj_at_bottom(const struct lj_walk *w)
{
	return w->base == lj_bottom_base(w);
}

#endif
