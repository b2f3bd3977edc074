/* SPDX-License-Identifier: BSD-2-Clause */
/* The table that drives both the parser (cli/cli.c) and the help (cli/help.c). */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stddef.h>

#include "base/error.h"
#include "options.h"

enum {
	CLI_RECORD = 1 << VERB_RECORD,
	CLI_REPORT = 1 << VERB_REPORT,
	CLI_DOCTOR = 1 << VERB_DOCTOR,
	CLI_PS = 1 << VERB_PS,
	CLI_COUNT = 1 << VERB_COUNT,
	CLI_TRACE = 1 << VERB_TRACE,
	CLI_TRACES = 1 << VERB_TRACES,
	CLI_ANY =
		CLI_RECORD | CLI_REPORT | CLI_DOCTOR | CLI_PS | CLI_COUNT | CLI_TRACE | CLI_TRACES,
	CLI_REPEATS = 1 << 16,
};

enum cli_row {
	CLI_PIDS,
	CLI_CHILDREN,
	CLI_NO_FOLLOW,
	CLI_ALL,
	CLI_EXE,
	CLI_COMM,
	CLI_CGROUP,
	CLI_USER,
	CLI_WAIT,
	CLI_JITP,
	CLI_BY,
	CLI_ZONE_FROM,
	CLI_OUTPUT,
	CLI_FORMAT,
	CLI_RATE,
	CLI_DURATION,
	CLI_EVERY,
	CLI_STATS,
	CLI_METRICS,
	CLI_MAX_LOST,
	CLI_MAX_SLOWDOWN,
	CLI_SOURCE_USER,
	CLI_JSON,
	CLI_RAW,
	CLI_FROM,
	CLI_ANNOTATE,
	CLI_LCOV,
	CLI_COBERTURA,
	CLI_CHROME,
	CLI_FAIL_UNDER,
	CLI_VERBOSE,
	CLI_QUIET,
	CLI_HELP,
	CLI_VERSION,
	CLI_NROWS,
};

struct option_row {
	const char *name; /* long name */
	char letter;	  /* 0: long only */
	const char *arg; /* the value's name in the help; NULL: takes none; "[...]": may take one */
	unsigned flags;	 /* the verbs it goes with; CLI_REPEATS */
	/* checks and stores the value; NULL: the option only sets a flag */
	int (*set)(struct options *opts, const char *value, struct error *err);
	const char *help;
	size_t flag; /* offset of a bool in struct options */
};

extern const struct option_row cli_rows[CLI_NROWS];

/* -p without a value: -EINVAL. */
int cli_no_pid(struct error *err);

#endif
