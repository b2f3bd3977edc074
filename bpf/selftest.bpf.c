// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
/*
 * Takes a sample that is given over the memory of the process that runs the program (BPF_PROG_RUN
 * of a raw_tp program reads the caller's own): so a test builds an image, maps it, and compares
 * what the kernel finds in it with what user space finds.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <luabpf/selftest_sample.h>
#include "prove.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The sample to take. User space writes. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct lb_selftest);
} samples SEC(".maps");

/* What came of it. User space reads. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct lj_walk);
} outcome SEC(".maps");

/* The word to read, and what came of it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct lb_selftest_read);
} reads SEC(".maps");

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

SEC("raw_tp")
int luabpf_selftest_read(void *ctx)
{
	__u32 zero = 0;
	struct lb_selftest_read *r = bpf_map_lookup_elem(&reads, &zero);
	struct lj_walk *w = bpf_map_lookup_elem(&outcome, &zero);

	if (!r || !w)
		return -1;
	lb_begin(0, &w->cache, w->cache.sample + 1);
	r->error[0] = lb_read(0, &w->cache, &r->word[0], sizeof(r->word[0]), r->addr);
	r->error[1] = mem_read(0, &r->word[1], sizeof(r->word[1]), r->addr);
	return lb_unmoved(0, &w->cache) ? 0 : -1;
}
