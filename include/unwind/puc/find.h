/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Finds the lua_State that runs on this thread, and the resumer of a coroutine: candidates first,
 * then a linear search of the C stack, of PUC_SCAN_MOST words at most. No variable has either.
 *
 * A lua_State is active on a C stack while its errorJmp points to a lua_longjmp there, and ci is
 * not base_ci. Active lua_States are nested: each was resumed by the one
 * outside it. The innermost, with the smallest errorJmp above sp, runs. One exception: a C function
 * of one VM has called another VM unprotected, on a lua_State that is active further out.
 *
 * puc_walk_begin() tries the lua_State of the sample before, and the registers. One of these runs if it
 * is active and its topmost function cannot have resumed another lua_State:
 * - a Lua function: lua_resume is called by C functions, which have a CallInfo of their own (only C
 *   hooks have none)
 * - one of Lua's own C functions that resume nothing (user/detect/puc/lib.c)
 *
 * Otherwise the C stack is searched upwards, as far as the errorJmp of the best. luaV_execute has L
 * in its frame, or in a register that its callee saves just below the frame. So the words around a
 * return address into luaV_execute are tried as lua_States. They are not if one of them is a known
 * lua_State whose function is Lua's own; a host's function may have called another VM. A coroutine
 * that runs a C function may have no frame of luaV_execute: it is recognised by lua_resume's
 * jmp_buf, as glibc mangles it. (In a library that does not mangle it, or is built as C++, the
 * resumer gets such a coroutine's time.)
 *
 * The search for a resumer begins above the coroutine's outermost lua_longjmp. None is needed for a
 * likely one that runs coroutine.resume with the coroutine as its argument, or the function of
 * coroutine.wrap with it as its upvalue.
 *
 * Two kinds of lua_State have no errorJmp: a main thread that its host calls unprotected, and a
 * coroutine in which a pcall has just caught an error, until lua_resume has set it up again. Their
 * depth is the address at which they are seen.
 *
 * Measured by tests/hosts/puc/oracle.c in Debian's liblua5.1 to 5.4, 369,000 samples of two dozen
 * workloads of coroutines, errors, callbacks, nested VMs: the right lua_State in 99.95 % (99.92 %
 * in 5.4, 99.99 % in 5.1); most misses are in recovery from errors. Simpler rules: the smallest
 * errorJmp alone is right in 95.9 % (it misses those without), the largest nCcalls in 99.78 %, the
 * first hit in 99.70 %, and in 95 % with coroutine.wrap. The topmost line was right in all 20,451
 * samples with ip in luaV_execute that were checked.
 */
#ifndef LUABPF_UNWIND_PUC_FIND_H
#define LUABPF_UNWIND_PUC_FIND_H

#include <unwind/puc/far.h>
#include <unwind/puc/outer.h>
#include <unwind/puc/top.h>

/* Ends the search: makes the best the current lua_State. */
static __always_inline int puc_take_best(struct puc_walk *w)
{
	int is_resumer = w->g != 0;

	w->g = w->search.best.g;
	if (w->look.done && w->t.L == w->search.best.L) /* it was looked at last */
		w->t.depth = w->search.best.depth;
	else
		puc_enter(w, &w->search.best);
	if (is_resumer) {
		puc_note_resumed(w, w->search.child, w->search.best.L);
		w->phase = PUC_PHASE_FRAME;
		return 0;
	}
	w->L = w->search.best.L;
	w->mains[w->rec.tid & (PUC_MAINS - 1)] = w->search.best.main_L;
	w->inner = w->search.may_call ? w->search.depth : w->regs.sp;
	w->phase = PUC_PHASE_TOP;
	return 0;
}

/*
 * Tries all registers, as if their words were at an address of the C stack. Returns 1 when one is
 * certain. No lb_loop(): the calls of its callback would nest too deeply.
 */
LB_SUBPROG int puc_consider_regs(const struct lb_mem *mem, struct puc_walk *w, __u64 at)
{
	__u32 i;

	if (!w)
		return 0;
	LB_ROLLED
	for (i = 0; i < LB_GPRS; i++) {
		__u64 word = w->gprs.r[i & (LB_GPRS - 1)];

		if (!puc_is_candidate(w, word) ||
		    (w->search.best.L == word && w->search.depth != ~0ULL))
			continue;
		if (puc_consider(mem, w, word, at))
			return 1;
	}
	return 0;
}

/*
 * Begins the search for the frame of luaV_execute that called the best's C function, or a rival's.
 * It decides where the best may run any code, and has a rival or an errorJmp beyond the bound.
 * Else takes the best.
 */
static __always_inline enum lb_more puc_begin_weighing(const struct lb_mem *mem, struct puc_walk *w)
{
	if (w->far.part) {
		if (!puc_scan_far(mem, w)) {
			puc_cut_far(w);
			puc_take_best(w);
		}
		return LB_MORE;
	}
	w->search.missed = (__u8)puc_scan_missed(w);
	/* a coroutine without errorJmp may recover from an error: it has no frame then */
	if (w->search.child || !w->search.may_call ||
	    !(w->search.best.jmp || w->search.best.main) ||
	    !(w->search.rival[0].L || w->search.missed)) {
		puc_take_best(w);
		return LB_MORE;
	}
	puc_mark_none(w);
	puc_mark(mem, w, w->weigh.mark, &w->search.best);
	if (w->search.rival[0].L)
		puc_mark(mem, w, w->weigh.mark + 2, &w->search.rival[0]);
	if (w->search.rival[1].L)
		puc_mark(mem, w, w->weigh.mark + 4, &w->search.rival[1]);
	w->scan.next = w->scan.from;
	w->scan.end = puc_scan_reach(w);
	if (w->search.best.jmp && w->search.best.jmp < w->scan.end)
		w->scan.end = w->search.best.jmp;
	w->block.remaining = 0;
	w->phase = PUC_PHASE_WEIGH;
	return LB_MORE;
}

static __always_inline enum lb_more puc_step_weigh(const struct lb_mem *mem, struct puc_walk *w)
{
	if (!w->weigh.result && (w->block.remaining || w->scan.next < w->scan.end) &&
	    !puc_scan_on(mem, w))
		return LB_MORE;
	if (!w->weigh.result && w->search.missed) {
		if (puc_scan_far(mem, w))
			return LB_MORE;
		w->rec.stack.flags |= LB_SAMPLE_CUT; /* another one may run */
	}
	if (w->weigh.result >= PUC_WEIGHS_RIVAL) {
		w->search.best =
			w->search.rival[(w->weigh.result - PUC_WEIGHS_RIVAL) & (PUC_RIVALS - 1)];
		w->search.depth = w->search.best.depth;
	}
	puc_take_best(w);
	return LB_MORE;
}

static __always_inline enum lb_more puc_step_scan(const struct lb_mem *mem, struct puc_walk *w)
{
	__u64 next = w->search.follow;

	w->search.follow = 0;
	if (next) { /* the coroutine that the best has resumed, if it is active */
		if (puc_consider(mem, w, next, 0))
			puc_take_best(w);
		return LB_MORE;
	}
	if (!w->search.proved &&
	    (w->block.remaining || (w->scan.next < w->scan.end && !puc_scan_enough(w)))) {
		if (!puc_scan_on(mem, w))
			return LB_MORE;
		puc_scan_fails(w);
	}
	/* luaV_execute's callees may have left its L in the register */
	if (w->scan.unowned && !w->search.child) {
		w->scan.unowned = 0;
		puc_consider_regs(mem, w, w->scan.vm_ret);
	}
	if (w->search.depth == ~0ULL && !w->scan.tested && puc_may_run(w)) {
		w->scan.tested = 1; /* no frame of luaV_execute: C functions alone may run */
		puc_scan_again(w, w->scan.from, w->scan.from + 8 * PUC_SCAN_NEAR);
		w->scan.end = w->scan.near < w->scan.end ? w->scan.near : w->scan.end;
		return LB_MORE;
	}
	if (w->outward)
		return puc_enter_outer(w) ? LB_STOP : LB_MORE;
	if (w->search.depth == ~0ULL && puc_scan_far(mem, w))
		return LB_MORE;
	if (w->search.depth == ~0ULL) {
		/* not scan_end, which the last attempt has lowered */
		if (puc_scan_reach(w) < w->stack_hi) { /* it may be beyond the bound */
			w->rec.stack.flags |= LB_SAMPLE_CUT;
			if (w->search.child)
				puc_note_alone(w);
		} else if (w->search.child) {
			return puc_leave_vm(w);
		}
		return puc_end(w, w->L ? LB_STATUS_RESOLVED : LB_STATUS_OUTSIDE);
	}
	if (w->search.child && puc_scan_missed(w)) {
		puc_note_alone(w);
		return puc_cut(w);
	}
	return puc_begin_weighing(mem, w);
}

/* Returns 1 and makes L the best if it is proved to have resumed w->search.child; else 0. */
LB_SUBPROG int puc_resumes_child(const struct lb_mem *mem, struct puc_walk *w, __u64 L)
{
	__u64 key;

	if (!w || !L || L == w->search.child)
		return 0;
	key = puc_try(mem, w, L);
	if (!key || (key == PUC_UNPROTECTED && !w->search.try.main))
		return 0;
	puc_enter(w, &w->search.try);
	if (puc_has_resumed(mem, w, puc_look(mem, w)) != w->search.child)
		return 0;
	w->search.try.depth = key;
	w->search.depth = key;
	w->search.best = w->search.try;
	return 1;
}

/* Goes from L's innermost lua_longjmp to the outermost: its resumer's frames are above that. */
static __always_inline enum lb_more puc_step_jmp(const struct lb_mem *mem, struct puc_walk *w)
{
	__u64 previous = 0;

	if (w->t.jmp &&
	    puc_guess(mem, w, &previous, sizeof(previous), w->t.jmp + PUC_LONGJMP_PREVIOUS))
		return puc_end(w, w->outward ? LB_STATUS_RESOLVED : LB_STATUS_FAULT);
	if (previous) {
		if (previous & 7 || previous <= w->t.jmp || previous >= w->stack_hi)
			return puc_end(w,
				       w->outward ? LB_STATUS_RESOLVED : LB_STATUS_STACK_CHANGING);
		w->t.jmp = previous;
		return LB_MORE;
	}
	w->search.child = w->t.L;
	w->scan.known[0] = w->outward ? 0 : w->t.main_L;
	w->scan.known[1] = 0;
	previous = w->t.jmp ? w->t.jmp : w->t.depth;
	/* skips its own jmp_buf */
	puc_scan_from(w, previous + (w->t.jmp ? PUC_JMP_BUF : 0), previous);
	if (w->outward)
		return LB_MORE;
	if (puc_resumes_child(mem, w, puc_resumed_by(w, w->search.child)) ||
	    puc_resumes_child(mem, w, w->scan.known[0]))
		puc_take_best(w);
	else if (puc_is_alone(w, PUC_SOUGHT_RESUMER))
		return puc_cut(w);
	return LB_MORE;
}

#endif
