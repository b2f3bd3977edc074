/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * A sample's user registers by their role in the VMs. The only file of BPF that knows an
 * architecture's register layout.
 */
#ifndef LUABPF_REGS_BPF_H
#define LUABPF_REGS_BPF_H

#include <linux/bpf_perf_event.h>
#include <unwind/unwind.h>

#ifndef __TARGET_ARCH_x86
#error "no register roles for this architecture"
#endif

#define USER_MODE 3 /* in cs: privilege level (CPL) */

/*
 * Reads a sample's registers. A macro: `from` points into a program's context or to kernel memory,
 * and the verifier accepts only one type of pointer at an instruction.
 */
#define REGS_ROLES(out, from)                                                                      \
	do {                                                                                       \
		(out)->ip = (from)->rip;                                                           \
		(out)->sp = (from)->rsp;                                                           \
		(out)->base = (from)->rdx;                                                         \
		(out)->pc = (from)->rbx;                                                           \
		(out)->rb = (from)->rbp;                                                           \
		(out)->gl = (from)->r14;                                                           \
		(out)->rd = (from)->rax;                                                           \
		(out)->ra = (from)->rcx;                                                           \
		(out)->kept[0] = (from)->r12;                                                      \
		(out)->kept[1] = (from)->r13;                                                      \
		(out)->kept[2] = (from)->r15;                                                      \
	} while (0)

#define REGS_ALL(out, from)                                                                        \
	do {                                                                                       \
		(out)->r[0] = (from)->rax;                                                         \
		(out)->r[1] = (from)->rcx;                                                         \
		(out)->r[2] = (from)->rdx;                                                         \
		(out)->r[3] = (from)->rbx;                                                         \
		(out)->r[4] = (from)->rsp;                                                         \
		(out)->r[5] = (from)->rbp;                                                         \
		(out)->r[6] = (from)->rsi;                                                         \
		(out)->r[7] = (from)->rdi;                                                         \
		(out)->r[8] = (from)->r8;                                                          \
		(out)->r[9] = (from)->r9;                                                          \
		(out)->r[10] = (from)->r10;                                                        \
		(out)->r[11] = (from)->r11;                                                        \
		(out)->r[12] = (from)->r12;                                                        \
		(out)->r[13] = (from)->r13;                                                        \
		(out)->r[14] = (from)->r14;                                                        \
		(out)->r[15] = (from)->r15;                                                        \
	} while (0)

#define FLAG_CARRY 0x01
#define FLAG_ZERO 0x40

/* True if the jump "above" (ja), which a uprobe is at, will be taken. */
static __always_inline int regs_are_above(const struct pt_regs *regs)
{
	return !(regs->eflags & (FLAG_CARRY | FLAG_ZERO));
}

/* Ends each of the two paths that read them. Not in C: clang would merge both. */
#define REGS_BEHIND(roles, value) asm volatile("%0 = " #value : "=r"((roles)->behind))

/*
 * Reads the user registers: the interrupted ones if the timer hit in user space, else those at the
 * top of the task's kernel stack. all: NULL, or receives all of them. Returns 0, or -1 for a task
 * that has none.
 */
static __always_inline int regs_read(struct lb_regs *roles, struct lb_gprs *all,
				     const struct bpf_perf_event_data *event,
				     struct task_struct *task)
{
	const volatile struct pt_regs *hit = &event->regs;
	const struct pt_regs *saved;

	if ((hit->cs & USER_MODE) == USER_MODE) {
		REGS_ROLES(roles, hit);
		if (all)
			REGS_ALL(all, hit);
		REGS_BEHIND(roles, 1);
		return 0;
	}
	saved = (const void *)bpf_task_pt_regs(task);
	if (!saved)
		return -1;
	REGS_ROLES(roles, saved);
	if (all)
		REGS_ALL(all, saved);
	REGS_BEHIND(roles, 0);
	return 0;
}

/* As regs_read(): the instruction and stack pointers alone. */
static __always_inline int regs_read_stack(__u64 *ip, __u64 *sp,
					   const struct bpf_perf_event_data *event,
					   struct task_struct *task)
{
	const volatile struct pt_regs *hit = &event->regs;
	const struct pt_regs *saved;

	if ((hit->cs & USER_MODE) == USER_MODE) {
		*ip = lb_loaded(hit->rip);
		*sp = lb_loaded(hit->rsp);
		return 0;
	}
	saved = (const void *)bpf_task_pt_regs(task);
	if (!saved)
		return -1;
	*ip = lb_loaded(saved->rip);
	*sp = lb_loaded(saved->rsp);
	return 0;
}

#endif
