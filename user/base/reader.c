// SPDX-License-Identifier: BSD-2-Clause
#include "base/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/signals.h"

/*
 * How long a child may wait for its page or block: half as long after each that did not come, down
 * to LEAST_MS, so that all of them hold us for ten seconds at most.
 */
#define FIRST_MS 2000
#define LEAST_MS 100  /* and when a signal has ended the recording */
#define BUSY_MS 10000 /* if the child is runnable: it waits for a CPU, not for a page */
#define MAX_LEFT 64   /* children that were left behind and have not ended */

struct question {
	pid_t pid; /* 0: of a file */
	int fd;	   /* of our parent's */
	uint64_t offset;
	size_t n; /* bytes of a file, or pieces */
	struct iovec remote[READER_PIECES];
};

static struct {
	pid_t owner; /* whose child it is: we may be a fork of it */
	pid_t pid;
	int fd;		      /* valid if pid */
	unsigned unanswered;  /* number of children abandoned */
	pid_t left[MAX_LEFT]; /* 0: free */
} reader;

/* When it is closed, the daemon may be asked once more. */
static ssize_t read_file(const struct question *q, void *bytes)
{
	int parent __close = (int)syscall(SYS_pidfd_open, getppid(), 0);
	int at __close = (int)syscall(SYS_pidfd_getfd, parent, q->fd, 0);
	int fd __close = -1;
	ssize_t got = -1;
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0)
		got = pread(fd, bytes, q->n, (off_t)q->offset);
	return got < 0 ? -errno : got;
}

static ssize_t read_memory(const struct question *q, void *bytes)
{
	struct iovec all = {.iov_base = bytes, .iov_len = READER_BYTES};
	ssize_t got = process_vm_readv(q->pid, &all, 1, q->remote, q->n, 0);

	return got < 0 ? -errno : got;
}

/* Calls nothing but the kernel. Ends when the parent has: then the socket is closed. */
static void serve(int fd)
{
	static unsigned char bytes[READER_BYTES];
	struct question q;
	ssize_t got;

	while (read(fd, &q, sizeof(q)) == sizeof(q)) {
		struct iovec answer[] = {{.iov_base = &got, .iov_len = sizeof(got)},
					 {.iov_base = bytes}};

		got = q.pid ? read_memory(&q, bytes) : read_file(&q, bytes);
		if (got > 0)
			answer[1].iov_len = (size_t)got;
		if (writev(fd, answer, 2) < 0)
			return;
	}
}

/* The child keeps nothing of ours open: nothing may go on, or wait for it, when it is left behind. */
static void become_reader(int fd)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "luabpf-reader");
	dup2(fd, 0);
	close_range(1, ~0U, 0);
	serve(0);
	_exit(0);
}

/* Returns a free element of reader.left[] after those that have ended were waited for, or NULL. */
static pid_t *room(void)
{
	pid_t *free = NULL;

	for (size_t i = 0; i < MAX_LEFT; i++) {
		if (reader.left[i] && waitpid(reader.left[i], NULL, WNOHANG))
			reader.left[i] = 0;
		if (!reader.left[i])
			free = &reader.left[i];
	}
	return free;
}

static int start(void)
{
	int fds[2];

	if (!room())
		return -ETIMEDOUT;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -errno;
	reader.pid = fork();
	if (!reader.pid)
		become_reader(fds[1]);
	close(fds[1]);
	reader.fd = fds[0];
	reader.owner = getpid();
	if (reader.pid > 0)
		return 0;
	close(fds[0]);
	reader.pid = 0;
	return -EAGAIN;
}

/* True if the child runs, or would: it does not wait for a page or a block. */
static bool is_runnable(void)
{
	char path[32], stat[256];
	int fd __close = -1;
	const char *state;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)reader.pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, stat, sizeof(stat) - 1);
	if (n <= 0)
		return false;
	stat[n] = 0;
	state = strrchr(stat, ')'); /* of its name, which is ours */
	return state && state[1] == ' ' && state[2] == 'R';
}

static bool answers(void)
{
	struct pollfd answer = {.fd = reader.fd, .events = POLLIN};
	unsigned halvings = reader.unanswered < 5 ? reader.unanswered : 5;
	uint64_t since = clock_ns(CLOCK_MONOTONIC);
	int limit = FIRST_MS >> halvings, past = 0, rc;

	do { /* a signal interrupts it */
		if (limit < LEAST_MS || signals_caught())
			limit = LEAST_MS;
		rc = poll(&answer, 1, limit > past ? limit - past : LEAST_MS);
		past = (int)((clock_ns(CLOCK_MONOTONIC) - since) / 1000000);
	} while (rc <= 0 &&
		 (past < limit || (past < BUSY_MS && !signals_caught() && is_runnable())));
	return rc > 0;
}

/* It may end now, or when its read does. */
static void leave(void)
{
	kill(reader.pid, SIGKILL);
	close(reader.fd);
	if (!waitpid(reader.pid, NULL, WNOHANG))
		*room() = reader.pid; /* there was room as it began */
	reader.pid = 0;
}

void reader_close(void)
{
	if (!reader.pid)
		return;
	close(reader.fd);
	if (reader.owner == getpid()) {
		kill(reader.pid, SIGKILL);
		waitpid(reader.pid, NULL, 0); /* it waits for a question only */
	}
	reader.pid = 0;
}

/* The answer's bytes go to n pieces. */
static ssize_t ask(const struct question *q, const struct iovec *local, size_t n)
{
	struct iovec to[READER_PIECES + 1];
	struct msghdr msg = {.msg_iov = to, .msg_iovlen = n + 1};
	ssize_t got;
	int r;

	if (reader.owner != getpid())
		reader_close();
	r = reader.pid ? 0 : start();
	if (r)
		return r;
	memcpy(to + 1, local, n * sizeof(*local));
	to[0] = (struct iovec){.iov_base = &got, .iov_len = sizeof(got)};
	if (send(reader.fd, q, sizeof(*q), MSG_NOSIGNAL) == sizeof(*q)) {
		if (!answers()) {
			leave();
			reader.unanswered++;
			return -ETIMEDOUT;
		}
		if (recvmsg(reader.fd, &msg, 0) >= (ssize_t)sizeof(got))
			return got;
	}
	leave(); /* somebody has killed it */
	return -EIO;
}

ssize_t reader_read(pid_t pid, const struct iovec *local, const struct iovec *remote, size_t n)
{
	struct question q = {.pid = pid, .n = n};

	memcpy(q.remote, remote, n * sizeof(*remote));
	return ask(&q, local, n);
}

ssize_t reader_pread(int fd, void *dst, size_t size, uint64_t offset)
{
	struct question q = {.fd = fd, .offset = offset};
	struct iovec local = {.iov_base = dst};

	q.n = local.iov_len = size < READER_BYTES ? size : READER_BYTES;
	return ask(&q, &local, 1);
}
