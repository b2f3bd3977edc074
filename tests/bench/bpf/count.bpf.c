// SPDX-License-Identifier: BSD-2-Clause
/*
 * The yardstick: what a perf_event program costs that only counts. It does the least that any
 * sampler of chosen processes has to: is this task one of them, and one more.
 */
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "BSD";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, __u32);
} targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

SEC("perf_event")
int count_sample(void *ctx)
{
	__u32 pid = bpf_get_current_pid_tgid() >> 32, zero = 0;
	__u64 *n;

	if (!bpf_map_lookup_elem(&targets, &pid))
		return 0;
	n = bpf_map_lookup_elem(&counts, &zero);
	if (n)
		(*n)++;
	return 0;
}
