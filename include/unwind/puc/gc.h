/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Finds out whether PUC Lua's collector runs, without unwinding the C stack. Input: the collector's
 * text (user/detect/puc/gc.c), text that it never calls (user/detect/puc/api_callers.c), and the
 * PUC_BLOCK words from sp on. The return addresses in these have to be those of a call chain:
 *
 *	sp      ...                    free()'s frame, with whatever was left in it
 *		l_alloc's call         of free()
 *		luaM_realloc_'s        of l_alloc, by pointer
 *		freeobj's              of luaM_realloc_, which has the return address seen before
 *		...
 *		lua_concat's           of luaC_step: the collector was entered here
 *		str_format's           of lua_concat: the collector calls neither
 */
#ifndef LUABPF_UNWIND_PUC_GC_H
#define LUABPF_UNWIND_PUC_GC_H

#include <unwind/puc/scan.h>

static long puc_collect_step(__u32 turn, struct puc_walk **walk)
{
	struct puc_walk *w = *walk;
	__u64 lo = w->gc_lo, size = w->gc_hi - lo;
	__u32 i;

	LB_ROLLED
	for (i = 0; i < PUC_BLOCK_RUN; i++)
		w->gc.runs |= lb_within(w->block.word[(turn * PUC_BLOCK_RUN + i) & (PUC_BLOCK - 1)],
					lo, size);
	return 0;
}

/* True if a word near sp, in the block that was just read, points into the collector: rare. */
static __always_inline int puc_may_collect(struct puc_walk *w)
{
	w->gc.runs = 0;
	lb_rare_loop(PUC_GC_NEAR / PUC_BLOCK_RUN, puc_collect_step, &w);
	return w->gc.runs != 0;
}

/* True if a word points to text that the collector never calls. Branch-free, as below. */
LB_SUBPROG int puc_is_api_caller(const struct puc_walk *w, __u64 word)
{
	__u64 at, found = 0;
	__u32 i;

	if (!w)
		return 0;
	at = word - w->vm_start;
	LB_ROLLED
	for (i = 0; i < PUC_API_CALLERS; i++) {
		const struct puc_stretch *text = &w->stdlib.api_caller[i];
		__u64 from = at - (__u64)(__s64)text->at;

		found |= (from - text->size) & ~from; /* negative: 0 <= from < size */
	}
	return found >> 63;
}

/* True if the call that returns to addr is a direct call of the collector. */
static __always_inline int puc_calls_gc(const struct lb_mem *mem, struct puc_walk *w, __u64 addr)
{
	__u64 to;

	return w->gc_lo && puc_is_return(mem, w, addr, &to) && puc_in_gc(w, to);
}

/* Kinds of a word of the C stack. */
enum puc_gc_word {
	PUC_GC_NOTHING,	   /* or a return address into the collector, which is noted */
	PUC_GC_ENTERED,	   /* return address of a call of the collector */
	PUC_GC_API_CALLER, /* of another call, into text that the collector never calls */
	PUC_GC_VM,	   /* return address into luaV_execute, which called the C function */
};

/*
 * True if the function at `to`, which the collector called, has the return address `callee`, which
 * was seen before. Else the collector's return address is stale. A function that ends with a tail
 * jump fails this; some function of the collector further up calls one that does not.
 */
static __always_inline int puc_has_called(__u64 to, __u64 callee)
{
	return callee - to < PUC_GC_CALLEE;
}

LB_SUBPROG int puc_gc_word(const struct lb_mem *mem, struct puc_walk *w, __u64 word)
{
	__u64 to, inner;

	if (!w)
		return PUC_GC_NOTHING;
	if (puc_in_vm(w, word))
		return PUC_GC_VM;
	if (!puc_in_text(w, word) || !puc_is_return(mem, w, word, &to))
		return PUC_GC_NOTHING;
	inner = w->gc.inner;
	w->gc.inner = word;
	if (!puc_in_gc(w, word))
		return puc_in_gc(w, to)		    ? PUC_GC_ENTERED
		       : puc_is_api_caller(w, word) ? PUC_GC_API_CALLER
						    : PUC_GC_NOTHING;
	/* with nothing seen: an indirect call, of the host's allocator */
	if ((inner ? puc_has_called(to, inner) : !to) || puc_has_called(to, w->gc.within))
		w->gc.runs = 1;
	w->gc.within = word;
	return PUC_GC_NOTHING;
}

/* True if the collector may run, by the words near sp. Reads these for puc_step_collects(). */
LB_SUBPROG int puc_gc_is_near(const struct lb_mem *mem, struct puc_walk *w)
{
	if (!w || !w->gc_lo)
		return 0;
	w->scan.next = w->scan.from;
	if (puc_scan_read(mem, w)) {
		w->fault = 1;
		return 0;
	}
	return puc_may_collect(w) && !puc_is_api_caller(w, w->regs.ip);
}

/* If the collector may run, lets puc_step_collects() decide. */
static __always_inline void puc_look_for_gc(const struct lb_mem *mem, struct puc_walk *w)
{
	__u64 ip = w->regs.ip;

	if (!puc_gc_is_near(mem, w))
		return;
	w->gc.runs = 0;
	w->gc.within = 0;
	w->gc.inner = puc_in_text(w, ip) ? ip : 0;
	w->phase = PUC_PHASE_COLLECTS;
}

/*
 * Returns the end of the words that count: of the block, or the innermost lua_longjmp, as what is further out has
 * called it. From 5.2 on the collector calls a finalizer by luaD_pcall, which makes one.
 */
static __always_inline __u64 puc_gc_end(const struct puc_walk *w)
{
	__u64 jmp = w->t.jmp;

	return jmp && jmp < w->block.to ? jmp : w->block.to;
}

/*
 * The collector runs if a return address into it is that of a call under way, and none nearer to sp
 * leads to text that the collector never calls. Else it is stale: a luaL_Buffer is larger than the
 * block, and begins with stale words. Where a host's function runs, whose text is elsewhere, or
 * Lua's core, it is stale if one into luaV_execute comes first: before that of the call that
 * entered the collector, and that into an API function, which may have jumped to it.
 */
static __always_inline enum lb_more puc_step_collects(const struct lb_mem *mem, struct puc_walk *w)
{
	__u64 end = puc_gc_end(w);
	__u32 i;

	LB_ROLLED
	for (i = 0; i < PUC_GC_HITS && w->block.next_hit < w->block.hits; i++) {
		__u32 hit = w->block.hit[w->block.next_hit++ & (PUC_BLOCK - 1)] & (PUC_BLOCK - 1);
		/* behind the block's end are words of an earlier one; without a branch, as above */
		__u64 at = w->block.at + 8 * hit;
		__u64 inside = 0 - (lb_loaded(at - end) >> 63);
		int is = puc_gc_word(mem, w, w->block.word[hit] & inside);

		if (is == PUC_GC_VM)
			w->gc.runs = 0;
		if (is >= PUC_GC_API_CALLER || (is == PUC_GC_ENTERED && w->gc.runs) || !inside)
			w->block.next_hit = w->block.hits;
	}
	if (w->block.next_hit < w->block.hits)
		return LB_MORE;
	if (w->gc.runs)
		w->state = 'G';
	w->phase = PUC_PHASE_FRAME;
	return LB_MORE;
}

#endif
