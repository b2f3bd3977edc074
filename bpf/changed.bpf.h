/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * A target that has mapped more code, or less, may have loaded another VM. The files of its mappings
 * are looked up (files.bpf.h): when each is known and the target has each VM in them, nothing is new.
 * LuaJIT maps and unmaps machine code, which is of no file. Else user space is asked to look.
 *
 * A program that makes a VM for each request maps machine code for each of them, and a search takes longer than a
 * sample. A library's mapping comes with read-only data, which machine code has none of: where the process has
 * as many pages of that as before, it is searched again after CODE_PERIOD.
 *
 * Until that is known, a sample without a VM may be of the new one: it is lost as unrecognised. Its
 * record lets user space take the loss back if there was no new VM.
 */
#ifndef LUABPF_CHANGED_BPF_H
#define LUABPF_CHANGED_BPF_H

#include "files.bpf.h"

struct changed_ctx {
	const struct lb_proc *proc, *found;
	__u32 has; /* a bit for each module of `found` that the process has */
};

static long changed_compare(__u32 i, struct changed_ctx *c)
{
	__u32 f = i / LB_MODULES & (LB_MODULES - 1), p = i & (LB_MODULES - 1);

	if (p < c->proc->nmodules && c->proc->module[p].vm_start == c->found->module[f].vm_start)
		c->has |= 1U << f;
	return 0;
}

/* True if the process has each VM that was found. Not known, so false, for one with more than its entry holds. */
static __always_inline int changed_has_all(const struct lb_proc *proc, const struct lb_proc *found)
{
	struct changed_ctx c = {.proc = proc, .found = found};
	__u32 all = (1U << (found->nmodules & (2 * LB_MODULES - 1))) - 1;

	lb_rare_loop(LB_MODULES * LB_MODULES, changed_compare, &c);
	return (c.has & all) == all && !proc->more;
}

#define CODE_PERIOD (100 * 1000 * 1000) /* ns */

/* True if the process has mapped or unmapped machine code since it was searched, and nothing else. */
static __always_inline int changed_is_machine_code(const struct lb_proc *known, __u32 read_only,
						   __u64 now)
{
	return known->read_only == read_only && now - known->searched < CODE_PERIOD;
}

/* Not inlined: it is rare. */
static __noinline int changed_code(struct lb_cpu *cpu, struct lb_proc *proc, __u32 pid, __u64 pages)
{
	__u32 exec_vm = PAGES_EXEC(pages), read_only = PAGES_READ_ONLY(pages) + 1;
	struct lb_proc *known = bpf_map_lookup_elem(&procs, &pid);
	__u64 now;

	if (!cpu || !proc || !known || known->exec_id != proc->exec_id)
		return 0;
	if (known->exec_vm != exec_vm && known->asked_vm != exec_vm) {
		now = bpf_ktime_get_ns();
		if (changed_is_machine_code(known, read_only, now)) {
			proc->code_pages = exec_vm;
			return 0;
		}
		known->searched = now;
		known->read_only = read_only;
		if (files_search(&cpu->search) != FILES_UNKNOWN &&
		    changed_has_all(known, &cpu->search.proc)) {
			known->exec_vm = exec_vm;
		} else {
			known->asked_vm = exec_vm;
			emit_task(pid, 0, proc->exec_id, 0, known->nmodules + known->replaced);
		}
	}
	/* Another CPU may have found it out, or user space, which has not raised procs_version yet: the VMs come with it. */
	*proc = *known;
	return 0;
}

/* Returns the status of a sample that shows none of its process's VMs. */
static __noinline int changed_outside(const struct lb_proc *proc)
{
	__u32 exec_vm = task_exec_pages_read();

	if (!proc || !exec_vm || proc->exec_vm == exec_vm || proc->code_pages == exec_vm)
		return LB_STATUS_OUTSIDE;
	emit_task((__u32)(bpf_get_current_pid_tgid() >> 32), 0, proc->exec_id, 1,
		  proc->nmodules + proc->replaced);
	return LB_STATUS_UNRECOGNISED;
}

#endif
