/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An output file. Opened early, so that an unwritable path is an error before any sample is taken;
 * changed late, so that a failed run leaves the old file.
 *
 * A regular file is replaced atomically: it is written under another name, and outfile_commit()
 * renames it. Its path holds the old bytes or all of the new ones. "-" is standard output;
 * devices, FIFOs and the like are written directly.
 *
 * Under sudo, files are opened, made and renamed with the rights of the user who called it. New
 * files have mode 0600. A link, FIFO, device or file of a user other than root and this one is
 * never written to (base/outpath.h has the rules).
 */
#ifndef BASE_OUTFILE_H
#define BASE_OUTFILE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/error.h"

struct outfile;

/*
 * `path` is copied. Errors: those of open(2), -EISDIR for a directory, -EPERM for a file that
 * base/outpath.h refuses; `err` names the path.
 * -EINVAL: the caller of sudo is unknown (base/sudo.h).
 * Opening a FIFO waits for its reader.
 */
int outfile_open(const char *path, struct outfile **out, struct error *err);

/*
 * The same for a recording that goes on meanwhile. Refuses a FIFO, whose reader could hold it up:
 * -EINVAL. A pipe may be the standard output.
 */
int outfile_open_ready(const char *path, struct outfile **out, struct error *err);

/* Returns the stream to write to. outfile_commit() returns errors of writes. */
FILE *outfile_stream(struct outfile *file);

/* True if one would replace the other; never of streams. */
bool outfile_same(const struct outfile *a, const struct outfile *b);

/* Returns the first error of a write so far, as -errno, or 0. Bytes in stdio's buffer are not
 * written yet. */
int outfile_error(const struct outfile *file);

/* "standard output" or the path, for messages. */
const char *outfile_name(const struct outfile *file);

/*
 * Flushes, and renames the file to its path. Returns 0 or the first error of a write (-ENOSPC,
 * -EPIPE, ...). If the rename fails, the file keeps the temporary name in `err`. Frees `file`.
 */
int outfile_commit(struct outfile **file, struct error *err);

/* Discards the new bytes, except those already written to a stream. NULL is allowed. */
void outfile_abort(struct outfile **file);

#define __outfile __cleanup(outfile_abort)

#endif
