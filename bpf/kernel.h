/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The kernel structures and fields that the programs read. CO-RE relocates them to those of the
 * running kernel, so neither kernel headers nor a generated vmlinux.h is needed. The loader names
 * them, too (kernel_structs).
 */
#ifndef LUABPF_KERNEL_H
#define LUABPF_KERNEL_H

#include <linux/types.h>
#include <linux/bpf.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct maple_tree {
	void *ma_root;
};

struct mm_struct {
	struct maple_tree mm_mt;   /* its mappings, since 6.1 */
	unsigned long start_stack; /* sp when the program began */
	unsigned long end_code;	   /* of the program's text */
	unsigned long total_vm;	   /* pages of all mappings, and of */
	unsigned long data_vm;	   /*	writable private ones */
	unsigned long exec_vm;	   /*	executable ones */
	unsigned long stack_vm;	   /*	stacks */
	struct file *exe_file;
};

typedef struct {
	__u32 val;
} kuid_t;

struct cred {
	kuid_t fsuid;
};

struct kernfs_node {
	__u64 id;
};

struct cgroup___kernel { /* a flavour: user space has a struct cgroup */
	struct kernfs_node *kn;
};

struct css_set {
	struct cgroup___kernel *dfl_cgrp; /* of version 2 */
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
	struct cred *cred;
	struct css_set *cgroups;
	char comm[16];
};

struct super_block {
	__u32 s_dev;
};

struct timespec64 {
	__s64 tv_sec;
	long tv_nsec;
};

struct inode {
	unsigned long i_ino;
	struct super_block *i_sb;
	__s64 i_mtime_sec; /* since 6.11 */
	__u32 i_mtime_nsec;
};

/* As it was until 6.6, and until 6.10. */
struct inode___public {
	struct timespec64 i_mtime;
};
struct inode___private {
	struct timespec64 __i_mtime;
};

struct path___kernel {
	void *mnt;
	void *dentry;
};

struct file {
	struct inode *f_inode;
	struct path___kernel f_path;
};

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	unsigned long vm_flags;
	unsigned long vm_pgoff;
	struct file *vm_file;
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

#define VM_EXEC 0x00000004
#define PF_KTHREAD 0x00200000
#define PF_EXITING 0x00000004

#endif
