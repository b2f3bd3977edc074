// SPDX-License-Identifier: BSD-2-Clause
/* The files and texts of a trace: exact, from a trace file of a few records. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "file_bytes.h"
#include "trace/chrome.h"
#include "trace/listing.h"
#include "trace/raw_read.h"
#include "trace/report.h"
#include "trace/stats.h"

TestSuite(trace_report);

struct read_trace {
	struct program *program;
	struct stats *stats;
	struct chrome *chrome;
	struct coverage coverage;
	char *text;
	size_t len;
	FILE *to;
};

static int put(void *ctx, const struct trace_action *action)
{
	struct read_trace *t = ctx;
	int ret = stats_put(t->stats, action);

	return ret ? ret : chrome_put(t->chrome, action);
}

static int sink_of(void *ctx, struct trace_sink *out)
{
	*out = (struct trace_sink){.put = put, .ctx = ctx};
	return 0;
}

static uint64_t read_trace(struct read_trace *t, const char *trace)
{
	FILE *in = fmemopen((void *)trace, strlen(trace), "r");
	struct raw_counts counts = {};

	*t = (struct read_trace){};
	t->to = open_memstream(&t->text, &t->len);
	cr_assert(in && t->to);
	cr_assert_eq(program_new(&t->program), 0);
	cr_assert_eq(stats_new(t->program, &t->stats), 0);
	cr_assert_eq(chrome_new(t->to, t->program, 7, 8, &t->chrome), 0);
	cr_assert_eq(raw_read(in, t->program, sink_of, t, &counts), 0);
	stats_finish(t->stats);
	chrome_finish(t->chrome);
	cr_assert_eq(stats_merge(t->stats), 0);
	cr_assert_eq(coverage_new(t->program, &t->coverage), 0);
	fclose(in);
	return counts.bad;
}

static const char *text(struct read_trace *t)
{
	fflush(t->to);
	return t->text;
}

static void close_trace(struct read_trace *t)
{
	coverage_free(&t->coverage);
	chrome_free(&t->chrome);
	stats_free(&t->stats);
	program_free(&t->program);
	fclose(t->to);
	free(t->text);
}

static const char trace[] = "#function x.lua:0-0,a,1-3;7,\n"
			    "#function x.lua:2-2,b,2,f\n"
			    "#function x.lua:2-2,c,2,\n"
			    "#function x.lua:4-6,d,5-6,g%22%3C,\n"
			    "> x.lua 0 0\n"
			    "1 10\n"
			    "2 20\n"
			    "#code b\n"
			    "> x.lua 2 2\n"
			    "2 1.5\n"
			    "<\n"
			    "2 1\n"
			    "3 0.25\n";

Test(trace_report, lcov)
{
	struct read_trace t;

	cr_assert_eq(read_trace(&t, trace), 0);
	rewind(t.to);
	cr_assert_eq(report_lcov(&t.coverage, t.to), 0);
	fputc('\0', t.to);
	cr_assert_str_eq(text(&t),
			 "TN:\nSF:x.lua\n"
			 "FN:1,main chunk\nFN:2,f:2\nFN:2,function at 2.2\nFN:4,g\"<_:4\n"
			 "FNDA:1,main chunk\nFNDA:1,f:2\nFNDA:0,function at 2.2\nFNDA:0,g\"<_:4\n"
			 "FNF:4\nFNH:2\n"
			 "DA:1,1\nDA:2,2\nDA:3,1\nDA:5,0\nDA:6,0\nDA:7,0\n"
			 "LF:6\nLH:3\nend_of_record\n");
	close_trace(&t);
}

Test(trace_report, summary)
{
	struct read_trace t;

	cr_assert_eq(read_trace(&t, trace), 0);
	rewind(t.to);
	cr_assert_eq(report_summary(t.program, &t.coverage, t.to), 0);
	fputc('\0', t.to);
	cr_assert_str_eq(text(&t),
			 "Functions by time: 2 of 2 that were called, 0.033 ms in all\n"
			 "     self ms      %   with callees         calls  function\n"
			 "       0.031  95.42          0.033             1  main chunk  x.lua\n"
			 "       0.002   4.58          0.002             1  f  x.lua:2-2\n"
			 "\nCoverage: 3 of 6 lines (50.00 %), 2 of 4 functions\n"
			 " 50.00 %           3/6  x.lua\n"
			 "                      not run: 5-7\n"
			 "                      not called: 2 (function at 2)\n");
	close_trace(&t);
}

Test(trace_report, cobertura_escapes_names)
{
	struct read_trace t;

	cr_assert_eq(read_trace(&t, trace), 0);
	rewind(t.to);
	cr_assert_eq(report_cobertura(&t.coverage, 9, t.to), 0);
	fputc('\0', t.to);
	cr_assert(strstr(text(&t), "<coverage line-rate=\"0.5000\" branch-rate=\"1\" "
				   "lines-covered=\"3\" lines-valid=\"6\""));
	cr_assert(strstr(text(&t), "<method name=\"g&quot;&lt;,\" signature=\"4-6\" "
				   "line-rate=\"0.0000\""));
	close_trace(&t);
}

/* A coroutine's part of a call is an event for each time that it ran. */
Test(trace_report, chrome)
{
	struct read_trace t;

	cr_assert_eq(read_trace(&t, "> x.lua 0 0\n1 1\nR 2\n> x.lua 2 3\n2 2\nY\n1 4\nR 2\n"
				    "2 8.5\n<\nY\n1 16\n<\n"),
		     0);
	cr_assert_str_eq(text(&t),
			 ",\n{\"name\":\"function at 2 @x.lua:2\",\"ph\":\"X\",\"ts\":1.000,"
			 "\"dur\":2.000,\"pid\":7,\"tid\":8}"
			 ",\n{\"name\":\"function at 2 @x.lua:2\",\"ph\":\"X\",\"ts\":7.000,"
			 "\"dur\":8.500,\"pid\":7,\"tid\":8}"
			 ",\n{\"name\":\"main chunk @x.lua\",\"ph\":\"X\",\"ts\":0.000,"
			 "\"dur\":31.500,\"pid\":7,\"tid\":8}");
	close_trace(&t);
}

/* Line 1 is on the stacks up to three times: of the chunk, of f, and of f in a coroutine, which waits during line 2. */
Test(trace_report, a_lines_total_counts_each_instant_once)
{
	struct read_trace t;
	const struct coverage_line *lines;

	cr_assert_eq(read_trace(&t,
				"#function x.lua:0-0,a,1-2,\n#function x.lua:1-1,b,1,f\n"
				"> x.lua 0 0\n1 10\n> x.lua 1 1\n1 5\nR 2\n> x.lua 1 1\n1 7\nY\n"
				"1 1\n<\n1 2\n2 4\nR 2\n1 8\n<\nY\n2 3\n<\n"),
		     0);
	cr_assert_eq(t.coverage.n, 1);
	cr_assert_eq(t.coverage.files[0].nlines, 2);
	lines = t.coverage.files[0].lines;
	cr_assert_eq(lines[0].self_ns, 10000 + 5000 + 7000 + 1000 + 2000 + 8000);
	cr_assert_eq(lines[0].total_ns, lines[0].self_ns, "%lu", lines[0].total_ns);
	cr_assert_eq(lines[1].self_ns, 4000 + 3000);
	cr_assert_eq(lines[1].total_ns, 4000 + 8000 + 3000, "%lu", lines[1].total_ns);
	close_trace(&t);
}

Test(trace_report, records_that_do_not_fit_are_counted)
{
	struct read_trace t;

	cr_assert_eq(read_trace(&t, "<\nY\nE\nP\n1 2\nx\n1 -2\n> x.lua 1\n> 1 2\n#function x\n"
				    "R x\n> x.lua 0 0\nR 1\n1 nan\n\n"),
		     14);
	close_trace(&t);
}

/* Of each dump of the fuzzer's corpus: every shorter one is refused, and leaks nothing. */
Test(trace_report, a_listing_that_is_cut)
{
	static const struct {
		const char *path;
		size_t functions;
	} dumps[] = {
		{"tests/fuzz/corpus/trace_listing/lua5.1", 3},
		{"tests/fuzz/corpus/trace_listing/lua5.2", 3},
		{"tests/fuzz/corpus/trace_listing/lua5.3", 3},
		{"tests/fuzz/corpus/trace_listing/lua5.4", 3},
		{"tests/fuzz/corpus/trace_listing/luajit", 3},
	};

	for (size_t i = 0; i < sizeof(dumps) / sizeof(*dumps); i++) {
		struct listing listing;
		struct file_bytes file;

		cr_assert(file_bytes_read(dumps[i].path, &file), "%s", dumps[i].path);
		cr_assert_eq(listing_parse(file.bytes, file.len, &listing), 0);
		cr_assert_eq(listing.n, dumps[i].functions);
		cr_assert_eq(listing.functions[listing.root].first, 0);
		listing_free(&listing);
		for (size_t len = 0; len < file.len; len++) {
			int ret = listing_parse(file.bytes, len, &listing);

			cr_assert(ret < 0, "%s: %zu bytes", dumps[i].path, len);
		}
		free(file.bytes);
	}
}
