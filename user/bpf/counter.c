// SPDX-License-Identifier: BSD-2-Clause
#include "counter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/cleanup.h"
#include "count.skel.h"
#include "kernel_btf.h"
#include "load_error.h"
#include "loader.h"
#include "trap.h"
#include "uprobes.h"

#define FILES_MOST LB_MODULES_MOST

/* A program's run time, until it has run so often that it is known. */
#define PROGRAM_NS 800
#define RUNS_LEAST 1000

struct counter {
	struct count_bpf *skel;
	pid_t pid;
	int stats_fd; /* keeps the kernel's run-time counting on */
	bool multi;
	struct uprobes *file[FILES_MOST];
	uint32_t nfiles;
};

/* The programs of families that are not in the process are loaded, too: it takes milliseconds. */
static const char *const used_maps[] = {
	"ring", "builds", "proto_records", "calls", "metacalls", "lj_slots", "puc_slots",
};

static bool is_used(const struct bpf_map *map)
{
	const char *name = bpf_map__name(map);

	for (size_t i = 0; i < sizeof(used_maps) / sizeof(used_maps[0]); i++)
		if (!strcmp(name, used_maps[i]))
			return true;
	return bpf_map__is_internal(map); /* the sections of variables */
}

/* The maps of the sampler that come by its headers are left out. */
static void choose_maps(struct count_bpf *skel)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, skel->obj) if (!is_used(map))
		bpf_map__set_autocreate(map, false);
}

static int load(struct counter *c, uint32_t epoch, struct error *err)
{
	int cpus = libbpf_num_possible_cpus(), r;

	c->skel = count_bpf__open();
	if (!c->skel)
		return error_set(err, -errno, "BPF object: %s", strerror(errno));
	if (cpus < 0)
		return error_set(err, cpus, "number of CPUs: %s", strerror(-cpus));
	choose_maps(c->skel);
	bpf_map__set_max_entries(c->skel->maps.proto_records, (uint32_t)cpus);
	bpf_map__set_max_entries(c->skel->maps.lj_slots, (uint32_t)cpus + LB_CALL_SPARE);
	bpf_map__set_max_entries(c->skel->maps.puc_slots, (uint32_t)cpus + LB_CALL_SPARE);
	c->skel->rodata->counted_pid = (uint32_t)c->pid;
	c->skel->rodata->counted_epoch = epoch;
	if (c->multi) {
		uprobes_make_multi(c->skel->progs.luabpf_count_lj);
		uprobes_make_multi(c->skel->progs.luabpf_count_puc);
	}
	r = count_bpf__load(c->skel);
	return r ? load_error(r, err) : 0;
}

int counter_open(const struct counter_options *o, struct counter **out, struct error *err)
{
	struct counter *c __cleanup(counter_free) = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return error_set(err, -ENOMEM, "out of memory");
	c->pid = o->pid;
	c->multi = o->multi;
	c->stats_fd = -1;
	r = kernel_btf_check(err);
	if (r)
		return r;
	loader_be_silent();
	r = load(c, o->epoch, err);
	if (r)
		return r;
	c->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	*out = TAKE_PTR(c);
	return 0;
}

static void set_counting(struct counter *c, uint32_t counting)
{
	__atomic_store_n(&c->skel->bss->counting, counting, __ATOMIC_RELEASE);
}

void counter_begin(struct counter *c)
{
	set_counting(c, 1);
}

void counter_detach(struct counter *c)
{
	if (c->nfiles)
		set_counting(c, 0);
	while (c->nfiles)
		uprobes_free(&c->file[--c->nfiles]);
}

void counter_free(struct counter **counter)
{
	struct counter *c = *counter;

	if (!c)
		return;
	counter_detach(c);
	cleanup_fd(&c->stats_fd);
	count_bpf__destroy(c->skel);
	free(c);
	*counter = NULL;
}

int counter_set_build(struct counter *c, uint32_t index, const struct lb_build *build)
{
	return bpf_map__update_elem(c->skel->maps.builds, &index, sizeof(index), build,
				    sizeof(*build), BPF_ANY);
}

static const struct bpf_program *program_of(const struct counter *c, uint32_t family)
{
	return family == LB_FAMILY_PUC ? c->skel->progs.luabpf_count_puc
				       : c->skel->progs.luabpf_count_lj;
}

int counter_attach(struct counter *c, const struct counter_file *f, struct error *err)
{
	const struct uprobes_options o = {
		.program = program_of(c, f->family),
		.multi = c->multi,
		.pid = c->pid,
		.fd = f->fd,
	};
	int r;

	if (c->nfiles == FILES_MOST)
		return error_set(err, -E2BIG, "pid %d: it has too many VMs to count their calls",
				 (int)c->pid);
	r = uprobes_attach(&o, f->offsets, f->cookies, f->n, &c->file[c->nfiles]);
	c->nfiles += !r;
	return r ? trap_error(r, err) : 0;
}

int counter_ring_fd(const struct counter *c)
{
	return bpf_map__fd(c->skel->maps.ring);
}

__u64 *counter_stack_counts(const struct counter *c)
{
	return c->skel->bss->stack_counts;
}

int counter_each(const struct counter *c, counter_fn *fn, void *arg)
{
	struct lb_call_key key, *before = NULL;
	struct lb_calls value;
	uint32_t n;

	/* an update that comes meanwhile may not be seen: nothing is deleted */
	for (n = 0; n <= LB_CALL_KEYS; n++) {
		int r = bpf_map__get_next_key(c->skel->maps.calls, before, &key, sizeof(key));

		if (r)
			return r == -ENOENT ? 0 : r;
		before = &key;
		r = bpf_map__lookup_elem(c->skel->maps.calls, &key, sizeof(key), &value,
					 sizeof(value), 0);
		if (r)
			return r;
		fn(arg, &key, value.count);
	}
	return 0;
}

uint64_t counter_hits(const struct counter *c, uint64_t misses[LB_CALL_MISSES])
{
	const struct count_bpf__bss *bss = c->skel->bss;

	for (size_t i = 0; misses && i < LB_CALL_MISSES; i++)
		misses[i] = __atomic_load_n(&bss->call_misses[i], __ATOMIC_RELAXED);
	return __atomic_load_n(&bss->call_hits, __ATOMIC_RELAXED);
}

uint32_t counter_exec_pages(const struct counter *c)
{
	return __atomic_load_n(&c->skel->bss->call_exec_vm, __ATOMIC_RELAXED);
}

static void program_info(const struct counter *c, uint32_t family, struct bpf_prog_info *info)
{
	uint32_t len = sizeof(*info);

	memset(info, 0, sizeof(*info));
	bpf_obj_get_info_by_fd(bpf_program__fd(program_of(c, family)), info, &len);
}

uint64_t counter_dropped(const struct counter *c)
{
	struct bpf_prog_info lj, puc;

	program_info(c, LB_FAMILY_LJ, &lj);
	program_info(c, LB_FAMILY_PUC, &puc);
	return lj.recursion_misses + puc.recursion_misses;
}

double counter_program_ns(const struct counter *c)
{
	struct bpf_prog_info lj, puc;
	uint64_t runs;

	program_info(c, LB_FAMILY_LJ, &lj);
	program_info(c, LB_FAMILY_PUC, &puc);
	runs = lj.run_cnt + puc.run_cnt;
	if (runs < RUNS_LEAST) /* the first ones send stacks */
		return PROGRAM_NS;
	return (double)(lj.run_time_ns + puc.run_time_ns) / (double)runs;
}
