// SPDX-License-Identifier: BSD-2-Clause
/*
 * A list of the system calls that are allowed. Any other call means a bug or a compromise, and ends
 * the process. With an error number luabpf could mistake it for an exited process or unmapped memory
 * and print a wrong profile.
 *
 * The list has all calls that glibc versions use for one purpose.
 */
#include "base/confine.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <nss.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/cleanup.h"

#define ANY USE_ANY
#define TARGETS USE_TARGETS
#define FILES USE_FILES
#define SOURCES USE_SOURCES

/* With any arguments. */
static const struct {
	int nr;
	unsigned uses;
} allowed[] = {
	/* memory, time, internals of the C library */
	{SCMP_SYS(brk), ANY},
	{SCMP_SYS(munmap), ANY},
	{SCMP_SYS(mremap), ANY},
	{SCMP_SYS(madvise), ANY},
	{SCMP_SYS(futex), ANY},
	{SCMP_SYS(getrandom), ANY},
	{SCMP_SYS(clock_gettime), ANY},
	{SCMP_SYS(clock_getres), ANY},
	{SCMP_SYS(gettimeofday), ANY},
	{SCMP_SYS(time), ANY},
	{SCMP_SYS(getcpu), ANY},
	{SCMP_SYS(sysinfo), ANY}, /* qsort() reads the size of the memory */
	{SCMP_SYS(sched_getaffinity), ANY},
	{SCMP_SYS(sched_yield), ANY},
	{SCMP_SYS(restart_syscall), ANY},
	/* open files, messages */
	{SCMP_SYS(read), ANY},
	{SCMP_SYS(readv), ANY},
	{SCMP_SYS(pread64), ANY},
	{SCMP_SYS(write), ANY},
	{SCMP_SYS(writev), ANY},
	{SCMP_SYS(lseek), ANY},
	{SCMP_SYS(close), ANY},
	{SCMP_SYS(fstat), ANY},
	{SCMP_SYS(newfstatat), ANY},
	{SCMP_SYS(statx), ANY},
	{SCMP_SYS(fcntl), ANY},
	/* signals; exit and abort() */
	{SCMP_SYS(rt_sigaction), ANY},
	{SCMP_SYS(rt_sigprocmask), ANY},
	{SCMP_SYS(rt_sigreturn), ANY},
	{SCMP_SYS(getpid), ANY},
	{SCMP_SYS(gettid), ANY},
	{SCMP_SYS(tgkill), ANY},
	{SCMP_SYS(exit), ANY},
	{SCMP_SYS(exit_group), ANY},
	/* files of /proc, of targets, of outputs; users of this machine */
	{SCMP_SYS(open), TARGETS | FILES | SOURCES},
	{SCMP_SYS(openat), TARGETS | FILES | SOURCES},
	{SCMP_SYS(stat), TARGETS | FILES | SOURCES},
	{SCMP_SYS(lstat), TARGETS | FILES | SOURCES},
	{SCMP_SYS(access), TARGETS | FILES | SOURCES},
	{SCMP_SYS(faccessat), TARGETS | FILES | SOURCES},
	{SCMP_SYS(faccessat2), TARGETS | FILES | SOURCES},
	{SCMP_SYS(readlink), TARGETS | FILES | SOURCES},
	{SCMP_SYS(readlinkat), TARGETS | FILES | SOURCES},
	{SCMP_SYS(fstatfs), TARGETS | FILES | SOURCES},
	{SCMP_SYS(geteuid), TARGETS | FILES | SOURCES},
	{SCMP_SYS(getuid), TARGETS | FILES | SOURCES},
	{SCMP_SYS(getdents64), TARGETS},
	/* the event loop */
	{SCMP_SYS(epoll_wait), TARGETS},
	{SCMP_SYS(epoll_pwait), TARGETS},
	{SCMP_SYS(epoll_ctl), TARGETS},
	{SCMP_SYS(timerfd_settime), TARGETS},
	{SCMP_SYS(perf_event_open), USE_CHILDREN},
	/* targets; a child performs reads that may block forever (reader.c) */
	{SCMP_SYS(process_vm_readv), TARGETS},
	{SCMP_SYS(pidfd_open), TARGETS | SOURCES},
	{SCMP_SYS(socketpair), TARGETS},
	{SCMP_SYS(sendto), TARGETS},
	{SCMP_SYS(recvmsg), TARGETS},
	{SCMP_SYS(getppid), TARGETS},
	{SCMP_SYS(pidfd_getfd), TARGETS},
	{SCMP_SYS(dup2), TARGETS},
	{SCMP_SYS(dup3), TARGETS},
	{SCMP_SYS(close_range), TARGETS | SOURCES},
	{SCMP_SYS(poll), TARGETS | SOURCES},
	{SCMP_SYS(ppoll), TARGETS | SOURCES},
	{SCMP_SYS(kill), TARGETS | SOURCES},
	{SCMP_SYS(wait4), TARGETS | SOURCES},
	{SCMP_SYS(waitid), TARGETS | SOURCES},
	{SCMP_SYS(set_robust_list), TARGETS | SOURCES}, /* fork() */
	{SCMP_SYS(rseq), TARGETS | SOURCES},
	/* libbpf: files of /proc and /sys, descriptors */
	{SCMP_SYS(open), USE_PROGRAMS},
	{SCMP_SYS(openat), USE_PROGRAMS},
	{SCMP_SYS(dup3), USE_PROGRAMS},
	{SCMP_SYS(uname), USE_PROGRAMS},
	{SCMP_SYS(access), USE_PROGRAMS},
	{SCMP_SYS(faccessat), USE_PROGRAMS},
	{SCMP_SYS(faccessat2), USE_PROGRAMS},
	{SCMP_SYS(sendto), USE_PROGRAMS},
	/* outputs: outfile.c, outpath.c */
	{SCMP_SYS(link), FILES},
	{SCMP_SYS(linkat), FILES},
	{SCMP_SYS(rename), FILES},
	{SCMP_SYS(renameat), FILES},
	{SCMP_SYS(renameat2), FILES},
	{SCMP_SYS(unlink), FILES},
	{SCMP_SYS(unlinkat), FILES},
	{SCMP_SYS(ftruncate), FILES},
	{SCMP_SYS(fchown), FILES},
	{SCMP_SYS(fchmod), FILES},
	{SCMP_SYS(fsync), FILES},
	/* IDs of another user: fsids.c, creds.c */
	{SCMP_SYS(setfsuid), USE_CALLER | SOURCES},
	{SCMP_SYS(setfsgid), USE_CALLER | SOURCES},
	{SCMP_SYS(setgroups), USE_CALLER | SOURCES},
	{SCMP_SYS(getgroups), USE_CALLER | SOURCES},
	{SCMP_SYS(capget), TARGETS | SOURCES}, /* why a file cannot be opened */
	{SCMP_SYS(capset), SOURCES},
	/* a source file and the child that reads it: source.c */
	{SCMP_SYS(getcwd), SOURCES},
	{SCMP_SYS(memfd_create), SOURCES},
	{SCMP_SYS(ftruncate), SOURCES},
	{SCMP_SYS(openat2), SOURCES},
	{SCMP_SYS(fchdir), SOURCES},
	{SCMP_SYS(chdir), SOURCES},
	{SCMP_SYS(chroot), SOURCES},
#ifdef __SANITIZE_ADDRESS__
	/* LeakSanitizer stops the process with ptrace from a clone; reports read files for symbols */
	{SCMP_SYS(open), ANY},
	{SCMP_SYS(openat), ANY},
	{SCMP_SYS(readlink), ANY},
	{SCMP_SYS(clone), ANY},
	{SCMP_SYS(wait4), ANY},
	{SCMP_SYS(ptrace), ANY},
	{SCMP_SYS(prctl), ANY},
	{SCMP_SYS(sigaltstack), ANY},
	{SCMP_SYS(getdents64), ANY},
	{SCMP_SYS(prlimit64), ANY},
	{SCMP_SYS(mprotect), ANY},
	{SCMP_SYS(getppid), ANY},
#endif
};

#define ARG_IS(n, value) SCMP_CMP(n, SCMP_CMP_MASKED_EQ, UINT64_MAX, value)
#define ARG_IS_INT(n, value) SCMP_CMP(n, SCMP_CMP_MASKED_EQ, UINT32_MAX, (uint32_t)(value))
#define ARG_LACKS(n, bits) SCMP_CMP(n, SCMP_CMP_MASKED_EQ, bits, 0)

#define NAMESPACES                                                                                 \
	(CLONE_NEWNS | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | \
	 CLONE_NEWCGROUP)

/* With this argument only. */
static const struct {
	int nr;
	unsigned uses;
	struct scmp_arg_cmp arg;
} allowed_with[] = {
	/* no executable memory */
	{SCMP_SYS(mmap), ANY, ARG_LACKS(2, PROT_EXEC)},
	{SCMP_SYS(mprotect), ANY, ARG_LACKS(2, PROT_EXEC)},
	{SCMP_SYS(prlimit64), ANY, ARG_IS(2, 0)}, /* only reads limits */
	{SCMP_SYS(getrlimit), ANY, ARG_LACKS(0, 0)},
	{SCMP_SYS(utimensat), SOURCES, ARG_IS(1, 0)},  /* of a descriptor, not of a path */
	{SCMP_SYS(ioctl), ANY, ARG_IS_INT(1, TCGETS)}, /* stdio: isatty() */
	{SCMP_SYS(ioctl), TARGETS, ARG_IS_INT(1, PERF_EVENT_IOC_DISABLE)},
	{SCMP_SYS(ioctl), TARGETS, ARG_IS_INT(1, PERF_EVENT_IOC_PERIOD)},
	/* access to existing maps; no program or map is loaded */
	{SCMP_SYS(bpf), TARGETS, ARG_IS_INT(0, BPF_MAP_LOOKUP_ELEM)},
	{SCMP_SYS(bpf), TARGETS, ARG_IS_INT(0, BPF_MAP_UPDATE_ELEM)},
	{SCMP_SYS(bpf), TARGETS, ARG_IS_INT(0, BPF_MAP_DELETE_ELEM)},
	{SCMP_SYS(bpf), TARGETS, ARG_IS_INT(0, BPF_MAP_GET_NEXT_KEY)},
	{SCMP_SYS(bpf), TARGETS, ARG_IS_INT(0, BPF_MAP_LOOKUP_AND_DELETE_ELEM)},
	{SCMP_SYS(bpf), TARGETS, ARG_IS_INT(0, BPF_MAP_LOOKUP_BATCH)},
	{SCMP_SYS(bpf), TARGETS, ARG_IS_INT(0, BPF_MAP_DELETE_BATCH)},
	{SCMP_SYS(bpf), TARGETS, ARG_IS_INT(0, BPF_OBJ_GET_INFO_BY_FD)},
	/* libbpf loads a program, and asks what the kernel can do */
	{SCMP_SYS(bpf), USE_PROGRAMS, ARG_IS_INT(0, BPF_PROG_LOAD)},
	{SCMP_SYS(bpf), USE_PROGRAMS, ARG_IS_INT(0, BPF_PROG_BIND_MAP)},
	{SCMP_SYS(bpf), USE_PROGRAMS, ARG_IS_INT(0, BPF_BTF_LOAD)},
	{SCMP_SYS(bpf), USE_PROGRAMS, ARG_IS_INT(0, BPF_MAP_CREATE)},
	{SCMP_SYS(bpf), USE_PROGRAMS, ARG_IS_INT(0, BPF_MAP_UPDATE_ELEM)},
	{SCMP_SYS(bpf), USE_PROGRAMS, ARG_IS_INT(0, BPF_MAP_FREEZE)},
	{SCMP_SYS(bpf), USE_PROGRAMS, ARG_IS_INT(0, BPF_OBJ_GET_INFO_BY_FD)},
	/* fork() */
	{SCMP_SYS(clone), TARGETS | SOURCES, ARG_LACKS(0, NAMESPACES)},
	{SCMP_SYS(prctl), TARGETS, ARG_IS_INT(0, PR_SET_PDEATHSIG)},
	{SCMP_SYS(prctl), TARGETS, ARG_IS_INT(0, PR_SET_NAME)},
};

/* These return an error; the caller has a fallback. */
static const struct {
	int nr, error;
} refused[] = {
	{SCMP_SYS(clone3), ENOSYS}, /* its flags are in memory; glibc then uses clone */
	{SCMP_SYS(fsopen), EPERM},  /* pager.c then assumes that FUSE is in use */
};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* All calls here are safe in a signal handler. */
static void on_refused(int signal, siginfo_t *info, void *context)
{
	char text[] = "luabpf: system call ____ is not in the seccomp filter: exiting\n"
		      "  this is a bug in luabpf: please report it\n";
	char *digit = strchr(text, '_') + 3;
	ssize_t ignored;

	(void)signal;
	(void)context;
	for (int nr = info->si_syscall, n = 0; n < 4; n++, nr /= 10)
		*digit-- = nr || !n ? (char)('0' + nr % 10) : ' ';
	ignored = write(STDERR_FILENO, text, sizeof(text) - 1);
	(void)ignored;
	_exit(1);
}

static int add_rules(scmp_filter_ctx filter, unsigned uses)
{
	int r = 0;

	for (size_t i = 0; i < LENGTH(allowed) && !r; i++)
		if (allowed[i].uses & uses)
			r = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, allowed[i].nr, 0, NULL);
	for (size_t i = 0; i < LENGTH(allowed_with) && !r; i++)
		if (allowed_with[i].uses & uses)
			r = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, allowed_with[i].nr, 1,
						   &allowed_with[i].arg);
	for (size_t i = 0; i < LENGTH(refused) && !r; i++)
		r = seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(refused[i].error), refused[i].nr,
					   0, NULL);
	return r;
}

static void filter_free(scmp_filter_ctx *filter)
{
	if (*filter)
		seccomp_release(*filter);
}

/* SSB: leaves the speculative store bypass mitigation unchanged. OPTIMIZE 2: a binary tree. */
static int load_filter(unsigned uses)
{
	scmp_filter_ctx filter __cleanup(filter_free) = seccomp_init(SCMP_ACT_TRAP);
	struct sigaction action = {.sa_sigaction = on_refused, .sa_flags = SA_SIGINFO};
	int r;

	if (!filter)
		return -ENOMEM;
	r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (!r)
		r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
	if (!r)
		r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (!r)
		r = add_rules(filter, uses);
	if (!r && sigaction(SIGSYS, &action, NULL))
		r = -errno;
	return r ? r : seccomp_load(filter);
}

bool confine_has_filters(void)
{
	return prctl(PR_GET_SECCOMP) >= 0;
}

/* Other databases load modules, which may connect to servers. */
static void use_user_files(void)
{
	__nss_configure_lookup("passwd", "files");
	__nss_configure_lookup("group", "files");
	__nss_configure_lookup("initgroups", "files");
}

int confine(unsigned uses, struct error *err)
{
	int r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;

	if (r)
		return error_set(err, r, "no_new_privs: %s", strerror(-r));
	r = caps_keep(uses, err);
	if (r)
		return r;
	use_user_files();
	r = confine_has_filters() ? load_filter(uses | ANY) : 0;
	return r ? error_set(err, r, "seccomp: the filter of system calls was refused: %s",
			     strerror(-r))
		 : 0;
}
