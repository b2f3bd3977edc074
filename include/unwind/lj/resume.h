/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * From a coroutine to the thread that resumed it, by their cframes on the C stack; and the linear
 * search for a cframe there, of at most LJ_SEARCH words, which also finds an unknown VM.
 */
#ifndef LUABPF_UNWIND_LJ_RESUME_H
#define LUABPF_UNWIND_LJ_RESUME_H

#include <unwind/lj/frame.h>

/* Fills w->head. Returns 1 when L is no lua_State, < 0 when it cannot be read. */
static __always_inline int lj_read_thread(const struct lb_mem *mem, struct lj_walk *w, __u64 L)
{
	const __u8 *bytes;

	if (L & 7 || !L || L >> 47)
		return 1;
	bytes = lj_maybe(mem, w, L, LJ_AT(w, L_READ));
	if (!bytes)
		return -1;
	if (lb_byte(bytes, LJ_AT(w, L_GCT)) != LJ_GCT_THREAD)
		return 1;
	w->head.g = lj_ref(w, bytes, LJ_AT(w, L_GLREF));
	w->head.base = lb_word(bytes, LJ_AT(w, L_BASE));
	w->head.stack = lj_ref(w, bytes, LJ_AT(w, L_STACK));
	w->head.maxstack = lj_ref(w, bytes, LJ_AT(w, L_MAXSTACK));
	w->head.cframe = lb_word(bytes, LJ_AT(w, L_CFRAME)) & LJ_CFRAME_RAWMASK;
	return 0;
}

/* True if L is a lua_State of this VM (of any, while g is 0) run by this cframe. Fills w->head. */
LB_SUBPROG int lj_owns_cframe(const struct lb_mem *mem, struct lj_walk *w, __u64 L, __u64 cframe)
{
	return w && !lj_read_thread(mem, w, L) && (!w->g || w->head.g == w->g) &&
	       w->head.cframe == cframe;
}

/* Makes L, whose head was just read, the current thread. */
static __always_inline void lj_enter_L(struct lj_walk *w, __u64 L, __u64 cframe)
{
	w->g = w->head.g;
	w->L = L;
	w->cframe = cframe;
	w->stack = w->head.stack;
	w->maxstack = w->head.maxstack;
	w->base = w->head.base;
	lj_enter_frames(w);
}

/* Starts a search for a cframe, upwards on the C stack. */
static __always_inline void lj_search_from(struct lj_walk *w, __u64 addr)
{
	w->search.addr = addr;
	w->search.lowest = addr;
	w->search.words = 0;
	w->search.in_block = 0;
	w->phase = LJ_PHASE_SEARCH;
}

/*
 * Looks the resumer up by the coroutine's cframe and VM, as the C frames between both may be large.
 * A found resumer counts if its cframe still runs it; a failed search counts for LB_FORGET samples.
 * Returns 0 with the walk set on the resumer, 1: it has to be searched for, -1: it is too far away.
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

/*
 * Goes from L, whose frames are walked, to its resumer. If the return address of L's outermost
 * cframe (PREV is 0) is in the VM, the resumer's cframe is directly above; else C code lies
 * between, and the stack above is searched.
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
	if (lj_in_vm(w, ret)) {
		if (lj_read_ref(mem, w, &L, cframe + LJ_AT(w, CFRAME_L)))
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

/* Returns the index of a cframe's word that holds its return address. */
static __always_inline __u32 lj_cframe_ret(const struct lj_walk *w)
{
	return (w->lj.cframe_size / 8 - 1u) & (LJ_CFRAME_WORDS - 1);
}

/* Starts the search for the cframe of an unknown VM, which a return address from sp on leads to. */
static __always_inline void lj_search_unknown(struct lj_walk *w, __u64 sp)
{
	__u64 page = sp & ~(__u64)(LB_PAGE - 1), addr;

	sp = (sp + 7) & ~7ULL;
	addr = sp - 8 * lj_cframe_ret(w);
	w->g = 0;
	w->L = 0;
	if (addr < page) /* that page may never have been touched */
		addr = page;
	lj_search_from(w, addr);
	w->search.lowest = sp;
}

/*
 * Returns the words between a hit's first word and the cframe. A thread that has called C has the
 * return address into the assembler VM directly below its cframe. A thread of an unknown VM may run
 * compiled code: its hit is the cframe's own return address, which leads into the library (unless
 * lua_call() has called the VM, which is a jump: see lj_search_called()).
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
		w->search.hit = from + i;
		return 1;
	}
	return 0;
}

/*
 * Returns the index of the first word of the block that may lead to a cframe: of the cframe's first
 * word, less lj_search_below(); LJ_BLOCK: none.
 */
static __always_inline __u32 lj_search_block(struct lj_walk *w)
{
	w->search.hit = LJ_BLOCK;
	lb_rare_loop(LJ_BLOCK / LJ_BLOCK_RUN, lj_block_step, &w);
	return w->search.hit;
}

/* Returns the L of a cframe that begins at word i of the block. */
static __always_inline __u64 lj_block_L(const struct lj_walk *w, __u32 i)
{
	return lj_tv_low(w, w->block[i + LJ_AT(w, CFRAME_L) / 8]);
}

/* True if prev may be a cframe's PREV: 0, or an address, even of another stack. */
static __always_inline int lj_is_prev(__u64 prev)
{
	prev &= LJ_CFRAME_RAWMASK;
	return !prev || !(prev & 7 || prev >> 47 || prev < 1 << 16);
}

enum lj_search {
	LJ_SEARCH_ON,	 /* no result so far */
	LJ_SEARCH_FOUND, /* a cframe at found_cframe, of found_L, whose head was read */
	LJ_SEARCH_OVER,	 /* the end of the stack */
	LJ_SEARCH_CUT,	 /* too far, or a page that was never touched: one may lie above */
};

/* Reads the next block of the C stack. */
static __always_inline enum lj_search lj_read_block(const struct lb_mem *mem, struct lj_walk *w)
{
	__u64 remaining = w->stack_hi - w->search.addr;
	__u32 least = w->lj.cframe_size + 8 * lj_search_below(w);
	__u32 size = remaining < sizeof(w->block) ? (__u32)remaining & ~7u : sizeof(w->block);

	if (w->search.addr + least > w->stack_hi)
		return LJ_SEARCH_OVER;
	if (w->search.words >= LJ_SEARCH)
		return LJ_SEARCH_CUT;
	/* the masks are for the verifier */
	if (mem_read(mem, w->block, size & 1023, w->search.addr)) {
		remaining = LB_PAGE - (w->search.addr & (LB_PAGE - 1));
		if (remaining >= size || remaining < least ||
		    mem_read(mem, w->block, (size = (__u32)remaining & ~7u) & 1023, w->search.addr))
			return LJ_SEARCH_CUT;
	}
	w->search.in_block = (size - least) / 8 + 1;
	if (w->search.in_block > LJ_BLOCK)
		w->search.in_block = LJ_BLOCK;
	return LJ_SEARCH_ON;
}

/* Reads the L of a cframe, which may be none. */
static __always_inline int lj_guess_L(const struct lb_mem *mem, struct lj_walk *w, __u64 *L,
				      __u64 cframe)
{
	int r = lj_guess(mem, w, L, sizeof(*L), cframe + LJ_AT(w, CFRAME_L));

	if (!r)
		*L = lj_tv_low(w, *L);
	return r;
}

static __always_inline int lj_search_found(struct lj_walk *w, __u64 L, __u64 cframe)
{
	w->search.L = L;
	w->search.cframe = cframe;
	return LJ_SEARCH_FOUND;
}

/*
 * The search for an unknown VM has come to this return address, which is not that of the cframe around it. A thread of the VM
 * may have called C from there: its cframe follows.
 */
static __always_inline int lj_search_called(const struct lb_mem *mem, struct lj_walk *w, __u64 ret,
					    __u64 cframe)
{
	__u64 L;

	if (w->L || !lj_in_vm(w, ret) || lj_guess_L(mem, w, &L, cframe) ||
	    !lj_owns_cframe(mem, w, L, cframe))
		return LJ_SEARCH_ON;
	return lj_search_found(w, L, cframe);
}

/*
 * Searches a block of the C stack for a cframe of another thread than the current one. A return
 * address leads to it, and its SAVE_L to a lua_State that names it. Other words are filtered first:
 * reading at a bad address costs a page fault.
 */
LB_SUBPROG int lj_search_on(const struct lb_mem *mem, struct lj_walk *w)
{
	enum lj_search r;
	__u64 L, cframe, ret;
	__u32 i, hit, prev;

	if (!w)
		return LJ_SEARCH_OVER;
	if (!w->search.in_block) {
		r = lj_read_block(mem, w);
		if (r)
			return r;
	}
	i = lj_search_block(w);
	if (i >= w->search.in_block) { /* the words from there on are stale */
		w->search.addr += 8ULL * w->search.in_block;
		w->search.words += w->search.in_block;
		w->search.in_block = 0;
		return LJ_SEARCH_ON;
	}
	i &= LJ_BLOCK - 1;
	prev = w->lj.cframe_prev / 8 & (LJ_CFRAME_WORDS - 1);
	hit = i + (w->L ? 0 : lj_cframe_ret(w));
	ret = w->block[hit];
	w->block[hit] = 0; /* tried */
	i += lj_search_below(w);
	cframe = w->search.addr + 8ULL * i;
	L = lj_block_L(w, i);
	if (cframe >= w->search.lowest && L != w->L && lj_is_prev(w->block[i + prev]) &&
	    lj_owns_cframe(mem, w, L, cframe))
		return lj_search_found(w, L, cframe);
	return lj_search_called(mem, w, ret, cframe + w->lj.cframe_size);
}

/*
 * C code that has called or resumed another thread of its VM continues after that is done, but
 * cur_L is still that other thread. The thread that runs has the cframe nearest to sp: if one is
 * nearer than the walk's, the walk is set on it.
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
	__u32 bytes = LB_PAGE - (__u32)(w->search.addr & (LB_PAGE - 1));

	w->search.addr += bytes;
	w->search.words += bytes / 8;
	return LJ_SEARCH_ON;
}

static long lj_nearer_step(__u32 turn, struct lj_nearer *ctx)
{
	const struct lb_mem *mem = mem_accessor(ctx->mem);
	struct lj_walk *w = ctx->w;

	(void)turn;
	if (w->search.addr >= w->cframe || w->search.words >= ctx->most)
		return 1;
	w->search.result = lj_search_on(mem, w);
	if (w->search.result == LJ_SEARCH_CUT && w->search.words < LJ_SEARCH)
		w->search.result = lj_skip_page(w);
	return w->search.result != LJ_SEARCH_ON;
}

static __always_inline int lj_is_nearer(const struct lj_walk *w)
{
	return w->search.result == LJ_SEARCH_FOUND && w->search.cframe < w->cframe;
}

/* True if the stack is searched up to the thread's cframe. The last block reaches beyond. */
static __always_inline int lj_is_searched(const struct lj_walk *w)
{
	return w->search.result == LJ_SEARCH_FOUND || w->search.addr >= w->cframe;
}

/* True if the walk's thread may not be the one that runs: it is not cur_L, or the VM has resumed
 * another one from it, whose cframe is directly below its own. */
static __always_inline int lj_is_stale(const struct lb_mem *mem, struct lj_walk *w)
{
	__u64 child = w->cframe - w->lj.cframe_size, L;

	return !w->runs ||
	       (!lj_guess_L(mem, w, &L, child) && L != w->L && lj_owns_cframe(mem, w, L, child));
}

/* Sets the walk on the thread that the cframe names, if that runs it. */
static __always_inline int lj_enter_cframe(const struct lb_mem *mem, struct lj_walk *w,
					   __u64 cframe)
{
	__u64 L;

	if (lj_guess_L(mem, w, &L, cframe) || !lj_owns_cframe(mem, w, L, cframe))
		return -1;
	lj_enter_L(w, L, cframe);
	return 0;
}

/*
 * Searches the 16 KiB below the walk's cframe: that of a thread which a small C function has resumed
 * is there. Marks the stack as cut: another one may run between two large C frames.
 */
#define LJ_FAR_BYTES (16 << 10)

LB_SUBPROG int lj_find_below(const struct lb_mem *mem, struct lj_walk *w)
{
	struct lj_nearer ctx = {.mem = mem, .w = w, .most = LJ_SEARCH};
	__u64 from;

	if (!w)
		return 0;
	from = w->cframe - LJ_FAR_BYTES;
	w->rec.stack.flags |= LB_SAMPLE_CUT;
	lj_search_from(w, from < w->search.addr ? w->search.addr : from);
	w->phase = LJ_PHASE_FRAME;
	w->search.result = LJ_SEARCH_ON;
	lb_rare_loop(LJ_NEARER_STEPS, lj_nearer_step, &ctx);
	if (lj_is_nearer(w))
		lj_enter_L(w, w->search.L, w->search.cframe);
	return 0;
}

/*
 * Continues a search that has found nothing near sp. Few C functions have frames that large, and
 * their samples come in series: the result is cached by sp, and counts if it is still a cframe. Each
 * sample of a series searches 256 KiB more, and is cut until it is known which thread runs.
 * Returns 0, 1 while that is not known, or -1 when it cannot be read.
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
	if (known->key != key || w->cache.sample - known->sample >= LB_FORGET) {
		known->key = key;
		known->sample = w->cache.sample;
		known->cframe = 0;
		known->next = w->search.addr;
	}
	if (known->cframe && !lj_enter_cframe(mem, w, known->cframe))
		return 0;
	if (known->cframe)
		known->next = w->search.addr;
	lj_search_from(w, known->next);
	w->phase = LJ_PHASE_FRAME;
	w->search.result = LJ_SEARCH_ON;
	lb_rare_loop(LB_MAX_STEPS, lj_nearer_step, &ctx);
	known->sample = w->cache.sample;
	known->next = w->search.addr;
	known->cframe = lj_is_nearer(w) ? w->search.cframe : lj_is_searched(w) ? w->cframe : 0;
	if (!known->cframe)
		return 1;
	w->fault |= lj_enter_cframe(mem, w, known->cframe) < 0;
	return -w->fault;
}

/* Returns 0, or -1 when another thread may run. */
LB_SUBPROG int lj_find_nearer(const struct lb_mem *mem, struct lj_walk *w, __u64 sp)
{
	struct lj_nearer ctx = {.mem = mem, .w = w, .most = LJ_NEARER * LJ_BLOCK};
	int r = 0;

	if (!w)
		return 0;
	lj_search_from(w, (sp + 7) & ~7ULL);
	w->phase = LJ_PHASE_FRAME;
	w->search.result = LJ_SEARCH_ON;
	lb_rare_loop(LJ_NEARER_STEPS, lj_nearer_step, &ctx);
	if (lj_is_nearer(w))
		lj_enter_L(w, w->search.L, w->search.cframe);
	else if (!lj_is_searched(w) && lj_is_stale(mem, w))
		r = lj_find_far(mem, w, sp);
	return r > 0 ? lj_find_below(mem, w) : r;
}

#endif
