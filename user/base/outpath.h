/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a file that is to be written lies: its directory as a descriptor, its name there, and what
 * is there now. A path is walked once, component by component, as the user with whose file-system
 * IDs the thread runs (base/fsids.h); afterwards only the descriptors count, whatever happens to
 * the names.
 *
 * What is trusted belongs to root or to that user. Other users decide about nothing:
 *
 *                                      directory of the last name or the link
 *                                      OWN              STICKY           FOREIGN
 *     link, trusted                    followed         refused          refused
 *     FIFO, device, file in place      written          if nlink == 1    refused
 *     regular file of that user        replaced         replaced         replaced
 *     any of these, not trusted        refused          refused          refused
 *
 * Links of /proc to what a process has (cwd, root, fd) are refused, but for descriptors of our own.
 * Directories on the way may belong to anyone: without links a name leads only to what whoever owns
 * the directory above could have put there himself.
 */
#ifndef BASE_OUTPATH_H
#define BASE_OUTPATH_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"

/* Who can make a name in a directory? */
enum outpath_dir {
	OUTPATH_OWN,	/* trusted users, and groups that they let in */
	OUTPATH_STICKY, /* everybody, but not take away those of others: /tmp */
	OUTPATH_FOREIGN /* others, and rename what is there */
};

struct outpath {
	int own_fd; /* /dev/stdout, /dev/fd/N: this descriptor of our own, nothing else; -1: no */
	int dir;    /* O_PATH */
	enum outpath_dir kind;
	char name[NAME_MAX + 1]; /* in dir */
	int fd;			 /* O_PATH: what is there, no link and no directory; -1: nothing */
	struct stat st;		 /* of fd */
};

/*
 * `uid`: that user. Errors: as open(2), -EISDIR for a directory, -EPERM for what is refused; `err`
 * names the path and the reason. On success the descriptors are the caller's to close.
 */
int outpath_walk(const char *path, uid_t uid, struct outpath *out, struct error *err);

/* May what is there be written to, and not only replaced? -EPERM as above. */
int outpath_writable(const struct outpath *at, const char *path, struct error *err);

void outpath_close(struct outpath *at);

#endif
