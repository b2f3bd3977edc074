/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The function of a CallInfo.
 *
 * luaD_reallocstack (ldo.c) moves the Lua stack. Until it returns, L->stack and the CallInfos'
 * `func` do not agree, for as long as it takes to fill the new block's pages:
 *
 *	5.1 to 5.3	L->stack is the new block, func points into the old one, which was freed:
 *			L->stack + (func - old). base_ci is corrected last, its func is `old`. In
 *			5.1 it is corrected first: the move cannot be detected then.
 *	5.4.0 to 5.4.4	func is corrected before L->stack: it can be followed wherever it points.
 *	5.4.5 on	func is an offset from L->stack meanwhile.
 *
 * So these rules apply only to a func that leads to no function. The function that they find has to
 * agree with the CallInfo. While the kernel moves the block's pages, no address leads to them. Then
 * the saved pc identifies a Lua function, if it is in the code of one seen before: puc_step_code().
 */
#ifndef LUABPF_UNWIND_PUC_LOOK_H
#define LUABPF_UNWIND_PUC_LOOK_H

#include <unwind/puc/func.h>

static __always_inline int puc_is_in(const struct puc_walk *w, int index, __u64 pc)
{
	const struct puc_seen *seen = &w->seen[index & (PUC_SEEN - 1)];

	return puc_pc_inside(seen->code, 4ULL * seen->sizecode, pc);
}

/* Returns the function in the stack slot `func`: an index of seen[], PUC_LIGHT or PUC_NOT. */
static __always_inline int puc_slot(const struct lb_mem *mem, struct puc_walk *w, __u64 func)
{
	const __u8 *bytes;
	__u64 value;
	__u8 tt;

	w->look.unread = (__u8)(puc_at(mem, w, &bytes, PUC_TV_SIZE, func) != 0);
	if (w->look.unread)
		return PUC_NOT;
	value = lb_word(bytes, PUC_TV_VALUE);
	tt = lb_byte(bytes, PUC_TV_TT) & PUC_TT_MASK;
	if (tt == w->puc.tt_lcl)
		return puc_is_proved(w, value) ? (int)puc_seen_index(value)
					       : puc_closure(mem, w, value, 1);
	if (tt == w->puc.tt_ccl)
		return puc_closure(mem, w, value, 0);
	/* luaD_poscall writes a result over the function, its value before its type */
	if (tt != w->puc.tt_lcf || value < 1 << 16 || value >> 47)
		return PUC_NOT;
	w->look.fn = value;
	return PUC_LIGHT;
}

/* Reads the current CallInfo, and takes what each has into the walk. */
static __always_inline int puc_read_ci(const struct lb_mem *mem, struct puc_walk *w,
				       const __u8 **bytes)
{
	__u32 size = w->puc.ci_size;

	if (size > sizeof(w->scratch))
		size = sizeof(w->scratch);
	if (puc_at(mem, w, bytes, size, w->ci))
		return -1;
	w->look.func = puc_word(*bytes, w->puc.ci_func);
	w->look.status = puc_half(*bytes, w->puc.ci_callstatus) & w->puc.cist_mask;
	return 0;
}

/*
 * The current CallInfo cannot be read. The array of 5.1 grows, and a call that has set L->ci may wait for a page which was
 * never written, or has only the first members in the one before: then its caller is on top (puc_pop()). Only the first
 * CallInfo that reaches into a page is such a one.
 */
static __always_inline void puc_look_begun(struct puc_walk *w)
{
	__u64 last = w->ci + w->puc.ci_size - 1;

	if (!(w->puc.flags & PUC_CI_ARRAY) || !(w->flags & LB_FRAME_THREAD) || w->rec.stack.n ||
	    !((last ^ (w->ci - 1)) & ~(__u64)(LB_PAGE - 1)))
		return;
	w->look.func = 0;
	w->look.status = 0;
	w->look.previous = w->ci - w->puc.ci_size;
	w->fault = w->look.was_fault;
}

static __always_inline int puc_look_anew(const struct lb_mem *mem, struct puc_walk *w)
{
	const __u8 *bytes;

	w->look.unread = 0;
	w->look.previous = 0;
	w->look.savedpc = 0;
	if (!puc_is_pointer(w->ci))
		return PUC_NOT;
	if (puc_read_ci(mem, w, &bytes)) {
		puc_look_begun(w);
		return PUC_NOT;
	}
	w->look.savedpc = puc_word(bytes, w->puc.ci_savedpc);
	w->look.previous = w->puc.flags & PUC_CI_ARRAY ? w->ci - w->puc.ci_size
						       : puc_word(bytes, w->puc.ci_previous);
	if (w->look.func <= w->t.stack || w->look.func >= w->above || w->look.func & 7)
		return PUC_NOT;
	return puc_slot(mem, w, w->look.func);
}

static __always_inline int puc_is_lua(const struct puc_walk *w, int index)
{
	return index >= 0 && index < PUC_SEEN &&
	       w->seen[index & (PUC_SEEN - 1)].kind == LB_FRAME_LUA;
}

/*
 * True if the topmost CallInfo's slot does not hold the function that was called: luaD_poscall
 * writes the first result over it, which may be a function, too, before it leaves the CallInfo.
 */
static __always_inline int puc_is_result(const struct puc_walk *w, int index)
{
	__u32 kind = w->look.status & (w->puc.cist_lua | w->puc.cist_c);

	if (w->puc.flags & PUC_CI_ARRAY) /* the CallInfo is left first */
		return 0;
	if (!puc_is_lua(w, index))
		return kind != w->puc.cist_c;
	return kind != w->puc.cist_lua || !puc_is_in(w, index, w->look.savedpc);
}

/*
 * Returns the slot of the current CallInfo while the stack is being moved; 0: it is not, or the
 * slot is unknown. 5.4 corrects func from the topmost CallInfo down, 5.1 from base_ci up: above one
 * that is outside of the stack all are outside.
 */
LB_SUBPROG __u64 puc_moved_to(const struct lb_mem *mem, struct puc_walk *w)
{
	__u64 old, func, to = 0, size;
	int outside;

	/* 0: a call of 5.1 has set L->ci, and stores func in a page that was never written */
	if (!w || !w->look.func)
		return 0;
	func = w->look.func;
	size = w->t.stack_last + PUC_STACK_EXTRA - w->t.stack;
	outside = func - w->t.stack >= size && (w->look.moved || w->flags & LB_FRAME_THREAD);
	if (puc_guess(mem, w, &old, sizeof(old), w->t.base_ci + w->puc.ci_func))
		old = func; /* unreadable: this CallInfo gets no frame by its slot */
	else if (func < PUC_STACK_MOST)
		to = w->t.stack + func;
	else if (w->puc.version >= 54) /* corrected, or the first that is not yet */
		to = outside || w->above - w->t.stack > size ? func : 0;
	else if (old != w->t.stack && func - old < puc_stack_most(w))
		to = w->t.stack + (func - old);
	w->look.moved |= to || (outside && (old != w->t.stack || w->puc.flags & PUC_CI_ARRAY));
	return to;
}

/* Looks up the function of the current CallInfo, which was read, in the moved stack's slot. */
static __always_inline int puc_look_moved(const struct lb_mem *mem, struct puc_walk *w)
{
	__u64 to;
	int index;

	if (!w->look.previous)
		return PUC_NOT;
	to = puc_moved_to(mem, w);
	if (!puc_is_pointer(to))
		return PUC_NOT;
	index = puc_slot(mem, w, to);
	if (index == PUC_NOT || puc_is_result(w, index))
		return PUC_NOT;
	w->look.func = to;
	return index;
}

/*
 * Reads the current CallInfo, w->ci, into w. Returns its function: an index of seen[], PUC_LIGHT or
 * PUC_NOT.
 */
LB_SUBPROG int puc_look(const struct lb_mem *mem, struct puc_walk *w)
{
	if (!w)
		return PUC_NOT;
	if (w->look.done)
		return w->look.index;
	w->look.was_fault = w->fault;
	w->look.index = puc_look_anew(mem, w);
	if (w->look.index == PUC_NOT) {
		w->look.index = puc_look_moved(mem, w);
		if (w->look.index != PUC_NOT) /* the failed read of the old slot is no fault */
			w->fault = w->look.was_fault;
	}
	w->look.done = 1;
	return w->look.index;
}

/* Returns the position of the instruction before pc in a Lua function's code, or LB_NO_PC. */
static __always_inline __u32 puc_position(const struct puc_seen *seen, __u64 pc)
{
	__u32 next;

	if (!puc_pc_inside(seen->code, 4ULL * seen->sizecode, pc))
		return LB_NO_PC;
	next = (__u32)((pc - seen->code) >> 2);
	return next - (next != 0);
}

#endif
