// SPDX-License-Identifier: BSD-2-Clause
#include "cgroup2.h"

#include <errno.h>
#include <linux/magic.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/cleanup.h"
#include "process.h"

int cgroup2_mount(char buf[CGROUP2_PATH], struct error *err)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	char line[2 * CGROUP2_PATH];
	bool found = false;
	struct mntent m;

	while (mounts && !found && getmntent_r(mounts, &m, line, sizeof(line))) {
		found = !strcmp(m.mnt_type, "cgroup2") && strlen(m.mnt_dir) < CGROUP2_PATH;
		if (found)
			strcpy(buf, m.mnt_dir);
	}
	if (mounts)
		endmntent(mounts);
	if (found)
		return 0;
	return error_set(err, -ENOENT, "no cgroup file system of version 2 is mounted");
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
