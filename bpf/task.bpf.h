/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The current task's fields. */
#ifndef LUABPF_TASK_BPF_H
#define LUABPF_TASK_BPF_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <unwind/mem.h>

/*
 * Pages of executable mappings of the current process. Global, so that it is verified once: for each
 * pointer that is loaded out of a task, the verifier searches all types of the kernel by name, and it
 * does so on every path to the load.
 */
LB_SUBPROG __u32 task_exec_pages(void)
{
	return (__u32)bpf_get_current_task_btf()->mm->exec_vm;
}

/* Pages of its mappings that are neither executable, nor writable data, nor stacks: read-only data. */
LB_SUBPROG __u32 task_read_only_pages(void)
{
	const struct mm_struct *mm = bpf_get_current_task_btf()->mm;

	return (__u32)(mm->total_vm - mm->data_vm - mm->exec_vm - mm->stack_vm);
}

#endif
