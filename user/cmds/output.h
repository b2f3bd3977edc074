/* SPDX-License-Identifier: BSD-2-Clause */
/* What record and report have in common: the files they were asked to write, and the rendering. */
#ifndef CMDS_OUTPUT_H
#define CMDS_OUTPUT_H

#include "base/error.h"
#include "base/outfile.h"
#include "cli/cli.h"
#include "out/source.h"
#include "prof/prof.h"

struct outputs {
	struct outfile *jitp;  /* NULL: not asked for */
	struct outfile *file;  /* -o */
	struct outfile *stats; /* --stats: the caller writes it */
};

/*
 * Opens all of them, so that a path that cannot be written is told before work begins. Also refuses
 * to write bytes to a terminal.
 */
int outputs_open(const struct options *opts, struct outputs *out, struct error *err);

/* Tells on standard error which letters of -jp mean nothing, as jit.p is silent about them. */
void outputs_warn(const struct options *opts);

/*
 * Renders the profile into jitp and file, and commits these two. Goes on after an error; the first
 * counts. `source` opens what -jp=a annotates.
 */
int outputs_write(const struct options *opts, struct outputs *out, const struct prof *prof,
		  const struct source *source, struct error *err);

/* Aborts what was not committed. */
void outputs_close(struct outputs *out);

#define __outputs __cleanup(outputs_close)

#endif
