/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The walker for PUC Lua 5.1 to 5.5.
 *
 * A lua_State has a chain of CallInfos, one for each function that was called and not yet left
 * (lstate.h); in 5.1 an array, later a list. L->ci is the innermost, base_ci the outermost, which
 * belongs to no function:
 *
 *     L->ci --previous--> CallInfo --previous--> ... --previous--> base_ci
 *              |func              |func                               |func
 *     stack: [ function args ... ][ function args ... ]     ...     [ nil ] = L->stack
 *
 * A step emits frames and goes down the chain. Each walk proves the layout: it has to come to
 * base_ci over slots of the Lua stack, one below the other, that hold functions.
 *
 * A coroutine has no pointer to the thread that resumed it, but both have something on the C stack:
 * luaD_rawrunprotected (ldo.c) keeps a struct lua_longjmp there for each protected call, and
 * L->errorJmp is the innermost of L's. lua_resume made L's outermost one. The resumer is the next
 * that is active above that.
 *
 *     sp -> | C functions called by L             |
 *           | lua_longjmp    <- L->errorJmp       |
 *           | luaV_execute and so on, all of L    |  higher addresses
 *           | lua_longjmp    previous == NULL     |      |
 *           | lua_resume(L)                       |      v
 *           | C functions, luaV_execute of parent |
 *           | lua_longjmp    <- parent->errorJmp  |
 *           | ...                                 |
 */
#ifndef LUABPF_UNWIND_PUC_UNWIND_H
#define LUABPF_UNWIND_PUC_UNWIND_H

#include <unwind/puc/look.h>

/* The bits of callstatus say of the frame above why it was called without an instruction. */
static __always_inline void puc_flag_above(struct puc_walk *w)
{
	__u32 n = w->rec.stack.n;
	__u64 flags = 0;

	if (w->flags & LB_FRAME_THREAD || !n) /* it is none of this lua_State */
		return;
	if (w->status & w->puc.cist_hooked)
		flags |= LB_FRAME_HOOK;
	if (w->status & w->puc.cist_fin)
		flags |= LB_FRAME_FIN;
	if (flags)
		w->rec.stack.frame[(n - 1) & LB_MAX_FRAMES].word |= flags << 48;
}

static __always_inline int puc_in_vm(const struct puc_walk *w, __u64 ip)
{
	return (int)lb_within(ip, w->vm_start, w->vm_end - w->vm_start);
}

/*
 * 5.1 counts tail calls of Lua functions only: it leaves the number of a C function as it was, and
 * after a return hook it is -1. It is an old one, too, while luaD_precall makes a call: that of a
 * function which has begun nothing, outside of luaV_execute. (A tail call is counted there, after
 * luaD_precall.)
 */
static __always_inline int puc_is_tail_called(const struct puc_walk *w, __u32 kind, __u64 begins)
{
	if (!(w->puc.flags & PUC_CI_ARRAY))
		return (w->status & w->puc.cist_tail) != 0;
	if (!w->rec.stack.n && w->pc == begins && !puc_in_vm(w, w->regs.ip))
		return 0;
	return kind == LB_FRAME_LUA && (__s32)w->status > 0;
}

/*
 * A tail call is under way (lvm.c, OP_TAILCALL): the callee was called, and is just being moved
 * down to the caller's place. Its function lies there already, while pc is not in its code, or at
 * its beginning: no function that has called another stands there.
 */
static __always_inline int puc_is_moving_down(const struct puc_walk *w, int index)
{
	const struct puc_seen *seen = &w->seen[index & (PUC_SEEN - 1)];
	__u32 n = w->rec.stack.n;
	const struct lb_frame *above = &w->rec.stack.frame[(n - 1) & LB_MAX_FRAMES];

	return n == 1 && !(w->flags & LB_FRAME_THREAD) && !w->pc_known && puc_is_lua(w, index) &&
	       (above->word & ((1ULL << 48) - 1)) == seen->ptr &&
	       (w->savedpc <= seen->code || w->savedpc - seen->code > 4ULL * seen->sizecode);
}

/* Appends the current frame, of which puc_look() returned the index. */
static __always_inline enum lb_more puc_emit(struct puc_walk *w, int index)
{
	const struct puc_seen *seen = &w->seen[index & (PUC_SEEN - 1)];
	__u32 n = w->rec.stack.n;
	struct lb_frame *f;

	if (n >= LB_MAX_FRAMES) {
		w->rec.stack.flags |= LB_SAMPLE_CUT;
		return puc_end(w, LB_STATUS_RESOLVED);
	}
	if (puc_is_moving_down(w, index)) {
		w->rec.stack.frame[0].word |= (__u64)LB_FRAME_TAIL << 48;
		return LB_MORE;
	}
	puc_flag_above(w);
	if (puc_is_tail_called(w, seen->kind, seen->code))
		w->flags |= LB_FRAME_TAIL;
	f = &w->rec.stack.frame[n & LB_MAX_FRAMES];
	f->pc = LB_NO_PC;
	f->fp = 0;
	if (index == PUC_LIGHT) {
		f->word = LB_FRAME_WORD(LB_FRAME_C, w->flags, w->fn);
	} else {
		f->word = LB_FRAME_WORD(seen->kind, w->flags, seen->ptr);
		f->fp = seen->fp;
		if (seen->kind == LB_FRAME_LUA)
			f->pc = puc_position(seen, w->pc_known ? w->pc : w->savedpc);
	}
	w->flags = 0;
	w->pc_known = 0;
	w->rec.stack.n = n + 1;
	return LB_MORE;
}

/* base_ci is reached: is this a lua_State's? */
static __always_inline enum lb_more puc_step_bottom(const struct lb_mem *mem, struct puc_walk *w)
{
	const __u8 *bytes;
	__u32 size = w->puc.ci_size;
	__u64 func;

	if (size > sizeof(w->scratch))
		size = sizeof(w->scratch);
	if (puc_at(mem, w, &bytes, size, w->ci))
		return puc_end(w, LB_STATUS_FAULT);
	func = puc_word(bytes, w->puc.ci_func);
	if (func != w->t.stack && !w->moved &&
	    (w->puc.version < 54 || w->above - func >= PUC_STACK_MOST))
		return puc_end(w, LB_STATUS_STACK_CHANGING);
	w->status = puc_half(bytes, w->puc.ci_callstatus) & w->puc.cist_mask;
	if (!(w->puc.flags & PUC_CI_ARRAY))
		puc_flag_above(w);
	if (w->t.main) /* nobody resumes the main thread */
		return puc_end(w, LB_STATUS_RESOLVED);
	w->phase = PUC_PHASE_JMP;
	return LB_MORE;
}

/*
 * The same for most frames: a Lua function that stands where it called another, as any other does.
 * Returns 0 when it is not one of these.
 */
static __always_inline int puc_emit_plain(struct puc_walk *w, int index)
{
	const struct puc_seen *seen = &w->seen[index & (PUC_SEEN - 1)];
	__u32 n = w->rec.stack.n;
	struct lb_frame *f;

	if (n < 2 || n >= LB_MAX_FRAMES || w->flags || w->pc_known ||
	    w->status & (w->puc.cist_tail | w->puc.cist_hooked | w->puc.cist_fin) ||
	    !puc_is_lua(w, index))
		return 0;
	f = &w->rec.stack.frame[n & LB_MAX_FRAMES];
	f->word = LB_FRAME_WORD(LB_FRAME_LUA, 0ULL, seen->ptr);
	f->fp = seen->fp;
	f->pc = puc_position(seen, w->savedpc);
	w->rec.stack.n = n + 1;
	return 1;
}

/*
 * Is the current CallInfo to be passed over, as there is no function in its slot? Of the topmost
 * that is so while a call is being set up, or a tail call moves the callee down over the caller.
 */
static __always_inline int puc_pop(struct puc_walk *w)
{
	if (w->popped || w->fault || w->moved || !puc_is_pointer(w->previous) ||
	    w->previous == w->t.base_ci)
		return 0;
	w->popped = 1;
	w->ci = w->previous;
	w->looked = 0;
	return 1;
}

/*
 * A function's slot below the topmost has none. Before 5.4 that is so while a C function's pcall
 * deals with an error: luaD_pcall puts what was thrown there, before it drops the CallInfos of what
 * had failed. They run no more: goes on with the C function, on top. Returns 0 when this is not so.
 */
static __always_inline int puc_drop_failed(const struct lb_mem *mem, struct puc_walk *w)
{
	int index;

	if (w->child || !w->rec.stack.n || puc_in_vm(w, w->regs.ip) || w->func <= w->t.stack ||
	    w->func >= w->above || !puc_pop(w))
		return 0;
	index = puc_look(mem, w);
	if (index == PUC_NOT || puc_is_lua(w, index))
		return 0;
	w->rec.stack.n = 0;
	w->flags = LB_FRAME_THREAD;
	w->phase = PUC_PHASE_TOP;
	return 1;
}

/*
 * The walk ends here, with what is known. A C function on top may be one that an error has ended:
 * puc_drop_failed().
 */
static __always_inline enum lb_more puc_end_cut(struct puc_walk *w)
{
	if (!w->rec.stack.n || LB_FRAME_KIND(&w->rec.stack.frame[0]) != LB_FRAME_LUA)
		return puc_end(w, w->unread ? LB_STATUS_FAULT : LB_STATUS_STACK_CHANGING);
	if (w->previous)
		puc_flag_above(w);
	w->rec.stack.flags |= LB_SAMPLE_CUT;
	return puc_end(w, LB_STATUS_RESOLVED);
}

/*
 * Is the current CallInfo a Lua function's, whose pc was saved? A CallInfo of 5.1 does not say so;
 * but the topmost was given L->savedpc by the call that makes the stack grow.
 */
static __always_inline int puc_has_code(const struct puc_walk *w)
{
	if (w->puc.flags & PUC_CI_ARRAY)
		return w->pc_known && (!w->previous || w->savedpc == w->pc);
	return (w->status & (w->puc.cist_lua | w->puc.cist_c)) == w->puc.cist_lua;
}

/* No function is to be had of the current CallInfo. Tries its saved pc. */
static __always_inline enum lb_more puc_ask_code(struct puc_walk *w)
{
	/* 5.1 moves its array of CallInfos, too: then L->savedpc is all */
	if (w->puc.flags & PUC_CI_ARRAY ? w->rec.stack.n && !w->moved : !w->previous)
		return puc_end(w, LB_STATUS_STACK_CHANGING);
	if (w->previous && !(w->moved | w->unread))
		return puc_end(w, LB_STATUS_STACK_CHANGING);
	w->fault = w->was_fault;
	if (!puc_has_code(w))
		return puc_end_cut(w);
	w->phase = PUC_PHASE_CODE;
	w->code_next = 0;
	return LB_MORE;
}

/* The index of one of the next functions in seen[] in whose code pc lies; PUC_NOT: of none. */
#define PUC_CODE_RUN 8
#define PUC_CODE_STEPS 512 /* in one walk */
LB_SUBPROG int puc_find_code(struct puc_walk *w, __u64 pc)
{
	__u64 found = 0;
	__u32 i;

	if (!w)
		return PUC_NOT;
	LB_ROLLED
	for (i = 0; i < PUC_CODE_RUN; i++) {
		__u32 at = (w->code_next + i) & (PUC_SEEN - 1);
		const struct puc_seen *seen = &w->seen[at];
		__u64 inside = 0 - lb_within(pc - 1, seen->code, 4ULL * seen->sizecode);

		found = (found & ~inside) | ((at + 1) & inside);
	}
	w->code_next += PUC_CODE_RUN;
	return (int)found - 1;
}

/* Recursion is what makes a stack grow: most often it is the function of the frame above. */
LB_SUBPROG int puc_step_code(const struct lb_mem *mem, struct puc_walk *w)
{
	__u64 pc;
	int index;

	if (!w)
		return LB_STOP;
	pc = w->pc_known ? w->pc : w->savedpc;
	index = w->code_next ? puc_find_code(w, pc) : (int)w->code_of;
	w->code_next += !w->code_next;
	if (index != PUC_NOT) {
		w->code_of = (__u32)index;
		index = puc_closure(mem, w, w->seen[index & (PUC_SEEN - 1)].func, 1);
		w->fault = w->was_fault; /* it may be none any more */
	}
	if (!puc_is_lua(w, index) || !puc_is_in(w, index, pc))
		return w->code_next < PUC_SEEN && w->code_steps++ < PUC_CODE_STEPS ? LB_MORE
										   : puc_end_cut(w);
	w->moved = 1;
	if (puc_emit(w, index))
		return LB_STOP;
	if (!puc_is_pointer(w->previous))
		return puc_end_cut(w);
	w->ci = w->previous;
	w->looked = 0;
	w->phase = PUC_PHASE_FRAME;
	return LB_MORE;
}

struct puc_run {
	const struct lb_mem *mem;
	struct puc_walk *w;
};

/* Appends the frame of w->ci and goes to the one below. Returns 0 when there may be one. */
static long puc_run_step(__u32 turn, struct puc_run *run)
{
	struct puc_walk *w = run->w;
	int index;

	(void)turn;
	if (w->ci == w->t.base_ci)
		return 1;
	index = puc_look(mem_accessor(run->mem), w);
	if (index == PUC_NOT) {
		w->not_a_frame = 1;
		return 1;
	}
	if (!puc_emit_plain(w, index) && puc_emit(w, index)) {
		w->full = 1;
		return 1;
	}
	w->above = w->func;
	w->ci = w->previous;
	w->looked = 0;
	return 0;
}

LB_SUBPROG int puc_step_frames(const struct lb_mem *mem, struct puc_walk *w)
{
	struct puc_run run = {.mem = mem, .w = w};

	if (!w)
		return LB_STOP;
	w->not_a_frame = 0;
	w->full = 0;
	lb_loop(LB_MAX_FRAMES + 1, puc_run_step, &run);
	if (w->full)
		return LB_STOP;
	if (w->not_a_frame)
		return puc_drop_failed(mem, w) ? LB_MORE : puc_ask_code(w);
	return w->ci == w->t.base_ci ? puc_step_bottom(mem, w) : LB_MORE;
}

#endif
