// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
/*
 * Takes a sample of PUC Lua, given in a map, in the memory of the process that runs the program, as
 * bpf/selftest.bpf.c does for LuaJIT.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <unwind/puc/selftest_sample.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The sample to take. User space writes. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct puc_selftest);
} samples SEC(".maps");

/* Its result. User space reads it, mapped: a copy would cost more than the walk. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct puc_walk);
} outcome SEC(".maps");

static long walk_step(__u32 i, struct puc_walk **w)
{
	return puc_step(0, *w) != LB_MORE;
}

static void puc_selftest_run(const struct lb_mem *mem, struct puc_walk *w)
{
	bpf_loop(LB_MAX_STEPS, walk_step, &w, 0);
}

SEC("raw_tp")
int luabpf_selftest_puc(void *ctx)
{
	__u32 zero = 0;
	struct puc_selftest *in = bpf_map_lookup_elem(&samples, &zero);
	struct puc_walk *w = bpf_map_lookup_elem(&outcome, &zero);

	if (!in || !w)
		return -1;
	puc_selftest_sample(0, w, in);
	return 0;
}
