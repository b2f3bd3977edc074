// SPDX-License-Identifier: BSD-2-Clause
/*
 * A forked child becomes the target as far as files go - chroot, current directory, groups, user,
 * capabilities - and copies the file into a memfd. All of it is foreign: the path, the file and the
 * file system, which may be a FUSE mount that never answers; the parent therefore waits with a
 * limit and never reads the file itself.
 *
 * Of a saved profile there is no target: the child opens the file as each of some users of this
 * machine, from its own root and current directory, and what it finds must be one file. Or, where
 * it is not known who they are, as root, and only what the file's own mode lets all read.
 *
 * The child calls nothing but the kernel, as the parent may have threads. It uses raw system calls
 * for credentials: those of libc would try to change all threads.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <poll.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "source.h"

#define MAX_SOURCE (16L << 20)
#define TIMEOUT_MS 2000
#define MAX_GROUPS 65536 /* NGROUPS_MAX of the kernel */
#define FEW_GROUPS 64
#define NO_ID ((uint32_t)-1) /* means "as it is" to the kernel */
#define NOGROUP 65534

struct creds {
	uid_t uid;
	gid_t gid;
	gid_t *groups;
	size_t ngroups;
	uint64_t caps; /* effective, 0 when they are those of another user namespace */
};

struct target_source {
	int proc; /* /proc/PID: names this process only, even when its number is used again */
	int root, cwd;
	struct creds creds;

	enum { OF_TARGET, OF_USERS, OF_CALLER, OF_ALL } whose;
	struct creds user[SOURCE_USERS]; /* OF_USERS */
	size_t nusers;
};

/* ---- credentials of the target --------------------------------------------------------------- */

static bool field(const char *line, const char *name, const char **value)
{
	size_t len = strlen(name);

	if (strncmp(line, name, len))
		return false;
	*value = line + len;
	return true;
}

/* The fourth number of "Uid:" and "Gid:" is the one that file access goes by. */
static int fs_id(const char *value, uint32_t *id)
{
	return sscanf(value, "%*u %*u %*u %u", id) == 1 ? 0 : -EPROTO;
}

static int parse_groups(const char *value, struct creds *creds)
{
	__free gid_t *groups = calloc(strlen(value) / 2 + 1, sizeof(*groups));
	size_t n = 0;
	char *end;

	if (!groups)
		return -ENOMEM;
	for (;;) {
		unsigned long gid = strtoul(value, &end, 10);

		if (end == value)
			break;
		groups[n++] = gid;
		value = end;
	}
	if (n > MAX_GROUPS)
		return -EPROTO;
	free(creds->groups);
	creds->groups = TAKE_PTR(groups);
	creds->ngroups = n;
	return 0;
}

static int parse_status(FILE *status, struct creds *creds)
{
	__free char *line = NULL;
	size_t cap = 0;
	int seen = 0, err = 0;

	while (!err && getline(&line, &cap, status) >= 0) {
		const char *value;

		if (field(line, "Uid:", &value)) {
			err = fs_id(value, &creds->uid);
			seen++;
		} else if (field(line, "Gid:", &value)) {
			err = fs_id(value, &creds->gid);
			seen++;
		} else if (field(line, "Groups:", &value)) {
			err = parse_groups(value, creds);
			seen++;
		} else if (field(line, "CapEff:", &value)) {
			creds->caps = strtoull(value, NULL, 16);
		}
	}
	if (err)
		return err;
	return seen == 3 ? 0 : -ESRCH;
}

static bool same_user_namespace(int proc)
{
	struct stat theirs, ours;

	return !fstatat(proc, "ns/user", &theirs, 0) && !stat("/proc/self/ns/user", &ours) &&
	       theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

/* Fails when the process is gone. */
static int read_creds(int proc, struct creds *out)
{
	__fclose FILE *status = NULL;
	struct creds creds = {0};
	int err, fd = openat(proc, "status", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	status = fdopen(fd, "r");
	if (!status) {
		close(fd);
		return -ENOMEM;
	}
	err = parse_status(status, &creds);
	if (err) {
		free(creds.groups);
		return err;
	}
	if (!same_user_namespace(proc))
		creds.caps = 0;
	free(out->groups);
	*out = creds;
	return 0;
}

int target_source_new(pid_t pid, struct target_source **out)
{
	__cleanup(target_source_free) struct target_source *s = calloc(1, sizeof(*s));
	char path[32];
	int err;

	if (!s)
		return -ENOMEM;
	s->proc = s->root = s->cwd = -1;
	snprintf(path, sizeof(path), "/proc/%d", pid);
	s->proc = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->proc < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	s->root = openat(s->proc, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (s->root < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	s->cwd = openat(s->proc, "cwd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (s->cwd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	err = read_creds(s->proc, &s->creds);
	if (err)
		return err;
	*out = TAKE_PTR(s);
	return 0;
}

void target_source_free(struct target_source **source)
{
	struct target_source *s = *source;

	if (!s)
		return;
	cleanup_fd(&s->proc);
	cleanup_fd(&s->root);
	cleanup_fd(&s->cwd);
	free(s->creds.groups);
	for (size_t i = 0; i < s->nusers; i++)
		free(s->user[i].groups);
	free(s);
	*source = NULL;
}

/* ---- users of this machine ------------------------------------------------------------------- */

/* Groups are those that this machine gives the user: nobody else's word counts. */
static int user_creds(uid_t uid, struct creds *creds)
{
	const struct passwd *pw = getpwuid(uid);
	int n = FEW_GROUPS;

	creds->uid = uid;
	creds->gid = pw ? pw->pw_gid : NOGROUP;
	creds->groups = calloc(FEW_GROUPS, sizeof(*creds->groups));
	if (!creds->groups)
		return -ENOMEM;
	if (pw && getgrouplist(pw->pw_name, pw->pw_gid, creds->groups, &n) >= 0)
		creds->ngroups = (size_t)n;
	return 0;
}

static int new_without_target(struct target_source **out)
{
	struct target_source *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->proc = s->root = s->cwd = -1;
	*out = s;
	return 0;
}

int target_source_of_users(const uid_t *uids, size_t n, struct target_source **out)
{
	__cleanup(target_source_free) struct target_source *s = NULL;
	int err = new_without_target(&s);

	if (err)
		return err;
	s->whose = n ? OF_USERS : OF_CALLER;
	if (n > SOURCE_USERS)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (!uids[i] || uids[i] == NO_ID)
			return -EINVAL;
		s->nusers++;
		err = user_creds(uids[i], &s->user[i]);
		if (err)
			return err;
	}
	*out = TAKE_PTR(s);
	return 0;
}

int target_source_of_all(struct target_source **out)
{
	int err = new_without_target(out);

	if (!err)
		(*out)->whose = OF_ALL;
	return err;
}

/* ---- the child: only system calls, and errors as exit codes ---------------------------------- */

/* Without CAP_SETGID groups cannot be set, but they may be the right ones. */
static int take_groups(const struct creds *creds)
{
	gid_t ours[FEW_GROUPS];
	long n;

	if (!syscall(SYS_setgroups, creds->ngroups, creds->groups))
		return 0;
	n = syscall(SYS_getgroups, FEW_GROUPS, ours);
	if (n < 0 || (size_t)n != creds->ngroups)
		return -EPERM;
	for (long i = 0; i < n; i++) {
		bool there = false;

		for (long k = 0; k < n; k++)
			there = there || creds->groups[k] == ours[i];
		if (!there)
			return -EPERM;
	}
	return 0;
}

/* What is left are the capabilities that both the target and we have. */
static int limit_capabilities(uint64_t allowed)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2];

	if (syscall(SYS_capget, &head, caps))
		return -errno;
	for (int i = 0; i < 2; i++) {
		caps[i].effective = caps[i].permitted & (uint32_t)(allowed >> (32 * i));
		caps[i].permitted = caps[i].effective;
		caps[i].inheritable = 0;
	}
	head.pid = 0;
	return syscall(SYS_capset, &head, caps) ? -errno : 0;
}

/* For now only: they come back with root. */
static int drop_capabilities(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2];

	if (syscall(SYS_capget, &head, caps))
		return -errno;
	caps[0].effective = caps[1].effective = 0;
	head.pid = 0;
	return syscall(SYS_capset, &head, caps) ? -errno : 0;
}

static int take_creds(const struct creds *creds)
{
	int err = take_groups(creds);

	if (err)
		return err;
	if (syscall(SYS_setresgid, creds->gid, creds->gid, creds->gid) ||
	    syscall(SYS_setresuid, creds->uid, creds->uid, creds->uid))
		return -EPERM;
	return limit_capabilities(creds->caps);
}

/*
 * Without CAP_SYS_CHROOT the kernel keeps the path below the target's root or current directory
 * instead; then a relative path that leaves the directory cannot be opened.
 */
static int open_beside(int root, int cwd, bool rooted, const char *path)
{
	struct open_how how = {.flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
			       .resolve = RESOLVE_NO_MAGICLINKS};
	int dir = AT_FDCWD;
	long fd;

	if (!rooted) {
		dir = *path == '/' ? root : cwd;
		how.resolve |= *path == '/' ? RESOLVE_IN_ROOT : RESOLVE_BENEATH;
	}
	fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
	return fd < 0 ? -errno : (int)fd;
}

static const uint32_t no_disks[] = {
	PROC_SUPER_MAGIC, SYSFS_MAGIC,	      DEBUGFS_MAGIC,	   TRACEFS_MAGIC,
	SECURITYFS_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, BPF_FS_MAGIC,
	EFIVARFS_MAGIC,	  PSTOREFS_MAGIC,     SELINUX_MAGIC,	   SMACK_MAGIC,
};

/* A source file is a file on a disk; what /proc shows as one may block or change the system. */
static int check_file(int fd)
{
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) || fstatfs(fd, &fs))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	for (size_t i = 0; i < sizeof(no_disks) / sizeof(no_disks[0]); i++)
		if ((uint32_t)fs.f_type == no_disks[i])
			return -EINVAL;
	return st.st_size > MAX_SOURCE ? -EFBIG : 0;
}

static int copy_file(int from, int to)
{
	char buf[16384];
	long total = 0;

	for (;;) {
		ssize_t n = read(from, buf, sizeof(buf));

		if (n <= 0)
			return n ? -errno : 0;
		total += n;
		if (total > MAX_SOURCE)
			return -EFBIG;
		if (write(to, buf, n) != n)
			return -EIO;
	}
}

static int copy_checked(int fd, int to)
{
	int err = fd < 0 ? fd : check_file(fd);

	return err ? err : copy_file(fd, to);
}

static int copy_as_target(const struct target_source *s, const char *path, int to)
{
	bool rooted = !fchdir(s->root) && !chroot(".") && !fchdir(s->cwd);
	int err = take_creds(&s->creds);

	return err ? err : copy_checked(open_beside(s->root, s->cwd, rooted, path), to);
}

static int open_here(const char *path)
{
	return open_beside(AT_FDCWD, AT_FDCWD, true, path);
}

static int copy_as_anyone(const char *path, int to)
{
	int fd = open_here(path);
	struct stat st;

	if (fd >= 0 && (fstat(fd, &st) || !(st.st_mode & S_IROTH)))
		return -EACCES;
	return copy_checked(fd, to);
}

static int copy_as_caller(const char *path, int to)
{
	int err = limit_capabilities(0);

	return err ? err : copy_checked(open_here(path), to);
}

/* Root's user and group are kept as the saved ones, to come back to. */
static int become(const struct creds *user)
{
	if (syscall(SYS_setresgid, NO_ID, user->gid, NO_ID) ||
	    syscall(SYS_setgroups, user->ngroups, user->groups) ||
	    syscall(SYS_setresuid, NO_ID, user->uid, NO_ID) || drop_capabilities())
		return -EPERM;
	return syscall(SYS_geteuid) == (long)user->uid ? 0 : -EPERM;
}

static int come_back(void)
{
	return syscall(SYS_setresuid, NO_ID, 0, NO_ID) || syscall(SYS_setresgid, NO_ID, 0, NO_ID)
		       ? -EPERM
		       : 0;
}

static int open_as_user(const struct creds *user, const char *path)
{
	int fd, err = become(user);

	if (err)
		return err;
	fd = open_here(path);
	err = fd < 0 ? fd : check_file(fd);
	if (!err)
		err = come_back();
	return err ? err : fd;
}

static bool same_file(int a, int b)
{
	struct stat first, second;

	return !fstat(a, &first) && !fstat(b, &second) && first.st_dev == second.st_dev &&
	       first.st_ino == second.st_ino;
}

static int copy_as_users(const struct target_source *s, const char *path, int to)
{
	int fd = open_as_user(&s->user[0], path), next;

	for (size_t i = 1; fd >= 0 && i < s->nusers; i++) {
		next = open_as_user(&s->user[i], path);
		if (next < 0)
			return next;
		if (!same_file(fd, next)) /* a link that was changed meanwhile */
			return -EACCES;
	}
	return fd < 0 ? fd : copy_file(fd, to);
}

static int copy(const struct target_source *s, const char *path, int to)
{
	switch (s->whose) {
	case OF_TARGET:
		return copy_as_target(s, path, to);
	case OF_USERS:
		return copy_as_users(s, path, to);
	case OF_CALLER:
		return copy_as_caller(path, to);
	default:
		return copy_as_anyone(path, to);
	}
}

/* ---- the parent ------------------------------------------------------------------------------ */

/* Ends the child when it takes too long. Its exit code is an errno. */
static int wait_for(pid_t child)
{
	__close int fd = syscall(SYS_pidfd_open, child, 0);
	struct pollfd poll_child = {.fd = fd, .events = POLLIN};
	bool late = fd < 0;
	int status, rc;

	if (!late) {
		do {
			rc = poll(&poll_child, 1, TIMEOUT_MS);
		} while (rc < 0 && errno == EINTR);
		late = rc <= 0;
	}
	if (late)
		kill(child, SIGKILL);
	while (waitpid(child, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	if (late)
		return -ETIMEDOUT;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

int target_source_open(void *ctx, const char *path, FILE **out)
{
	struct target_source *s = ctx;
	__close int fd = memfd_create("luabpf-source", MFD_CLOEXEC);
	FILE *file;
	pid_t child;
	int err;

	if (fd < 0)
		return -errno;
	if (s->whose == OF_TARGET) /* they may have changed; keeps the old ones of a dead process */
		read_creds(s->proc, &s->creds);
	child = fork();
	if (child < 0)
		return -errno;
	if (!child)
		_exit(-copy(s, path, fd));
	err = wait_for(child);
	if (err)
		return err;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	file = fdopen(fd, "r");
	if (!file)
		return -errno;
	fd = -1;
	*out = file;
	return 0;
}
