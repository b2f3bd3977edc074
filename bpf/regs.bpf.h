/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * User registers by their role in the VMs: of a perf sample, and of a uprobe (count.bpf.c).
 * <machine/regs.h> names the members of pt_regs.
 */
#ifndef LUABPF_REGS_BPF_H
#define LUABPF_REGS_BPF_H

#include <linux/bpf_perf_event.h>
#include <machine/regs.h>
#include <unwind/unwind.h>

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

	if (REGS_ARE_USERS(hit)) {
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

	if (REGS_ARE_USERS(hit)) {
		*ip = lb_loaded(REGS_IP(hit));
		*sp = lb_loaded(REGS_SP(hit));
		return 0;
	}
	saved = (const void *)bpf_task_pt_regs(task);
	if (!saved)
		return -1;
	*ip = lb_loaded(REGS_IP(saved));
	*sp = lb_loaded(REGS_SP(saved));
	return 0;
}

#endif
