/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which processes of the machine are wanted: by executable, name, cgroup and user. Several of one kind
 * are alternatives; a process has to match each kind that is given.
 */
#ifndef PROC_NARROW_H
#define PROC_NARROW_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/words.h"
#include "cgroup2.h"

struct narrow {
	/* set by the owner, who outlives it */
	const struct words *exes;  /* patterns of glob(7); without '/', for the file's name */
	const struct words *comms; /* as given: the kernel keeps PROCESS_COMM - 1 bytes */
	const uid_t *uids;
	size_t nuids;

	struct words cgroups; /* as cgroup2_find() returns them */
	char cgroup_mount[CGROUP2_PATH];
};

/* names: paths of cgroups, as the user gives them. err names the first that is not a cgroup. */
int narrow_set_cgroups(struct narrow *narrow, const struct words *names, struct error *err);
void narrow_free(struct narrow *narrow);

/* True if the process is not restricted to some of this kind, or is one of these. */
bool narrow_exe(const struct narrow *narrow, const char *path); /* as /proc/PID/exe has it */
bool narrow_comm(const struct narrow *narrow, const char *comm);
bool narrow_uid(const struct narrow *narrow, uid_t uid);
bool narrow_cgroup(const struct narrow *narrow, const char *path);

/* True if the process, as it is now, matches; an executable that may not be read does. */
bool narrow_process(const struct narrow *narrow, pid_t pid);

#endif
