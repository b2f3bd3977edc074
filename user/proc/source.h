/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source files as a target would open them: in its mount namespace and root, from its current
 * directory, with its user, groups and no capability that it lacks. So a chunk that calls itself
 * @/etc/shadow shows nothing that the target could not have read by itself.
 *
 * These rights belong to the image that is sampled, and only shrink: what the process had when it
 * was taken hold of and what it was seen to have since must each suffice.
 *
 * For a saved profile: as users of this machine would open them.
 */
#ifndef PROC_SOURCE_H
#define PROC_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct target_source;

/*
 * Takes hold of a process while it lives; files can be opened after its end, too. image: the
 * process_image() that was sampled. -ESTALE: it runs another by now, and what the sampled one could
 * read is not known. -ESRCH, -EACCES, -ENOMEM, ...
 */
int target_source_new(pid_t pid, uint64_t image, struct target_source **out);
void target_source_free(struct target_source **source); /* takes NULL */

/* Reads the process's credentials again: files that it may no longer read are not shown. */
void target_source_look(struct target_source *source);

/* It has ended: closes its /proc/PID. */
void target_source_ended(struct target_source *source);

/* Adds the credentials of an earlier image of the process: both must suffice. */
void target_source_join(struct target_source *source, struct target_source *earlier);

/* True if it has been root's all the time. */
bool target_source_is_roots(const struct target_source *source);

/* True if both show the same files, as far as these have the same names. */
bool target_source_same(const struct target_source *a, const struct target_source *b);

/* True if all names mean the same to both, too: root and current directory are the same. */
bool target_source_same_names(const struct target_source *a, const struct target_source *b);

#define SOURCE_USERS 3

/*
 * Files that each of n users (1 to SOURCE_USERS) can read, with the groups that this machine gives
 * them and no capability; the caller is root. -EINVAL, -ENOMEM.
 */
int target_source_of_users(const uid_t *uids, size_t n, struct target_source **out);

/* The caller's rights, without its capabilities. */
int target_source_of_caller(struct target_source **out);

/*
 * Files that all users can read: with the rights of user nobody, and only if the mode lets all read.
 * The caller is root. -ENOMEM.
 */
int target_source_of_all(struct target_source **out);

/*
 * Reads a regular file of at most 16 MiB into memory and gives it as a stream, with the file's time of
 * change. `ctx` is a struct
 * target_source (the signature is that of out/source.h). A child process opens and reads: 0, the
 * -errno that it met, -EPERM when the target's credentials cannot be taken on, -ETIMEDOUT when the
 * file system does not answer in two seconds.
 */
int target_source_open(void *ctx, const char *path, FILE **out);

#endif
