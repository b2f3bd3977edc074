/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Credentials for file access: user, groups and capabilities. Read from /proc or made of a user of
 * this machine; a child process assumes them.
 */
#ifndef PROC_CREDS_H
#define PROC_CREDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct creds {
	uid_t uid; /* file-system IDs */
	gid_t gid;
	gid_t *groups;
	size_t ngroups;
	uint64_t caps; /* effective; 0 when they are those of another user namespace */
};

/* proc: a descriptor of /proc/PID. Fails when the process is gone: -ESRCH, ... */
int creds_read(int proc, struct creds *out);

/* With the groups that this machine gives the user, and no capability. -EINVAL, -ENOMEM. */
int creds_of_user(uid_t uid, struct creds *out);

/* Returns the user "nobody", without groups and capabilities. */
struct creds creds_of_nobody(void);

bool creds_same(const struct creds *a, const struct creds *b);
void creds_free(struct creds *creds);

/*
 * Sets the calling thread's file-system IDs, groups and effective capabilities; it gains no
 * capability. Its real user stays, so that the other user cannot signal or trace it. May be called
 * again, with others. Makes only system calls. -EPERM: not permitted.
 */
int creds_become(const struct creds *creds);

#endif
