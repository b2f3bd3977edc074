/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of a recording, for session.c, which runs it, and session_result.c, which reads it. */
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

struct session {
	struct loader *loader;
	struct ring *ring;
	struct scan *scan;
	struct symbolizer *symbolizer;
	struct targets targets;
	const struct narrow *narrow; /* NULL: all processes are wanted */
	uint64_t period_ns, duration_ns, opened_ns, stopped_ns;
	struct losses losses;
	struct intervals intervals;
	struct session_ticks ticks;
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
	int epoll, drain_timer, duration_timer, tick_timer;
	int error;	  /* first -errno from a callback */
	struct error why; /* of it; may be empty */
};

/* Gives up all rights that are not used once a recording has begun: base/confine.h. */
int session_confine(const struct session *session, struct error *err);

#endif
