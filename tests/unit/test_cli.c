// SPDX-License-Identifier: BSD-2-Clause
#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/value.h"

static struct options *opts;
static struct error err;

static void setup(void)
{
	unsetenv("LUAJIT_PROFILEFILE");
	memset(&err, 0, sizeof(err));
}

static void teardown(void)
{
	options_free(&opts);
}

/* Parses words, the last of which is NULL. The options point to a copy of the array. */
static int parse_words(char **words)
{
	static char *argv[32];
	int n = 0;

	options_free(&opts);
	for (; words[n]; n++)
		argv[n] = words[n];
	argv[n] = NULL;
	return cli_parse(n, argv, &opts, &err);
}
#define parse(...) parse_words((char *[]){"luabpf", __VA_ARGS__, NULL})

#define refused(message, ...)                                                                      \
	do {                                                                                       \
		cr_assert_eq(parse(__VA_ARGS__), -EINVAL);                                         \
		cr_assert_null(opts);                                                              \
		cr_assert(strstr(err.what, message), "said: %s", err.what);                        \
	} while (0)

TestSuite(cli, .init = setup, .fini = teardown);

Test(cli, defaults)
{
	cr_assert_eq(parse("-p", "12"), 0);
	cr_assert_eq(opts->verb, VERB_RECORD);
	cr_assert_eq(opts->npids, 1);
	cr_assert_eq(opts->pids[0], 12);
	cr_assert_null(opts->command);
	cr_assert(opts->jitp);
	cr_assert_eq(opts->jitp_options.stack, 'f');
	cr_assert_str_eq(opts->jitp_output, "-");
	cr_assert_null(opts->output);
	cr_assert_null(opts->format);
	cr_assert_eq(opts->period_ns, 10000000);
	cr_assert_eq(opts->duration_ns, 0);
	cr_assert_eq(opts->max_lost_ppm, -1);
	cr_assert_null(opts->stats);
}

Test(cli, children)
{
	cr_assert_eq(parse("-p", "1"), 0);
	cr_assert(!opts->children && !opts->no_follow);
	cr_assert_eq(parse("-p", "1", "--children", "--no-follow"), 0);
	cr_assert(opts->children && opts->no_follow);
	refused("--children goes with -p", "--all", "--children");
	refused("--no-follow goes with -p", "--no-follow", "--", "true");
	refused("--children does not go with doctor", "doctor", "-p", "1", "--children");
}

Test(cli, narrowing)
{
	cr_assert_eq(parse("--exe", "lua*", "--exe=/usr/bin/x", "--comm", "redis-server",
			   "--cgroup=/a/b", "--user", "root", "--user=65534"),
		     0);
	cr_assert(opts->all);
	cr_assert_eq(opts->exes.n, 2);
	cr_assert_str_eq(opts->exes.word[0], "lua*");
	cr_assert_str_eq(opts->exes.word[1], "/usr/bin/x");
	cr_assert_eq(opts->comms.n, 1);
	cr_assert_str_eq(opts->comms.word[0], "redis-server");
	cr_assert_eq(opts->cgroups.n, 1);
	cr_assert_str_eq(opts->cgroups.word[0], "/a/b");
	cr_assert_eq(opts->nusers, 2);
	cr_assert_eq(opts->users[0], 0);
	cr_assert_eq(opts->users[1], 65534);
	cr_assert_eq(parse("--all", "--comm", "x"), 0);
	cr_assert_eq(parse("ps", "--comm", "x", "--user", "0"), 0);
	cr_assert_eq(opts->verb, VERB_PS);
	refused("--exe: empty", "--exe", "");
	refused("--comm: empty", "--comm=");
	refused("--cgroup: empty", "--cgroup=");
	refused("--user: empty", "--user=");
	refused("--user nobody-of-this-name: no such user", "--user", "nobody-of-this-name");
	refused("--user 1.5: no such user", "--user", "1.5");
	refused("--comm goes with --all, not with -p", "-p", "1", "--comm", "x");
	refused("--user goes with --all, not with a command", "--user", "0", "--", "true");
	refused("--exe does not go with report", "report", "x.pb.gz", "--exe", "x");
	refused("--exe does not go with doctor", "doctor", "--exe", "x");
	refused("--exe needs a value", "--exe");
}

Test(cli, all_of_record)
{
	cr_assert_eq(parse("record", "-p", "1,2", "-p2,3", "-jp=3si4m1,j.txt", "-F", "250",
			   "-ox.pb.gz", "-d", "2.5", "--stats", "s.json", "--max-lost=0.1", "-v"),
		     0);
	cr_assert_eq(opts->npids, 3);
	cr_assert_eq(opts->pids[2], 3);
	cr_assert(opts->jitp);
	cr_assert_eq(opts->jitp_options.depth, 3);
	cr_assert_eq(opts->jitp_options.min, 1);
	cr_assert_str_eq(opts->jitp_output, "j.txt");
	cr_assert_str_eq(opts->output, "x.pb.gz");
	cr_assert_str_eq(opts->format->name, "pprof");
	cr_assert_eq(opts->period_ns, 4000000);
	cr_assert_eq(opts->duration_ns, 2500000000);
	cr_assert_str_eq(opts->stats, "s.json");
	cr_assert_eq(opts->max_lost_ppm, 1000);
	cr_assert(opts->verbose);
}

Test(cli, command_keeps_its_options)
{
	cr_assert_eq(parse("-jp=G", "-q", "--", "luajit", "-jp", "--", "-o", "x"), 0);
	cr_assert_str_eq(opts->command[0], "luajit");
	cr_assert_str_eq(opts->command[1], "-jp");
	cr_assert_str_eq(opts->command[2], "--");
	cr_assert_str_eq(opts->command[4], "x");
	cr_assert_null(opts->command[5]);
	cr_assert_null(opts->output);
	cr_assert(opts->quiet);
}

Test(cli, jp_splits_as_luajit_does)
{
	cr_assert_eq(parse("-p1", "-jp"), 0);
	cr_assert_eq(opts->jitp_options.stack, 'f');
	cr_assert_eq(parse("-p1", "-jp="), 0);
	cr_assert_eq(opts->jitp_options.stack, 'f');
	cr_assert_eq(parse("-p1", "-jp=,x"), 0);
	cr_assert_eq(opts->jitp_options.stack, 'f');
	cr_assert_str_eq(opts->jitp_output, "x");
	cr_assert_eq(parse("-p1", "-jp=vl,"), 0);
	cr_assert_eq(opts->jitp_options.stack, 'l');
	cr_assert(opts->jitp_options.states);
	cr_assert_str_eq(opts->jitp_output, "-");
	cr_assert_eq(parse("-p1", "-jp=-3s"), 0);
	cr_assert_eq(opts->jitp_options.depth, -3);
	refused("more than OPTIONS,OUTPUT", "-p1", "-jp=f,a,b");
	cr_assert_eq(parse("-p1", "-jp=fx!"), 0, "jit.p ignores what it does not know");
	cr_assert_str_eq(opts->jitp_options.unknown, "x!");
	cr_assert_eq(parse("-p1", "-jp=fz"), 0);
	cr_assert(opts->jitp_options.zones);
	cr_assert_null(opts->zone_from);
	cr_assert_eq(parse("-p1", "-jp=z", "--zone-from=app.zones"), 0);
	cr_assert_str_eq(opts->zone_from, "app.zones");
	refused("--zone-from: empty module name", "-p1", "--zone-from=");
	refused("--zone-from does not go with report", "report", "x", "--zone-from=z");
	refused("-jp is given twice", "-p1", "-jp", "-jp=f");
	refused("unknown option -j", "-p1", "-jv");
	refused("unknown option -j", "-p1", "-jpx");
	/* "-jp f": f is no value of -jp. */
	refused("f: what is that?", "-p1", "-jp", "f");
}

Test(cli, profilefile)
{
	setenv("LUAJIT_PROFILEFILE", "env.txt", 1);
	cr_assert_eq(parse("-p1"), 0);
	cr_assert_str_eq(opts->jitp_output, "env.txt");
	cr_assert_eq(parse("-p1", "-jp=f,mine.txt"), 0);
	cr_assert_str_eq(opts->jitp_output, "mine.txt");
	cr_assert_eq(parse("-p1", "-jp", "-o", "-", "-f", "folded"), 0);
	refused("-jp report and -o would both go to env.txt", "-p1", "-jp", "-o", "env.txt",
		"-fpprof");
	setenv("LUAJIT_PROFILEFILE", "", 1);
	cr_assert_eq(parse("-p1"), 0);
	cr_assert_str_eq(opts->jitp_output, "-");
}

Test(cli, output_and_format)
{
	cr_assert_eq(parse("-p1", "-o", "a.folded"), 0);
	cr_assert_str_eq(opts->format->name, "folded");
	cr_assert_not(opts->jitp, "a file alone");
	cr_assert_eq(parse("-p1", "-o", "a.pprof"), 0);
	cr_assert_str_eq(opts->format->name, "pprof");
	cr_assert_eq(parse("-p1", "-o", "a.folded", "-f", "pprof"), 0);
	cr_assert_str_eq(opts->format->name, "pprof");
	cr_assert_eq(parse("-p1", "-f", "folded"), 0);
	cr_assert_str_eq(opts->output, "-");
	cr_assert_not(opts->jitp);
	refused("no format is known", "-p1", "-o", "a.txt");
	refused("no format is known", "-p1", "-o", "-");
	refused("no format is known", "-p1", "-o", ".folded");
	refused("unknown format", "-p1", "-f", "svg");
	refused("empty file name", "-p1", "-o", "");
	refused("both go to standard output", "-p1", "-jp", "-f", "folded");
	refused("both go to standard output", "-p1", "--stats", "-");
	refused("-o and --stats would both go to a", "-p1", "-fpprof", "-oa", "--stats", "a");
}

Test(cli, targets)
{
	refused("nothing to profile", "-v");
	cr_assert(*err.remedy);
	refused("no command behind --", "-v", "--");
	refused("only one", "-p1", "--", "luajit");
	for (const char **bad = (const char *[]){"", "0", "x", "1x", "1,", ",1", "1,,2", "-1", "+1",
						 "1;2", "2147483648", "99999999999999999999", NULL};
	     *bad; bad++)
		cr_assert_eq(parse("-p", (char *)*bad), -EINVAL, "-p %s", *bad);
	cr_assert_eq(parse("-p", " 12 13\n"), 0);
	cr_assert_eq(opts->npids, 2);
	refused("13: what is that?", "-p", "12", "13");
	cr_assert(strstr(err.remedy, "PID,PID"));
	refused("luajit: what is that?", "luajit", "x.lua");
	cr_assert(strstr(err.remedy, "-- luajit"));
}

Test(cli, numbers)
{
	refused("-F 0", "-p1", "-F", "0");
	refused("-F 1.5", "-p1", "-F", "1.5");
	refused("-F 100001", "-p1", "-F", "100001");
	refused("-F 1e3", "-p1", "-F", "1e3");
	refused("-F 18446744073709551617", "-p1", "-F", "18446744073709551617");
	refused("-d 0", "-p1", "-d", "0");
	refused("-d needs a value, not -1", "-p1", "-d", "-1");
	refused("-d nan", "-p1", "-d", "nan");
	refused("too many seconds", "-p1", "-d", "99999999999999999999");
	refused("--max-lost 101", "-p1", "--max-lost", "101");
	refused("--source-user no-such-user: no such user", "report", "x", "--source-user",
		"no-such-user");
	refused("--source-user 4294967295: no such user", "report", "x", "--source-user",
		"4294967295");
	refused("--source-user does not go with recording: it is for report", "-p1",
		"--source-user", "root");
	refused("--max-lost 1%", "-p1", "--max-lost", "1%");
	cr_assert_eq(parse("-p1", "--max-lost", "100", "-d", ".5"), 0);
	cr_assert_eq(opts->max_lost_ppm, 1000000);
	cr_assert_eq(opts->duration_ns, 500000000);
}

Test(cli, shape)
{
	refused("unknown option --nope", "-p1", "--nope");
	refused("unknown option -x", "-p1", "-x");
	refused("-o needs a value", "-p1", "-o");
	refused("-o needs a value, not -", "-p1", "-o", "-jp");
	refused("--stats needs a value", "-p1", "--stats");
	refused("--quiet=1 takes no value", "-p1", "--quiet=1");
	refused("-d is given twice", "-p1", "-d1", "-d2");
	refused("contradict", "-p1", "-v", "-q");
	cr_assert_eq(cli_parse(1, (char *[]){"luabpf", NULL}, &opts, &err), -EINVAL);
	cr_assert_eq(cli_parse(0, (char *[]){NULL}, &opts, &err), -EINVAL);
}

Test(cli, report)
{
	cr_assert_eq(parse("report", "x.pb.gz", "-jp=l"), 0);
	cr_assert_eq(opts->verb, VERB_REPORT);
	cr_assert_str_eq(opts->input, "x.pb.gz");
	cr_assert_eq(opts->jitp_options.stack, 'l');
	cr_assert_eq(parse("report", "-f", "folded", "x.pb.gz"), 0);
	cr_assert_str_eq(opts->input, "x.pb.gz");
	refused("name a file", "report");
	refused("reads one file", "report", "a", "b");
	refused("-p does not go with report", "report", "a", "-p1");
	refused("--stats does not go with report", "report", "a", "--stats", "x");
	refused("-- does not go with report", "report", "a", "--", "b");
}

Test(cli, doctor)
{
	cr_assert_eq(parse("doctor"), 0);
	cr_assert_eq(opts->verb, VERB_DOCTOR);
	cr_assert_eq(opts->npids, 0);
	cr_assert_eq(parse("doctor", "-p", "1,2", "-p3"), 0);
	cr_assert_eq(opts->npids, 3);
	refused("4711: what is that?", "doctor", "4711");
	cr_assert(strstr(err.remedy, "luabpf doctor -p PID"));
	refused("-o does not go with doctor", "doctor", "-o", "x.pb.gz");
	refused("-jp does not go with doctor", "doctor", "-jp=l");
	refused("-- does not go with doctor", "doctor", "--", "luajit");
	cr_assert_eq(parse("doctor", "-h"), 0);
	cr_assert_eq(opts->verb, VERB_HELP);
}

Test(cli, ps)
{
	cr_assert_eq(parse("ps"), 0);
	cr_assert_eq(opts->verb, VERB_PS);
	cr_assert(!opts->json);
	cr_assert_eq(parse("ps", "--json"), 0);
	cr_assert(opts->json);
	refused("--json is given twice", "ps", "--json", "--json");
	refused("--json=x takes no value", "ps", "--json=x");
	refused("4711: what is that?", "ps", "4711");
	cr_assert(strstr(err.remedy, "ps lists all processes"));
	refused("-p does not go with ps: it is for recording", "ps", "-p", "1");
	refused("-f does not go with ps", "ps", "-f", "json");
	refused("--json does not go with recording: it is for ps", "--json", "-p", "1");
	refused("--json does not go with report", "report", "a", "--json");
	refused("-- does not go with ps", "ps", "--", "luajit");
	cr_assert_eq(parse("ps", "--json", "-h"), 0);
	cr_assert_eq(opts->verb, VERB_HELP);
}

Test(cli, count)
{
	cr_assert_eq(parse("count", "-p", "4711"), 0);
	cr_assert_eq(opts->verb, VERB_COUNT);
	cr_assert_eq(opts->max_slowdown, 2);
	cr_assert_eq(parse("count", "-p4711", "-d", "0.5", "--max-slowdown", "1.25", "-q"), 0);
	cr_assert_eq(opts->duration_ns, 500000000);
	cr_assert_eq(opts->max_slowdown, 1.25);
	refused("count counts the calls of one process: -p PID", "count");
	refused("count counts the calls of one process: -p PID", "count", "-p", "1,2");
	refused("--max-slowdown 0.99: not a number from 1 to 1000", "count", "-p1",
		"--max-slowdown", "0.99");
	refused("--max-slowdown 1001: not a number", "count", "-p1", "--max-slowdown", "1001");
	refused("--max-slowdown does not go with recording: it is for count", "-p1",
		"--max-slowdown", "3");
	cr_assert_eq(parse("count", "-p1", "-o", "x", "--json"), 0);
	cr_assert(opts->json);
	cr_assert_str_eq(opts->output, "x");
	refused("-d goes with count -p", "count", "-d", "1", "--", "lua");
	refused("count counts the calls of one process", "count", "-p1", "--", "lua");
	refused("count counts the calls of one process", "count", "--");
	cr_assert_eq(parse("count", "--json", "-o", "x", "-q", "--", "lua", "-v"), 0);
	cr_assert(opts->json && !strcmp(opts->command[1], "-v"));
	refused("4711: what is that?", "count", "4711");
}

Test(cli, traces)
{
	cr_assert_eq(parse("traces", "-p", "1,2", "--json"), 0);
	cr_assert(opts->verb == VERB_TRACES && opts->npids == 2 && opts->json);
	cr_assert_eq(parse("traces", "-F", "1000", "--", "luajit", "x.lua"), 0);
	cr_assert_str_eq(opts->command[1], "x.lua");
	refused("nothing to profile", "traces");
	refused("-F goes with -d", "traces", "-p1", "-F", "99");
	refused("--exe does not go with traces", "traces", "--exe", "x");
	refused("-p and a command", "traces", "-p1", "--", "true");
}

Test(cli, help_and_version)
{
	cr_assert_eq(parse("--help"), 0);
	cr_assert_eq(opts->verb, VERB_HELP);
	cr_assert_eq(parse("help", "whatever"), 0);
	cr_assert_eq(opts->verb, VERB_HELP);
	cr_assert_eq(parse("report", "-h"), 0);
	cr_assert_eq(opts->verb, VERB_HELP);
	cr_assert_eq(parse("--version"), 0);
	cr_assert_eq(opts->verb, VERB_VERSION);
}

Test(cli, rate_and_jp_interval_agree)
{
	cr_assert_eq(parse("-p1", "-jp=fi4"), 0);
	cr_assert_eq(opts->period_ns, 4000000);
	cr_assert_eq(parse("-p1", "-jp=i"), 0);
	cr_assert_eq(opts->period_ns, 1000000);
	cr_assert_eq(parse("-p1", "-jp=i4", "-F250"), 0);
	refused("-F and the interval in -jp=i4 contradict", "-p1", "-jp=i4", "-F", "100");
	cr_assert_eq(parse("-p1", "-jp=i9vi2f"), 0, "the last counts");
	cr_assert_eq(opts->period_ns, 2000000);
	cr_assert_eq(parse("-p1", "-jp=i0"), 0);
	cr_assert_eq(opts->period_ns, 1000000);
	refused("interval", "-p1", "-jp=i99999999999");
}

Test(cli, decimal)
{
	uint64_t v = 7;

	cr_assert_eq(cli_decimal("1.5", 3, 10000, &v), 0);
	cr_assert_eq(v, 1500);
	cr_assert_eq(cli_decimal("1.23456", 3, 10000, &v), 0);
	cr_assert_eq(v, 1234);
	cr_assert_eq(cli_decimal("18446744073709551615", 0, UINT64_MAX, &v), 0);
	cr_assert_eq(v, UINT64_MAX);
	cr_assert_eq(cli_decimal("18446744073709551616", 0, UINT64_MAX, &v), -ERANGE);
	cr_assert_eq(v, UINT64_MAX, "untouched on failure");
	cr_assert_eq(cli_decimal(".", 3, 10, &v), -EINVAL);
	cr_assert_eq(cli_decimal("1.2.3", 3, 10, &v), -EINVAL);
}

Test(cli, intervals)
{
	cr_assert_eq(parse("-a", "--every", "0.5", "-o", "x-%t.pb.gz", "--metrics", "m"), 0);
	cr_expect_eq(opts->every_ns, 500000000);
	cr_expect_str_eq(opts->output, "x-%t.pb.gz");
	cr_expect_str_eq(opts->metrics, "m");
	refused("--every 0.09: not a number", "-a", "--every", "0.09");
	refused("--every x: not a number", "-a", "--every", "x");
	refused("--every 99999999999999999999: too many", "-a", "--every", "99999999999999999999");
	refused("--every does not go with report", "report", "x.pb.gz", "--every", "1");
	refused("--metrics: empty", "-a", "--metrics", "");
	refused("--stats and --metrics would both go to x", "-a", "--stats", "x", "--metrics", "x");
}
