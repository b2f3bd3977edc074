/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The frames of one lua_State, along its chain of CallInfos. unwind.h has the picture. */
#ifndef LUABPF_UNWIND_PUC_STACK_H
#define LUABPF_UNWIND_PUC_STACK_H

#include <unwind/puc/look.h>

/* Flags the frame above by callstatus, whose bits say why no instruction called it. */
static __always_inline void puc_flag_above(struct puc_walk *w)
{
	__u32 n = w->rec.stack.n;
	__u32 flags = 0;

	if (w->flags & LB_FRAME_THREAD || !n) /* no frame of this lua_State */
		return;
	if (w->look.status & w->puc.cist_hooked)
		flags |= LB_FRAME_HOOK;
	if (w->look.status & w->puc.cist_fin)
		flags |= LB_FRAME_FIN;
	if (flags)
		w->rec.stack.frame[(n - 1) & LB_MAX_FRAMES].word |= LB_FRAME_WORD(0, flags, 0);
}

static __always_inline int puc_in_text(const struct puc_walk *w, __u64 addr)
{
	return (int)lb_within(addr, w->text_lo, w->text_hi - w->text_lo);
}

static __always_inline int puc_in_vm(const struct puc_walk *w, __u64 ip)
{
	return (int)lb_within(ip, w->vm_start, w->vm_end - w->vm_start);
}

/*
 * True if the current frame was called by a tail call. 5.1 counts these for Lua functions only: the
 * count of a C function is stale, and after a return hook it is -1. It is stale, too, while
 * luaD_precall makes a call: pc is at the function's entry, and ip outside of luaV_execute, which
 * counts a tail call after luaD_precall.
 */
static __always_inline int puc_is_tail_called(const struct puc_walk *w, __u32 kind, __u64 begins)
{
	if (!(w->puc.flags & PUC_CI_ARRAY))
		return (w->look.status & w->puc.cist_tail) != 0;
	if (!w->rec.stack.n && w->pc == begins && !puc_in_vm(w, w->regs.ip))
		return 0;
	return kind == LB_FRAME_LUA && (__s32)w->look.status > 0;
}

/*
 * True while a tail call (lvm.c, OP_TAILCALL) moves the callee's frame down over the caller's: the
 * caller's slot has the callee's function already, but the saved pc is not in that one's code, or
 * at its entry, where no caller's pc can be.
 */
static __always_inline int puc_is_moving_down(const struct puc_walk *w, int index)
{
	const struct puc_seen *seen = &w->seen[index & (PUC_SEEN - 1)];
	__u32 n = w->rec.stack.n;
	const struct lb_frame *above = &w->rec.stack.frame[(n - 1) & LB_MAX_FRAMES];

	return n == 1 && !(w->flags & LB_FRAME_THREAD) && !w->pc_known && puc_is_lua(w, index) &&
	       LB_FRAME_PTR(above) == seen->ptr &&
	       (w->look.savedpc <= seen->code ||
		w->look.savedpc - seen->code > 4ULL * seen->sizecode);
}

/* Appends the current frame. index: that of puc_look(). */
static __always_inline enum lb_more puc_emit(struct puc_walk *w, int index)
{
	const struct puc_seen *seen = &w->seen[index & (PUC_SEEN - 1)];
	__u32 n = w->rec.stack.n;
	struct lb_frame *f;

	if (n >= LB_MAX_FRAMES)
		return puc_cut(w);
	if (puc_is_moving_down(w, index)) {
		w->rec.stack.frame[0].word |= LB_FRAME_WORD(0, LB_FRAME_TAIL, 0);
		return LB_MORE;
	}
	puc_flag_above(w);
	if (puc_is_tail_called(w, seen->kind, seen->code))
		w->flags |= LB_FRAME_TAIL;
	f = &w->rec.stack.frame[n & LB_MAX_FRAMES];
	f->pc = LB_NO_PC;
	f->fp = 0;
	if (index == PUC_LIGHT) {
		f->word = LB_FRAME_WORD(LB_FRAME_C, w->flags, w->look.fn);
	} else {
		f->word = LB_FRAME_WORD(seen->kind, w->flags, seen->ptr);
		f->fp = seen->fp;
		if (seen->kind == LB_FRAME_LUA)
			f->pc = puc_position(seen, w->pc_known ? w->pc : w->look.savedpc);
	}
	w->flags = 0;
	w->pc_known = 0;
	w->rec.stack.n = n + 1;
	return LB_MORE;
}

/* The kind of a search above a thread's frames that found nothing: the last bit of its key. */
enum puc_sought {
	PUC_SOUGHT_RESUMER,
	PUC_SOUGHT_VM,
};

/* True if a search above the current thread found nothing, less than LB_FORGET samples ago. */
static __always_inline int puc_is_alone(struct puc_walk *w, enum puc_sought what)
{
	const struct puc_alone *alone;

	w->alone.key = (w->t.L ^ w->t.jmp) | what;
	alone = &w->alone.threads[lb_table_index(w->alone.key << 4, PUC_ALONE_BITS)];
	return alone->key == w->alone.key && w->cache.sample - alone->sample < LB_FORGET;
}

static __always_inline void puc_note_alone(struct puc_walk *w)
{
	struct puc_alone *alone =
		&w->alone.threads[lb_table_index(w->alone.key << 4, PUC_ALONE_BITS)];

	alone->key = w->alone.key;
	alone->sample = w->cache.sample;
}

/*
 * A C function of another VM may have called this one: begins the search for it above the outermost
 * lua_longjmp, as for a resumer.
 */
static __always_inline enum lb_more puc_leave_vm(struct puc_walk *w)
{
	if (!w->single || puc_is_alone(w, PUC_SOUGHT_VM))
		return puc_end(w, LB_STATUS_RESOLVED);
	lb_outer_leave(puc_common(w));
	w->phase = PUC_PHASE_JMP;
	return LB_MORE;
}

/* Proves base_ci, and goes on to a coroutine's resumer, or to another VM. */
static __always_inline enum lb_more puc_step_bottom(const struct lb_mem *mem, struct puc_walk *w)
{
	const __u8 *bytes;

	if (puc_read_ci(mem, w, &bytes))
		return puc_end(w, LB_STATUS_FAULT);
	if (w->look.func != w->t.stack && !w->look.moved &&
	    (w->puc.version < 54 || w->above - w->look.func >= PUC_STACK_MOST))
		return puc_end(w, LB_STATUS_STACK_CHANGING);
	if (!(w->puc.flags & PUC_CI_ARRAY))
		puc_flag_above(w);
	if (w->t.main) /* the main thread has no resumer */
		return puc_leave_vm(w);
	w->phase = PUC_PHASE_JMP;
	return LB_MORE;
}

/*
 * The same for most frames: a Lua function at its saved pc, without flags, below the two topmost.
 * Returns 1, or 0 for any other.
 */
static __always_inline int puc_emit_plain(struct puc_walk *w, int index)
{
	const struct puc_seen *seen = &w->seen[index & (PUC_SEEN - 1)];
	__u32 n = w->rec.stack.n;
	struct lb_frame *f;

	if (n < 2 || n >= LB_MAX_FRAMES || w->flags || w->pc_known ||
	    w->look.status & (w->puc.cist_tail | w->puc.cist_hooked | w->puc.cist_fin) ||
	    !puc_is_lua(w, index))
		return 0;
	f = &w->rec.stack.frame[n & LB_MAX_FRAMES];
	f->word = LB_FRAME_WORD(LB_FRAME_LUA, 0, seen->ptr);
	f->fp = seen->fp;
	f->pc = puc_position(seen, w->look.savedpc);
	w->rec.stack.n = n + 1;
	return 1;
}

/*
 * Skips the current CallInfo, which has no function in its slot: the topmost has none while a call
 * is being set up, or a tail call moves the callee down over the caller. Once in a walk. Returns 1,
 * or 0 when it must not be skipped.
 */
static __always_inline int puc_pop(struct puc_walk *w)
{
	if (w->top.popped || w->fault || w->look.moved || !puc_is_pointer(w->look.previous) ||
	    w->look.previous == w->t.base_ci)
		return 0;
	w->top.popped = 1;
	w->ci = w->look.previous;
	w->look.done = 0;
	return 1;
}

/*
 * Drops the frames of functions that have failed, so that the C function whose pcall handles the
 * error is on top: before 5.4 luaD_pcall writes the error value to a failed function's slot, which
 * is below the topmost, before it drops the CallInfos. Returns 1, or 0 when this is not so.
 */
static __always_inline int puc_drop_failed(const struct lb_mem *mem, struct puc_walk *w)
{
	int index;

	if (w->search.child || !w->rec.stack.n || puc_in_vm(w, w->regs.ip) ||
	    w->look.func <= w->t.stack || w->look.func >= w->above || !puc_pop(w))
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
 * Ends the walk with the frames so far, as cut. A C function on top may be one that an error has
 * ended (puc_drop_failed()): such a sample is lost.
 */
static __always_inline enum lb_more puc_end_cut(struct puc_walk *w)
{
	if (!w->rec.stack.n || LB_FRAME_KIND(&w->rec.stack.frame[0]) != LB_FRAME_LUA)
		return puc_end(w, w->look.unread ? LB_STATUS_FAULT : LB_STATUS_STACK_CHANGING);
	if (w->look.previous)
		puc_flag_above(w);
	return puc_cut(w);
}

/*
 * True if the current CallInfo is a Lua function's with a saved pc. In 5.1 it has no such bit; but
 * the call that makes the stack grow saves L->savedpc in the topmost.
 */
static __always_inline int puc_has_code(const struct puc_walk *w)
{
	if (w->puc.flags & PUC_CI_ARRAY)
		return w->pc_known && (!w->look.previous || w->look.savedpc == w->pc);
	return (w->look.status & (w->puc.cist_lua | w->puc.cist_c)) == w->puc.cist_lua;
}

/* Begins the search for the current CallInfo's function by its saved pc, as its slot has none. */
static __always_inline enum lb_more puc_ask_code(struct puc_walk *w)
{
	/* 5.1 moves its array of CallInfos, too: then only L->savedpc is left */
	if (w->puc.flags & PUC_CI_ARRAY ? w->rec.stack.n && !w->look.moved : !w->look.previous)
		return puc_end(w, LB_STATUS_STACK_CHANGING);
	if (w->look.previous && !(w->look.moved | w->look.unread))
		return puc_end(w, LB_STATUS_STACK_CHANGING);
	w->fault = w->look.was_fault;
	if (!puc_has_code(w))
		return puc_end_cut(w);
	w->phase = PUC_PHASE_CODE;
	w->code.next = 0;
	return LB_MORE;
}

/* Returns the index of that of the next PUC_CODE_RUN in seen[] whose code has pc, or PUC_NOT. */
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
		__u32 at = (w->code.next + i) & (PUC_SEEN - 1);
		const struct puc_seen *seen = &w->seen[at];
		__u64 inside = 0 - lb_within(pc - 1, seen->code, 4ULL * seen->sizecode);

		found = (found & ~inside) | ((at + 1) & inside);
	}
	w->code.next += PUC_CODE_RUN;
	return (int)found - 1;
}

/* Tries the function found last first: a stack grows by recursion. Then all of seen[] in order. */
LB_SUBPROG int puc_step_code(const struct lb_mem *mem, struct puc_walk *w)
{
	__u64 pc;
	int index;

	if (!w)
		return LB_STOP;
	pc = w->pc_known ? w->pc : w->look.savedpc;
	index = w->code.next ? puc_find_code(w, pc) : (int)w->code.last;
	w->code.next += !w->code.next;
	if (index != PUC_NOT) {
		w->code.last = (__u32)index;
		index = puc_closure(mem, w, w->seen[index & (PUC_SEEN - 1)].func, 1);
		w->fault = w->look.was_fault; /* the closure may be gone */
	}
	if (!puc_is_lua(w, index) || !puc_is_in(w, index, pc))
		return w->code.next < PUC_SEEN && w->code.steps++ < PUC_CODE_STEPS ? LB_MORE
										   : puc_end_cut(w);
	w->look.moved = 1;
	if (puc_emit(w, index))
		return LB_STOP;
	if (!puc_is_pointer(w->look.previous))
		return puc_end_cut(w);
	w->ci = w->look.previous;
	w->look.done = 0;
	w->phase = PUC_PHASE_FRAME;
	return LB_MORE;
}

struct puc_run {
	const struct lb_mem *mem;
	struct puc_walk *w;
};

/* Appends the frame of w->ci and goes to the CallInfo below. Returns 1 when the run has ended. */
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
	w->above = w->look.func;
	w->ci = w->look.previous;
	w->look.done = 0;
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
