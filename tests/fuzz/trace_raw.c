// SPDX-License-Identifier: BSD-2-Clause
/* Any bytes as a trace file: it is read, and all reports are made of it. */
#include <stdio.h>
#include <stdlib.h>

#include "trace/chrome.h"
#include "trace/raw_read.h"
#include "trace/report.h"
#include "trace/stats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STATES 8

static struct stats *states[STATES];
static struct chrome *charts[STATES];
static size_t nstates;
static struct program *program;
static FILE *null;

static int put(void *ctx, const struct trace_action *action)
{
	size_t i = (size_t)ctx;
	int ret = stats_put(states[i], action);

	return ret ? ret : chrome_put(charts[i], action);
}

static int sink_of(void *ctx, struct trace_sink *out)
{
	(void)ctx;
	if (nstates == STATES)
		return -1;
	if (stats_new(program, &states[nstates]) ||
	    chrome_new(null, program, 1, 1, &charts[nstates]))
		abort();
	*out = (struct trace_sink){.put = put, .ctx = (void *)nstates++};
	return 0;
}

static void report(void)
{
	__coverage struct coverage coverage = {};

	for (size_t i = 0; i < nstates; i++) {
		stats_finish(states[i]);
		chrome_finish(charts[i]);
		if (stats_merge(states[i]))
			abort();
	}
	if (coverage_new(program, &coverage) || report_summary(program, &coverage, null) ||
	    report_lcov(&coverage, null) || report_cobertura(&coverage, 0, null))
		abort();
	if (coverage.hit > coverage.lines || coverage.called > coverage.functions)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct raw_counts counts = {};
	FILE *in;

	if (!null)
		null = fopen("/dev/null", "w");
	in = size ? fmemopen((void *)data, size, "r") : NULL;
	if (!in)
		return 0;
	if (!null || program_new(&program))
		abort();
	if (!raw_read(in, program, sink_of, NULL, &counts) && counts.bad > counts.records)
		abort();
	report();
	while (nstates--) {
		stats_free(&states[nstates]);
		chrome_free(&charts[nstates]);
	}
	nstates = 0;
	program_free(&program);
	fclose(in);
	return 0;
}
