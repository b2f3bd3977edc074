/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * A sample's user registers by their role in the VMs. The only place that knows an architecture's
 * register layout.
 */
#ifndef LUABPF_REGS_BPF_H
#define LUABPF_REGS_BPF_H

#include <luabpf/walk.h>

#ifndef __TARGET_ARCH_x86
#error "no register roles for this architecture"
#endif

struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, ip, sp;
} __attribute__((preserve_access_index));

/*
 * The user registers lie at the top of the task's kernel stack, whether the timer hit in user space
 * or in the kernel. NULL for a task that has none.
 */
static __always_inline int regs_read(struct lb_regs *out, struct task_struct *task)
{
	const struct pt_regs *r = (const void *)bpf_task_pt_regs(task);

	if (!r)
		return -1;
	out->ip = r->ip;
	out->sp = r->sp;
	out->base = r->dx;
	out->pc = r->bx;
	out->rb = r->bp;
	out->gl = r->r14;
	return 0;
}

/* All of them, after regs_read(). */
static __always_inline void regs_read_all(struct lb_gprs *out, struct task_struct *task)
{
	const struct pt_regs *r = (const void *)bpf_task_pt_regs(task);

	if (!r)
		return;
	out->r[0] = r->ax;
	out->r[1] = r->cx;
	out->r[2] = r->dx;
	out->r[3] = r->bx;
	out->r[4] = r->sp;
	out->r[5] = r->bp;
	out->r[6] = r->si;
	out->r[7] = r->di;
	out->r[8] = r->r8;
	out->r[9] = r->r9;
	out->r[10] = r->r10;
	out->r[11] = r->r11;
	out->r[12] = r->r12;
	out->r[13] = r->r13;
	out->r[14] = r->r14;
	out->r[15] = r->r15;
}

#endif
