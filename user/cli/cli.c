// SPDX-License-Identifier: BSD-2-Clause
/*
 * Parses the command line: getopt_long() scans by the table of cli/table.c. It knows no long option
 * with one dash, so it gets LuaJIT's spelling "-jp=..." as "--jp=...". It does not get the words
 * after "--".
 */
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "cli.h"
#include "table.h"
#include "value.h"

#define NSEC_PER_SEC 1000000000ULL
#define NSEC_PER_MSEC 1000000ULL
#define DEFAULT_HZ 100
#define MAX_INTERVAL_MS 3600000

static bool was_seen(const struct options *opts, int row)
{
	return opts->seen & (1ULL << row);
}

/* Writes the row's option as users spell it. */
static void spell(const struct option_row *row, char *buf, size_t size)
{
	if (!strcmp(row->name, "jp"))
		snprintf(buf, size, "-jp");
	else if (row->letter)
		snprintf(buf, size, "-%c", row->letter);
	else
		snprintf(buf, size, "--%s", row->name);
}

/*
 * Long options return 256 + their row, so that they cannot be mistaken for a letter or '?' or ':'.
 */
static void fill_getopt(struct option *longs, char *shorts)
{
	*shorts++ = ':'; /* distinguishes a missing value from an unknown option */
	for (size_t i = 0; i < CLI_NROWS; i++) {
		bool optional = cli_rows[i].arg && cli_rows[i].arg[0] == '[';

		longs[i] = (struct option){
			.name = cli_rows[i].name,
			.has_arg = optional	     ? optional_argument
				   : cli_rows[i].arg ? required_argument
						     : no_argument,
			.val = 256 + i,
		};
		if (!cli_rows[i].letter)
			continue;
		*shorts++ = cli_rows[i].letter;
		if (cli_rows[i].arg)
			*shorts++ = ':';
	}
	*shorts = '\0';
}

static const struct option_row *find_row(int code)
{
	if (code >= 256)
		return &cli_rows[code - 256];
	for (size_t i = 0; i < CLI_NROWS; i++) {
		if (cli_rows[i].letter == code)
			return &cli_rows[i];
	}
	return NULL;
}

/* value: the option that follows in place of a value; NULL: none. */
static int needs_value(const struct option_row *row, const char *value, struct error *err)
{
	char name[32];

	if (row->letter == 'p')
		return cli_no_pid(err);
	spell(row, name, sizeof(name));
	if (!value)
		return error_set(err, -EINVAL, "%s needs a value", name);
	if (!strncmp(value, "--jp", 4) && (!value[4] || value[4] == '=')) /* copy_args() */
		value++;
	return error_set(err, -EINVAL, "%s needs a value, not %s", name, value);
}

static const char *verb_name(enum verb verb)
{
	static const char *const names[] = {
		[VERB_RECORD] = "recording", [VERB_REPORT] = "report",
		[VERB_DOCTOR] = "doctor",    [VERB_PS] = "ps",
		[VERB_COUNT] = "count",	     [VERB_TRACE] = "trace",
		[VERB_TRACES] = "traces",
	};

	return names[verb];
}

static int apply(struct options *opts, const struct option_row *row, const char *value,
		 struct error *err)
{
	uint64_t bit = 1ULL << (row - cli_rows);
	char name[32];

	spell(row, name, sizeof(name));
	if (!(row->flags & (1U << opts->verb)) && opts->verb < VERB_HELP)
		return error_set(err, -EINVAL, "%s does not go with %s: it is for %s", name,
				 verb_name(opts->verb),
				 verb_name(row->flags & CLI_RECORD   ? VERB_RECORD
					   : row->flags & CLI_REPORT ? VERB_REPORT
					   : row->flags & CLI_PS     ? VERB_PS
					   : row->flags & CLI_COUNT  ? VERB_COUNT
								     : VERB_TRACE));
	if (opts->seen & bit && !(row->flags & CLI_REPEATS))
		return error_set(err, -EINVAL, "%s is given twice", name);
	/* "-o -jp": the file's name is missing. A file "-jp" can be named "./-jp". */
	if (value && value[0] == '-' && value[1] && strcmp(row->name, "jp"))
		return needs_value(row, value, err);
	opts->seen |= bit;
	if (row->set)
		return row->set(opts, value, err);
	*(bool *)((char *)opts + row->flag) = true;
	return 0;
}

static int unknown_letter(char letter, struct error *err)
{
	error_set(err, 0, "unknown option -%c", letter);
	if (letter == 'j')
		error_remedy(err, 0, "of LuaJIT's -j there is -jp and -jp=OPTIONS[,OUTPUT]");
	return -EINVAL;
}

static int scan(struct options *opts, int argc, struct error *err)
{
	struct option longs[CLI_NROWS + 1] = {};
	char shorts[2 * CLI_NROWS + 2];
	int code;

	fill_getopt(longs, shorts);
	opterr = 0;
	optind = 0; /* glibc: start anew */
	while ((code = getopt_long(argc, opts->args, shorts, longs, NULL)) != -1) {
		const struct option_row *row = code == '?' || code == ':' ? NULL : find_row(code);
		int ret;

		if (code == ':')
			return needs_value(find_row(optopt), NULL, err);
		if (!row && optopt >= 256)
			return error_set(err, -EINVAL, "%s takes no value", opts->args[optind - 1]);
		if (!row && optopt)
			return unknown_letter(optopt, err);
		if (!row)
			return error_set(err, -EINVAL, "unknown option %s", opts->args[optind - 1]);
		ret = apply(opts, row, optarg, err);
		if (ret)
			return ret;
	}
	return 0;
}

/* Copies the options, "-jp" as "--jp"; returns their number, or -ENOMEM. */
static int copy_args(struct options *opts, int argc, char **argv)
{
	opts->args = calloc(argc + 1, sizeof(char *));
	if (!opts->args)
		return -ENOMEM;
	for (int i = 0; i < argc; i++) {
		bool jp = !strncmp(argv[i], "-jp", 3) && (!argv[i][3] || argv[i][3] == '=');

		if (i > 0 && !strcmp(argv[i], "--"))
			return i;
		if (asprintf(&opts->args[i], "%s%s", jp ? "-" : "", argv[i]) < 0)
			return -ENOMEM;
	}
	return argc;
}

static bool take_verb(struct options *opts, const char *word)
{
	static const struct {
		const char *word;
		enum verb verb;
	} verbs[] = {{"record", VERB_RECORD}, {"report", VERB_REPORT}, {"doctor", VERB_DOCTOR},
		     {"ps", VERB_PS},	      {"count", VERB_COUNT},   {"trace", VERB_TRACE},
		     {"traces", VERB_TRACES}, {"help", VERB_HELP}};

	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++) {
		if (word && !strcmp(word, verbs[i].word)) {
			opts->verb = verbs[i].verb;
			return true;
		}
	}
	return false;
}

static bool is_number(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text);
}

/* Takes the words that are no options and before "--": getopt_long() moved them to the end. */
static int take_operands(struct options *opts, char **operands, struct error *err)
{
	if (opts->verb == VERB_REPORT && *operands) {
		opts->input = *operands++;
		if (*operands)
			return error_set(err, -EINVAL, "%s: report reads one file", *operands);
	}
	if (opts->verb == VERB_REPORT || !*operands)
		return 0;
	error_set(err, -EINVAL, "%s: what is that?", *operands);
	if (opts->verb == VERB_DOCTOR)
		error_remedy(err, 0, "doctor looks at processes: luabpf doctor -p PID");
	else if (opts->verb == VERB_PS)
		error_remedy(err, 0, "ps lists all processes that run Lua");
	else if (opts->verb == VERB_TRACE)
		error_remedy(err, 0, "a command goes behind --: luabpf trace -- %s ...", *operands);
	else if (opts->verb == VERB_COUNT && !is_number(*operands))
		error_remedy(err, 0, "a command goes behind --: luabpf count -- %s ...", *operands);
	else if (is_number(*operands))
		error_remedy(err, 0, "several processes: -p PID,PID");
	else
		error_remedy(err, 0, "a command goes behind --: luabpf [OPTIONS] -- %s ...",
			     *operands);
	return -EINVAL;
}

/* The first option that narrows --all; NULL: none was given. */
static const char *narrowing_option(const struct options *opts)
{
	return was_seen(opts, CLI_EXE)	    ? "--exe"
	       : was_seen(opts, CLI_COMM)   ? "--comm"
	       : was_seen(opts, CLI_CGROUP) ? "--cgroup"
	       : was_seen(opts, CLI_USER)   ? "--user"
					    : NULL;
}

static int settle_trace(struct options *opts, struct error *err)
{
	if (opts->command && !*opts->command)
		return error_set(err, -EINVAL, "no command behind --");
	if (opts->command && opts->trace.from)
		return error_set(err, -EINVAL,
				 "--from and a command behind --: only one can be "
				 "reported");
	if (opts->trace.from && opts->trace.raw)
		return error_set(err, -EINVAL, "--raw goes with a command, not with --from");
	if (!opts->command && !opts->trace.from) {
		error_set(err, 0, "nothing to trace");
		return error_remedy(err, -EINVAL,
				    "a command: -- COMMAND ARGS; a saved trace: --from FILE");
	}
	if (!opts->output)
		opts->output = "-";
	return 0;
}

/* A command's calls are counted by a hook, those of a process that runs by probes. */
static int settle_count(const struct options *opts, struct error *err)
{
	static const int of_process[] = {CLI_DURATION, CLI_MAX_SLOWDOWN};
	char name[32];

	if (opts->command ? !*opts->command || opts->npids : opts->npids != 1) {
		error_set(err, 0, "count counts the calls of one process: -p PID");
		return error_remedy(err, -EINVAL, "or of a command: luabpf count -- COMMAND ARGS");
	}
	for (size_t i = 0; opts->command && i < sizeof(of_process) / sizeof(*of_process); i++) {
		if (!was_seen(opts, of_process[i]))
			continue;
		spell(&cli_rows[of_process[i]], name, sizeof(name));
		return error_set(err, -EINVAL, "%s goes with count -p", name);
	}
	return 0;
}

static int settle_target(struct options *opts, struct error *err)
{
	const char *narrowing = narrowing_option(opts);

	opts->narrowed = narrowing != NULL;
	if (opts->verb == VERB_REPORT && !opts->input)
		return error_set(err, -EINVAL, "report of what? name a file");
	if (opts->verb == VERB_COUNT)
		return settle_count(opts, err);
	if (opts->verb == VERB_TRACE)
		return settle_trace(opts, err);
	if (opts->verb != VERB_RECORD && opts->verb != VERB_TRACES)
		return 0;
	if (opts->command && !*opts->command)
		return error_set(err, -EINVAL, "no command behind --");
	if (opts->command && opts->npids)
		return error_set(err, -EINVAL,
				 "-p and a command behind --: only one can be profiled");
	if (narrowing && (opts->command || opts->npids))
		return error_set(err, -EINVAL, "%s goes with --all, not with %s", narrowing,
				 opts->npids ? "-p" : "a command behind --");
	opts->all |= opts->narrowed;
	if (opts->all && (opts->command || opts->npids))
		return error_set(err, -EINVAL, "--all and %s: only one can be profiled",
				 opts->npids ? "-p" : "a command behind --");
	if (!opts->command && !opts->npids && !opts->all) {
		error_set(err, 0, "nothing to profile");
		if (opts->verb == VERB_TRACES)
			return error_remedy(err, -EINVAL,
					    "a running process: luabpf traces -p PID; a "
					    "command: luabpf traces -- COMMAND ARGS");
		return error_remedy(err, -EINVAL,
				    "a running process: -p PID; all that run Lua: --all; a "
				    "command: -- COMMAND ARGS");
	}
	return 0;
}

/* Parses jit.p's letters. They may hold the rate. */
static int settle_jitp(struct options *opts, struct error *err)
{
	const char *text = opts->jitp_text && *opts->jitp_text ? opts->jitp_text : "f";
	int ret = jitp_options(text, &opts->jitp_options, err);
	uint64_t period_ns;

	if (ret)
		return ret == -ENOMEM ? ret : -EINVAL;
	if (opts->verb != VERB_RECORD || !strchr(text, 'i'))
		return 0;
	if (opts->jitp_options.interval_ms > MAX_INTERVAL_MS)
		return error_set(err, -EINVAL, "-jp=%s: an interval of more than %d ms", text,
				 MAX_INTERVAL_MS);
	period_ns = opts->jitp_options.interval_ms * NSEC_PER_MSEC;
	if (was_seen(opts, CLI_RATE) && opts->period_ns != period_ns)
		return error_set(err, -EINVAL,
				 "-F and the interval in -jp=%s contradict each other", text);
	opts->period_ns = period_ns;
	return 0;
}

static int settle_output(struct options *opts, struct error *err)
{
	const char *profilefile = getenv("LUAJIT_PROFILEFILE");

	if (opts->verb == VERB_COUNT || opts->verb == VERB_TRACE || opts->verb == VERB_TRACES)
		return 0;
	if (was_seen(opts, CLI_FORMAT) && !opts->output)
		opts->output = "-";
	if (opts->output && !opts->format)
		opts->format = out_format_of_file(opts->output);
	if (opts->output && !opts->format)
		return error_set(err, -EINVAL,
				 "-o %s: no format is known by that name: add -f FORMAT",
				 opts->output);
	if (!opts->output)
		opts->jitp = true;
	if (!opts->jitp_output)
		opts->jitp_output = profilefile && *profilefile ? profilefile : "-";
	return 0;
}

/* Two outputs must not be one file. */
static int check_distinct(const struct options *opts, struct error *err)
{
	const struct {
		const char *name, *path;
	} outs[] = {
		{"the -jp report", opts->jitp ? opts->jitp_output : NULL},
		{"--json", opts->verb == VERB_TRACES && opts->json ? "-" : NULL},
		{"-o", opts->output},
		{"--stats", opts->stats},
		{"--metrics", opts->metrics},
		{"--raw", opts->trace.raw},
		{"--annotate", opts->trace.annotate},
		{"--lcov", opts->trace.lcov},
		{"--cobertura", opts->trace.cobertura},
		{"--chrome", opts->trace.chrome},
	};
	const size_t n = sizeof(outs) / sizeof(*outs);

	for (size_t i = 0; i < n; i++) {
		for (size_t j = i + 1; j < n; j++) {
			if (!outs[i].path || !outs[j].path || strcmp(outs[i].path, outs[j].path))
				continue;
			return error_set(err, -EINVAL, "%s and %s would both go to %s",
					 outs[i].name, outs[j].name,
					 strcmp(outs[i].path, "-") ? outs[i].path
								   : "standard output");
		}
	}
	return 0;
}

static int settle(struct options *opts, struct error *err)
{
	int ret = settle_target(opts, err);

	if (!ret && (opts->children || opts->no_follow) && !opts->npids)
		ret = error_set(err, -EINVAL, "%s goes with -p",
				opts->children ? "--children" : "--no-follow");
	if (!ret && opts->wait && !opts->npids)
		ret = error_set(err, -EINVAL,
				"--wait goes with -p: a command is waited for anyway");
	if (!ret && opts->verb == VERB_TRACES && was_seen(opts, CLI_RATE) && !opts->command &&
	    !opts->duration_ns)
		ret = error_set(err, -EINVAL, "-F goes with -d or a command: nothing is sampled");
	if (!ret && opts->verbose && opts->quiet)
		ret = error_set(err, -EINVAL, "-v and -q contradict each other");
	if (!ret)
		ret = settle_jitp(opts, err);
	if (!ret)
		ret = settle_output(opts, err);
	if (!ret)
		ret = check_distinct(opts, err);
	return ret;
}

static int parse_into(struct options *opts, int argc, char **argv, struct error *err)
{
	int skip = argc > 1 && take_verb(opts, argv[1]);
	int n, ret;

	/* The verb serves as argv[0]. */
	n = copy_args(opts, argc - skip, argv + skip);
	if (n < 0)
		return n;
	ret = scan(opts, n, err);
	if (ret || opts->verb >= VERB_HELP)
		return ret;
	if (n < argc - skip && opts->verb != VERB_RECORD && opts->verb != VERB_COUNT &&
	    opts->verb != VERB_TRACE && opts->verb != VERB_TRACES)
		return error_set(err, -EINVAL, "-- does not go with %s", argv[1]);
	if (n < argc - skip)
		opts->command = argv + skip + n + 1;
	ret = take_operands(opts, opts->args + optind, err);
	return ret ? ret : settle(opts, err);
}

int cli_parse(int argc, char **argv, struct options **out, struct error *err)
{
	__options struct options *opts = calloc(1, sizeof(*opts));
	int ret;

	if (!opts)
		return error_set(err, -ENOMEM, "out of memory");
	opts->period_ns = NSEC_PER_SEC / DEFAULT_HZ;
	opts->max_lost_ppm = -1;
	opts->max_slowdown = 2;
	opts->trace.fail_under_ppm = -1;
	if (err)
		*err = (struct error){};
	ret = parse_into(opts, argc, argv, err);
	if (ret == -ENOMEM)
		return error_set(err, ret, "out of memory");
	if (ret)
		return ret;
	*out = TAKE_PTR(opts);
	return 0;
}

void options_free(struct options **opts)
{
	struct options *o = *opts;

	if (!o)
		return;
	for (char **arg = o->args; arg && *arg; arg++)
		free(*arg);
	free(o->args);
	free(o->jitp_text);
	free(o->pids);
	words_free(&o->exes);
	words_free(&o->comms);
	words_free(&o->cgroups);
	free(o->users);
	free(o);
	*opts = NULL;
}
