// SPDX-License-Identifier: BSD-2-Clause
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "signals.h"

static struct {
	bool taken;
	struct sigaction pipe, limit, child;
	sigset_t mask;
} given;

void signals_take(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, usual = {.sa_handler = SIG_DFL};

	sigprocmask(SIG_SETMASK, NULL, &given.mask);
	sigaction(SIGPIPE, &ignore, &given.pipe);
	sigaction(SIGXFSZ, &ignore, &given.limit);
	sigaction(SIGCHLD, &usual, &given.child);
	given.taken = true;
}

bool signals_ignored(int signal)
{
	struct sigaction now;

	return !sigaction(signal, NULL, &now) && now.sa_handler == SIG_IGN;
}

void signals_give_back(void)
{
	if (!given.taken)
		return;
	sigaction(SIGPIPE, &given.pipe, NULL);
	sigaction(SIGXFSZ, &given.limit, NULL);
	sigaction(SIGCHLD, &given.child, NULL);
	sigprocmask(SIG_SETMASK, &given.mask, NULL);
}
