/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * From a VM to the one that called it. A C function of a VM may run another VM on the same C stack.
 * When the walk has come to the inner VM's outermost cframe, the C stack above is searched for the
 * nearest cframe of any VM of the same build. As with resumers (unwind/lj/resume.h), the result
 * counts for the same cframe if it is still one; so does a search that found nothing, for LB_FORGET
 * samples: a program with one VM pays for a lookup.
 */
#ifndef LUABPF_UNWIND_LJ_OUTER_H
#define LUABPF_UNWIND_LJ_OUTER_H

#include <unwind/lj/resume.h>

struct lj_outermost {
	const struct lb_mem *mem;
	struct lj_walk *w;
	__u64 cframe;
};

static long lj_outermost_step(__u32 turn, struct lj_outermost *ctx)
{
	struct lj_walk *w = ctx->w;
	__u64 prev;

	(void)turn;
	if (lj_guess(mem_accessor(ctx->mem), w, &prev, sizeof(prev),
		     ctx->cframe + w->lj.cframe_prev))
		return 1;
	prev &= LJ_CFRAME_RAWMASK;
	if (prev <= ctx->cframe || prev >= w->stack_hi)
		return 1;
	ctx->cframe = prev;
	return 0;
}

/* Returns the outermost cframe of the current thread. */
static __always_inline __u64 lj_outermost(const struct lb_mem *mem, struct lj_walk *w)
{
	struct lj_outermost ctx = {.mem = mem, .w = w, .cframe = w->cframe};

	lb_rare_loop(LB_MAX_FRAMES, lj_outermost_step, &ctx);
	return ctx.cframe;
}

/* Returns jit_base from the 24 bytes at cur_L. */
static __always_inline __u64 lj_jit_base(const struct lj_walk *w, const __u8 *bytes)
{
	if (lj_is_20(w) && !lb_half(bytes, 0)) /* stale while no thread runs compiled code */
		return 0;
	if (lj_is_32(w))
		return w->lj.jit_base - w->lj.cur_L == 4 ? lb_half(bytes, 4) : lb_half(bytes, 8);
	return w->lj.jit_base - w->lj.cur_L == 8 ? lb_word(bytes, 8) : lb_word(bytes, 16);
}

/*
 * True if a thread of VM g that has called C has its frames on the Lua stack: compiled code does not
 * run, which would have them in a snapshot.
 */
static __always_inline int lj_is_interpreted(const struct lb_mem *mem, struct lj_walk *w, __u64 g)
{
	const __u8 *bytes = lj_maybe(mem, w, g + w->lj.cur_L, 24);

	return bytes && !lj_jit_base(w, bytes);
}

/*
 * Sets the walk on L, whose head was read, after a frame that says so if it is another VM's. Returns
 * 0, or -1 when it is not certain that L has called the VM above.
 */
LB_SUBPROG int lj_enter_outer(const struct lb_mem *mem, struct lj_walk *w, __u64 L, __u64 cframe)
{
	if (!w || !lj_is_interpreted(mem, w, w->head.g) || w->rec.stack.n >= LB_MAX_FRAMES)
		return -1;
	lb_outer_join(lj_common(w), w->head.g);
	w->outward = 0;
	lj_enter_L(w, L, cframe);
	return 0;
}

/* Ends the walk, or sets it on a VM that has called this one, or on the search for it. */
LB_SUBPROG int lj_step_outer(const struct lb_mem *mem, struct lj_walk *w)
{
	struct lj_resumer *known;
	__u64 key, outermost;

	if (!w)
		return LB_STOP;
	key = w->cframe ^ w->g ^ 1; /* a resumer's is even */
	w->resumed = lb_table_index(key, LJ_RESUMER_BITS);
	known = &w->resumers[w->resumed & (LJ_RESUMERS - 1)];
	if (!w->single ||
	    (known->key == key && !known->L && w->cache.sample - known->sample < LB_FORGET))
		return lj_stop(w, LB_STATUS_RESOLVED);
	outermost = lj_outermost(mem, w);
	lb_outer_leave(lj_common(w));
	if (known->key == key && known->L && known->cframe > outermost &&
	    lj_owns_cframe(mem, w, known->L, known->cframe) &&
	    !lj_enter_outer(mem, w, known->L, known->cframe))
		return LB_MORE;
	known->key = key;
	known->sample = w->cache.sample;
	known->L = 0;
	lj_search_from(w, outermost + w->lj.cframe_size);
	return LB_MORE;
}

/* The search has come to its end. */
static __always_inline enum lb_more lj_end_outward(const struct lb_mem *mem, struct lj_walk *w,
						   enum lj_search found)
{
	struct lj_resumer *known = &w->resumers[w->resumed & (LJ_RESUMERS - 1)];

	if (found == LJ_SEARCH_FOUND) {
		if (!lj_enter_outer(mem, w, w->search.L, w->search.cframe)) {
			known->L = w->L;
			known->cframe = w->cframe;
			return LB_MORE;
		}
		known->key = 0;
	}
	return lj_stop(w, LB_STATUS_RESOLVED);
}

static __always_inline enum lb_more lj_step_search(const struct lb_mem *mem, struct lj_walk *w)
{
	struct lj_resumer *known = &w->resumers[w->resumed & (LJ_RESUMERS - 1)];
	int is_resumer = w->L != 0;
	enum lj_search found = lj_search_on(mem, w);

	if (found != LJ_SEARCH_ON && w->outward)
		return lj_end_outward(mem, w, found);
	switch (found) {
	case LJ_SEARCH_ON:
		return LB_MORE;
	case LJ_SEARCH_FOUND:
		lj_enter_L(w, w->search.L, w->search.cframe);
		if (!is_resumer) /* the search was for the running thread: lj_walk_begin goes on */
			return lj_stop(w, LB_STATUS_OUTSIDE);
		known->L = w->L;
		known->cframe = w->cframe;
		return LB_MORE;
	case LJ_SEARCH_CUT:
		if (is_resumer)
			return lj_cut(w);
		break;
	case LJ_SEARCH_OVER:
		known->key = 0;
		if (is_resumer)
			return lj_step_outer(mem, w) ? LB_STOP : LB_MORE;
		break;
	}
	return lj_stop(w, LB_STATUS_RESOLVED);
}

#endif
