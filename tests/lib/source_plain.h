/* SPDX-License-Identifier: BSD-2-Clause */
/* The source of tests that write the files themselves. */
#ifndef TESTS_SOURCE_PLAIN_H
#define TESTS_SOURCE_PLAIN_H

#include "out/source.h"

/*
 * Opens as the caller. Only regular files: a FIFO would block and a device do worse. A path that
 * ends nowhere is -ENOENT, a directory -EISDIR, something else -EINVAL.
 */
int source_open_plain(void *ctx, const char *path, FILE **out);
extern const struct source source_plain;

#endif
