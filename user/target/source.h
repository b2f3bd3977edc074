/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source files as a target would open them: in its mount namespace and root, from its current
 * directory, with its user, groups and no capability that it lacks. So a chunk that calls itself
 * @/etc/shadow shows nothing that the target could not have read by itself.
 *
 * For a saved profile: as users of this machine would open them.
 */
#ifndef TARGET_SOURCE_H
#define TARGET_SOURCE_H

#include <stdio.h>
#include <sys/types.h>

struct target_source;

/*
 * Take hold of a process while it lives; files can be opened after its end, too (with the
 * credentials it had at first, while it lives with those it has). 0, -ESRCH, -EACCES, -ENOMEM, ...
 */
int target_source_new(pid_t pid, struct target_source **out);
void target_source_free(struct target_source **source); /* takes NULL */

#define SOURCE_USERS 2

/*
 * Files that each of n users (at most SOURCE_USERS, never root) can read, with the groups that this
 * machine gives them and no capability; the caller is root. n is 0: what the caller can read, less
 * what its capabilities allow. -EINVAL, -ENOMEM.
 */
int target_source_of_users(const uid_t *uids, size_t n, struct target_source **out);

/*
 * Files whose own mode lets all read, wherever they lie; the caller is root. So root finds a script
 * in a directory of root's, and no secret. -ENOMEM.
 */
int target_source_of_all(struct target_source **out);

/*
 * Reads a regular file of at most 16 MiB into memory and gives it as a stream. `ctx` is a struct
 * target_source (the signature is that of out/source.h). A child process opens and reads: 0, the
 * -errno that it met, -EPERM when the target's credentials cannot be taken on, -ETIMEDOUT when the
 * file system does not answer in two seconds.
 */
int target_source_open(void *ctx, const char *path, FILE **out);

#endif
