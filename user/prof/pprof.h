/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Load and save a profile as pprof (gzip of profile.proto). A loaded profile renders every
 * report to the same bytes as what was saved: rows and frames keep their order, strings their
 * bytes.
 *
 * Strings that other tools show are readable UTF-8 (control characters and stray bytes as \xNN).
 * Losses are comments: "luabpf: lost COUNT samples: REASON"; so is what was seen outside Lua:
 * "luabpf: left out COUNT samples: outside-lua".
 */
#ifndef PROF_PPROF_H
#define PROF_PPROF_H

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "prof.h"

/* The version of luabpf's own fields in the file; a reader refuses newer ones. */
#define PPROF_FORMAT 1

/* Writes at the file's position and flushes. 0, -ENOMEM, -EOVERFLOW, or what the write gave. */
int pprof_write(const struct prof *prof, FILE *out);

/*
 * Reads a pprof file of luabpf or of another tool; hostile bytes are refused with a text in err:
 * -EBADMSG not pprof or damaged, -EINVAL pprof that makes no sense here, -E2BIG larger than the
 * bounds (256 MiB unpacked, 1 GiB in memory), -ENOMEM, or what reading the file gave. `name` is for
 * the text.
 */
int pprof_read(const void *buf, size_t len, const char *name, struct prof **out, struct error *err);
int pprof_read_file(FILE *in, const char *name, struct prof **out, struct error *err);

#endif
