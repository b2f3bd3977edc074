/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* A target's child that has called no exec: it has its parent's image. */
#ifndef LUABPF_FORK_BPF_H
#define LUABPF_FORK_BPF_H

#include "emit.bpf.h"
#include "target.bpf.h"

#define FORKS 4 /* generations without an event that are searched */

/* True if both have the same image. A fork copies both fields; an exec increments the first and
 * randomizes the second. */
static __always_inline int fork_is_copy(const struct task_struct *task,
					const struct task_struct *parent)
{
	return BPF_CORE_READ(task, self_exec_id) == BPF_CORE_READ(parent, self_exec_id) &&
	       BPF_CORE_READ(task, mm, start_stack) == BPF_CORE_READ(parent, mm, start_stack);
}

/* Returns the entry of the nearest ancestor in procs, when no exec lies between; else NULL. */
static __always_inline const struct lb_proc *fork_origin(struct task_struct *task, __u32 *origin)
{
	const struct task_struct *parent = task;
	int i;

	for (i = 0; i < FORKS; i++) {
		struct lb_proc *proc;
		__u64 exec_id;
		__u32 pid;

		parent = BPF_CORE_READ(parent, real_parent);
		if (!parent || !fork_is_copy(task, parent))
			return 0;
		pid = BPF_CORE_READ(parent, tgid);
		proc = bpf_map_lookup_elem(&procs, &pid);
		if (!proc)
			continue;
		if (!proc->nmodules)
			return 0;
		exec_id = EXEC_ID(BPF_CORE_READ(parent, group_leader, start_boottime),
				  BPF_CORE_READ(parent, self_exec_id));
		target_adopt(proc, exec_id); /* it has shown no sample yet */
		*origin = pid;
		return proc->exec_id == exec_id ? proc : 0;
	}
	return 0;
}

/*
 * Adds the current process to procs by its parent's entry, and reports it to user space before its
 * first sample. It keeps its parent's epoch: its own pid makes the pair unique. Returns NULL when
 * its parent is unknown, too. Not inlined: it is rare.
 */
static __noinline struct lb_proc *fork_adopt(struct lb_cpu *cpu, __u32 pid, __u64 exec_id)
{
	struct lb_target *target = &cpu->target[pid & (CPU_TARGETS - 1)];
	__u32 origin = 0;
	const struct lb_proc *proc = fork_origin(bpf_get_current_task_btf(), &origin);

	if (!proc)
		return 0;
	target->pid = 0;
	target->version = procs_version;
	target->proc = *proc;
	target->proc.exec_id = exec_id;
	target->proc.shares = 0; /* its functions live and die independently of the parent's */
	if (bpf_map_update_elem(&procs, &pid, &target->proc, BPF_NOEXIST))
		return target_take(target, pid, exec_id) ? 0 : &target->proc; /* another CPU has */
	if (emit_forked(pid, exec_id, origin)) {
		bpf_map_delete_elem(&procs, &pid);
		return 0;
	}
	target->pid = pid;
	return &target->proc;
}

#endif
