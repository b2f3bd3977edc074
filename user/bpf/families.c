// SPDX-License-Identifier: BSD-2-Clause
#include "families.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/confine.h"

struct families {
	pid_t pid; /* 0: it has ended */
	int fd;
	uint32_t most, requested, loaded;
	int error; /* of the first that failed */
};

struct answer {
	uint32_t family;
	int result;
};

static bool is_kept(const struct families_options *o, int socket, int fd)
{
	if (fd == socket || fd == STDERR_FILENO)
		return true;
	for (size_t i = 0; i < o->nkeep; i++)
		if (o->keep[i] == fd)
			return true;
	return false;
}

static void close_others(const struct families_options *o, int socket)
{
	int most = socket;

	for (size_t i = 0; i < o->nkeep; i++)
		if (o->keep[i] > most)
			most = o->keep[i];
	for (int fd = 0; fd <= most; fd++)
		if (!is_kept(o, socket, fd))
			close(fd);
	close_range((unsigned)most + 1, ~0U, 0);
}

static void serve(const struct families_options *o, int socket)
{
	struct answer a;
	uint32_t loaded = 0;

	while (loaded != o->most && read(socket, &a.family, sizeof(a.family)) == sizeof(a.family)) {
		a.result = o->load(o->arg, a.family);
		if (!a.result)
			loaded |= 1u << a.family;
		if (send(socket, &a, sizeof(a), MSG_NOSIGNAL) != sizeof(a))
			return;
	}
}

static void become_child(const struct families_options *o, int socket)
{
	sigset_t all;

	sigfillset(&all); /* those of a terminal are for the recording */
	sigdelset(&all, SIGSYS);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "luabpf-loader");
	close_others(o, socket);
	if (!confine(USE_PROGRAMS, NULL))
		serve(o, socket);
	_exit(0);
}

int families_start(const struct families_options *o, struct families **out)
{
	struct families *f __free = calloc(1, sizeof(*f));
	int fds[2], r;

	if (!f)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -errno;
	f->most = o->most;
	f->fd = fds[0];
	f->pid = fork();
	r = -errno;
	if (!f->pid)
		become_child(o, fds[1]);
	close(fds[1]);
	if (f->pid < 0) {
		close(fds[0]);
		return r;
	}
	*out = TAKE_PTR(f);
	return 0;
}

static void end_child(struct families *f)
{
	if (!f->pid)
		return;
	kill(f->pid, SIGKILL);
	close(f->fd);
	waitpid(f->pid, NULL, 0);
	f->pid = 0;
}

void families_free(struct families **families)
{
	if (!*families)
		return;
	end_child(*families);
	free(*families);
	*families = NULL;
}

void families_request(struct families *f, uint32_t bits)
{
	bits &= ~f->requested;
	f->requested |= bits;
	for (uint32_t family = 0; bits; family++, bits >>= 1)
		if (bits & 1 &&
		    send(f->fd, &family, sizeof(family), MSG_NOSIGNAL) != sizeof(family) &&
		    !f->error)
			f->error = -errno;
}

int families_wait(struct families *f)
{
	struct answer a;

	while (!f->error && f->requested & ~f->loaded) {
		ssize_t got = read(f->fd, &a, sizeof(a));

		if (got < 0 && errno == EINTR)
			continue;
		if (got != sizeof(a)) /* it was killed */
			f->error = -EIO;
		else if (a.result)
			f->error = a.result;
		else
			f->loaded |= 1u << a.family;
	}
	if (f->error || f->loaded == f->most)
		end_child(f);
	return f->error;
}
