// SPDX-License-Identifier: BSD-2-Clause
/*
 * The event loop of a recording: the ring buffer, a timer that drains it (BPF rarely wakes the reader),
 * signals, the targets' pidfds, the duration.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/signals.h"
#include "proc/launch.h"
#include "session_priv.h"
#include "sym/protos.h"

#define LAST_NS 1000000000ULL /* what the drain takes at most of a target that has ended */
/*
 * Each drain begins an epoch, in which BPF reads the sampled prototypes again: that costs the
 * targets cache misses. After so many epochs without a new function or program, epochs are longer.
 */
#define IDLE_ROUNDS 40
#define IDLE_DRAIN_NS 200000000ULL

/* Handles BPF's records for at most so long; the next wake-up handles the rest. */
static void drain(struct session *s, uint64_t most_ns)
{
	int r;

	s->may_stop = most_ns == DRAIN_NS;
	s->targets.round++;
	symbolizer_round(s->symbolizer);
	loader_next_epoch(s->loader);
	r = ring_drain(s->ring, most_ns);
	if (r > 0)
		targets_left(&s->targets);
	targets_share(&s->targets);
	if (r < 0 && !s->error)
		s->error = r;
}

static void reap_command(struct session *s)
{
	struct process *p = processes_find(&s->targets.processes, s->command);

	if (p && !s->command_ended) /* as long as /proc knows it */
		sources_look(&p->sources);
	if (s->command && !s->command_ended &&
	    waitpid(s->command, &s->command_status, WNOHANG) == s->command)
		s->command_ended = true;
}

static bool on_target_end(struct session *s, pid_t pid)
{
	struct process *p;

	if (!processes_find(&s->targets.processes, pid))
		return false;
	if (!s->drained)
		drain(s, LAST_NS); /* its last samples need its names */
	s->drained = true;
	if (signals_caught()) /* the rest is drained when sampling has ended */
		return false;
	p = processes_find(&s->targets.processes, pid);
	if (p)
		processes_end(&s->targets.processes, p);
	return !s->targets.processes.nroots && !s->targets.everywhere;
}

/* Reads the counter of a timer or an eventfd. */
static void eat_count(int fd)
{
	uint64_t count;

	if (read(fd, &count, sizeof(count)) < 0)
		return;
}

int session_count(struct session *s, struct error *err)
{
	uint64_t status_counts[LB_STATUS__MAX];
	int r = loader_status_counts(s->loader, status_counts);

	drain(s, DRAIN_NS);
	if (signals_caught() || s->error)
		return s->error;
	if (!r)
		r = intervals_count(&s->intervals, status_counts, clock_ns(CLOCK_MONOTONIC));
	return r ? error_set(err, r, "losses: %s", strerror(-r)) : 0;
}

/* After a signal that ends the recording nothing is done: the end does it. */
static void on_tick(struct session *s, enum session_end why)
{
	int r = session_count(s, &s->why);

	if (signals_caught() || s->error)
		return;
	s->end = why;
	if (!r)
		r = s->ticks.fn(s->ticks.arg, s, &s->why);
	if (!r && s->ticks.rotate)
		r = intervals_next(&s->intervals);
	s->error = r;
}

/* True if less than a tenth of an interval is left of the duration: the interval that would end now has the rest. Without
 * this a recording of 10 s would end in an interval of microseconds, which replaces the profile of the one before. */
static bool ends_soon(const struct session *s)
{
	uint64_t left_ns = s->ends_ns - clock_ns(CLOCK_MONOTONIC);

	return s->duration_ns && (left_ns < s->ticks.every_ns / 10 || left_ns > s->duration_ns);
}

/* True if this round has changed anything: then the following rounds are short. */
static bool note_changes(struct session *s)
{
	uint64_t changes = symbolizer_changes(s->symbolizer);
	uint64_t snapshot_line = symbolizer_snapshot_lines(s->symbolizer);
	/* a snapshot's line: perhaps a trace was gone before it was read */
	bool changed = s->changed || changes != s->changes || snapshot_line != s->snapshot_line;

	s->changed = false;
	s->changes = changes;
	s->snapshot_line = snapshot_line;
	if (changed && s->idle_rounds >= IDLE_ROUNDS)
		session_drain_each(s, DRAIN_NS);
	if (changed)
		s->idle_rounds = 0;
	return changed;
}

/* At the end of a round: sets the length of the following ones. */
static void update_pace(struct session *s)
{
	if (!note_changes(s) && ++s->idle_rounds == IDLE_ROUNDS)
		session_drain_each(s, IDLE_DRAIN_NS);
}

static void end_by_signal(struct session *s)
{
	s->end = SESSION_SIGNAL;
	if (signals_caught() == SIGTERM && s->command)
		kill(s->command, SIGTERM);
}

/* Handles one wake-up. Returns true when the recording is over. */
static bool handle(struct session *s, const struct epoll_event *ev)
{
	switch ((enum wake)(uint32_t)ev->data.u64) {
	case WAKE_RING:
		drain(s, DRAIN_NS);
		note_changes(s);
		return false;
	case WAKE_DRAIN:
		eat_count(s->drain_timer);
		drain(s, DRAIN_NS);
		loader_reap_families(s->loader);
		loader_vary_periods(s->loader);
		targets_look(&s->targets, clock_ns(CLOCK_MONOTONIC));
		update_pace(s);
		return false;
	case WAKE_SIGNAL:
		return false; /* session_poll() asks for it */
	case WAKE_DURATION:
		s->end = SESSION_DURATION;
		return true;
	case WAKE_TICK:
		eat_count(s->tick_timer);
		if (!s->ticks.rotate || !ends_soon(s))
			on_tick(s, SESSION_INTERVAL);
		return false;
	case WAKE_HANGUP:
		eat_count(s->ticks.hangup);
		on_tick(s, SESSION_HANGUP);
		return false;
	case WAKE_TARGET:
		if (!on_target_end(s, (pid_t)(ev->data.u64 >> 32)))
			return false;
		s->end = SESSION_TARGETS_ENDED;
		s->over = true;
		return true;
	}
	return false;
}

/* When all was drained. */
static int count_all(struct session *s, struct error *err)
{
	uint64_t status_counts[LB_STATUS__MAX];
	int r = loader_status_counts(s->loader, status_counts);

	s->losses.bad += ring_unknown(s->ring);
	if (!r)
		r = intervals_count(&s->intervals, status_counts, s->stopped_ns);
	return r ? error_set(err, r, "losses: %s", strerror(-r)) : 0;
}

static int start_timer(int fd, uint64_t first_ns, bool again)
{
	struct itimerspec its = {
		.it_value.tv_sec = (time_t)(first_ns / 1000000000ULL),
		.it_value.tv_nsec = (long)(first_ns % 1000000000ULL),
	};

	if (again)
		its.it_interval = its.it_value;
	return timerfd_settime(fd, 0, &its, NULL) ? -errno : 0;
}

static int start_ticks(struct session *s)
{
	const struct session_ticks *ticks = &s->ticks;
	int r = 0;

	s->tick_timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (s->tick_timer < 0)
		return -errno;
	if (ticks->every_ns)
		r = start_timer(s->tick_timer, ticks->every_ns, true);
	if (!r)
		r = session_wake(s, s->tick_timer, WAKE_TICK, 0);
	if (r || ticks->hangup < 0)
		return r;
	eat_count(ticks->hangup); /* what came before sampling began */
	return session_wake(s, ticks->hangup, WAKE_HANGUP, 0);
}

static int start(struct session *s, struct error *err)
{
	int r = start_ticks(s);

	s->ends_ns = clock_ns(CLOCK_MONOTONIC) + s->duration_ns;
	if (!r)
		r = start_timer(s->duration_timer, s->duration_ns, false); /* 0: never */
	if (r)
		return error_set(err, r, "timer: %s", strerror(-r));
	if (!s->held)
		return 0;
	r = launch_release(s->command);
	if (r)
		return error_set(err, r, "pid %d: cannot let it run: %s", (int)s->command,
				 strerror(-r));
	s->held = false;
	return 0;
}

int session_start(struct session *s, int stop, struct error *err)
{
	int r;

	if (stop >= 0 && session_wake(s, stop, WAKE_SIGNAL, 0))
		return error_set(err, -errno, "epoll: %s", strerror(errno));
	if (s->held && stop >= 0 && signals_caught())
		return error_set(err, -EINTR, "ended by SIG%s before the command began",
				 sigabbrev_np(signals_caught()));
	r = start(s, err);
	if (!r && s->confine)
		r = session_confine(s, err);
	if (!r)
		s->targets.sampling = true;
	return r;
}

/* BPF reports an exec at the next event. A library that a process loads is found by a look at its mappings. */
int session_wait_lua(struct session *s, void (*waits)(void *arg), void *arg, struct error *err)
{
	int r = 0;

	if (s->targets.had_lua)
		return 0;
	if (waits)
		waits(arg);
	/* what will run is not known; few builds lack GC64 */
	loader_request_families(s->loader, LB_FAMILY_BIT(LJ) | LB_FAMILY_BIT(PUC));
	s->targets.sampling = true;
	s->targets.waits = true;
	while (!r && !s->targets.had_lua) {
		r = session_poll(s, -1, err);
		s->idle_rounds = 0; /* rounds stay short */
	}
	s->targets.waits = false;
	if (r < 0)
		return r;
	if (s->error)
		return error_set(err, s->error, "recording: %s", strerror(-s->error));
	return s->targets.had_lua ? 0 : -ENODATA;
}

int session_fd(const struct session *s)
{
	return s->epoll;
}

int session_poll(struct session *s, int timeout_ms, struct error *err)
{
	struct epoll_event ev[64];
	int i, n = epoll_wait(s->epoll, ev, 64, s->over ? 0 : timeout_ms);
	bool over = s->over;

	s->drained = false; /* since these events: one drain is for all ends among them */
	if (n < 0 && errno != EINTR)
		return error_set(err, -errno, "epoll: %s", strerror(errno));
	for (i = 0; i < n && !over && !signals_caught(); i++)
		over = handle(s, &ev[i]);
	if (!over && signals_caught()) { /* before all other events */
		end_by_signal(s);
		over = true;
	}
	return over || s->error;
}

int session_stop(struct session *s, struct error *err)
{
	s->stopped_ns = clock_ns(CLOCK_MONOTONIC);
	loader_detach(s->loader);
	/* the later rounds decide on samples that were kept back */
	for (int i = 0; i <= PROTOS_WAIT; i++)
		drain(s, RING_ALL);
	reap_command(s);
	if (s->error && err && *s->why.what)
		*err = s->why;
	else if (s->error)
		error_set(err, s->error, "recording: %s", strerror(-s->error));
	return s->error ? s->error : count_all(s, err);
}

int session_run(struct session *s, int stop, struct error *err)
{
	int r = session_start(s, stop, err);

	while (!r)
		r = session_poll(s, -1, err);
	if (r < 0)
		return r;
	signals_release();
	return session_stop(s, err);
}
