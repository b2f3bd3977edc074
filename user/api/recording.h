/* SPDX-License-Identifier: BSD-2-Clause */
/* A recording as the library's functions share it. */
#ifndef API_RECORDING_H
#define API_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <luabpf.h>

#include "base/error.h"
#include "base/text.h"
#include "base/words.h"
#include "proc/narrow.h"
#include "prof/function.h"
#include "record/session.h"

enum recording_state {
	RECORDING_NEW,
	RECORDING_ON,
	RECORDING_STOPPED, /* or its start has failed */
};

struct luabpf_sample {
	luabpf *recording;
	size_t row; /* of the profile */
};

struct luabpf {
	pid_t owner; /* after a fork it is not the child's */
	enum recording_state state;

	/* targets and options, for luabpf_start() */
	pid_t *pids;
	size_t npids;
	bool everywhere, follow, children, zones, coroutines;
	struct words exes, comms, cgroups, zone_from; /* the last is one word at most */
	uid_t *uids;
	size_t nuids;
	struct narrow narrow;

	struct session *session; /* from RECORDING_ON on */
	luabpf_callback callback;
	void *data;

	/* deliver.c */
	uint64_t *waiting; /* by row: samples that were not delivered */
	size_t nwaiting;
	size_t *rows; /* those with any, in the order in which they came: from `delivered` on */
	size_t nrows, delivered;
	uint64_t dropped;
	bool calling; /* the callback, or it left by longjmp() */
	struct luabpf_sample sample;

	/* sample.c */
	struct functions *functions; /* of the first nframes frames of the profile; NULL: none */
	size_t nframes;
	struct text dump, raw, name;

	struct error error;
	struct text message;
};

/* -ECHILD after a fork, with an error. */
int recording_check(luabpf *recording);

/* For session_on_count(). */
int deliver_count(void *recording, size_t row, uint64_t count);

/* Calls back for all samples that wait, unless one of the calls ends the recording. */
void deliver_waiting(luabpf *recording);

/* The samples that wait are not delivered. */
void deliver_drop(luabpf *recording);

/*
 * Around what other recordings of the process share: the state of user/base, and libbpf's output, which is the
 * host's. Not held while the library waits or calls back.
 */
void shared_enter(void);
void shared_leave(void);

/* A recording has begun, or was freed: with the last one, what they share is released. */
void shared_hold(void);
void shared_drop(void);

#endif
