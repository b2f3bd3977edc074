/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * From registers to the topmost Lua frame: which lua_State runs on this thread, where is its BASE,
 * at which pc does it stand. This is where a sample is won or lost, as each part of the VM keeps
 * the truth elsewhere (vm_x64.dasc):
 *
 *   assembler VM      BASE and PC in registers; for a few instructions around calls and returns
 * only one of the two has changed yet helper in C       L->base and SAVE_PC were stored before the
 * call; or, at some call sites, BASE was only kept in rbp C function, GC    L->base compiled code
 * jit_base and the snapshot left of the instruction pointer
 *
 * lj_find_vm() says whether VM g runs on this thread, lj_find_top() sets the walk on its topmost
 * frame.
 */
#ifndef LUABPF_FIND_LJ_H
#define LUABPF_FIND_LJ_H

#include "walk_lj_snap.h"

/* ~LJ_VMST_* (lj_obj.h); compiled code: the trace number */
enum {
	LJ_VMST_INTERP = -1,
	LJ_VMST_C = -2,
	LJ_VMST_GC = -3,
	LJ_VMST_EXIT = -4,
	LJ_VMST_RECORD = -5,
	LJ_VMST_OPT = -6,
	LJ_VMST_ASM = -7,
};

static __always_inline __u8 lj_state_letter(__s32 vmstate)
{
	return vmstate > 0			  ? 'N'
	       : vmstate == LJ_VMST_INTERP	  ? 'I'
	       : vmstate == LJ_VMST_C || !vmstate ? 'C' /* 0: not set yet, lua_newstate runs */
	       : vmstate == LJ_VMST_GC		  ? 'G'
						  : 'J';
}

static __always_inline int lj_in_vm(const struct lj_walk *w, __u64 ip)
{
	return ip - w->vm_start < w->vm_end - w->vm_start;
}

/* Words above sp that an epilogue of the VM may have before it, and as much again as a cframe's L.
 */
#define LJ_SWITCH 16

/*
 * Is g a VM that runs on this C stack? Its running thread's cframe lies above sp, in the same
 * mapping. While the assembler VM switches coroutines cur_L is behind; then the cframe at sp, or
 * the few words above that its epilogue is about to pop, tells. Returns 0 and sets L, cframe,
 * vmstate, base.
 */
LB_SUBPROG int lj_find_vm(const struct lb_mem *mem, struct lj_walk *w, const struct lb_regs *regs,
			  __u64 g)
{
	__u64 L, cframe;
	int i;

	if (!w || !regs)
		return -1;
	w->g = 0;
	w->trace = 0;
	w->fault = 0; /* another VM that was tried before may be closed */
	if (g & 7 || !g || g >> 47 || lj_read(mem, w, &L, sizeof(L), g + w->lj.cur_L))
		return -1;
	if (L & 7 || !L || L >> 47 || lj_read(mem, w, w->scratch, LJ_L_READ, L) ||
	    lb_byte(w->scratch, LJ_L_GCT) != LJ_GCT_THREAD || lb_word(w->scratch, LJ_L_GLREF) != g)
		return -1;
	cframe = lb_word(w->scratch, LJ_L_CFRAME) & LJ_CFRAME_RAWMASK;
	w->g = g;
	lj_enter_L(w, L, cframe);
	if (lj_read(mem, w, &w->vmstate, sizeof(w->vmstate), g + w->lj.vmstate) ||
	    lj_read(mem, w, &w->jit_base, sizeof(w->jit_base), g + w->lj.jit_base))
		return -1;
	w->state = lj_state_letter(w->vmstate);
	if (lj_in_vm(w, regs->ip) && w->vmstate == LJ_VMST_INTERP && cframe - regs->sp > 16) {
		if (mem_read(mem, w->block, 8 * LJ_SWITCH, regs->sp)) {
			w->fault = 1;
			return -1;
		}
		for (i = 0; i < LJ_SWITCH - 2; i++) {
			cframe = regs->sp + 8 * i;
			if (w->block[i + 2] && lj_owns_cframe(mem, w, w->block[i + 2], cframe)) {
				lj_enter_L(w, w->block[i + 2], cframe);
				return 0;
			}
		}
		cframe = w->cframe;
	}
	return cframe >= regs->sp && cframe + LJ_CFRAME_SIZE <= w->stack_hi ? 0 : -1;
}

enum lj_fit {
	LJ_FIT_NOT,   /* no function here */
	LJ_FIT_OTHER, /* a Lua function, but pc is not one of its own */
	LJ_FIT_LUA,   /* a Lua function, pc is one of its own */
	LJ_FIT_C,     /* C or fast function */
	LJ_FIT_C_OWN, /* ditto, and pc is its own */
};

static __always_inline int lj_fits(int fit)
{
	return fit >= LJ_FIT_LUA;
}

/* What stands at base, and does pc fit it? */
LB_SUBPROG int lj_fit(const struct lb_mem *mem, struct lj_walk *w, __u64 base, __u64 pc)
{
	struct lj_seen *seen;
	__u64 func;
	int index;

	if (!w || base & 7 || base <= w->stack + 8 || base > w->maxstack + 8 * 64 ||
	    lj_read(mem, w, &func, sizeof(func), base - 16) || !lj_is_func(func))
		return LJ_FIT_NOT;
	index = lj_func(mem, w, LJ_TV_GCPTR(func));
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

/* The pc that the VM stored in the cframe before it called C, for a frame at base. */
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
			pc = lb_word(w->scratch, LJ_CFRAME_PC);
			break;
		}
		w->cframe = lb_word(w->scratch, LJ_CFRAME_PREV) & LJ_CFRAME_RAWMASK;
	}
	w->cframe = keep;
	return pc;
}

/*
 * What was stored before C was called. A fast function that is done has overwritten its own
 * function slot with its result (FFH_RES): its caller is on top, at the pc that was stored.
 */
static __always_inline int lj_top_stored(const struct lb_mem *mem, struct lj_walk *w)
{
	__u64 pc = lj_saved_pc(mem, w, w->base), caller;
	__u32 distance;

	if (lj_fit(mem, w, w->base, pc) != LJ_FIT_NOT)
		return lj_top_is(w, w->base, pc);
	distance = lj_call_distance(mem, w, pc);
	caller = w->base - 8ULL * distance;
	if (distance && lj_fit(mem, w, caller, pc) == LJ_FIT_LUA)
		return lj_top_is(w, caller, pc);
	return -1;
}

/*
 * In the VM, which the host enters or leaves: on behalf of a hook or a finalizer, for which there
 * is no frame, so that a Lua function is on top. It stands where it called C, as the next outer
 * cframe knows.
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
	w->cframe = lb_word(w->scratch, LJ_CFRAME_PREV) & LJ_CFRAME_RAWMASK;
	if (w->cframe > keep && w->cframe < w->stack_hi) {
		pc = lj_saved_pc(mem, w, base);
		if (lj_fit(mem, w, base, pc) == LJ_FIT_LUA)
			return lj_top_is(w, base, pc);
	}
	w->cframe = keep;
	return -1;
}

/*
 * A call or a return by a link that is a pc is under way: before a call has stored its link, and
 * after a return has loaded it, PC is that link. The caller is on top, or a fast function on its
 * way out.
 */
static __always_inline int lj_top_linked(const struct lb_mem *mem, struct lj_walk *w, __u64 base,
					 __u64 pc, int fit)
{
	__u32 distance = lj_call_distance(mem, w, pc);
	__u64 caller = base - 8ULL * distance;

	if (!distance || lj_fit(mem, w, caller, pc) != LJ_FIT_LUA)
		return -1;
	if (fit != LJ_FIT_C)
		return lj_top_is(w, caller, pc);
	w->link = pc; /* its slot may hold a result by now */
	w->link_known = 1;
	return lj_top_is(w, base, 0);
}

/* Does the link in the slot of a C function's frame lead to a frame? */
static __always_inline int lj_link_leads(const struct lb_mem *mem, struct lj_walk *w, __u64 base)
{
	__u64 link;
	__u32 distance;

	if (lj_read(mem, w, &link, sizeof(link), base - 8))
		return 0;
	if (link & 3)
		return (link & ~7ULL) > 0 && (link & ~7ULL) < base - w->stack;
	distance = lj_call_distance(mem, w, link);
	return distance && lj_fit(mem, w, base - 8ULL * distance, link) == LJ_FIT_LUA;
}

/*
 * Ditto, by a link of another type: a small number, the distance in its upper bits, the type in the
 * lower three. The VM makes it before it moves BASE up to the callee and stores it, and takes it
 * out of the slot before it moves BASE down to the caller.
 */
static __always_inline int lj_top_typed(const struct lb_mem *mem, struct lj_walk *w,
					const struct lb_regs *regs, int fit)
{
	__u64 base = regs->base, pc = regs->pc, delta = pc & ~7ULL, link, contpc, saved;

	if (pc >= 1 << 20 || lj_read(mem, w, &link, sizeof(link), base - 8))
		return -1;
	/* cont_dispatch: BASE is the caller's again, RB still that of the metamethod */
	if (regs->rb - pc == base && !(pc & 7) &&
	    !lj_read(mem, w, &contpc, sizeof(contpc), regs->rb - 24) &&
	    lj_fit(mem, w, base, contpc) == LJ_FIT_LUA)
		return lj_top_is(w, base, contpc);
	/* a call of a metamethod is being set up: BASE is still the caller's */
	if ((pc & 7) == LJ_FRAME_CONT && fit == LJ_FIT_OTHER &&
	    !lj_read(mem, w, &contpc, sizeof(contpc), base + delta - 24) &&
	    lj_fit(mem, w, base, contpc) == LJ_FIT_LUA)
		return lj_top_is(w, base, contpc);
	/* a return: with the link, or what vm_return or BC_CALLT has made of it */
	if (link == pc || link == (pc ^ 1) || link == pc + LJ_FRAME_VARG) {
		w->skip = 1;
		return lj_top_is(w, base, 0);
	}
	/* ditto, of a fast function whose results lie on its link, which it had stored as the pc */
	saved = lj_saved_pc(mem, w, base);
	if (pc & 7 && (saved == pc || saved == (pc ^ 1)) && !lj_link_leads(mem, w, base)) {
		w->link = saved;
		w->link_known = 1;
		w->skip = 1;
		return lj_top_is(w, base, 0);
	}
	/* a return of a vararg function: BASE is that of the frame proper already */
	if ((pc & 7) == LJ_FRAME_VARG && regs->rb == delta) {
		w->skip = 1;
		return lj_top_is(w, base, 0);
	}
	/* a call: BASE is the callee's already; what does it stand on? */
	if (delta && delta < base - w->stack &&
	    ((lj_fit(mem, w, base - delta, 0) >= LJ_FIT_C && lj_link_leads(mem, w, base - delta)) ||
	     ((pc & 7) == LJ_FRAME_CONT && !lj_read(mem, w, &contpc, sizeof(contpc), base - 24) &&
	      lj_fit(mem, w, base - delta, contpc) == LJ_FIT_LUA))) {
		w->link = pc;
		w->link_known = 1;
		w->skip = 1;
		return lj_top_is(w, base, 0);
	}
	return -1;
}

/* Has the VM just returned from C, so that BASE is not yet taken back? The return address was below
 * sp. */
#define LJ_RELOAD 24
static __always_inline int lj_just_returned(const struct lb_mem *mem, struct lj_walk *w,
					    const struct lb_regs *regs)
{
	__u64 ret;

	return !lj_read(mem, w, &ret, sizeof(ret), regs->sp - 8) && regs->ip - ret < LJ_RELOAD;
}

/*
 * mov [BASE-8], PC: the instruction by which a call stores its link. BASE is the callee's already,
 * PC behind the instruction that calls.
 */
#define LJ_STORE_LINK 0xf85a8948u
static __always_inline int lj_storing_link(const struct lb_mem *mem, struct lj_walk *w,
					   const struct lb_regs *regs)
{
	__u32 ins;

	return lj_call_distance(mem, w, regs->pc) &&
	       !lj_read(mem, w, &ins, sizeof(ins), regs->ip) && ins == LJ_STORE_LINK;
}

/* A frame to which the VM returns: a C function's, or the bottom of the stack, below all functions.
 */
static __always_inline int lj_is_c_base(const struct lb_mem *mem, struct lj_walk *w, __u64 base)
{
	return base == w->stack + 16 || lj_fit(mem, w, base, 0) >= LJ_FIT_C;
}

/* Does the VM return to what stands at base? */
static __always_inline int lj_top_left(const struct lb_mem *mem, struct lj_walk *w, __u64 base)
{
	if (lj_is_c_base(mem, w, base))
		return lj_top_is(w, base, 0);
	return lj_top_interrupted(mem, w, base);
}

/*
 * The state is C already. BC_FUNCC calls, or was returned to: L->base is right, PC the function's
 * own. Or the VM returns to C (vm_return): L->base is not stored yet, and may be that of any frame
 * long gone; PC is the distance to the caller's base, then that base itself, negative at first. Or
 * C enters the VM or leaves it by an error: L->base is right, PC anything.
 */
static __always_inline int lj_top_return_to_c(const struct lb_mem *mem, struct lj_walk *w,
					      const struct lb_regs *regs)
{
	__u64 pc = regs->pc;
	int fit = lj_fit(mem, w, regs->base, pc);

	/* once a hook has run the state stays C until the next C function, although the VM goes on
	 */
	if (fit == LJ_FIT_LUA && !lj_storing_link(mem, w, regs))
		return lj_top_is(w, regs->base, pc);
	/* the VM's own frame is not made yet, or no more: registers are the host's */
	if (w->cframe - regs->sp > 16 && lj_is_c_base(mem, w, w->base))
		return lj_top_is(w, w->base, 0);
	if (lj_fit(mem, w, w->base, pc) == LJ_FIT_C_OWN)
		return lj_top_is(w, w->base, 0);
	if (fit == LJ_FIT_C_OWN)
		return lj_top_is(w, regs->base, 0);
	if (!lj_top_linked(mem, w, regs->base, pc, fit))
		return 0;
	if (!lj_top_left(mem, w, pc) || !lj_top_left(mem, w, -pc))
		return 0;
	if (pc < (1 << 20) && !lj_top_left(mem, w, regs->base - (pc & ~7ULL)))
		return 0;
	return lj_top_left(mem, w, w->base) ? lj_top_stored(mem, w) : 0;
}

static __always_inline int lj_rbp_site(const struct lj_build *build, __u64 offset)
{
	return offset < LB_VM_TEXT &&
	       build->rbp_site[offset >> 3 & (LB_VM_TEXT / 8 - 1)] >> (offset & 7) & 1;
}

/*
 * In the assembler VM. BASE and PC are right when they fit each other; when not, one of them has
 * already changed (calls, returns), or BASE's register holds an argument for C or what C left in
 * it.
 */
static __always_inline int lj_top_interp(const struct lb_mem *mem, struct lj_walk *w,
					 const struct lj_build *build, const struct lb_regs *regs)
{
	int fit = lj_fit(mem, w, regs->base, regs->pc), stored;

	if (fit == LJ_FIT_C_OWN || (fit == LJ_FIT_LUA && !lj_storing_link(mem, w, regs)))
		return lj_top_is(w, regs->base, regs->pc);
	/* back from a helper before which BASE went to rbp only */
	if (fit != LJ_FIT_LUA && lj_rbp_site(build, regs->ip - w->vm_start) &&
	    lj_fits(lj_fit(mem, w, regs->rb, regs->pc)))
		return lj_top_is(w, regs->rb, regs->pc);
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

/*
 * A helper that the VM called while it kept BASE in rbp only (rawget, libm functions, ...). rbp and
 * rbx are callee-saved: they are in their registers, or among the first words that the helper
 * pushed. The steps of PHASE_LEAF try all pairs.
 */
#define LJ_LEAF_WORDS 8

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
	w->leaf_base = 0;
	w->leaf_pc = 0;
	w->phase = LJ_PHASE_LEAF;
	return 0;
}

static __always_inline enum lb_more lj_step_leaf(const struct lb_mem *mem, struct lj_walk *w)
{
	__u64 base = w->block[w->leaf_base & 15], pc = w->block[LJ_BLOCK + (w->leaf_pc & 7)];
	int fit;

	if (w->leaf_base > LJ_LEAF_WORDS) {
		lj_top_stored(mem, w);
		w->phase = LJ_PHASE_FRAME;
		return LB_MORE;
	}
	fit = lj_fit(mem, w, base, pc);
	if (lj_fits(fit)) {
		lj_top_is(w, base, pc);
		w->phase = LJ_PHASE_FRAME;
	} else if (fit == LJ_FIT_OTHER && w->leaf_pc < LJ_LEAF_WORDS - 1) {
		w->leaf_pc++;
	} else {
		w->leaf_base++;
		w->leaf_pc = 0;
	}
	return LB_MORE;
}

static __always_inline int lj_top_helper(const struct lb_mem *mem, struct lj_walk *w,
					 const struct lj_build *build, const struct lb_regs *regs)
{
	__u64 ret;

	if (lj_read(mem, w, &ret, sizeof(ret), w->cframe - 8) || !lj_in_vm(w, ret))
		return lj_top_stored(mem, w);
	if (lj_rbp_site(build, ret - w->vm_start) && !lj_top_leaf(mem, w, regs))
		return 0;
	/* PC was passed as an argument: lj_dispatch_ins stores it by itself, a little later */
	if (lj_fit(mem, w, w->base, lj_saved_pc(mem, w, w->base)) == LJ_FIT_OTHER &&
	    !lj_top_leaf(mem, w, regs)) {
		w->leaf_base = LJ_LEAF_WORDS; /* this base, and none after it */
		w->block[LJ_LEAF_WORDS] = w->base;
		return 0;
	}
	return lj_top_stored(mem, w);
}

/* Makes trace traceno, whose head is in scratch afterwards, the one in hand. */
static __always_inline int lj_read_trace(const struct lb_mem *mem, struct lj_walk *w, __u32 traceno)
{
	if (lj_trace_head(mem, w, traceno))
		return -1;
	w->ir = lb_word(w->scratch, LJ_TRACE_IR);
	w->nk = lb_half(w->scratch, LJ_TRACE_NK);
	w->snaps = lb_word(w->scratch, LJ_TRACE_SNAP);
	w->maps = lb_word(w->scratch, LJ_TRACE_SNAPMAP);
	return w->snaps & 3 ? -1 : 0; /* no snapshots */
}

#define LJ_NO_EXIT 0xffffffffu

/*
 * Offset into the machine code of the trace in scratch from which it has called C; LJ_NO_EXIT when
 * it has not. The return address is at a known place: BC_JLOOP took 16 bytes below the cframe, the
 * trace spadjust.
 */
static __always_inline __u32 lj_mcode_called(const struct lb_mem *mem, struct lj_walk *w)
{
	__u64 mcode = lb_word(w->scratch, LJ_TRACE_MCODE), ret;
	__u32 size = lb_half(w->scratch, LJ_TRACE_SZMCODE);
	__u32 spadjust = lb_half(w->scratch, LJ_TRACE_SPADJUST - 2) >> 16;

	if (!lj_read(mem, w, &ret, sizeof(ret), w->cframe - 16 - spadjust - 8) &&
	    ret - mcode - 1 < size)
		return (__u32)(ret - mcode - 1);
	return LJ_NO_EXIT;
}

/* Ditto, at which this sample stands. */
static __always_inline __u32 lj_mcode_offset(const struct lb_mem *mem, struct lj_walk *w,
					     const struct lb_regs *regs)
{
	__u64 offset = regs->ip - lb_word(w->scratch, LJ_TRACE_MCODE);

	if (offset < lb_half(w->scratch, LJ_TRACE_SZMCODE))
		return (__u32)offset;
	return lj_mcode_called(mem, w);
}

/*
 * An exit stub has pushed the exit's number, as two bytes, where a call would have its return
 * address (lj_target_x86.h, exitstub).
 */
static __always_inline __u32 lj_exit_number(const struct lb_mem *mem, struct lj_walk *w,
					    const struct lb_regs *regs)
{
	__u32 spadjust = lb_half(w->scratch, LJ_TRACE_SPADJUST - 2) >> 16;
	__u64 top = w->cframe - 16 - spadjust;
	const __u8 *words;

	if (regs->sp != top - 16 || lj_at(mem, w, &words, 16, top - 16))
		return LJ_NO_EXIT;
	return lb_byte(words, 8) | (__u32)lb_byte(words, 0) << 8;
}

/* Sets the walk on the frames of a snapshot of the trace read last, which began at w->base. */
static __always_inline int lj_enter_snapshot(const struct lb_mem *mem, struct lj_walk *w,
					     __u32 snapno)
{
	const __u8 *head;
	__u32 nent;

	if (lj_at(mem, w, &head, LJ_SNAP_SIZE, w->snaps + (__u64)LJ_SNAP_SIZE * snapno))
		return -1;
	nent = lb_byte(head, LJ_SNAP_NENT);
	if (mem_read(mem, w->snapmap, 4 * (nent + 2),
		     w->maps + 4ULL * lb_half(head, LJ_SNAP_MAPOFS)))
		return -1;
	w->pc = (__u64)w->snapmap[nent] | (__u64)w->snapmap[nent + 1] << 32;
	w->slot = (__s32)(w->pc & 0xff);
	w->pc >>= 8;
	w->snap_pc = w->pc;
	w->exact = 1;
	w->entry = (__s32)nent - 1;
	w->base_func = 0;
	if (nent > 1 && lj_snap_base(mem, w))
		return -1;
	w->want = LJ_WANT_LINK;
	w->skip = 0;
	w->flags |= LB_FRAME_TRACE;
	w->phase = w->slot ? LJ_PHASE_SNAP : LJ_PHASE_FRAME;
	return 0;
}

static __always_inline int lj_top_trace(const struct lb_mem *mem, struct lj_walk *w,
					const struct lb_regs *regs, __u32 traceno)
{
	__u32 offset, nsnap, snapno;

	if (lj_read_trace(mem, w, traceno))
		return -1;
	nsnap = lb_half(w->scratch, LJ_TRACE_NSNAP - 2) >> 16;
	offset = lj_mcode_offset(mem, w, regs);
	if (offset == LJ_NO_EXIT && w->vmstate < 0)
		return -1;
	w->trace = traceno;
	w->base = w->jit_base;
	if (offset == LJ_NO_EXIT) {
		snapno = lj_exit_number(mem, w, regs);
		return lj_enter_snapshot(mem, w, snapno < nsnap ? snapno : 0);
	}
	w->mcofs = offset;
	w->lo = 0;
	w->hi = nsnap;
	w->phase = LJ_PHASE_MCODE;
	return 0;
}

/*
 * The collector hides the number of the trace that has called it (gc_onestep), and it is not the
 * one that this thread was seen in last. It is the trace whose machine code its return address
 * leads to: but where another one would have its own, a word of an earlier call may be left. So
 * there has to be one only, of all.
 */
#define LJ_TRACES_MOST 4096
#define LJ_TRACES_RUN 4
static __always_inline int lj_search_traces(const struct lb_mem *mem, struct lj_walk *w)
{
	if (lj_read(mem, w, &w->ntraces, sizeof(w->ntraces), w->g + w->lj.g2trace + 12) ||
	    w->ntraces > LJ_TRACES_MOST)
		return -1;
	w->next_trace = 1;
	w->phase = LJ_PHASE_TRACES;
	return 0;
}

static __always_inline enum lb_more lj_traces_searched(const struct lb_mem *mem, struct lj_walk *w)
{
	w->phase = LJ_PHASE_FRAME;
	if (!w->trace) {
		if (lj_top_stored(mem, w))
			return lj_end(w, LB_END_TORN);
		return LB_MORE;
	}
	if (lj_read_trace(mem, w, w->trace))
		return lj_end(w, LB_END_BAD_TRACE);
	w->base = w->jit_base;
	w->mcofs = w->trace_mcofs;
	w->lo = 0;
	w->hi = lb_half(w->scratch, LJ_TRACE_NSNAP - 2) >> 16;
	w->phase = LJ_PHASE_MCODE;
	return LB_MORE;
}

LB_SUBPROG int lj_step_traces(const struct lb_mem *mem, struct lj_walk *w)
{
	__u32 i;

	if (!w)
		return LB_STOP;
#ifdef __bpf__
#pragma clang loop unroll(disable)
#endif
	for (i = 0; i < LJ_TRACES_RUN; i++) {
		__u32 no = w->next_trace, offset;

		if (no >= w->ntraces)
			return lj_traces_searched(mem, w);
		w->next_trace = no + 1;
		if (lj_read_trace(mem, w, no))
			continue;
		offset = lj_mcode_called(mem, w);
		if (offset == LJ_NO_EXIT)
			continue;
		if (w->trace) { /* which of them? */
			w->trace = 0;
			w->next_trace = w->ntraces;
			continue;
		}
		w->trace = no;
		w->trace_mcofs = offset;
	}
	return LB_MORE;
}

/*
 * Narrows the search for the rightmost snapshot at or left of a place in the machine code
 * (lj_trace.c, lj_trace_unwind).
 */
#define LJ_MCODE_RUN 4
static __always_inline enum lb_more lj_step_mcode(const struct lb_mem *mem, struct lj_walk *w)
{
	__u32 i;

#ifdef __bpf__
#pragma clang loop unroll(disable)
#endif
	for (i = 0; i < LJ_MCODE_RUN && w->lo < w->hi; i++) {
		__u32 mid = (w->lo + w->hi) >> 1;
		const __u8 *at;

		if (lj_at(mem, w, &at, 2, w->snaps + (__u64)LJ_SNAP_SIZE * mid + LJ_SNAP_MCOFS))
			return lj_end(w, LB_END_FAULT);
		if (w->mcofs < lb_short(at, 0))
			w->hi = mid;
		else
			w->lo = mid + 1;
	}
	if (w->lo >= w->hi && lj_enter_snapshot(mem, w, w->lo ? w->lo - 1 : 0))
		return lj_end(w, LB_END_BAD_TRACE);
	return LB_MORE;
}

/*
 * Leaving a trace: J.parent and J.exitno name the snapshot. lj_snap_restore makes its frames real
 * and moves L->base up to them; the pc stored in the cframe tells when that is done.
 */
static __always_inline int lj_top_exit(const struct lb_mem *mem, struct lj_walk *w)
{
	__u32 parent, exitno, nsnap;

	if (!w->jit_base) {
		__u64 pc = lj_saved_pc(mem, w, w->base);

		if (lj_fit(mem, w, w->base, pc) == LJ_FIT_LUA)
			return lj_top_is(w, w->base, pc);
	} else {
		w->base = w->jit_base;
	}
	if (lj_read(mem, w, &parent, sizeof(parent), w->g + w->lj.g2trace + w->lj.j_parent) ||
	    lj_read(mem, w, &exitno, sizeof(exitno), w->g + w->lj.g2trace + w->lj.j_exitno) ||
	    lj_read_trace(mem, w, parent))
		return lj_top_stored(mem, w);
	nsnap = lb_half(w->scratch, LJ_TRACE_NSNAP - 2) >> 16;
	if (exitno >= nsnap)
		return lj_top_stored(mem, w);
	return lj_enter_snapshot(mem, w, exitno);
}

static __always_inline int lj_find_by_state(const struct lb_mem *mem, struct lj_walk *w,
					    const struct lj_build *build,
					    const struct lb_regs *regs, __u32 traceno)
{
	int in_vm = lj_in_vm(w, regs->ip);

	if (w->vmstate > 0) {
		/* vm_exit_interp: back in the VM, its registers are set, the state is not yet */
		if (in_vm && w->cframe - regs->sp <= 16 &&
		    lj_fit(mem, w, regs->base, regs->pc) == LJ_FIT_LUA)
			return lj_top_is(w, regs->base, regs->pc);
		if (!lj_top_trace(mem, w, regs, (__u32)w->vmstate))
			return 0;
		w->end = LB_END_BAD_TRACE;
		return -1;
	}
	if (w->vmstate == LJ_VMST_EXIT)
		return lj_top_exit(mem, w);
	if (w->vmstate == LJ_VMST_GC && w->jit_base &&
	    (!lj_top_trace(mem, w, regs, traceno) || !lj_search_traces(mem, w)))
		return 0;
	if (w->vmstate == LJ_VMST_INTERP) {
		/* in its prologue and epilogue registers are others' */
		if (in_vm && w->cframe - regs->sp <= 16)
			return lj_top_interp(mem, w, build, regs);
		if (w->jit_base) /* first instruction of a trace: the state is not set yet */
			return lj_top_is(w, w->jit_base, regs->pc);
		return lj_top_helper(mem, w, build, regs);
	}
	if (w->vmstate == LJ_VMST_C && in_vm)
		return lj_top_return_to_c(mem, w, regs);
	if (w->vmstate == LJ_VMST_C)
		return lj_top_helper(mem, w, build, regs);
	return lj_top_stored(mem, w);
}

/* Does the VM stand between L->base and the function that it is to call there for the host? */
static __always_inline int lj_enters(const struct lj_walk *w, const struct lb_regs *regs)
{
	__u64 type = regs->pc & 7, delta = regs->pc & ~7ULL;

	return (type == LJ_FRAME_C || type == LJ_FRAME_CP) &&
	       (regs->base == w->base || regs->base - delta == w->base);
}

/*
 * The topmost frame has the thread itself for a function: a dummy. Either a C function is about to
 * be replaced by another (lj_meta_tailcall). Or it is the bottom of the stack, and no function
 * runs: the host's call is only being set up, or lua_newstate or lua_close run C code by
 * lj_vm_cpcall. L->base may be stale: elsewhere in the VM it says nothing.
 */
static __always_inline int lj_top_dummy(const struct lb_mem *mem, struct lj_walk *w,
					const struct lb_regs *regs)
{
	int interp = w->vmstate == LJ_VMST_INTERP, bottom = w->base == w->stack + 16;
	int enters = interp && lj_in_vm(w, regs->ip) && lj_enters(w, regs);
	__u64 tv;

	if (w->vmstate > 0 ||
	    (interp && !enters && !(lj_in_vm(w, regs->ip) && regs->base == w->base && !bottom)))
		return -1;
	if (lj_read(mem, w, &tv, sizeof(tv), w->base - 16) || LJ_TV_TYPE(tv) != LJ_TTHREAD ||
	    LJ_TV_GCPTR(tv) != w->L)
		return -1;
	if (bottom && w->vmstate && !enters && lj_read_cframe(mem, w, w->base - 8) <= 0)
		return -1;
	w->fault = 0; /* what was tried before took something for a pc that is none */
	return lj_top_is(w, w->base, 0);
}

/*
 * Sets the walk on the topmost frame of the VM that lj_find_vm() found. traceno: the trace that
 * this thread ran last, for collector steps called from compiled code, which hide its number.
 * Returns 0, or -1 with w->end set.
 */
LB_SUBPROG int lj_find_top(const struct lb_mem *mem, struct lj_walk *w,
			   const struct lj_build *build, const struct lb_regs *regs, __u32 traceno)
{
	if (!w || !build || !regs)
		return -1;
	if (!lj_find_by_state(mem, w, build, regs, traceno) || !lj_top_dummy(mem, w, regs))
		return 0;
	/* a coroutine that is just being started or ended has no frame: its resumer is on top */
	if (w->vmstate < 0 && !lj_is_main(w) && !lj_read_cframe(mem, w, ~0ULL) &&
	    !lb_word(w->scratch, LJ_CFRAME_PREV)) {
		w->phase = LJ_PHASE_PARENT;
		return 0;
	}
	return -1;
}

/*
 * A walk that ended torn in the VM's own code, although BASE and PC looked right. Either the
 * function calls itself, PC is still the caller's, and the link's slot not written; or the topmost
 * frame is a fast function's whose results have overwritten its link: that was stored as the pc
 * (SAVE_PC). Sets the walk up again.
 */
LB_SUBPROG int lj_find_again(const struct lb_mem *mem, struct lj_walk *w,
			     const struct lb_regs *regs, __u64 base)
{
	__u64 pc;
	int fit;

	if (!w || !regs || w->vmstate != LJ_VMST_INTERP || !lj_in_vm(w, regs->ip) ||
	    w->rec.stack.n > 2)
		return -1;
	w->rec.stack.n = 0;
	w->skip = 0;
	w->linked = 0;
	w->boundary = 0;
	w->link_known = 0;
	w->flags = LB_FRAME_THREAD;
	w->phase = LJ_PHASE_FRAME;
	if (!lj_top_linked(mem, w, regs->base, regs->pc, LJ_FIT_NOT))
		return 0;
	pc = lj_saved_pc(mem, w, base);
	fit = lj_fit(mem, w, base, 0);
	if (!lj_top_linked(mem, w, base, pc, fit))
		return 0;
	if (fit < LJ_FIT_C || !(pc & 7) || pc >= 1 << 20 || lj_link_leads(mem, w, base))
		return -1;
	w->link = pc;
	w->link_known = 1;
	return lj_top_is(w, base, 0);
}

LB_SUBPROG int lj_step(const struct lb_mem *mem, struct lj_walk *w)
{
	if (!w)
		return LB_STOP;
	switch (w->phase) {
	case LJ_PHASE_LEAF:
		return lj_step_leaf(mem, w);
	case LJ_PHASE_TRACES:
		return lj_step_traces(mem, w);
	case LJ_PHASE_MCODE:
		return lj_step_mcode(mem, w);
	case LJ_PHASE_SNAP:
		return lj_step_snap(mem, w);
	case LJ_PHASE_FRAME:
		return lj_step_frame(mem, w);
	case LJ_PHASE_PARENT:
		return lj_step_parent(mem, w);
	default:
		return lj_step_search(mem, w);
	}
}

#endif
