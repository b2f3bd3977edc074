// SPDX-License-Identifier: BSD-2-Clause
/* count -p: attaches probes to a process, says what they cost it, counts, and prints a table. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/caps.h"
#include "base/signals.h"
#include "base/uses.h"
#include "cmds.h"
#include "count_command.h"
#include "out/call_table.h"
#include "record/call_counts.h"

static const char *more_than(const struct call_counts_cost *cost)
{
	return cost->slowdown >= COUNTS_SLOWDOWN_MOST ? "more than " : "";
}

static void print_cost(const struct options *opts, const struct call_counts *calls,
		       const struct call_counts_cost *cost)
{
	char builds[256];

	call_counts_describe(calls, builds, sizeof(builds));
	fprintf(stderr,
		"luabpf: counting calls of process %d (%s): a call costs it about %.1f us here",
		(int)opts->pids[0], builds, cost->hit_ns / 1e3);
	if (cost->slowdown)
		fprintf(stderr,
			"; at %.0f calls a second of its CPU time it runs %s%.1f times as long",
			cost->hits, more_than(cost), cost->slowdown);
	else
		fprintf(stderr, "; it has not run yet");
	fprintf(stderr, "; stops beyond %g times", opts->max_slowdown);
	if (opts->duration_ns)
		fprintf(stderr, ", or after %g s\n", (double)opts->duration_ns / 1e9);
	else
		fprintf(stderr, "; Ctrl-C stops\n");
}

static void print_end(const struct options *opts, const struct call_counts_result *r)
{
	switch (r->end) {
	case COUNTS_SLOWDOWN:
		fprintf(stderr,
			"luabpf: stopped: process %d ran %s%.1f times as long, more than "
			"--max-slowdown %g: the counts are those of the %.2f s before\n",
			(int)opts->pids[0], more_than(&r->last), r->last.slowdown,
			opts->max_slowdown, (double)r->duration_ns / 1e9);
		break;
	case COUNTS_EXEC:
		fprintf(stderr, "luabpf: stopped: process %d has called exec\n",
			(int)opts->pids[0]);
		break;
	case COUNTS_SIGNAL:
	case COUNTS_DURATION:
	case COUNTS_ENDED:
		break;
	}
}

/* Returns the calls that are in no row. */
static uint64_t uncounted(const struct call_counts_result *r)
{
	return r->nameless + r->misses[LB_CALL_FULL] + r->misses[LB_CALL_UNREADABLE] +
	       r->misses[LB_CALL_BUSY] + r->dropped;
}

static void print_uncounted(const struct call_counts_result *r)
{
	const struct {
		uint64_t n;
		const char *why;
	} kinds[] = {
		{r->nameless, "of functions whose names are not known"},
		{r->misses[LB_CALL_FULL], "of more functions than are counted"},
		{r->misses[LB_CALL_UNREADABLE], "of functions that could not be read"},
		{r->misses[LB_CALL_BUSY] + r->dropped, "missed, as too many came at once"},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].n)
			fprintf(stderr, "luabpf: %" PRIu64 " calls %s\n", kinds[i].n, kinds[i].why);
}

/* Compiled code makes its calls without the interpreter. */
static void print_compiled(const struct call_counts_result *r)
{
	fprintf(stderr,
		"luabpf: LuaJIT's compiler is on: calls in compiled code are not counted, in which "
		"%.0f %% of the time went by; luajit -joff, or jit.off(), has all\n",
		100 * r->in_traces);
}

static void print_summary(const struct options *opts, const struct call_counts_result *r)
{
	print_end(opts, r);
	fprintf(stderr, "luabpf: %" PRIu64 " calls in %.2f s, %s", r->counted,
		(double)r->duration_ns / 1e9,
		r->compiled	? "not all of them"
		: !uncounted(r) ? "exact"
				: "");
	if (uncounted(r))
		fprintf(stderr, "%s%" PRIu64 " more not by function", r->compiled ? "; " : "",
			uncounted(r));
	fprintf(stderr, "; %.2f s of CPU time", (double)r->cpu_ns / 1e9);
	if (r->cost.slowdown)
		fprintf(stderr, ", %s%.1f times what it takes without, at about %.1f us a call",
			more_than(&r->cost), r->cost.slowdown, r->cost.hit_ns / 1e3);
	fputc('\n', stderr);
	print_uncounted(r);
	if (r->compiled)
		print_compiled(r);
}

static int report(const struct options *opts, struct call_counts *calls, struct error *err)
{
	__attribute__((cleanup(call_table_free))) struct call_table table = {};
	struct call_counts_result result;
	int ret = call_counts_finish(calls, &result, err);

	if (ret)
		return ret;
	ret = call_table_add_prof(&table, result.prof);
	if (!ret)
		ret = call_table_write(&table, stdout);
	if (!ret && fflush(stdout))
		ret = -errno;
	if (ret)
		return error_set(err, ret, "standard output: %s", strerror(-ret));
	if (!opts->quiet)
		print_summary(opts, &result);
	return 0;
}

static int run(const struct options *opts, struct error *err)
{
	const struct call_counts_options o = {
		.pid = opts->pids[0],
		.duration_ns = opts->duration_ns,
		.max_slowdown = opts->max_slowdown,
	};
	__attribute__((cleanup(call_counts_free))) struct call_counts *calls = NULL;
	struct call_counts_cost cost;
	bool over = false;
	int ret, stop;

	ret = caps_keep(USE_TARGETS | USE_LOADING | USE_COST, err);
	if (!ret)
		ret = call_counts_open(&o, &calls, err);
	if (ret)
		return ret;
	ret = signals_catch(&stop);
	if (ret)
		return error_set(err, ret, "signals: %s", strerror(-ret));
	ret = call_counts_estimate(calls, stop, &cost, &over, err);
	if (!ret && !opts->quiet)
		print_cost(opts, calls, &cost);
	if (!ret && !over)
		ret = call_counts_run(calls, err);
	return ret ? ret : report(opts, calls, err);
}

int cmd_count(const struct options *opts)
{
	struct error err = {};
	int ret, code = EXIT_DONE;

	ret = opts->command ? count_command(opts, &code, &err) : run(opts, &err);
	if (!ret)
		return code;
	cmd_error(ret, &err);
	return EXIT_FAILED;
}
