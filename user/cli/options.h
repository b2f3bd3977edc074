/* SPDX-License-Identifier: BSD-2-Clause */
/* A command line as it was parsed: const from then on. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/words.h"
#include "out/jitp_options.h"
#include "out/sections.h"
#include "out/out.h"

enum verb {
	VERB_RECORD,
	VERB_REPORT,
	VERB_DOCTOR,
	VERB_PS,
	VERB_COUNT,
	VERB_TRACE,
	VERB_TRACES,
	VERB_HELP,
	VERB_VERSION
};

/* trace: the outputs' paths besides -o, "-" is standard output; NULL: none */
struct trace_options {
	const char *from; /* a trace file, in place of a command */
	const char *raw, *lcov, *cobertura, *chrome, *annotate;
	int64_t fail_under_ppm; /* -1: do not judge */
};

struct options {
	enum verb verb;

	/* record, count, traces: exactly one of pids and command; report: input; doctor: pids or none */
	pid_t *pids; /* no pid twice */
	size_t npids;
	bool wait;	/* for Lua in one of pids */
	bool no_follow; /* pids: their new children are not profiled */
	bool children;	/* pids: their present children are profiled, too */
	bool all;	/* processes that run Lua */
	/* record --all, ps: those that match one of each kind that is given */
	struct words exes, comms, cgroups; /* none of them empty */
	uid_t *users;
	size_t nusers;
	bool narrowed;	/* any is given */
	char **command; /* NULL-terminated, points into argv; NULL: none */
	const char *input;
	bool json;	      /* ps, traces, count of a command: no table */
	bool has_source_user; /* report: root opens source files as source_user */
	uid_t source_user;

	/* The outputs' paths; "-" is standard output. No two of them are the same. */
	bool jitp;			  /* write a jit.p report */
	struct jitp_options jitp_options; /* of "f" when none were given */
	const char *jitp_output;
	const char *zone_from;		 /* module whose table has the zones; NULL: none */
	enum sections_by by;		 /* of the report; and root frames of folded stacks */
	const char *output;		 /* NULL: none */
	const struct out_format *format; /* NULL when output is */
	const char *stats;		 /* NULL: none */
	const char *metrics;		 /* NULL: none; %t is nothing special in it */

	struct trace_options trace;

	uint64_t period_ns;   /* CPU time between two samples, never 0 */
	uint64_t duration_ns; /* 0: until a signal or the end of the targets */
	uint64_t every_ns;    /* 0: one profile; else the paths may have %t */
	int64_t max_lost_ppm; /* -1: do not judge */
	double max_slowdown;  /* count -p: of the process; 1 or more */
	bool verbose;
	bool quiet;

	/* private to cli/cli.c: the storage of the strings above, and the options seen */
	char **args;
	char *jitp_text; /* -jp's OPTIONS, as given, and after its end OUTPUT */
	uint64_t seen;
};

#endif
