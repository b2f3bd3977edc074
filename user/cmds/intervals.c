// SPDX-License-Identifier: BSD-2-Clause
#include "intervals.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cmds.h"
#include "output.h"
#include "record/metrics.h"
#include "record/summary.h"

void interval_stamp(uint64_t time_ns, unsigned int nth, char stamp[INTERVAL_STAMP])
{
	time_t seconds = (time_t)(time_ns / 1000000000ULL);
	struct tm tm;
	size_t n;

	gmtime_r(&seconds, &tm);
	n = strftime(stamp, INTERVAL_STAMP, "%Y%m%dT%H%M%SZ", &tm);
	if (nth > 1)
		snprintf(stamp + n, INTERVAL_STAMP - n, "_%u", nth);
}

void interval_name(const char *pattern, const char *stamp, struct text *out)
{
	const char *t;

	for (; (t = strstr(pattern, "%t")); pattern = t + 2) {
		text_put(out, pattern, (size_t)(t - pattern));
		text_puts(out, stamp);
	}
	text_puts(out, pattern);
}

/* Sets the stamp of the interval that began then. */
static void next_stamp(struct interval_outputs *iv, uint64_t time_ns)
{
	char stamp[INTERVAL_STAMP];
	size_t n;

	interval_stamp(time_ns, 1, stamp);
	n = strlen(stamp);
	iv->same = strncmp(stamp, iv->stamp, n) ? 1 : iv->same + 1;
	interval_stamp(time_ns, iv->same, iv->stamp);
}

/* The outputs of one interval, with the text of their paths. */
struct named {
	struct options opts;
	struct text jitp, output, stats;
};

static void named_free(struct named *n)
{
	text_free(&n->jitp);
	text_free(&n->output);
	text_free(&n->stats);
}

static const char *name_of(const char *pattern, const char *stamp, struct text *out)
{
	if (!pattern)
		return NULL;
	interval_name(pattern, stamp, out);
	return text_str(out);
}

static int name_outputs(const struct options *opts, const char *stamp, struct named *n)
{
	*n = (struct named){.opts = *opts};
	n->opts.jitp_output = name_of(opts->jitp_output, stamp, &n->jitp);
	n->opts.output = name_of(opts->output, stamp, &n->output);
	n->opts.stats = name_of(opts->stats, stamp, &n->stats);
	return text_err(&n->jitp) || text_err(&n->output) || text_err(&n->stats) ? -ENOMEM : 0;
}

int intervals_check(const struct options *opts, struct error *err)
{
	__cleanup(named_free) struct named named = {};
	__outputs struct outputs outputs = {};
	char stamp[INTERVAL_STAMP];
	int r;

	interval_stamp(clock_ns(CLOCK_REALTIME), 1, stamp);
	r = name_outputs(opts, stamp, &named);
	return r ? error_set(err, r, "out of memory") : outputs_open(&named.opts, &outputs, err);
}

int intervals_check_metrics(const struct options *opts, struct error *err)
{
	struct outfile *file __outfile = NULL;

	return opts->metrics ? outfile_open_ready(opts->metrics, &file, err) : 0;
}

/* Writes one of the outputs: only that one is in opts. */
static int write_output(const struct interval_outputs *iv, const struct options *opts,
			struct session *session, const struct summary *summary, struct error *err)
{
	__outputs struct outputs outputs = {};
	int r = outputs_open(opts, &outputs, err);

	if (!r)
		r = outputs_write(opts, &outputs, session_prof(session), &iv->source, err);
	if (r || !outputs.stats)
		return r;
	r = summary_json(summary, outfile_stream(outputs.stats));
	return outputs_finish(&outputs.stats, r, err);
}

/*
 * Writes each output separately, so that one failure does not affect the others. -EPIPE is returned
 * if no profile or report is written to a file.
 */
static int write_outputs(struct interval_outputs *iv, const struct named *named,
			 struct session *session, const struct summary *summary, struct error *err)
{
	const struct options *opts = &named->opts;
	bool failed = false;

	for (int i = 0; i < 3; i++) {
		struct options one = *opts;
		struct error why = {};
		int r;

		one.jitp = i == 0 && opts->jitp;
		one.output = i == 1 ? opts->output : NULL;
		one.stats = i == 2 ? opts->stats : NULL;
		r = write_output(iv, &one, session, summary, &why);
		if (r == -EPIPE && !outputs_have_file(opts)) {
			*err = why;
			return r;
		}
		if (r)
			cmd_error(r, &why);
		failed |= r != 0;
	}
	iv->written += !failed;
	iv->unwritten += failed;
	if (!failed)
		iv->last_ns = clock_ns(CLOCK_REALTIME);
	return failed ? 1 : 0;
}

static int write_interval(struct interval_outputs *iv, struct session *session,
			  const struct summary *run, struct error *err)
{
	__cleanup(named_free) struct named named = {};
	struct session_stats stats;
	struct summary summary;
	int r;

	session_interval(session, &stats);
	summary_make(&stats, session_prof(session), &summary);
	summary.sizes = run->sizes;
	summary.run = run;
	next_stamp(iv, stats.time_ns);
	r = name_outputs(iv->opts, iv->stamp, &named);
	if (r)
		return error_set(err, r, "out of memory");
	r = write_outputs(iv, &named, session, &summary, err);
	if (r < 0)
		return r;
	if (r || !iv->opts->quiet)
		fprintf(stderr, "luabpf: %s: %.1f s, %" PRIu64 " samples, lost %" PRIu64 "%s\n",
			iv->stamp, (double)stats.wall_ns / 1e9, summary.resolved, summary.lost,
			r ? ": not all of it was written" : "");
	return 0;
}

static int write_metrics(const struct interval_outputs *iv, struct session *session,
			 const struct summary *run, struct error *err)
{
	struct outfile *file __outfile = NULL;
	struct metrics metrics = {
		.run = run,
		.profiles = iv->written,
		.unwritten_profiles = iv->unwritten,
		.unwritten_metrics = iv->unwritten_metrics,
		.last_profile_ns = iv->last_ns,
	};
	const char *name;
	int r;

	while (metrics.nvms < LB_BUILDS && session_limit(session, metrics.nvms, &name))
		metrics.vms[metrics.nvms++] = name;
	r = outfile_open_ready(iv->opts->metrics, &file, err);
	if (r)
		return r;
	r = metrics_write(&metrics, outfile_stream(file));
	return outputs_finish(&file, r, err);
}

void intervals_metrics(struct interval_outputs *iv, struct session *session,
		       const struct summary *run)
{
	struct error err = {};
	int r = iv->opts->metrics ? write_metrics(iv, session, run, &err) : 0;

	iv->unwritten_metrics += r != 0;
	if (r)
		cmd_error(r, &err);
}

int intervals_write(struct interval_outputs *iv, struct session *session, struct prof **total,
		    struct summary *run, struct error *err)
{
	struct session_sizes sizes;
	struct session_stats stats;
	int r = session_total(session, total);

	if (r)
		return error_set(err, r, "out of memory");
	session_stats(session, &stats);
	summary_make(&stats, *total, run);
	session_sizes(session, &sizes);
	run->sizes = &sizes;
	if (iv->opts->every_ns)
		r = write_interval(iv, session, run, err);
	if (!r)
		intervals_metrics(iv, session, run);
	run->sizes = NULL;
	return r;
}

int intervals_tick(void *arg, struct session *session, struct error *err)
{
	__cleanup(prof_free) struct prof *total = NULL;
	struct summary run;

	return intervals_write(arg, session, &total, &run, err);
}
