/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line: parsed once, then const. Prints nothing but the help it is asked for. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "out/jitp.h"
#include "out/out.h"

enum exit_code {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_LOST = 3, /* more than --max-lost */
};

enum verb { VERB_RECORD, VERB_REPORT, VERB_DOCTOR, VERB_HELP, VERB_VERSION };

struct options {
	enum verb verb;

	/* record: exactly one of pids and command; report: input; doctor: pids or none */
	pid_t *pids; /* no pid twice */
	size_t npids;
	bool wait;	/* for Lua in one of pids */
	char **command; /* NULL-terminated, points into argv; NULL: none */
	const char *input;
	bool has_source_user; /* report: as whom root opens source files */
	uid_t source_user;

	/* What is written where; "-" is standard output. No two of them are the same. */
	bool jitp;			  /* write a jit.p report */
	struct jitp_options jitp_options; /* of "f" when none were given */
	const char *jitp_output;
	const char *output;		 /* NULL: none */
	const struct out_format *format; /* NULL when output is */
	const char *stats;		 /* NULL: none */

	uint64_t period_ns;   /* CPU time between two samples, never 0 */
	uint64_t duration_ns; /* 0: until told to stop, or the targets end */
	int64_t max_lost_ppm; /* -1: do not judge */
	bool verbose;
	bool quiet;

	/* cli/cli.c's own: what the strings above point into, and which options were given */
	char **args;
	char *jitp_text; /* -jp's OPTIONS, as given, and after its end OUTPUT */
	unsigned seen;
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
