/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line: parsed once, then const. Only cli_help() prints. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdio.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "options.h"

enum exit_code {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_LOST = 3,	    /* more than --max-lost */
	EXIT_UNCOVERED = 4, /* less than --fail-under */
};

/*
 * Reads `argv` and, for the default of -jp's OUTPUT, LUAJIT_PROFILEFILE. Strings of `argv` must
 * outlive the options. Returns 0, -EINVAL for a usage error that `err` describes, or -ENOMEM.
 */
int cli_parse(int argc, char **argv, struct options **out, struct error *err);
void options_free(struct options **opts);

#define __options __cleanup(options_free)

void cli_help(FILE *to);

#endif
