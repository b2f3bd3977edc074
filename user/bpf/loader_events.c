// SPDX-License-Identifier: BSD-2-Clause
/*
 * The perf events that run the program: one for each thread that a target has when it is attached.
 * Later threads (and children) inherit it. A thread that starts between the listing of threads and
 * the opening of its parent's event is found by listing again. If it has inherited an event, it has
 * two, and bss->doubled makes BPF use one of them.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "load_error.h"
#include "periods.h"
#include "loader_priv.h"

struct attached {
	int event;
	bool doubled; /* another event may count the same CPU time */
	pid_t tid;    /* 0: a CPU's */
	struct period period;
	struct bpf_link *link;
};

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

void loader_keep_time(struct loader *l, pid_t tid, struct keeper **keepers)
{
	keepers_add(&l->keepers, tid, keepers);
}

void loader_drop_keepers(struct loader *l, struct keeper **keepers)
{
	keepers_drop(&l->keepers, keepers);
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
	keepers_make_room(&l->keepers, a.event);
	return 0;
}

int loader_attach(struct loader *l, const struct loader_attach *how, struct error *err)
{
	int r = attach(l, how, err);

	if (r == -EMFILE && keepers_give_up(&l->keepers))
		r = attach(l, how, err);
	return r;
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
