// SPDX-License-Identifier: BSD-2-Clause
/* Opens, loads and frees the program of the events and its maps. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/cleanup.h"
#include "families.h"
#include "kernel_btf.h"
#include "load_error.h"
#include "loader_priv.h"

static int silent(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

void loader_be_silent(void)
{
	libbpf_set_print(silent);
}

/* Enough for the maps, the programs and the other files of a session of one process. */
#define DESCRIPTORS 40

/* Fails with -EMFILE early: libbpf reports a lack of descriptors late, by various errors. */
static int check_descriptors(struct error *err)
{
	int fds[DESCRIPTORS], n = 0, r = 0, needed = DESCRIPTORS;

	while (n < DESCRIPTORS && !r) {
		fds[n] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (fds[n] < 0)
			r = -errno;
		else if (!n++)
			needed += fds[0]; /* those that are open */
	}
	while (n--)
		close(fds[n]);
	if (!r)
		return 0;
	error_set(err, r, "/dev/null: %s", strerror(-r));
	if (r == -EMFILE || r == -ENFILE)
		error_set(err, r, "luabpf needs %d open files at least, and may not have them: %s",
			  needed, strerror(-r));
	return r;
}

#define EVENTS_MOST 1000000 /* for a sample */

/* Events come more often than samples where these are further apart, see events_per_sample. */
static void choose_events(struct loader *l, const struct loader_options *o)
{
	uint64_t n = 1;

	if (o->event_ns && o->period_ns > o->event_ns)
		n = o->period_ns / o->event_ns;
	if (n > EVENTS_MOST)
		n = EVENTS_MOST;
	l->event_ns = o->period_ns / n;
	l->skel->rodata->events_per_sample = (uint32_t)n;
}

/* All of kernel.h: a program that reads another structure fails to load. */
static const char *const kernel_structs[] = {
	"task_struct",	  "sched_entity", "mm_struct",
	"vm_area_struct", "perf_event",	  "bpf_perf_event_data_kern",
	"maple_tree",	  "file",	  "inode",
	"super_block",	  "timespec64",	  "path",
	"cred",		  "css_set",	  "cgroup",
	"kernfs_node",
};

static struct luabpf_bpf *open_skeleton(int btf)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts);
	char path[KERNEL_BTF_PATH];

	kernel_btf_use(&opts, btf, path);
	return luabpf_bpf__open_opts(&opts);
}

static int load(struct loader *l, const struct loader_options *o, struct error *err)
{
	int cpus = libbpf_num_possible_cpus(), r;

	kernel_btf_open(kernel_structs, sizeof(kernel_structs) / sizeof(kernel_structs[0]),
			&l->btf);
	l->skel = open_skeleton(l->btf);
	if (!l->skel)
		return error_set(err, -errno, "BPF object: %s", strerror(errno));
	if (cpus < 0)
		return error_set(err, cpus, "number of CPUs: %s", strerror(-cpus));
	bpf_map__set_max_entries(l->skel->maps.cpus, (uint32_t)cpus);
	bpf_map__set_max_entries(l->skel->maps.proto_records, (uint32_t)cpus);
	bpf_map__set_autocreate(l->skel->maps.walks, false); /* those of the families */
	bpf_map__set_autocreate(l->skel->maps.puc_walks, false);
	if (o->by_process)
		bpf_map__set_max_entries(l->skel->maps.process_ends,
					 o->by_process * LB_STATUS__MAX);
	l->skel->rodata->by_process = o->by_process != 0;
	l->skel->rodata->by_coroutine = o->by_coroutine;
	l->skel->rodata->by_zone = o->by_zone;
	if (o->by_zone)
		bpf_map__set_max_entries(l->skel->maps.zones, LB_ZONE_VMS);
	if (o->narrowed_by)
		bpf_map__set_max_entries(l->skel->maps.verdicts, LB_VERDICTS);
	l->skel->rodata->narrowed_by = o->narrowed_by;
	l->program = o->everywhere ? l->skel->progs.luabpf_cpus : l->skel->progs.luabpf_threads;
	loader_choose_program(l->skel->obj, l->program);
	choose_events(l, o);
	r = luabpf_bpf__load(l->skel);
	return r ? load_error(r, err) : 0;
}

int loader_open(const struct loader_options *o, struct loader **out, struct error *err)
{
	struct loader *l __cleanup(loader_free) = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return error_set(err, -ENOMEM, "out of memory");
	l->stats_fd = -1;
	l->btf = -1;
	r = check_descriptors(err);
	if (!r)
		r = kernel_btf_check(err);
	if (r)
		return r;
	if (o->by_zone && getrandom(&l->zone_seed, sizeof(l->zone_seed), 0) != sizeof(l->zone_seed))
		return error_set(err, -errno, "random numbers: %s", strerror(errno));
	loader_be_silent();
	r = load(l, o, err);
	if (!r && !o->in_process)
		r = loader_start_families(l, err);
	if (r)
		return r;
	if (o->cost)
		l->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	*out = TAKE_PTR(l);
	return 0;
}

void loader_free(struct loader **loader)
{
	struct loader *l = *loader;

	if (!l)
		return;
	loader_detach(l);
	families_free(&l->families);
	module_pool_free(&l->pool);
	free(l->attached);
	cleanup_fd(&l->stats_fd);
	cleanup_fd(&l->btf);
	luabpf_bpf__destroy(l->skel);
	free(l);
	*loader = NULL;
}

int loader_ring_fd(const struct loader *l)
{
	return bpf_map__fd(l->skel->maps.ring);
}
