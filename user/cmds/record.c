// SPDX-License-Identifier: BSD-2-Clause
/* record: opens the outputs, samples, writes the outputs and prints a summary of how the samples
 * ended. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/wait.h>

#include "base/caps.h"
#include "base/clock.h"
#include "base/signals.h"
#include "base/text.h"
#include "base/uses.h"
#include "cmds.h"
#include "intervals.h"
#include "narrow.h"
#include "output.h"
#include "doctor/doctor.h"
#include "record/session.h"
#include "record/summary.h"
#include "proc/process.h"

#define BANNER_PIDS 8 /* named in the first line */

static void banner(const struct options *opts, const struct session *session)
{
	pid_t roots[BANNER_PIDS];
	size_t n = session_roots(session, roots, BANNER_PIDS);
	__text struct text what = {0};
	char builds[256];

	session_describe(session, builds, sizeof(builds));
	if (opts->all)
		text_puts(&what, opts->narrowed ? "all processes that match" : "all processes");
	else if (opts->command)
		text_put_clean(&what, opts->command[0], strlen(opts->command[0]));
	else if (n > BANNER_PIDS)
		text_printf(&what, "%zu processes", n);
	else
		text_puts(&what, n > 1 ? "processes " : "process ");
	if (opts->npids && n <= BANNER_PIDS)
		process_put_pids(&what, roots, n);
	fprintf(stderr, "luabpf: sampling %s", text_str(&what));
	fprintf(stderr, "%s%s%s", *builds ? " (" : "", builds, *builds ? ")" : "");
	fprintf(stderr, " at %g Hz of CPU time", 1e9 / (double)opts->period_ns);
	if (opts->every_ns)
		fprintf(stderr, ", a profile every %g s", (double)opts->every_ns / 1e9);
	if (opts->duration_ns)
		fprintf(stderr, " for %g s\n", (double)opts->duration_ns / 1e9);
	else
		fprintf(stderr, "; Ctrl-C stops\n");
}

static bool is_named(const struct options *opts, pid_t pid)
{
	for (size_t i = 0; i < opts->npids; i++)
		if (opts->pids[i] == pid)
			return true;
	return false;
}

/* Prints a named master's workers that are not sampled: they do the work. */
static void print_workers(const struct options *opts, pid_t master)
{
	pid_t workers[PROCESS_WORKERS];
	size_t all = process_workers(master, workers, PROCESS_WORKERS), n = 0;
	__text struct text pids = {0};

	for (size_t i = 0; i < all; i++)
		if (!is_named(opts, workers[i]))
			workers[n++] = workers[i];
	process_put_pids(&pids, workers, n);
	if (n)
		fprintf(stderr,
			"luabpf: process %d has children that run the same program and are not "
			"sampled (%s): add --children\n",
			(int)master, text_str(&pids));
}

/* Prints one line on standard error. Paths are the target's: hostile bytes. */
static void print_module(void *arg, const struct doctor_module *module)
{
	__text struct text line = {0};

	text_printf(&line, "luabpf: pid %d: ", *(const pid_t *)arg);
	doctor_module_text(module, &line);
	fprintf(stderr, "%s\n", text_str(&line));
}

static void on_seen(void *arg, pid_t pid, const struct vm_build *build, const struct lb_module *at)
{
	(void)arg;
	doctor_module(pid, build, at, print_module, &pid);
}

/* -v: prints each VM, its addresses and the evidence for it. */
static void print_modules(const struct session *session)
{
	static pid_t pids[LB_PROCS];
	size_t n = session_roots(session, pids, LB_PROCS);

	for (size_t i = 0; i < n && i < LB_PROCS; i++) {
		struct error err = {};
		int r = doctor_modules(pids[i], print_module, (void *)&pids[i], &err);

		if (r && r != -ESRCH) /* it has ended meanwhile */
			cmd_error(r, &err);
	}
}

static void print_limits(const struct session *session)
{
	const char *limit, *build, *unsampled = session_unsampled(session);
	__text struct text line = {0};

	text_put_clean(&line, unsampled, strlen(unsampled)); /* has a path of the target's */
	if (*unsampled)
		fprintf(stderr, "luabpf: %s\n", text_str(&line));
	for (uint32_t i = 0; (limit = session_limit(session, i, &build)); i++)
		if (*limit)
			fprintf(stderr, "luabpf: %s: %s\n", build, limit);
}

static int write_stats(struct outputs *out, const struct summary *summary, struct error *err)
{
	int ret;

	if (!out->stats)
		return 0;
	ret = summary_json(summary, outfile_stream(out->stats));
	return outputs_finish(&out->stats, ret, err);
}

/* Returns "wrote FILE, FILE", or NULL: standard output is not named. */
static const char *written(const struct options *opts, char *buf, size_t size)
{
	const char *report =
		opts->jitp && strcmp(opts->jitp_output, "-") ? opts->jitp_output : NULL;
	const char *file = opts->output && strcmp(opts->output, "-") ? opts->output : NULL;

	if (!report && !file)
		return NULL;
	snprintf(buf, size, "wrote %s%s%s", file ? file : "", file && report ? ", " : "",
		 report ? report : "");
	return buf;
}

/* Returns the exit code of a run without errors: EXIT_LOST beyond --max-lost, else the command's
 * status. */
static int verdict(const struct options *opts, struct session *session,
		   const struct summary *summary)
{
	uint64_t lost = summary_lost_ppm(summary);
	int status;

	if (opts->max_lost_ppm >= 0 && lost > (uint64_t)opts->max_lost_ppm) {
		fprintf(stderr, "luabpf: lost %.4f %% of the samples, more than --max-lost %g\n",
			(double)lost / 1e4, (double)opts->max_lost_ppm / 1e4);
		return EXIT_LOST;
	}
	if (!opts->command)
		return EXIT_DONE;
	status = session_wait_command(session); /* -d may end before it */
	if (status < 0)
		return EXIT_FAILED;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void print_summary(const struct options *opts, const struct session *session,
			  const struct summary *summary, const char *written)
{
	if (!opts->quiet) {
		print_limits(session);
		summary_print(summary, written, stderr);
		summary_print_lines(summary->prof, outputs_show_lines(opts), stderr);
		if (summary->zones)
			summary_print_zones(summary, opts->zone_from, stderr);
	}
	if (opts->verbose)
		summary_print_ends(summary, stderr);
}

static bool records_zones(const struct options *opts)
{
	return (opts->jitp && opts->jitp_options.zones) || opts->by == SECTIONS_ZONE ||
	       opts->zone_from;
}

/* After the sampling: writes the outputs and returns the exit code in *code. */
static int finish(const struct options *opts, struct session *session, struct outputs *out,
		  struct interval_outputs *iv, int *code, struct error *err)
{
	struct session_sizes sizes;
	struct session_stats stats;
	struct session_zones zones;
	struct summary summary;
	char names[1024];
	int ret, more;

	session_stats(session, &stats);
	session_sizes(session, &sizes);
	summary_make(&stats, session_prof(session), &summary);
	summary.sizes = &sizes;
	session_zones(session, &zones);
	summary.zones = records_zones(opts) ? &zones : NULL;
	ret = outputs_write(opts, out, session_prof(session), &iv->source, err);
	more = write_stats(out, &summary, ret ? NULL : err);
	intervals_metrics(iv, session, &summary);
	print_summary(opts, session, &summary, ret ? NULL : written(opts, names, sizeof(names)));
	if (ret || more)
		return ret ? ret : more;
	*code = iv->unwritten_metrics ? EXIT_FAILED : verdict(opts, session, &summary);
	return 0;
}

/* With --every: writes the last interval. The summary is that of the whole run. */
static int finish_intervals(const struct options *opts, struct session *session,
			    struct interval_outputs *iv, int *code, struct error *err)
{
	__cleanup(prof_free) struct prof *total = NULL;
	struct session_zones zones;
	struct summary summary;
	char wrote[64];
	int ret = intervals_write(iv, session, &total, &summary, err);

	if (ret)
		return ret;
	session_zones(session, &zones);
	summary.zones = records_zones(opts) ? &zones : NULL;
	snprintf(wrote, sizeof(wrote), "%" PRIu64 " interval%s", iv->written + iv->unwritten,
		 iv->written + iv->unwritten == 1 ? "" : "s");
	print_summary(opts, session, &summary, wrote);
	if (iv->unwritten)
		fprintf(stderr, "luabpf: %" PRIu64 " of %s not written\n", iv->unwritten, wrote);
	*code = iv->unwritten || iv->unwritten_metrics ? EXIT_FAILED
						       : verdict(opts, session, &summary);
	return 0;
}

#define METRICS_NS 10000000000ULL

static void set_ticks(const struct options *opts, struct session *session,
		      struct interval_outputs *iv, int hangup)
{
	const struct session_ticks ticks = {
		.every_ns = opts->every_ns  ? opts->every_ns
			    : opts->metrics ? METRICS_NS
					    : 0,
		.rotate = opts->every_ns,
		.hangup = hangup,
		.fn = intervals_tick,
		.arg = iv,
	};

	session_set_ticks(session, &ticks);
}

static void say_waits(void *arg)
{
	const struct options *opts = arg;
	__text struct text pids = {};

	process_put_pids(&pids, opts->pids, opts->npids);
	if (!opts->quiet)
		fprintf(stderr, "luabpf: process%s %s: no Lua yet; waits until %s loads it\n",
			opts->npids > 1 ? "es" : "", text_str(&pids),
			opts->npids > 1	  ? "one"
			: opts->no_follow ? "it"
					  : "it, or a process that it starts,");
}

static int wait_lua(const struct options *opts, struct session *session, struct error *err)
{
	int r = session_wait_lua(session, say_waits, (void *)opts, err);
	const char *unsampled = session_unsampled(session);
	__text struct text all = {};

	if (r != -ENODATA)
		return r;
	process_put_pids(&all, opts->pids, opts->npids);
	error_set(err, r, "process%s %s: ended without Lua", opts->npids > 1 ? "es" : "",
		  text_str(&all));
	return *unsampled ? error_remedy(err, r, "%s", unsampled) : r;
}

/* When the first of the targets started, or this recording: a source that was changed later may not be what they run. */
static uint64_t targets_start(const struct options *opts)
{
	uint64_t first = clock_ns(CLOCK_REALTIME), start;

	for (size_t i = 0; i < opts->npids; i++) {
		start = process_start_time(opts->pids[i]);
		if (start && start < first)
			first = start;
	}
	return first;
}

static int sample(const struct options *opts, struct session *session, struct outputs *out,
		  int hangup, int *code, struct error *err)
{
	struct interval_outputs iv = {
		.opts = opts,
		.source = {.open = session_open_source,
			   .ctx = session,
			   .since_ns = targets_start(opts)},
	};
	int ret, stop;

	if (opts->verbose) {
		print_modules(session);
		session_watch(session, on_seen, NULL);
	}
	ret = opts->wait ? wait_lua(opts, session, err) : 0;
	if (ret)
		return ret;
	set_ticks(opts, session, &iv, hangup);
	ret = signals_catch(&stop); /* before the banner: its reader may send a signal at once */
	if (ret)
		return error_set(err, ret, "signals: %s", strerror(-ret));
	if (!opts->quiet)
		banner(opts, session);
	for (size_t i = 0; i < opts->npids && !opts->quiet && !opts->children; i++)
		print_workers(opts, opts->pids[i]);
	ret = session_run(session, stop, err);
	if (ret)
		return ret;
	return opts->every_ns ? finish_intervals(opts, session, &iv, code, err)
			      : finish(opts, session, out, &iv, code, err);
}

/* Before the files of targets are looked into; session_run() gives up more. */
static int keep_rights(const struct session_options *what, struct error *err)
{
	return caps_keep(what->confine | USE_TARGETS | USE_LOADING | (what->cost ? USE_COST : 0),
			 err);
}

static int run(const struct options *opts, int *code, struct error *err)
{
	__cleanup(narrow_free) struct narrow narrow = {};
	const struct session_options what = {
		.pids = opts->pids,
		.npids = opts->npids,
		.may_lack = opts->wait,
		.follow = !opts->no_follow,
		.children = opts->children,
		.command = opts->command,
		.everywhere = opts->all,
		.narrow = opts->narrowed ? &narrow : NULL,
		.period_ns = opts->period_ns,
		.duration_ns = opts->duration_ns,
		.cost = opts->stats || opts->metrics || opts->verbose,
		.by_coroutine = opts->by == SECTIONS_COROUTINE,
		.zones = records_zones(opts),
		.zone_from = opts->zone_from,
		.sources = opts->jitp && opts->jitp_options.annotate,
		.confine = outputs_use(opts),
	};
	__cleanup(session_free) struct session *session = NULL;
	__outputs struct outputs out = {};
	int ret, hangup = -1;

	ret = narrow_of_options(opts, &narrow, err);
	if (ret)
		return ret;
	outputs_warn(opts);
	if (opts->every_ns && (ret = signals_catch_hangup(&hangup)))
		return error_set(err, ret, "signals: %s", strerror(-ret));
	ret = opts->every_ns ? intervals_check(opts, err) : outputs_open(opts, &out, err);
	if (!ret)
		ret = intervals_check_metrics(opts, err);
	if (!ret && !opts->command) /* it would inherit them */
		ret = keep_rights(&what, err);
	if (!ret)
		ret = session_open(&what, &session, err);
	return ret ? ret : sample(opts, session, &out, hangup, code, err);
}

int cmd_record(const struct options *opts)
{
	struct error err = {};
	int code = EXIT_FAILED;
	int ret;

	/* A command would inherit the raised limit. */
	if (!opts->command)
		caps_more_files();
	ret = run(opts, &code, &err);
	if (!ret)
		return code;
	cmd_error(ret, &err);
	return EXIT_FAILED;
}
