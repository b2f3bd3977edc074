/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The topmost frame outside of compiled code: which function is at a base, whether a pc fits it,
 * and the meaning of BASE and PC during calls and returns in the assembler VM, in its callees, and
 * where the host enters or leaves it. The frame that a candidate leads to proves it.
 */
#ifndef LUABPF_UNWIND_LJ_TOP_H
#define LUABPF_UNWIND_LJ_TOP_H

#include <unwind/lj/frame.h>

enum lj_fit {
	LJ_FIT_NOT,   /* no function here */
	LJ_FIT_OTHER, /* a Lua function, but pc is not one of its own */
	LJ_FIT_LUA,   /* a Lua function, pc is one of its own */
	LJ_FIT_C,     /* C or fast function */
	LJ_FIT_C_OWN, /* C or fast function, and pc is its own */
};

#define LJ_RESULTS_MOST 256 /* of a call whose link is a pc: its B is a byte */

static __always_inline int lj_fits(int fit)
{
	return fit >= LJ_FIT_LUA;
}

/* Returns enum lj_fit: the kind of function at base, and whether pc is its own. */
LB_SUBPROG int lj_fit(const struct lb_mem *mem, struct lj_walk *w, __u64 base, __u64 pc)
{
	struct lj_seen *seen;
	__u64 func;
	int index;

	if (!w || !lj_may_be_base(w, base) || lj_read_func(mem, w, base, &func) ||
	    !lj_is_func(w, func))
		return LJ_FIT_NOT;
	index = lj_func_at(mem, w, lj_tv_gcptr(w, func), pc);
	if (index < 0)
		return LJ_FIT_NOT;
	seen = &w->seen[index & (LJ_SEEN - 1)];
	if (seen->kind != LB_FRAME_LUA)
		return lj_pc_inside(seen, pc) ? LJ_FIT_C_OWN : LJ_FIT_C;
	return lj_pc_inside(seen, pc) ? LJ_FIT_LUA : LJ_FIT_OTHER;
}

static __always_inline int lj_top_is(struct lj_walk *w, __u64 base, __u64 pc)
{
	w->base = base;
	w->pc = pc;
	return 0;
}

/* The pc that the VM stored in the cframe before it called C, for a frame at base; 0: none. */
LB_SUBPROG __u64 lj_saved_pc(const struct lb_mem *mem, struct lj_walk *w, __u64 base)
{
	__u64 keep, pc = 0;
	int i;

	if (!w)
		return 0;
	keep = w->cframe;

	for (i = 0; i < LJ_MAX_CPCALLS; i++) {
		int r = lj_read_cframe(mem, w, base - 8);

		if (r < 0)
			break;
		if (!r) {
			pc = w->saved.pc;
			break;
		}
		w->cframe = w->saved.prev;
	}
	w->cframe = keep;
	return pc;
}

/* The function at base has returned: its slots may be overwritten, link is given. */
static __always_inline int lj_top_done(struct lj_walk *w, __u64 base, __u64 link)
{
	w->link = link;
	w->link_known = 1;
	w->skip = 1;
	return lj_top_is(w, base, 0);
}

/*
 * A fast function that a trace was stitched around has a continuation's frame, and PC is its own:
 * the link in its slot leads to its caller.
 */
static __always_inline int lj_top_stitched(const struct lb_mem *mem, struct lj_walk *w, __u64 base)
{
	__u64 link, contpc, delta;

	if (lj_read_link(mem, w, base, &link) || (link & 7) != LJ_FRAME_CONT)
		return -1;
	delta = link & ~7ULL;
	if (delta >= base - w->stack || lj_read_contpc(mem, w, base, &contpc) ||
	    lj_fit(mem, w, base - delta, contpc) != LJ_FIT_LUA)
		return -1;
	return lj_top_done(w, base, link);
}

/*
 * Takes BASE and PC as they were stored before C was called. A fast function that has returned has
 * overwritten its own function slot with its result (FFH_RES): its caller is on top, at the stored
 * pc; or, when no Lua function has called it, the frame that the stored link leads to.
 */
static __always_inline int lj_top_stored(const struct lb_mem *mem, struct lj_walk *w)
{
	__u64 pc = lj_saved_pc(mem, w, w->base), caller;
	__u32 distance;

	if (lj_fit(mem, w, w->base, pc) != LJ_FIT_NOT)
		return lj_top_is(w, w->base, pc);
	if (pc & 3 && pc < 1 << 20 && lj_fit(mem, w, w->base - (pc & ~7ULL), 0) != LJ_FIT_NOT)
		return lj_top_done(w, w->base, pc);
	distance = lj_call_distance(mem, w, pc);
	caller = w->base - 8ULL * distance;
	if (distance && lj_fit(mem, w, caller, pc) == LJ_FIT_LUA)
		return lj_top_is(w, caller, pc);
	return -1;
}

/*
 * In the VM, which the host enters or leaves for a hook or a finalizer. That has no frame, so that
 * a Lua function is on top, at the pc where it called C: the next outer cframe has it.
 */
LB_SUBPROG int lj_top_interrupted(const struct lb_mem *mem, struct lj_walk *w, __u64 base)
{
	__u64 keep, pc;

	if (!w)
		return -1;
	keep = w->cframe;
	if (lj_fit(mem, w, base, lj_saved_pc(mem, w, base)) != LJ_FIT_OTHER ||
	    lj_read_cframe(mem, w, ~0ULL) < 0)
		return -1;
	w->cframe = w->saved.prev;
	if (w->cframe > keep && w->cframe < w->stack_hi) {
		pc = lj_saved_pc(mem, w, base);
		if (lj_fit(mem, w, base, pc) == LJ_FIT_LUA)
			return lj_top_is(w, base, pc);
	}
	w->cframe = keep;
	return -1;
}

/*
 * True if the frame at base, whose function is a C function, is not that function's any more, or not
 * yet. pc: its link, as PC has it. After a return the slot may hold a C function that is the result,
 * as next is that of pairs(). Two marks:
 * - KBASE, by which BC_RET moves the results down, has passed the first one
 * - the slot of the link holds another value: a result, or what was there before the call
 */
static __always_inline int lj_is_overwritten(const struct lb_mem *mem, struct lj_walk *w,
					     __u64 base, __u64 pc)
{
	__u64 link, moved = w->regs.kept[LB_KEPT_KBASE] - base;

	return moved - 1 < LJ_RESULTS_MOST * 8 || lj_read_link(mem, w, base, &link) || link != pc;
}

/*
 * A call or a return by a link that is a pc: PC is that link before the call has stored it in the frame,
 * and after the return has loaded it. The caller is on top; or the C or fast function at base, while the
 * frame is its own. Returns 0, or -1 if pc is no link of a Lua function's call.
 */
static __always_inline int lj_top_linked(const struct lb_mem *mem, struct lj_walk *w, __u64 base,
					 __u64 pc, int fit)
{
	__u32 distance = lj_call_distance(mem, w, pc);
	__u64 caller = base - 8ULL * distance;

	if (!distance || lj_fit(mem, w, caller, pc) != LJ_FIT_LUA)
		return -1;
	if (fit != LJ_FIT_C || lj_is_overwritten(mem, w, base, pc))
		return lj_top_is(w, caller, pc);
	return lj_top_is(w, base, 0);
}

/* True if the link in the slot of a C function's frame leads to a frame. */
LB_SUBPROG int lj_link_leads(const struct lb_mem *mem, struct lj_walk *w, __u64 base)
{
	__u64 link;
	__u32 distance;

	if (!w || lj_read_link(mem, w, base, &link))
		return 0;
	if (link & 3)
		return (link & ~7ULL) > 0 && (link & ~7ULL) < base - w->stack;
	distance = lj_call_distance(mem, w, link);
	return distance && lj_fit(mem, w, base - 8ULL * distance, link) == LJ_FIT_LUA;
}

/*
 * During a call or a return by a link of another type: the distance in its upper bits, the type in
 * the lower three. The VM computes it before it moves BASE up to the callee and stores it, and
 * loads it from the slot before it moves BASE down to the caller.
 */
static __always_inline int lj_top_typed(const struct lb_mem *mem, struct lj_walk *w,
					const struct lb_regs *regs, int fit)
{
	__u64 base = regs->base, pc = regs->pc, delta = pc & ~7ULL, link, contpc, saved;
	const __u32 frame = LJ_AT(w, FRAME_BYTES);
	const __u8 *cont;

	if (pc >= 1 << 20 || lj_read_link(mem, w, base, &link))
		return -1;
	/* cont_dispatch: BASE is the caller's again, RB still that of the metamethod; or that of
	 * the dummy which calls another function in place of a C function */
	if (pc && regs->rb - pc == base && !(pc & 7) &&
	    !lj_at(mem, w, &cont, 2 * frame, regs->rb - 2 * frame)) {
		contpc = lj_frame_link(w, cont);
		if (lj_frame_func(w, cont) == LJ_CONT_TAILCALL &&
		    lj_tv_gcptr(w, lj_frame_func(w, cont + frame)) == w->L &&
		    lj_frame_link(w, cont + frame) == (pc | LJ_FRAME_CONT))
			return lj_top_is(w, regs->rb, 0);
		if (lj_fit(mem, w, base, contpc) == LJ_FIT_LUA)
			return lj_top_is(w, base, contpc);
	}
	/* a call of a metamethod is being set up: BASE is still the caller's */
	if ((pc & 7) == LJ_FRAME_CONT && fit == LJ_FIT_OTHER &&
	    !lj_read_contpc(mem, w, base + delta, &contpc) &&
	    lj_fit(mem, w, base, contpc) == LJ_FIT_LUA)
		return lj_top_is(w, base, contpc);
	/* a return: PC is the link, or as vm_return, BC_CALLT or vm_returnp changes it */
	if (link == pc || link == (pc ^ 1) || (!(pc & 7) && link - pc < 8)) {
		w->skip = 1;
		return lj_top_is(w, base, 0);
	}
	/* the same of a fast function whose results have overwritten its link, the saved pc */
	saved = lj_saved_pc(mem, w, base);
	if (pc & 7 && (saved == pc || saved == (pc ^ 1)) && !lj_link_leads(mem, w, base))
		return lj_top_done(w, base, saved);
	/* a return of a vararg function: BASE is that of the frame proper already */
	if ((pc & 7) == LJ_FRAME_VARG && regs->rb == delta) {
		w->skip = 1;
		return lj_top_is(w, base, 0);
	}
	/* a call: BASE is the callee's already. Or a return of a fast function whose results have
	 * overwritten its link, and PC without its type, or with another: tries the frame below */
	if (!delta || delta >= base - w->stack)
		return -1;
	if (lj_fit(mem, w, base - delta, 0) >= LJ_FIT_C && lj_link_leads(mem, w, base - delta))
		return lj_top_done(w, base, pc & 7 ? pc : delta | LJ_FRAME_PCALL);
	if (((pc & 7) >> 1 == LJ_FRAME_CONT >> 1 || !(pc & 7)) &&
	    !lj_read_contpc(mem, w, base, &contpc) &&
	    lj_fit(mem, w, base - delta, contpc) == LJ_FIT_LUA)
		return lj_top_done(w, base, delta | LJ_FRAME_CONT);
	return -1;
}

/* True if the VM has just returned from C, so that BASE is not yet reloaded. The return address was
 * below sp. */
#define LJ_RELOAD 24
static __always_inline int lj_just_returned(const struct lb_mem *mem, struct lj_walk *w,
					    const struct lb_regs *regs)
{
	__u64 ret;

	return !lj_read(mem, w, &ret, sizeof(ret), regs->sp - 8) && regs->ip - ret < LJ_RELOAD;
}

/* True for a frame to which the VM returns: a C function's, or the bottom of the stack. */
static __always_inline int lj_is_c_base(const struct lb_mem *mem, struct lj_walk *w, __u64 base)
{
	return base == lj_bottom_base(w) || lj_fit(mem, w, base, 0) >= LJ_FIT_C;
}

/* Returns 0 with the walk set, if the VM returns to the frame at base; else -1. */
static __always_inline int lj_top_returning(const struct lb_mem *mem, struct lj_walk *w, __u64 base)
{
	if (lj_is_c_base(mem, w, base))
		return lj_top_is(w, base, 0);
	return lj_top_interrupted(mem, w, base);
}

static __always_inline int lj_site(const __u8 site[LB_VM_TEXT / 8], __u64 offset)
{
	return offset < LB_VM_TEXT && site[offset >> 3 & (LB_VM_TEXT / 8 - 1)] >> (offset & 7) & 1;
}

/*
 * True at the instruction by which a call stores its link: BASE is the callee's already, PC follows
 * the instruction that calls.
 */
static __always_inline int lj_storing_link(const struct lb_mem *mem, struct lj_walk *w,
					   const struct lj_build *build, const struct lb_regs *regs)
{
	return lj_site(build->link_site, regs->ip - w->vm_start) &&
	       lj_call_distance(mem, w, regs->pc);
}

/*
 * True if a jump was made whose target is not fetched yet: PC is the target's. A branch that was
 * not taken passes there, too: then the instruction before PC is that branch. False after the exit
 * from a trace, where no branch led.
 */
static __always_inline int lj_has_jumped(const struct lb_mem *mem, struct lj_walk *w,
					 const struct lj_build *build, const struct lb_regs *regs)
{
	__u64 at = regs->ip - w->vm_start;
	__u32 before[2], op;

	if (!lj_site(build->jump_site, at))
		return 0;
	if (at - build->exit_lo < build->exit_hi - build->exit_lo)
		return 1;
	if (lj_read(mem, w, before, sizeof(before), regs->pc - sizeof(before)))
		return 0;
	op = lj_op(w, before[1]);
	if (op == LJ_OP_JMP)
		return (before[0] & 0xff) >= LJ_OP_COMPARES;
	return op - LJ_OP_FORI > LJ_OP_JITERL - LJ_OP_FORI;
}

/* The Lua function at BASE runs, PC is one of its own. */
static __always_inline int lj_top_runs(const struct lb_mem *mem, struct lj_walk *w,
				       const struct lj_build *build, const struct lb_regs *regs)
{
	w->exact = (__u8)lj_has_jumped(mem, w, build, regs);
	return lj_top_is(w, regs->base, regs->pc);
}

/*
 * In the VM, in state C:
 *  - BC_FUNCC calls, or was returned to: L->base is right, PC the function's own.
 *  - The VM returns to C (vm_return): L->base is not stored yet, and may be that of any dead frame;
 *    PC is the distance to the caller's base, then that base itself, negative at first.
 *  - C enters the VM or leaves it by an error: L->base is right, PC may be any value.
 */
static __always_inline int lj_top_return_to_c(const struct lb_mem *mem, struct lj_walk *w,
					      const struct lj_build *build,
					      const struct lb_regs *regs)
{
	__u64 pc = regs->pc;
	int fit = lj_fit(mem, w, regs->base, pc);

	/* after a hook the state stays C until the next C function, although Lua code runs */
	if (fit == LJ_FIT_LUA && !lj_storing_link(mem, w, build, regs))
		return lj_top_runs(mem, w, build, regs);
	/* the VM's own frame is not made yet, or already left: registers are the host's */
	if (w->cframe - regs->sp > 16 && lj_is_c_base(mem, w, w->base))
		return lj_top_is(w, w->base, 0);
	if (lj_fit(mem, w, w->base, pc) == LJ_FIT_C_OWN)
		return lj_top_is(w, w->base, 0);
	if (fit == LJ_FIT_C_OWN)
		return lj_top_is(w, regs->base, 0);
	if (!lj_top_linked(mem, w, regs->base, pc, fit))
		return 0;
	if (!lj_top_returning(mem, w, pc) || !lj_top_returning(mem, w, lj_tv_low(w, -pc)))
		return 0;
	if (pc < (1 << 20) && !lj_top_returning(mem, w, regs->base - (pc & ~7ULL)))
		return 0;
	return lj_top_returning(mem, w, w->base) ? lj_top_stored(mem, w) : 0;
}

static __always_inline int lj_on_stack(const struct lj_walk *w, __u64 base)
{
	return base > w->stack && base <= w->maxstack;
}

/*
 * A helper was called with BASE saved in rbp. Or it has written its results over a fast function's
 * own frame, as modf() and lj_tab_next() do, whose link is still PC: the caller is on top.
 */
static __always_inline int lj_top_kept_as(const struct lb_mem *mem, struct lj_walk *w, __u64 base,
					  __u64 pc, int fit)
{
	if (lj_fits(fit))
		return lj_top_is(w, base, pc);
	if (fit != LJ_FIT_NOT || !lj_on_stack(w, base))
		return -1;
	return lj_top_linked(mem, w, base, pc, fit) ? lj_top_stitched(mem, w, base) : 0;
}

static __always_inline int lj_top_kept(const struct lb_mem *mem, struct lj_walk *w, __u64 base,
				       __u64 pc)
{
	return lj_top_kept_as(mem, w, base, pc, lj_fit(mem, w, base, pc));
}

/*
 * In the assembler VM. BASE and PC are right when they fit each other; else one of them has already
 * changed (calls, returns), or BASE's register holds an argument for C or a value of C's.
 */
static __always_inline int lj_top_interp(const struct lb_mem *mem, struct lj_walk *w,
					 const struct lj_build *build, const struct lb_regs *regs)
{
	int fit, stored;

	fit = lj_fit(mem, w, regs->base, regs->pc);
	if (fit == LJ_FIT_LUA && !lj_storing_link(mem, w, build, regs))
		return lj_top_runs(mem, w, build, regs);
	if (fit == LJ_FIT_C_OWN)
		return lj_top_is(w, regs->base, regs->pc);
	/* around the call of a helper before which BASE was saved in rbp only */
	if (fit != LJ_FIT_LUA && lj_site(build->rbp_site, regs->ip - w->vm_start) &&
	    !lj_top_kept(mem, w, regs->rb, regs->pc))
		return 0;
	stored = lj_fit(mem, w, w->base, regs->pc);
	if (lj_fits(stored) && fit != LJ_FIT_LUA && lj_just_returned(mem, w, regs))
		return lj_top_is(w, w->base, regs->pc);
	if (regs->base - w->stack < w->maxstack - w->stack + 8 * 64) {
		if (!lj_top_linked(mem, w, regs->base, regs->pc, fit))
			return 0;
		if (fit == LJ_FIT_C && regs->base == w->base)
			return lj_top_is(w, regs->base, 0);
		if (!lj_top_typed(mem, w, regs, fit))
			return 0;
		if (stored != LJ_FIT_LUA && fit == LJ_FIT_C && lj_link_leads(mem, w, regs->base))
			return lj_top_is(w, regs->base, 0);
	}
	if (lj_fits(stored))
		return lj_top_is(w, w->base, regs->pc);
	return lj_top_interrupted(mem, w, w->base) ? lj_top_stored(mem, w) : 0;
}

/* True if base and pc, which fit so, prove each other: pc is the function's own, or the link in its frame. */
static __always_inline int lj_is_frame_proved(const struct lb_mem *mem, struct lj_walk *w,
					      __u64 base, __u64 pc, int fit)
{
	__u64 link;

	return fit == LJ_FIT_LUA || fit == LJ_FIT_C_OWN ||
	       (fit == LJ_FIT_C && !lj_read_link(mem, w, base, &link) && link == pc);
}

/*
 * A helper that the VM called with BASE saved in rbp only (rawget, libm functions, ...). rbp and
 * rbx are callee-saved: they are in their registers, or among the first words that the helper
 * pushed. The steps of PHASE_LEAF try all pairs, at most LJ_LEAF_WORDS * (LJ_LEAF_WORDS + 2).
 *
 * rbp has to be proved, or no pushed word may fit: lj_tab_next() has the address of its results in rbp, BASE - 16, where
 * the caller's slots may look like a frame.
 */
#define LJ_LEAF_WORDS 8
#define LJ_LEAF_LAST (LJ_LEAF_WORDS + 1) /* rbp again */

static __always_inline int lj_top_leaf(const struct lb_mem *mem, struct lj_walk *w,
				       const struct lb_regs *regs)
{
	__u64 *words = w->block + LJ_BLOCK / 2; /* too large for BPF's stack */
	int i;

	if (mem_read(mem, words, 8 * LJ_LEAF_WORDS, w->cframe - 8 - 8 * LJ_LEAF_WORDS)) {
		w->fault = 1;
		return -1;
	}
	w->block[0] = regs->rb;
	w->block[LJ_BLOCK] = regs->pc;
	for (i = 0; i < LJ_LEAF_WORDS; i++) { /* the word pushed first has the highest address */
		w->block[1 + i] = words[LJ_LEAF_WORDS - 1 - i];
		if (i < LJ_LEAF_WORDS - 1)
			w->block[LJ_BLOCK + 1 + i] = words[LJ_LEAF_WORDS - 1 - i];
	}
	w->block[LJ_LEAF_LAST] = regs->rb;
	w->leaf.base = 0;
	w->leaf.pc = 0;
	w->leaf.fault = w->fault;
	w->phase = LJ_PHASE_LEAF;
	return 0;
}

static __always_inline enum lb_more lj_step_stored(const struct lb_mem *mem, struct lj_walk *w)
{
	w->phase = LJ_PHASE_FRAME;
	return lj_top_stored(mem, w) ? lj_stop(w, LB_STATUS_STACK_CHANGING) : LB_MORE;
}

static __always_inline enum lb_more lj_step_leaf(const struct lb_mem *mem, struct lj_walk *w)
{
	__u64 base = w->block[w->leaf.base & 15], pc = w->block[LJ_BLOCK + (w->leaf.pc & 7)];
	int fit;

	if (w->leaf.base > LJ_LEAF_LAST) {
		lj_top_stored(mem, w);
		w->phase = LJ_PHASE_FRAME;
		return LB_MORE;
	}
	fit = lj_fit(mem, w, base, pc);
	if (lj_is_frame_proved(mem, w, base, pc, fit)) {
		lj_top_is(w, base, pc);
		w->fault = w->leaf.fault; /* those that were tried before need not be readable */
		w->phase = LJ_PHASE_FRAME;
		return LB_MORE;
	}
	if (w->leaf.base && !lj_top_kept_as(mem, w, base, pc, fit)) {
		w->phase = LJ_PHASE_FRAME;
		return LB_MORE;
	}
	if (lj_on_stack(w, base) && w->leaf.pc < LJ_LEAF_WORDS - 1) {
		w->leaf.pc++;
	} else {
		w->leaf.base++;
		w->leaf.pc = 0;
	}
	return LB_MORE;
}

static __always_inline int lj_top_helper(const struct lb_mem *mem, struct lj_walk *w,
					 const struct lj_build *build, const struct lb_regs *regs)
{
	__u64 ret;

	if (lj_read(mem, w, &ret, sizeof(ret), w->cframe - 8) || !lj_in_vm(w, ret))
		return lj_top_stored(mem, w);
	if (lj_site(build->rbp_site, ret - w->vm_start) && !lj_top_leaf(mem, w, regs))
		return 0;
	/* PC was passed as an argument: lj_dispatch_ins stores it by itself, a little later */
	if (lj_fit(mem, w, w->base, lj_saved_pc(mem, w, w->base)) == LJ_FIT_OTHER &&
	    !lj_top_leaf(mem, w, regs)) {
		w->leaf.base = LJ_LEAF_LAST; /* this base, and none after it */
		w->block[LJ_LEAF_LAST] = w->base;
		return 0;
	}
	return lj_top_stored(mem, w) ? lj_top_stitched(mem, w, w->base) : 0;
}

#endif
