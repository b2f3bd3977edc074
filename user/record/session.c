// SPDX-License-Identifier: BSD-2-Clause
/*
 * Opens a recording, and takes BPF's records: samples, prototypes, processes. session_run.c has the
 * event loop.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/signals.h"
#include "session_priv.h"
#include "attach.h"
#include "narrowing.h"
#include "priority.h"
#include "recorded_zones.h"
#include "roots.h"
#include "source_open.h"
#include "sym/protos.h"
#include "proc/launch.h"
#include "proc/process.h"

/*
 * Events of a command come at this interval at most: a thread or process that it starts is sampled
 * if it runs for so long. Not with -p: a server's workers live long, and each event costs time.
 */
#define SHORT_NS 1000000

/* ---- ring callbacks -------------------------------------------------------------------------- */

static bool on_sample(void *arg, const struct lb_rec_sample *rec, uint32_t count)
{
	struct session *s = arg;
	const struct vm_build *build = scan_build(s->scan, rec->build);
	struct process *p = processes_find(&s->targets.processes, (pid_t)rec->pid);
	struct image *image = p && p->epoch == rec->epoch ? p->image : NULL;
	struct symbolized got = {.lost = image ? NULL : LOSS_GONE};
	int r = 0;

	if (s->may_stop && signals_caught()) /* it is kept for the last drain */
		return false;
	if (!build) {
		s->losses.bad += count;
		return true;
	}
	if (p)
		p->sampled_round = s->targets.round;
	if (image)
		r = symbolizer_sample(image, rec, count, &build->build, build->release, &got);
	if (r == -EAGAIN)
		return false;
	if (!r && got.lost)
		r = losses_add(&s->losses, got.lost, count);
	else if (!r && s->counted)
		r = s->counted(s->counted_arg, got.row, count);
	if (r && !s->error)
		s->error = r;
	return true;
}

static void on_proto(void *arg, const struct lb_rec_proto *rec)
{
	struct session *s = arg;
	const struct vm_build *build = scan_build(s->scan, rec->build);
	struct image *image = processes_image(&s->targets.processes, rec->pid, rec->epoch);
	int r;

	s->changed = true;
	if (!build) {
		s->losses.bad++;
		return;
	}
	r = image ? symbolizer_proto(image, rec, &build->build) : 0; /* its samples will be lost */
	if (r && !s->error)
		s->error = r;
}

static void on_zone(void *arg, const struct lb_rec_zone *rec)
{
	struct session *s = arg;
	int r = symbolizer_zone(s->symbolizer, rec);

	if (r && !s->error)
		s->error = r;
}

int session_wake(struct session *s, int fd, enum wake wake, pid_t pid)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = (uint64_t)pid << 32 | wake};

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static int watch_target(struct session *s, struct process *p)
{
	int r = session_wake(s, p->pidfd, WAKE_TARGET, p->pid);

	if (r)
		processes_end(&s->targets.processes, p);
	return r;
}

static int add_target(struct session *s, pid_t pid, struct process **out)
{
	int r = processes_add(&s->targets.processes, pid, false, out);

	return r ? r : watch_target(s, *out);
}

/* A child's threads, when it is met; once, as exec keeps events. The roots' are attached. */
static void keep_time(struct session *s, struct process *p)
{
	if (!p->keeps_time && !p->is_root && !s->targets.everywhere)
		attach_keep_time(s->loader, p);
	p->keeps_time = true;
}

/* A child of a target, which BPF knows already, perhaps again. It may have ended. */
static void adopt_child(struct session *s, const struct lb_rec_task *rec, struct process *p)
{
	bool is_new = !p;
	int r = targets_adopt(&s->targets, rec, &p);

	if (r == -ENOMEM || r == -EMFILE || r == -ENFILE) /* its end would not be noticed */
		loader_drop_proc(s->loader, (pid_t)rec->pid);
	if (r || p->pidfd < 0)
		return;
	if (!is_new || !watch_target(s, p))
		keep_time(s, p);
}

/* A process that BPF has recognised. It may have ended. */
static void take_known(struct session *s, const struct lb_rec_task *rec, struct process *p)
{
	bool is_new = !p;
	int r;

	if (p && p->registered && p->vms.epoch == rec->known && p->vms.nmodules)
		return;
	r = targets_take(&s->targets, rec, &p);
	if (r && !p) /* its end would not be noticed */
		loader_drop_proc(s->loader, (pid_t)rec->pid);
	if (r || p->pidfd < 0)
		return;
	if (!is_new || !watch_target(s, p))
		keep_time(s, p);
}

/* BPF may have adopted the image since. */
static bool is_known(const struct session *s, const struct process *t,
		     const struct lb_rec_task *rec)
{
	struct lb_proc vms;

	if (!t || !t->registered || t->vms.exec_id == rec->exec_id)
		return t && t->registered;
	return !t->vms.exec_id && !loader_get_proc(s->loader, t->pid, &vms) &&
	       vms.exec_id == rec->exec_id;
}

/*
 * True if the record's process does not match what the recording is narrowed to, or no decision can
 * be made. BPF has adopted some by an earlier verdict (rec->known): those stay where none can be made.
 */
static bool is_unwanted(struct session *s, const struct lb_rec_task *rec, struct process *t)
{
	enum narrowing decision;

	if (!s->narrow)
		return false;
	decision = narrowing_decide(s->narrow, s->loader, rec);
	if (decision == NARROWING_UNWANTED) {
		if (t)
			processes_end(&s->targets.processes, t);
		else if (rec->known) /* BPF has adopted it: its end would not be noticed */
			loader_drop_proc(s->loader, (pid_t)rec->pid);
		s->losses.not_lua += rec->sample;
	}
	return decision == NARROWING_UNWANTED || (decision == NARROWING_UNDECIDED && !rec->known);
}

/*
 * A process that BPF does not know: a child of the command, or one that has called exec. There is a
 * record for each event on it until it is known. Or one that BPF has recognised (rec->known), or as a
 * fork (rec->origin), or a known one that has mapped or unmapped code.
 */
static void on_task(void *arg, const struct lb_rec_task *rec)
{
	struct session *s = arg;
	struct process *t = processes_find(&s->targets.processes, (pid_t)rec->pid);
	struct image *image;
	bool known = is_known(s, t, rec);

	s->changed = true;
	if (rec->epoch) { /* samples of the image that this ends */
		s->may_stop = false;
		image = processes_image(&s->targets.processes, rec->pid, rec->epoch);
		if (image)
			image_ended(image);
		ring_commit(s->ring);
		symbolizer_committed(s->symbolizer);
	}
	if (is_unwanted(s, rec, t))
		return;
	if (rec->known) {
		take_known(s, rec, t);
		return;
	}
	if (rec->origin) {
		sources_forked(&s->targets.processes, (pid_t)rec->pid);
		if (!t || !t->registered)
			adopt_child(s, rec, t);
		return;
	}
	if (!known && t && t->vms.epoch != rec->epoch && rec->epoch)
		return; /* of an image that it had before */
	if (!t && add_target(s, (pid_t)rec->pid, &t))
		return; /* it has ended */
	targets_undecided(t, rec);
	if (known)
		targets_look_again(&s->targets, t, rec);
	else
		targets_recognise(&s->targets, t, rec->exec_id, NULL);
	if (t->vms.nmodules)
		keep_time(s, t);
}

/* ---- opening --------------------------------------------------------------------------------- */

static int open_running(struct session *s, const struct session_options *o, struct error *err)
{
	const struct roots roots = {
		.pids = o->pids,
		.npids = o->npids,
		.may_lack = o->may_lack,
		.follow = o->follow,
		.children = o->children,
	};
	struct process *t, *next;
	int r = roots_open(&s->targets, &roots, err);

	if (r)
		return r;
	HASH_ITER (hh, s->targets.processes.all, t, next) {
		r = watch_target(s, t);
		if (r)
			return error_set(err, r, "epoll: %s", strerror(-r));
	}
	return 0;
}

static int open_command(struct session *s, const struct session_options *o, struct error *err)
{
	struct process *t;
	int r = launch_start(o->command, &s->command, err);

	if (r)
		return r;
	s->held = true;
	r = roots_add(&s->targets.processes, s->command, &t, err);
	if (r)
		return r;
	r = watch_target(s, t);
	if (r)
		return error_set(err, r, "epoll: %s", strerror(-r));
	/* a command may well be a shell whose children run Lua */
	r = targets_recognise(&s->targets, t, 0, err);
	if (r && r != -ENODATA)
		return r;
	r = loader_wait_families(s->loader, err);
	return r ? r : attach_process(s->loader, t, true, false, err);
}

/* Processes that do not run now, or are new, are met when they are sampled. */
static int meet(void *arg, pid_t pid)
{
	struct target_scan scan;
	struct session *s = arg;
	struct process *t;

	if (signals_caught())
		return 1;
	if (pid == getpid() || (s->narrow && !narrow_process(s->narrow, pid)))
		return 0;
	/* the files of those that match are known then; BPF adopts them with their identity */
	if (targets_have_vm(&s->targets, pid, &scan) && !s->narrow && !add_target(s, pid, &t))
		targets_meet(&s->targets, t, &scan);
	return 0;
}

static int open_everywhere(struct session *s, struct error *err)
{
	int r = process_each(meet, s);

	s->losses.everywhere = true;
	if (r < 0)
		return error_set(err, r, "/proc: %s", strerror(-r));
	r = loader_wait_families(s->loader, err);
	if (!r)
		r = loader_attach_cpus(s->loader, err);
	if (!r) /* now, so that they take no CPU time from the start */
		loader_prepare_families(s->loader, LB_FAMILIES_ALL);
	return r;
}

int session_drain_each(struct session *s, uint64_t ns)
{
	struct itimerspec drain = {
		.it_interval.tv_nsec = (long)ns,
		.it_value.tv_nsec = (long)ns,
	};

	return timerfd_settime(s->drain_timer, 0, &drain, NULL) ? -errno : 0;
}

static int open_descriptors(struct session *s)
{
	int r;

	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->drain_timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	s->duration_timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (s->epoll < 0 || s->drain_timer < 0 || s->duration_timer < 0 ||
	    session_drain_each(s, DRAIN_NS))
		return -errno;
	r = session_wake(s, s->drain_timer, WAKE_DRAIN, 0);
	if (!r)
		r = session_wake(s, s->duration_timer, WAKE_DURATION, 0);
	return r;
}

static int open_parts(struct session *s, const struct session_options *o, struct error *err)
{
	struct ring_callbacks callbacks = {
		.sample = on_sample,
		.proto = on_proto,
		.task = on_task,
		.zone = on_zone,
		.arg = s,
	};
	struct loader_options options;
	int r = scan_new(&s->scan);

	if (r)
		return error_set(err, r, "cannot begin: %s", strerror(-r));
	s->targets.everywhere = o->everywhere;
	s->targets.zones = o->zones;
	s->narrow = o->narrow;
	options = (struct loader_options){
		.cost = o->cost,
		.period_ns = o->period_ns,
		.event_ns = o->command ? SHORT_NS : 0,
		.everywhere = o->everywhere,
		.by_coroutine = o->by_coroutine,
		.by_zone = o->zones,
		.narrowed_by = o->narrow ? narrowing_kinds(o->narrow) : 0,
		.by_process = o->by_process ? (uint32_t)o->npids : 0,
		.in_process = o->in_process,
	};
	r = loader_open(&options, &s->loader, err);
	if (r)
		return r;
	r = open_descriptors(s);
	if (!r)
		r = ring_open(loader_ring_fd(s->loader), loader_stack_counts(s->loader), &callbacks,
			      &s->ring);
	if (!r)
		r = session_wake(s, ring_epoll_fd(s->ring), WAKE_RING, 0);
	if (!r)
		r = prof_new(&s->intervals.prof);
	s->losses.prof = s->intervals.prof;
	if (!r)
		r = symbolizer_new(s->intervals.prof, &s->symbolizer);
	if (!r && o->by_vm)
		symbolizer_record_vms(s->symbolizer);
	if (!r && o->zones)
		r = recorded_zones_open(s->loader, s->symbolizer, o->zone_from);
	s->intervals.loader = s->loader;
	s->intervals.ring = s->ring;
	s->intervals.symbolizer = s->symbolizer;
	s->intervals.losses = &s->losses;
	s->intervals.processes = &s->targets.processes;
	s->targets.scan = s->scan;
	s->targets.not_lua = &s->losses.not_lua;
	s->targets.processes.loader = s->loader;
	s->targets.processes.symbolizer = s->symbolizer;
	if (o->command) /* what it will run is not known; few builds lack GC64 */
		loader_request_families(s->loader, LB_FAMILIES);
	return r ? error_set(err, r, "cannot begin: %s", strerror(-r)) : 0;
}

/* Holds the source rights of all targets, while they live. */
static int hold_sources(struct session *s, struct error *err)
{
	struct process *p;

	for (p = s->targets.processes.all; p; p = p->hh.next) {
		int r = sources_hold(&p->sources, p->pid, p->image_id);

		if (r && r != -ESTALE) /* it has called exec: shows what all may read */
			return error_set(err, r, "-jp: the files of process %d: %s", (int)p->pid,
					 strerror(-r));
	}
	return 0;
}

static int open_session(const struct session_options *o, struct session **out, struct error *err)
{
	struct session *s __cleanup(session_free) = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return error_set(err, -ENOMEM, "out of memory");
	s->epoll = s->drain_timer = s->duration_timer = s->tick_timer = -1;
	s->ticks.hangup = -1;
	s->period_ns = o->period_ns;
	s->duration_ns = o->duration_ns;
	s->confine = o->confine;
	s->opened_ns = clock_ns(CLOCK_MONOTONIC);
	r = process_check_namespace(err);
	if (!r)
		r = open_parts(s, o, err);
	if (!r)
		r = o->everywhere ? open_everywhere(s, err)
		    : o->command  ? open_command(s, o, err)
				  : open_running(s, o, err);
	if (r)
		return r;
	s->targets.processes.hold_sources = o->sources;
	r = o->sources ? hold_sources(s, err) : 0;
	if (r)
		return r;
	intervals_begin(&s->intervals, o->period_ns);
	*out = TAKE_PTR(s);
	return 0;
}

/* A command would inherit the nice value, and a program that uses the library has its own reasons for its. */
int session_open(const struct session_options *o, struct session **out, struct error *err)
{
	int before = o->in_process || o->command ? PRIORITY_KEPT : priority_raise();
	int r = open_session(o, out, err);

	priority_restore(before);
	return r;
}

void session_free(struct session **sp)
{
	struct session *s = *sp;

	if (!s)
		return;
	if (s->held)
		kill(s->command, SIGKILL);
	if (s->command && !s->command_ended)
		waitpid(s->command, NULL, s->held ? 0 : WNOHANG);
	ring_free(&s->ring);
	processes_free(&s->targets.processes);
	loader_free(&s->loader);
	symbolizer_free(&s->symbolizer);
	scan_free(&s->scan);
	intervals_free(&s->intervals);
	cleanup_fd(&s->epoll);
	cleanup_fd(&s->drain_timer);
	cleanup_fd(&s->duration_timer);
	cleanup_fd(&s->tick_timer);
	free(s);
	*sp = NULL;
}

void session_watch(struct session *s, vm_found_fn *fn, void *arg)
{
	s->targets.on_vm_found = fn;
	s->targets.on_vm_found_arg = arg;
}

void session_on_count(struct session *s, session_count_fn *fn, void *arg)
{
	s->counted = fn;
	s->counted_arg = arg;
}

void session_set_ticks(struct session *s, const struct session_ticks *ticks)
{
	s->ticks = *ticks;
}
