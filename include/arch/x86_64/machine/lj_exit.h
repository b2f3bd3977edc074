/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Side exits of LuaJIT's compiled code, x86-64 (lj_asm_x86.h, lj_target_x86.h): a guard's branch, the stub it leads to,
 * and what vm_exit_handler pushes.
 */
#ifndef MACHINE_LJ_EXIT_H
#define MACHINE_LJ_EXIT_H

#include <unwind/lj/frame.h>

#define LJ_NO_EXIT 0xffffffffu

/* test eax, eax; jnz rel32: follows the call of the collector, and no other call (asm_gc_check). */
#define LJ_GC_CALLED 0x850fc085u

#define LJ_STUB_REACH (16ULL << 20) /* areas of machine code adjoin each other */
/* push imm8; jmp rel8; jcc rel32 and jmp rel32, the branches of guards */
enum { LJ_X86_PUSH = 0x6a, LJ_X86_JMP = 0xeb, LJ_X86_JCC = 0x800f, LJ_X86_JMP32 = 0xe9 };

/* True for a sign-extended byte, as push imm8 leaves it. */
static __always_inline int lj_is_pushed(__u64 word)
{
	return word + 128 < 256;
}

/*
 * Returns the upper byte of an exit's number, << 8. at: behind the push of the lower one. LJ_NO_EXIT
 * if the code is not that of a stub, or cannot be read (w->fault):
 *
 *	push lo; jmp end; push lo + 1; jmp end; ... push lo + 31
 *	end: push hi; jmp ->vm_exit_handler
 */
static __always_inline __u32 lj_stub_upper(const struct lb_mem *mem, struct lj_walk *w, __u64 at)
{
	const __u8 *code;

	if (lj_at(mem, w, &code, 2, at) ||
	    (lb_byte(code, 0) == LJ_X86_JMP &&
	     lj_at(mem, w, &code, 2, at + 2 + lb_byte(code, 1))) ||
	    lb_byte(code, 0) != LJ_X86_PUSH)
		return LJ_NO_EXIT;
	return (__u32)lb_byte(code, 1) << 8;
}

/* True at the branch of a guard. */
static __always_inline int lj_is_jump(const __u8 *code)
{
	return code[0] == LJ_X86_JMP32 || (code[0] | (code[1] & 0xf0u) << 8) == LJ_X86_JCC;
}

/* The length of the instruction of which lj_is_jump() is true. */
static __always_inline __u32 lj_jump_size(const __u8 *code)
{
	return lb_byte(code, 0) == LJ_X86_JMP32 ? 5 : 6;
}

/* Returns its target, counted from its end. size: lj_jump_size(). */
static __always_inline __u64 lj_jump_target(const __u8 *code, __u32 size)
{
	__u32 rel = size == 5 ? lb_half(code, 1) : lb_half(code, 2);

	return (__u64)(__s64)(__s32)rel;
}

/* True if a jump of this size is no jump by chance: a jcc is known by two bytes. */
static __always_inline int lj_jump_is_sure(__u32 size)
{
	return size == 6;
}

/*
 * Returns the exit whose stub is at `at`; LJ_NO_EXIT: not found. sure: a jcc leads there. The one
 * byte of a jmp is often part of another instruction, whose target may be unreadable.
 */
static __always_inline __u32 lj_stub_number(const struct lb_mem *mem, struct lj_walk *w, __u64 at,
					    int sure)
{
	const __u8 *code;
	__u32 lo, hi;

	code = lj_guess_at(mem, w, 2, at);
	w->fault |= !code && sure;
	if (!code || lb_byte(code, 0) != LJ_X86_PUSH)
		return LJ_NO_EXIT;
	lo = lb_byte(code, 1);
	hi = lj_stub_upper(mem, w, at + 2);
	return hi == LJ_NO_EXIT ? hi : lo | hi;
}

/* words that vm_exit_handler pushes below a trace's C stack frame, those of the number first */
#define LJ_EXIT_PUSHED 16

/* Returns the number of the exit by which the current trace is being left; LJ_NO_EXIT: none. */
static __always_inline __u32 lj_exit_number(const struct lb_mem *mem, struct lj_walk *w,
					    const struct lb_regs *regs)
{
	__u64 top = w->cframe - 16 - w->gctrace.spadjust, depth = top - regs->sp;
	int in_vm = lj_in_vm(w, regs->ip);
	__u32 lo, hi;
	const __u8 *bytes;

	if (depth > 8 * LJ_EXIT_PUSHED)
		return LJ_NO_EXIT;
	if (depth < 16) {
		if (in_vm || lj_at(mem, w, &bytes, 2, depth ? top - 8 : regs->ip) ||
		    (!depth && lb_byte(bytes, 0) != LJ_X86_PUSH))
			return LJ_NO_EXIT;
		lo = lb_byte(bytes, !depth);
		hi = lj_stub_upper(mem, w, depth ? regs->ip : regs->ip + 2);
		return hi == LJ_NO_EXIT ? hi : lo | hi;
	}
	if ((depth > 16 && !in_vm) || lj_at(mem, w, &bytes, 16, top - 16))
		return LJ_NO_EXIT;
	if (lj_is_pushed(lb_word(bytes, 0)) && lj_is_pushed(lb_word(bytes, 8)))
		return lb_byte(bytes, 8) | (__u32)lb_byte(bytes, 0) << 8;
	/* r15 and r14 have overwritten them */
	return depth == 8 * LJ_EXIT_PUSHED ? regs->rd & 0xffff : LJ_NO_EXIT;
}

#endif
