// SPDX-License-Identifier: BSD-2-Clause
#include "families.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <unwind/abi.h>

#include "base/cleanup.h"
#include "base/confine.h"

/* One family. */
struct child {
	pid_t pid; /* 0: none; it has ended */
	int fd;
	int result; /* then: of the load */
};

struct families {
	struct child child[LB_FAMILIES_MOST];
	uint32_t requested; /* each once */
	uint32_t needed, loaded;
	int error; /* of the first that is needed and failed */
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

/* Loads the family when it is requested. */
static void serve(const struct families_options *o, int socket, uint32_t family)
{
	char request;
	int result;

	if (read(socket, &request, 1) != 1)
		return;
	result = o->load(o->arg, family);
	if (write(socket, &result, sizeof(result)) < 0)
		return;
}

static void become_child(const struct families_options *o, int socket, uint32_t family)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "luabpf-loader");
	close_others(o, socket);
	if (!confine(USE_PROGRAMS, NULL))
		serve(o, socket, family);
	_exit(0);
}

static int start_child(struct child *c, const struct families_options *o, uint32_t family)
{
	sigset_t most, before;
	int fds[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -errno;
	sigfillset(&most); /* in the child: those of a terminal are for the recording */
	sigdelset(&most, SIGSYS);
	sigprocmask(SIG_SETMASK, &most, &before);
	c->pid = fork();
	r = c->pid < 0 ? -errno : 0;
	if (!c->pid)
		become_child(o, fds[1], family);
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(fds[1]);
	if (!r) {
		c->fd = fds[0];
		return 0;
	}
	close(fds[0]);
	c->pid = 0;
	return r;
}

static void end_child(struct child *c)
{
	if (!c->pid)
		return;
	kill(c->pid, SIGKILL);
	close(c->fd);
	waitpid(c->pid, NULL, 0);
	c->pid = 0;
}

int families_start(const struct families_options *o, struct families **out)
{
	struct families *f __cleanup(families_free) = calloc(1, sizeof(*f));
	int r = 0;

	if (!f)
		return -ENOMEM;
	for (uint32_t i = 0; i < LB_FAMILIES_MOST && !r; i++)
		if (o->families >> i & 1)
			r = start_child(&f->child[i], o, i);
	if (!r)
		*out = TAKE_PTR(f);
	return r;
}

void families_free(struct families **families)
{
	struct families *f = *families;

	for (uint32_t i = 0; f && i < LB_FAMILIES_MOST; i++)
		end_child(&f->child[i]);
	free(f);
	*families = NULL;
}

/* To a child that was killed it is in vain: then there is no result. */
void families_prepare(struct families *f, uint32_t bits)
{
	bits &= ~f->requested;
	f->requested |= bits;
	for (uint32_t i = 0; i < LB_FAMILIES_MOST; i++)
		if (bits >> i & 1)
			(void)!send(f->child[i].fd, "", 1, MSG_NOSIGNAL);
}

void families_request(struct families *f, uint32_t bits)
{
	f->needed |= bits;
	families_prepare(f, bits);
}

/* Waits for one that was requested. */
static int wait_for(const struct child *c)
{
	int result;
	ssize_t got;

	do
		got = read(c->fd, &result, sizeof(result));
	while (got < 0 && errno == EINTR);
	return got == sizeof(result) ? result : -EIO; /* it was killed */
}

static void take_result(struct child *c)
{
	if (!c->pid)
		return;
	c->result = wait_for(c);
	end_child(c);
}

int families_wait(struct families *f)
{
	for (uint32_t i = 0; i < LB_FAMILIES_MOST && !f->error; i++) {
		if (!((f->needed & ~f->loaded) >> i & 1))
			continue;
		take_result(&f->child[i]);
		f->error = f->child[i].result;
		if (!f->error)
			f->loaded |= 1u << i;
	}
	return f->error;
}

void families_reap(struct families *f)
{
	for (uint32_t i = 0; i < LB_FAMILIES_MOST; i++) {
		struct pollfd ready = {.fd = f->child[i].fd, .events = POLLIN};

		if (f->requested >> i & 1 && f->child[i].pid && poll(&ready, 1, 0) == 1)
			take_result(&f->child[i]);
	}
}
