// SPDX-License-Identifier: BSD-2-Clause
/* Reports with --by. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "out/folded.h"
#include "out/jitp_options.h"
#include "out/sections.h"
#include "prof/copy.h"
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

static void add_of(struct prof *prof, const struct prof_origin *origin, uint32_t pid,
		   uint64_t coroutine, uint64_t count)
{
	const struct prof_frame frame = {.kind = PROF_C, .symbol = "f", .line = -1};
	struct prof_labels labels = {.vmstate = 'C', .pid = pid, .coroutine = coroutine};
	uint32_t id;

	cr_assert_eq(prof_frame_id(prof, &frame, &id), 0);
	cr_assert_eq(prof_origin_id(prof, origin, &labels.origin), 0);
	cr_assert_eq(prof_add(prof, &id, 1, &labels, count), 0);
}

static const struct prof_origin web = {
	.exe = "/usr/sbin/nginx",
	.cgroup = "/system.slice/nginx.service",
	.container = "nginx.service",
	.vm = "LuaJIT 2.1",
};
static const struct prof_origin old = {
	.exe = "/usr/sbin/nginx (deleted)",
	.cgroup = "/docker/1",
	.container = "docker:0123456789ab",
	.vm = "LuaJIT 2.1",
};

/* The sections' root frames, which have the same text. */
static void expect_roots(enum sections_by by, const char *want)
{
	struct prof *prof __cleanup(prof_free) = NULL;
	struct prof *roots __cleanup(prof_free) = NULL;
	char *text __free = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	cr_assert_eq(prof_new(&prof), 0);
	add_of(prof, &web, 1, 0x7f00000010 | PROF_MAIN, 4);
	add_of(prof, &old, 2, 0x7f00000010, 3);
	add_of(prof, &web, 3, 0x7f00000010, 2);
	add_of(prof, &(struct prof_origin){}, 4, 0, 1);
	cr_assert_eq(sections_as_roots(prof, by, &roots), 0);
	cr_assert_eq(folded_write(roots, to), 0);
	fclose(to);
	cr_expect_str_eq(text, want);
	cr_expect_eq(prof_norigins(roots), prof_norigins(prof));
}

Test(sections, by_what_a_process_has)
{
	expect_roots(SECTIONS_EXE, "/usr/sbin/nginx;f 6\n/usr/sbin/nginx (deleted);f 3\n"
				   "(exe not known);f 1\n");
	expect_roots(SECTIONS_CGROUP, "/system.slice/nginx.service;f 6\n/docker/1;f 3\n"
				      "(cgroup not known);f 1\n");
	expect_roots(SECTIONS_CONTAINER, "nginx.service;f 6\ndocker:0123456789ab;f 3\n"
					 "(no container);f 1\n");
	expect_roots(SECTIONS_VM, "LuaJIT\\x202.1;f 9\n(VM not known);f 1\n");
}

/* The same address in two processes. */
Test(sections, by_coroutine)
{
	expect_roots(SECTIONS_COROUTINE, "coroutine:1/main:0x7f00000010;f 4\n"
					 "coroutine:2/0x7f00000010;f 3\n"
					 "coroutine:3/0x7f00000010;f 2\n"
					 "(coroutine not recorded);f 1\n");
}

static bool all(void *arg, const struct prof_row *row, struct prof_frame *root)
{
	(void)arg, (void)row, (void)root;
	return true;
}

Test(sections, a_copy_has_all_labels)
{
	struct prof *prof __cleanup(prof_free) = NULL;
	struct prof *copy __cleanup(prof_free) = NULL;
	struct prof_row row;

	cr_assert_eq(prof_new(&prof), 0);
	add_of(prof, &old, 1, 0, 1);
	add_of(prof, &web, 1, 16, 2);
	cr_assert_eq(prof_copy(prof, all, NULL, &copy), 0);
	cr_assert_eq(prof_nrows(copy), 2);
	prof_row(copy, 1, &row);
	cr_expect_eq(row.labels.coroutine, 16);
	cr_expect_str_eq(prof_origin(copy, row.labels.origin)->container, web.container);
	cr_expect_str_eq(prof_origin(copy, row.labels.origin)->exe, web.exe);
}

/* Beyond the bound of rows, samples have no origin; none is lost. */
Test(sections, origins_are_bounded)
{
	struct prof *prof __cleanup(prof_free) = NULL;
	char path[64];
	struct prof_origin origin = {.cgroup = path};
	uint32_t id = 1, n = 0;

	cr_assert_eq(prof_new(&prof), 0);
	prof_limit(prof, 1 << 20, 100000);
	while (id) {
		snprintf(path, sizeof(path), "/docker/%u", n++);
		cr_assert_eq(prof_origin_id(prof, &origin, &id), 0);
	}
	cr_expect_gt(n, 100);
	cr_expect_lt(n, 1000);
	cr_expect_eq(prof_norigins(prof), n); /* with the first, which has no string */
	add_of(prof, &origin, 7, 8, 5);
	cr_expect_eq(prof_samples(prof), 5);
}

Test(sections, words)
{
	cr_expect_eq(sections_named("exe"), SECTIONS_EXE);
	cr_expect_eq(sections_named("cgroup"), SECTIONS_CGROUP);
	cr_expect_eq(sections_named("container"), SECTIONS_CONTAINER);
	cr_expect_eq(sections_named("vm"), SECTIONS_VM);
	cr_expect_eq(sections_named("coroutine"), SECTIONS_COROUTINE);
	cr_expect_eq(sections_named("comm"), SECTIONS_COMM);
	cr_expect_eq(sections_named("pid"), SECTIONS_PID);
	cr_expect_eq(sections_named("thread"), SECTIONS_THREAD);
	cr_expect_eq(sections_named(""), SECTIONS_NONE);
	cr_expect_eq(sections_named("pids"), SECTIONS_NONE);
}
