/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Which lua_State runs on this thread, and where does its topmost function stand? PUC Lua has no
 * variable for the first, and keeps the answer to the second in a register.
 *
 * A lua_State is active on a C stack while its errorJmp points at a lua_longjmp there, its status
 * is LUA_OK, and ci is not base_ci. Those that are active are nested: each was resumed by the one
 * outside it. The innermost, with the smallest errorJmp above sp, is running; unless a C function of
 * one VM has called another VM unprotected, on a lua_State that is active further out.
 *
 * puc_find() looks where it costs little: an active lua_State whose topmost function is a Lua
 * function cannot be resuming another one, as lua_resume is called by C functions, which have a
 * CallInfo of their own. Only C hooks are called without one. Of Lua's own C functions, too, all
 * but few resume anything, and those that do not are known (user/detect/puc/lib.c). So when the
 * thread that ran last, or one in a register, is such a one, it is the one that runs.
 *
 * Otherwise the C stack is searched upwards, as far as the errorJmp of the best. luaV_execute has
 * its L in its frame, or in a register that what it calls saves just below that. So where a return
 * address into luaV_execute lies, the words around it are tried as lua_States, unless one of them
 * is known already, and runs nothing that is not Lua's own: the host's function may have called
 * another VM. A coroutine whose function is a C function has no luaV_execute; but lua_resume has
 * left a jmp_buf of glibc's, which is known by its look. (In a library that does not mangle what
 * setjmp saves, or is built as C++, such a coroutine's time goes to what resumed it.)
 *
 * The resumer of a coroutine is searched for in the same way, above its outermost lua_longjmp, when
 * it is not one of those that are likely: coroutine.resume has the coroutine as its argument, what
 * coroutine.wrap returned as its upvalue.
 *
 * Two things have no errorJmp: a main thread that its host calls unprotected, and a coroutine in
 * which a pcall has just caught an error, until lua_resume has set it up again. They are as deep as
 * the place where they are seen.
 *
 * Measured by tests/hosts/puc/oracle.c in Debian's liblua5.1 to 5.4, 369,000 samples of two dozen
 * workloads of coroutines, errors, callbacks, nested VMs: the right lua_State in 99.95 % (99.92 %
 * in 5.4, 99.99 % in 5.1); what is missed is recovery from errors, mostly. Of all that the C stack
 * shows, the smallest errorJmp alone is right in 95.9 % (those without are missed), the largest
 * nCcalls in 99.78 %, the first hit in 99.70 %, and in 95 % of what runs coroutine.wrap. The
 * topmost line was right in all 20,451 samples with ip in luaV_execute that were judged.
 */
#ifndef LUABPF_UNWIND_PUC_FIND_H
#define LUABPF_UNWIND_PUC_FIND_H

#include <unwind/puc/top.h>

/* The search is over: goes on with the best. */
static __always_inline int puc_take_best(struct puc_walk *w)
{
	int is_resumer = w->g != 0;

	w->g = w->best.g;
	if (w->looked && w->t.L == w->best.L) /* it was looked at last */
		w->t.key = w->best.key;
	else
		puc_enter(w, &w->best);
	if (is_resumer) {
		puc_note_resumed(w, w->child, w->best.L);
		w->phase = PUC_PHASE_FRAME;
		return 0;
	}
	w->L = w->best.L;
	w->inner = w->open ? w->key : w->regs.sp;
	w->phase = PUC_PHASE_TOP;
	return 0;
}

/*
 * Tries all registers, which are worth as much as a word at an address of the C stack. No
 * lb_loop(): what it calls would be too deep.
 */
LB_SUBPROG int puc_consider_regs(const struct lb_mem *mem, struct puc_walk *w, __u64 at)
{
	__u32 i;

	if (!w)
		return 0;
	LB_ROLLED
	for (i = 0; i < LB_GPRS; i++) {
		__u64 word = w->gprs.r[i & (LB_GPRS - 1)];

		if (!puc_is_candidate(w, word) || (w->best.L == word && w->key != ~0ULL))
			continue;
		if (puc_consider(mem, w, word, at))
			return 1;
	}
	return 0;
}

/*
 * Looks for the lua_State that runs on this thread. Returns 0 if it was found, 1 if the steps
 * have to search the C stack first. They end as LB_STATUS_OUTSIDE if no lua_State runs here.
 */
LB_SUBPROG int puc_find(const struct lb_mem *mem, struct puc_walk *w)
{
	if (!w)
		return 1;
	w->g = 0;
	w->L = 0;
	w->vmstate = 0;
	w->fault = 0;
	w->flags = 0;
	w->noted = 0;
	w->popped = 0;
	w->code_steps = 0;
	w->steps = 0;
	w->state = 'I';
	w->child = 0;
	w->looked = 0;
	puc_scan_from(w, w->regs.sp, w->regs.sp - 1);
	if (w->L_hint && puc_consider(mem, w, w->L_hint, 0))
		return puc_take_best(w);
	w->known[0] = w->L_hint;
	w->known[1] = w->L_hint && w->try.L == w->L_hint ? w->try.main_L : 0;
	if (w->key != ~0ULL && !puc_in_vm(w, w->regs.ip))
		return 1;
	if (puc_consider_regs(mem, w, w->regs.sp))
		return puc_take_best(w);
	return 1;
}

/*
 * The best has an open C function on top, and so has another. Or the best's errorJmp lies farther
 * than the search goes. Looks through the C stack for the frame that has called either function.
 */
static __always_inline enum lb_more puc_begin_weighing(const struct lb_mem *mem, struct puc_walk *w)
{
	w->missed = (__u8)puc_scan_missed(w);
	/* a coroutine without errorJmp may recover from an error: it has no frame then */
	if (w->child || !w->open || !(w->best.jmp || w->best.main) || !(w->rival.L || w->missed)) {
		puc_take_best(w);
		return LB_MORE;
	}
	puc_mark_none(w);
	puc_mark(mem, w, w->mark, &w->best);
	if (w->rival.L)
		puc_mark(mem, w, w->mark + 2, &w->rival);
	w->scan = w->scan_from;
	w->scan_end = puc_scan_reach(w);
	if (w->scan_end > w->stack_hi)
		w->scan_end = w->stack_hi;
	if (w->best.jmp && w->best.jmp < w->scan_end)
		w->scan_end = w->best.jmp;
	w->in_block = 0;
	w->phase = PUC_PHASE_WEIGH;
	return LB_MORE;
}

static __always_inline enum lb_more puc_step_weigh(const struct lb_mem *mem, struct puc_walk *w)
{
	if (!w->weighed && (w->in_block || w->scan < w->scan_end) && !puc_scan_on(mem, w))
		return LB_MORE;
	if (!w->weighed && w->missed)
		return puc_end(w, LB_STATUS_LOOP);
	if (w->weighed == PUC_WEIGHS_RIVAL) {
		w->best = w->rival;
		w->key = w->best.key;
	}
	puc_take_best(w);
	return LB_MORE;
}

static __always_inline enum lb_more puc_step_scan(const struct lb_mem *mem, struct puc_walk *w)
{
	__u64 next = w->follow;

	w->follow = 0;
	if (next) { /* the coroutine that the best has resumed, if it is active */
		if (puc_consider(mem, w, next, 0))
			puc_take_best(w);
		return LB_MORE;
	}
	if (!w->proved && (w->in_block || (w->scan < w->scan_end && !puc_scan_enough(w)))) {
		if (!puc_scan_on(mem, w))
			return LB_MORE;
		puc_scan_fails(w);
	}
	/* what luaV_execute has called may have left its L where it was */
	if (w->unowned && !w->child) {
		w->unowned = 0;
		puc_consider_regs(mem, w, w->vm_ret);
	}
	if (w->key == ~0ULL && !w->tested && puc_may_run(w)) {
		w->tested = 1; /* luaV_execute was not called: by C functions alone? */
		puc_scan_again(w, w->scan_from, w->scan_from + 8 * PUC_SCAN_NEAR);
		w->scan_end = w->near < w->scan_end ? w->near : w->scan_end;
		return LB_MORE;
	}
	if (w->key == ~0ULL) {
		/* not scan_end, which what was tried last has brought nearer */
		if (puc_scan_reach(w) < w->stack_hi) /* it lies farther */
			w->rec.stack.flags |= LB_SAMPLE_CUT;
		return puc_end(w, w->L ? LB_STATUS_RESOLVED : LB_STATUS_OUTSIDE);
	}
	if (w->child && puc_scan_missed(w)) {
		w->rec.stack.flags |= LB_SAMPLE_CUT;
		return puc_end(w, LB_STATUS_RESOLVED);
	}
	return puc_begin_weighing(mem, w);
}

/* Is L the thread that resumed w->child, and proved to be? Then it is the best. */
LB_SUBPROG int puc_resumes_child(const struct lb_mem *mem, struct puc_walk *w, __u64 L)
{
	__u64 key;

	if (!w || !L || L == w->child)
		return 0;
	key = puc_try(mem, w, L);
	if (!key || (key == PUC_UNPROTECTED && !w->try.main))
		return 0;
	puc_enter(w, &w->try);
	if (puc_has_resumed(mem, w, puc_look(mem, w)) != w->child)
		return 0;
	w->try.key = key;
	w->key = key;
	w->best = w->try;
	return 1;
}

/* From L's innermost lua_longjmp to the outermost: above that lies what resumed it. */
static __always_inline enum lb_more puc_step_jmp(const struct lb_mem *mem, struct puc_walk *w)
{
	__u64 previous = 0;

	if (w->t.jmp &&
	    puc_read(mem, w, &previous, sizeof(previous), w->t.jmp + PUC_LONGJMP_PREVIOUS))
		return puc_end(w, LB_STATUS_FAULT);
	if (previous) {
		if (previous & 7 || previous <= w->t.jmp || previous >= w->stack_hi)
			return puc_end(w, LB_STATUS_STACK_CHANGING);
		w->t.jmp = previous;
		return LB_MORE;
	}
	w->child = w->t.L;
	w->known[0] = w->t.main_L;
	w->known[1] = 0;
	previous = w->t.jmp ? w->t.jmp : w->t.key;
	/* its own jmp_buf, should there be one, need not be seen */
	puc_scan_from(w, previous + (w->t.jmp ? PUC_JMP_BUF : 0), previous);
	if (puc_resumes_child(mem, w, puc_resumed_by(w, w->child)) ||
	    puc_resumes_child(mem, w, w->known[0]))
		puc_take_best(w);
	return LB_MORE;
}

LB_SUBPROG int puc_step(const struct lb_mem *mem, struct puc_walk *w)
{
	if (!w)
		return LB_STOP;
	if (++w->steps == LB_MAX_STEPS && w->rec.stack.n) { /* what is known is shown */
		w->rec.stack.flags |= LB_SAMPLE_CUT;
		return puc_end(w, LB_STATUS_RESOLVED);
	}
	switch (w->phase) {
	case PUC_PHASE_SCAN:
		return puc_step_scan(mem, w);
	case PUC_PHASE_WEIGH:
		return puc_step_weigh(mem, w);
	case PUC_PHASE_NOTE:
		return puc_step_note(mem, w);
	case PUC_PHASE_TOP:
		if (puc_step_top(mem, w))
			return LB_STOP;
		return w->phase == PUC_PHASE_FRAME ? puc_step_frames(mem, w) : LB_MORE;
	case PUC_PHASE_COLLECTS:
		return puc_step_collects(mem, w);
	case PUC_PHASE_FRAME:
		return puc_step_frames(mem, w);
	case PUC_PHASE_CODE:
		return puc_step_code(mem, w);
	default:
		return puc_step_jmp(mem, w);
	}
}

#endif
