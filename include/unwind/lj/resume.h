/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * From a coroutine to the thread that resumed it, by their cframes on the C stack; and the search
 * for a cframe there, which also finds a VM of which nothing is known yet.
 */
#ifndef LUABPF_UNWIND_LJ_RESUME_H
#define LUABPF_UNWIND_LJ_RESUME_H

#include <unwind/lj/unwind.h>

/* Fills w->head. Returns 1 when L is no lua_State, < 0 when it cannot be read. */
static __always_inline int lj_read_thread(const struct lb_mem *mem, struct lj_walk *w, __u64 L)
{
	const __u8 *bytes;

	if (L & 7 || !L || L >> 47)
		return 1;
	bytes = lj_maybe(mem, w, L, LJ_L_READ);
	if (!bytes)
		return -1;
	if (lb_byte(bytes, LJ_L_GCT) != LJ_GCT_THREAD)
		return 1;
	w->head.g = lb_word(bytes, LJ_L_GLREF);
	w->head.base = lb_word(bytes, LJ_L_BASE);
	w->head.stack = lb_word(bytes, LJ_L_STACK);
	w->head.maxstack = lb_word(bytes, LJ_L_MAXSTACK);
	w->head.cframe = lb_word(bytes, LJ_L_CFRAME) & LJ_CFRAME_RAWMASK;
	return 0;
}

/* Is L a lua_State of this VM (of any, while g is 0) that this cframe runs? Fills w->head. */
LB_SUBPROG int lj_owns_cframe(const struct lb_mem *mem, struct lj_walk *w, __u64 L, __u64 cframe)
{
	return w && !lj_read_thread(mem, w, L) && (!w->g || w->head.g == w->g) &&
	       w->head.cframe == cframe;
}

/* Makes L, whose head was just read, the thread in hand. */
static __always_inline void lj_enter_L(struct lj_walk *w, __u64 L, __u64 cframe)
{
	w->g = w->head.g;
	w->L = L;
	w->cframe = cframe;
	w->stack = w->head.stack;
	w->maxstack = w->head.maxstack;
	w->base = w->head.base;
	w->flags = LB_FRAME_THREAD;
	w->base_func = 0;
	w->link_known = 0;
	w->linked = 0;
	w->boundary = 0;
	w->skip = 0;
	w->joint = 0;
	w->exact = 0;
	w->pc = 0;
	w->phase = LJ_PHASE_FRAME;
}

/* Starts a search for a cframe, upwards on the C stack. */
static __always_inline void lj_search_from(struct lj_walk *w, __u64 addr)
{
	w->search = addr;
	w->searched = 0;
	w->in_block = 0;
	w->phase = LJ_PHASE_SEARCH;
}

/*
 * C frames between a coroutine and its resumer may be large. Of a coroutine whose cframe is where
 * that of the one before was, the resumer is the same if its cframe is; or too far away, for as
 * many samples as what was read counts. Returns 0 with the walk set on the resumer, 1 when it is to
 * be searched for, -1 when it is too far away.
 */
LB_SUBPROG int lj_known_resumer(const struct lb_mem *mem, struct lj_walk *w)
{
	struct lj_resumer *known;
	__u64 key;

	if (!w)
		return -1;
	key = w->cframe ^ w->g;
	w->resumed = lb_table_index(key, LJ_RESUMER_BITS);
	known = &w->resumers[w->resumed & (LJ_RESUMERS - 1)];
	if (known->key == key) {
		if (!known->L && w->cache.sample - known->sample < LB_FORGET)
			return -1;
		if (known->L != w->L && lj_owns_cframe(mem, w, known->L, known->cframe)) {
			lj_enter_L(w, known->L, known->cframe);
			return 0;
		}
	}
	known->key = key;
	known->sample = w->cache.sample;
	known->L = 0;
	return 1;
}

/* The walk ends, as the resumer is not to be found. */
static __always_inline enum lb_more lj_cut(struct lj_walk *w)
{
	w->rec.stack.flags |= LB_SAMPLE_CUT;
	return lj_stop(w, LB_STATUS_RESOLVED);
}

/*
 * L's frames are done. Its outermost cframe (PREV is 0) stands directly below the resumer's when
 * the VM itself resumed it, as its return address tells; else C code lies between, and the stack
 * above is searched.
 */
static __always_inline enum lb_more lj_step_parent(const struct lb_mem *mem, struct lj_walk *w)
{
	__u64 cframe = w->cframe, prev, ret, L;
	int r;

	if (!cframe)
		return lj_stop(w, LB_STATUS_RESOLVED);
	if (lj_read_cframe(mem, w, ~0ULL) < 0)
		return lj_stop(w, LB_STATUS_FAULT);
	prev = w->saved.prev;
	if (prev) {
		if (prev <= cframe || prev >= w->stack_hi)
			return lj_stop(w, LB_STATUS_STACK_CHANGING);
		w->cframe = prev;
		return LB_MORE;
	}
	cframe += w->lj.cframe_size;
	if (cframe + w->lj.cframe_size > w->stack_hi)
		return lj_stop(w, LB_STATUS_RESOLVED);
	if (lj_read(mem, w, &ret, sizeof(ret), cframe - 8))
		return lj_stop(w, LB_STATUS_FAULT);
	if (ret - w->vm_start < w->vm_end - w->vm_start) {
		if (lj_read(mem, w, &L, sizeof(L), cframe + LJ_CFRAME_L))
			return lj_stop(w, LB_STATUS_FAULT);
		if (L == w->L || !lj_owns_cframe(mem, w, L, cframe))
			return lj_stop(w, LB_STATUS_STACK_CHANGING);
		lj_enter_L(w, L, cframe);
		return LB_MORE;
	}
	r = lj_known_resumer(mem, w);
	if (r < 0)
		return lj_cut(w);
	if (r)
		lj_search_from(w, cframe);
	return LB_MORE;
}

/* The word of a cframe that holds its return address. */
static __always_inline __u32 lj_cframe_ret(const struct lj_walk *w)
{
	return (w->lj.cframe_size / 8 - 1u) & (LJ_CFRAME_WORDS - 1);
}

/*
 * Words from one that leads to a cframe to the cframe. A thread that has called C has the return
 * address into the assembler VM directly below its cframe. Of a VM that is not known yet the thread
 * may run compiled code: there it is the cframe's own return address, which leads into the library
 * (unless lua_call() has called the VM, which is a jump).
 */
static __always_inline __u32 lj_search_below(const struct lj_walk *w)
{
	return w->L != 0;
}

#define LJ_BLOCK_RUN 8 /* words */
static long lj_block_step(__u32 turn, struct lj_walk **walk)
{
	struct lj_walk *w = *walk;
	__u32 from = turn * LJ_BLOCK_RUN & (LJ_BLOCK - LJ_BLOCK_RUN), i;
	__u32 at = w->L ? 0 : lj_cframe_ret(w);
	__u64 lo = w->L ? w->vm_start : w->text_lo;
	__u64 size = (w->L ? w->vm_end : w->text_hi) - lo;

	LB_ROLLED
	for (i = 0; i < LJ_BLOCK_RUN; i++) {
		if (!lb_within(w->block[from + i + at], lo, size))
			continue;
		w->hit = from + i;
		return 1;
	}
	return 0;
}

/*
 * Which word of the block leads to a cframe? The number of the cframe's first word, less
 * lj_search_below(); LJ_BLOCK: none.
 */
static __always_inline __u32 lj_search_block(struct lj_walk *w)
{
	w->hit = LJ_BLOCK;
	lb_loop(LJ_BLOCK / LJ_BLOCK_RUN, lj_block_step, &w);
	return w->hit;
}

/* What a cframe says of the next outer one: there is none, or an address, if of another stack. */
static __always_inline int lj_is_prev(__u64 prev)
{
	prev &= LJ_CFRAME_RAWMASK;
	return !prev || !(prev & 7 || prev >> 47 || prev < 1 << 16);
}

enum lj_search {
	LJ_SEARCH_ON,	 /* nothing so far */
	LJ_SEARCH_FOUND, /* a cframe at found_cframe, of found_L, whose head was read */
	LJ_SEARCH_OVER,	 /* the end of the stack */
	LJ_SEARCH_CUT,	 /* too far, or a page that was never touched: there may be one behind */
};

/* Reads the next block of the C stack. */
static __always_inline enum lj_search lj_read_block(const struct lb_mem *mem, struct lj_walk *w)
{
	__u64 left = w->stack_hi - w->search;
	__u32 least = w->lj.cframe_size + 8 * lj_search_below(w);
	__u32 size = left < sizeof(w->block) ? (__u32)left & ~7u : sizeof(w->block);

	if (w->search + least > w->stack_hi)
		return LJ_SEARCH_OVER;
	if (w->searched >= LJ_SEARCH)
		return LJ_SEARCH_CUT;
	/* the masks are for the verifier */
	if (mem_read(mem, w->block, size & 1023, w->search)) {
		left = LB_PAGE - (w->search & (LB_PAGE - 1));
		if (left >= size || left < least ||
		    mem_read(mem, w->block, (size = (__u32)left & ~7u) & 1023, w->search))
			return LJ_SEARCH_CUT;
	}
	w->in_block = (size - least) / 8 + 1;
	if (w->in_block > LJ_BLOCK)
		w->in_block = LJ_BLOCK;
	return LJ_SEARCH_ON;
}

/*
 * A block of the C stack: does a cframe begin in it, of another thread than the one in hand? A
 * return address leads to it, and its SAVE_L to a lua_State that names it; what is no address
 * would cost a page fault.
 */
LB_SUBPROG int lj_search_on(const struct lb_mem *mem, struct lj_walk *w)
{
	enum lj_search r;
	__u64 L, cframe;
	__u32 i, prev;

	if (!w)
		return LJ_SEARCH_OVER;
	if (!w->in_block) {
		r = lj_read_block(mem, w);
		if (r)
			return r;
	}
	i = lj_search_block(w);
	if (i >= w->in_block) { /* what lies behind is of a block before */
		w->search += 8ULL * w->in_block;
		w->searched += w->in_block;
		w->in_block = 0;
		return LJ_SEARCH_ON;
	}
	i &= LJ_BLOCK - 1;
	prev = w->lj.cframe_prev / 8 & (LJ_CFRAME_WORDS - 1);
	w->block[i + (w->L ? 0 : lj_cframe_ret(w))] = 0; /* not again */
	i += lj_search_below(w);
	cframe = w->search + 8ULL * i;
	L = w->block[i + LJ_CFRAME_L / 8];
	if (L == w->L || !lj_is_prev(w->block[i + prev]) || !lj_owns_cframe(mem, w, L, cframe))
		return LJ_SEARCH_ON;
	w->found_L = L;
	w->found_cframe = cframe;
	return LJ_SEARCH_FOUND;
}

static __always_inline enum lb_more lj_step_search(const struct lb_mem *mem, struct lj_walk *w)
{
	struct lj_resumer *known = &w->resumers[w->resumed & (LJ_RESUMERS - 1)];
	int is_resumer = w->L != 0;

	switch ((enum lj_search)lj_search_on(mem, w)) {
	case LJ_SEARCH_ON:
		return LB_MORE;
	case LJ_SEARCH_FOUND:
		lj_enter_L(w, w->found_L, w->found_cframe);
		if (!is_resumer) /* it was the running one that was sought: lj_find_top goes on */
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
		break;
	}
	return lj_stop(w, LB_STATUS_RESOLVED);
}

/*
 * C code that has called or resumed another thread of its VM goes on when that is done, but cur_L
 * is that other thread still. So of all threads the one runs whose cframe is the nearest to sp:
 * is there one nearer than that of the walk? If so, the walk is set on it.
 */
#define LJ_NEARER 24	   /* blocks */
#define LJ_NEARER_STEPS 96 /* and words that may be a cframe's return address */

struct lj_nearer {
	const struct lb_mem *mem;
	struct lj_walk *w;
	__u32 most; /* words to search */
};

/* A page of the C stack that was never touched holds no cframe. */
static __always_inline enum lj_search lj_skip_page(struct lj_walk *w)
{
	__u32 bytes = LB_PAGE - (__u32)(w->search & (LB_PAGE - 1));

	w->search += bytes;
	w->searched += bytes / 8;
	return LJ_SEARCH_ON;
}

static long lj_nearer_step(__u32 turn, struct lj_nearer *ctx)
{
	const struct lb_mem *mem = mem_accessor(ctx->mem);
	struct lj_walk *w = ctx->w;

	(void)turn;
	if (w->search >= w->cframe || w->searched >= ctx->most)
		return 1;
	w->search_is = lj_search_on(mem, w);
	if (w->search_is == LJ_SEARCH_CUT && w->searched < LJ_SEARCH)
		w->search_is = lj_skip_page(w);
	return w->search_is != LJ_SEARCH_ON;
}

static __always_inline int lj_is_nearer(const struct lj_walk *w)
{
	return w->search_is == LJ_SEARCH_FOUND && w->found_cframe < w->cframe;
}

/* Is all searched up to the thread's cframe? Its last block reaches beyond. */
static __always_inline int lj_is_searched(const struct lj_walk *w)
{
	return w->search_is == LJ_SEARCH_FOUND || w->search >= w->cframe;
}

/* Is the thread of the walk none that runs for sure? It is not cur_L, or the VM has resumed another
 * one in it, whose cframe stands directly below its own. */
static __always_inline int lj_is_stale(const struct lb_mem *mem, struct lj_walk *w)
{
	__u64 child = w->cframe - w->lj.cframe_size, L;

	return !w->runs || (!lj_guess(mem, w, &L, sizeof(L), child + LJ_CFRAME_L) && L != w->L &&
			    lj_owns_cframe(mem, w, L, child));
}

/* Sets the walk on the thread that the cframe names, if that runs it. */
static __always_inline int lj_enter_cframe(const struct lb_mem *mem, struct lj_walk *w,
					   __u64 cframe)
{
	__u64 L;

	if (lj_guess(mem, w, &L, sizeof(L), cframe + LJ_CFRAME_L) ||
	    !lj_owns_cframe(mem, w, L, cframe))
		return -1;
	lj_enter_L(w, L, cframe);
	return 0;
}

/*
 * Goes on with a search that has found nothing near sp. Few C functions have frames that large, and
 * a sample in one of them is followed by others: the cframe that was found counts for the same
 * sp, if it is one still. Returns 0, or -1 when it is too far away.
 */
LB_SUBPROG int lj_find_far(const struct lb_mem *mem, struct lj_walk *w, __u64 sp)
{
	struct lj_nearer ctx = {.mem = mem, .w = w, .most = LJ_SEARCH};
	struct lj_resumer *known;
	__u64 key;

	if (!w)
		return -1;
	key = (sp ^ w->g) + w->cframe;
	known = &w->nearer[lb_table_index(key, LJ_RESUMER_BITS)];
	if (known->key == key && w->cache.sample - known->sample < LB_FORGET &&
	    (!known->cframe || !lj_enter_cframe(mem, w, known->cframe)))
		return known->cframe ? 0 : -1;
	lb_loop(LB_MAX_STEPS, lj_nearer_step, &ctx);
	known->key = key;
	known->sample = w->cache.sample;
	known->cframe = 0;
	if (lj_is_nearer(w))
		known->cframe = w->found_cframe;
	else if (lj_is_searched(w))
		known->cframe = w->cframe;
	if (!known->cframe)
		return -1;
	w->fault |= lj_enter_cframe(mem, w, known->cframe) < 0;
	return -w->fault;
}

/* Returns 0, or -1 when another thread may run. */
LB_SUBPROG int lj_find_nearer(const struct lb_mem *mem, struct lj_walk *w, __u64 sp)
{
	struct lj_nearer ctx = {.mem = mem, .w = w, .most = LJ_NEARER * LJ_BLOCK};

	if (!w)
		return 0;
	lj_search_from(w, (sp + 7) & ~7ULL);
	w->phase = LJ_PHASE_FRAME;
	w->search_is = LJ_SEARCH_ON;
	lb_loop(LJ_NEARER_STEPS, lj_nearer_step, &ctx);
	if (lj_is_nearer(w))
		lj_enter_L(w, w->found_L, w->found_cframe);
	else if (!lj_is_searched(w) && lj_is_stale(mem, w))
		return lj_find_far(mem, w, sp);
	return 0;
}

#endif
