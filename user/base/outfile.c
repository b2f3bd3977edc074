// SPDX-License-Identifier: BSD-2-Clause
/*
 * Three ways to write a file:
 *   STAGED   a nameless file (O_TMPFILE) in the directory of the path, linked and renamed at the
 *            end: nothing is left behind, however the process dies. Where the file system cannot
 *            do that, a file with a name of its own.
 *   INPLACE  an existing regular file in a directory that lets us create nothing: truncated by the
 *            first call of outfile_stream().
 *   STREAM   standard output, a device, a FIFO.
 * All go through one stdio stream with our own write function, as stdio alone forgets the errno of
 * a write that failed in the middle.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "base/outfile.h"
#include "base/sudo.h"

enum mode { STAGED, INPLACE, STREAM };

struct outfile {
	enum mode mode;
	char *path;    /* as given */
	char *place;   /* STAGED: what to rename to: links resolved */
	char *temp;    /* STAGED: name beside it, NULL while the file has none */
	int fd;	       /* -1: closed */
	int error;     /* first errno of a write */
	bool borrowed; /* standard output: stays open */
	bool touched;  /* INPLACE: truncated */
	bool by_sudo;  /* a new file is the caller's */
	struct sudo_caller caller;
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
	free(f->path);
	free(f->place);
	free(f->temp);
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

/*
 * Gives the new file what the old one had, or the owner of a file that the user made without sudo.
 * A file system without owners is no reason to lose a profile: errors are ignored.
 */
static void adopt(struct outfile *f, const struct stat *old)
{
	int ignored;

	if (old) {
		ignored = fchown(f->fd, old->st_uid, old->st_gid);
		ignored = fchmod(f->fd, old->st_mode & 0777);
	} else if (f->by_sudo) {
		ignored = fchown(f->fd, f->caller.uid, f->caller.gid);
	} else {
		return;
	}
	(void)ignored;
}

/* The directory of a path, "." if it names none; with a name in it when `name` is given. */
static char *beside(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');
	int len = slash ? (int)(slash - path) + 1 : 0;
	char *out;

	if (asprintf(&out, "%.*s%s", len, path, name ? name : ".") < 0)
		return NULL;
	return out;
}

/* Calls `make` with fresh names beside the place until one is not taken. */
static int with_temp_name(struct outfile *f, int (*make)(struct outfile *f, const char *name))
{
	for (int i = 0; i < 100; i++) {
		__free char *name = NULL;
		char base[64];
		int ret;

		snprintf(base, sizeof(base), ".luabpf-%ld-%d", (long)getpid(), i);
		name = beside(f->place, base);
		if (!name)
			return -ENOMEM;
		ret = make(f, name);
		if (ret == -EEXIST)
			continue;
		if (!ret)
			f->temp = TAKE_PTR(name);
		return ret;
	}
	return -EEXIST;
}

static int make_by_open(struct outfile *f, const char *name)
{
	f->fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	return f->fd < 0 ? -errno : 0;
}

static int make_by_link(struct outfile *f, const char *name)
{
	char self[64];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", f->fd);
	return linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

#define MAX_LINKS 40 /* as the kernel follows */

/*
 * What a link that leads to no file would be the name of; other paths stay what they are. stat()
 * has found that we may follow it.
 */
static char *end_of_links(const char *path)
{
	__free char *at = strdup(path);

	for (int i = 0; at && i < MAX_LINKS; i++) {
		char to[PATH_MAX];
		ssize_t n = readlink(at, to, sizeof(to) - 1);
		char *next;

		if (n < 0) /* nothing is there, or no link */
			return TAKE_PTR(at);
		to[n] = '\0';
		next = *to == '/' ? strdup(to) : beside(at, to);
		free(at);
		at = next;
	}
	errno = at ? ELOOP : ENOMEM;
	return NULL;
}

static int open_staged(struct outfile *f, const struct stat *old)
{
	__free char *dir = NULL;
	int ret = 0;

	f->mode = STAGED;
	/* A link stays a link, whether there is a file yet or not. */
	f->place = old ? realpath(f->path, NULL) : end_of_links(f->path);
	if (!f->place)
		return -errno;
	dir = beside(f->place, NULL);
	if (!dir)
		return -ENOMEM;
	f->fd = open(dir, O_RDWR | O_TMPFILE | O_CLOEXEC, 0666);
	if (f->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL))
		ret = with_temp_name(f, make_by_open);
	else if (f->fd < 0)
		ret = -errno;
	if (!ret)
		adopt(f, old);
	return ret;
}

static int open_existing(struct outfile *f, enum mode mode)
{
	f->mode = mode;
	f->fd = open(f->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return f->fd < 0 ? -errno : 0;
}

static int open_path(struct outfile *f)
{
	struct stat st;
	int ret;

	if (!strcmp(f->path, "-")) {
		f->mode = STREAM;
		f->fd = STDOUT_FILENO;
		f->borrowed = true;
		return fcntl(f->fd, F_GETFL) < 0 ? -errno : 0;
	}
	if (!*f->path || f->path[strlen(f->path) - 1] == '/')
		return *f->path ? -EISDIR : -ENOENT;
	if (stat(f->path, &st))
		return errno == ENOENT ? open_staged(f, NULL) : -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return open_existing(f, STREAM);
	if (access(f->path, W_OK)) /* a rename would not ask */
		return -errno;
	ret = open_staged(f, &st);
	return ret == -EACCES || ret == -EPERM ? open_existing(f, INPLACE) : ret;
}

int outfile_open(const char *path, struct outfile **out, struct error *err)
{
	static const cookie_io_functions_t io = {.write = outfile_write};
	__outfile struct outfile *f = calloc(1, sizeof(*f));
	int ret;

	if (!f)
		return error_set(err, -ENOMEM, "%s: %s", path, strerror(ENOMEM));
	f->fd = -1;
	ret = strcmp(path, "-") ? sudo_caller(&f->caller, err) : 0;
	if (ret < 0)
		return ret;
	f->by_sudo = ret;
	f->path = strdup(path);
	ret = f->path ? open_path(f) : -ENOMEM;
	if (!ret) {
		f->stream = fopencookie(f, "w", io);
		ret = f->stream ? 0 : -ENOMEM;
	}
	if (ret) {
		error_set(err, ret, "%s: %s", f->borrowed ? "standard output" : path,
			  strerror(-ret));
		if (ret == -ENOENT)
			error_remedy(err, ret, "its directory does not exist: make it first");
		return ret;
	}
	*out = TAKE_PTR(f);
	return 0;
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

int outfile_error(const struct outfile *f)
{
	return -f->error;
}

const char *outfile_name(const struct outfile *f)
{
	return f->borrowed ? "standard output" : f->path;
}

/* Closing is where some file systems say that a write failed; of a duplicate, as fd is still
 * needed. */
static int close_checked(struct outfile *f)
{
	int fd = f->borrowed ? -1 : fcntl(f->fd, F_DUPFD_CLOEXEC, 0);

	return fd >= 0 && close(fd) ? -errno : 0;
}

/*
 * The last resort for a place that cannot be renamed to: a mount point, a file of others in /tmp.
 */
static int copy_into_place(struct outfile *f)
{
	__close int to = open(f->place, O_WRONLY | O_CLOEXEC | O_TRUNC);
	__close int from = TAKE_FD(f->fd);
	char buf[16384];
	off_t at = 0;
	ssize_t n;

	if (to < 0)
		return -errno;
	f->fd = to;
	while (!f->error && (n = pread(from, buf, sizeof(buf), at)) != 0) {
		if (n < 0)
			f->error = errno;
		else
			at += outfile_write(f, buf, n);
	}
	f->fd = -1;
	return -f->error;
}

static int move_into_place(struct outfile *f)
{
	if (!rename(f->temp, f->place)) {
		free(TAKE_PTR(f->temp));
		return 0;
	}
	if (errno == EBUSY || errno == EPERM || errno == EACCES || errno == EXDEV)
		return copy_into_place(f);
	return -errno;
}

static int put_in_place(struct outfile *f)
{
	int ret = 0;

	outfile_stream(f); /* INPLACE: nothing written is an empty file, not the old one */
	if (fflush(f->stream) && !f->error)
		f->error = errno;
	if (f->error)
		return -f->error;
	if (f->mode == STAGED && !f->temp)
		ret = with_temp_name(f, make_by_link);
	if (!ret)
		ret = close_checked(f);
	if (!ret && f->mode == STAGED)
		ret = move_into_place(f);
	return ret;
}

int outfile_commit(struct outfile **file, struct error *err)
{
	struct outfile *f = *file;
	int ret = put_in_place(f);

	if (ret)
		error_set(err, ret, "%s: %s", outfile_name(f), strerror(-ret));
	outfile_abort(file);
	return ret;
}

void outfile_abort(struct outfile **file)
{
	struct outfile *f = *file;

	if (!f)
		return;
	if (!f->error)
		f->error = ECANCELED; /* so that fclose() writes nothing more */
	if (f->temp)
		unlink(f->temp);
	outfile_free(file);
}
