/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Which lua_State runs on this thread, and where does its topmost function stand? PUC Lua has no
 * variable that tells the first, and keeps the answer to the second in a register.
 *
 * A lua_State is active on a C stack while its errorJmp points at a lua_longjmp there, its status
 * is LUA_OK, and ci is not base_ci. Those that are active are nested: each was resumed by the one
 * outside it. The innermost, with the smallest errorJmp above sp, is running.
 *
 * puc_find() looks where it costs little: an active lua_State whose topmost function is a Lua
 * function cannot be resuming another one, as lua_resume is called by C functions, which have a
 * CallInfo of their own. Only C hooks are called without one. Of Lua's own C functions, too, all
 * but few resume anything, and those that do not are known (user/target/puc_lib.c). So when the
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
#ifndef LUABPF_FIND_PUC_H
#define LUABPF_FIND_PUC_H

#include "find_puc_thread.h"

#define PUC_SCAN_MOST 8192   /* words of the C stack */
#define PUC_SCAN_OWNER 16    /* so near below a return address into luaV_execute L was pushed */
#define PUC_SCAN_BEFORE 80   /* below: what a C function needs to resume another C function */
#define PUC_SCAN_NEAR 128    /* words tried where luaV_execute was not called */
#define PUC_SCAN_ENOUGH 2048 /* none better comes so far above it */
#define PUC_SCAN_OVERLAP 8   /* words of a block that the next one begins with */
#define PUC_JMP_BUF 72	     /* bytes of lua_longjmp up to the end of saved registers */
#define PUC_GC_NEAR 64	     /* a live return address into the collector is so near sp */

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
	w->inner = w->key;
	w->rec.L = w->L;
	w->phase = PUC_PHASE_TOP;
	return 0;
}

static __always_inline void puc_forget_tried(struct puc_walk *w)
{
	__u32 i;

	for (i = 0; i < PUC_TRIED; i++)
		w->tried[i] = 0;
}

/* Sets up a search of the C stack from addr on, for lua_States whose errorJmp lies above floor. */
static __always_inline void puc_scan_from(struct puc_walk *w, __u64 addr, __u64 floor)
{
	__u64 most = w->scan_most ? w->scan_most : PUC_SCAN_MOST;

	w->scan = (addr + 7) & ~7ULL;
	w->scan_from = w->scan;
	w->scan_end = w->scan + 8 * most;
	if (w->scan_end > w->stack_hi)
		w->scan_end = w->stack_hi;
	w->near = 0;
	w->tested = 0;
	w->proved = 0;
	w->seen_to = w->scan;
	w->known_at = 0;
	w->pending = 0;
	w->hidden = !w->jmp_marked; /* else it cannot be told */
	w->unowned = 0;
	w->vm_done = 0;
	w->floor = floor;
	w->key = ~0ULL;
	w->loose = 0;
	w->vm_ret = 0;
	w->vm_ret_last = 0;
	w->in_block = 0;
	w->gc_rets = 0;
	w->pushed = 0;
	puc_forget_tried(w);
	w->phase = PUC_PHASE_SCAN;
}

/* A word that leads to nothing that can be a lua_State need not be read from. */
static __always_inline int puc_is_candidate(const struct puc_walk *w, __u64 word)
{
	return puc_is_pointer(word) && word - w->regs.sp >= w->stack_hi - w->regs.sp &&
	       word - w->text_lo >= w->text_hi - w->text_lo;
}

/* Tries all registers, which are worth as much as what lies at an address of the C stack. */
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
 * Looks for the lua_State that runs on this thread. Returns 0 when it was found, 1 when the steps
 * have to search the C stack first; these end as LB_END_OUTSIDE when there is none.
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

/* Words from addr on, up to another, are to be tried: goes back to them. */
static __always_inline int puc_scan_again(struct puc_walk *w, __u64 addr, __u64 to)
{
	w->scan = addr > w->scan_from ? addr : w->scan_from;
	w->near = to;
	w->pending = 0;
	w->hidden = !w->jmp_marked; /* else it cannot be told */
	return 1;
}

/*
 * luaV_execute's innermost frame belongs to L when L was pushed just below it, or lies in it. Most
 * often that is one that is known. Then nothing between sp and it needs to be tried, unless a
 * coroutine's lua_longjmp was seen there, whose function may be a C function, or its function is
 * the host's, which may have called another VM. Else what lies around it is tried. These return 1
 * when the search has to go back.
 */
static __always_inline int puc_owned(const struct lb_mem *mem, struct puc_walk *w, __u64 frame,
				     __u64 L)
{
	int open;

	puc_consider(mem, w, L, frame);
	w->pending = 0;
	open = w->open && frame == w->vm_ret;
	w->unowned |= open;
	if (w->best.L == L && w->key != ~0ULL && !w->hidden && !open)
		return 0;
	return puc_scan_again(w, frame - 8 * PUC_SCAN_BEFORE, frame + 8 * PUC_SPILLED);
}

static __always_inline int puc_unowned(struct puc_walk *w)
{
	__u64 frame = w->pending;

	w->unowned |= frame == w->vm_ret;
	return puc_scan_again(w, frame - 8 * PUC_SCAN_BEFORE, frame + 8 * PUC_SPILLED);
}

static __always_inline int puc_note_vm_ret(const struct lb_mem *mem, struct puc_walk *w, __u64 addr,
					   __u64 word)
{
	if (!w->vm_ret) {
		w->vm_ret = addr;
		w->vm_ret_to = word;
	}
	w->vm_ret_last = addr;
	if (w->phase != PUC_PHASE_SCAN || addr <= w->vm_done) {
		if (w->loose && addr - w->loose_at <= 8 * PUC_SCAN_OWNER)
			puc_consider(mem, w, w->loose, addr);
		return 0;
	}
	w->vm_done = addr;
	if (w->known_at && addr - w->known_at <= 8 * PUC_SCAN_OWNER)
		return puc_owned(mem, w, addr, w->known_L);
	w->pending = addr;
	return 0;
}

/*
 * Is this the last word of a coroutine's jmp_buf? lua_longjmp begins with `previous`, which is NULL
 * in its outermost; glibc mangles the saved rbp, rsp and rip, so that they look like no address.
 */
static __always_inline int puc_is_jmp_buf(const struct puc_walk *w, __u32 i)
{
	const __u64 *word = w->block;

	return i >= 8 && !word[(i - 8) & (PUC_BLOCK - 1)] &&
	       word[(i - 1) & (PUC_BLOCK - 1)] >> 47 && word[(i - 6) & (PUC_BLOCK - 1)] >> 47;
}

/*
 * pc, where a function that luaV_execute called has pushed it: the nearest to luaV_execute's frame.
 * Or in that frame, where luaV_execute's own code for some instructions needs the register for
 * something else; at other times an old pc may be left there.
 */
static __always_inline void puc_note_pc(struct puc_walk *w, __u64 addr, __u64 word)
{
	if (!puc_pc_inside(w->code_lo, w->code_size, word))
		return;
	if (!w->vm_ret ||
	    (!w->pushed && puc_in_vm(w, w->regs.ip) && addr - w->vm_ret <= 8 * PUC_SPILLED))
		w->pushed = word;
}

/* What is on the C stack at addr is neither a small number, nor passed over for now. */
static __always_inline int puc_scan_word(const struct lb_mem *mem, struct puc_walk *w, __u64 addr,
					 __u64 word)
{
	__u64 *tried;

	if (w->pending && addr > w->pending + 8 * PUC_SPILLED)
		return puc_unowned(w);
	if (puc_in_vm(w, word))
		return puc_note_vm_ret(mem, w, addr, word);
	if (!w->vm_ret && addr >= w->seen_to && addr - w->regs.sp < 8 * PUC_GC_NEAR &&
	    puc_in_gc(w, word))
		w->gc_rets++;
	if (w->phase != PUC_PHASE_SCAN) {
		puc_note_pc(w, addr, word);
		return 0;
	}
	if (word == w->child)
		return 0;
	if (word == w->known[0] || word == w->known[1]) {
		w->known_at = addr;
		w->known_L = word;
		if (w->pending)
			return puc_owned(mem, w, w->pending, word);
	}
	tried = &w->tried[word >> 4 & (PUC_TRIED - 1)];
	if (addr >= w->near || *tried == word || !puc_is_candidate(w, word))
		return 0;
	*tried = word;
	puc_consider(mem, w, word, addr);
	if (word == w->loose) /* it depends on the place */
		*tried = 0;
	return 0;
}

/* Reads words of the C stack, from w->scan on. Returns how many bytes, 0 when none can be read. */
static __always_inline __u32 puc_read_block(const struct lb_mem *mem, struct puc_walk *w)
{
	__u64 from = w->scan, size = w->scan_end - from;

	if (size > sizeof(w->block))
		size = sizeof(w->block);
	if (mem_read(mem, w->block, (__u32)size, from)) {
		size = LB_PAGE - (from & (LB_PAGE - 1)); /* the mapping ends before it */
		if (size > sizeof(w->block) || mem_read(mem, w->block, (__u32)size, from))
			return 0;
		w->scan_end = from + size;
	}
	w->scan = from + size;
	if (w->scan < w->scan_end) /* what may be a jmp_buf is seen as a whole */
		w->scan -= 8 * PUC_SCAN_OVERLAP;
	return (__u32)size;
}

/* Words below this address have to be looked at one by one, not only for what marks a place. */
static __always_inline __u64 puc_scan_slowly(const struct puc_walk *w)
{
	__u64 near_sp = w->regs.sp + 8 * PUC_GC_NEAR;

	if (w->phase != PUC_PHASE_SCAN)
		return ~0ULL;
	return !w->vm_ret && near_sp > w->near ? near_sp : w->near;
}

/*
 * Reads a block of words, and notes which of them are no small numbers. The verifier goes through
 * this loop word by word, so there is nothing else in it, and the count is in memory, where it is
 * not followed. Returns -1 when they cannot be read.
 */
LB_SUBPROG int puc_scan_read(const struct lb_mem *mem, struct puc_walk *w)
{
	volatile __u32 *hits;
	__u32 i, words;

	if (!w)
		return -1;
	w->block_at = w->scan;
	words = puc_read_block(mem, w) / 8;
	if (!words)
		return -1;
	w->block_to = w->block_at + 8 * words;
	w->in_block = 1;
	w->next_hit = 0;
	w->hits = 0;
	hits = &w->hits;
	LB_ROLLED
	for (i = 0; i < PUC_BLOCK; i++) {
		if (w->block[i & (PUC_BLOCK - 1)] < 1 << 16)
			continue;
		w->hit[*hits & (PUC_BLOCK - 1)] = (__u8)i;
		*hits += 1;
	}
	return 0;
}

/* Looks at word i of the block. Returns 1 when the search has to go back to w->scan. */
static __always_inline int puc_scan_hit(const struct lb_mem *mem, struct puc_walk *w, __u32 i)
{
	__u64 word = w->block[i & (PUC_BLOCK - 1)], addr = w->block_at + 8 * i;

	if (addr >= w->block_to)
		return 0;
	if (word >> 47) { /* no address */
		if (puc_is_jmp_buf(w, i))
			w->hidden = 1;
		return 0;
	}
	if (!puc_in_vm(w, word) && word != w->known[0] && word != w->known[1] &&
	    addr >= puc_scan_slowly(w))
		return 0;
	return puc_scan_word(mem, w, addr, word);
}

/* Looks at some of the words that were noted. */
LB_SUBPROG int puc_scan_hits(const struct lb_mem *mem, struct puc_walk *w)
{
	__u32 i;

	if (!w)
		return -1;
	LB_ROLLED
	for (i = 0; i < PUC_HITS && w->next_hit < w->hits; i++) {
		__u32 hit = w->hit[w->next_hit++ & (PUC_BLOCK - 1)];

		if (puc_scan_hit(mem, w, hit)) {
			w->in_block = 0;
			return 0;
		}
	}
	if (w->next_hit < w->hits)
		return 0;
	w->in_block = 0;
	if (w->scan > w->seen_to)
		w->seen_to = w->scan;
	if (w->pending && w->block_to > w->pending + 8 * PUC_SPILLED)
		puc_unowned(w);
	return 0;
}

/* Looks on through the C stack. Returns -1 when it cannot be read. */
static __always_inline int puc_scan_on(const struct lb_mem *mem, struct puc_walk *w)
{
	return w->in_block ? puc_scan_hits(mem, w) : puc_scan_read(mem, w);
}

/* Is it known by now which lua_State it is? */
static __always_inline int puc_scan_enough(const struct puc_walk *w)
{
	return w->proved ||
	       (w->key != ~0ULL && ((w->best.jmp && w->scan > w->key) ||
				    (w->vm_ret && w->scan > w->vm_ret + 8 * PUC_SCAN_ENOUGH)));
}

/* The C stack cannot be read on. What runs is not known then; what resumed it, perhaps. */
static __always_inline void puc_scan_fails(struct puc_walk *w)
{
	w->scan_end = w->scan;
	if (w->child)
		w->rec.stack.flags |= LB_SAMPLE_CUT;
	else
		w->fault = 1;
}

static __always_inline enum lb_more puc_step_scan(const struct lb_mem *mem, struct puc_walk *w)
{
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
	if (w->key == ~0ULL && !w->tested) {
		w->tested = 1; /* luaV_execute was not called: by C functions alone? */
		puc_scan_again(w, w->scan_from, w->scan_from + 8 * PUC_SCAN_NEAR);
		w->scan_end = w->near < w->scan_end ? w->near : w->scan_end;
		return LB_MORE;
	}
	if (w->key == ~0ULL)
		return puc_end(w, w->L ? LB_END_RESOLVED : LB_END_OUTSIDE);
	puc_take_best(w);
	return LB_MORE;
}

/* Looks through what luaV_execute has called for the Lua function on top. */
static __always_inline enum lb_more puc_step_note(const struct lb_mem *mem, struct puc_walk *w)
{
	if (w->in_block ||
	    (w->scan < w->scan_end && (!w->vm_ret || w->scan <= w->vm_ret + 8 * PUC_SPILLED))) {
		if (!puc_scan_on(mem, w))
			return LB_MORE;
		puc_scan_fails(w);
	}
	w->noted = 1;
	w->phase = PUC_PHASE_TOP;
	return LB_MORE;
}

static __always_inline void puc_note(struct puc_walk *w)
{
	puc_scan_from(w, w->regs.sp, 0);
	w->phase = PUC_PHASE_NOTE;
	if (puc_in_vm(w, w->regs.ip)) /* has called nothing: its frame begins at sp */
		w->vm_ret = w->regs.sp - 8;
}

/* Does the call that returns to addr call the collector? */
static __always_inline int puc_calls_gc(const struct lb_mem *mem, struct puc_walk *w, __u64 addr)
{
	__u8 call[8];

	if (!w->gc_lo || puc_read(mem, w, call, sizeof(call), addr - 8) || call[3] != 0xe8)
		return 0;
	return puc_in_gc(w, addr + (__s64)(__s32)lb_half(call, 4));
}

/* The greatest "next instruction" pointer into the code in any register; 0: none. */
LB_SUBPROG __u64 puc_any_pc(const struct puc_walk *w)
{
	__u64 pc = 0;
	__u32 i;

	if (!w)
		return 0;
	LB_ROLLED
	for (i = 0; i < LB_GPRS; i++) {
		__u64 r = w->gprs.r[i & (LB_GPRS - 1)];

		if (puc_pc_inside(w->code_lo, w->code_size, r) && r > pc)
			pc = r;
	}
	return pc;
}

/* Do the four bytes before pc return from a function? */
static __always_inline int puc_has_returned(const struct lb_mem *mem, struct puc_walk *w, __u64 pc)
{
	__u32 ins;

	return w->puc.op_return && !(pc & 3) && !puc_read(mem, w, &ins, sizeof(ins), pc - 4) &&
	       (ins & 0x7f) - w->puc.op_return < 3;
}

/*
 * pc is that of another function: the topmost was just called, and its caller's is in the register
 * still, as it was saved for the call; or it was just returned to.
 */
static __always_inline int puc_is_between(const struct lb_mem *mem, struct puc_walk *w, __u64 pc)
{
	__u64 saved;

	if (puc_is_pointer(w->previous) &&
	    !puc_read(mem, w, &saved, sizeof(saved), w->previous + w->puc.ci_savedpc) &&
	    saved == pc)
		return 1;
	return puc_is_pointer(pc & ~7ULL) && puc_has_returned(mem, w, pc);
}

/*
 * Where the topmost Lua function stands: by the register that holds pc in luaV_execute, which what
 * that called has left alone, or pushed. Where neither points into the code, the function is being
 * entered, or was just returned to: what is saved is right. 5.2 and 5.3 save it at each
 * instruction. Returns 0 when it is known.
 */
static __always_inline int puc_top_pc(const struct lb_mem *mem, struct puc_walk *w)
{
	__u64 pc;

	if (w->puc.flags & PUC_SAVEDPC_EXACT)
		return 0;
	if (w->popped && !(w->puc.flags & PUC_CI_ARRAY)) /* it calls */
		return 0;
	pc = w->pc_reg < LB_GPRS ? w->gprs.r[w->pc_reg & (LB_GPRS - 1)] : 0;
	if (!puc_pc_inside(w->code_lo, w->code_size, pc)) {
		if (puc_in_vm(w, w->regs.ip) && puc_is_between(mem, w, pc))
			return 0;
		pc = puc_any_pc(w); /* the code of some instructions moves it */
	}
	if (!pc && w->noted)
		pc = w->pushed;
	if (!pc)
		return -1;
	w->pc = pc;
	w->pc_known = 1;
	return 0;
}

/*
 * The collector's steps that a C function makes. What the search has passed tells; where it was not
 * needed, the words next to sp are looked at now.
 */
LB_SUBPROG int puc_c_collects(const struct lb_mem *mem, struct puc_walk *w)
{
	volatile __u64 *rets;
	__u32 i, words;

	if (!w)
		return 0;
	if (puc_in_gc(w, w->regs.ip) || w->gc_rets)
		return 1;
	if (!w->gc_lo || w->seen_to > w->scan_from)
		return 0;
	words = puc_read_block(mem, w) / 8;
	w->fault |= !words;
	rets = &w->gc_rets;
	LB_ROLLED
	for (i = 0; i < PUC_GC_NEAR; i++) {
		__u64 word = w->block[i & (PUC_BLOCK - 1)];

		if (i >= words || puc_in_vm(w, word))
			break;
		*rets += puc_in_gc(w, word);
	}
	return w->gc_rets != 0;
}

/*
 * Is the topmost CallInfo to be passed over? While a call is being set up, or a tail call moves the
 * callee down over the caller, there is no function in its slot.
 */
static __always_inline int puc_pop(struct puc_walk *w)
{
	if (w->popped || w->fault || !puc_is_pointer(w->previous) || w->previous == w->t.base_ci)
		return 0;
	w->popped = 1;
	w->ci = w->previous;
	w->looked = 0;
	return 1;
}

/*
 * Is the function in the topmost CallInfo's slot the one that was called? luaD_poscall writes the
 * first result over it before the CallInfo is left, and that may be a function, too.
 */
static __always_inline int puc_is_result(const struct puc_walk *w, int index)
{
	const struct puc_seen *seen = &w->seen[index & (PUC_SEEN - 1)];
	__u32 kind = w->status & (w->puc.cist_lua | w->puc.cist_c);

	if (w->puc.flags & PUC_CI_ARRAY) /* it is left first */
		return 0;
	if (!puc_is_lua(w, index))
		return kind != w->puc.cist_c;
	return kind != w->puc.cist_lua ||
	       !puc_pc_inside(seen->code, 4ULL * seen->sizecode, w->savedpc);
}

static __always_inline enum lb_more puc_step_top(const struct lb_mem *mem, struct puc_walk *w)
{
	const struct puc_seen *seen;
	int index = puc_look(mem, w);
	int in_gc = puc_in_gc(w, w->regs.ip), in_vm = puc_in_vm(w, w->regs.ip);

	if ((index == PUC_NOT || puc_is_result(w, index)) && puc_pop(w))
		return LB_MORE;
	if (index == PUC_NOT)
		return puc_end(w, LB_END_TORN);
	w->phase = PUC_PHASE_FRAME;
	if (!puc_is_lua(w, index)) {
		w->state = puc_c_collects(mem, w) ? 'G' : 'C';
		return LB_MORE;
	}
	seen = &w->seen[index & (PUC_SEEN - 1)];
	w->code_lo = seen->code;
	w->code_size = 4ULL * seen->sizecode;
	if (!in_vm && !in_gc && !w->noted) {
		puc_note(w);
		return LB_MORE;
	}
	if (puc_top_pc(mem, w) && !w->noted) {
		puc_note(w);
		return LB_MORE;
	}
	if (in_gc || (!in_vm && w->vm_ret && puc_calls_gc(mem, w, w->vm_ret_to)))
		w->state = 'G';
	return LB_MORE;
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
	if (!puc_has_resumed(mem, w, puc_look(mem, w)))
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
		return puc_end(w, LB_END_FAULT);
	if (previous) {
		if (previous & 7 || previous <= w->t.jmp || previous >= w->stack_hi)
			return puc_end(w, LB_END_TORN);
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
	switch (w->phase) {
	case PUC_PHASE_SCAN:
		return puc_step_scan(mem, w);
	case PUC_PHASE_NOTE:
		return puc_step_note(mem, w);
	case PUC_PHASE_TOP:
		return puc_step_top(mem, w);
	case PUC_PHASE_FRAME:
		return puc_step_frames(mem, w);
	default:
		return puc_step_jmp(mem, w);
	}
}

#endif
