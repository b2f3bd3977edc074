// SPDX-License-Identifier: BSD-2-Clause
/*
 * The child asks to be traced and calls exec; it stops there. Where its program begins is in the
 * auxiliary vector (AT_ENTRY): a breakpoint there holds it once the dynamic linker is done. Then
 * the instruction is put back, and the tracing ends.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/signals.h"
#include "base/sudo.h"
#include "launch.h"

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

/*
 * In the child: never returns. An errno that the parent should know goes into the pipe. caller:
 * NULL when nobody called sudo.
 */
static void run_child(char *const argv[], const struct sudo_caller *caller, int report)
{
	int r;

	signals_give_back();
	r = caller ? become(caller) : 0;
	if (!r && ptrace(PTRACE_TRACEME, 0, 0, 0))
		r = -errno;
	if (!r) {
		execvp(argv[0], argv);
		r = -errno;
	}
	if (write(report, &r, sizeof(r)) < 0)
		_exit(127);
	_exit(127);
}

static int wait_stop(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFSTOPPED(status) ? WSTOPSIG(status) : -ESRCH;
}

/* EI_CLASS of the program that runs; 0: it cannot be told. */
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

/* -ENOEXEC: the vector does not tell. */
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

/*
 * Runs the child, stopped after its exec, up to its entry point. Signals that arrive on the way are
 * passed on. Returns 0 when it stands there, -ESRCH when it ended before.
 */
static int run_to_entry(pid_t pid)
{
	struct user_regs_struct regs;
	uint64_t entry = 0;
	long word;
	int r = entry_point(pid, &entry), sig = 0;

	if (r)
		return r;
	errno = 0;
	word = ptrace(PTRACE_PEEKTEXT, pid, entry, 0);
	if (errno)
		return -errno;
	if (ptrace(PTRACE_POKETEXT, pid, entry, (word & ~0xffL) | 0xcc)) /* int3 */
		return -errno;
	for (;;) {
		if (ptrace(PTRACE_CONT, pid, 0, sig))
			return -errno;
		sig = wait_stop(pid);
		if (sig < 0)
			return sig;
		if (sig != SIGTRAP)
			continue;
		if (ptrace(PTRACE_GETREGS, pid, 0, &regs))
			return -errno;
		if (regs.rip == entry + 1)
			break;
	}
	regs.rip = entry;
	if (ptrace(PTRACE_POKETEXT, pid, entry, word) || ptrace(PTRACE_SETREGS, pid, 0, &regs))
		return -errno;
	return 0;
}

int launch_start(char *const argv[], pid_t *pid, struct error *err)
{
	int report[2], r, by_sudo;
	struct sudo_caller caller;
	pid_t child;

	by_sudo = sudo_caller(&caller, err);
	if (by_sudo < 0)
		return by_sudo;
	if (pipe2(report, O_CLOEXEC))
		return error_set(err, -errno, "pipe: %s", strerror(errno));
	fflush(NULL);
	child = fork();
	if (child < 0) {
		r = -errno;
		close(report[0]);
		close(report[1]);
		return error_set(err, r, "fork: %s", strerror(-r));
	}
	if (!child) {
		close(report[0]);
		run_child(argv, by_sudo ? &caller : NULL, report[1]);
	}
	close(report[1]);
	if (read(report[0], &r, sizeof(r)) != sizeof(r))
		r = 0; /* closed by exec */
	close(report[0]);
	if (r) {
		waitpid(child, NULL, 0);
		return error_set(err, r, "%s: cannot run it: %s", argv[0], strerror(-r));
	}
	r = wait_stop(child);
	if (r >= 0)
		r = run_to_entry(child);
	if (r < 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		return error_set(err, r, "%s: cannot hold it at its start: %s", argv[0],
				 strerror(-r));
	}
	*pid = child;
	return 0;
}

int launch_release(pid_t pid)
{
	return ptrace(PTRACE_DETACH, pid, 0, 0) ? -errno : 0;
}
