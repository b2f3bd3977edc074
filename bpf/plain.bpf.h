/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * System-wide recording. Most samples are of processes without a VM. Each CPU caches those that it
 * has met: a sample of one costs a few loads, and no helper call. A process that maps more code may
 * have loaded a VM: it is looked at again. So is one that calls exec.
 */
#ifndef LUABPF_PLAIN_BPF_H
#define LUABPF_PLAIN_BPF_H

#include "emit.bpf.h"
#include "maps.bpf.h"

static __always_inline struct lb_plain *plain_of(struct lb_cpu *cpu, __u32 pid)
{
	return &cpu->plain[pid & (CPU_PLAIN - 1)];
}

/* True if the entry is of this image, with as many mappings. */
static __always_inline int is_met(const struct lb_plain *plain, __u32 pid, __u64 exec_id,
				  __u32 exec_vm)
{
	return plain->pid == pid && plain->exec_id == exec_id && plain->exec_vm == exec_vm;
}

static __always_inline int is_plain(struct lb_cpu *cpu, const struct task_struct *task, __u32 pid,
				    __u64 exec_id)
{
	const struct lb_plain *plain = plain_of(cpu, pid);

	return is_met(plain, pid, exec_id, (__u32)task->mm->exec_vm) &&
	       (!plain->asked || plain->version == procs_version);
}

/* asked: user space has to look at it. Returns 0 if it was asked before. */
static __always_inline int note_plain(struct lb_cpu *cpu, __u32 pid, __u64 exec_id, __u32 exec_vm,
				      __u32 asked)
{
	struct lb_plain *plain = plain_of(cpu, pid);
	int again = plain->asked && is_met(plain, pid, exec_id, exec_vm);

	plain->pid = pid;
	plain->exec_id = exec_id;
	plain->exec_vm = exec_vm;
	plain->asked = asked;
	plain->version = cpu->target[pid & (CPU_TARGETS - 1)].version;
	return !again;
}

#endif
