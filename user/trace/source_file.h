/* SPDX-License-Identifier: BSD-2-Clause */
/* The files that the sources of a trace were read from, as they are now. */
#ifndef TRACE_SOURCE_FILE_H
#define TRACE_SOURCE_FILE_H

#include <stdbool.h>

#include "base/fsids.h"
#include "program.h"

/*
 * True if the file that a source's chunk was read from is still the same, by size and time. ids:
 * whose rights are used; NULL: our own.
 */
bool source_file_is_same(const struct fsids *ids, const struct program_source *source);

/* True if a regular file has this path now. */
bool source_file_exists(const struct fsids *ids, const char *path);

#endif
