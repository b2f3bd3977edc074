/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by record and report: opens the output files and renders into them. */
#ifndef CMDS_OUTPUT_H
#define CMDS_OUTPUT_H

#include "base/error.h"
#include "base/outfile.h"
#include "cli/cli.h"
#include "out/source.h"
#include "prof/prof.h"

struct outputs {
	struct outfile *jitp;  /* NULL: not requested */
	struct outfile *file;  /* -o */
	struct outfile *stats; /* --stats: the caller writes it */
};

/*
 * Opens all of them, so that an unwritable path is an error before work begins. Refuses to write a
 * binary format to a terminal.
 */
int outputs_open(const struct options *opts, struct outputs *out, struct error *err);

/* Returns the uses (base/uses.h) of a run that writes these outputs and reads what they show. */
unsigned outputs_use(const struct options *opts);

/* True if an output names lines. */
bool outputs_show_lines(const struct options *opts);

/* True if an output is a file: the end of standard output's reader does not end the recording. */
bool outputs_have_file(const struct options *opts);

/* Warns on standard error of letters of -jp that jit.p ignores silently. */
void outputs_warn(const struct options *opts);

/*
 * Renders the profile into jitp and file, and commits both. Continues after an error and returns
 * the first. `source` opens the files that -jp=a annotates.
 */
int outputs_write(const struct options *opts, struct outputs *out, const struct prof *prof,
		  const struct source *source, struct error *err);

/*
 * Commits a file into which was rendered, with this result: returns the error of a failed write. If
 * the renderer failed without one, aborts the file and returns the renderer's.
 */
int outputs_finish(struct outfile **file, int rendered, struct error *err);

/* Aborts the files that were not committed. */
void outputs_close(struct outputs *out);

#define __outputs __cleanup(outputs_close)

#endif
