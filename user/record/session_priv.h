/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of a recording: session.c opens it, session_run.c runs it, session_result.c reads it. */
#ifndef RECORD_SESSION_PRIV_H
#define RECORD_SESSION_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/loader.h"
#include "bpf/ring.h"
#include "detect/scan.h"
#include "interval.h"
#include "losses.h"
#include "session.h"
#include "sym/symbolizer.h"
#include "targets.h"

#define DRAIN_NS 50000000ULL /* between two drains, and what one of them takes at most */

/* Why the event loop woke up. */
enum wake {
	WAKE_RING,
	WAKE_SIGNAL,
	WAKE_DRAIN,
	WAKE_DURATION,
	WAKE_TICK,
	WAKE_HANGUP,
	WAKE_TARGET, /* its pid follows */
};

struct session {
	struct loader *loader;
	struct ring *ring;
	struct scan *scan;
	struct symbolizer *symbolizer;
	struct targets targets;
	const struct narrow *narrow; /* NULL: all processes are wanted */
	uint64_t period_ns, duration_ns, opened_ns, ends_ns, stopped_ns;
	struct losses losses;
	struct intervals intervals;
	struct session_ticks ticks;
	session_count_fn *counted; /* NULL: none */
	void *counted_arg;
	unsigned confine; /* see session_options */
	pid_t command;	  /* 0: none */
	bool held;
	uint64_t changes; /* symbolizer_changes(), when last asked; the next, too */
	uint64_t snapshot_line;
	bool changed;	      /* in the current round */
	bool drained;	      /* since epoll_wait() returned, for processes that ended before */
	bool may_stop;	      /* the same: a signal ends it before all samples have names */
	uint32_t idle_rounds; /* rounds without */
	int command_status;
	bool command_ended;
	enum session_end end;
	bool over; /* its targets have ended: session_poll() waits no more */
	int epoll, drain_timer, duration_timer, tick_timer;
	int error;	  /* first -errno from a callback */
	struct error why; /* of it; may be empty */
};

/* The event loop wakes up when fd is readable. */
int session_wake(struct session *session, int fd, enum wake wake, pid_t pid);

/* Sets the length of a round. */
int session_drain_each(struct session *session, uint64_t ns);

/* Gives up all rights that are not used once a recording has begun: base/confine.h. */
int session_confine(const struct session *session, struct error *err);

#endif
