/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The topmost function of the lua_State that runs, and its pc: checks that its slot still holds the
 * function that was called, and takes the pc from a register, the C stack or savedpc.
 */
#ifndef LUABPF_UNWIND_PUC_TOP_H
#define LUABPF_UNWIND_PUC_TOP_H

#include <unwind/puc/gc.h>

/* Searches the frames of luaV_execute's callees for a pushed pc of the topmost Lua function. */
static __always_inline enum lb_more puc_step_note(const struct lb_mem *mem, struct puc_walk *w)
{
	if (w->block.remaining ||
	    (w->scan.next < w->scan.end &&
	     (!w->scan.vm_ret || w->scan.next <= w->scan.vm_ret + 8 * PUC_SPILLED))) {
		if (!puc_scan_on(mem, w))
			return LB_MORE;
		puc_scan_fails(w);
	}
	w->top.noted = 1;
	w->phase = PUC_PHASE_TOP;
	return LB_MORE;
}

static __always_inline void puc_note(struct puc_walk *w)
{
	puc_scan_from(w, w->regs.sp, 0);
	w->phase = PUC_PHASE_NOTE;
	if (puc_in_vm(w, w->regs.ip)) /* no callee: luaV_execute's frame begins at sp */
		w->scan.vm_ret = w->regs.sp - 8;
}

static long puc_pc_step(__u32 i, struct puc_walk **walk)
{
	struct puc_walk *w = *walk;
	__u64 r = w->gprs.r[i & (LB_GPRS - 1)];

	if (puc_pc_inside(w->top.code_lo, w->top.code_size, r) && r > w->top.any_pc)
		w->top.any_pc = r;
	return 0;
}

/* Returns the greatest pointer to a next instruction of the code in any register; 0: none. */
LB_SUBPROG __u64 puc_any_pc(struct puc_walk *w)
{
	if (!w)
		return 0;
	w->top.any_pc = 0;
	lb_loop(LB_GPRS, puc_pc_step, &w);
	return w->top.any_pc;
}

/* True if the instruction before pc returns from a function. */
static __always_inline int puc_has_returned(const struct lb_mem *mem, struct puc_walk *w, __u64 pc)
{
	__u32 ins;

	return w->puc.op_return && !(pc & 3) && !puc_read(mem, w, &ins, sizeof(ins), pc - 4) &&
	       (ins & 0x7f) - w->puc.op_return < 3;
}

/* True if pc is the caller's of the topmost function, as it was saved for the call. */
static __always_inline int puc_is_callers(const struct lb_mem *mem, struct puc_walk *w, __u64 pc)
{
	__u64 saved;

	return puc_is_pointer(w->look.previous) &&
	       !puc_read(mem, w, &saved, sizeof(saved), w->look.previous + w->puc.ci_savedpc) &&
	       saved == pc;
}

/*
 * True if pc is another function's: the topmost was just called, and the register still has the
 * caller's pc, as it was saved for the call; or the topmost was just returned to.
 */
static __always_inline int puc_is_between(const struct lb_mem *mem, struct puc_walk *w, __u64 pc)
{
	return puc_is_callers(mem, w, pc) ||
	       (puc_is_pointer(pc & ~7ULL) && puc_has_returned(mem, w, pc));
}

/*
 * Corrects L->savedpc of 5.1 when it is not the topmost function's: a call or a return sets L->ci
 * first. After a call the pc is that of the function's entry, after a return its CallInfo has it.
 */
static __always_inline void puc_correct_savedpc(const struct lb_mem *mem, struct puc_walk *w)
{
	w->pc = puc_is_callers(mem, w, w->pc) ? w->top.code_lo : w->look.savedpc;
}

/* True if ip is in the text where fetch_reg has the instruction's address. */
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
 * Returns the next instruction by fetch_reg or pc_reg; 0: neither is known. Where luaV_execute is
 * about to fetch an instruction, that one counts. After a jump pc_reg has the instruction before it
 * in the code, or the one that would follow without the jump, until it is stepped.
 */
static __always_inline __u64 puc_register_pc(const struct puc_walk *w)
{
	__u64 at = w->gprs.r[w->fetch_reg & (LB_GPRS - 1)];

	if (lb_within(at, w->top.code_lo, w->top.code_size) & !(at & 3) && puc_fetches(w))
		return at + 4;
	return w->pc_reg < LB_GPRS ? w->gprs.r[w->pc_reg & (LB_GPRS - 1)] : 0;
}

/*
 * Finds the topmost Lua function's pc: in the register that holds it in luaV_execute, which a
 * callee leaves alone, or pushes. Where neither points into the code, the function is being
 * entered, or was just returned to: the saved pc is right. 5.2 and 5.3 save it at each instruction.
 * Returns 0, or -1 when no pc was found.
 */
static __always_inline int puc_top_pc(const struct lb_mem *mem, struct puc_walk *w)
{
	__u64 pc;

	if (w->puc.flags & PUC_SAVEDPC_EXACT)
		return 0;
	if (w->top.popped && !(w->puc.flags & PUC_CI_ARRAY)) /* it calls */
		return 0;
	pc = puc_register_pc(w);
	if (!puc_pc_inside(w->top.code_lo, w->top.code_size, pc)) {
		if (puc_in_vm(w, w->regs.ip) && puc_is_between(mem, w, pc))
			return 0;
		pc = puc_any_pc(w); /* some instructions' code moves it to another register */
		/* fetch_reg may still have the instruction itself: one before the pushed pc */
		if (w->top.noted && (!pc || (w->fetch[0].size && w->top.pushed > pc)))
			pc = w->top.pushed;
	}
	if (!pc)
		return -1;
	w->pc = pc;
	w->pc_known = 1;
	return 0;
}

static __always_inline enum lb_more puc_step_top(const struct lb_mem *mem, struct puc_walk *w)
{
	const struct puc_seen *seen;
	int index = puc_look(mem, w);
	int in_gc = puc_in_gc(w, w->regs.ip), in_vm = puc_in_vm(w, w->regs.ip);

	if ((index == PUC_NOT || puc_is_result(w, index)) && puc_pop(w))
		return LB_MORE;
	if (index == PUC_NOT)
		return puc_ask_code(w);
	w->phase = PUC_PHASE_FRAME;
	if (!puc_is_lua(w, index)) {
		w->state = in_gc ? 'G' : 'C';
		if (!in_gc)
			puc_look_for_gc(mem, w);
		return LB_MORE;
	}
	seen = &w->seen[index & (PUC_SEEN - 1)];
	w->top.code_lo = seen->code;
	w->top.code_size = 4ULL * seen->sizecode;
	if (!in_vm && !in_gc && !w->top.noted) {
		puc_note(w);
		return LB_MORE;
	}
	if (puc_top_pc(mem, w) && !w->top.noted) {
		puc_note(w);
		return LB_MORE;
	}
	if (w->puc.flags & PUC_CI_ARRAY && !puc_pc_inside(w->top.code_lo, w->top.code_size, w->pc))
		puc_correct_savedpc(mem, w);
	if (in_gc || (!in_vm && w->scan.vm_ret && puc_calls_gc(mem, w, w->scan.vm_ret_to)))
		w->state = 'G';
	else if (!in_vm) /* luaD_precall of 5.2 calls the collector, too */
		puc_look_for_gc(mem, w);
	return LB_MORE;
}

#endif
