// SPDX-License-Identifier: BSD-2-Clause
/*
 * Three ways to write a file:
 *   STAGED   a nameless file (O_TMPFILE) in the directory of the path, linked and renamed at the
 *            end: no temporary file remains, however the process dies. Where the file system has
 *            no O_TMPFILE, a file with a random name.
 *   INPLACE  an existing regular file that cannot be replaced by one like it: in a directory that
 *            lets us create nothing, of root's that we may write to, a mount point. Truncated by
 *            the first call of outfile_stream().
 *   STREAM   standard output, a device, a FIFO.
 * All go through one stdio stream with our own write function, as stdio alone forgets the errno of
 * a write that failed in the middle.
 *
 * Files are opened and made relative to the descriptors that outpath_walk() returned, so that
 * another user's renames have no effect. The thread has the file-system IDs of the caller of sudo,
 * so that root gives the caller no access that the caller lacks.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/fsids.h"
#include "base/outfile.h"
#include "base/outpath.h"

enum mode { STAGED, INPLACE, STREAM };

struct outfile {
	enum mode mode;
	char *path;	   /* as given */
	struct outpath at; /* STAGED: where to rename to */
	char temp[40];	   /* STAGED: name in the same directory, empty while the file has none */
	int fd;		   /* -1: closed */
	int error;	   /* first errno of a write */
	bool borrowed;	   /* standard output: stays open */
	bool touched;	   /* INPLACE: truncated */
	bool ready;	   /* outfile_open_ready() */
	struct fsids *ids; /* whose files these are; NULL: our own */
	FILE *stream;
};

static void outfile_free(struct outfile **file)
{
	struct outfile *f = *file;

	if (!f)
		return;
	if (f->stream)
		fclose(f->stream);
	if (f->fd >= 0 && !f->borrowed)
		close(f->fd);
	outpath_close(&f->at);
	free(f->path);
	free(f->ids);
	free(f);
	*file = NULL;
}

static ssize_t outfile_write(void *cookie, const char *buf, size_t size)
{
	struct outfile *f = cookie;
	size_t done = 0;

	while (done < size && !f->error) {
		ssize_t n = write(f->fd, buf + done, size - done);

		if (n > 0)
			done += n;
		else if (n < 0 && errno != EINTR)
			f->error = errno;
		else if (n == 0)
			f->error = EIO;
	}
	return done; /* less than size is an error, 0 included */
}

/* Writes the /proc path of fd: the only path by which an O_PATH descriptor can be opened. */
static void name_of_fd(int fd, char name[64])
{
	snprintf(name, 64, "/proc/self/fd/%d", fd);
}

static int open_existing(struct outfile *f, enum mode mode)
{
	char name[64];

	name_of_fd(f->at.fd, name);
	f->mode = mode;
	f->fd = open(name, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return f->fd < 0 ? -errno : 0;
}

/* Calls `make` with random names until one is not taken. */
static int with_temp_name(struct outfile *f, int (*make)(struct outfile *f, const char *name))
{
	for (int i = 0; i < 100; i++) {
		char name[sizeof(f->temp)];
		uint64_t random;
		int ret;

		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			return -EAGAIN;
		snprintf(name, sizeof(name), ".luabpf-%016" PRIx64, random);
		ret = make(f, name);
		if (ret == -EEXIST)
			continue;
		if (!ret)
			strcpy(f->temp, name);
		return ret;
	}
	return -EEXIST;
}

static int make_by_open(struct outfile *f, const char *name)
{
	f->fd = openat(f->at.dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return f->fd < 0 ? -errno : 0;
}

static int make_by_link(struct outfile *f, const char *name)
{
	char self[64];

	name_of_fd(f->fd, self);
	return linkat(AT_FDCWD, self, f->at.dir, name, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

static int open_staged(struct outfile *f)
{
	f->mode = STAGED;
	f->fd = openat(f->at.dir, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (f->fd >= 0)
		return 0;
	if (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)
		return with_temp_name(f, make_by_open);
	return -errno;
}

/*
 * Gives the new file the group and the mode of the old one, unless another user may have put the
 * old one here, by a hard link or a rename. The group's mode bits are dropped with the group.
 */
static void adopt(const struct outfile *f)
{
	const struct stat *old = &f->at.st;
	mode_t mode = old->st_mode & 0777;

	if (f->at.kind != OUTPATH_OWN || old->st_nlink > 1)
		return;
	if (fchown(f->fd, -1, old->st_gid))
		mode &= ~S_IRWXG;
	if (fchmod(f->fd, mode))
		return; /* it stays 0600 */
}

/* True if a rename keeps the owner and can succeed: no file of another user, no mount point. */
static bool replaceable(const struct outpath *at, uid_t uid)
{
	struct statx stx;

	return at->st.st_uid == uid && !statx(at->fd, "", AT_EMPTY_PATH, STATX_TYPE, &stx) &&
	       !(stx.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

/* Opens the old file in both cases: a rename does not check that the file is writable. */
static int open_regular(struct outfile *f, uid_t uid, struct error *err)
{
	__close int old = -1;
	int ret = open_existing(f, INPLACE);

	if (ret)
		return ret;
	old = TAKE_FD(f->fd);
	if (replaceable(&f->at, uid)) {
		ret = open_staged(f);
		if (!ret)
			adopt(f);
		if (ret != -EACCES && ret != -EPERM)
			return ret;
	}
	ret = outpath_writable(&f->at, f->path, err);
	if (ret)
		return ret;
	f->mode = INPLACE;
	f->fd = TAKE_FD(old);
	return 0;
}

static int open_descriptor(struct outfile *f, int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
		return flags < 0 ? -errno : -EBADF;
	f->mode = STREAM;
	f->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return f->fd < 0 ? -errno : 0;
}

/* Returns 0 or -errno; `err` may still be empty then. */
static int open_path(struct outfile *f, struct error *err)
{
	uid_t uid = f->ids ? f->ids->uid : geteuid();
	int ret = outpath_walk(f->path, uid, &f->at, err);

	if (ret)
		return ret;
	if (f->at.own_fd >= 0)
		return open_descriptor(f, f->at.own_fd);
	if (f->at.fd < 0)
		return open_staged(f);
	if (S_ISREG(f->at.st.st_mode))
		return open_regular(f, uid, err);
	if (S_ISBLK(f->at.st.st_mode))
		return error_set(err, -EINVAL, "%s: is a block device", f->path);
	if (S_ISFIFO(f->at.st.st_mode) && f->ready)
		return error_set(err, -EINVAL,
				 "%s: is a FIFO, whose reader could hold up the recording",
				 f->path);
	ret = outpath_writable(&f->at, f->path, err);
	return ret ? ret : open_existing(f, STREAM);
}

static int open_stdout(struct outfile *f)
{
	f->mode = STREAM;
	f->fd = STDOUT_FILENO;
	f->borrowed = true;
	return fcntl(f->fd, F_GETFL) < 0 ? -errno : 0;
}

static void add_remedy(const struct outfile *f, int ret, struct error *err)
{
	if (ret == -ENOENT && f->at.dir < 0)
		error_remedy(err, ret, "its directory does not exist: make it first");
	else if (f->ids && f->ids->uid && (ret == -EACCES || ret == -EROFS))
		error_remedy(err, ret,
			     "under sudo, files are written with the rights of user %u: name one "
			     "that this user may write, or unset SUDO_UID and SUDO_GID",
			     f->ids->uid);
}

/* open_path() with the file-system IDs of the caller of sudo, if there is one. */
static int open_file(struct outfile *f, struct error *err)
{
	__fsids struct fsids *own = NULL;
	struct error why = {};
	int ret = fsids_of_caller(&f->ids, err);

	if (ret)
		return ret;
	ret = fsids_enter(f->ids, &own);
	if (ret)
		return error_set(err, ret, "%s: as user %u: %s", f->path, f->ids->uid,
				 strerror(-ret));
	ret = open_path(f, &why);
	if (!ret)
		return 0;
	if (!*why.what)
		error_set(&why, ret, "%s: %s", f->path, strerror(-ret));
	if (!*why.remedy)
		add_remedy(f, ret, &why);
	if (err)
		*err = why;
	return ret;
}

static int open_as(const char *path, bool ready, struct outfile **out, struct error *err)
{
	static const cookie_io_functions_t io = {.write = outfile_write};
	__outfile struct outfile *f = calloc(1, sizeof(*f));
	int ret;

	if (!f)
		return error_set(err, -ENOMEM, "%s: %s", path, strerror(ENOMEM));
	f->fd = f->at.dir = f->at.fd = -1;
	f->ready = ready;
	f->path = strdup(path);
	if (!strcmp(path, "-")) {
		ret = open_stdout(f);
		if (ret)
			return error_set(err, ret, "standard output: %s", strerror(-ret));
	} else if (f->path) {
		ret = open_file(f, err);
		if (ret)
			return ret;
	}
	f->stream = fopencookie(f, "w", io);
	if (!f->path || !f->stream)
		return error_set(err, -ENOMEM, "%s: %s", path, strerror(ENOMEM));
	*out = TAKE_PTR(f);
	return 0;
}

int outfile_open(const char *path, struct outfile **out, struct error *err)
{
	return open_as(path, false, out, err);
}

int outfile_open_ready(const char *path, struct outfile **out, struct error *err)
{
	return open_as(path, true, out, err);
}

FILE *outfile_stream(struct outfile *f)
{
	if (f->mode == INPLACE && !f->touched) {
		if (ftruncate(f->fd, 0))
			f->error = errno;
		f->touched = true;
	}
	return f->stream;
}

static bool same_inode(int a, int b)
{
	struct stat st_a, st_b;

	return !fstat(a, &st_a) && !fstat(b, &st_b) && st_a.st_dev == st_b.st_dev &&
	       st_a.st_ino == st_b.st_ino;
}

bool outfile_same(const struct outfile *a, const struct outfile *b)
{
	if (a->mode == STREAM || b->mode == STREAM)
		return false;
	if (a->mode == INPLACE && b->mode == INPLACE)
		return same_inode(a->fd, b->fd);
	return same_inode(a->at.dir, b->at.dir) && !strcmp(a->at.name, b->at.name);
}

int outfile_error(const struct outfile *f)
{
	return -f->error;
}

const char *outfile_name(const struct outfile *f)
{
	return f->borrowed ? "standard output" : f->path;
}

/* Returns the error of close(2), where some file systems report a failed write. Closes a duplicate,
 * as fd is still needed. */
static int close_checked(struct outfile *f)
{
	int fd = f->borrowed ? -1 : fcntl(f->fd, F_DUPFD_CLOEXEC, 0);

	return fd >= 0 && close(fd) ? -errno : 0;
}

/* If a directory has got the name meanwhile, the rename fails and the file keeps its temporary
 * name. */
static int move_into_place(struct outfile *f, struct error *err)
{
	char temp[sizeof(f->temp)];
	int ret;

	if (!renameat(f->at.dir, f->temp, f->at.dir, f->at.name)) {
		f->temp[0] = '\0';
		return 0;
	}
	ret = -errno;
	strcpy(temp, f->temp);
	f->temp[0] = '\0';
	error_set(err, ret, "%s: %s", f->path, strerror(-ret));
	return error_remedy(err, ret, "what was written is %s in the same directory", temp);
}

static int put_in_place(struct outfile *f, struct error *err)
{
	__fsids struct fsids *own = NULL;
	int ret;

	outfile_stream(f); /* INPLACE: truncates, even if nothing was written */
	if (fflush(f->stream) && !f->error)
		f->error = errno;
	if (f->error)
		return -f->error;
	ret = fsids_enter(f->ids, &own);
	if (!ret && f->mode == STAGED && !*f->temp)
		ret = with_temp_name(f, make_by_link);
	if (!ret)
		ret = close_checked(f);
	if (!ret && f->mode == STAGED)
		ret = move_into_place(f, err);
	return ret;
}

int outfile_commit(struct outfile **file, struct error *err)
{
	struct outfile *f = *file;
	struct error why = {};
	int ret = put_in_place(f, &why);

	if (ret && !*why.what)
		error_set(&why, ret, "%s: %s", outfile_name(f), strerror(-ret));
	if (ret && err)
		*err = why;
	outfile_abort(file);
	return ret;
}

void outfile_abort(struct outfile **file)
{
	struct outfile *f = *file;
	__fsids struct fsids *own = NULL;

	if (!f)
		return;
	if (!f->error)
		f->error = ECANCELED; /* so that fclose() writes nothing more */
	if (*f->temp && !fsids_enter(f->ids, &own))
		unlinkat(f->at.dir, f->temp, 0);
	outfile_free(file);
}
