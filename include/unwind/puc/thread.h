/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Checks a candidate for a lua_State, for the search of unwind/puc/find.h: whether it is active on
 * this C stack, its depth there, and whether it is certain that it runs, or has resumed another.
 */
#ifndef LUABPF_UNWIND_PUC_THREAD_H
#define LUABPF_UNWIND_PUC_THREAD_H

#include <unwind/puc/stack.h>

#define PUC_JMP_BUF 72 /* bytes of lua_longjmp up to the end of saved registers */
#define PUC_SPILLED 13 /* words of luaV_execute's frame that may hold L or pc */

#define PUC_UNPROTECTED (~0ULL - 1)

static __always_inline int puc_in_gc(const struct puc_walk *w, __u64 ip)
{
	return (int)(lb_within(ip, w->gc_lo, w->gc_hi - w->gc_lo) &
		     ~lb_within(ip, w->gc_lo + w->gc_skip, w->gc_skip_size));
}

/* Returns the main thread of the global_State g, or 0 if g is no global_State. own: a thread whose
 * l_G is g. */
static __always_inline __u64 puc_main_of(const struct lb_mem *mem, struct puc_walk *w, __u64 g,
					 __u64 own)
{
	__u64 L = g + w->puc.g_mainthread, its;
	__u8 head[12];

	if (!(w->puc.flags & PUC_MAIN_EMBEDDED) && puc_guess(mem, w, &L, sizeof(L), L))
		return 0;
	if (L == own)
		return L;
	if (!puc_is_pointer(L) || puc_guess(mem, w, head, sizeof(head), L) ||
	    puc_guess(mem, w, &its, sizeof(its), L + w->puc.L_l_G))
		return 0;
	return (head[PUC_GC_TT] & PUC_TT_MASK) == PUC_TT_THREAD && its == g ? L : 0;
}

/* True if a lua_longjmp is at an errorJmp, by the rsp and pc that glibc has mangled; also where it does not. */
static __always_inline int puc_is_longjmp(const struct lb_mem *mem, struct puc_walk *w, __u64 jmp)
{
	__u64 word[2];

	if (!jmp || !w->jmp_marked)
		return !!jmp;
	return !puc_guess(mem, w, word, sizeof(word), jmp + PUC_JMP_BUF - sizeof(word)) &&
	       word[0] >> 47 && word[1] >> 47;
}

/*
 * Fills w->search.try if a lua_State at L is active on this C stack above w->search.floor. Returns its errorJmp;
 * PUC_UNPROTECTED if it is active without one; 0 if L is no active lua_State.
 */
LB_SUBPROG __u64 puc_try(const struct lb_mem *mem, struct puc_walk *w, __u64 L)
{
	struct puc_thread *t;
	const __u8 *head;
	__u64 main;
	__u8 status;

	if (!w || !puc_is_pointer(L))
		return 0;
	t = &w->search.try;
	head = puc_maybe(mem, w, L, PUC_L_HEAD);
	if (!head || (lb_byte(head, PUC_GC_TT) & PUC_TT_MASK) != PUC_TT_THREAD)
		return 0;
	status = puc_byte(head, w->puc.L_status, 16);
	t->L = L;
	t->g = puc_word(head, w->puc.L_l_G);
	t->ci = puc_word(head, w->puc.L_ci);
	t->stack = puc_word(head, w->puc.L_stack);
	t->stack_last = puc_word(head, w->puc.L_stack_last);
	t->base_ci = w->puc.flags & PUC_CI_ARRAY ? puc_word(head, w->puc.L_base_ci)
						 : L + w->puc.L_base_ci;
	t->savedpc = puc_word(head, w->puc.L_savedpc);
	t->hooked = w->puc.L_allowhook && !puc_byte(head, w->puc.L_allowhook, PUC_L_HEAD);
	if (!puc_is_pointer(t->g) || (w->g && t->g != w->g) || !puc_is_pointer(t->ci) ||
	    t->ci == t->base_ci || !puc_is_pointer(t->stack) || !puc_is_pointer(t->stack_last) ||
	    puc_guess(mem, w, &t->jmp, 8, L + w->puc.L_errorJmp))
		return 0;
	/* while the stack is being moved one of them is in the old block */
	if (t->stack_last - t->stack > puc_stack_most(w)) {
		if (!t->jmp)
			return 0;
		t->stack_last = t->stack + puc_stack_most(w);
	}
	if (t->jmp && (t->jmp & 7 || t->jmp <= w->search.floor || t->jmp >= w->stack_hi))
		return 0;
	main = puc_main_of(mem, w, t->g, L);
	t->main = main == L;
	t->main_L = main;
	if (!main)
		return 0;
	/* One that has yielded or failed keeps that as its status while a host calls a function on it, protected. So does a
	 * main thread after an error that was not caught, when its host goes on from lua_atpanic(). */
	if (status && !t->main && !puc_is_longjmp(mem, w, t->jmp))
		return 0;
	return t->jmp ? t->jmp : PUC_UNPROTECTED;
}

/* Makes a lua_State the current one. */
static __always_inline void puc_enter(struct puc_walk *w, const struct puc_thread *t)
{
	w->t = *t;
	w->ci = w->t.ci;
	w->look.done = 0;
	w->look.moved = 0;
	w->above = w->t.stack_last + PUC_STACK_EXTRA;
	w->flags = LB_FRAME_THREAD;
	w->pc_known = 0;
	if (w->puc.flags & PUC_CI_ARRAY) {
		w->pc = w->t.savedpc;
		w->pc_known = 1;
	}
}

/*
 * Returns the depth of an active lua_State without errorJmp, seen at an address of the C stack, or
 * in a register (sp); 0: it does not run here. A coroutine has none for a while after a pcall in it
 * has caught an error (ldo.c, recover): its depth is the address. A main thread that its host calls
 * unprotected may run on another thread of the host's: the word has to be in luaV_execute's frame,
 * or in a register while luaV_execute runs.
 */
static __always_inline __u64 puc_unprotected(struct puc_walk *w, __u64 at)
{
	if (!at || at <= w->search.floor)
		return 0;
	if (!w->search.try.main || (at == w->regs.sp && puc_in_vm(w, w->regs.ip)) ||
	    at == w->scan.vm_ret ||
	    (w->scan.vm_ret_last && at - w->scan.vm_ret_last <= 8 * PUC_SPILLED))
		return at;
	w->search.unconfirmed = w->search.try.L;
	w->search.unconfirmed_at = at;
	return 0;
}

/* True if base_ci is that of a lua_State: the proof of one without errorJmp. */
static __always_inline int puc_has_bottom(const struct lb_mem *mem, struct puc_walk *w)
{
	__u64 func;

	return !puc_guess(mem, w, &func, sizeof(func), w->search.try.base_ci + w->puc.ci_func) &&
	       func == w->search.try.stack;
}

/*
 * True if w->search.try is nested in the best so far. A main thread without errorJmp is outside all
 * coroutines of its VM, whatever its address.
 */
static __always_inline int puc_is_better(const struct puc_walk *w)
{
	if (w->search.depth != ~0ULL && w->search.try.g == w->search.best.g) {
		if (w->search.try.main && !w->search.try.jmp)
			return 0;
		if (w->search.best.main && !w->search.best.jmp)
			return 1;
	}
	return w->search.try.depth < w->search.depth;
}

/*
 * True if a C function is one of Lua's own that runs no other lua_State: a function that it calls
 * has a CallInfo above its own. stdlib.no_resume is a hash table with linear probing.
 */
static __always_inline int puc_is_plain(const struct puc_walk *w, __u64 function)
{
	__s32 at = (__s32)(function - w->vm_start);
	__u32 i, slot = puc_no_resume_index(at);
	__u64 found = 0;

	if (!at || (__u64)(__s64)at != function - w->vm_start)
		return 0;
	LB_UNROLLED
	for (i = 0; i < PUC_NO_RESUME_PROBES;
	     i++) /* branch-free: the verifier follows each branch */
		found |=
			(__u64)(__u32)(w->stdlib.no_resume[(slot + i) & (PUC_NO_RESUME - 1)] ^ at) -
			1;
	return (int)(found >> 63);
}

/* Returns the lua_CFunction of an index from puc_look(), or 0 if it is not a C function. */
static __always_inline __u64 puc_c_function(const struct puc_walk *w, int index)
{
	const struct puc_seen *seen = &w->seen[index & (PUC_SEEN - 1)];

	if (index == PUC_LIGHT)
		return w->look.fn;
	return index >= 0 && seen->kind == LB_FRAME_C ? seen->ptr : 0;
}

/* True if a hook runs. No instruction calls it, and a host's has no CallInfo. */
static __always_inline int puc_is_hooked(const struct puc_walk *w)
{
	return w->t.hooked || w->look.status & w->puc.cist_hooked;
}

/*
 * Returns the coroutine that the current thread has resumed; 0: none. It is the argument of the
 * topmost function if that is coroutine.resume, or its upvalue if it is coroutine.wrap's function.
 * An active coroutine is resumed by one thread only. index: that of puc_look().
 */
LB_SUBPROG __u64 puc_has_resumed(const struct lb_mem *mem, struct puc_walk *w, int index)
{
	__u64 function, tv;
	const __u8 *bytes;
	__s64 at;

	if (!w)
		return 0;
	function = puc_c_function(w, index);
	at = (__s64)(function - w->vm_start);
	if (!function || !at || puc_is_hooked(w))
		return 0;
	if (at == w->stdlib.resume)
		tv = w->look.func + PUC_TV_SIZE;
	else if (at == w->stdlib.wrap && index != PUC_LIGHT)
		tv = w->seen[index & (PUC_SEEN - 1)].func + puc_closure_p(w) + 8;
	else
		return 0;
	bytes = puc_maybe(mem, w, tv, PUC_TV_SIZE);
	return bytes && (lb_byte(bytes, PUC_TV_TT) & PUC_TT_MASK) == PUC_TT_THREAD
		       ? lb_word(bytes, PUC_TV_VALUE)
		       : 0;
}

static __always_inline void puc_set_mark(struct puc_mark *mark, __u64 word)
{
	mark->word = word;
	mark->at = 0;
}

/* Resets all marks: they identify no frame of luaV_execute. */
static __always_inline void puc_mark_none(struct puc_walk *w)
{
	__u32 i;

	LB_UNROLLED
	for (i = 0; i < PUC_MARKS; i++)
		puc_set_mark(&w->weigh.mark[i], 0);
	w->weigh.result = PUC_WEIGHS_NOT;
	w->weigh.vm_at = 0;
	w->weigh.caller_at = 0;
}

/* Sets the words that identify the frame of luaV_execute that called t's topmost function. */
static __always_inline void puc_mark(const struct lb_mem *mem, struct puc_walk *w,
				     struct puc_mark *mark, const struct puc_thread *t)
{
	__u64 word = t->caller;

	if (w->puc.flags & PUC_CI_ARRAY &&
	    puc_guess(mem, w, &word, sizeof(word), word + w->puc.ci_savedpc))
		word = 0;
	puc_set_mark(&mark[0], word);
	puc_set_mark(&mark[1], t->L);
}

/*
 * Notes t, which has a C function on top, and is not the innermost by its errorJmp, as a rival of
 * the innermost. That may have called t back, unless t waits for a coroutine that it has resumed.
 * The two innermost are kept: a coroutine whose C function has called another VM, and the main
 * thread that this VM has called back.
 */
LB_SUBPROG int puc_note_rival(struct puc_walk *w, const struct puc_thread *t)
{
	struct puc_thread *r;

	if (!w || !t)
		return 0;
	r = w->search.rival;
	if (t->resumed || t->L == r[0].L)
		return 0;
	if (!r[0].L || t->depth < r[0].depth) {
		r[1] = r[0];
		r[0] = *t;
	} else if (!r[1].L || t->depth < r[1].depth) {
		r[1] = *t;
	}
	return 0;
}

/*
 * Tries a word as a lua_State. at: the address on the C stack where it was found; of a word in a
 * register, sp or the innermost return address into luaV_execute; 0: from an earlier sample.
 *
 * Returns 1 if the candidate is certain to run, as its topmost function cannot run another. It runs
 * even if the best so far has a smaller errorJmp: a C function of that one has called it back by
 * lua_call(), which sets up no lua_longjmp. While a resumer is sought the result means nothing.
 */
LB_SUBPROG int puc_consider(const struct lb_mem *mem, struct puc_walk *w, __u64 L, __u64 at)
{
	volatile __u8 *further_out,
		*may_call; /* in memory: the verifier follows no value of them */
	__u64 depth;
	__u8 fault;
	int index;

	if (!w)
		return 0;
	further_out = &w->search.further_out;
	may_call = &w->search.try_may_call;
	depth = puc_try(mem, w, L);
	if (depth == PUC_UNPROTECTED)
		depth = puc_unprotected(w, at);
	w->search.try.depth = depth;
	if (!depth)
		return 0;
	*further_out = (__u8)!puc_is_better(w);
	/* it may run only if a C function of the best has called it back */
	if (*further_out && (w->search.child || !w->search.may_call || !w->search.try.jmp))
		return 0;
	fault = w->fault; /* a candidate's failed read is no fault of the sample */
	puc_enter(w, &w->search.try);
	index = puc_look(mem, w);
	if (w->fault) /* if it is taken, puc_look() is repeated, and its fault counts */
		w->look.done = 0;
	w->fault = fault;
	if (!w->search.try.jmp && (index == PUC_NOT || !puc_has_bottom(mem, w)))
		return 0;
	*may_call = puc_is_hooked(w) ||
		    (!puc_is_lua(w, index) && !puc_is_plain(w, puc_c_function(w, index)));
	w->search.try.resumed = puc_has_resumed(mem, w, index);
	w->search.try.caller = puc_is_lua(w, index) ? w->ci : w->look.previous;
	if (*further_out & *may_call) {
		if (w->search.try.L != w->search.best.L)
			puc_note_rival(w, &w->search.try);
		return 0;
	}
	if (w->search.depth != ~0ULL && w->search.try.L != w->search.best.L)
		puc_note_rival(w, &w->search.best);
	w->search.depth = w->search.try.depth;
	w->search.best = w->search.try;
	w->search.may_call = *may_call;
	/* else the search would go on to its errorJmp, which lies further out */
	w->search.proved |= *further_out;
	puc_mark_none(w);
	puc_mark(mem, w, w->weigh.mark, &w->search.best);
	if (!w->search.child)
		w->search.follow = w->search.best.resumed;
	else if (w->search.best.resumed == w->search.child)
		w->search.proved = 1;
	return !*may_call;
}

#endif
