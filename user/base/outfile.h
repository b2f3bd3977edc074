/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file that luabpf writes for its user. Opened early, so that an unwritable one is an error before
 * any sample is taken; changed late, so that a failed run leaves what was there.
 *
 * A regular file is written beside its place and moved there by outfile_commit(): its path holds
 * the old bytes or all of the new ones. "-" is standard output; devices, FIFOs and the like are
 * written as they are.
 *
 * Under sudo, files are opened, made and moved with the rights of the user who called it. New files
 * have mode 0600. No link, FIFO, device or file is written to that belongs to a user who is neither
 * root nor this one (base/outpath.h has the rules).
 */
#ifndef BASE_OUTFILE_H
#define BASE_OUTFILE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/error.h"

struct outfile;

/*
 * `path` is copied. Errors: whatever open(2) returns, -EISDIR for a directory, -EPERM for what
 * belongs to others; `err` names the path.
 * -EINVAL: the caller of sudo is not to be known (base/sudo.h).
 * Opening a FIFO waits for its reader.
 */
int outfile_open(const char *path, struct outfile **out, struct error *err);

/* Where to write. An error of a write shows at outfile_commit(). */
FILE *outfile_stream(struct outfile *file);

/* Would one replace the other? Never true of streams. */
bool outfile_same(const struct outfile *a, const struct outfile *b);

/* The first error that a write met so far, as -errno, or 0. What stdio still buffers is not written
 * yet. */
int outfile_error(const struct outfile *file);

/* "standard output" or the path, for messages. */
const char *outfile_name(const struct outfile *file);

/*
 * Everything written is in its place, or an error: -ENOSPC, -EPIPE, ... the first that a write met.
 * Where another user has taken the place meanwhile, the file stays under the name that `err` has.
 * Frees the file in both cases.
 */
int outfile_commit(struct outfile **file, struct error *err);

/* Forgets what was written, where that is possible. NULL is allowed. */
void outfile_abort(struct outfile **file);

#define __outfile __cleanup(outfile_abort)

#endif
