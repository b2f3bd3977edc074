/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The current task's fields. */
#ifndef LUABPF_TASK_BPF_H
#define LUABPF_TASK_BPF_H

#include "kernel.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <unwind/mem.h>

/*
 * Pages of executable mappings of the current process; in the upper half, of read-only data: of mappings that are
 * neither executable, nor writable data, nor stacks. Global, so that it is verified once: for each pointer that is loaded
 * out of a task, the verifier searches all types of the kernel by name, a millisecond of a program's load, and it
 * does so on every path to the load.
 */
LB_SUBPROG __u64 task_pages(void)
{
	const struct mm_struct *mm = bpf_get_current_task_btf()->mm;
	__u64 read_only = mm->total_vm - mm->data_vm - mm->exec_vm - mm->stack_vm;

	return read_only << 32 | (__u32)mm->exec_vm;
}

#define PAGES_EXEC(pages) ((__u32)(pages))
#define PAGES_READ_ONLY(pages) ((__u32)((pages) >> 32))

/* The same, of executable mappings, by reads of memory: a sample takes longer, the load does not. */
static __always_inline __u32 task_exec_pages_read(void)
{
	return (__u32)BPF_CORE_READ(bpf_get_current_task_btf(), mm, exec_vm);
}

#endif
