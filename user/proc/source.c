// SPDX-License-Identifier: BSD-2-Clause
/*
 * A forked child enters the root and the current directory of the target, assumes the target's
 * credentials, and copies the file into a memfd. The path, the file and the file system are
 * foreign, and a network file system may never answer. So the parent waits with a limit and never
 * reads the file itself.
 *
 * Credentials are a list, and a file must be the same one for each of them. The target's are
 * added when it is taken hold of, whenever it is looked at and before each file, so rights only
 * shrink: a setuid program that it becomes adds a user and takes none away.
 *
 * The path is opened with O_PATH, which asks neither a driver nor a FIFO's writer. Only what is
 * then seen to be a regular file is opened to read, through /proc/self/fd: the path is walked once.
 *
 * The child calls nothing but the kernel, as the parent may have threads.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "creds.h"
#include "process.h"
#include "source.h"

#define MAX_SOURCE (16L << 20)
#define TIMEOUT_MS 2000
#define KILL_MS 100
#define MAX_CREDS 4

struct target_source {
	/* of a target; -1 for a saved profile: as it is here, where `here` names the directory */
	int proc; /* /proc/PID: names this process only, even when its number is used again */
	int root, cwd;
	char *here;

	struct creds who[MAX_CREDS]; /* each of them must be able to open it */
	size_t n;
	bool all; /* and its own mode lets all read */
};

/* ---- whose rights ---------------------------------------------------------------------------- */

static void forget_creds(struct target_source *s)
{
	for (size_t i = 0; i < s->n; i++)
		creds_free(&s->who[i]);
	s->n = 0;
}

static void only_for_all(struct target_source *s)
{
	forget_creds(s);
	s->who[s->n++] = creds_of_nobody();
	s->all = true;
}

/* Takes what `creds` owns. A process that has been too many users has no rights left. */
static void add_creds(struct target_source *s, struct creds *creds)
{
	bool known = s->all;

	for (size_t i = 0; i < s->n; i++)
		known = known || creds_same(&s->who[i], creds);
	if (!known && s->n < MAX_CREDS) {
		s->who[s->n++] = *creds;
		return;
	}
	if (!known)
		only_for_all(s);
	creds_free(creds);
}

static int new_source(struct target_source **out)
{
	struct target_source *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->proc = s->root = s->cwd = -1;
	*out = s;
	return 0;
}

static int open_dir(int dir, const char *name, int flags, int *out)
{
	int fd = openat(dir, name, flags | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	*out = fd;
	return 0;
}

int target_source_new(pid_t pid, uint64_t image, struct target_source **out)
{
	__cleanup(target_source_free) struct target_source *s = NULL;
	struct creds creds;
	char path[32];
	int err = new_source(&s);

	if (err)
		return err;
	snprintf(path, sizeof(path), "/proc/%d", pid);
	err = open_dir(AT_FDCWD, path, O_RDONLY, &s->proc);
	if (!err)
		err = open_dir(s->proc, "root", O_PATH, &s->root);
	if (!err)
		err = open_dir(s->proc, "cwd", O_PATH, &s->cwd);
	if (!err)
		err = creds_read(s->proc, &creds);
	if (err)
		return err;
	add_creds(s, &creds);
	if (!image || process_image(pid) != image)
		return -ESTALE;
	*out = TAKE_PTR(s);
	return 0;
}

void target_source_look(struct target_source *s)
{
	struct creds creds;

	if (s->proc >= 0 && !creds_read(s->proc, &creds))
		add_creds(s, &creds);
}

void target_source_ended(struct target_source *s)
{
	target_source_look(s);
	cleanup_fd(&s->proc);
}

void target_source_join(struct target_source *s, struct target_source *earlier)
{
	for (size_t i = 0; i < earlier->n; i++)
		add_creds(s, &earlier->who[i]);
	earlier->n = 0;
	if (earlier->all)
		only_for_all(s);
}

bool target_source_is_roots(const struct target_source *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->who[i].uid)
			return false;
	return true;
}

bool target_source_same(const struct target_source *a, const struct target_source *b)
{
	if (a->all != b->all || a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (!creds_same(&a->who[i], &b->who[i]))
			return false;
	return true;
}

/* The same directory, seen through the same mount. */
static bool same_dir(int a, int b)
{
	struct statx first, second;

	return !statx(a, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &first) &&
	       !statx(b, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &second) &&
	       first.stx_mask & second.stx_mask & STATX_MNT_ID &&
	       first.stx_mnt_id == second.stx_mnt_id && first.stx_ino == second.stx_ino;
}

bool target_source_same_names(const struct target_source *a, const struct target_source *b)
{
	return !a->here && !b->here && same_dir(a->root, b->root) && same_dir(a->cwd, b->cwd);
}

void target_source_free(struct target_source **source)
{
	struct target_source *s = *source;

	if (!s)
		return;
	cleanup_fd(&s->proc);
	cleanup_fd(&s->root);
	cleanup_fd(&s->cwd);
	forget_creds(s);
	free(s->here);
	free(s);
	*source = NULL;
}

static int new_here(struct target_source **out)
{
	int err = new_source(out);

	if (err)
		return err;
	(*out)->here = getcwd(NULL, 0);
	if (!(*out)->here) {
		err = -errno;
		target_source_free(out);
	}
	return err;
}

int target_source_of_users(const uid_t *uids, size_t n, struct target_source **out)
{
	__cleanup(target_source_free) struct target_source *s = NULL;
	int err = new_here(&s);

	if (!err && (!n || n > SOURCE_USERS))
		err = -EINVAL;
	for (size_t i = 0; i < n && !err; i++) {
		struct creds creds;

		err = creds_of_user(uids[i], &creds);
		if (!err)
			add_creds(s, &creds);
	}
	if (!err)
		*out = TAKE_PTR(s);
	return err;
}

int target_source_of_caller(struct target_source **out)
{
	__cleanup(target_source_free) struct target_source *s = NULL;
	__close int self = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct creds creds;
	int err = self < 0 ? -errno : new_here(&s);

	if (!err)
		err = creds_read(self, &creds);
	if (err)
		return err;
	creds.caps = 0;
	add_creds(s, &creds);
	*out = TAKE_PTR(s);
	return 0;
}

int target_source_of_all(struct target_source **out)
{
	struct target_source *s;
	int err = new_here(&s);

	if (err)
		return err;
	only_for_all(s);
	*out = s;
	return 0;
}

/* ---- the child: only system calls, and errors as exit codes ---------------------------------- */

/*
 * Without CAP_SYS_CHROOT the kernel keeps the path below the target's root or current directory
 * instead; then a relative path that leaves the directory cannot be opened.
 */
static int open_path(const struct target_source *s, bool rooted, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS};
	int dir = AT_FDCWD;
	long fd;

	if (!rooted) {
		dir = *path == '/' ? s->root : s->cwd;
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

/* Accepts regular files on disks: reading one of /proc may block or change the system. */
static int check_file(int fd, bool all)
{
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) || fstatfs(fd, &fs))
		return -errno;
	if (all && !(st.st_mode & S_IROTH))
		return -EACCES;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	for (size_t i = 0; i < sizeof(no_disks) / sizeof(no_disks[0]); i++)
		if ((uint32_t)fs.f_type == no_disks[i])
			return -EINVAL;
	return st.st_size > MAX_SOURCE ? -EFBIG : 0;
}

/* Copies the file, and its time of change behind it. */
static int copy_file(int from, int to)
{
	struct stat st;
	char buf[16384];
	long total = 0;

	for (;;) {
		ssize_t n = read(from, buf, sizeof(buf));

		if (n < 0)
			return -errno;
		if (!n)
			break;
		total += n;
		if (total > MAX_SOURCE)
			return -EFBIG;
		if (write(to, buf, n) != n)
			return -EIO;
	}
	if (fstat(from, &st))
		return -errno;
	return write(to, &st.st_mtim, sizeof(st.st_mtim)) == sizeof(st.st_mtim) ? 0 : -EIO;
}

static int open_as(const struct target_source *s, const struct creds *creds, bool rooted, int fds,
		   const char *path)
{
	int fd, found, err = creds_become(creds);
	char name[16];

	/* this user may not reach luabpf's current directory */
	if (!err && s->here && chdir(s->here))
		err = -errno;
	if (err)
		return err;
	found = open_path(s, rooted, path);
	err = found < 0 ? found : check_file(found, s->all);
	if (err)
		return err;
	snprintf(name, sizeof(name), "%d", found);
	fd = openat(fds, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static bool same_file(int a, int b)
{
	struct stat first, second;

	return !fstat(a, &first) && !fstat(b, &second) && first.st_dev == second.st_dev &&
	       first.st_ino == second.st_ino;
}

/*
 * All descriptors but these: of a child that cannot be ended the events would go on to sample, and
 * a reader of the output would wait for its end.
 */
static void close_others(int a, int b, int c)
{
	int low = a < b ? a : b, high = a < b ? b : a;
	int keep[] = {c < low ? c : low, c < low ? low : c < high ? c : high, c > high ? c : high};
	unsigned int from = 0;

	for (size_t i = 0; i < 3; i++) {
		if (keep[i] < 0)
			continue;
		if ((unsigned int)keep[i] > from)
			close_range(from, (unsigned int)keep[i] - 1, 0);
		from = (unsigned int)keep[i] + 1;
	}
	close_range(from, ~0U, 0);
}

static int copy(const struct target_source *s, const char *path, int to)
{
	int fds = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC); /* before the chroot */
	bool rooted = s->here || (!fchdir(s->root) && !chroot(".") && !fchdir(s->cwd));
	int first = -1;

	if (fds < 0)
		return -errno;
	for (size_t i = 0; i < s->n; i++) {
		int fd = open_as(s, &s->who[i], rooted, fds, path);

		if (fd < 0)
			return fd;
		if (first < 0)
			first = fd;
		else if (!same_file(first, fd)) /* a link that was changed meanwhile */
			return -EACCES;
	}
	return first < 0 ? -EACCES : copy_file(first, to);
}

/* ---- the parent ------------------------------------------------------------------------------ */

/* True if the process ends within so long. */
static bool ends_within(int pidfd, int ms)
{
	struct pollfd end = {.fd = pidfd, .events = POLLIN};
	int rc;

	do {
		rc = poll(&end, 1, ms);
	} while (rc < 0 && errno == EINTR);
	return rc > 0;
}

/*
 * Ends the child when it takes too long. Its exit code is an errno. A child that waits for the
 * answer of a FUSE or network file system may not be ended by any signal: it is left behind.
 */
static int wait_for(pid_t child)
{
	__close int fd = syscall(SYS_pidfd_open, child, 0);
	bool late = fd < 0 || !ends_within(fd, TIMEOUT_MS);
	int status;

	if (late)
		kill(child, SIGKILL);
	if (late && fd >= 0 && !ends_within(fd, KILL_MS))
		return -ETIMEDOUT;
	while (waitpid(child, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	if (late)
		return -ETIMEDOUT;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

/* Gives the copy the time that is behind it, as its user cannot. */
static int take_time(int fd)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}};
	off_t size = lseek(fd, 0, SEEK_END) - (off_t)sizeof(times[1]);

	if (size < 0)
		return -EIO;
	if (pread(fd, &times[1], sizeof(times[1]), size) != sizeof(times[1]))
		return -EIO;
	if (ftruncate(fd, size) || futimens(fd, times) || lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	return 0;
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
	target_source_look(s);
	child = fork();
	if (child < 0)
		return -errno;
	if (!child) {
		close_others(fd, s->root, s->cwd);
		_exit(-copy(s, path, fd));
	}
	err = wait_for(child);
	if (!err)
		err = take_time(fd);
	if (err)
		return err;
	file = fdopen(fd, "r");
	if (!file)
		return -errno;
	fd = -1;
	*out = file;
	return 0;
}
