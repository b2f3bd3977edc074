// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <criterion/criterion.h>

#include "base/cleanup.h"
#include "out/folded.h"
#include "out/jitp.h"
#include "out/out.h"
#include "out/tally.h"
#include "prof/name.h"
#include "prof/pprof.h"
#include "source_plain.h"

TestSuite(out);

static const struct prof_labels labels = {.vmstate = 'I', .pid = 1, .tid = 1};

static uint32_t shape_of(const char *name)
{
	uint32_t shape = 1;

	while (*name)
		shape = 31 * shape + (unsigned char)*name++;
	return shape;
}

/* Adds a stack of Lua functions of one line, one for each name, leaf first. The list of the names
 * at their calls ends with NULL. */
static void add(struct prof *prof, uint64_t count, const char *name, ...)
{
	uint32_t ids[200];
	size_t n = 0;
	va_list ap;

	va_start(ap, name);
	for (; name; name = va_arg(ap, const char *)) {
		struct prof_frame frame = {.kind = PROF_LUA,
					   .callname = name,
					   .chunk = "@x.lua",
					   .firstline = 1,
					   .line = 2,
					   .shape = shape_of(name)};

		cr_assert_eq(prof_frame_id(prof, &frame, &ids[n++]), 0);
	}
	va_end(ap);
	cr_assert_eq(prof_add(prof, ids, n, &labels, count), 0);
}

static char *render(const struct prof *prof, const char *option, const struct source *source)
{
	struct jitp_options options;
	char *data = NULL;
	size_t len;
	FILE *out = open_memstream(&data, &len);

	cr_assert_eq(jitp_options(option, &options, NULL), 0);
	cr_assert_eq(jitp_render(prof, &options, source, out), 0);
	fclose(out);
	return data;
}

static void expect(const struct prof *prof, const char *option, const char *text)
{
	__free char *got = render(prof, option, &source_plain);

	cr_expect_str_eq(got, text, "-jp=%s:\n%s", option, got);
}

Test(out, rows_of_equal_counts_keep_their_order)
{
	struct prof *prof = NULL;

	cr_assert_eq(prof_new(&prof), 0);
	for (int i = 'z'; i >= 'a'; i--)
		add(prof, 1, (char[]){(char)i, 0}, NULL);
	add(prof, 2, "most", NULL);
	expect(prof, "m5", " 7%  most\n");
	for (int i = 0; i < 2; i++) {
		__free char *text = render(prof, "r", &source_plain);

		cr_expect_eq(strncmp(text, "    2  most\n    1  z\n    1  y\n    1  x\n", 39), 0);
	}
	prof_free(&prof);
}

Test(out, counts_near_the_limit)
{
	struct prof *prof = NULL;

	cr_assert_eq(prof_new(&prof), 0);
	add(prof, INT64_MAX, "a", NULL);
	expect(prof, "r", "9223372036854775807  a\n");
	expect(prof, "f", "100%  a\n");
	expect(prof, "G", "a 9223372036854775807\n");
	add(prof, INT64_MAX, "b", NULL);
	add(prof, INT64_MAX, "c", NULL);
	expect(prof, "f", "50%  a\n50%  b\n50%  c\n"); /* the sum stops at UINT64_MAX */
	prof_free(&prof);
}

Test(out, a_cut_stack_shows_it)
{
	struct prof *prof = NULL;
	struct prof_frame cut = {.kind = PROF_CUT}, frame = {.kind = PROF_LUA, .callname = "f"};
	uint32_t ids[128];
	__free char *raw = NULL;

	cr_assert_eq(prof_new(&prof), 0);
	for (int i = 0; i < 127; i++)
		cr_assert_eq(prof_frame_id(prof, &frame, &ids[i]), 0);
	cr_assert_eq(prof_frame_id(prof, &cut, &ids[127]), 0);
	cr_assert_eq(prof_add(prof, ids, 128, &labels, 1), 0);
	raw = render(prof, "G", &source_plain);
	cr_expect_eq(strlen(raw), strlen("[cut]") + 100 * strlen(";f") + strlen(" 1\n"));
	cr_expect_eq(strncmp(raw, "[cut];f;f", 9), 0);
	free(raw);
	raw = render(prof, "-128", &source_plain);
	cr_expect_eq(strncmp(raw, "100%  [cut] > f > f", 19), 0);
	free(raw);
	raw = render(prof, "-127", &source_plain);
	cr_expect_null(strstr(raw, "[cut]"));
	prof_free(&prof);
}

Test(out, no_samples)
{
	struct prof *prof = NULL;

	cr_assert_eq(prof_new(&prof), 0);
	expect(prof, "f", "[No samples collected]\n");
	expect(prof, "a", "[No samples collected]\n");
	expect(prof, "G", "");
	prof_free(&prof);
}

/* ---- options --------------------------------------------------------------------------------- */

Test(out, zones_take_the_place_of_states)
{
	struct jitp_options o;

	cr_assert_eq(jitp_options("vz", &o, NULL), 0);
	cr_expect(o.zones);
	cr_expect(!o.states);
	cr_expect_eq(o.stack, '\0');
	cr_expect_eq(o.split, JITP_STATE_FIRST);
}

Test(out, hostile_numbers_are_bounded)
{
	struct jitp_options o;

	cr_assert_eq(jitp_options("-99999999999999999999m99999999999i99999999999", &o, NULL), 0);
	cr_expect_eq(o.depth, -INT32_MAX);
	cr_expect_eq(o.min, INT32_MAX);
	cr_expect_eq(o.interval_ms, INT32_MAX);
	cr_assert_eq(jitp_options("i0", &o, NULL), 0);
	cr_expect_eq(o.interval_ms, 1);
	cr_assert_eq(jitp_options(NULL, &o, NULL), 0);
	cr_expect_eq(o.interval_ms, 10);
	cr_expect_eq(o.stack, 'f');
}

Test(out, unknown_letters_are_told_once)
{
	struct jitp_options o;

	cr_assert_eq(jitp_options("fx3xm4qi5m\x1b-", &o, NULL), 0);
	cr_expect_str_eq(o.unknown, "xqm?-");
	cr_assert_eq(jitp_options("-s3fFlpvraAG", &o, NULL), 0);
	cr_expect_str_eq(o.unknown, "");
	cr_assert_eq(jitp_options("vs", &o, NULL), 0);
	cr_expect(o.shows_nothing);
}

/* ---- annotation ------------------------------------------------------------------------------ */

static int open_text(void *ctx, const char *path, FILE **out)
{
	char *text = ctx;

	cr_expect_str_eq(path, "x.lua");
	if (!text)
		return -EACCES;
	*out = fmemopen(text, strlen(text), "r");
	return *out ? 0 : -errno;
}

Test(out, annotates_what_the_source_gives)
{
	struct source source = {.open = open_text};
	struct prof *prof = NULL;
	__free char *text = NULL;

	cr_assert_eq(prof_new(&prof), 0);
	add(prof, 3, "a", NULL);
	text = render(prof, "a", &source);
	cr_expect_str_eq(text, "====== ERROR: x.lua: x.lua: Permission denied\n");
	free(text);
	source.ctx = (char[]){"one\r\ntwo\x1b[0m\nthree\nfour\nfive\nsix\nseven"};
	text = render(prof, "a", &source);
	cr_expect_str_eq(text,
			 "\n====== x.lua ======\n@@ 1 @@\n      | one\r\n 100% | two\\x1b[0m\n"
			 "      | three\n      | four\n      | five\n");
	free(text);
	text = render(prof, "Ar", &source);
	cr_expect_str_eq(text,
			 "\n====== x.lua ======\n      | one\r\n    3 | two\\x1b[0m\n"
			 "      | three\n      | four\n      | five\n      | six\n      | seven\n");
	prof_free(&prof);
}

Test(out, annotated_counts_line_up)
{
	struct source source = {.open = open_text, .ctx = (char[]){"one\ntwo\n"}};
	struct prof *prof = NULL;
	__free char *text = NULL;

	cr_assert_eq(prof_new(&prof), 0);
	add(prof, 123456, "a", NULL);
	text = render(prof, "Ar", &source);
	cr_expect_str_eq(text, "\n====== x.lua ======\n       | one\n123456 | two\n");
	prof_free(&prof);
}

Test(out, the_plain_source_opens_regular_files_only)
{
	char fifo[] = "/tmp/luabpf-test-XXXXXX";
	FILE *file = NULL;

	cr_expect_eq(source_plain.open(NULL, "/", &file), -EISDIR);
	cr_expect_eq(source_plain.open(NULL, "/dev/zero", &file), -EINVAL);
	cr_expect_eq(source_plain.open(NULL, "/no/such", &file), -ENOENT);
	cr_expect_eq(source_plain.open(NULL, "", &file), -ENOENT);
	cr_assert_not_null(mkdtemp(fifo));
	cr_assert_eq(rmdir(fifo), 0);
	cr_assert_eq(mkfifo(fifo, 0600), 0);
	cr_expect_eq(source_plain.open(NULL, fifo, &file), -EINVAL);
	unlink(fifo);
	cr_expect_null(file);
	cr_assert_eq(source_plain.open(NULL, "/proc/self/status", &file), 0);
	fclose(file);
}

/* ---- folded, tally, formats ------------------------------------------------------------------ */

Test(out, folded_names_keep_the_format)
{
	struct prof *prof = NULL;
	__free char *data = NULL;
	size_t len;
	FILE *out = open_memstream(&data, &len);

	cr_assert_eq(prof_new(&prof), 0);
	add(prof, 1, "trace 12", "a;b", "x\ny", "", NULL);
	add(prof, 5, "v 1.5", "  7", NULL);
	add(prof, 2, NULL);
	cr_assert_eq(folded_write(prof, out), 0);
	fclose(out);
	cr_expect_str_eq(
		data,
		"\\x20 7 (x.lua:1);v 1.5 (x.lua:1) 5\n[no frame] 2\n"
		"x.lua:1~91fa66f1;x\\x0ay (x.lua:1);a\\x3bb (x.lua:1);trace 12 (x.lua:1) 1\n");
	prof_free(&prof);
}

Test(out, writing_to_a_full_disk_is_told)
{
	struct prof *prof = NULL;
	struct jitp_options options;
	FILE *full = fopen("/dev/full", "w");

	cr_assert_eq(prof_new(&prof), 0);
	add(prof, 1, "f", NULL);
	cr_assert_eq(jitp_options("f", &options, NULL), 0);
	cr_expect_eq(jitp_render(prof, &options, &source_plain, full), -ENOSPC);
	fclose(full);
	full = fopen("/dev/full", "w");
	cr_expect_eq(folded_write(prof, full), -ENOSPC);
	fclose(full);
	prof_free(&prof);
}

Test(out, tally_saturates)
{
	struct tallies table = {0};

	cr_assert_eq(tally_add(&table, "a", "b", UINT64_MAX), 0);
	cr_assert_eq(tally_add(&table, "a", "b", 1), 0);
	cr_expect_eq(table.first->count, UINT64_MAX);
	cr_expect_eq(table.first->sub->count, UINT64_MAX);
	tally_free(&table);
	cr_expect_null(table.first);
}

Test(out, many_lines_are_sorted_as_few_are)
{
	struct tallies table = {0};
	const struct tally *before = NULL;
	size_t n = 0;
	char key[16];

	for (int i = 0; i < 5000; i++) {
		snprintf(key, sizeof(key), "%04d", i);
		cr_assert_eq(tally_add(&table, key, i % 2 ? "sub" : NULL, (uint64_t)(i % 7)), 0);
	}
	cr_assert_eq(tally_sort(&table), 0);
	cr_assert_eq(tally_add(&table, "last", NULL, 0), 0);
	for (const struct tally *t = table.first; t; before = t, t = t->next, n++) {
		if (!before)
			continue;
		cr_expect_leq(t->count, before->count);
		if (t->count == before->count)
			cr_expect_lt(strcmp(before->key, t->key), 0);
	}
	cr_expect_eq(n, 5001);
	cr_expect_str_eq(before->key, "last");
	tally_free(&table);
}

Test(out, keys_beyond_the_bounds_are_other)
{
	struct tallies table = {0};
	const struct tally *other;

	cr_assert_eq(tally_add(&table, "a", NULL, 1), 0);
	table.kept = TALLY_MAX_KEPT;
	for (const char *key = "bcd"; *key; key++)
		cr_assert_eq(tally_add(&table, (char[]){*key, 0}, NULL, 2), 0);
	cr_assert_eq(tally_add(&table, "a", NULL, 1), 0, "one that is there counts as before");
	cr_assert_eq(tally_sort(&table), 0);
	other = table.first;
	cr_expect_str_eq(other->key, NAME_OTHER);
	cr_expect_eq(other->count, 6);
	other = other->next;
	cr_expect_str_eq(other->key, "a");
	cr_expect_eq(other->count, 2);
	cr_expect_null(other->next);
	table.made = TALLY_MAX_MADE;
	cr_expect(tally_is_full(&table));
	tally_free(&table);
}

Test(out, a_line_has_a_bound)
{
	static uint32_t ids[16384];
	char name[PROF_MAX_NAME + 1] = {0};
	struct prof *prof = NULL;
	struct prof_frame frame = {.kind = PROF_LUA, .callname = name, .chunk = "@x"};
	__free char *folded = NULL, *raw = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&folded, &len);

	memset(name, 'n', sizeof(name) - 1);
	cr_assert_eq(prof_new(&prof), 0);
	cr_assert_eq(prof_frame_id(prof, &frame, ids), 0);
	for (size_t i = 1; i < 16384; i++)
		ids[i] = ids[0];
	cr_assert_eq(prof_add(prof, ids, 16384, &labels, 7), 0);
	cr_assert_eq(folded_write(prof, out), 0);
	fclose(out);
	raw = render(prof, "99999fm0", &source_plain);
	cr_expect_leq(len, TALLY_MAX_KEY + 2048);
	cr_expect_leq(strlen(raw), TALLY_MAX_KEY + 2048);
	cr_expect_not_null(strstr(folded, ";(other) 7\n"));
	cr_expect_not_null(strstr(raw, " < (other)\n"));
	prof_free(&prof);
}

static ssize_t count_bytes(void *total, const char *bytes, size_t len)
{
	(void)bytes;
	*(size_t *)total += len;
	return (ssize_t)len;
}

/* 2000 stacks of a MB each: a text of 2 GB was asked for by a file of some kilobytes. */
Test(out, folded_text_has_a_bound)
{
	static uint32_t ids[1000];
	char name[PROF_MAX_NAME + 1] = {0};
	struct prof *prof = NULL;
	struct prof_frame frame = {.kind = PROF_LUA, .callname = name, .chunk = "@x"};
	size_t total = 0;
	FILE *out = fopencookie(&total, "w", (cookie_io_functions_t){.write = count_bytes});

	memset(name, 'n', sizeof(name) - 1);
	cr_assert_eq(prof_new(&prof), 0);
	cr_assert_eq(prof_frame_id(prof, &frame, ids), 0);
	for (size_t i = 1; i < 1000; i++)
		ids[i] = ids[0];
	for (uint32_t line = 1; line <= 2000; line++) {
		frame.line = (int32_t)line;
		frame.firstline = (int32_t)line;
		cr_assert_eq(prof_frame_id(prof, &frame, ids), 0);
		cr_assert_eq(prof_add(prof, ids, 1000, &labels, 1), 0);
	}
	cr_assert_eq(folded_write(prof, out), 0);
	fclose(out);
	cr_expect_leq(total, (1UL << 30) + (2UL << 20));
	cr_expect_gt(total, 900UL << 20);
	prof_free(&prof);
}

Test(out, formats_by_name_and_by_file)
{
	cr_expect_str_eq(out_format_named("folded")->name, "folded");
	cr_expect_null(out_format_named("FOLDED"));
	cr_expect_str_eq(out_format_of_file("a/x.pb.gz")->name, "pprof");
	cr_expect_str_eq(out_format_of_file("x.folded")->name, "folded");
	cr_expect_null(out_format_of_file("x.txt"));
	cr_expect_null(out_format_of_file(".folded"));
}
