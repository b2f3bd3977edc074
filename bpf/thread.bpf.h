/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The sampled thread: its cached state, its C stack's bounds, its VMs. */
#ifndef LUABPF_THREAD_BPF_H
#define LUABPF_THREAD_BPF_H

#include "maps.bpf.h"

struct bounds {
	__u64 lo, hi;
};

static long stack_of(struct task_struct *task, struct vm_area_struct *vma, struct bounds *bounds)
{
	__u64 end = (BPF_CORE_READ(task, mm, start_stack) | (LB_PAGE - 1)) + 1;

	bounds->lo = vma->vm_start;
	bounds->hi = vma->vm_end;
	/* above its page are arguments and environment, behind a gap that was never touched */
	if (end > bounds->lo && end < bounds->hi)
		bounds->hi = end;
	return 0;
}

/* Refills the entry of a thread that is new here, or has migrated. Not inlined: it is rare. */
static __noinline void thread_meet(struct lb_thread *thread, __u32 tid, __u64 exec_id,
				   __u32 migrations)
{
	const struct lb_vms *known = bpf_map_lookup_elem(&vms, &tid);

	if (thread->tid != tid || thread->vms.exec_id != exec_id) {
		__builtin_memset(thread, 0, sizeof(*thread));
		thread->tid = tid;
		thread->vms.exec_id = exec_id;
	}
	if (known && known->exec_id == exec_id)
		thread->vms = *known;
	thread->migrations = migrations;
	thread->traceno = 0;
	thread->puc_L = 0;
	thread->lj_L = 0;
	thread->zone_g = 0;
}

static __always_inline struct lb_thread *thread_of(struct lb_cpu *cpu, struct task_struct *task,
						   __u64 exec_id)
{
	struct lb_thread *thread = &cpu->thread[task->pid & (CPU_THREADS - 1)];
	__u32 tid = task->pid, migrations = (__u32)task->se.nr_migrations;

	if (thread->tid != tid || thread->vms.exec_id != exec_id ||
	    thread->migrations != migrations)
		thread_meet(thread, tid, exec_id, migrations);
	return thread;
}

/*
 * Upper bound of the C stack, from sp, for one sample: used when the kernel does not answer, as the
 * address space is being changed. Two threads' stacks are unlikely to be that close.
 */
#define STACK_GUESS (64 << 10)

/*
 * Returns the end of the mapping that holds the C stack, or of the stack in it; 0: sp is beyond.
 * Not inlined: its BPF stack would add to that of the walks.
 */
static __noinline __u64 thread_find_stack(struct lb_thread *thread, struct task_struct *task,
					  __u64 sp)
{
	struct bounds bounds = {};

	if (bpf_find_vma(task, sp, stack_of, &bounds, 0))
		return sp + STACK_GUESS;
	if (sp >= bounds.hi)
		return 0;
	thread->stack_lo = bounds.lo;
	thread->stack_hi = bounds.hi;
	return bounds.hi;
}

static __always_inline __u64 thread_stack(struct lb_thread *thread, struct task_struct *task,
					  __u64 sp)
{
	if (sp >= thread->stack_lo && sp < thread->stack_hi)
		return thread->stack_hi;
	return thread_find_stack(thread, task, sp);
}

/* Not inlined: as thread_meet(), and for its stack. */
static __noinline void thread_add_vm(struct lb_thread *thread, __u64 g, __u32 module)
{
	__u32 tid = thread->tid, i = thread->vms.next++ & (LB_THREAD_VMS - 1);
	struct lb_vms all;

	thread->vms.g[i] = g;
	thread->vms.module[i] = (__u8)module;
	thread->scan_pause = 0;
	all = thread->vms;
	bpf_map_update_elem(&vms, &tid, &all, BPF_ANY);
}

static __always_inline void thread_remember(struct lb_thread *thread, __u64 g, __u32 module)
{
	__u32 i;

	for (i = 0; i < LB_THREAD_VMS; i++)
		if (thread->vms.g[i] == g)
			return;
	thread_add_vm(thread, g, module);
}

#define LB_PROVE_EACH 32

/* Begins a walk of this thread; the caller has begun its cache. */
static __always_inline void thread_walk(struct lb_walk *w, struct task_struct *task,
					const struct lb_proc *proc)
{
	w->rec.stack.n = 0;
	w->rec.stack.flags = 0;
	w->rec.mcofs = 0;
	w->rec.traceno = 0;
	w->rec.trace_fp = 0;
	w->rec.pid = task->tgid;
	w->rec.tid = task->pid;
	w->rec.epoch = proc->epoch;
	w->epoch = (__u64)proof_epoch << 32 | w->rec.pid;
	w->single = proc->nmodules == 1 && !(proc->unsampled | proc->more);
	w->prove = !proc->shares || !(bpf_get_prandom_u32() % LB_PROVE_EACH);
}

/* Copies the walk's results to its record. Loads the task again: kept over a walk, it would be on
 * the BPF stack. */
static __always_inline void thread_describe(struct lb_walk *w)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (!first_sample)
		first_sample = bpf_ktime_get_ns();
	w->rec.vm = w->g;
	w->rec.state = LB_STATE(w->state, w->detail);
	__builtin_memcpy(w->rec.comm, task->comm, sizeof(w->rec.comm));
}

#endif
