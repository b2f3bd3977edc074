// SPDX-License-Identifier: BSD-2-Clause
/*
 * The child is seized before it calls exec, and stops there. Where its program begins is in the
 * auxiliary vector (AT_ENTRY). A breakpoint there (INT3) holds it once the dynamic linker is done. Then
 * the byte is put back, and the tracing ends. Debug registers would do without the byte, but in some
 * virtual machines (Firecracker) the kernel can set them and they never hit.
 *
 * The breakpoint stays when the tracer dies, and the command would die of SIGTRAP in the middle of
 * its start. So PTRACE_O_EXITKILL ends it together with luabpf: until it is let go, no instruction
 * of its program has run.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/breakpoint.h"
#include "base/cleanup.h"
#include "base/signals.h"
#include "base/sudo.h"
#include "launch.h"
#include "terminal.h"

/* Each ID and its saved copy are read back: a command that keeps root has more than it should. */
static int take_ids(uid_t uid, gid_t gid)
{
	uid_t u[3];
	gid_t g[3];
	int i;

	if (setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
		return -errno;
	if (getresuid(&u[0], &u[1], &u[2]) || getresgid(&g[0], &g[1], &g[2]))
		return -errno;
	for (i = 0; i < 3; i++)
		if (u[i] != uid || g[i] != gid)
			return -EPERM;
	return 0;
}

static int become(const struct sudo_caller *caller)
{
	struct passwd *pw = getpwuid(caller->uid);
	gid_t gid = caller->gid;
	int r;

	if (pw ? initgroups(pw->pw_name, gid) : setgroups(1, &gid))
		return -errno;
	r = take_ids(caller->uid, gid);
	if (r)
		return r;
	if (pw) {
		setenv("HOME", pw->pw_dir, 1);
		setenv("USER", pw->pw_name, 1);
		setenv("LOGNAME", pw->pw_name, 1);
	}
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	unsetenv("SUDO_USER");
	unsetenv("SUDO_COMMAND");
	return 0;
}

struct pipes {
	int go[2];     /* a byte for the child: it is seized */
	int report[2]; /* the errno for which the child cannot call exec */
};

static void pipes_close(struct pipes *p)
{
	cleanup_fd(&p->go[0]);
	cleanup_fd(&p->go[1]);
	cleanup_fd(&p->report[0]);
	cleanup_fd(&p->report[1]);
}

/*
 * In the child: never returns. caller: NULL without sudo. Runs nothing if the parent has died or
 * could not seize it.
 */
static void run_child(char *const argv[], const struct sudo_caller *caller, const struct pipes *p)
{
	char seized;
	int r = 0;

	close(p->go[1]);
	if (read(p->go[0], &seized, 1) != 1)
		_exit(127);
	signals_give_back();
	if (caller)
		r = terminal_guard(caller->uid);
	if (!r && caller)
		r = become(caller);
	if (!r) {
		execvp(argv[0], argv);
		r = -errno;
	}
	if (write(p->report[1], &r, sizeof(r)) < 0)
		_exit(127);
	_exit(127);
}

/* EI_CLASS of the program that runs; 0: it is not known. */
static int exe_class(pid_t pid)
{
	unsigned char ident[EI_NIDENT];
	int fd __close = -1;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, ident, sizeof(ident)) != sizeof(ident))
		return 0;
	return ident[EI_CLASS];
}

/* One entry of an auxiliary vector. Returns 1, or 0 at its end. */
static int next_aux(int fd, int class, Elf64_auxv_t *out)
{
	Elf32_auxv_t aux;

	if (class != ELFCLASS32)
		return read(fd, out, sizeof(*out)) == sizeof(*out);
	if (read(fd, &aux, sizeof(aux)) != sizeof(aux))
		return 0;
	out->a_type = aux.a_type;
	out->a_un.a_val = aux.a_un.a_val;
	return 1;
}

/* -ENOEXEC: it is not in the vector. */
static int entry_point(pid_t pid, uint64_t *entry)
{
	int fd __close = -1, class = exe_class(pid);
	Elf64_auxv_t aux;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/auxv", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (next_aux(fd, class, &aux)) {
		if (aux.a_type != AT_ENTRY)
			continue;
		*entry = aux.a_un.a_val;
		return 0;
	}
	return -ENOEXEC;
}

/* A breakpoint: the word of the program that has it, without and with it. */
struct breakpoint {
	uint64_t addr; /* 0: none is set */
	long word, with;
};

static void *word_at(uint64_t addr)
{
	return (void *)(uintptr_t)(addr & ~7UL); /* an aligned one is in one page */
}

static int break_at(pid_t pid, uint64_t addr, struct breakpoint *b)
{
	errno = 0;
	b->word = ptrace(PTRACE_PEEKTEXT, pid, word_at(addr), 0);
	if (errno)
		return -errno;
	b->with = (long)breakpoint_put((uint64_t)b->word, addr & 7);
	if (ptrace(PTRACE_POKETEXT, pid, word_at(addr), b->with))
		return -errno;
	b->addr = addr;
	return 0;
}

/* True if the child has met the breakpoint. */
static bool stands_at(pid_t pid, const struct breakpoint *b)
{
	return b->addr && breakpoint_is_met(pid, b->addr);
}

/* Takes the breakpoint away, and sets the child before it. */
static int resume_at(pid_t pid, const struct breakpoint *b)
{
	if (ptrace(PTRACE_POKETEXT, pid, word_at(b->addr), b->word))
		return -errno;
	return breakpoint_continue_at(pid, b->addr);
}

/*
 * A constructor has made a process, or a thread. A process with memory of its own has a copy of the
 * breakpoint, which is taken away. In memory that both share it is put back.
 */
static void release_made(pid_t pid, const struct breakpoint *b)
{
	unsigned long made = 0;
	int status;

	if (ptrace(PTRACE_GETEVENTMSG, pid, 0, &made) ||
	    waitpid((pid_t)made, &status, __WALL) < 0 || !WIFSTOPPED(status))
		return;
	if (b->addr) {
		ptrace(PTRACE_POKETEXT, (pid_t)made, word_at(b->addr), b->word);
		ptrace(PTRACE_POKETEXT, pid, word_at(b->addr), b->with);
	}
	ptrace(PTRACE_DETACH, (pid_t)made, 0, 0);
}

static bool has_made(int status)
{
	int event = status >> 16;

	return event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK ||
	       event == PTRACE_EVENT_CLONE;
}

/* Continues a stopped child, with the signal that it was stopped for. */
static int go_on(pid_t pid, int status)
{
	int event = status >> 16, sig = WSTOPSIG(status);

	if (event == PTRACE_EVENT_STOP && sig != SIGTRAP) /* it stays stopped, until SIGCONT */
		return ptrace(PTRACE_LISTEN, pid, 0, 0) ? -errno : 0;
	return ptrace(PTRACE_CONT, pid, 0, event ? 0 : sig) ? -errno : 0;
}

static int wait_change(pid_t pid, int *status)
{
	while (waitpid(pid, status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

/*
 * Runs the child up to its entry point; a constructor may call exec once more. Returns 0 when it
 * stands there. -ECHILD: it has ended before, with this status.
 */
static int run_to_entry(pid_t pid, int *status)
{
	struct breakpoint b = {};
	uint64_t entry = 0;
	int r;

	for (;;) {
		r = wait_change(pid, status);
		if (r)
			return r;
		if (!WIFSTOPPED(*status))
			return -ECHILD;
		if (*status >> 16 == PTRACE_EVENT_EXEC) {
			r = entry_point(pid, &entry);
			if (!r)
				r = break_at(pid, entry, &b);
			if (r)
				return r;
		} else if (has_made(*status)) {
			release_made(pid, &b);
		} else if (WSTOPSIG(*status) == SIGTRAP && stands_at(pid, &b)) {
			return resume_at(pid, &b);
		}
		r = go_on(pid, *status);
		if (r)
			return r;
	}
}

/* The child was seized; it is held when this returns 0. */
static int hold(pid_t pid, struct pipes *p, const char *name, struct error *err)
{
	int status, refused, r = 0;

	if (write(p->go[1], "", 1) != 1)
		r = -errno;
	if (!r)
		r = run_to_entry(pid, &status);
	if (!r)
		return 0;
	cleanup_fd(&p->report[1]);
	if (r != -ECHILD)
		return error_set(err, r, "%s: cannot hold it at its start: %s", name, strerror(-r));
	if (read(p->report[0], &refused, sizeof(refused)) == sizeof(refused))
		return error_set(err, refused, "%s: cannot run it: %s", name, strerror(-refused));
	if (WIFSIGNALED(status))
		return error_set(err, r, "%s: ended before its program began, by SIG%s", name,
				 sigabbrev_np(WTERMSIG(status)));
	return error_set(err, r, "%s: ended before its program began, with exit status %d", name,
			 WEXITSTATUS(status));
}

/* The same events for each way in which a constructor can make a process. */
#define HELD                                                                                       \
	(PTRACE_O_EXITKILL | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |       \
	 PTRACE_O_TRACECLONE)

int launch_start(char *const argv[], pid_t *pid, struct error *err)
{
	struct pipes pipes __cleanup(pipes_close) = {{-1, -1}, {-1, -1}};
	struct sudo_caller caller;
	int r, by_sudo;
	pid_t child;

	by_sudo = sudo_caller(&caller, err);
	if (by_sudo < 0)
		return by_sudo;
	if (pipe2(pipes.go, O_CLOEXEC) || pipe2(pipes.report, O_CLOEXEC))
		return error_set(err, -errno, "pipe: %s", strerror(errno));
	fflush(NULL);
	child = fork();
	if (child < 0)
		return error_set(err, -errno, "fork: %s", strerror(errno));
	if (!child)
		run_child(argv, by_sudo ? &caller : NULL, &pipes);
	if (ptrace(PTRACE_SEIZE, child, 0, HELD))
		r = error_set(err, -errno, "%s: cannot hold it at its start: %s", argv[0],
			      strerror(errno));
	else
		r = hold(child, &pipes, argv[0], err);
	if (r) {
		if (r != -ECHILD) {
			kill(child, SIGKILL);
			waitpid(child, NULL, 0);
		}
		return r;
	}
	*pid = child;
	return 0;
}

int launch_release(pid_t pid)
{
	return ptrace(PTRACE_DETACH, pid, 0, 0) ? -errno : 0;
}
