/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * A system-wide recording of those processes only that match what the user has asked for: an
 * executable, a name, a cgroup, a user. User space decides, once for each identity; a process whose
 * identity has no verdict yet has no samples. A change of it, by exec or without, makes another
 * image of the process, as its stamp is part of the exec_id.
 */
#ifndef LUABPF_NARROW_BPF_H
#define LUABPF_NARROW_BPF_H

#include "maps.bpf.h"

#define NARROW_MIX 0x9e3779b97f4a7c15ULL

/*
 * Stands for all of an identity that can change without an exec. At each event: direct loads, no
 * helper call. Bit 0 is clear.
 */
static __always_inline __u64 narrow_stamp(const struct task_struct *task)
{
	const struct task_struct *leader = task->group_leader;
	const struct cred *cred;
	__u64 stamp = 0;

	if (narrowed_by & LB_NARROW_USER) {
		cred = leader->cred;
		stamp = cred ? cred->fsuid.val + 1ULL : 0;
	}
	if (narrowed_by & LB_NARROW_CGROUP)
		stamp = stamp * NARROW_MIX ^ leader->cgroups->dfl_cgrp->kn->id;
	if (narrowed_by & LB_NARROW_COMM) {
		stamp = stamp * NARROW_MIX ^ ((const __u64 *)leader->comm)[0];
		stamp = stamp * NARROW_MIX ^ ((const __u64 *)leader->comm)[1];
	}
	return stamp * NARROW_MIX << 1;
}

/* Fills in the identity of the current process. Not inlined: it is rare. */
static __noinline int narrow_identity(struct lb_identity *id)
{
	const struct task_struct *leader = BPF_CORE_READ(bpf_get_current_task_btf(), group_leader);
	const struct file *exe;

	__builtin_memset(id, 0, sizeof(*id));
	if (narrowed_by & LB_NARROW_EXE) {
		exe = BPF_CORE_READ(bpf_get_current_task_btf(), mm, exe_file);
		id->exe_mount = (__u64)BPF_CORE_READ(exe, f_path.mnt);
		id->exe_dentry = (__u64)BPF_CORE_READ(exe, f_path.dentry);
		id->exe_ino = BPF_CORE_READ(exe, f_inode, i_ino);
	}
	if (narrowed_by & LB_NARROW_CGROUP)
		id->cgroup = BPF_CORE_READ(leader, cgroups, dfl_cgrp, kn, id);
	if (narrowed_by & LB_NARROW_USER)
		id->uid = BPF_CORE_READ(leader, cred, fsuid.val);
	if (narrowed_by & LB_NARROW_COMM)
		BPF_CORE_READ_INTO(&id->comm, leader, comm);
	return 0;
}

enum verdict { VERDICT_UNKNOWN, VERDICT_UNWANTED, VERDICT_WANTED };

/* The verdict on the current process. */
static __noinline int narrow_verdict(struct lb_identity *id)
{
	const __u32 *wanted;

	narrow_identity(id);
	wanted = bpf_map_lookup_elem(&verdicts, id);
	return !wanted ? VERDICT_UNKNOWN : *wanted ? VERDICT_WANTED : VERDICT_UNWANTED;
}

#endif
