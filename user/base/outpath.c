// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "base/outpath.h"

#define MAX_LINKS 40 /* the kernel's limit */
#define NOBODY 65534 /* shown for users that a user namespace has no ID for */

struct path_walk {
	const char *path; /* as given, for messages */
	struct error *err;
	uid_t uid;
	bool trusts_nobody;
	int dir;
	enum outpath_dir kind; /* of dir */
	unsigned int links;
	char rest[2 * PATH_MAX]; /* of the path, from dir on */
};

static void walk_close(struct path_walk *w)
{
	cleanup_fd(&w->dir);
}

/* True in a user namespace that maps no ID to the machine's root. */
static bool root_is_nobody(void)
{
	__fclose FILE *map = fopen("/proc/self/uid_map", "re");
	unsigned int first, outside, count;

	if (!map)
		return false;
	while (fscanf(map, "%u %u %u", &first, &outside, &count) == 3)
		if (NOBODY - first < count)
			return false;
	return true;
}

static bool trusted(const struct path_walk *w, uid_t uid)
{
	return uid == 0 || uid == w->uid || (uid == NOBODY && w->trusts_nobody);
}

static int refuse_owner(const char *path, const char *what, uid_t uid, struct error *err)
{
	error_set(err, -EPERM, "%s: %s belongs to user %u", path, what, uid);
	return error_remedy(err, -EPERM, "name a file of your own, or one that does not exist yet");
}

/* Makes `fd` the walk's directory. */
static int enter(struct path_walk *w, int *fd)
{
	struct stat st;

	if (fstat(*fd, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if (!trusted(w, st.st_uid))
		w->kind = OUTPATH_FOREIGN;
	else if (!(st.st_mode & S_IWOTH))
		w->kind = OUTPATH_OWN;
	else
		w->kind = st.st_mode & S_ISVTX ? OUTPATH_STICKY : OUTPATH_FOREIGN;
	cleanup_fd(&w->dir);
	w->dir = TAKE_FD(*fd);
	return 0;
}

static int start(struct path_walk *w, const char *dir)
{
	__close int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : enter(w, &fd);
}

/* Takes the first name off the rest of the path. */
static int next_name(struct path_walk *w, char name[NAME_MAX + 1], bool *last)
{
	const char *from = w->rest + strspn(w->rest, "/");
	size_t len = strcspn(from, "/");

	if (!len)
		return -EISDIR;
	if (len > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, from, len);
	name[len] = '\0';
	memmove(w->rest, from + len, strlen(from + len) + 1);
	*last = !*w->rest;
	return 0;
}

/* Opens a name. O_DIRECTORY triggers automounts, O_PATH alone does not. */
static int look(const struct path_walk *w, const char *name, bool last)
{
	const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
	int fd = last ? -1 : openat(w->dir, name, flags | O_DIRECTORY);

	if (fd < 0 && (last || errno == ENOTDIR))
		fd = openat(w->dir, name, flags);
	return fd < 0 ? -errno : fd;
}

static int check_link(struct path_walk *w, const char *name, const struct stat *st)
{
	char what[NAME_MAX + 32];

	if (w->links++ == MAX_LINKS)
		return -ELOOP;
	snprintf(what, sizeof(what), "the link \"%s\"", name);
	if (!trusted(w, st->st_uid))
		return refuse_owner(w->path, what, st->st_uid, w->err);
	if (w->kind == OUTPATH_OWN)
		return 0;
	error_set(w->err, -EPERM, "%s: %s is in a directory that others write to", w->path, what);
	return error_remedy(w->err, -EPERM, "name the file that the link leads to");
}

/* Puts the link's text before the rest of the path. */
static int replace_by_text(struct path_walk *w, int link)
{
	size_t rest = strlen(w->rest);
	char text[PATH_MAX];
	ssize_t n = readlinkat(link, "", text, sizeof(text));

	if (n < 0)
		return -errno;
	if (n == 0)
		return -ENOENT;
	if (n + rest >= sizeof(w->rest) || n == sizeof(text))
		return -ENAMETOOLONG;
	memmove(w->rest + n, w->rest, rest + 1);
	memcpy(w->rest, text, n);
	return *text == '/' ? start(w, "/") : 0;
}

/* Returns N if the name is our own /proc/self/fd/N, else -1. */
static int own_descriptor(const struct path_walk *w, const char *name)
{
	struct stat self, dir;
	char *end;
	unsigned long n = strtoul(name, &end, 10);

	if (*end || n > INT_MAX || stat("/proc/self/fd", &self) || fstat(w->dir, &dir))
		return -1;
	return self.st_dev == dir.st_dev && self.st_ino == dir.st_ino ? (int)n : -1;
}

/*
 * Refuses magic links of /proc, which lead to a process's open files and directories without a
 * path: the process decides which file that is.
 */
static int check_magic(const struct path_walk *w, const char *name)
{
	const struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS};
	__close int fd = syscall(SYS_openat2, w->dir, name, &how, sizeof(how));

	if (fd >= 0)
		return 0;
	if (errno != ELOOP)
		return -errno;
	error_set(w->err, -EPERM, "%s: \"%s\" is what a process has, not a name", w->path, name);
	return error_remedy(w->err, -EPERM, "name the file itself");
}

/* Checks a link and replaces it by its text. */
static int follow(struct path_walk *w, const char *name, int link, const struct stat *st)
{
	struct statfs fs;
	int ret = check_link(w, name, st);

	if (!ret && fstatfs(link, &fs))
		ret = -errno;
	if (!ret && fs.f_type == PROC_SUPER_MAGIC)
		ret = check_magic(w, name);
	return ret ? ret : replace_by_text(w, link);
}

/* Ends the walk at the last name. *fd: its file, moved to `out`; -1: none. */
static int arrive(struct path_walk *w, const char *name, int *fd, const struct stat *st,
		  struct outpath *out)
{
	struct outpath at = {.kind = w->kind, .fd = -1, .own_fd = -1};

	if (*fd >= 0 && S_ISDIR(st->st_mode))
		return -EISDIR;
	if (*fd >= 0 && !trusted(w, st->st_uid))
		return refuse_owner(w->path, "what is there", st->st_uid, w->err);
	strcpy(at.name, name);
	if (*fd >= 0) {
		at.st = *st;
		at.fd = TAKE_FD(*fd);
	}
	at.dir = TAKE_FD(w->dir);
	*out = at;
	return 1;
}

/* Resolves one name. Returns 1 at the last one. */
static int step(struct path_walk *w, struct outpath *out)
{
	char name[NAME_MAX + 1];
	__close int fd = -1;
	struct stat st;
	int ret, own;
	bool last;

	ret = next_name(w, name, &last);
	if (ret)
		return ret;
	fd = look(w, name, last);
	if (fd < 0 && !(last && fd == -ENOENT))
		return fd;
	if (fd >= 0 && fstat(fd, &st))
		return -errno;
	if (fd >= 0 && S_ISLNK(st.st_mode)) {
		own = last ? own_descriptor(w, name) : -1;
		if (own < 0)
			return follow(w, name, fd, &st);
		*out = (struct outpath){.dir = -1, .fd = -1, .own_fd = own};
		return 1;
	}
	return last ? arrive(w, name, &fd, &st, out) : enter(w, &fd);
}

static int check_path(const char *path)
{
	size_t len = strlen(path);

	if (!len)
		return -ENOENT;
	if (len >= PATH_MAX)
		return -ENAMETOOLONG;
	return path[len - 1] == '/' ? -EISDIR : 0;
}

int outpath_walk(const char *path, uid_t uid, struct outpath *out, struct error *err)
{
	struct error refused = {};
	__cleanup(walk_close) struct path_walk w = {
		.path = path, .err = &refused, .uid = uid, .dir = -1};
	int ret = check_path(path);

	if (!ret) {
		w.trusts_nobody = root_is_nobody();
		strcpy(w.rest, path);
		ret = start(&w, *path == '/' ? "/" : ".");
	}
	while (!ret)
		ret = step(&w, out);
	if (ret > 0)
		return 0;
	if (!*refused.what)
		return error_set(err, ret, "%s: %s", path, strerror(-ret));
	if (err)
		*err = refused;
	return ret;
}

int outpath_writable(const struct outpath *at, const char *path, struct error *err)
{
	if (S_ISREG(at->st.st_mode) && at->st.st_nlink > 1)
		error_set(err, -EPERM, "%s: has more names, and can only be written in place",
			  path);
	else if (at->kind == OUTPATH_FOREIGN || (at->kind == OUTPATH_STICKY && at->st.st_nlink > 1))
		error_set(err, -EPERM, "%s: others may have put it into this directory", path);
	else
		return 0;
	return error_remedy(err, -EPERM, "name a file that does not exist yet");
}

void outpath_close(struct outpath *at)
{
	cleanup_fd(&at->dir);
	cleanup_fd(&at->fd);
}
