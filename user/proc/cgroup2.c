// SPDX-License-Identifier: BSD-2-Clause
#include "cgroup2.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "process.h"

/* Of a line of /proc/self/mountinfo, proc_pid_mountinfo(5): "40 30 0:37 /root /mount rw - cgroup2 none rw" */
struct mount {
	uint64_t id;
	char *root, *dir; /* owned */
};

static void free_mount(struct mount *m)
{
	free(m->root);
	free(m->dir);
}

/* "\\040" stands for a blank. */
static void unescape(char *s)
{
	char *to = s;
	unsigned int byte;
	int n;

	for (; *s; s++) {
		if (*s == '\\' && sscanf(s + 1, "%3o%n", &byte, &n) == 1) {
			*to++ = (char)byte;
			s += n;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

/* True if it is a cgroup file system of version 2. */
static bool parse_mount(const char *line, struct mount *m)
{
	if (!strstr(line, " - cgroup2 ") ||
	    sscanf(line, "%" SCNu64 " %*d %*s %ms %ms", &m->id, &m->root, &m->dir) != 3)
		return false;
	unescape(m->dir);
	return strlen(m->dir) < CGROUP2_PATH;
}

/* Another file system may be mounted over it. */
static bool is_seen(const struct mount *m)
{
	struct statx st;

	return !statx(AT_FDCWD, m->dir, AT_STATX_DONT_SYNC, STATX_MNT_ID, &st) &&
	       st.stx_mnt_id == m->id;
}

int cgroup2_mount(char buf[CGROUP2_PATH], struct error *err)
{
	FILE *f __fclose = fopen("/proc/self/mountinfo", "re");
	char *line __free = NULL;
	bool found = false, any = false;
	size_t size = 0;

	while (f && !found && getline(&line, &size, f) > 0) {
		struct mount m __cleanup(free_mount) = {};

		if (!parse_mount(line, &m) || !is_seen(&m))
			continue;
		any = true;
		found = !strcmp(m.root, "/");
		if (found)
			strcpy(buf, m.dir);
	}
	if (found)
		return 0;
	if (!any)
		return error_set(err, -ENOENT,
				 "--cgroup: no cgroup file system of version 2 is mounted");
	error_set(
		err, -ENOENT,
		"--cgroup: no cgroup file system of this cgroup namespace is mounted, but one with "
		"another root");
	return error_remedy(
		err, -ENOENT,
		"mount -t cgroup2 none DIRECTORY; or, in a container, start it with the "
		"host's cgroup namespace: --cgroupns=host");
}

static int check_directory(const char *path)
{
	struct statfs fs;
	struct stat st;

	if (stat(path, &st) || statfs(path, &fs))
		return -errno;
	return S_ISDIR(st.st_mode) && fs.f_type == CGROUP2_SUPER_MAGIC ? 0 : -ENOTDIR;
}

/* Returns what is behind the mount point: "/" or "/system.slice"; NULL: the path is not below it. */
static const char *below(const char *mount, const char *path)
{
	size_t n = strlen(mount);

	if (strncmp(path, mount, n) || (path[n] && path[n] != '/'))
		return NULL;
	return path[n] ? path + n : "/";
}

int cgroup2_find(const char *mount, const char *name, char **out)
{
	char *joined __free = NULL, *real __free = NULL;
	const char *path;
	int r;

	if (asprintf(&joined, "%s/%s", mount, name) < 0) {
		joined = NULL;
		return -ENOMEM;
	}
	real = realpath(joined, NULL);
	if (!real && errno == ENOENT)
		real = realpath(name, NULL);
	if (!real)
		return -errno;
	r = check_directory(real);
	if (r)
		return r;
	path = below(mount, real);
	if (!path)
		return -ENOENT;
	*out = strdup(path);
	return *out ? 0 : -ENOMEM;
}

int cgroup2_of(pid_t pid, char buf[CGROUP2_PATH])
{
	FILE *f __fclose = NULL;
	char *line __free = NULL;
	char path[64];
	size_t size = 0;
	int r = -ESRCH; /* also when it ends before it is read: nothing comes then */
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return -ESRCH;
	*buf = '\0';
	while ((n = getline(&line, &size, f)) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "0::", 3) || n > CGROUP2_PATH)
			continue;
		strcpy(buf, line + 3);
		r = 0;
		buf[process_path_len(buf, strlen(buf))] = '\0';
	}
	return r;
}

uint64_t cgroup2_id(const char *mount, const char *path)
{
	char *joined __free = NULL;
	struct stat st;

	if (asprintf(&joined, "%s%s", mount, path) < 0) {
		joined = NULL;
		return 0;
	}
	return stat(joined, &st) ? 0 : st.st_ino;
}

bool cgroup2_is_below(const char *path, const char *cgroup)
{
	size_t n = strcmp(cgroup, "/") ? strlen(cgroup) : 0;

	return !strncmp(path, cgroup, n) && (path[n] == '/' || (n && !path[n])) &&
	       strncmp(path, "/..", 3);
}
