/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a process may open: its user, groups and capabilities. Read from /proc, made of a user of
 * this machine, and taken on by a child process.
 */
#ifndef PROC_CREDS_H
#define PROC_CREDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct creds {
	uid_t uid; /* those that file access goes by */
	gid_t gid;
	gid_t *groups;
	size_t ngroups;
	uint64_t caps; /* effective; 0 when they are those of another user namespace */
};

/* proc: a descriptor of /proc/PID. Fails when the process is gone: -ESRCH, ... */
int creds_read(int proc, struct creds *out);

/* With the groups that this machine gives the user, and no capability. -EINVAL, -ENOMEM. */
int creds_of_user(uid_t uid, struct creds *out);

/* Of nobody: what all may do. */
struct creds creds_of_nobody(void);

bool creds_same(const struct creds *a, const struct creds *b);
void creds_free(struct creds *creds);

/*
 * The calling thread accesses files with these from now on, and with no capability that it lacks
 * itself. It stays whoever it is for signals and ptrace, so that the user cannot stop it. May be
 * called again, with others. Calls nothing but the kernel. -EPERM: it may not.
 */
int creds_become(const struct creds *creds);

#endif
