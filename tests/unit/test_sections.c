// SPDX-License-Identifier: BSD-2-Clause
/* Reports with --by. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "out/folded.h"
#include "out/jitp_options.h"
#include "out/sections.h"
#include "prof/prof.h"

static void add(struct prof *prof, const char *symbol, uint32_t pid, uint32_t tid, const char *comm,
		uint64_t count)
{
	const struct prof_frame frame = {.kind = PROF_C, .symbol = symbol, .line = -1};
	const struct prof_labels labels = {.vmstate = 'C', .pid = pid, .tid = tid, .comm = comm};
	uint32_t id;

	cr_assert_eq(prof_frame_id(prof, &frame, &id), 0);
	cr_assert_eq(prof_add(prof, &id, 1, &labels, count), 0);
}

static struct prof *machine(void)
{
	struct prof *prof = NULL;

	cr_assert_eq(prof_new(&prof), 0);
	add(prof, "f", 1, 1, "nginx", 20);
	add(prof, "g", 1, 2, "nginx", 10);
	add(prof, "f", 3, 3, "redis\033", 60);
	add(prof, "f", 4, 4, "nginx", 9);
	add(prof, "h", 5, 5, "", 1);
	return prof;
}

static char *report(const char *letters, enum sections_by by)
{
	struct prof *prof __cleanup(prof_free) = machine();
	struct jitp_options options;
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	cr_assert_not_null(to);
	cr_assert_eq(jitp_options(letters, &options, NULL), 0);
	cr_assert_eq(sections_render(prof, by, &options, NULL, to), 0);
	fclose(to);
	return text;
}

Test(sections, by_comm)
{
	char *text __free = report("f", SECTIONS_COMM);

	cr_expect_str_eq(text, "==== redis\\x1b: 60%, 60 samples ====\n"
			       "100%  f\n"
			       "==== nginx: 39%, 39 samples ====\n"
			       "74%  f\n"
			       "26%  g\n"
			       "==== 1 others: 1%, 1 samples ====\n");
}

Test(sections, by_pid_and_thread)
{
	char *pids __free = report("fm0", SECTIONS_PID);
	char *threads __free = report("fm20", SECTIONS_THREAD);

	cr_expect_str_eq(pids, "==== pid:3: 60%, 60 samples ====\n"
			       "100%  f\n"
			       "==== pid:1: 30%, 30 samples ====\n"
			       "67%  f\n"
			       "33%  g\n"
			       "==== pid:4: 9%, 9 samples ====\n"
			       "100%  f\n"
			       "==== pid:5: 1%, 1 samples ====\n"
			       "100%  h\n");
	cr_expect_str_eq(threads, "==== thread:3: 60%, 60 samples ====\n"
				  "100%  f\n"
				  "==== thread:1: 20%, 20 samples ====\n"
				  "100%  f\n"
				  "==== 3 others: 20%, 20 samples ====\n");
}

Test(sections, root_frames_of_folded_stacks)
{
	struct prof *prof __cleanup(prof_free) = machine();
	struct prof *roots __cleanup(prof_free) = NULL;
	char *raw __free = report("G", SECTIONS_PID);
	char *text __free = NULL;
	size_t size;
	FILE *to;

	cr_assert_eq(sections_as_roots(prof, SECTIONS_COMM, &roots), 0);
	to = open_memstream(&text, &size);
	cr_assert_not_null(to);
	cr_assert_eq(folded_write(roots, to), 0);
	fclose(to);
	cr_expect_str_eq(text, "redis\\x1b;f 60\nnginx;f 29\nnginx;g 10\n(no name);h 1\n");
	cr_expect_str_eq(raw, "pid:3;f 60\npid:1;f 20\npid:1;g 10\npid:4;f 9\npid:5;h 1\n");
	cr_expect_eq(prof_samples(roots), prof_samples(prof));
}

Test(sections, words)
{
	cr_expect_eq(sections_named("comm"), SECTIONS_COMM);
	cr_expect_eq(sections_named("pid"), SECTIONS_PID);
	cr_expect_eq(sections_named("thread"), SECTIONS_THREAD);
	cr_expect_eq(sections_named(""), SECTIONS_NONE);
	cr_expect_eq(sections_named("pids"), SECTIONS_NONE);
}
