/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The few kernel structures that we read, with the fields that we read. CO-RE relocates them to
 * those of the running kernel, so neither kernel headers nor a generated vmlinux.h is needed. The
 * loader names them, too (kernel_structs).
 */
#ifndef LUABPF_KERNEL_H
#define LUABPF_KERNEL_H

#include <linux/types.h>
#include <linux/bpf.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct mm_struct {
	unsigned long start_stack; /* sp when the program began */
};

struct sched_entity {
	__u64 nr_migrations; /* from CPU to CPU */
};

struct task_struct {
	struct sched_entity se;
	struct mm_struct *mm;
	int pid;
	int tgid;
	unsigned int flags;
	__u32 self_exec_id;
	__u64 start_boottime;
	struct task_struct *group_leader;
	struct task_struct *real_parent;
	char comm[16];
};

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
};

struct perf_event {
	struct perf_event *parent;
};

struct bpf_perf_event_data_kern {
	void *regs;
	void *data;
	struct perf_event *event;
};

#pragma clang attribute pop

#define PF_KTHREAD 0x00200000
#define PF_EXITING 0x00000004

#endif
