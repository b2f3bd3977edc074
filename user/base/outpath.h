/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resolves an output path to its directory as a descriptor, its name there, and the file that has
 * the name now. A path is walked once, component by component, with the thread's file-system IDs
 * (base/fsids.h); afterwards only the descriptors count, and renames have no effect.
 *
 * A file is trusted if its owner is root or `uid`:
 *
 *                                      directory of the last name or the link
 *                                      OWN              STICKY           FOREIGN
 *     link, trusted                    followed         refused          refused
 *     FIFO, device, file in place      written          if nlink == 1    refused
 *     regular file of that user        replaced         replaced         replaced
 *     any of these, not trusted        refused          refused          refused
 *
 * Magic links of /proc (cwd, root, fd) are refused, except those of our own descriptors.
 * Directories of the path may belong to anyone: without links, a name leads only to files that the
 * owner of the directory above could have put there.
 */
#ifndef BASE_OUTPATH_H
#define BASE_OUTPATH_H

#include <limits.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/error.h"

/* Who can make names in a directory. */
enum outpath_dir {
	OUTPATH_OWN,	/* trusted users, and groups that they let in */
	OUTPATH_STICKY, /* all users, who cannot rename the files of others: /tmp */
	OUTPATH_FOREIGN /* other users, who can also rename the files there */
};

struct outpath {
	int own_fd; /* /dev/stdout, /dev/fd/N: this descriptor of our own, nothing else; -1: no */
	int dir;    /* O_PATH */
	enum outpath_dir kind;
	char name[NAME_MAX + 1]; /* in dir */
	int fd;			 /* O_PATH: the file, no link and no directory; -1: none */
	struct stat st;		 /* of fd */
};

/*
 * `uid`: the user who is trusted beside root. Errors: those of open(2), -EISDIR for a directory,
 * -EPERM if refused; `err` names the path and the reason. On success the caller closes `out`.
 */
int outpath_walk(const char *path, uid_t uid, struct outpath *out, struct error *err);

/* Returns 0 if the table allows to write in place, else -EPERM as above. */
int outpath_writable(const struct outpath *at, const char *path, struct error *err);

void outpath_close(struct outpath *at);

#endif
