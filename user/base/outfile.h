/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file that luabpf writes for its user. Opened early, so that an unwritable one is told before
 * any sample is taken; changed late, so that a failed run leaves what was there.
 *
 * A regular file is written beside its place and moved there by outfile_commit(): its path holds
 * the old bytes or all of the new ones. "-" is standard output; devices, FIFOs and the like are
 * written as they are. A new file belongs to the user who called sudo.
 */
#ifndef BASE_OUTFILE_H
#define BASE_OUTFILE_H

#include <stdio.h>

#include "base/cleanup.h"
#include "base/error.h"

struct outfile;

/*
 * `path` is copied. Errors: whatever open(2) says, -EISDIR for a directory; `err` names the path.
 * -EINVAL: the caller of sudo is not to be known (base/sudo.h).
 * Opening a FIFO waits for its reader.
 */
int outfile_open(const char *path, struct outfile **out, struct error *err);

/* Where to write. An error of a write shows at outfile_commit(). */
FILE *outfile_stream(struct outfile *file);

/* The first error that a write met so far, as -errno, or 0. What stdio still buffers is not written
 * yet. */
int outfile_error(const struct outfile *file);

/* "standard output" or the path, for messages. */
const char *outfile_name(const struct outfile *file);

/*
 * Everything written is in its place, or an error: -ENOSPC, -EPIPE, ... the first that a write met.
 * Frees the file in both cases.
 */
int outfile_commit(struct outfile **file, struct error *err);

/* Forgets what was written, where that is possible. NULL is allowed. */
void outfile_abort(struct outfile **file);

#define __outfile __cleanup(outfile_abort)

#endif
