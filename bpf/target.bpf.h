/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Looks up the current process in procs, through a cache of this CPU. */
#ifndef LUABPF_TARGET_BPF_H
#define LUABPF_TARGET_BPF_H

#include "kernel.h"
#include <bpf/bpf_core_read.h>
#include "maps.bpf.h"

/* Identifies an image of a process: differs after an exec, and from that of an earlier process of
 * the same pid. born: its leader's start_boottime. */
#define EXEC_ID(born, self_exec_id) ((born) << 8 ^ (__u64)(self_exec_id) << 1 ^ 1)

static __always_inline struct lb_cpu *this_cpu(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&cpus, &cpu);
}

/*
 * User space does not know the exec_id of the image in which it found a process's VMs: the image's first event sets it.
 * The process may have called exec since, without an event: then this is another image. proc: the entry of the current
 * process, or of its parent, whose image it has. Returns 0. Global, so that it is verified once.
 */
LB_SUBPROG __u64 target_adopt(struct lb_proc *proc, __u64 exec_id)
{
	const struct mm_struct *mm;

	/* a process without a VM may have called exec since it was examined, as shells do */
	if (!proc || proc->exec_id || !proc->nmodules)
		return 0;
	mm = BPF_CORE_READ(bpf_get_current_task_btf(), mm);
	if (!proc->image ||
	    proc->image == LB_IMAGE(BPF_CORE_READ(mm, start_stack), BPF_CORE_READ(mm, end_code)))
		proc->exec_id = exec_id;
	return 0;
}

/* Copies a process's entry from procs. Returns 0, or -1 when it is no target. */
static __noinline int target_take(struct lb_target *target, __u32 pid, __u64 exec_id)
{
	__u32 version = *(volatile __u32 *)&procs_version; /* before the lookup in procs */
	struct lb_proc *proc = bpf_map_lookup_elem(&procs, &pid);

	target->pid = 0;
	if (!proc)
		return -1;
	target_adopt(proc, exec_id);
	target->proc = *proc;
	target->version = version;
	target->pid = pid;
	return 0;
}

/* Returns the current process's entry in this CPU's cache; NULL when it is no target. */
static __always_inline struct lb_proc *target_of(struct lb_cpu *cpu, __u32 pid, __u64 exec_id)
{
	struct lb_target *target = &cpu->target[pid & (CPU_TARGETS - 1)];

	if ((target->pid != pid || target->version != procs_version) &&
	    target_take(target, pid, exec_id))
		return 0;
	return &target->proc;
}

#endif
