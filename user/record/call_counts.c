// SPDX-License-Identifier: BSD-2-Clause
#include "call_counts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/signals.h"
#include "bpf/counter.h"
#include "bpf/ring.h"
#include "bpf/trap.h"
#include "compiled_time.h"
#include "detect/calls.h"
#include "detect/scan.h"
#include "proc/process.h"
#include "sym/symbolizer.h"

#define MS 1000000ULL
#define EPOCH 1 /* of the only image */
#define ROUND_NS (10 * MS)
#define ESTIMATE_NS (50 * MS)
/* The slowdown is judged over this time, if the process has run for JUDGE_CPU_NS of it. */
#define JUDGE_NS (500 * MS)
#define JUDGE_CPU_NS (20 * MS)

/* A function's first call, as BPF sent it. */
struct first_call {
	uint64_t hash;
	struct lb_rec_sample *rec;
	UT_hash_handle hh;
};

struct call_reading {
	uint64_t ns, cpu_ns, hits;
};

struct call_counts {
	struct call_counts_options o;
	int pidfd, timer, epoll;
	clockid_t cpu_clock;
	uint64_t image_id;
	uint32_t exec_pages; /* when its VMs were looked for */
	uint64_t looked_ns;
	bool other_vm, unread_code;

	struct scan *scan;
	struct lb_proc vms;
	struct counter *counter;
	struct ring *ring;
	struct prof *prof;
	struct symbolizer *symbolizer;
	struct image *image;
	struct first_call *first;
	struct compiled_time traces;

	struct trap trap;
	struct call_reading began, judged, now;
	struct call_counts_cost last;
	enum call_counts_end end;
	bool over;
	bool luajit;
	int error;
};

/* ---- records --------------------------------------------------------------------------------- */

/* Names of C functions, and the order of equal functions of a line, are read while the process lives. */
static int learn_names(struct call_counts *c, const struct lb_rec_sample *rec)
{
	const struct vm_build *build = scan_build(c->scan, rec->build);
	struct symbolized done = {};
	int r;

	if (!build)
		return 0;
	r = symbolizer_sample(c->image, rec, 0, &build->build, build->release, &done);
	return r == -ENOMEM ? r : 0;
}

static int keep_first(struct call_counts *c, const struct lb_rec_sample *rec)
{
	size_t size = LB_SAMPLE_SIZE(rec->stack.n);
	struct first_call *f;

	HASH_FIND(hh, c->first, &rec->hash, sizeof(rec->hash), f);
	if (f || HASH_COUNT(c->first) >= LB_CALL_KEYS || !rec->stack.n)
		return 0;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->hash = rec->hash;
	f->rec = malloc(size);
	if (f->rec)
		HASH_ADD(hh, c->first, hash, sizeof(f->hash), f);
	if (!f->rec || !f->hh.tbl) {
		free(f->rec);
		free(f);
		return -ENOMEM;
	}
	memcpy(f->rec, rec, size);
	return 0;
}

static bool on_sample(void *arg, const struct lb_rec_sample *rec, uint32_t count)
{
	struct call_counts *c = arg;
	int r = keep_first(c, rec);

	(void)count;
	if (!r)
		r = learn_names(c, rec);
	if (!r)
		r = compiled_time_meet(&c->traces, scan_build(c->scan, rec->build), rec->vm);
	if (r && !c->error)
		c->error = r;
	return true;
}

static void on_proto(void *arg, const struct lb_rec_proto *rec)
{
	struct call_counts *c = arg;
	const struct vm_build *build = scan_build(c->scan, rec->build);
	int r = build ? symbolizer_proto(c->image, rec, &build->build) : 0;

	if (r && !c->error)
		c->error = r;
}

static void on_other(void *arg, const struct lb_rec_task *rec)
{
	(void)arg;
	(void)rec;
}

static void on_zone(void *arg, const struct lb_rec_zone *rec)
{
	(void)arg;
	(void)rec;
}

/* ---- opening --------------------------------------------------------------------------------- */

struct find_mapping {
	pid_t pid;
	uint64_t addr;
	int fd;
};

static int open_mapping_at(void *arg, const struct process_mapping *m)
{
	struct find_mapping *f = arg;

	if (f->addr < m->start || f->addr >= m->end)
		return 0;
	f->fd = process_open_mapping(f->pid, m);
	return 1;
}

static int attach_all(struct call_counts *c, int fd, struct elf_file *elf,
		      const struct lb_module *module, const struct call_probes *probes,
		      struct error *err)
{
	uint64_t offsets[CALL_PROBES], cookies[CALL_PROBES];
	const struct counter_file file = {
		.fd = fd,
		.family = module->family,
		.n = probes->n,
		.offsets = offsets,
		.cookies = cookies,
	};
	uint32_t i;

	for (i = 0; i < probes->n; i++) {
		cookies[i] = LB_CALL_COOKIE(probes->at[i].site, module->build);
		if (elf_offset(elf, probes->at[i].addr, &offsets[i]))
			return error_set(err, -ENOTSUP, "pid %d: the VM's code is not in its file",
					 (int)c->o.pid);
	}
	return counter_attach(c->counter, &file, err);
}

static int attach_module(struct call_counts *c, const struct lb_module *module, struct error *err)
{
	const struct vm_build *build = scan_build(c->scan, module->build);
	struct find_mapping find = {.pid = c->o.pid, .addr = module->vm_start, .fd = -1};
	struct elf_file *elf __cleanup(elf_close) = NULL;
	struct call_probes *probes __free = calloc(1, sizeof(*probes));
	int fd __close = -1, r;

	if (!probes)
		return error_set(err, -ENOMEM, "out of memory");
	process_mappings(c->o.pid, open_mapping_at, &find, NULL);
	fd = find.fd;
	if (fd < 0)
		return error_set(err, -ESRCH, "pid %d: the file of its VM cannot be opened",
				 (int)c->o.pid);
	r = elf_open_fd(fd, &elf);
	if (r)
		return error_set(err, r, "pid %d: the file of its VM: %s", (int)c->o.pid,
				 strerror(-r));
	c->luajit |= lb_is_luajit(module->family);
	r = lb_is_luajit(module->family) ? lj_call_probes(elf, build, probes, err)
					 : puc_call_probes(elf, build, probes, err);
	if (!r)
		r = counter_set_build(c->counter, module->build, &build->build);
	return r ? r : attach_all(c, fd, elf, module, probes, err);
}

static int find_vms(struct call_counts *c, struct error *err)
{
	struct error why = {};
	int r = process_check_namespace(err);

	if (!r)
		r = process_check(c->o.pid, err);
	if (r)
		return r;
	c->pidfd = (int)syscall(SYS_pidfd_open, c->o.pid, 0);
	if (c->pidfd < 0 || clock_getcpuclockid(c->o.pid, &c->cpu_clock))
		return error_set(err, -ESRCH, "pid %d: no such process", (int)c->o.pid);
	c->image_id = process_image(c->o.pid);
	c->exec_pages = process_exec_pages(c->o.pid);
	r = scan_new(&c->scan);
	if (r)
		return error_set(err, r, "out of memory");
	r = scan_process(c->scan, c->o.pid, &c->vms, err);
	if (r)
		return r;
	if (c->vms.nmodules)
		return 0;
	scan_no_lua(c->scan, c->o.pid, &why);
	error_set(err, -ENODATA, "pid %d: %s", (int)c->o.pid, why.what);
	return error_remedy(err, -ENODATA, "%s", why.remedy);
}

static int open_names(struct call_counts *c)
{
	int r = prof_new(&c->prof);

	if (!r)
		r = symbolizer_new(c->prof, &c->symbolizer);
	if (!r)
		r = image_new(c->symbolizer, c->o.pid, &c->image);
	if (!r)
		image_learn(c->image);
	return r;
}

static int watch(const struct call_counts *c, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static int open_loop(struct call_counts *c)
{
	const struct ring_callbacks callbacks = {
		.sample = on_sample,
		.proto = on_proto,
		.task = on_other,
		.zone = on_zone,
		.arg = c,
	};
	const struct itimerspec each = {
		.it_interval.tv_nsec = ROUND_NS,
		.it_value.tv_nsec = ROUND_NS,
	};
	int r;

	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	c->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (c->epoll < 0 || c->timer < 0 || timerfd_settime(c->timer, 0, &each, NULL))
		return -errno;
	r = watch(c, c->timer);
	if (!r)
		r = watch(c, c->pidfd);
	return r ? r
		 : ring_open(counter_ring_fd(c->counter), counter_stack_counts(c->counter),
			     &callbacks, &c->ring);
}

static struct call_reading read_now(const struct call_counts *c)
{
	struct call_reading m = {.ns = clock_ns(CLOCK_MONOTONIC),
				 .hits = counter_hits(c->counter, NULL)};
	struct timespec ts;

	m.cpu_ns = c->now.cpu_ns; /* it has ended: as of the last round */
	if (!clock_gettime(c->cpu_clock, &ts))
		m.cpu_ns = (uint64_t)ts.tv_sec * 1000 * MS + (uint64_t)ts.tv_nsec;
	return m;
}

static int open_counter(struct call_counts *c, struct error *err)
{
	const struct counter_options options = {
		.pid = c->o.pid,
		.epoch = EPOCH,
		.multi = c->trap.multi,
	};

	return counter_open(&options, &c->counter, err);
}

int call_counts_open(const struct call_counts_options *o, struct call_counts **out,
		     struct error *err)
{
	struct call_counts *c __cleanup(call_counts_free) = calloc(1, sizeof(*c));
	uint32_t i;
	int r;

	if (!c)
		return error_set(err, -ENOMEM, "out of memory");
	c->o = *o;
	c->pidfd = c->timer = c->epoll = -1;
	compiled_time_init(&c->traces, o->pid);
	r = find_vms(c, err);
	if (!r)
		r = trap_measure(&c->trap, err);
	if (!r)
		r = open_counter(c, err);
	if (r)
		return r;
	r = open_names(c);
	if (!r)
		r = open_loop(c);
	if (r)
		return error_set(err, r, "cannot begin: %s", strerror(-r));
	c->began = read_now(c);
	for (i = 0; i < c->vms.nmodules && !r; i++)
		r = attach_module(c, &scan_modules(c->scan)[i], err);
	if (r)
		return r;
	c->began = c->judged = c->now = read_now(c);
	counter_begin(c->counter);
	*out = TAKE_PTR(c);
	return 0;
}

void call_counts_free(struct call_counts **calls)
{
	struct call_counts *c = *calls;
	struct first_call *f, *next;

	if (!c)
		return;
	HASH_ITER (hh, c->first, f, next) {
		HASH_DEL(c->first, f);
		free(f->rec);
		free(f);
	}
	ring_free(&c->ring);
	image_free(&c->image);
	symbolizer_free(&c->symbolizer);
	prof_free(&c->prof);
	counter_free(&c->counter);
	scan_free(&c->scan);
	cleanup_fd(&c->pidfd);
	cleanup_fd(&c->timer);
	cleanup_fd(&c->epoll);
	free(c);
	*calls = NULL;
}

void call_counts_describe(const struct call_counts *c, char *buf, size_t size)
{
	const struct lb_module *at = scan_modules(c->scan);
	size_t used = 0;
	uint32_t i;

	*buf = '\0';
	for (i = 0; i < c->vms.nmodules && used < size; i++)
		used += (size_t)snprintf(buf + used, size - used, "%s%s", i ? ", " : "",
					 scan_build(c->scan, at[i].build)->release);
}

/* ---- counting -------------------------------------------------------------------------------- */

static struct call_counts_cost cost_between(const struct call_counts *c,
					    const struct call_reading *from,
					    const struct call_reading *to)
{
	double hit_ns = c->trap.ns + counter_program_ns(c->counter);
	double cpu = (double)(to->cpu_ns - from->cpu_ns), hits = (double)(to->hits - from->hits);
	struct call_counts_cost cost = {.hit_ns = hit_ns};
	double own = cpu - hits * hit_ns;

	if (cpu <= 0)
		return cost;
	cost.hits = hits / cpu * 1e9;
	cost.slowdown = own * COUNTS_SLOWDOWN_MOST < cpu ? COUNTS_SLOWDOWN_MOST : cpu / own;
	return cost;
}

static void end(struct call_counts *c, enum call_counts_end why)
{
	c->over = true;
	c->end = why;
}

/* Stops when the process has become too slow. */
static void judge(struct call_counts *c)
{
	struct call_counts_cost cost;

	if (c->now.ns - c->judged.ns < JUDGE_NS || c->now.cpu_ns - c->judged.cpu_ns < JUDGE_CPU_NS)
		return;
	cost = cost_between(c, &c->judged, &c->now);
	c->judged = c->now;
	if (c->over || cost.slowdown <= c->o.max_slowdown)
		return;
	c->last = cost;
	end(c, COUNTS_SLOWDOWN);
}

static int drain(struct call_counts *c)
{
	int r;

	symbolizer_round(c->symbolizer);
	r = ring_drain(c->ring, RING_ALL);
	return c->error ? c->error : r < 0 ? r : 0;
}

static bool is_counted_vm(const struct call_counts *c, uint64_t vm_start)
{
	for (uint32_t i = 0; i < c->vms.nmodules; i++)
		if (scan_modules(c->scan)[i].vm_start == vm_start)
			return true;
	return false;
}

/* Looks for VMs that were loaded since. False: a signal ends the recording, or the process has ended. */
static bool scan_again(struct call_counts *c)
{
	__cleanup(scan_free) struct scan *scan = NULL;
	struct lb_proc vms = {};
	struct error err = {};

	if (scan_new(&scan) || scan_process(scan, c->o.pid, &vms, &err))
		return false;
	for (uint32_t i = 0; i < vms.nmodules; i++)
		c->other_vm |= !is_counted_vm(c, scan_modules(scan)[i].vm_start);
	return true;
}

#define LOOK_NS (500 * MS) /* LuaJIT maps machine code all the time */

/* Looks whether the process has mapped more code. A page more is the kernel's own, for uprobes. */
static void look_for_vms(struct call_counts *c, bool is_end)
{
	uint32_t now = process_exec_pages(c->o.pid);
	uint32_t pages = now ? now : counter_exec_pages(c->counter);
	uint64_t ns = clock_ns(CLOCK_MONOTONIC);

	if (!pages || pages - c->exec_pages <= 1 || (!is_end && ns - c->looked_ns < LOOK_NS))
		return;
	c->looked_ns = ns;
	if (now && scan_again(c))
		c->exec_pages = pages;
	else
		c->unread_code |= is_end;
}

static int take_round(struct call_counts *c)
{
	uint64_t image = process_image(c->o.pid), misses[LB_CALL_MISSES];
	int r = drain(c);

	c->now = read_now(c);
	compiled_time_look(&c->traces, c->now.cpu_ns);
	judge(c);
	look_for_vms(c, false);
	counter_hits(c->counter, misses);
	if (misses[LB_CALL_OTHER_IMAGE] || (image && image != c->image_id))
		end(c, COUNTS_EXEC);
	if (c->o.duration_ns && c->now.ns - c->began.ns >= c->o.duration_ns)
		end(c, COUNTS_DURATION);
	return r;
}

/* Waits for the next event, and handles it. */
static int turn(struct call_counts *c)
{
	struct epoll_event ev[4];
	uint64_t count;
	int n = epoll_wait(c->epoll, ev, 4, -1), i, r = 0;

	if (n < 0 && errno != EINTR)
		return -errno;
	for (i = 0; i < n && !r; i++) {
		if (ev[i].data.fd == c->pidfd) {
			end(c, COUNTS_ENDED);
		} else if (ev[i].data.fd == c->timer) {
			if (read(c->timer, &count, sizeof(count)) < 0)
				continue;
			r = take_round(c);
		}
	}
	if (signals_caught())
		end(c, COUNTS_SIGNAL);
	return r;
}

static int turns(struct call_counts *c, uint64_t until_ns, struct error *err)
{
	int r = 0;

	while (!r && !c->over && (!until_ns || clock_ns(CLOCK_MONOTONIC) < until_ns))
		r = turn(c);
	return r ? error_set(err, r, "counting: %s", strerror(-r)) : 0;
}

int call_counts_estimate(struct call_counts *c, int stop, struct call_counts_cost *cost, bool *over,
			 struct error *err)
{
	int r = watch(c, stop);

	if (r)
		return error_set(err, r, "epoll: %s", strerror(-r));
	r = turns(c, c->began.ns + ESTIMATE_NS, err);
	if (r)
		return r;
	if (!c->over)
		c->now = read_now(c);
	c->last = *cost = cost_between(c, &c->began, &c->now);
	if (!c->over && c->now.cpu_ns - c->began.cpu_ns >= JUDGE_CPU_NS &&
	    cost->slowdown > c->o.max_slowdown)
		end(c, COUNTS_SLOWDOWN);
	*over = c->over;
	return 0;
}

int call_counts_run(struct call_counts *c, struct error *err)
{
	int r = turns(c, 0, err);

	if (!r && c->end != COUNTS_ENDED)
		c->now = read_now(c);
	return r;
}

/* ---- names ----------------------------------------------------------------------------------- */

struct count_naming {
	struct call_counts *c;
	struct call_counts_result *result;
	int error;
};

/* The stack that a function was first called in; the function alone, if its record was lost. */
static const struct lb_rec_sample *
first_of(const struct call_counts *c, const struct lb_call_key *key, struct lb_rec_sample *alone)
{
	uint64_t hash = lb_call_hash(key);
	struct first_call *f;

	HASH_FIND(hh, c->first, &hash, sizeof(hash), f);
	if (f)
		return f->rec;
	memset(alone, 0, LB_SAMPLE_SIZE(1));
	alone->state = LB_STATE('I', 0);
	alone->pid = (uint32_t)c->o.pid;
	alone->epoch = EPOCH;
	alone->vm = key->vm;
	alone->build = key->build;
	alone->stack.n = 1;
	alone->stack.frame[0] = (struct lb_frame){
		.word = key->word | LB_FRAME_WORD(0, LB_FRAME_THREAD, 0),
		.pc = LB_NO_PC,
		.fp = key->fp,
	};
	return alone;
}

static void name_one(void *arg, const struct lb_call_key *key, uint64_t count)
{
	struct count_naming *n = arg;
	const struct vm_build *build = scan_build(n->c->scan, key->build);
	struct lb_rec_sample alone;
	const struct lb_rec_sample *rec = first_of(n->c, key, &alone);

	while (count && !n->error) {
		uint32_t some = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
		struct symbolized done = {};
		int r = build ? symbolizer_sample(n->c->image, rec, some, &build->build,
						  build->release, &done)
			      : -EAGAIN;

		if (r == -ENOMEM)
			n->error = r;
		if (r || done.lost)
			n->result->nameless += some;
		else
			n->result->counted += some;
		count -= some;
	}
}

int call_counts_finish(struct call_counts *c, struct call_counts_result *result, struct error *err)
{
	struct count_naming naming = {.c = c, .result = result};
	int r;

	if (c->end != COUNTS_EXEC)
		look_for_vms(c, true);
	signals_release();
	counter_detach(c->counter);
	c->now.hits = counter_hits(c->counter, NULL);
	r = drain(c);
	compiled_time_look(&c->traces, c->now.cpu_ns); /* at VMs of the last calls, too */
	*result = (struct call_counts_result){
		.prof = c->prof,
		.other_vm = c->other_vm,
		.unread_code = c->unread_code && !c->traces.on,
		.end = c->end,
		.duration_ns = c->now.ns - c->began.ns,
		.cpu_ns = c->now.cpu_ns - c->began.cpu_ns,
		.cost = cost_between(c, &c->began, &c->now),
		.last = c->last,
		.dropped = counter_dropped(c->counter),
		.compiled = c->traces.on,
		.unseen = c->luajit && !c->traces.looked,
		.in_traces = compiled_time_share(&c->traces),
		.luajit = c->luajit,
	};
	image_ended(c->image); /* names are those at the first call, as they were sent */
	if (!r)
		r = counter_each(c->counter, name_one, &naming);
	if (!r)
		r = naming.error;
	counter_hits(c->counter, result->misses);
	return r ? error_set(err, r, "counts: %s", strerror(-r)) : 0;
}
