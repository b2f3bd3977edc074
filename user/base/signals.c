// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock.h"
#include "signals.h"

/* Those that end a recording. */
static const int stops[] = {SIGINT, SIGTERM, SIGHUP};
#define NSTOPS (sizeof(stops) / sizeof(stops[0]))

static struct {
	bool taken;
	struct sigaction pipe, limit, child, stop[NSTOPS];
	sigset_t mask;
} given;

/* ns in which a signal that comes again is the same request: timeout(1) sends one to its child, then to its group. */
#define AGAIN_NS (100 * 1000 * 1000)

static volatile sig_atomic_t caught;
static volatile uint64_t caught_ns; /* when */
static int caught_fd = -1;
static int hangup_fd = -1; /* -1: SIGHUP ends the program */

static const struct sigaction ignore = {.sa_handler = SIG_IGN};
static const struct sigaction usual = {.sa_handler = SIG_DFL};

static bool is_ignored(int signal)
{
	struct sigaction now;

	return !sigaction(signal, NULL, &now) && now.sa_handler == SIG_IGN;
}

void signals_take(void)
{
	sigset_t mask;
	size_t i;

	sigprocmask(SIG_SETMASK, NULL, &given.mask);
	sigaction(SIGPIPE, &ignore, &given.pipe);
	sigaction(SIGXFSZ, &ignore, &given.limit);
	sigaction(SIGCHLD, &usual, &given.child);
	sigemptyset(&mask);
	for (i = 0; i < NSTOPS; i++) {
		sigaddset(&mask, stops[i]);
		sigaction(stops[i], NULL, &given.stop[i]);
		if (stops[i] != SIGHUP || !is_ignored(SIGHUP)) /* nohup */
			sigaction(stops[i], &usual, NULL);
	}
	sigprocmask(SIG_UNBLOCK, &mask, NULL);
	given.taken = true;
}

void signals_give_back(void)
{
	size_t i;

	if (!given.taken)
		return;
	sigaction(SIGPIPE, &given.pipe, NULL);
	sigaction(SIGXFSZ, &given.limit, NULL);
	sigaction(SIGCHLD, &given.child, NULL);
	for (i = 0; i < NSTOPS; i++)
		sigaction(stops[i], &given.stop[i], NULL);
	sigprocmask(SIG_SETMASK, &given.mask, NULL);
}

static bool is_stop(int signal)
{
	return !is_ignored(signal) && !(signal == SIGHUP && hangup_fd >= 0);
}

/* Of the signal that was caught: ends the program, unless it is the same request. */
static void on_again(int signal)
{
	int error = errno;

	if (clock_ns(CLOCK_MONOTONIC) - caught_ns >= AGAIN_NS) {
		sigaction(signal, &usual, NULL);
		raise(signal);
	}
	errno = error;
}

/* Sets the actions of stops[] that are not ignored: another signal than this one ends the program. A closed terminal
 * sends two SIGHUPs: the kernel's and the shell's. */
static void let_end(int after)
{
	const struct sigaction again = {.sa_handler = on_again, .sa_flags = SA_RESTART};
	size_t i;

	for (i = 0; i < NSTOPS; i++)
		if (is_stop(stops[i]))
			sigaction(stops[i],
				  stops[i] != after ? &usual
				  : after == SIGHUP ? &ignore
						    : &again,
				  NULL);
}

static void on_stop(int signal)
{
	const uint64_t one = 1;
	int error = errno;
	ssize_t ignored;

	caught = signal;
	caught_ns = clock_ns(CLOCK_MONOTONIC);
	let_end(signal);
	ignored = write(caught_fd, &one, sizeof(one));
	(void)ignored;
	errno = error;
}

int signals_catch(int *fd)
{
	struct sigaction action = {.sa_handler = on_stop, .sa_flags = SA_RESTART};
	size_t i;

	if (caught_fd < 0)
		caught_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (caught_fd < 0)
		return -errno;
	for (i = 0; i < NSTOPS; i++)
		sigaddset(&action.sa_mask, stops[i]);
	for (i = 0; i < NSTOPS; i++)
		if (is_stop(stops[i]))
			sigaction(stops[i], &action, NULL);
	*fd = caught_fd;
	return 0;
}

static void on_hangup(int signal)
{
	const uint64_t one = 1;
	int error = errno;
	ssize_t ignored;

	(void)signal;
	ignored = write(hangup_fd, &one, sizeof(one));
	(void)ignored;
	errno = error;
}

int signals_catch_hangup(int *fd)
{
	const struct sigaction action = {.sa_handler = on_hangup, .sa_flags = SA_RESTART};

	if (hangup_fd < 0)
		hangup_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (hangup_fd < 0)
		return -errno;
	sigaction(SIGHUP, &action, NULL);
	*fd = hangup_fd;
	return 0;
}

int signals_caught(void)
{
	return caught;
}

void signals_release(void)
{
	let_end(caught);
}
