/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * More than 256 KiB of C frames on top of the lua_State that runs: the bound ends the search from sp
 * on. The best is then the lua_State of the sample before, or the main thread, with a C function on
 * top. It runs, unless that has resumed or called another lua_State, whose frames are
 * - near the best's own, if that C function's frame is small: puc_scan_far() goes on with the 16 KiB
 *   below the best's errorJmp
 * - between two large C frames: each sample searches a part of the gap. Until all of it was searched
 *   once, while the same C function runs at the same depth, the stack is marked as cut. From then on
 *   8 KiB from sp on are enough.
 */
#ifndef LUABPF_UNWIND_PUC_FAR_H
#define LUABPF_UNWIND_PUC_FAR_H

#include <unwind/puc/scan.h>

#define PUC_FAR_WORDS 2048    /* below the errorJmp */
#define PUC_FAR_SEARCHED 1024 /* from sp on, once all C frames above were searched */

/* Looks the gap below the best up. Returns 1 when it is known. */
static __always_inline int puc_find_gap(struct puc_walk *w)
{
	__u64 key = (w->search.best.L ^ w->search.best.ci << 1) + (w->regs.sp >> 12);
	struct puc_gap *gap;

	w->far.gap_at = lb_table_index(key << 4, PUC_GAP_BITS) & ((1 << PUC_GAP_BITS) - 1);
	gap = &w->far.gaps[w->far.gap_at & ((1 << PUC_GAP_BITS) - 1)];
	if (gap->key == key)
		return 1;
	gap->key = key;
	gap->next = 0;
	return 0;
}

static __always_inline __u64 *puc_gap_next(struct puc_walk *w)
{
	return &w->far.gaps[w->far.gap_at & ((1 << PUC_GAP_BITS) - 1)].next;
}

static __always_inline int puc_search_far(struct puc_walk *w, __u64 from, __u64 to)
{
	w->scan.from = from;
	w->scan.end = to;
	w->block.remaining = 0;
	w->scan.vm_ret = 0; /* what was seen nearer to sp was stale */
	w->phase = PUC_PHASE_SCAN;
	return puc_scan_again(w, from, 0);
}

/* Returns 1 when the search goes on, or 0 when it is done, or no lua_State is known. */
LB_SUBPROG int puc_scan_far(const struct lb_mem *mem, struct puc_walk *w)
{
	__u64 *next, from, to;

	if (!w || w->search.child)
		return 0;
	if (w->far.part == PUC_FAR_NOT) {
		if (!puc_scan_missed(w))
			return 0;
		if (w->search.depth == ~0ULL && w->single)
			puc_consider(mem, w, w->mains[w->rec.tid & (PUC_MAINS - 1)], 0);
		if (w->search.depth == ~0ULL || !w->search.best.jmp)
			return 0;
		w->far.part = PUC_FAR_GAP;
		w->far.L = w->search.best.L;
		w->far.from = puc_scan_reach(w);
		w->far.to = w->search.best.jmp - 8 * PUC_FAR_WORDS;
		w->scan.most = 0;
		puc_find_gap(w);
		next = puc_gap_next(w);
		from = *next < w->far.from ? w->far.from : *next;
		to = from + 8 * PUC_SCAN_MOST < w->far.to ? from + 8 * PUC_SCAN_MOST : w->far.to;
		if (from < w->far.to) {
			w->far.next = to;
			return puc_search_far(w, from, to);
		}
	} else if (w->far.part == PUC_FAR_GAP && w->search.best.L == w->far.L) {
		*puc_gap_next(w) = w->far.next;
	}
	if (w->far.part == PUC_FAR_CALLER || w->search.best.L != w->far.L)
		return 0;
	w->far.part = PUC_FAR_CALLER;
	return puc_search_far(w, w->far.to > w->far.from ? w->far.to : w->far.from,
			      w->search.best.jmp + PUC_JMP_BUF);
}

/* Marks the stack as cut, unless it is certain that the best runs. */
static __always_inline void puc_cut_far(struct puc_walk *w)
{
	if (w->search.best.L != w->far.L || *puc_gap_next(w) < w->far.to)
		w->rec.stack.flags |= LB_SAMPLE_CUT;
}

/* True if the C frames on top of the best were searched before: few words from sp on are enough. */
static __always_inline int puc_is_far_known(struct puc_walk *w)
{
	if (!w->search.best.jmp || w->search.best.jmp - w->regs.sp < 8 * PUC_SCAN_MOST ||
	    !puc_find_gap(w) || *puc_gap_next(w) < w->search.best.jmp - 8 * PUC_FAR_WORDS)
		return 0;
	w->scan.most = PUC_FAR_SEARCHED;
	return 1;
}

#endif
