// SPDX-License-Identifier: BSD-2-Clause
/* count -p: attaches probes to a process, says what they cost it, counts, and prints a table. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/caps.h"
#include "base/cleanup.h"
#include "base/outfile.h"
#include "base/signals.h"
#include "base/uses.h"
#include "cmds.h"
#include "count_command.h"
#include "output.h"
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

/* Adds a sentence if n calls are in no row. */
static int add_uncounted(struct call_table *table, uint64_t n, const char *why)
{
	char sentence[128];

	snprintf(sentence, sizeof(sentence), "%" PRIu64 " calls %s", n, why);
	return n ? call_table_inexact(table, sentence) : 0;
}

/* Compiled code makes its calls without the interpreter. */
static int add_compiled(struct call_table *table, const struct call_counts_result *r)
{
	char sentence[256];

	snprintf(
		sentence, sizeof(sentence),
		"LuaJIT's compiler is on: calls in compiled code are not counted, in which %.0f %% "
		"of the time went by; luajit -joff, or jit.off(), has all",
		100 * r->in_traces);
	return r->compiled ? call_table_inexact(table, sentence) : 0;
}

#define IDLE_NS 1000000 /* CPU time of a process that did nothing */

static int add_limits(struct call_table *table, const struct call_counts_result *r)
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
	int ret = add_compiled(table, r);

	if (!ret && r->unseen && r->cpu_ns > IDLE_NS)
		ret = call_table_inexact(table,
					 "LuaJIT was not seen in the interpreter, but may have run "
					 "compiled code: calls there are not counted");
	if (!ret && r->other_vm)
		ret = call_table_inexact(table,
					 "the process has loaded another Lua since: its calls are "
					 "not counted");
	if (!ret && r->unread_code)
		ret = call_table_inexact(table,
					 "the process mapped code just before the end: if that was "
					 "a Lua, its calls are not counted");
	for (size_t i = 0; !ret && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		ret = add_uncounted(table, kinds[i].n, kinds[i].why);
	return ret;
}

static void print_summary(const struct options *opts, const struct call_table *table,
			  const struct call_counts_result *r)
{
	print_end(opts, r);
	call_table_summary(table, stderr);
	fprintf(stderr, "luabpf: counted for %.2f s, in which the process had %.2f s of CPU time",
		(double)r->duration_ns / 1e9, (double)r->cpu_ns / 1e9);
	if (r->cost.slowdown)
		fprintf(stderr, ", %s%.1f times what it takes without, at about %.1f us a call",
			more_than(&r->cost), r->cost.slowdown, r->cost.hit_ns / 1e3);
	fputc('\n', stderr);
}

static int report(const struct options *opts, struct call_counts *calls, struct outfile **out,
		  struct error *err)
{
	__cleanup(call_table_free) struct call_table table = {};
	struct call_counts_result result;
	int ret = call_counts_finish(calls, &result, err);

	if (ret)
		return ret;
	ret = call_table_add_prof(&table, result.prof);
	if (!ret)
		ret = add_limits(&table, &result);
	if (ret)
		return error_set(err, ret, "out of memory");
	ret = (opts->json ? call_table_json : call_table_write)(&table, outfile_stream(*out));
	ret = outputs_finish(out, ret, err);
	if (!ret && !opts->quiet)
		print_summary(opts, &table, &result);
	return ret;
}

static int run(const struct options *opts, struct error *err)
{
	const struct call_counts_options o = {
		.pid = opts->pids[0],
		.duration_ns = opts->duration_ns,
		.max_slowdown = opts->max_slowdown,
	};
	__cleanup(call_counts_free) struct call_counts *calls = NULL;
	__outfile struct outfile *out = NULL;
	struct call_counts_cost cost;
	bool over = false;
	int ret, stop;

	ret = outfile_open(opts->output ? opts->output : "-", &out, err);
	if (!ret)
		ret = caps_keep(USE_TARGETS | USE_LOADING | USE_COST | outputs_use(opts), err);
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
	return ret ? ret : report(opts, calls, &out, err);
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
