// SPDX-License-Identifier: BSD-2-Clause
/*
 * fusectl has a directory for each FUSE file system, in whatever mount namespace it is, and also
 * when it was unmounted while files of it are still mapped.
 */
#include "base/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"

#define FUSECTL_MAGIC 0x65735543 /* linux/fs/fuse/control.c, an ABI */
#define ITSELF 2		 /* links of a directory without others in it */

/* It is mounted at its usual place, or for us alone: that takes CAP_SYS_ADMIN. */
static int open_fusectl(void)
{
	int fd __close = open("/sys/fs/fuse/connections", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fs __close = -1;
	struct statfs st;

	if (fd >= 0 && !fstatfs(fd, &st) && st.f_type == FUSECTL_MAGIC)
		return TAKE_FD(fd);
	fs = (int)syscall(SYS_fsopen, "fusectl", FSOPEN_CLOEXEC);
	if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		return -1;
	return (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
}

static int fusectl_fd = -1;

/* Returns -1 if it cannot be read; *none: the kernel has no FUSE, or not yet. */
static int fusectl(bool *none)
{
	*none = fusectl_fd < 0 && !access("/sys/fs", F_OK) && access("/sys/fs/fuse", F_OK) &&
		errno == ENOENT;
	if (fusectl_fd < 0 && !*none)
		fusectl_fd = open_fusectl();
	return fusectl_fd;
}

void pager_close(void)
{
	cleanup_fd(&fusectl_fd);
}

/* True for a user who may handle the kernel's faults, such as those of process_vm_readv(). */
static bool others_have_userfaultfd(void)
{
	FILE *f __fclose = fopen("/proc/sys/vm/unprivileged_userfaultfd", "re");
	struct stat st;

	return (f && getc(f) == '1') ||
	       (!stat("/dev/userfaultfd", &st) && (st.st_uid || st.st_mode & 077));
}

bool pager_in_use(void)
{
	static enum { UNKNOWN, NO, YES } userfaultfd;
	struct stat st;
	bool none;
	int fd;

	if (!userfaultfd)
		userfaultfd = others_have_userfaultfd() ? YES : NO;
	if (userfaultfd == YES)
		return true;
	fd = fusectl(&none);
	return !none && (fd < 0 || fstat(fd, &st) || st.st_nlink > ITSELF);
}

#define MAX_SILENT 64

static uint64_t silent[MAX_SILENT];
static size_t nsilent;

void pager_no_answer(uint64_t dev)
{
	if (nsilent < MAX_SILENT)
		silent[nsilent++] = dev;
}

bool pager_is_file_system(uint64_t dev)
{
	struct stat st;
	char name[16];
	bool none;
	int fd = fusectl(&none);

	if (!nsilent && fd >= 0 && !fstat(fd, &st) && st.st_nlink <= ITSELF)
		return false; /* there is none */
	for (size_t i = 0; i < nsilent; i++)
		if (silent[i] == dev)
			return true;
	snprintf(name, sizeof(name), "%u", major(dev) << 20 | minor(dev));
	return fd >= 0 && !fstatat(fd, name, &st, 0) && st.st_uid;
}
