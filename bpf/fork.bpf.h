/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* A target's child that has called no exec: it has what its parent had. */
#ifndef LUABPF_FORK_BPF_H
#define LUABPF_FORK_BPF_H

#include "emit.bpf.h"
#include "target.bpf.h"

#define FORKS 4 /* generations that no event has shown */

/* Is the image of both the same? A fork copies all of this; an exec counts, and draws the other. */
static __always_inline int fork_is_copy(const struct task_struct *task,
					const struct task_struct *parent)
{
	return BPF_CORE_READ(task, self_exec_id) == BPF_CORE_READ(parent, self_exec_id) &&
	       BPF_CORE_READ(task, mm, start_stack) == BPF_CORE_READ(parent, mm, start_stack);
}

/* What procs says of the nearest ancestor that is known, when no exec lies between; NULL. */
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
		if (!proc->exec_id) /* it has shown no sample yet */
			proc->exec_id = exec_id;
		*origin = pid;
		return proc->exec_id == exec_id ? proc : 0;
	}
	return 0;
}

/*
 * The process that runs, of which procs says nothing: puts it there, and tells user space before
 * its first sample does. It keeps its parent's epoch, of which its own pid makes another. NULL when
 * nothing is known of its parent either. Not inlined: it is seldom.
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
	target->proc.shares = 0; /* its functions come and go apart from the parent's */
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
