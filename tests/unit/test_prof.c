// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "prof/name.h"
#include "prof/prof.h"

TestSuite(prof);

static struct prof *new_prof(void)
{
	struct prof *prof = NULL;

	cr_assert_eq(prof_new(&prof), 0);
	return prof;
}

static const struct prof_labels labels = {.vmstate = 'I', .pid = 7, .tid = 8, .comm = "luajit"};

Test(prof, equal_frames_have_equal_ids)
{
	struct prof *prof = new_prof();
	char name[] = "f", again[] = "f";
	struct prof_frame a = {.kind = PROF_LUA, .callname = name, .chunk = "@x.lua", .line = 3};
	struct prof_frame b = a, c = a, d = a;
	uint32_t ids[4];

	memset(&b, 0xff, sizeof(b)); /* the padding must not count */
	b.kind = a.kind;
	b.callname = again;
	b.defname = NULL;
	b.chunk = "@x.lua";
	b.symbol = NULL;
	b.position = NULL;
	b.addr = 0;
	b.shape = 0;
	b.contents = 0;
	b.order = 0;
	b.place = 0;
	b.firstline = 0;
	b.line = 3;
	c.callname = NULL;
	d.callname = "";
	cr_assert_eq(prof_frame_id(prof, &a, &ids[0]), 0);
	cr_assert_eq(prof_frame_id(prof, &b, &ids[1]), 0);
	cr_assert_eq(prof_frame_id(prof, &c, &ids[2]), 0);
	cr_assert_eq(prof_frame_id(prof, &d, &ids[3]), 0);
	cr_expect_eq(ids[0], ids[1]);
	cr_expect_neq(ids[0], ids[2]);
	cr_expect_neq(ids[2], ids[3], "an empty name is not a missing one");
	cr_expect_eq(prof_nframes(prof), 3);
	name[0] = 'g';
	cr_expect_str_eq(prof_frame(prof, ids[0])->callname, "f", "strings are copied");
	prof_free(&prof);
	cr_expect_null(prof);
}

Test(prof, equal_rows_are_one_in_the_order_of_appearance)
{
	struct prof *prof = new_prof();
	struct prof_frame frame = {.kind = PROF_C, .addr = 1};
	struct prof_labels other = labels;
	struct prof_row row;
	uint32_t id;

	other.comm = NULL;
	cr_assert_eq(prof_frame_id(prof, &frame, &id), 0);
	cr_assert_eq(prof_add(prof, &id, 1, &labels, 1), 0);
	cr_assert_eq(prof_add(prof, &id, 1, &other, 5), 0);
	cr_assert_eq(prof_add(prof, NULL, 0, &labels, 7), 0);
	cr_assert_eq(prof_add(prof, &id, 1, &labels, 2), 0);
	cr_assert_eq(prof_add(prof, &id, 1, &labels, 0), 0);
	cr_assert_eq(prof_nrows(prof), 3);
	prof_row(prof, 0, &row);
	cr_expect_eq(row.count, 3);
	prof_row(prof, 1, &row);
	cr_expect_eq(row.count, 5);
	cr_expect_str_eq(row.labels.comm, "");
	prof_row(prof, 2, &row);
	cr_expect_eq(row.nframes, 0);
	cr_expect_eq(prof_samples(prof), 15);
	prof_free(&prof);
}

Test(prof, refuses_a_frame_that_is_not_there)
{
	struct prof *prof = new_prof();
	uint32_t id = 0;

	cr_expect_eq(prof_add(prof, &id, 1, &labels, 1), -EINVAL);
	cr_expect_eq(prof_nrows(prof), 0);
	prof_free(&prof);
}

Test(prof, names_are_cut)
{
	struct prof *prof = new_prof();
	char *name = calloc(1, 1 << 20);
	struct prof_frame frame = {
		.callname = name, .defname = name, .chunk = name, .symbol = name};
	struct prof_labels labels_of = {.comm = name};
	struct prof_row row;
	uint32_t id;

	memset(name, 'x', (1 << 20) - 1);
	cr_assert_eq(prof_frame_id(prof, &frame, &id), 0);
	cr_assert_eq(prof_add(prof, &id, 1, &labels_of, 1), 0);
	prof_row(prof, 0, &row);
	cr_expect_eq(strlen(prof_frame(prof, id)->callname), PROF_MAX_NAME);
	cr_expect_eq(strlen(prof_frame(prof, id)->defname), PROF_MAX_NAME);
	cr_expect_eq(strlen(prof_frame(prof, id)->symbol), PROF_MAX_NAME);
	cr_expect_eq(strlen(prof_frame(prof, id)->chunk), PROF_MAX_CHUNK);
	cr_expect_eq(strlen(row.labels.comm), PROF_MAX_NAME);
	free(name);
	prof_free(&prof);
}

Test(prof, frames_beyond_the_bound_are_other)
{
	struct prof *prof = new_prof();
	struct prof_frame frame = {.kind = PROF_C, .addr = 1, .line = -1};
	uint32_t first, ids[4];
	struct prof_row row;

	prof_limit(prof, 1000, 1 << 20); /* room for two */
	cr_assert_eq(prof_frame_id(prof, &frame, &first), 0);
	for (size_t i = 0; i < 4; i++) {
		frame.addr = i + 2;
		cr_assert_eq(prof_frame_id(prof, &frame, &ids[i]), 0);
	}
	cr_expect_eq(prof_nframes(prof), 3);
	cr_expect_eq(prof_frame(prof, ids[0])->addr, 2);
	cr_expect_eq(prof_frame(prof, ids[3])->kind, PROF_OTHER);
	frame.addr = 1;
	cr_assert_eq(prof_frame_id(prof, &frame, &ids[0]), 0);
	cr_expect_eq(ids[0], first, "one that is there stays");
	cr_assert_eq(prof_add(prof, ids, 4, &labels, 3), 0);
	cr_assert_eq(prof_add(prof, &first, 1, &labels, 4), 0);
	prof_row(prof, 0, &row);
	cr_expect_eq(row.nframes, 2, "others that follow one another are one");
	cr_expect_eq(prof_samples(prof), 7);
	cr_expect_eq(prof_other(prof), 3);
	prof_free(&prof);
}

Test(prof, rows_beyond_the_bound_are_other)
{
	struct prof *prof = new_prof();
	struct prof_frame frame = {.kind = PROF_C, .addr = 1};
	struct prof_labels labels_of = labels;
	struct prof_row row;
	uint32_t id;

	prof_limit(prof, 1 << 20, 1600); /* room for four */
	cr_assert_eq(prof_frame_id(prof, &frame, &id), 0);
	for (uint32_t i = 0; i < 100; i++) {
		labels_of.tid = i + 1;
		labels_of.vmstate = i % 2 ? 'N' : 'I';
		cr_assert_eq(prof_add(prof, &id, 1, &labels_of, 2), 0);
	}
	cr_expect_eq(prof_nrows(prof), 4 + 2, "%zu", prof_nrows(prof));
	prof_row(prof, 4, &row);
	cr_expect_eq(prof_frame(prof, row.frames[0])->kind, PROF_OTHER);
	cr_expect_eq(row.labels.vmstate, 'I');
	cr_expect_eq(row.labels.pid, 0);
	cr_expect_eq(row.labels.tid, 0);
	cr_expect_str_eq(row.labels.comm, "");
	cr_expect_eq(row.count, 96);
	cr_expect_eq(prof_samples(prof), 200);
	cr_expect_eq(prof_other(prof), 192);
	prof_free(&prof);
}

Test(prof, what_takes_up_the_bounds_is_counted)
{
	struct prof *prof = new_prof();
	struct prof_frame frame = {.kind = PROF_C, .addr = 1};
	struct prof_origin origin = {.exe = "/usr/bin/luajit"};
	size_t before = prof_bytes(prof);
	uint32_t id;

	cr_expect_eq(before, 0);
	cr_assert_eq(prof_frame_id(prof, &frame, &id), 0);
	cr_expect_gt(prof_bytes(prof), before, "a frame");
	before = prof_bytes(prof);
	cr_assert_eq(prof_add(prof, &id, 1, &labels, 1), 0);
	cr_expect_gt(prof_bytes(prof), before, "a row");
	before = prof_bytes(prof);
	cr_assert_eq(prof_origin_id(prof, &origin, &id), 0);
	cr_expect_gt(prof_bytes(prof), before, "an origin");
	prof_free(&prof);
}

Test(prof, counts_saturate)
{
	struct prof *prof = new_prof();
	struct prof_labels other = labels;
	struct prof_row row;

	cr_assert_eq(prof_add(prof, NULL, 0, &labels, UINT64_MAX), 0);
	cr_assert_eq(prof_add(prof, NULL, 0, &labels, 1), 0);
	prof_row(prof, 0, &row);
	cr_expect_eq(row.count, INT64_MAX);
	cr_expect_eq(prof_samples(prof), INT64_MAX, "what a row does not count is no sample");
	for (uint32_t i = 0; i < 3; i++) {
		other.tid = i;
		cr_assert_eq(prof_add(prof, NULL, 0, &other, INT64_MAX), 0);
	}
	cr_expect_eq(prof_samples(prof), UINT64_MAX);
	prof_free(&prof);
}

Test(prof, samples_move_to_another_row)
{
	struct prof *prof = new_prof();
	struct prof_labels other = labels;
	struct prof_row row;
	size_t from, to;

	cr_assert_eq(prof_row_id(prof, NULL, 0, &labels, &from), 0);
	other.snapshot_line = true;
	cr_assert_eq(prof_row_id(prof, NULL, 0, &other, &to), 0);
	prof_count(prof, from, 5);
	prof_move(prof, from, to, 2);
	prof_row(prof, from, &row);
	cr_expect_eq(row.count, 3);
	prof_row(prof, to, &row);
	cr_expect_eq(row.count, 2);
	prof_move(prof, from, to, 9);
	prof_row(prof, to, &row);
	cr_expect_eq(row.count, 5, "not more than there were");
	cr_expect_eq(prof_samples(prof), 5);
	prof_free(&prof);
}

Test(prof, losses_add_up)
{
	struct prof *prof = new_prof();
	struct prof_loss loss;

	cr_assert_eq(prof_lose(prof, "stack-changing", 2), 0);
	cr_assert_eq(prof_lose(prof, "ring-full", 1), 0);
	cr_assert_eq(prof_lose(prof, "stack-changing", UINT64_MAX), 0);
	cr_assert_eq(prof_nlosses(prof), 2);
	prof_loss(prof, 0, &loss);
	cr_expect_str_eq(loss.reason, "stack-changing");
	cr_expect_eq(loss.count, UINT64_MAX);
	prof_free(&prof);
}

static void expect_clean(const char *raw, const char *clean, const char *utf8)
{
	__text struct text a = {0}, b = {0};

	text_put_clean(&a, raw, strlen(raw));
	text_put_utf8(&b, raw, strlen(raw));
	cr_expect_str_eq(text_str(&a), clean);
	cr_expect_str_eq(text_str(&b), utf8);
}

Test(prof, text_is_filtered)
{
	expect_clean("plain \xc5\xbe\xf0\x9f\x98\x80", "plain \xc5\xbe\xf0\x9f\x98\x80",
		     "plain \xc5\xbe\xf0\x9f\x98\x80");
	expect_clean("\x1b[31m\r\n\x7f\t", "\\x1b[31m\\x0d\\x0a\\x7f\t",
		     "\\x1b[31m\\x0d\\x0a\\x7f\\x09");
	expect_clean("\xc2\x9b", "\\xc2\\x9b", "\\xc2\\x9b");
	expect_clean("\x9b", "\\x9b", "\\x9b");
	expect_clean("\xed\xa0\x80", "\xed\xa0\\x80", "\\xed\\xa0\\x80"); /* a surrogate */
	expect_clean("\xc0\xaf", "\xc0\xaf", "\\xc0\\xaf");		  /* too long a form */
	expect_clean("\xc5", "\xc5", "\\xc5");
}

static void expect_escaped(uint32_t c, bool escaped)
{
	const char utf8[] = {(char)(0xf0 | c >> 18), (char)(0x80 | (c >> 12 & 0x3f)),
			     (char)(0x80 | (c >> 6 & 0x3f)), (char)(0x80 | (c & 0x3f))};
	char two[] = {(char)(0xc0 | c >> 6), utf8[3]};
	char three[] = {(char)(0xe0 | c >> 12), utf8[2], utf8[3]};
	const char *bytes = c < 0x800 ? two : c < 0x10000 ? three : utf8;
	size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	__text struct text text = {0};

	text_put_clean(&text, bytes, n);
	cr_expect_eq(text.len, escaped ? 4 * n : n, "U+%04X", c);
}

/* All of categories Cf, Zl and Zp, and what stands beside them. */
Test(prof, text_has_no_format_characters)
{
	static const uint32_t ranges[][2] = {
		{0xad, 0xad},	    {0x600, 0x605},	{0x61c, 0x61c},	    {0x6dd, 0x6dd},
		{0x70f, 0x70f},	    {0x890, 0x891},	{0x8e2, 0x8e2},	    {0x180e, 0x180e},
		{0x200b, 0x200f},   {0x2028, 0x202e},	{0x2060, 0x2064},   {0x2066, 0x206f},
		{0xfeff, 0xfeff},   {0xfff9, 0xfffb},	{0x110bd, 0x110bd}, {0x110cd, 0x110cd},
		{0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0001, 0xe0001},
		{0xe0020, 0xe007f},
	};
	static const uint32_t passes[] = {
		0xa0,	 0xac,	  0xae,	   0x5ff,   0x606,   0x61b,   0x61d,   0x6dc,	0x6de,
		0x70e,	 0x710,	  0x88f,   0x892,   0x8e1,   0x8e3,   0x180d,  0x180f,	0x200a,
		0x2010,	 0x2027,  0x202f,  0x205f,  0x2070,  0xfe0f,  0xfefe,  0xff00,	0xffef,
		0xfffc,	 0xfffd,  0x110bc, 0x110be, 0x110cc, 0x110ce, 0x1342f, 0x13440, 0x1bc9f,
		0x1bca4, 0x1d172, 0x1d17b, 0xdffff, 0xe0100, 0x1f600,
	};

	expect_clean("a\xe2\x80\xae"
		     "b",
		     "a\\xe2\\x80\\xaeb", "a\\xe2\\x80\\xaeb");
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		for (uint32_t c = ranges[i][0]; c <= ranges[i][1]; c++)
			expect_escaped(c, true);
	for (size_t i = 0; i < sizeof(passes) / sizeof(passes[0]); i++)
		expect_escaped(passes[i], false);
}
