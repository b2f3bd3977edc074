// SPDX-License-Identifier: BSD-2-Clause
/* Each in a process of its own: it can only lose rights. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/confine.h"

#define DONE 42

static char said[512]; /* on standard error */

/* Confines a child, which calls fn then. Returns its status. */
static int confined(unsigned uses, void (*fn)(void))
{
	int fds[2], status;
	ssize_t n;
	pid_t pid;

	cr_assert_eq(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		dup2(fds[1], STDERR_FILENO);
		if (confine(uses, NULL))
			_exit(1);
		fn();
		_exit(DONE);
	}
	close(fds[1]);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	n = read(fds[0], said, sizeof(said) - 1);
	said[n < 0 ? 0 : n] = '\0';
	close(fds[0]);
	return status;
}

static bool goes_on(unsigned uses, void (*fn)(void))
{
	int status = confined(uses, fn);

	return WIFEXITED(status) && WEXITSTATUS(status) == DONE;
}

static bool is_ended(unsigned uses, void (*fn)(void), int nr)
{
#ifdef __SANITIZE_ADDRESS__
	return true; /* more is allowed */
#endif
	int status = confined(uses, fn);
	char text[64];

	snprintf(text, sizeof(text), "luabpf: system call %4d is not in the seccomp filter", nr);
	return WIFEXITED(status) && WEXITSTATUS(status) == 1 && strstr(said, text);
}

static void opens_a_file(void)
{
	close(open("/etc/passwd", O_RDONLY));
}

static void becomes_a_program(void)
{
	execl("/bin/true", "true", NULL);
}

static void makes_code(void)
{
	(void)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void connects(void)
{
	socket(AF_INET, SOCK_STREAM, 0);
}

static void traces(void)
{
	syscall(SYS_ptrace, 16, getpid(), 0, 0);
}

static void loads_a_program(void)
{
	union bpf_attr attr = {};

	syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

static void attaches_a_program(void)
{
	union bpf_attr attr = {};

	syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
}

static void reads_memory(void)
{
	struct iovec none = {};

	process_vm_readv(getpid(), &none, 1, &none, 1, 0);
}

static void opens_an_event(void)
{
	syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0);
}

static void looks_into_a_map(void)
{
	union bpf_attr attr = {.map_fd = -1};

	if (!syscall(SYS_bpf, BPF_MAP_LOOKUP_ELEM, &attr, sizeof(attr)))
		_exit(1);
}

static void makes_a_namespace(void)
{
	syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
}

static void forks(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		_exit(1);
}

static int by_first(const void *a, const void *b)
{
	return *(const char *)a - *(const char *)b;
}

/* The allocator's calls, qsort() of so much that glibc asks how much memory there is, an unlikely clock. */
static void works(void)
{
	char *p = malloc(1 << 20);

	p = realloc(p, 64 << 20);
	memset(p, 1, 4096);
	qsort(p, 256, 4096, by_first);
	free(p);
	if (syscall(SYS_clock_gettime, 3, &(struct timespec){}))
		_exit(1);
}

static void knows_users(void)
{
	const struct passwd *pw = getpwuid(0);

	if (!pw || strcmp(pw->pw_name, "root") != 0)
		_exit(1);
}

Test(confine, what_all_need)
{
	cr_assert(goes_on(0, works), "%s", said);
	cr_assert(is_ended(0, opens_a_file, SYS_openat), "%s", said);
	cr_assert(is_ended(0, becomes_a_program, SYS_execve), "%s", said);
	cr_assert(is_ended(0, makes_code, SYS_mmap), "%s", said);
	cr_assert(is_ended(0, forks, SYS_clone), "%s", said);
}

Test(confine, a_recording)
{
	const unsigned uses = USE_TARGETS | USE_CHILDREN;

	cr_assert(goes_on(uses, opens_a_file), "%s", said);
	cr_assert(goes_on(uses, forks), "%s", said);
	cr_assert(goes_on(uses, looks_into_a_map), "%s", said);
	cr_assert(goes_on(uses, knows_users), "%s", said);
	cr_assert(is_ended(uses, loads_a_program, SYS_bpf), "%s", said);
	cr_assert(is_ended(uses, makes_a_namespace, SYS_clone), "%s", said);
	cr_assert(is_ended(uses, becomes_a_program, SYS_execve), "%s", said);
	cr_assert(is_ended(uses, connects, SYS_socket), "%s", said);
	cr_assert(is_ended(uses, traces, SYS_ptrace), "%s", said);
}

Test(confine, a_child_that_loads_programs)
{
	cr_assert(goes_on(USE_PROGRAMS, loads_a_program), "%s", said);
	cr_assert(is_ended(USE_PROGRAMS, attaches_a_program, SYS_bpf), "%s", said);
	cr_assert(is_ended(USE_PROGRAMS, reads_memory, SYS_process_vm_readv), "%s", said);
	cr_assert(is_ended(USE_PROGRAMS, opens_an_event, SYS_perf_event_open), "%s", said);
	cr_assert(is_ended(USE_PROGRAMS, forks, SYS_clone), "%s", said);
}

#define BIT(cap) (1ULL << (cap))
#define OF_TARGETS (BIT(CAP_SYS_PTRACE) | BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_CHECKPOINT_RESTORE))

static const struct {
	unsigned uses;
	uint64_t caps;
} sets[] = {
	{0, 0},
	{USE_TARGETS, OF_TARGETS},
	{USE_TARGETS | USE_CHILDREN, OF_TARGETS | BIT(CAP_PERFMON)},
	{USE_TARGETS | USE_OLD_MAPS, OF_TARGETS | BIT(CAP_BPF)},
	{USE_FILES, BIT(CAP_DAC_OVERRIDE) | BIT(CAP_CHOWN)},
	{USE_CALLER, BIT(CAP_SETUID) | BIT(CAP_SETGID)},
	{USE_SOURCES, BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_SETUID) |
			      BIT(CAP_SETGID) | BIT(CAP_SYS_CHROOT)},
	{USE_COMMAND, BIT(CAP_KILL)},
	{USE_PROGRAMS, BIT(CAP_BPF) | BIT(CAP_PERFMON)},
};

static uint64_t flag_of(cap_t caps, cap_flag_t flag)
{
	cap_flag_value_t has;
	uint64_t set = 0;

	for (cap_value_t v = 0; v < 64; v++)
		if (!cap_get_flag(caps, v, flag, &has) && has == CAP_SET)
			set |= BIT(v);
	return set;
}

/* In a child: the set that remains. Unprivileged, the set is empty and the bounding set stays. */
static void keep(unsigned uses, uint64_t want)
{
	cap_t caps = cap_get_proc();
	bool may_empty = flag_of(caps, CAP_EFFECTIVE) & BIT(CAP_SETPCAP);

	if (uses & (USE_LOADING | USE_CHILDREN) && caps_events_are_admins())
		want |= BIT(CAP_SYS_ADMIN);
	want &= flag_of(caps, CAP_PERMITTED);
	if (caps_keep(uses, NULL))
		_exit(1);
	for (cap_value_t v = 0; may_empty && prctl(PR_CAPBSET_READ, v) >= 0; v++)
		if (prctl(PR_CAPBSET_READ, v))
			_exit(2);
	caps = cap_get_proc();
	if (flag_of(caps, CAP_PERMITTED) != want || flag_of(caps, CAP_EFFECTIVE) != want)
		_exit(3);
	_exit(flag_of(caps, CAP_INHERITABLE) ? 4 : DONE);
}

Test(confine, capabilities)
{
	int status;
	pid_t pid;

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		pid = fork();
		if (!pid)
			keep(sets[i].uses, sets[i].caps);
		cr_assert_eq(waitpid(pid, &status, 0), pid);
		cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == DONE, "%zu: %x", i, status);
	}
}
