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

/* With the groups that this machine gives the user; only `gid` if it does not know the user. */
int fsids_of_user(uid_t uid, gid_t gid, struct fsids **out);

/* Those of who called sudo. *out stays NULL when nobody did. */
int fsids_of_caller(struct fsids **out, struct error *err);

/*
 * Takes them for this thread, `before` gets those that it had. -EPERM: the kernel refuses, nothing
 * has changed. NULL IDs: nothing is done.
 */
int fsids_enter(const struct fsids *ids, struct fsids **before);

/* Gives them back and frees them; NULL is allowed. Aborts if the kernel refuses. */
void fsids_leave(struct fsids **before);

#define __fsids __cleanup(fsids_leave)

#endif
