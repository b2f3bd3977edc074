/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The IDs by which the kernel decides what a thread may do with files: fsuid, fsgid, groups. Root
 * that takes another user's also loses its capabilities over files until it takes its own again.
 * Unlike setresuid(2), signals and ptrace by that user are refused as before.
 */
#ifndef BASE_FSIDS_H
#define BASE_FSIDS_H

#include <sys/types.h>

#include "base/cleanup.h"
#include "base/error.h"

struct fsids {
	uid_t uid;
	gid_t gid;
	int ngroups;
	gid_t groups[];
};

/* Returns the user's groups of this machine's database; for an unknown user, only `gid`. */
int fsids_of_user(uid_t uid, gid_t gid, struct fsids **out);

/* The same for the user who called sudo. *out stays NULL if luabpf does not run under sudo. */
int fsids_of_caller(struct fsids **out, struct error *err);

/*
 * Sets the thread's IDs and returns its former ones in `before`. -EPERM: the kernel refuses,
 * nothing has changed. NULL IDs: nothing is done.
 */
int fsids_enter(const struct fsids *ids, struct fsids **before);

/* Restores the former IDs and frees them; NULL is allowed. Aborts if the kernel refuses. */
void fsids_leave(struct fsids **before);

#define __fsids __cleanup(fsids_leave)

#endif
