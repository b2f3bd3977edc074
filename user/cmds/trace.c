// SPDX-License-Identifier: BSD-2-Clause
/*
 * trace: every line of a command that runs Lua, or of a saved trace; its functions by time, its
 * sources with times, its coverage.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/fsids.h"
#include "base/signals.h"
#include "cmds.h"
#include "command.h"
#include "hook/hook.h"
#include "output.h"
#include "proc/launch.h"
#include "proc/process.h"
#include "saved.h"
#include "trace/chrome.h"
#include "trace/source_file.h"
#include "trace/raw_read.h"
#include "trace/recorder.h"
#include "trace/report.h"
#include "trace/stats.h"

#define POLL_MS 1	/* the ring has room for more */
#define MISSING_SHOWN 5 /* sources that do not exist, by name */

enum { TEXT, RAW, ANNOTATE, LCOV, COBERTURA, CHROME, NFILES };

struct trace_run {
	const struct options *opts;
	struct outfile *files[NFILES]; /* NULL: not requested */
	struct fsids *ids;	       /* of sudo's caller; NULL: our own */
	struct target_source *sources;
	struct recorder *recorder; /* NULL: of a saved trace */
	struct program *saved;
	int status;  /* of the command */
	bool is_cut; /* the saved trace */
};

static void trace_run_free(struct trace_run *t)
{
	for (size_t i = 0; i < NFILES; i++)
		outfile_abort(&t->files[i]);
	recorder_free(&t->recorder);
	program_free(&t->saved);
	target_source_free(&t->sources);
	free(t->ids);
}

static FILE *stream(const struct trace_run *t, int which)
{
	return t->files[which] ? outfile_stream(t->files[which]) : NULL;
}

static int open_files(struct trace_run *t, struct error *err)
{
	const struct options *o = t->opts;
	const char *const paths[NFILES] = {o->output,	  o->trace.raw,	      o->trace.annotate,
					   o->trace.lcov, o->trace.cobertura, o->trace.chrome};

	for (size_t i = 0; i < NFILES; i++) {
		int ret = paths[i] ? outfile_open_ready(paths[i], &t->files[i], err) : 0;

		if (ret)
			return ret;
		for (size_t k = 0; k < i; k++)
			if (t->files[i] && t->files[k] && outfile_same(t->files[i], t->files[k]))
				return error_set(err, -EINVAL, "%s and %s are one file", paths[i],
						 paths[k]);
	}
	return 0;
}

/* ---- a command ------------------------------------------------------------------------------- */

/* Reads until the command has ended: without a pause while there are events. */
static int follow(struct trace_run *t, struct hook_run *run, pid_t pid, struct error *err)
{
	struct command command __cleanup(command_free) = {.pidfd = -1};
	bool idle = false;
	int stop, ret = signals_catch(&stop);

	if (ret)
		return error_set(err, ret, "command: %s", strerror(-ret));
	ret = command_begin(&command, pid, stop, err);
	while (!ret && !command.ended) {
		uint64_t before = recorder_nevents(t->recorder);

		ret = command_wait(&command, idle ? POLL_MS : 0, err);
		if (!ret)
			ret = hook_run_poll(run, recorder_events, t->recorder, err);
		idle = recorder_nevents(t->recorder) == before;
	}
	t->status = command.status;
	return ret;
}

/* Reports by a state's flags what its figures lack. */
static void print_flags(const struct hook_header *header)
{
	static const struct {
		uint32_t flag;
		const char *text;
	} texts[] = {
		{HOOK_PROGRAM_HOOK, "debug.sethook was called; lines of the hook are not seen"},
		{HOOK_REPLACED, "C code replaced the hook: what followed is not seen"},
		{HOOK_REALLOCATED, "C code replaced the allocator: functions may be mixed up"},
		{HOOK_JIT_HIDES, "this LuaJIT compiles in spite of the hook: add -joff"},
		{HOOK_FULL, "no room for all functions: some are not distinguished"},
		{HOOK_FINALIZERS, "functions that finalizers (__gc) call are not seen"},
		{HOOK_LATE, "the module was loaded late: what ran before is not seen"},
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (header->flags & texts[i].flag)
			fprintf(stderr, "luabpf: process %" PRIu32 ", state %" PRIu32 ": %s\n",
				header->pid, header->state, texts[i].text);
}

static void print_states(struct trace_run *t, const struct hook_run *run)
{
	size_t n = hook_run_nstates(run);
	struct recorder_losses l;

	recorder_losses(t->recorder, &l);
	for (size_t i = 0; i < n; i++) {
		const struct hook_state *state = hook_run_state(run, i);

		print_flags(hook_state_header(state));
		if (hook_state_broken(state))
			fprintf(stderr,
				"luabpf: process %" PRIu32 ": its file is damaged; what "
				"came before is kept\n",
				hook_state_header(state)->pid);
		if (hook_state_runs(run, state))
			fprintf(stderr,
				"luabpf: process %" PRIu32
				" runs on, though the command has ended: "
				"what it does from now on is not seen\n",
				hook_state_header(state)->pid);
	}
	if (hook_run_unread(run))
		fprintf(stderr, "luabpf: %" PRIu64 " files of Lua states are not read\n",
			hook_run_unread(run));
	if (hook_run_failed(run))
		fprintf(stderr,
			"luabpf: a Lua state could not make its file, and is not traced: %s\n",
			strerror(hook_run_failed(run)));
	if (l.stacks.misaligned || l.stacks.frames || l.stacks.coroutines || l.lines || l.functions)
		fprintf(stderr,
			"luabpf: not followed: %" PRIu64 " events, %" PRIu64 " calls, %" PRIu64
			" coroutines; %" PRIu64 " hits of lines not kept; %" PRIu64
			" functions without lines\n",
			l.stacks.misaligned, l.stacks.frames, l.stacks.coroutines, l.lines,
			l.functions);
	if (!t->opts->quiet)
		fprintf(stderr, "luabpf: %" PRIu64 " events of %zu Lua state%s\n",
			recorder_nevents(t->recorder), n, n == 1 ? "" : "s");
}

/*
 * A source is shown if the command may read it; under sudo, its caller must be able to read it as well: the files of Lua
 * states are the caller's, and name the sources, while the command may be a setuid program. On failure none is shown.
 */
static void take_sources(struct trace_run *t, pid_t pid)
{
	__cleanup(target_source_free) struct target_source *callers = NULL;

	if (target_source_new(pid, process_image(pid), &t->sources) || !t->ids)
		return;
	if (target_source_of_users(&t->ids->uid, 1, &callers))
		target_source_free(&t->sources);
	else
		target_source_join(t->sources, callers);
}

static int record(struct trace_run *t, struct error *err)
{
	const struct recorder_options options = {.raw = stream(t, RAW),
						 .chrome = stream(t, CHROME)};
	__hook_run struct hook_run *run = NULL;
	pid_t pid;
	int ret = recorder_new(&options, &t->recorder);

	if (ret)
		return error_set(err, ret, "out of memory");
	ret = hook_run_open(HOOK_TRACE, &run, err);
	if (!ret)
		ret = launch_start(t->opts->command, &pid, err);
	if (ret)
		return ret;
	if (stream(t, ANNOTATE))
		take_sources(t, pid);
	ret = launch_release(pid);
	if (ret)
		return error_set(err, ret, "%s: %s", t->opts->command[0], strerror(-ret));
	ret = follow(t, run, pid, err);
	if (ret)
		return ret;
	ret = hook_run_check(run, t->opts->command[0], err);
	if (ret)
		return ret;
	ret = recorder_finish(t->recorder);
	print_states(t, run);
	return ret ? error_set(err, ret, "out of memory") : 0;
}

/* ---- a saved trace --------------------------------------------------------------------------- */

struct saved_state {
	struct saved_state *next;
	struct trace_run *run;
	struct stats *stats;
	struct chrome *chrome; /* NULL: none */
};

struct saved_states {
	struct trace_run *run;
	struct saved_state *first;
	uint32_t n;
};

static int put_saved(void *state, const struct trace_action *action)
{
	struct saved_state *s = state;
	int ret = stats_put(s->stats, action);

	return ret || !s->chrome ? ret : chrome_put(s->chrome, action);
}

static int add_saved(void *states, struct trace_sink *sink)
{
	struct saved_states *all = states;
	struct saved_state *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return -ENOMEM;
	s->next = all->first;
	all->first = s;
	*sink = (struct trace_sink){.put = put_saved, .ctx = s};
	ret = stats_new(all->run->saved, &s->stats);
	if (!ret && stream(all->run, CHROME))
		ret = chrome_new(stream(all->run, CHROME), all->run->saved, 0, all->n++,
				 &s->chrome);
	return ret;
}

static void saved_states_free(struct saved_states *states)
{
	for (struct saved_state *next, *s = states->first; s; s = next) {
		next = s->next;
		stats_free(&s->stats);
		chrome_free(&s->chrome);
		free(s);
	}
}

static int finish_saved(struct saved_states *states)
{
	int ret = 0;

	for (struct saved_state *s = states->first; s && !ret; s = s->next) {
		stats_finish(s->stats);
		if (s->chrome)
			chrome_finish(s->chrome);
		ret = stats_merge(s->stats);
	}
	return ret;
}

static int load(struct trace_run *t, struct error *err)
{
	__cleanup(saved_states_free) struct saved_states states = {.run = t};
	const char *path = t->opts->trace.from;
	struct raw_counts counts = {};
	__fclose FILE *file = NULL;
	bool of_users;
	int ret = program_new(&t->saved);

	if (!ret && stream(t, ANNOTATE))
		ret = saved_sources(t->opts, "--annotate", &t->sources, &of_users, err);
	if (!ret)
		ret = strcmp(path, "-") ? saved_open(path, &file, err) : 0;
	if (ret)
		return ret == -ENOMEM ? error_set(err, ret, "out of memory") : ret;
	if (stream(t, CHROME))
		chrome_begin(stream(t, CHROME));
	ret = raw_read(file ? file : stdin, t->saved, add_saved, &states, &counts);
	if (!ret)
		ret = finish_saved(&states);
	if (stream(t, CHROME))
		chrome_end(stream(t, CHROME));
	if (ret)
		return error_set(err, ret, "%s: %s", path,
				 ret == -EBADMSG ? "not a trace of luatrace: it has a longer line"
						 : strerror(-ret));
	if (counts.bad == counts.records)
		return error_set(err, -ENODATA, "%s: not a trace of luatrace", path);
	if (counts.bad)
		fprintf(stderr,
			"luabpf: %s: %" PRIu64 " of %" PRIu64 " lines are no record, or do "
			"not fit\n",
			path, counts.bad, counts.records);
	t->is_cut = counts.is_ours && !counts.ended;
	if (t->is_cut)
		fprintf(stderr, "luabpf: %s: its end is missing: it was cut\n", path);
	if (t->saved->lost_hits)
		fprintf(stderr, "luabpf: %s: %" PRIu64 " hits of lines not kept\n", path,
			t->saved->lost_hits);
	return 0;
}

/* ---- reports --------------------------------------------------------------------------------- */

static bool is_same(void *ids, const struct program_source *source)
{
	return source_file_is_same(ids, source);
}

static int put_annotated(const struct trace_run *t, const struct coverage *coverage, FILE *to)
{
	const struct report_sources files = {
		.source = {.open = target_source_open, .ctx = t->sources},
		.is_same = is_same,
		.ctx = t->ids,
	};

	if (!t->sources) {
		fputs("[No sources: the command had ended before they could be looked for]\n", to);
		return 0;
	}
	return report_annotate(coverage, &files, to);
}

static int put_file(const struct trace_run *t, const struct program *program,
		    const struct coverage *coverage, int which)
{
	FILE *to = stream(t, which);

	switch (which) {
	case TEXT:
		return report_summary(program, coverage, to);
	case ANNOTATE:
		return put_annotated(t, coverage, to);
	case LCOV:
		return report_lcov(coverage, to);
	case COBERTURA:
		return report_cobertura(coverage, time(NULL), to);
	}
	return 0; /* written already */
}

/* Sources that the formats name, and others read. */
static void print_changed(const struct trace_run *t, const struct coverage *coverage)
{
	size_t n = 0;

	for (size_t i = 0; i < coverage->n; i++)
		n += !source_file_is_same(t->ids, coverage->files[i].source);
	if (n)
		fprintf(stderr, "luabpf: %zu source file%s changed since: lines may be others\n", n,
			n == 1 ? " has" : "s have");
}

/* Tools that read these files end at a source that is not there, as one that load() named so is not. */
static void leave_out_missing(const struct trace_run *t, struct coverage *coverage)
{
	__text struct text names = {};
	size_t n = 0;

	if (!stream(t, LCOV) && !stream(t, COBERTURA))
		return;
	for (size_t i = 0; i < coverage->n; i++) {
		struct coverage_file *file = &coverage->files[i];

		file->missing = !source_file_exists(t->ids, file->path);
		if (!file->missing || n++ >= MISSING_SHOWN)
			continue;
		text_puts(&names, names.len ? ", " : "");
		text_put_utf8(&names, file->path, strlen(file->path));
	}
	if (n)
		fprintf(stderr,
			"luabpf: %zu source%s not in --lcov and --cobertura, as no such file "
			"exists: %s%s\n",
			n, n == 1 ? " is" : "s are", text_str(&names),
			n > MISSING_SHOWN ? ", ..." : "");
}

static int verdict(const struct trace_run *t, const struct coverage *coverage)
{
	int64_t ppm = coverage->lines ? coverage->hit * 1000000 / coverage->lines : 0;

	if (t->is_cut)
		return EXIT_FAILED;
	if (ppm < t->opts->trace.fail_under_ppm) {
		fprintf(stderr,
			"luabpf: %.4f %% of the lines that can run did, less than --fail-under "
			"%g\n",
			(double)ppm / 1e4, (double)t->opts->trace.fail_under_ppm / 1e4);
		return EXIT_UNCOVERED;
	}
	if (!t->opts->command)
		return EXIT_DONE;
	return WIFSIGNALED(t->status) ? 128 + WTERMSIG(t->status) : WEXITSTATUS(t->status);
}

static int write_reports(struct trace_run *t, int *code, struct error *err)
{
	const struct program *program = t->saved ? t->saved : recorder_program(t->recorder);
	__coverage struct coverage coverage = {};
	int ret = coverage_new(program, &coverage);

	if (ret)
		return error_set(err, ret, "out of memory");
	print_changed(t, &coverage);
	leave_out_missing(t, &coverage);
	for (int i = 0; i < NFILES; i++) {
		int one;

		if (!t->files[i])
			continue;
		one = put_file(t, program, &coverage, i);
		one = outputs_finish(&t->files[i], one, ret ? NULL : err);
		if (!ret)
			ret = one;
	}
	if (!ret)
		*code = verdict(t, &coverage);
	return ret;
}

int cmd_trace(const struct options *opts)
{
	__cleanup(trace_run_free) struct trace_run t = {.opts = opts};
	struct error err = {};
	int code = EXIT_FAILED;
	int ret = fsids_of_caller(&t.ids, &err);

	if (!ret)
		ret = open_files(&t, &err);
	if (!ret)
		ret = opts->command ? record(&t, &err) : load(&t, &err);
	if (!ret)
		ret = write_reports(&t, &code, &err);
	if (!ret)
		return code;
	cmd_error(ret, &err);
	return EXIT_FAILED;
}
