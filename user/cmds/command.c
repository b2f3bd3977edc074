// SPDX-License-Identifier: BSD-2-Clause
#include "command.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/signals.h"

int command_begin(struct command *c, pid_t pid, int stop, struct error *err)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0)
		return error_set(err, -errno, "pidfd_open: %s", strerror(errno));
	*c = (struct command){.pid = pid, .pidfd = fd, .stop = stop};
	return 0;
}

int command_wait(struct command *c, int timeout_ms, struct error *err)
{
	struct pollfd fds[] = {{.fd = c->pidfd, .events = POLLIN},
			       {.fd = c->stop, .events = POLLIN}};
	pid_t done;

	if (poll(fds, 2, timeout_ms) < 0 && errno != EINTR)
		return error_set(err, -errno, "poll: %s", strerror(errno));
	if (fds[1].revents) {
		if (signals_caught() != SIGINT)
			kill(c->pid, signals_caught());
		c->stop = -1;
	}
	done = waitpid(c->pid, &c->status, WNOHANG);
	if (done < 0 && errno != EINTR)
		return error_set(err, -errno, "waitpid: %s", strerror(errno));
	c->ended = done == c->pid;
	return 0;
}

void command_free(struct command *c)
{
	close(c->pidfd);
}
