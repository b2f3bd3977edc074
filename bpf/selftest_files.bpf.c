// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
/*
 * Searches the mappings of the process that runs the program (files.bpf.h): by the kernel's tree, by a
 * copy of its root, and by that as the kernel leaves a node which it has replaced.
 */
#pragma clang diagnostic ignored "-Wunused-function"
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "files.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* A node has 256 bytes, at a multiple of that: this map's memory begins with a page. BPF alone. */
struct node_copy {
	__u64 word[TREE_WORDS];
	__u64 address; /* its own */
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct node_copy);
} copies SEC(".maps");

/* Each an enum by_files. BPF writes, user space reads. */
__u32 by_tree, by_copy, by_replaced;

LB_SUBPROG int search_tree(struct lb_search *s, __u64 root)
{
	return s ? files_search_tree(s, root) : FILES_UNKNOWN;
}

SEC("raw_tp")
int luabpf_selftest_files(void *ctx)
{
	__u32 zero = 0;
	struct lb_cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);
	struct node_copy *copy = bpf_map_lookup_elem(&copies, &zero);
	__u64 root, address;

	if (!cpu || !copy)
		return -1;
	by_tree = (__u32)files_search(&cpu->search);
	root = (__u64)BPF_CORE_READ(bpf_get_current_task_btf(), mm, mm_mt.ma_root);
	if (bpf_probe_read_kernel(copy->word, sizeof(copy->word), (const void *)TREE_ADDRESS(root)))
		return -1;
	/* through memory: the verifier allows no bit operation on a pointer */
	*(void *volatile *)&copy->address = copy;
	address = *(volatile __u64 *)&copy->address;
	root = address | (root & ~TREE_ADDRESS(~0ULL));
	by_copy = (__u32)search_tree(&cpu->search, root);
	/* mas_replace_node() marks it, and call_rcu() links it by the words behind that */
	copy->word[0] = address;
	copy->word[1] = copy->word[2] = ~0ULL;
	by_replaced = (__u32)search_tree(&cpu->search, root);
	return 0;
}
