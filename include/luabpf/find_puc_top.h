/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The topmost function of the lua_State that runs, and where it stands: is what lies in its slot
 * what was called, which of the places that may hold pc is right, and does the collector run?
 */
#ifndef LUABPF_FIND_PUC_TOP_H
#define LUABPF_FIND_PUC_TOP_H

#include "find_puc_scan.h"

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

/* Was pc saved by the caller of the topmost function, when it called? */
static __always_inline int puc_is_callers(const struct lb_mem *mem, struct puc_walk *w, __u64 pc)
{
	__u64 saved;

	return puc_is_pointer(w->previous) &&
	       !puc_read(mem, w, &saved, sizeof(saved), w->previous + w->puc.ci_savedpc) &&
	       saved == pc;
}

/*
 * pc is that of another function: the topmost was just called, and its caller's is in the register
 * still, as it was saved for the call; or it was just returned to.
 */
static __always_inline int puc_is_between(const struct lb_mem *mem, struct puc_walk *w, __u64 pc)
{
	return puc_is_callers(mem, w, pc) ||
	       (puc_is_pointer(pc & ~7ULL) && puc_has_returned(mem, w, pc));
}

/*
 * L->savedpc of 5.1 is not that of the topmost function: it is set a moment after L->ci, when a
 * function is called, which begins then, and when one returns to where it was called.
 */
static __always_inline void puc_mend_savedpc(const struct lb_mem *mem, struct puc_walk *w)
{
	w->pc = puc_is_callers(mem, w, w->pc) ? w->code_lo : w->savedpc;
}

/* Does fetch_reg tell the instruction? */
static __always_inline int puc_fetches(const struct puc_walk *w)
{
	__u64 found = 0;
	__u32 i;

	LB_UNROLLED
	for (i = 0; i < PUC_FETCHES; i++)
		found |= lb_within(w->regs.ip, w->vm_start + w->fetch[i].at, w->fetch[i].size);
	return found != 0;
}

/*
 * "Next instruction" by the registers that were learned; 0: by none. Where luaV_execute is about to
 * fetch an instruction, that is the one it stands at: after a jump, pc's register has what stands
 * before it in the text, or what would have come without, until it is stepped.
 */
static __always_inline __u64 puc_register_pc(const struct puc_walk *w)
{
	__u64 at = w->gprs.r[w->fetch_reg & (LB_GPRS - 1)];

	if (lb_within(at, w->code_lo, w->code_size) & !(at & 3) && puc_fetches(w))
		return at + 4;
	return w->pc_reg < LB_GPRS ? w->gprs.r[w->pc_reg & (LB_GPRS - 1)] : 0;
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
	pc = puc_register_pc(w);
	if (!puc_pc_inside(w->code_lo, w->code_size, pc)) {
		if (puc_in_vm(w, w->regs.ip) && puc_is_between(mem, w, pc))
			return 0;
		pc = puc_any_pc(w); /* the code of some instructions moves it */
		/* fetch_reg may still have the instruction itself: one behind what was pushed */
		if (w->noted && (!pc || (w->fetch[0].size && w->pushed > pc)))
			pc = w->pushed;
	}
	if (!pc)
		return -1;
	w->pc = pc;
	w->pc_known = 1;
	return 0;
}

/*
 * Leads any of the words near sp, which were just read, into the collector? Seldom one does. There
 * is nothing else in this loop, and its outcome is in memory, where the verifier does not follow
 * it.
 */
static __always_inline int puc_may_collect(struct puc_walk *w)
{
	__u64 lo = w->gc_lo, size = w->gc_hi - lo;
	__u32 i;

	w->collects = 0;
	LB_ROLLED
	for (i = 0; i < PUC_GC_NEAR; i++)
		if (w->block[i & (PUC_BLOCK - 1)] - lo < size)
			w->collects = 1;
	return w->collects != 0;
}

/*
 * Does none, as can be seen where they lie? Most often so: then they need not be copied. As above,
 * there is nothing else in the loop.
 */
static __always_inline int puc_none_collects(const struct lb_mem *mem, struct puc_walk *w)
{
	__u64 lo = w->gc_lo, size = w->gc_hi - lo, place;
	__u32 i;

	if (w->scan_end - w->scan < 8 * PUC_GC_NEAR)
		return 0;
	place = lb_place_of(mem, &w->cache, 8 * PUC_GC_NEAR, w->scan);
	if (!place)
		return 0;
	w->collects = 0;
	LB_ROLLED
	for (i = 0; i < PUC_GC_NEAR; i++)
		if (lb_word(mem_place(place + 8 * i), 0) - lo < size)
			w->collects = 1;
	return !w->collects;
}

/* Does a word lead to text that the collector never calls? No branch for each, as below. */
LB_SUBPROG int puc_is_clients(const struct puc_walk *w, __u64 word)
{
	__u64 at, found = 0;
	__u32 i;

	if (!w)
		return 0;
	at = word - w->vm_start;
	LB_ROLLED
	for (i = 0; i < PUC_CLIENTS; i++) {
		const struct puc_stretch *text = &w->own.client[i];
		__u64 from = at - (__u64)(__s64)text->at;

		found |= (from - text->size) & ~from; /* negative: 0 <= from < size */
	}
	return found >> 63;
}

/*
 * Bit mod * 8 + rm is set where `ff /2` (call by pointer) with this ModRM byte has a length of
 * `size`: displacement and SIB byte, as the processor's manual has them. A REX byte before it does
 * not count.
 */
static __always_inline __u32 puc_call_modrm(__u32 size)
{
	return size == 2   ? 0xff0000cf /* registers, (%reg) */
	       : size == 3 ? 0x0000ef10 /* 8 bits, (%rsp) and indexed */
	       : size == 4 ? 0x00001000 /* both */
	       : size == 6 ? 0x00ef0020 /* 32 bits, %rip */
	       : size == 7 ? 0x00100000 /* 32 bits, indexed */
			   : 0;
}

/*
 * Is there a call before addr, so that it may be a return address, and no function's? By e8: then
 * *to is where it goes. No branch for each length: the verifier would go all ways.
 */
static __always_inline int puc_is_return(const struct lb_mem *mem, struct puc_walk *w, __u64 addr,
					 __u64 *to)
{
	__u64 text, found = 0;
	__u32 i;

	*to = 0;
	if (puc_read(mem, w, &text, sizeof(text), addr - 8))
		return 0;
	if ((text >> 24 & 0xff) == 0xe8) {
		*to = addr + (__s64)(__s32)(text >> 32);
		return 1;
	}
	LB_UNROLLED
	for (i = 2; i < 8; i++) {
		__u64 call = text >> 8 * (8 - i), modrm = call >> 8;
		__u64 is = ((call & 0x38ff) ^ 0x10ff) - 1; /* negative: ff /2 */

		found |= is >> 63 & puc_call_modrm(i) >> ((modrm >> 3 & 0x18) | (modrm & 7));
	}
	return found & 1;
}

/* What a word of the C stack is to the question whether the collector runs. */
enum puc_gc_word {
	PUC_GC_NOTHING, /* or it returns into the collector: that is noted */
	PUC_GC_ENTERED, /* from a call of the collector */
	PUC_GC_CLIENT,	/* from any other call, to what the collector does not call */
	PUC_GC_VM,	/* to luaV_execute, which called the C function */
};

/*
 * Of a return address into the collector: did that call what returns to `callee`, which was seen
 * before? Else it was left there by another call. A function that ends with a jump to another is
 * not known by this; some function of the collector further up calls one that does not.
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
	if (!lb_within(word, w->text_lo, w->text_hi - w->text_lo) ||
	    !puc_is_return(mem, w, word, &to))
		return PUC_GC_NOTHING;
	inner = w->gc_inner;
	w->gc_inner = word;
	if (!puc_in_gc(w, word))
		return puc_in_gc(w, to)		 ? PUC_GC_ENTERED
		       : puc_is_clients(w, word) ? PUC_GC_CLIENT
						 : PUC_GC_NOTHING;
	/* with nothing seen: by pointer, to an allocator that is the host's */
	if ((inner ? puc_has_called(to, inner) : !to) || puc_has_called(to, w->gc_within))
		w->collects = 1;
	w->gc_within = word;
	return PUC_GC_NOTHING;
}

/* May the collector run, near sp? The words there are read then, for puc_step_collects(). */
LB_SUBPROG int puc_gc_is_near(const struct lb_mem *mem, struct puc_walk *w)
{
	if (!w || !w->gc_lo)
		return 0;
	w->scan = w->scan_from;
	if (puc_none_collects(mem, w))
		return 0;
	if (puc_scan_read(mem, w)) {
		w->fault = 1;
		return 0;
	}
	return puc_may_collect(w) && !puc_is_clients(w, w->regs.ip);
}

/* The step that follows tells, where that is the question. */
static __always_inline void puc_look_for_gc(const struct lb_mem *mem, struct puc_walk *w)
{
	__u64 ip = w->regs.ip;

	if (!puc_gc_is_near(mem, w))
		return;
	w->collects = 0;
	w->gc_within = 0;
	w->gc_inner = lb_within(ip, w->text_lo, w->text_hi - w->text_lo) ? ip : 0;
	w->phase = PUC_PHASE_COLLECTS;
}

/*
 * A return address into the collector lies near sp, from a call of what runs, and nothing nearer
 * leads to text that the collector does not call. Else that is what runs, and the collector was
 * here before: a luaL_Buffer is larger than all that is looked through, and begins with what was
 * left there. Where a host's function runs, whose text is elsewhere, or Lua's core, that is told by
 * what is missing: the call that entered the collector, or the return from the API's function,
 * which may have jumped to it.
 */
static __always_inline enum lb_more puc_step_collects(const struct lb_mem *mem, struct puc_walk *w)
{
	__u32 i;

	LB_ROLLED
	for (i = 0; i < PUC_GC_HITS && w->next_hit < w->hits; i++) {
		__u32 hit = w->hit[w->next_hit++ & (PUC_BLOCK - 1)] & (PUC_BLOCK - 1);
		int is = puc_gc_word(mem, w, w->block[hit]);

		if (is == PUC_GC_VM)
			w->collects = 0;
		if (is >= PUC_GC_CLIENT || (is == PUC_GC_ENTERED && w->collects) ||
		    w->block_at + 8 * hit >= w->block_to)
			w->next_hit = w->hits;
	}
	if (w->next_hit < w->hits)
		return LB_MORE;
	if (w->collects)
		w->state = 'G';
	w->phase = PUC_PHASE_FRAME;
	return LB_MORE;
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
		w->state = in_gc ? 'G' : 'C';
		if (!in_gc)
			puc_look_for_gc(mem, w);
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
	if (w->puc.flags & PUC_CI_ARRAY && !puc_pc_inside(w->code_lo, w->code_size, w->pc))
		puc_mend_savedpc(mem, w);
	if (in_gc || (!in_vm && w->vm_ret && puc_calls_gc(mem, w, w->vm_ret_to)))
		w->state = 'G';
	else if (!in_vm) /* luaD_precall of 5.2 calls the collector, too */
		puc_look_for_gc(mem, w);
	return LB_MORE;
}

#endif
