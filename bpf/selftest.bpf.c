// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
/*
 * Takes a sample, given in a map, in the memory of the process that runs the program (BPF_PROG_RUN
 * of a raw_tp program reads the caller's own): a test builds an image, maps it, and compares the
 * kernel's walk of it with user space's.
 */
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <unwind/lj/selftest_sample.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The sample to take. User space writes. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct lb_selftest);
} samples SEC(".maps");

/* Its result. User space reads it, mapped: a copy would cost more than the walk. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct lj_walk);
} outcome SEC(".maps");

static long walk_step(__u32 i, struct lj_walk **w)
{
	return lj_step(0, *w) != LB_MORE;
}

static void lb_selftest_run(const struct lb_mem *mem, struct lj_walk *w)
{
	bpf_loop(LB_MAX_STEPS, walk_step, &w, 0);
}

SEC("raw_tp")
int luabpf_selftest(void *ctx)
{
	__u32 zero = 0;
	struct lb_selftest *in = bpf_map_lookup_elem(&samples, &zero);
	struct lj_walk *w = bpf_map_lookup_elem(&outcome, &zero);

	if (!in || !w)
		return -1;
	lb_selftest_sample(0, w, in);
	return 0;
}
