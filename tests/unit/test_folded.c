// SPDX-License-Identifier: BSD-2-Clause
/* Folded stacks parse back to the same stacks, whatever bytes names have. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "out/folded.h"
#include "out/folded_name.h"
#include "out/jitp.h"
#include "prof/prof.h"
#include "source_plain.h"

TestSuite(folded);

enum { FUNCTIONS = 600, ROWS = 400, DEPTH = 6 };

struct folded_stacks {
	struct prof *prof;
	unsigned int functions[ROWS][DEPTH]; /* root first */
	size_t depth[ROWS];
};

static unsigned int draw(unsigned int *seed, unsigned int n)
{
	*seed = *seed * 1664525U + 1013904223U;
	return (*seed >> 8) % n;
}

/* "N17x" and bytes that formats care for, or any. */
static void make_name(unsigned int *seed, unsigned int number, char *name, size_t size)
{
	static const char odd[] = ";; \t\r\n 0123456789..<>()\x1b\x7f\xc2\x9b\xe2\x80\xae";
	size_t n = (size_t)snprintf(name, size, "N%ux", number), end = n + draw(seed, 12);

	while (n < end)
		name[n++] = draw(seed, 4) ? odd[draw(seed, sizeof(odd) - 1)]
					  : (char)(1 + draw(seed, 255));
	name[n] = '\0';
}

static void fill(struct folded_stacks *s, unsigned int seed)
{
	uint32_t ids[FUNCTIONS], stack[DEPTH];
	struct prof_labels labels = {.vmstate = 'I'};
	char name[32];

	cr_assert_eq(prof_new(&s->prof), 0);
	for (unsigned int i = 0; i < FUNCTIONS; i++) {
		struct prof_frame frame = {.kind = i % 3 ? PROF_LUA : PROF_C,
					   .chunk = "@a;b 7.lua",
					   .firstline = (int32_t)i + 1};

		make_name(&seed, i, name, sizeof(name));
		if (i % 3)
			frame.callname = name;
		else
			frame.symbol = name;
		cr_assert_eq(prof_frame_id(s->prof, &frame, &ids[i]), 0);
	}
	for (unsigned int i = 0; i < ROWS; i++) {
		s->depth[i] = 1 + draw(&seed, DEPTH);
		for (size_t k = 0; k < s->depth[i]; k++) {
			s->functions[i][k] = k ? draw(&seed, FUNCTIONS) : i;
			stack[s->depth[i] - 1 - k] = ids[s->functions[i][k]];
		}
		labels.pid = i + 1;
		cr_assert_eq(prof_add(s->prof, stack, s->depth[i], &labels, i + 1), 0);
	}
}

static void expect_frame(const char *frame, unsigned int number)
{
	size_t len = strlen(frame), end = len;
	__text struct text valid = {0};
	unsigned int got = 0;

	text_put_utf8(&valid, frame, len);
	cr_assert_str_eq(text_str(&valid), frame, "not UTF-8");
	cr_assert_eq(sscanf(frame, "N%ux", &got), 1, "%s", frame);
	cr_assert_eq(got, number, "%s", frame);
	for (size_t i = 0; i < len; i++)
		cr_assert(!iscntrl((unsigned char)frame[i]), "%s", frame);
	while (end && (isdigit((unsigned char)frame[end - 1]) || frame[end - 1] == '.'))
		end--;
	cr_assert(end == len || !end || frame[end - 1] != ' ', "ends in a number: %s", frame);
}

/* Each row has its own root and its own count. */
static void expect_rows(const struct folded_stacks *s, char *text)
{
	size_t rows = 0;
	char *line;

	while ((line = strsep(&text, "\n")) && *line) {
		char *space = strrchr(line, ' ');
		unsigned long count;
		size_t depth = 0;
		char *frame;

		cr_assert_not_null(space);
		count = strtoul(space + 1, NULL, 10);
		cr_assert(count >= 1 && count <= ROWS, "%s", line);
		*space = '\0';
		while ((frame = strsep(&line, ";"))) {
			cr_assert_lt(depth, s->depth[count - 1]);
			expect_frame(frame, s->functions[count - 1][depth++]);
		}
		cr_assert_eq(depth, s->depth[count - 1]);
		rows++;
	}
	cr_assert_eq(rows, ROWS);
}

static void render(const struct prof *prof, bool raw, FILE *out)
{
	struct jitp_options options;

	if (!raw) {
		cr_assert_eq(folded_write(prof, out), 0);
		return;
	}
	cr_assert_eq(jitp_options("G", &options, NULL), 0);
	cr_assert_eq(jitp_render(prof, &options, &source_plain, out), 0);
}

Test(folded, any_names_parse_back_to_the_same_stacks)
{
	for (unsigned int seed = 0; seed < 20; seed++) {
		struct folded_stacks s;

		fill(&s, seed);
		for (int raw = 0; raw < 2; raw++) {
			__free char *text = NULL;
			size_t len;
			FILE *out = open_memstream(&text, &len);

			render(s.prof, raw, out);
			fclose(out);
			expect_rows(&s, text);
		}
		prof_free(&s.prof);
	}
}

/* Names that a simpler escape would make one. */
Test(folded, distinct_names_stay_distinct)
{
	static const char *const names[][2] = {
		{"a;b", "a\\x3bb"},
		{"a:b", "a:b"},
		{" ", "\\x20"},
		{"\r", "\\x0d"},
		{"\t", "\\x09"},
		{"x 12", "x\\x2012"},
		{"x_12", "x_12"},
		{"\\x20", "\\x5cx20"},
		{"", "\\x00"},
		{"?", "?"},
		{"C:\\x.lua", "C:\\x.lua"},
		{" a ", "\\x20a\\x20"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		__text struct text name = {0}, out = {0};

		text_puts(&name, names[i][0]);
		folded_put_frame(&out, &name);
		cr_expect_str_eq(text_str(&out), names[i][1]);
	}
}

/* Stacks of up to 100 frames have their root, deeper ones say that it is missing. */
Test(folded, raw_stacks_have_their_root_or_say_so)
{
	for (unsigned int depth = 98; depth <= 103; depth++) {
		struct prof *prof = NULL;
		struct prof_labels labels = {.vmstate = 'I'};
		__free char *text = NULL;
		uint32_t ids[128];
		size_t len, separators = 0;
		FILE *out = open_memstream(&text, &len);

		cr_assert_eq(prof_new(&prof), 0);
		for (unsigned int i = 0; i < depth; i++) {
			struct prof_frame frame = {
				.kind = PROF_LUA, .chunk = "@x", .firstline = (int32_t)(depth - i)};

			cr_assert_eq(prof_frame_id(prof, &frame, &ids[i]), 0);
		}
		cr_assert_eq(prof_add(prof, ids, depth, &labels, 1), 0);
		render(prof, true, out);
		fclose(out);
		for (const char *p = text; *p; p++)
			separators += *p == ';';
		if (depth <= 100) {
			cr_expect(!strncmp(text, "x:1;x:2;", 8), "%s", text);
			cr_expect_eq(separators, depth - 1);
		} else {
			cr_expect(!strncmp(text, "[cut];x:", 8), "%s", text);
			cr_expect_eq(separators, 100);
		}
		prof_free(&prof);
	}
}
