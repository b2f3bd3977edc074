// SPDX-License-Identifier: BSD-2-Clause
/*
 * Loads and attaches the BPF program: one perf_event for each thread that a target has when it is
 * attached. Later threads (and children) inherit it. A thread that starts between the listing of
 * threads and the opening of its parent's event is found by listing again. If it has inherited an
 * event, it has two, and bss->doubled makes BPF use one of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <utlist.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "families.h"
#include "family_object.h"
#include "kernel_btf.h"
#include "load_error.h"
#include "luabpf.skel.h"
#include "module_pool.h"
#include "periods.h"
#include "loader.h"

struct attached {
	int event;
	bool doubled; /* another event may count the same CPU time */
	pid_t tid;    /* 0: a CPU's */
	struct period period;
	struct bpf_link *link;
};

/* See loader_keep_time(). */
struct keeper {
	int event;		/* -1: it was given up */
	struct keeper *sibling; /* of the same process, which owns the list */
	struct keeper *prev, *next;
};

struct loader {
	struct luabpf_bpf *skel;
	struct bpf_program
		*program;	   /* of the skeleton, the one that is loaded: that of the events */
	int btf;		   /* of kernel_structs; -1 */
	struct families *families; /* NULL: they are loaded here */
	uint32_t families_here;
	int families_error; /* of the first that failed here */
	struct module_pool pool;
	struct attached *attached;
	size_t nattached, next_varied;
	struct keeper *keepers; /* of all processes */
	bool few_files;		/* they were given up */
	uint64_t event_ns;	/* CPU time between two events, on average */
	uint64_t cpu_ns;	/* that detached events had counted */
	int stats_fd;		/* keeps the kernel's run-time counting on */
	uint64_t zone_seed;	/* a target that knew it could make two names with one hash */
};

/* Closes all keepers: the events that sample and user space's files need the descriptors. */
static void give_up_keepers(struct loader *l)
{
	struct keeper *k;

	DL_FOREACH(l->keepers, k)
	{
		cleanup_fd(&k->event);
	}
	l->few_files = true;
}

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

int loader_check_btf(struct error *err)
{
	if (!access(KERNEL_BTF, R_OK))
		return 0;
	if (access("/sys/kernel", F_OK)) {
		error_set(err, -ENOENT, KERNEL_BTF ": /sys is not mounted");
		return error_remedy(err, -ENOENT,
				    "mount -t sysfs sysfs /sys; a container started with "
				    "--privileged has it");
	}
	error_set(err, -ENOENT, KERNEL_BTF ": this kernel offers no BTF");
	return error_remedy(err, -ENOENT, "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y");
}

/* Enough for the maps, the programs and the other files of a session of one process. */
#define DESCRIPTORS 40

/* Fails with -EMFILE early: libbpf reports a lack of descriptors late, by various errors. */
static int check_descriptors(struct error *err)
{
	int fds[DESCRIPTORS], n = 0, r = 0;

	while (n < DESCRIPTORS && !r) {
		fds[n] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		if (fds[n] < 0)
			r = -errno;
		else
			n++;
	}
	while (n--)
		close(fds[n]);
	if (!r)
		return 0;
	error_set(err, r, "/dev/null: %s", strerror(-r));
	if (r == -EMFILE || r == -ENFILE)
		error_set(err, r, "luabpf needs %d open files at least, and may not have them: %s",
			  DESCRIPTORS, strerror(-r));
	return r;
}

/* The other programs are not loaded. */
static void choose_program(const struct bpf_object *obj, const struct bpf_program *chosen)
{
	struct bpf_program *program;

	bpf_object__for_each_program (program, obj)
		bpf_program__set_autoload(program, program == chosen);
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

/* btf: of struct loader, read when the object is loaded. Without it libbpf reads the kernel's whole
 * BTF. */
#define BTF_PATH 32
static void set_btf(struct bpf_object_open_opts *opts, int btf, char path[BTF_PATH])
{
	snprintf(path, BTF_PATH, "/proc/self/fd/%d", btf);
	if (btf >= 0)
		opts->btf_custom_path = path;
}

static struct luabpf_bpf *open_skeleton(int btf)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts);
	char path[BTF_PATH];

	set_btf(&opts, btf, path);
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
	choose_program(l->skel->obj, l->program);
	choose_events(l, o);
	r = luabpf_bpf__load(l->skel);
	return r ? load_error(r, err) : 0;
}

/* ---- the programs of families, in a child, or here ------------------------------------------- */

/* They have the maps of the program of the events, and their own walk. */
static int share_maps(const struct loader *l, struct bpf_object *obj, const struct bpf_map *walk)
{
	struct bpf_map *map;
	int r = 0;

	bpf_object__for_each_map(map, obj)
	{
		struct bpf_map *ours =
			bpf_object__find_map_by_name(l->skel->obj, bpf_map__name(map));
		int fd = ours ? bpf_map__fd(ours) : -1;

		if (fd >= 0)
			r = bpf_map__reuse_fd(map, fd);
		else if (map == walk)
			r = bpf_map__set_max_entries(map, (uint32_t)libbpf_num_possible_cpus());
		else
			r = bpf_map__set_autocreate(map, false);
		if (r)
			return r;
	}
	return 0;
}

static int load_family(void *arg, uint32_t family)
{
	const struct loader *l = arg;
	LIBBPF_OPTS(bpf_object_open_opts, opts);
	char path[BTF_PATH];
	struct bpf_program *program;
	struct bpf_object *obj;
	int r, fd;

	set_btf(&opts, l->btf, path);
	obj = family_object_open(family, bpf_object__name(l->skel->obj), &opts);
	if (!obj)
		return -errno;
	program = bpf_object__find_program_by_name(obj, family_program(family));
	choose_program(obj, program);
	r = share_maps(l, obj, bpf_object__find_map_by_name(obj, family_walks(family)));
	if (!r)
		r = bpf_object__load(obj);
	fd = bpf_program__fd(program);
	if (!r)
		r = bpf_map__update_elem(l->skel->maps.family_programs, &family, sizeof(family),
					 &fd, sizeof(fd), BPF_ANY);
	bpf_object__close(obj);
	return r;
}

#define MAPS_MOST 64

static int start_families(struct loader *l, struct error *err)
{
	struct families_options o = {.load = load_family, .arg = l, .families = LB_FAMILIES_ALL};
	int keep[MAPS_MOST + 1], r;
	struct bpf_map *map;

	bpf_object__for_each_map(map,
				 l->skel->obj) if (bpf_map__fd(map) >= 0 && o.nkeep < MAPS_MOST)
		keep[o.nkeep++] = bpf_map__fd(map);
	keep[o.nkeep++] = l->btf;
	o.keep = keep;
	r = families_start(&o, &l->families);
	return r ? error_set(err, r, "cannot start a process: %s", strerror(-r)) : 0;
}

/* Loads those that were not requested before. */
static void load_here(struct loader *l, uint32_t bits)
{
	bits &= ~l->families_here;
	l->families_here |= bits;
	for (uint32_t i = 0; i < LB_FAMILIES_MOST && !l->families_error; i++)
		if (bits >> i & 1)
			l->families_error = load_family(l, i);
}

void loader_request_families(struct loader *l, uint32_t families)
{
	if (l->families)
		families_request(l->families, families);
	else
		load_here(l, families);
}

void loader_prepare_families(struct loader *l, uint32_t families)
{
	if (l->families)
		families_prepare(l->families, families);
}

void loader_reap_families(struct loader *l)
{
	if (l->families)
		families_reap(l->families);
}

int loader_wait_families(struct loader *l, struct error *err)
{
	int r = l->families ? families_wait(l->families) : l->families_error;

	if (r == -EIO)
		return error_set(err, r, "BPF programs: the process that loads one was killed");
	return r ? load_error(r, err) : 0;
}

/* ---- the program of the events --------------------------------------------------------------- */

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
		r = loader_check_btf(err);
	if (r)
		return r;
	if (o->by_zone && getrandom(&l->zone_seed, sizeof(l->zone_seed), 0) != sizeof(l->zone_seed))
		return error_set(err, -errno, "random numbers: %s", strerror(errno));
	loader_be_silent();
	r = load(l, o, err);
	if (!r && !o->in_process)
		r = start_families(l, err);
	if (r)
		return r;
	if (o->cost)
		l->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	*out = TAKE_PTR(l);
	return 0;
}

/* Returns the CPU time that an event has counted; 0 of one that another event's may contain. */
static uint64_t counted_by(const struct attached *a)
{
	uint64_t count;

	if (!a->link || a->doubled || read(a->event, &count, sizeof(count)) != sizeof(count))
		return 0;
	return count;
}

void loader_detach(struct loader *l)
{
	size_t i;

	for (i = 0; i < l->nattached; i++) {
		struct attached *a = &l->attached[i];

		if (!a->link)
			continue;
		ioctl(a->event, PERF_EVENT_IOC_DISABLE, 0);
		l->cpu_ns += counted_by(a);
		bpf_link__destroy(a->link); /* closes the event */
		a->link = NULL;
	}
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

int loader_set_build(struct loader *l, uint32_t index, const struct lb_build *build)
{
	return bpf_map__update_elem(l->skel->maps.builds, &index, sizeof(index), build,
				    sizeof(*build), BPF_ANY);
}

int loader_set_zone_layout(struct loader *l, uint32_t build, struct lb_zone_layout *layout)
{
	layout->seed = l->zone_seed;
	return bpf_map__update_elem(l->skel->maps.zone_layouts, &build, sizeof(build), layout,
				    sizeof(*layout), BPF_ANY);
}

int loader_set_zone(struct loader *l, const struct lb_zone_key *key, const struct lb_zone *zone)
{
	struct lb_zone value = *zone;
	int r;

	value.check = lb_zone_check(key, zone);
	r = bpf_map__update_elem(l->skel->maps.zones, key, sizeof(*key), &value, sizeof(value),
				 BPF_ANY);
	__atomic_add_fetch(&l->skel->bss->zones_version, 1, __ATOMIC_RELEASE);
	return r;
}

int loader_set_file(struct loader *l, const struct lb_file_key *key, const struct lb_file *file)
{
	return bpf_map__update_elem(l->skel->maps.files, key, sizeof(*key), file, sizeof(*file),
				    BPF_ANY);
}

int loader_set_verdict(struct loader *l, const struct lb_identity *identity, bool wanted)
{
	uint32_t value = wanted;

	return bpf_map__update_elem(l->skel->maps.verdicts, identity, sizeof(*identity), &value,
				    sizeof(value), BPF_ANY);
}

/* Invalidates BPF's cached copies. */
static int procs_changed(struct loader *l, int r)
{
	__atomic_add_fetch(&l->skel->bss->procs_version, 1, __ATOMIC_RELEASE);
	return r;
}

int loader_put_proc(struct loader *l, pid_t pid, const struct lb_proc *proc)
{
	uint32_t key = (uint32_t)pid;

	return procs_changed(l, bpf_map__update_elem(l->skel->maps.procs, &key, sizeof(key), proc,
						     sizeof(*proc), BPF_ANY));
}

/* Modules that an entry does not hold. */
static int place_modules(struct loader *l, struct lb_proc *proc, const struct lb_module *modules,
			 uint32_t n)
{
	const struct module_block *b;
	bool is_new;
	int r = module_pool_hold(&l->pool, modules, n, &b, &is_new);

	if (r)
		return r;
	for (uint32_t i = 0; i < n && is_new && !r; i++) {
		uint32_t key = b->first + i;

		r = bpf_map__update_elem(l->skel->maps.modules, &key, sizeof(key), &b->modules[i],
					 sizeof(b->modules[i]), BPF_ANY);
	}
	if (r)
		module_pool_drop(&l->pool, b->first);
	else
		proc->more = b->first + 1;
	return r;
}

int loader_set_proc(struct loader *l, pid_t pid, struct lb_proc *proc,
		    const struct lb_module *modules, uint32_t n)
{
	struct lb_proc was = *proc;
	int r = 0;

	proc->more = 0;
	if (n > LB_MODULES)
		r = place_modules(l, proc, modules, n);
	if (r == -ENOSPC) {
		n = LB_MODULES;
		proc->unsampled = 1;
		r = 0;
	}
	proc->nmodules = n;
	proc->families = 0;
	memset(proc->module, 0, sizeof(proc->module));
	for (uint32_t i = 0; i < n; i++) {
		proc->families |= 1u << modules[i].family;
		if (!proc->more)
			proc->module[i] = modules[i];
	}
	if (!r)
		r = loader_put_proc(l, pid, proc);
	if (r)
		loader_drop_modules(l, proc);
	else
		loader_drop_modules(l, &was);
	if (r)
		*proc = was;
	return r;
}

bool loader_share_modules(struct loader *l, const struct lb_proc *proc)
{
	return !proc->more || module_pool_share(&l->pool, proc->more - 1);
}

void loader_drop_modules(struct loader *l, struct lb_proc *proc)
{
	if (proc->more)
		module_pool_drop(&l->pool, proc->more - 1);
	proc->more = 0;
}

int loader_get_proc(struct loader *l, pid_t pid, struct lb_proc *proc)
{
	uint32_t key = (uint32_t)pid;

	return bpf_map__lookup_elem(l->skel->maps.procs, &key, sizeof(key), proc, sizeof(*proc), 0);
}

int loader_drop_proc(struct loader *l, pid_t pid)
{
	uint32_t key = (uint32_t)pid;

	return procs_changed(l, bpf_map__delete_elem(l->skel->maps.procs, &key, sizeof(key), 0));
}

static int open_event(const struct loader_attach *how, uint64_t period_ns)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period_ns,
		.inherit = !how->on_cpu,
		.inherit_thread = !how->on_cpu && !how->children,
		.disabled = how->on_exec,
		.enable_on_exec = how->on_exec,
		.exclude_hv = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, how->on_cpu ? -1 : how->tid,
			    how->on_cpu ? how->cpu : -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static int explain_attach(int r, const struct loader_attach *how, struct error *err)
{
	if (r == -ESRCH || r == -ENODEV)
		return r;
	if (r == -EACCES || r == -EPERM)
		return load_error_privilege(r, "opening a perf event", err);
	return error_set(err, r, "%s %d: cannot attach a perf event: %s",
			 how->on_cpu ? "CPU" : "thread", how->on_cpu ? how->cpu : (int)how->tid,
			 strerror(-r));
}

int loader_check_events(struct error *err)
{
	struct loader_attach self = {.tid = gettid()};
	int fd __close = open_event(&self, 1000000); /* closed before it fires */

	return fd < 0 ? explain_attach(-errno, &self, err) : 0;
}

#define SPARE 64 /* descriptors kept for other files */

static bool is_spare(int fd)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_NOFILE, &limit) && (rlim_t)fd + SPARE < limit.rlim_cur;
}

void loader_keep_time(struct loader *l, pid_t tid, struct keeper **keepers)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.disabled = 1,
		.exclude_hv = 1,
	};
	struct keeper *k;
	int fd __close =
		(int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0 || l->few_files || !is_spare(fd))
		return;
	k = calloc(1, sizeof(*k));
	if (!k)
		return;
	k->event = TAKE_FD(fd);
	k->sibling = *keepers;
	*keepers = k;
	DL_APPEND(l->keepers, k);
}

void loader_drop_keepers(struct loader *l, struct keeper **keepers)
{
	struct keeper *k;

	while ((k = *keepers)) {
		*keepers = k->sibling;
		DL_DELETE(l->keepers, k);
		cleanup_fd(&k->event);
		free(k);
	}
}

static int attach(struct loader *l, const struct loader_attach *how, struct error *err)
{
	struct attached a = {
		.doubled = how->doubled,
		.tid = how->on_cpu ? 0 : how->tid,
		.period.ns = l->event_ns,
	};

	if (array_grow(&l->attached, l->nattached, sizeof(*l->attached)))
		return error_set(err, -ENOMEM, "out of memory");
	a.event = open_event(how, l->event_ns);
	if (a.event < 0)
		return explain_attach(-errno, how, err);
	if (how->doubled)
		l->skel->bss->doubled = 1;
	a.link = bpf_program__attach_perf_event(l->program, a.event);
	if (!a.link) {
		int r = -errno;

		close(a.event);
		return explain_attach(r, how, err);
	}
	a.period.since_ns = a.tid ? period_thread_ns(a.tid) : 0;
	l->attached[l->nattached++] = a;
	if (l->keepers && !l->few_files && !is_spare(a.event))
		give_up_keepers(l);
	return 0;
}

int loader_attach(struct loader *l, const struct loader_attach *how, struct error *err)
{
	int r = attach(l, how, err);

	if (r != -EMFILE || !l->keepers || l->few_files)
		return r;
	give_up_keepers(l);
	return attach(l, how, err);
}

int loader_attach_cpus(struct loader *l, struct error *err)
{
	struct loader_attach how = {.on_cpu = true};
	int cpus = libbpf_num_possible_cpus(), r = 0;

	for (; how.cpu < cpus && !r; how.cpu++) {
		r = loader_attach(l, &how, err);
		if (r == -ENODEV) /* it is offline */
			r = 0;
	}
	return r;
}

#define VARIED_MOST 64 /* at a time */

void loader_vary_periods(struct loader *l)
{
	size_t n = l->nattached < VARIED_MOST ? l->nattached : VARIED_MOST;

	if (l->skel->rodata->events_per_sample != 1) /* BPF draws the samples */
		return;
	for (; n; n--) {
		struct attached *a = &l->attached[l->next_varied++ % l->nattached];

		if (a->link)
			period_vary(&a->period, l->event_ns, a->event, a->tid);
	}
}

uint64_t loader_event_ns(const struct loader *l)
{
	return l->event_ns;
}

uint64_t loader_cpu_time(const struct loader *l)
{
	uint64_t ns = l->cpu_ns;

	for (size_t i = 0; i < l->nattached; i++)
		ns += counted_by(&l->attached[i]);
	return ns;
}

void loader_send_again(struct loader *l, pid_t pid, uint64_t proto)
{
	__u32 *slot = &l->skel->bss->proto_sent[LB_PROTO_SLOT(proto, (__u32)pid)];

	__atomic_store_n(slot, 0, __ATOMIC_RELAXED);
}

uint32_t loader_procs(const struct loader *l)
{
	uint32_t key, *before = NULL, n = 0;

	while (n < LB_PROCS &&
	       !bpf_map__get_next_key(l->skel->maps.procs, before, &key, sizeof(key))) {
		before = &key;
		n++;
	}
	return n;
}

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
