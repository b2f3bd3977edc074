/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * A sample of PUC Lua without a perf event, as unwind/lj/selftest.h is one of LuaJIT: the map's
 * value in bpf/selftest_puc.bpf.c, and the input of tests/lib/walk_host.c.
 */
#ifndef LUABPF_UNWIND_PUC_SELFTEST_H
#define LUABPF_UNWIND_PUC_SELFTEST_H

#include <unwind/unwind.h>

#define PUC_SELFTEST_CHILDREN 6

struct puc_selftest {
	struct puc_build build;
	struct puc_stdlib stdlib;
	struct lb_regs regs;
	struct lb_gprs gprs;
	__u64 vm_start, vm_end;
	__u64 text_lo, text_hi;
	__u64 gc_lo, gc_hi;
	__u64 stack_hi;
	__u64 L; /* lua_State that ran on this thread in the sample before; 0: unknown */
	__u64 child[PUC_SELFTEST_CHILDREN]; /* coroutines of an earlier sample; 0: none */
	__u64 resumer;			    /* their resumer in it */
	__u64 epoch;			    /* lb_walk.epoch */
	__u32 sample;			    /* differs from that of the sample before */
	__u32 pad;
};

#endif
