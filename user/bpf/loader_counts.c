// SPDX-License-Identifier: BSD-2-Clause
/* Reads the programs' counters, and the variables that user space shares with them. */
#include <errno.h>
#include <stdlib.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/cleanup.h"
#include "loader_priv.h"

__u64 *loader_stack_counts(const struct loader *l)
{
	return l->skel->bss->stack_counts;
}

void loader_next_epoch(struct loader *l)
{
	volatile __u32 *epoch = &l->skel->data->proof_epoch;
	__u32 next = *epoch + 1;

	__atomic_store_n(epoch, next + !next, __ATOMIC_RELEASE);
}

uint64_t loader_first_sample(const struct loader *l)
{
	return *(const volatile __u64 *)&l->skel->bss->first_sample;
}

int loader_status_counts(const struct loader *l, uint64_t status_counts[LB_STATUS__MAX])
{
	int ncpus = libbpf_num_possible_cpus(), r;
	uint64_t *values __free = NULL;
	uint32_t i;

	if (ncpus < 0)
		return ncpus;
	values = calloc((size_t)ncpus, sizeof(*values));
	if (!values)
		return -ENOMEM;
	for (i = 0; i < LB_STATUS__MAX; i++) {
		int cpu;

		r = bpf_map__lookup_elem(l->skel->maps.status_counts, &i, sizeof(i), values,
					 sizeof(*values) * (size_t)ncpus, 0);
		if (r)
			return r;
		status_counts[i] = 0;
		for (cpu = 0; cpu < ncpus; cpu++)
			status_counts[i] += values[cpu];
	}
	return 0;
}

void loader_process_status_counts(const struct loader *l, pid_t pid,
				  uint64_t status_counts[LB_STATUS__MAX])
{
	struct lb_process_end key = {.pid = (uint32_t)pid};

	for (key.end = 0; key.end < LB_STATUS__MAX; key.end++)
		if (bpf_map__lookup_elem(l->skel->maps.process_ends, &key, sizeof(key),
					 &status_counts[key.end], sizeof(status_counts[0]), 0))
			status_counts[key.end] = 0;
}

int loader_cost(const struct loader *l, uint64_t *ns, uint64_t *runs)
{
	struct bpf_prog_info info = {};
	uint32_t len = sizeof(info);
	int r = bpf_obj_get_info_by_fd(bpf_program__fd(l->program), &info, &len);

	if (r)
		return r;
	*ns = info.run_time_ns;
	*runs = info.run_cnt;
	return 0;
}
