// SPDX-License-Identifier: BSD-2-Clause
/* luabpf_start(3): begins, polls, stops. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "recording.h"

#define MS_DEFAULT 10
#define MS_MOST 1000000

int recording_check(luabpf *r)
{
	if (r->owner == getpid())
		return 0;
	return error_set(&r->error, -ECHILD, "this recording is of process %d, which has forked",
			 (int)r->owner);
}

static int check_on(luabpf *r)
{
	int err = recording_check(r);

	if (!err && r->state == RECORDING_NEW)
		return error_set(&r->error, -EINVAL, "this recording has not begun");
	return err;
}

/* As luaJIT_profile_start() reads it: unknown letters are ignored. */
static uint64_t interval_ns(const char *mode)
{
	unsigned ms = MS_DEFAULT;

	while (*mode) {
		if (*mode++ != 'i')
			continue;
		for (ms = 0; *mode >= '0' && *mode <= '9'; mode++)
			ms = ms < MS_MOST ? ms * 10 + (unsigned)(*mode - '0') : MS_MOST;
		ms = !ms ? 1 : ms > MS_MOST ? MS_MOST : ms;
	}
	return ms * UINT64_C(1000000);
}

static bool is_narrowed(const luabpf *r)
{
	return r->exes.n || r->comms.n || r->cgroups.n || r->nuids;
}

static int check_targets(luabpf *r)
{
	if (!r->npids && !r->everywhere)
		return error_set(&r->error, -EINVAL, "no process to record: name one, or all");
	if (is_narrowed(r) && !r->everywhere)
		return error_set(&r->error, -EINVAL, "single processes cannot be narrowed");
	narrow_free(&r->narrow); /* of a start that failed */
	r->narrow = (struct narrow){
		.exes = &r->exes,
		.comms = &r->comms,
		.uids = r->uids,
		.nuids = r->nuids,
	};
	return narrow_set_cgroups(&r->narrow, &r->cgroups, &r->error);
}

static int begin(luabpf *r, const char *mode)
{
	const struct session_options options = {
		.pids = r->pids,
		.npids = r->npids,
		.everywhere = r->everywhere,
		.narrow = is_narrowed(r) ? &r->narrow : NULL,
		.follow = r->follow,
		.children = r->children,
		.zones = r->zones,
		.zone_from = r->zone_from.n ? r->zone_from.word[0] : NULL,
		.by_coroutine = r->coroutines,
		.by_vm = true,
		.period_ns = interval_ns(mode),
		.in_process = true,
	};
	int err = check_targets(r);

	if (!err)
		err = session_open(&options, &r->session, &r->error);
	if (err)
		return err;
	if (r->callback)
		session_on_count(r->session, deliver_count, r);
	return session_start(r->session, -1, &r->error);
}

int luabpf_start(luabpf *r, const char *mode, luabpf_callback callback, void *data)
{
	int err = recording_check(r);

	if (err)
		return err;
	if (r->state != RECORDING_NEW)
		return error_set(&r->error, -EBUSY, "this recording has begun");
	r->callback = callback;
	r->data = data;
	shared_enter();
	err = begin(r, mode ? mode : "");
	if (err)
		session_free(&r->session);
	else
		shared_hold();
	r->state = err ? RECORDING_NEW : RECORDING_ON;
	shared_leave();
	return err;
}

int luabpf_fd(const luabpf *r)
{
	return r->session && r->owner == getpid() ? session_fd(r->session) : -EINVAL;
}

/* Ends the sampling: then all samples are in the profile. */
static int end(luabpf *r)
{
	int err;

	r->state = RECORDING_STOPPED;
	shared_enter();
	err = session_stop(r->session, &r->error);
	shared_leave();
	return err;
}

int luabpf_stop(luabpf *r)
{
	int err = recording_check(r);

	if (err || !r->session)
		return err;
	if (r->state == RECORDING_ON)
		err = end(r);
	if (r->calling)
		deliver_drop(r);
	else
		deliver_waiting(r);
	return err;
}

/* Waits for an event. True if one has come; false when the time is up or a signal came. */
static bool await(const luabpf *r, int timeout_ms)
{
	struct pollfd event = {.fd = session_fd(r->session), .events = POLLIN};

	return poll(&event, 1, timeout_ms) > 0;
}

/* Handles the events that have come. It may be over then. */
static int handle(luabpf *r)
{
	int over;

	shared_enter();
	over = session_poll(r->session, 0, &r->error);
	shared_leave();
	return over > 0 ? end(r) : over;
}

static int left_ms(int timeout_ms, uint64_t since)
{
	uint64_t ms = (clock_ns(CLOCK_MONOTONIC) - since) / 1000000;

	if (timeout_ms < 0)
		return -1;
	return ms < (uint64_t)timeout_ms ? timeout_ms - (int)ms : 0;
}

static int record(luabpf *r, int timeout_ms, bool delivers)
{
	uint64_t since = clock_ns(CLOCK_MONOTONIC);
	int err = check_on(r), left = timeout_ms;

	if (err)
		return err;
	delivers &= r->callback != NULL;
	r->calling = false;
	if (delivers) /* of luabpf_wait(), or after one that left by longjmp() */
		deliver_waiting(r);
	while (r->state == RECORDING_ON) {
		if (!await(r, left))
			return 1;
		err = handle(r);
		if (delivers)
			deliver_waiting(r);
		if (err)
			return err;
		left = left_ms(timeout_ms, since);
		if (!left) /* though the next event is there */
			return r->state == RECORDING_ON;
	}
	return 0;
}

int luabpf_poll(luabpf *r, int timeout_ms)
{
	return record(r, timeout_ms, true);
}

int luabpf_wait(luabpf *r, int timeout_ms)
{
	return record(r, timeout_ms, false);
}

void luabpf_free(luabpf *r)
{
	if (!r || r->owner != getpid())
		return;
	shared_enter();
	if (r->session)
		shared_drop();
	session_free(&r->session);
	shared_leave();
	functions_free(&r->functions);
	narrow_free(&r->narrow);
	words_free(&r->exes);
	words_free(&r->comms);
	words_free(&r->cgroups);
	words_free(&r->zone_from);
	free(r->pids);
	free(r->uids);
	free(r->waiting);
	free(r->rows);
	text_free(&r->dump);
	text_free(&r->raw);
	text_free(&r->name);
	text_free(&r->message);
	free(r);
}
