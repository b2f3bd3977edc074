// SPDX-License-Identifier: BSD-2-Clause
/* out/dumpstack.h: formats as LuaJIT's lj_debug_dumpstack() reads them, and what reports add to them. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/text.h"
#include "out/dumpstack.h"
#include "prof/name.h"

TestSuite(dumpstack);

/* Three frames, the leaf first: a C function, and two Lua functions. */
static const enum prof_kind kinds[] = {PROF_C, PROF_LUA, PROF_LUA};
#define FRAMES 3

/* "f0", "F1", "l2"; with the whole path "/f0", of the numbered form "#l0". */
static int put(void *arg, struct text *out, uint32_t frame, char what, unsigned int flags)
{
	if (arg)
		return -ENOMEM;
	text_printf(out, "%s%s%c%u", flags & NAME_PATH ? "/" : "", flags & NAME_NUMBER ? "#" : "",
		    what, frame);
	return 0;
}

struct dump_form {
	const char *fmt;
	int depth;
	bool folded;
	size_t n; /* frames of the stack */
	const char *want;
};

static int dump(const struct dump_form *form, void *fails, struct text *out)
{
	const struct dumpstack how = {
		.fmt = form->fmt,
		.depth = form->depth,
		.folded = form->folded,
		.most = 20,
		.put = put,
		.arg = fails,
	};
	struct prof *prof = NULL;
	uint32_t ids[FRAMES];
	int r;

	cr_assert_eq(prof_new(&prof), 0);
	for (int i = 0; i < FRAMES; i++) {
		const struct prof_frame frame = {.kind = kinds[i], .line = i, .chunk = "@x"};

		cr_assert_eq(prof_frame_id(prof, &frame, &ids[i]), 0);
		cr_assert_eq(ids[i], (uint32_t)i);
	}
	r = dumpstack(&how, prof, &(struct prof_row){.frames = ids, .nframes = form->n}, out);
	prof_free(&prof);
	return r;
}

Test(dumpstack, formats)
{
	const struct dump_form forms[] = {
		{"f", 1, false, 3, "f0"},
		{"fF", 2, false, 3, "f0F0f1F1"},
		{"lZ < ", 2, false, 3, "l0 < l1"},
		{"lZ < ", 100, false, 3, "l0 < l1 < l2"},
		{"lZ > ", -2, false, 3, "l1 > l0"},
		{"lZ > ", INT_MIN, false, 3, "l2 > l1 > l0"},
		{"lZ > ", INT_MAX, false, 3, "l0 > l1 > l2"},
		{"l\n", 10, false, 2, "l0\nl1\n"},
		{"fpf ", 2, false, 3, "f0/f0 /f1/f1 "}, /* p stays */
		{"<f>", 1, false, 3, "<f0>"},
		{"fZ", 3, false, 3, "f0f1f2"},
		{"Zf", 1, false, 3, "f0"}, /* nothing is before it: LuaJIT keeps all */
		{"f", 0, false, 3, ""},
		{"", 5, false, 3, ""},
		{"fZ;", 5, false, 0, ""},
		{"%d\\i", 1, false, 3, "%d\\i"},
		/* second keys, and annotated source */
		{"l", 1, false, 3, "#l0"},
		{"pl", 1, false, 3, "/l1"},
		{"pl", 1, false, 1, "/l0"},
		{"plZ < ", 1, false, 3, "/l0"},
		/* folded stacks */
		{"fZ;", -2, true, 3, "[cut];f1;f0"},
		{"fZ;", -3, true, 3, "f2;f1;f0"},
		{"fZ;", 2, true, 3, "f0;f1"},
		{"fZ;", -100, true, 0, "[no frame]"},
		/* more than `most` bytes */
		{"f.........Z ", 3, false, 3, "f0......... f1......... (other)........."},
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		__text struct text out = {0};

		cr_expect_eq(dump(&forms[i], NULL, &out), 0);
		cr_expect_str_eq(text_str(&out), forms[i].want, "%s", forms[i].fmt);
		cr_expect_eq(out.len, strlen(text_str(&out)));
	}
}

Test(dumpstack, an_error_of_a_name)
{
	const struct dump_form form = {"fZ;", 3, true, 3, ""};
	__text struct text out = {0};

	cr_expect_eq(dump(&form, &out, &out), -ENOMEM);
}
