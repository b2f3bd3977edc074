/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * A sample without a perf event: it has all that the sampler reads from the kernel. The map's value
 * in bpf/selftest.bpf.c, and the input of tests/lib/walk_host.c.
 */
#ifndef LUABPF_UNWIND_LJ_SELFTEST_H
#define LUABPF_UNWIND_LJ_SELFTEST_H

#include <unwind/lj/unwind.h>

struct lb_selftest {
	struct lj_build build;
	struct lb_regs regs;
	__u64 vm_start, vm_end;
	__u64 text_lo, text_hi;
	__u64 stack_hi;
	__u64 known[LB_THREAD_VMS]; /* global_States that ran on this thread; 0 ends the list */
	__u64 epoch;		    /* lb_walk.epoch */
	__u32 traceno;
	__u32 sample; /* differs from that of the sample before */
};

#endif
