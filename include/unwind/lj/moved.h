/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * A Lua stack that is being moved, as it grows or shrinks (resizestack in lj_state.c). Clearing its
 * new slots takes most of the time, with a page fault for each page:
 *
 *	st = realloc(oldst)		L->stack and L->base are the old block's, which may be unmapped
 *	L->stack = st			L->base is the old block's still
 *	clear the new slots
 *	L->base += st - oldst		done
 *
 * The function keeps oldst or the delta in a callee-saved register, so it is in a register or in
 * the first words of the C stack: all are tried. The frame that a candidate leads to proves it.
 */
#ifndef LUABPF_UNWIND_LJ_MOVED_H
#define LUABPF_UNWIND_LJ_MOVED_H

#include <unwind/lj/top.h>

#define LJ_MOVED_REGS 8
#define LJ_MOVED_WORDS 24 /* of the C stack */

/* Returns the value that stack_init() writes into a stack's first slot: the thread itself. */
static __always_inline __u64 lj_stack_mark(const struct lj_walk *w)
{
	return (__u64)LJ_TTHREAD << (lj_is_32(w) ? 32 : 47) | w->L;
}

/* True if there is a frame at base: that of a function, or the dummy of an error. */
static __always_inline int lj_frame_at(const struct lb_mem *mem, struct lj_walk *w, __u64 base)
{
	const __u8 *bytes;

	if (base & 7 || base <= lj_bottom_base(w) || base > w->maxstack)
		return 0;
	bytes = lj_maybe(mem, w, base - LJ_AT(w, FRAME_BYTES), LJ_AT(w, FRAME_BYTES));
	return bytes && (lj_frame_func(w, bytes) == lj_tv_low(w, lj_stack_mark(w)) ||
			 lj_fit(mem, w, base, 0));
}

/* Returns L->base as word would move it, which is the delta, or oldst. L->stack is the new block's. */
static __always_inline __u64 lj_moved_base(const struct lj_walk *w, __u64 word)
{
	__u64 base = w->base + word;

	if (base - w->stack > w->maxstack - w->stack)
		base = w->stack + (w->base - word);
	return base;
}

/* Returns the delta to the new block, which word points to, or to its malloc chunk's head; 0: neither.
 * L->stack is the old block's. */
static __always_inline __u64 lj_moved_delta(const struct lb_mem *mem, struct lj_walk *w, __u64 word)
{
	__u64 mark[3];

	if (word & 7 || word >> 47 || word < 1 << 16 || mem_read(mem, mark, sizeof(mark), word))
		return 0;
	if (mark[0] != lj_stack_mark(w)) {
		if (mark[2] != lj_stack_mark(w))
			return 0;
		word += 16;
	}
	return word - w->stack;
}

/* A block without a frame at the base was this stack, too, and is free by now. */
LB_SUBPROG int lj_moved_by(const struct lb_mem *mem, struct lj_walk *w, __u64 word)
{
	__u64 base, delta = 0;

	if (!w)
		return -1;
	if (w->base - w->stack > w->maxstack - w->stack) {
		base = lj_moved_base(w, word);
	} else {
		delta = lj_moved_delta(mem, w, word);
		base = w->base + delta;
		if (!delta)
			return -1;
	}
	w->stack += delta;
	w->maxstack += delta;
	if (lj_frame_at(mem, w, base)) {
		w->base = base;
		return 0;
	}
	w->stack -= delta;
	w->maxstack -= delta;
	return -1;
}

/* Sets the walk's stack and base to their new addresses, if they are found, as L->base leads to no
 * frame. */
LB_SUBPROG int lj_find_moved(const struct lb_mem *mem, struct lj_walk *w,
			     const struct lb_regs *regs)
{
	__u32 i;

	if (!w || !regs)
		return 0;
	w->block[0] = regs->pc;
	w->block[1] = regs->rb;
	w->block[2] = regs->gl;
	w->block[3] = regs->kept[0];
	w->block[4] = regs->kept[1];
	w->block[5] = regs->kept[2];
	w->block[6] = regs->rd; /* [6] and [7]: when mremap() has just returned */
	w->block[7] = regs->base;
	if (mem_read(mem, w->block + LJ_MOVED_REGS, 8 * LJ_MOVED_WORDS, regs->sp & ~7ULL))
		return 0;
	LB_ROLLED
	for (i = 0; i < LJ_MOVED_REGS + LJ_MOVED_WORDS; i++)
		if (!lj_moved_by(mem, w, w->block[i]))
			break;
	w->fault = 0;
	return 0;
}

/* True if, in C code, L->base is outside of the stack or unreadable, so that it may be moving. */
static __always_inline int lj_is_moving(const struct lb_mem *mem, struct lj_walk *w,
					const struct lb_regs *regs)
{
	return w->vmstate < 0 && !lj_in_vm(w, regs->ip) &&
	       (!lj_on_stack(w, w->base) ||
		!lj_maybe(mem, w, w->base - LJ_AT(w, FRAME_BYTES), LJ_AT(w, FRAME_BYTES)));
}

#endif
