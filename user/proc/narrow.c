// SPDX-License-Identifier: BSD-2-Clause
#include "narrow.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "base/cleanup.h"
#include "process.h"

int narrow_set_cgroups(struct narrow *n, const struct words *names, struct error *err)
{
	int r = names->n ? cgroup2_mount(n->cgroup_mount, err) : 0;

	for (size_t i = 0; i < names->n && !r; i++) {
		char *path __free = NULL;

		r = cgroup2_find(n->cgroup_mount, names->word[i], &path);
		if (r) {
			error_set(err, r, "--cgroup %s: %s", names->word[i],
				  r == -ENOENT	  ? "no such cgroup"
				  : r == -ENOTDIR ? "not a cgroup of version 2"
						  : strerror(-r));
			return error_remedy(err, r,
					    "its path as in /proc/PID/cgroup behind 0::, "
					    "or its directory below %s",
					    n->cgroup_mount);
		}
		r = words_add(&n->cgroups, path);
	}
	return r;
}

void narrow_free(struct narrow *n)
{
	words_free(&n->cgroups);
}

/* A process goes on when its file is removed or replaced: it matches by the name that it had. */
static bool matches_exe(const char *pattern, const char *path)
{
	const char *name = strrchr(path, '/');
	const char *text = strchr(pattern, '/') || !name ? path : name + 1;
	size_t len = process_path_len(text, strlen(text));
	char old[PROCESS_NAME];

	if (!fnmatch(pattern, text, 0))
		return true;
	if (len >= sizeof(old))
		return false;
	memcpy(old, text, len);
	old[len] = '\0';
	return !fnmatch(pattern, old, 0);
}

bool narrow_exe(const struct narrow *n, const char *path)
{
	bool matches = !n->exes->n;

	for (size_t i = 0; i < n->exes->n && !matches; i++)
		matches = matches_exe(n->exes->word[i], path);
	return matches;
}

bool narrow_comm(const struct narrow *n, const char *comm)
{
	bool matches = !n->comms->n;

	for (size_t i = 0; i < n->comms->n && !matches; i++)
		matches = !strncmp(n->comms->word[i], comm, PROCESS_COMM - 1);
	return matches;
}

bool narrow_uid(const struct narrow *n, uid_t uid)
{
	bool matches = !n->nuids;

	for (size_t i = 0; i < n->nuids && !matches; i++)
		matches = n->uids[i] == uid;
	return matches;
}

bool narrow_cgroup(const struct narrow *n, const char *path)
{
	bool matches = !n->cgroups.n;

	for (size_t i = 0; i < n->cgroups.n && !matches; i++)
		matches = cgroup2_is_below(path, n->cgroups.word[i]);
	return matches;
}

bool narrow_process(const struct narrow *n, pid_t pid)
{
	char exe[PROCESS_NAME], comm[PROCESS_COMM], cgroup[CGROUP2_PATH];
	uid_t uid;

	if (n->exes->n)
		process_exe(pid, exe, sizeof(exe));
	if (n->exes->n && *exe && !narrow_exe(n, exe))
		return false;
	if (n->comms->n)
		process_comm(pid, comm);
	if (n->comms->n && !narrow_comm(n, comm))
		return false;
	if (n->nuids && (process_uid(pid, &uid) || !narrow_uid(n, uid)))
		return false;
	return !n->cgroups.n || (!cgroup2_of(pid, cgroup) && narrow_cgroup(n, cgroup));
}
