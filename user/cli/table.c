// SPDX-License-Identifier: BSD-2-Clause
/* The table of options, and a function for each that checks and stores its value. */
#include <errno.h>
#include <pwd.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "table.h"
#include "value.h"

#define NSEC_PER_SEC 1000000000ULL
#define MAX_HZ 100000
#define MAX_SECONDS (1000ULL * 366 * 86400)

int cli_no_pid(struct error *err)
{
	error_set(err, -EINVAL, "-p: no process id was given");
	return error_remedy(err, -EINVAL,
			    "$(pidof NAME) and the like are empty when no such process runs");
}

static int set_pids(struct options *opts, const char *value, struct error *err)
{
	int ret = cli_pids(value, &opts->pids, &opts->npids);

	if (!value[strspn(value, " \t\n")])
		return cli_no_pid(err);
	if (ret == -EINVAL)
		return error_set(err, ret, "-p %s: not a list of process ids", value);
	return ret;
}

/*
 * Splits jit.p's arguments as LuaJIT does: "OPTIONS,OUTPUT". An empty one counts as absent.
 */
static int set_jitp(struct options *opts, const char *value, struct error *err)
{
	char *comma;

	opts->jitp = true;
	if (!value || !*value)
		return 0;
	opts->jitp_text = strdup(value);
	if (!opts->jitp_text)
		return -ENOMEM;
	comma = strchr(opts->jitp_text, ',');
	if (!comma)
		return 0;
	*comma++ = '\0';
	if (strchr(comma, ','))
		return error_set(err, -EINVAL, "-jp=%s: more than OPTIONS,OUTPUT", value);
	if (*comma)
		opts->jitp_output = comma;
	return 0;
}

static int set_by(struct options *opts, const char *value, struct error *err)
{
	opts->by = sections_named(value);
	return opts->by ? 0 : error_set(err, -EINVAL, "--by=%s: not %s", value, SECTIONS_NAMES);
}

static int set_zone_from(struct options *opts, const char *value, struct error *err)
{
	if (!*value)
		return error_set(err, -EINVAL, "--zone-from: empty module name");
	opts->zone_from = value;
	return 0;
}

static int set_path(const char **path, const char *option, const char *value, struct error *err)
{
	if (!*value)
		return error_set(err, -EINVAL, "%s: empty file name", option);
	*path = value;
	return 0;
}

static int set_output(struct options *opts, const char *value, struct error *err)
{
	return set_path(&opts->output, "-o", value, err);
}

static int set_format(struct options *opts, const char *value, struct error *err)
{
	opts->format = out_format_named(value);
	if (opts->format)
		return 0;
	return error_set(err, -EINVAL, "-f %s: unknown format: see luabpf --help", value);
}

static int set_rate(struct options *opts, const char *value, struct error *err)
{
	uint64_t hz;
	int ret = cli_decimal(value, 0, MAX_HZ, &hz);

	if (ret || !hz || strchr(value, '.'))
		return error_set(err, -EINVAL, "-F %s: not a whole number from 1 to %d", value,
				 MAX_HZ);
	opts->period_ns = NSEC_PER_SEC / hz;
	return 0;
}

static int set_duration(struct options *opts, const char *value, struct error *err)
{
	int ret = cli_decimal(value, 9, MAX_SECONDS * NSEC_PER_SEC, &opts->duration_ns);

	if (ret == -ERANGE)
		return error_set(err, -EINVAL, "-d %s: too many seconds", value);
	if (ret || !opts->duration_ns)
		return error_set(err, -EINVAL, "-d %s: not a positive number of seconds", value);
	return 0;
}

#define LEAST_EVERY_NS (NSEC_PER_SEC / 10)

static int set_every(struct options *opts, const char *value, struct error *err)
{
	int ret = cli_decimal(value, 9, MAX_SECONDS * NSEC_PER_SEC, &opts->every_ns);

	if (ret == -ERANGE)
		return error_set(err, -EINVAL, "--every %s: too many seconds", value);
	if (ret || opts->every_ns < LEAST_EVERY_NS)
		return error_set(err, -EINVAL, "--every %s: not a number of seconds, 0.1 or more",
				 value);
	return 0;
}

static int set_raw(struct options *opts, const char *value, struct error *err)
{
	return set_path(&opts->trace.raw, "--raw", value, err);
}

static int set_from(struct options *opts, const char *value, struct error *err)
{
	return set_path(&opts->trace.from, "--from", value, err);
}

static int set_annotate(struct options *opts, const char *value, struct error *err)
{
	return set_path(&opts->trace.annotate, "--annotate", value, err);
}

static int set_lcov(struct options *opts, const char *value, struct error *err)
{
	return set_path(&opts->trace.lcov, "--lcov", value, err);
}

static int set_cobertura(struct options *opts, const char *value, struct error *err)
{
	return set_path(&opts->trace.cobertura, "--cobertura", value, err);
}

static int set_chrome(struct options *opts, const char *value, struct error *err)
{
	return set_path(&opts->trace.chrome, "--chrome", value, err);
}

static int set_metrics(struct options *opts, const char *value, struct error *err)
{
	return set_path(&opts->metrics, "--metrics", value, err);
}

static int set_stats(struct options *opts, const char *value, struct error *err)
{
	return set_path(&opts->stats, "--stats", value, err);
}

static int set_percentage(int64_t *ppm, const char *option, const char *value, struct error *err)
{
	uint64_t number;

	if (cli_decimal(value, 4, 1000000, &number))
		return error_set(err, -EINVAL, "%s %s: not a percentage from 0 to 100", option,
				 value);
	*ppm = number;
	return 0;
}

static int set_max_lost(struct options *opts, const char *value, struct error *err)
{
	return set_percentage(&opts->max_lost_ppm, "--max-lost", value, err);
}

static int set_fail_under(struct options *opts, const char *value, struct error *err)
{
	return set_percentage(&opts->trace.fail_under_ppm, "--fail-under", value, err);
}

#define SLOWDOWN_MOST 1000

static int set_max_slowdown(struct options *opts, const char *value, struct error *err)
{
	uint64_t percent;

	if (cli_decimal(value, 2, SLOWDOWN_MOST * 100, &percent) || percent < 100)
		return error_set(err, -EINVAL, "--max-slowdown %s: not a number from 1 to %d",
				 value, SLOWDOWN_MOST);
	opts->max_slowdown = (double)percent / 100;
	return 0;
}

/* By name or number. */
static int find_user(const char *option, const char *value, uid_t *out, struct error *err)
{
	const struct passwd *pw = getpwnam(value);
	uint64_t uid = 0;

	if (!pw && (strchr(value, '.') || cli_decimal(value, 0, UINT32_MAX - 1, &uid)))
		return error_set(err, -EINVAL, "%s %s: no such user", option, value);
	*out = pw ? pw->pw_uid : (uid_t)uid;
	return 0;
}

static int set_source_user(struct options *opts, const char *value, struct error *err)
{
	opts->has_source_user = true;
	return find_user("--source-user", value, &opts->source_user, err);
}

static int add_word(struct words *words, const char *option, const char *value, struct error *err)
{
	if (!*value)
		return error_set(err, -EINVAL, "%s: empty", option);
	return words_add(words, value);
}

static int set_exe(struct options *opts, const char *value, struct error *err)
{
	return add_word(&opts->exes, "--exe", value, err);
}

static int set_comm(struct options *opts, const char *value, struct error *err)
{
	return add_word(&opts->comms, "--comm", value, err);
}

static int set_cgroup(struct options *opts, const char *value, struct error *err)
{
	return add_word(&opts->cgroups, "--cgroup", value, err);
}

static int set_user(struct options *opts, const char *value, struct error *err)
{
	if (array_grow(&opts->users, opts->nusers, sizeof(*opts->users)))
		return -ENOMEM;
	if (!*value)
		return error_set(err, -EINVAL, "--user: empty");
	return find_user("--user", value, &opts->users[opts->nusers++], err);
}

static int set_help(struct options *opts, const char *value, struct error *err)
{
	(void)value, (void)err;
	opts->verb = VERB_HELP;
	return 0;
}

static int set_version(struct options *opts, const char *value, struct error *err)
{
	(void)value, (void)err;
	opts->verb = VERB_VERSION;
	return 0;
}

#define FLAG(member) offsetof(struct options, member)

const struct option_row cli_rows[CLI_NROWS] = {
	[CLI_PIDS] = {"pid", 'p', "PID[,PID...]",
		      CLI_RECORD | CLI_DOCTOR | CLI_COUNT | CLI_TRACES | CLI_REPEATS, set_pids,
		      "running processes to profile, with all that they start from now on"},
	[CLI_CHILDREN] = {"children", 0, NULL, CLI_RECORD, NULL,
			  "with -p: their present children, too: a server's workers",
			  FLAG(children)},
	[CLI_NO_FOLLOW] = {"no-follow", 0, NULL, CLI_RECORD, NULL,
			   "with -p: no process that they start later", FLAG(no_follow)},
	[CLI_ALL] = {"all", 'a', NULL, CLI_RECORD, NULL,
		     "all processes that run Lua, as they come and go", FLAG(all)},
	[CLI_EXE] = {"exe", 0, "GLOB", CLI_RECORD | CLI_PS | CLI_REPEATS, set_exe,
		     "--all, ps: processes of this executable: a path, or a name without /"},
	[CLI_COMM] = {"comm", 0, "NAME", CLI_RECORD | CLI_PS | CLI_REPEATS, set_comm,
		      "--all, ps: processes of this name, as ps -o comm shows it"},
	[CLI_CGROUP] = {"cgroup", 0, "PATH", CLI_RECORD | CLI_PS | CLI_REPEATS, set_cgroup,
			"--all, ps: processes in this cgroup of version 2, or below it"},
	[CLI_USER] = {"user", 0, "NAME", CLI_RECORD | CLI_PS | CLI_REPEATS, set_user,
		      "--all, ps: processes of this user, by name or number"},
	[CLI_WAIT] = {"wait", 0, NULL, CLI_RECORD, NULL,
		      "with -p: begin when a process without Lua, or what it starts, runs it",
		      FLAG(wait)},
	[CLI_JITP] = {"jp", 0, "[OPTIONS[,OUTPUT]]", CLI_RECORD | CLI_REPORT, set_jitp,
		      "jit.p report (the default: -jp=f to standard output)"},
	[CLI_BY] = {"by", 0, "WHAT", CLI_RECORD | CLI_REPORT, set_by,
		    "sections: " SECTIONS_FIRST ", zone"},
	[CLI_ZONE_FROM] =
		{"zone-from", 0, "MODULE", CLI_RECORD, set_zone_from,
		 "zones are the strings in this module's table (default: jit.zone, zone)"},
	[CLI_OUTPUT] = {"output", 'o', "FILE", CLI_RECORD | CLI_REPORT | CLI_COUNT | CLI_TRACE,
			set_output,
			"write a profile; its suffix sets the format; - is standard output"},
	[CLI_FORMAT] = {"format", 'f', "FORMAT", CLI_RECORD | CLI_REPORT, set_format,
			"format of -o, below"},
	[CLI_RATE] = {"frequency", 'F', "HZ", CLI_RECORD | CLI_TRACES, set_rate,
		      "samples per second of CPU time (default 100, or as -jp=i<ms> says)"},
	{"duration", 'd', "SECONDS", CLI_RECORD | CLI_COUNT | CLI_TRACES, set_duration,
	 "stop after this time (default: Ctrl-C, or when the targets end)"},
	[CLI_EVERY] = {"every", 0, "SECONDS", CLI_RECORD, set_every,
		       "a profile per interval; %t in file names is its start; SIGHUP ends one"},
	{"stats", 0, "FILE", CLI_RECORD, set_stats,
	 "write counts of samples and losses, rates and cost as JSON"},
	{"metrics", 0, "FILE", CLI_RECORD, set_metrics,
	 "write counters for Prometheus, every 10 s or with each interval"},
	{"max-lost", 0, "PCT", CLI_RECORD, set_max_lost,
	 "exit with 3 if more than PCT % of the samples were lost (default: never)"},
	[CLI_MAX_SLOWDOWN] =
		{"max-slowdown", 0, "FACTOR", CLI_COUNT, set_max_slowdown,
		 "count: stop beyond FACTOR times the process's own CPU time (default 2)"},
	[CLI_SOURCE_USER] =
		{"source-user", 0, "USER", CLI_REPORT | CLI_TRACE, set_source_user,
		 "report as root: open source files as USER (default: what all can read)"},
	[CLI_JSON] = {"json", 0, NULL, CLI_PS | CLI_COUNT | CLI_TRACES, NULL,
		      "ps, traces, count of a command: JSON, which has more than the text",
		      FLAG(json)},
	[CLI_RAW] = {"raw", 0, "FILE", CLI_TRACE, set_raw,
		     "save the trace, in luatrace's format; --from reads it"},
	[CLI_FROM] = {"from", 0, "FILE", CLI_TRACE, set_from, "report a saved trace"},
	[CLI_ANNOTATE] = {"annotate", 0, "FILE", CLI_TRACE | CLI_TRACES, set_annotate,
			  "write sources: trace: with hits and times; traces: with bytecode"},
	[CLI_LCOV] = {"lcov", 0, "FILE", CLI_TRACE, set_lcov,
		      "write coverage as a tracefile of lcov, for genhtml"},
	[CLI_COBERTURA] = {"cobertura", 0, "FILE", CLI_TRACE, set_cobertura,
			   "write coverage as Cobertura's XML, for CI systems"},
	[CLI_CHROME] = {"chrome", 0, "FILE", CLI_TRACE, set_chrome,
			"write calls as Chrome trace events, for ui.perfetto.dev"},
	[CLI_FAIL_UNDER] = {"fail-under", 0, "PCT", CLI_TRACE, set_fail_under,
			    "exit with 4 if fewer than PCT % of the lines that can run did"},
	{"verbose", 'v', NULL, CLI_RECORD | CLI_REPORT | CLI_DOCTOR | CLI_PS, NULL,
	 "print more, on standard error; ps: what was measured of each VM", FLAG(verbose)},
	{"quiet", 'q', NULL, CLI_RECORD | CLI_REPORT | CLI_COUNT | CLI_TRACE, NULL,
	 "print errors and warnings only", FLAG(quiet)},
	{"help", 'h', NULL, CLI_ANY | CLI_REPEATS, set_help, "show this help"},
	{"version", 'V', NULL, CLI_ANY | CLI_REPEATS, set_version, "show the version"},
};
