// SPDX-License-Identifier: BSD-2-Clause
/*
 * TIOCSTI puts a character into a terminal's input, and TIOCLINUX pastes on a console; both are for
 * processes whose controlling terminal it is. A seccomp filter refuses them. A session of its own
 * would take the controlling terminal away, and Ctrl-C and job control with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "terminal.h"

/* arch/x86/entry/syscalls/syscall_32.tbl, syscall_64.tbl: ioctl */
#define IOCTL_I386 54
#define IOCTL_X32 514
#define X32_BIT 0x40000000U

/*
 * True if the controlling terminal belongs to another user. Only the device itself has the owner:
 * true, too, if no standard descriptor is open on it.
 */
static bool is_foreign(uid_t uid)
{
	int tty __close = open("/dev/tty", O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC), fd;
	struct stat st;

	if (tty < 0 && errno == ENXIO)
		return false;
	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (tcgetsid(fd) == getsid(0) && !fstat(fd, &st))
			return st.st_uid != uid;
	return true;
}

#define LOAD(field)                                                                                \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, field))
#define IF_EQUAL(k, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (k), (yes), (no))

/* The kernel takes the lower half of an ioctl's number, which is the first word of the argument. */
static const struct sock_filter filter[] = {
	LOAD(arch),
	IF_EQUAL(AUDIT_ARCH_I386, 0, 2),
	LOAD(nr),
	IF_EQUAL(IOCTL_I386, 4, 8),
	LOAD(nr),
	BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~X32_BIT),
	IF_EQUAL(SYS_ioctl, 1, 0),
	IF_EQUAL(IOCTL_X32, 0, 4),
	LOAD(args[1]),
	IF_EQUAL(TIOCSTI, 1, 0),
	IF_EQUAL(TIOCLINUX, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

int terminal_guard(uid_t uid)
{
	const struct sock_fprog program = {
		.len = sizeof(filter) / sizeof(filter[0]),
		.filter = (struct sock_filter *)filter,
	};
	/* speculation stays as it is: the filter hides nothing, and the command keeps its speed */
	const unsigned flags = SECCOMP_FILTER_FLAG_SPEC_ALLOW;

	if (!is_foreign(uid) || !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program))
		return 0;
	/* without CAP_SYS_ADMIN the kernel wants that no program gains rights */
	if (errno != EACCES || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) ? -errno : 0;
}
