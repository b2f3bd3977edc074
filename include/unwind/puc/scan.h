/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The linear search of the C stack, of PUC_SCAN_MOST words at most: for return addresses into
 * luaV_execute, for lua_States around them, and for registers that luaV_execute's callees pushed.
 * find.h says when it is needed, and why it finds the lua_State that runs.
 *
 * It goes block by block: puc_scan_read() notes the words that may be addresses, puc_scan_hits()
 * looks at these.
 */
#ifndef LUABPF_UNWIND_PUC_SCAN_H
#define LUABPF_UNWIND_PUC_SCAN_H

#include <machine/puc_stack.h>
#include <unwind/puc/thread.h>

#define PUC_SCAN_MOST 32768 /* words of the C stack: C functions may have large buffers */
#define PUC_SCAN_OWNER 16   /* words below a return address into luaV_execute where L is pushed */
#define PUC_SCAN_BEFORE 80  /* words below it that a C function needs to resume another */
#define PUC_SCAN_NEAR 128   /* words tried where luaV_execute was not called */
#define PUC_SCAN_OVERLAP 8  /* words of a block with which the next one begins */
#define PUC_GC_NEAR 64	    /* words from sp on with a live return address into the collector */
#define PUC_GC_HITS 4	    /* words looked at for it in one step */
#define PUC_GC_CALLEE 4096  /* bytes of a function that it calls, at most */

static __always_inline void puc_forget_tried(struct puc_walk *w)
{
	__u32 i;

	for (i = 0; i < PUC_TRIED; i++)
		w->scan.tried[i] = 0;
}

/* Returns the end of a search that began at scan_from, by its bound. */
static __always_inline __u64 puc_scan_reach(const struct puc_walk *w)
{
	__u64 reach = w->scan.from + 8ULL * (w->scan.most ? w->scan.most : PUC_SCAN_MOST);

	return reach < w->stack_hi ? reach : w->stack_hi;
}

/* Sets up a search of the C stack from addr on, for lua_States whose errorJmp lies above floor. */
static __always_inline void puc_scan_from(struct puc_walk *w, __u64 addr, __u64 floor)
{
	w->scan.next = (addr + 7) & ~7ULL;
	w->scan.from = w->scan.next;
	w->scan.end = puc_scan_reach(w);
	w->scan.near = 0;
	w->scan.tested = 0;
	w->search.proved = 0;
	w->scan.known_at = 0;
	w->scan.pending = 0;
	w->scan.hidden = !w->jmp_marked; /* else it is unknown */
	w->scan.unowned = 0;
	w->scan.vm_done = 0;
	w->search.floor = floor;
	w->search.depth = ~0ULL;
	w->search.unconfirmed = 0;
	w->scan.vm_ret = 0;
	w->scan.vm_ret_last = 0;
	w->block.remaining = 0;
	w->top.pushed = 0;
	w->scan.in_text = 0;
	w->search.follow = 0;
	w->search.rival[0].L = 0;
	w->search.rival[1].L = 0;
	w->scan.jmp_done = 0;
	puc_mark_none(w);
	puc_forget_tried(w);
	w->phase = PUC_PHASE_SCAN;
}

/* True if a word may point to a lua_State: it is not in the C stack, nor in the module's text. */
static __always_inline int puc_is_candidate(const struct puc_walk *w, __u64 word)
{
	return puc_is_pointer(word) && word - w->regs.sp >= w->stack_hi - w->regs.sp &&
	       !puc_in_text(w, word);
}

/* Goes back to the words [addr, to), which are to be tried as lua_States. Returns 1. */
static __always_inline int puc_scan_again(struct puc_walk *w, __u64 addr, __u64 to)
{
	w->scan.next = addr > w->scan.from ? addr : w->scan.from;
	w->scan.near = to;
	w->scan.pending = 0;
	w->scan.hidden = !w->jmp_marked; /* else it is unknown */
	return 1;
}

/*
 * A frame of luaV_execute belongs to L if L was pushed just below it, or is in it. If L is known,
 * no word between sp and the frame needs to be tried, whether L is the best or one farther out,
 * whose frame is stale or active. They are tried nevertheless
 * - if a coroutine's lua_longjmp is there, whose function may be a C function
 * - if L's function is the host's, which may have called another VM
 * Without an owner the words around the frame are tried. Both functions return 1 when the search
 * has to go back.
 */
static __always_inline int puc_owned(const struct lb_mem *mem, struct puc_walk *w, __u64 frame,
				     __u64 L)
{
	int open;

	puc_consider(mem, w, L, frame);
	w->scan.pending = 0;
	open = w->search.may_call && frame == w->scan.vm_ret;
	w->scan.unowned |= open;
	if (w->search.depth != ~0ULL && !w->scan.hidden && !open)
		return 0;
	return puc_scan_again(w, frame - 8 * PUC_SCAN_BEFORE, frame + 8 * PUC_SPILLED);
}

static __always_inline int puc_unowned(struct puc_walk *w)
{
	__u64 frame = w->scan.pending;

	w->scan.unowned |= frame == w->scan.vm_ret;
	return puc_scan_again(w, frame - 8 * PUC_SCAN_BEFORE, frame + 8 * PUC_SPILLED);
}

static __always_inline int puc_note_vm_ret(const struct lb_mem *mem, struct puc_walk *w, __u64 addr,
					   __u64 word)
{
	if (!w->scan.vm_ret) {
		w->scan.vm_ret = addr;
		w->scan.vm_ret_to = word;
	}
	w->scan.vm_ret_last = addr;
	if (w->phase != PUC_PHASE_SCAN || addr <= w->scan.vm_done) {
		if (w->search.unconfirmed && addr - w->search.unconfirmed_at <= 8 * PUC_SCAN_OWNER)
			puc_consider(mem, w, w->search.unconfirmed, addr);
		return 0;
	}
	w->scan.vm_done = addr;
	if (w->scan.known_at && addr - w->scan.known_at <= 8 * PUC_SCAN_OWNER)
		return puc_owned(mem, w, addr, w->scan.known_L);
	w->scan.pending = addr;
	return 0;
}

/*
 * Notes a pushed pc: the word nearest to luaV_execute's frame that its callees have pushed. Or one
 * in that frame, to which luaV_execute spills it for some instructions; at others it may be stale.
 */
static __always_inline void puc_note_pc(struct puc_walk *w, __u64 addr, __u64 word)
{
	if (!puc_pc_inside(w->top.code_lo, w->top.code_size, word))
		return;
	if (!w->scan.vm_ret || (!w->top.pushed && puc_in_vm(w, w->regs.ip) &&
				addr - w->scan.vm_ret <= 8 * PUC_SPILLED))
		w->top.pushed = word;
}

/* Returns a value with bit 0 set if x, which is below 2^63, is 0. */
static __always_inline __u64 puc_is_none(__u64 x)
{
	return (x - 1) >> 63;
}

/* Notes the address at which a mark was seen. Branch-free, as puc_block_step(). */
static __always_inline void puc_see_mark(struct puc_mark *mark, __u64 addr, __u64 word)
{
	__u64 is = 0 - puc_is_none(word ^ mark->word);

	mark->at = (mark->at & ~is) | (addr & is);
}

/*
 * Recognises the frame of luaV_execute that called the C function on top of a lua_State: both marks
 * are in it, or were pushed just below. They are L and the CallInfo that was L->ci; in 5.1, L and
 * the pc that was saved for the call. A stale frame has another CallInfo or L. Returns 0.
 */
LB_SUBPROG int puc_weigh(struct puc_walk *w, __u64 addr, __u64 word)
{
	__u64 from;
	__u32 i, of;

	if (!w)
		return 0;
	if (puc_in_vm(w, word))
		w->weigh.vm_at = addr;
	LB_UNROLLED
	for (i = 0; i < PUC_MARKS; i++)
		puc_see_mark(&w->weigh.mark[i], addr, word);
	if (!w->weigh.vm_at || addr - w->weigh.vm_at > 8 * PUC_SPILLED)
		return 0;
	from = w->weigh.vm_at - 8 * PUC_SCAN_OWNER;
	of = w->weigh.mark[0].at >= from && w->weigh.mark[1].at >= from	  ? PUC_WEIGHS_BEST
	     : w->weigh.mark[2].at >= from && w->weigh.mark[3].at >= from ? PUC_WEIGHS_RIVAL
	     : w->weigh.mark[4].at >= from && w->weigh.mark[5].at >= from ? PUC_WEIGHS_RIVAL + 1
									  : PUC_WEIGHS_NOT;
	if (of && !w->weigh.result) {
		w->weigh.result = (__u8)of;
		w->weigh.caller_at = addr;
	}
	return 0;
}

/* Looks at a word of the C stack that is no small number. Returns 1 when the search goes back. */
static __always_inline int puc_scan_word(const struct lb_mem *mem, struct puc_walk *w, __u64 addr,
					 __u64 word)
{
	__u64 *tried;

	puc_weigh(w, addr, word);
	if (w->phase == PUC_PHASE_WEIGH)
		return w->weigh.result != PUC_WEIGHS_NOT;
	if (w->scan.pending && addr > w->scan.pending + 8 * PUC_SPILLED)
		return puc_unowned(w);
	if (puc_in_vm(w, word))
		return puc_note_vm_ret(mem, w, addr, word);
	if (w->phase != PUC_PHASE_SCAN) {
		puc_note_pc(w, addr, word);
		return 0;
	}
	if (word == w->search.child)
		return 0;
	if (word == w->scan.known[0] || word == w->scan.known[1]) {
		w->scan.known_at = addr;
		w->scan.known_L = word;
		/* luaV_execute may have pushed its caller's register there */
		if (w->scan.pending && !w->search.may_call)
			return puc_owned(mem, w, w->scan.pending, word);
	}
	tried = &w->scan.tried[word >> 4 & (PUC_TRIED - 1)];
	if (addr >= w->scan.near || *tried == word || !puc_is_candidate(w, word))
		return 0;
	*tried = word;
	puc_consider(mem, w, word, addr);
	if (word == w->search.unconfirmed) /* the result depends on the address */
		*tried = 0;
	return 0;
}

/*
 * Reads words of the C stack, from w->scan.next on. Returns how many bytes; 0: none can be read. A page
 * that is not present was not written to: a large buffer has some. The search goes on above it.
 */
static __always_inline __u32 puc_read_block(const struct lb_mem *mem, struct puc_walk *w,
					    __u32 most)
{
	__u64 from = w->scan.next, size = w->scan.end - from;

	if (size > most)
		size = most;
	if (mem_read(mem, w->block.word, (__u32)size, from)) {
		int failed;

		size = LB_PAGE - (from & (LB_PAGE - 1));
		failed = size > sizeof(w->block.word) ||
			 mem_read(mem, w->block.word, (__u32)size, from);
		if (failed && from == w->scan.from && !w->far.part)
			return 0;
		w->scan.next = from + size;
		return failed ? 0 : (__u32)size;
	}
	w->scan.next = from + size;
	if (w->scan.next < w->scan.end) /* a jmp_buf is seen as a whole */
		w->scan.next -= 8 * PUC_SCAN_OVERLAP;
	return (__u32)size;
}

/* Returns the address below which each word is looked at, not only marks and return addresses. */
static __always_inline __u64 puc_scan_slowly(const struct puc_walk *w)
{
	return w->phase == PUC_PHASE_SCAN ? w->scan.near : ~0ULL;
}

#define PUC_BLOCK_RUN 8 /* words */
static long puc_block_step(__u32 turn, struct puc_walk **walk)
{
	struct puc_walk *w = *walk;
	__u32 hits = w->block.hits, i;

	LB_ROLLED
	for (i = 0; i < PUC_BLOCK_RUN; i++) {
		__u32 at = turn * PUC_BLOCK_RUN + i;
		__u64 word = w->block.word[at & (PUC_BLOCK - 1)];
		__u64 rsp = w->block.word[(at - 1) & (PUC_BLOCK - 1)];
		__u64 previous = w->block.word[(at - 8) & (PUC_BLOCK - 1)];

		w->block.hit[hits & (PUC_BLOCK - 1)] = (__u8)at;
		/* branch-free: the verifier would follow both branches in each turn */
		hits += 1 & (__u32)(~puc_is_none(word >> 16) &
				    (puc_is_none(word >> 47) |
				     (puc_is_none(previous >> 1 | (previous & 1)) &
				      ~puc_is_none(rsp >> 47))));
	}
	w->block.hits = hits;
	return 0;
}

/*
 * Reads a block of words, and notes those that are worth a look: no small numbers, and no bytes of
 * a buffer, which are above all addresses. A jmp_buf's last word is above them, too, and noted, as
 * puc_is_jmp_buf() recognises it. Returns -1 when they cannot be read.
 */
LB_SUBPROG int puc_scan_read(const struct lb_mem *mem, struct puc_walk *w)
{
	__u32 words;

	if (!w)
		return -1;
	w->block.at = w->scan.next;
	words = puc_read_block(mem, w, sizeof(w->block.word)) / 8;
	if (!words)
		return w->scan.next > w->block.at ? 0 : -1;
	w->block.to = w->block.at + 8 * words;
	w->block.remaining = 1;
	w->block.next_hit = 0;
	w->block.hits = 0;
	lb_loop(PUC_BLOCK / PUC_BLOCK_RUN, puc_block_step, &w);
	return 0;
}

/*
 * A coroutine's jmp_buf ends at addr. Its lua_State is in a register that setjmp saved, or in the
 * frames of luaD_rawrunprotected and lua_resume around it. Returns 1 to go back to these.
 */
LB_SUBPROG int puc_note_jmp_buf(struct puc_walk *w, __u64 addr)
{
	__u64 from;

	if (!w)
		return 0;
	from = w->scan.pending ? w->scan.pending - 8 * PUC_SCAN_BEFORE : addr - PUC_JMP_BUF;
	w->scan.hidden = 1;
	if (w->phase != PUC_PHASE_SCAN || addr <= w->scan.jmp_done || addr - 64 >= w->search.depth)
		return 0;
	w->scan.jmp_done = addr;
	return puc_scan_again(w, from, addr + 8 * PUC_SCAN_BEFORE);
}

/* Looks at word i of the block. Returns 1 when the search has to go back to w->scan.next. */
static __always_inline int puc_scan_hit(const struct lb_mem *mem, struct puc_walk *w, __u32 i)
{
	__u64 word = w->block.word[i & (PUC_BLOCK - 1)], addr = w->block.at + 8 * i;

	if (addr >= w->block.to)
		return 0;
	if (word >> 47) /* no address */
		return puc_is_jmp_buf(w, i) ? puc_note_jmp_buf(w, addr) : 0;
	w->scan.in_text += (__u32)puc_in_text(w, word);
	if (!puc_in_vm(w, word) && word != w->scan.known[0] && word != w->scan.known[1] &&
	    addr >= puc_scan_slowly(w) && word != w->weigh.mark[0].word &&
	    word != w->weigh.mark[2].word && word != w->weigh.mark[4].word)
		return 0;
	return puc_scan_word(mem, w, addr, word);
}

struct puc_hits {
	const struct lb_mem *mem;
	struct puc_walk *w;
};

static long puc_hit_step(__u32 turn, struct puc_hits *ctx)
{
	struct puc_walk *w = ctx->w;

	(void)turn;
	if (w->block.next_hit >= w->block.hits)
		return 1;
	if (!puc_scan_hit(mem_accessor(ctx->mem), w,
			  w->block.hit[w->block.next_hit++ & (PUC_BLOCK - 1)]))
		return 0;
	w->block.remaining = 0;
	return 1;
}

/* Looks at the words that were noted. */
static __always_inline int puc_scan_hits(const struct lb_mem *mem, struct puc_walk *w)
{
	struct puc_hits ctx = {.mem = mem, .w = w};

	lb_loop(PUC_BLOCK, puc_hit_step, &ctx);
	if (!w->block.remaining)
		return 0;
	w->block.remaining = 0;
	if (w->scan.pending && w->block.to > w->scan.pending + 8 * PUC_SPILLED)
		puc_unowned(w);
	return 0;
}

/* Goes on with the search, by a block. Returns -1 when the C stack cannot be read. */
static __always_inline int puc_scan_on(const struct lb_mem *mem, struct puc_walk *w)
{
	if (!w->block.remaining && puc_scan_read(mem, w))
		return -1;
	return w->block.remaining ? puc_scan_hits(mem, w) : 0;
}

/*
 * True if the search has its result: the frames of the lua_State that runs are below the innermost
 * errorJmp, and below the frame that has called the C function on top.
 */
static __always_inline int puc_scan_enough(const struct puc_walk *w)
{
	return w->search.proved ||
	       (w->search.depth != ~0ULL &&
		((w->search.best.jmp && w->scan.next > w->search.depth) ||
		 (w->weigh.caller_at && !w->scan.pending && w->scan.next > w->scan.near &&
		  w->scan.next > w->weigh.caller_at + 8 * PUC_SPILLED)));
}

/* True if the bound has ended the search: the frames that are sought may be farther. */
static __always_inline int puc_scan_missed(const struct puc_walk *w)
{
	return !puc_scan_enough(w) && puc_scan_reach(w) < w->stack_hi;
}

/*
 * True if Lua's C functions may run a lua_State here, without luaV_execute, that was not tried: no
 * jmp_buf can be recognised, or one was seen; and the C stack has return addresses into the library.
 * Above a coroutine there is that into lua_resume. It is the only one when a host's main loop called
 * lua_resume. Servers run other code most of the time: without the jmp_buf's test, a sample of
 * theirs reads 30 words' pages and takes twice as long.
 */
static __always_inline int puc_may_run(const struct puc_walk *w)
{
	if (!w->scan.hidden)
		return 0;
	if (w->search.child)
		return w->scan.in_text > 1;
	return w->scan.in_text || puc_in_text(w, w->regs.ip);
}

/* Ends a search that cannot read on: the sample is lost, or cut where the resumer is missing. */
static __always_inline void puc_scan_fails(struct puc_walk *w)
{
	w->scan.end = w->scan.next;
	if (w->outward)
		w->search.depth = ~0ULL;
	else if (w->search.child)
		w->rec.stack.flags |= LB_SAMPLE_CUT;
	else
		w->fault = 1;
}

#endif
