// SPDX-License-Identifier: BSD-2-Clause
/* Which frames are one function, and what it is called. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/text.h"
#include "prof/function.h"
#include "prof/name.h"

TestSuite(function);

#define MAX 8

struct setup {
	struct prof *prof;
	struct functions *functions;
	uint32_t ids[MAX];
};

/* The functions of the frames up to the first without a kind's data (chunk, symbol, address). */
static struct setup set_up(const struct prof_frame *frames, size_t n)
{
	struct setup s = {0};

	cr_assert_eq(prof_new(&s.prof), 0);
	for (size_t i = 0; i < n; i++)
		cr_assert_eq(prof_frame_id(s.prof, &frames[i], &s.ids[i]), 0);
	cr_assert_eq(functions_new(s.prof, &s.functions), 0);
	return s;
}

static void tear_down(struct setup *s)
{
	functions_free(&s->functions);
	prof_free(&s->prof);
}

/* Each frame's name in jit.p's format 'f', in pprof, and in folded stacks. */
struct function_names {
	const char *jitp, *stable, *unique;
};

static void expect(const char *got, const char *want)
{
	if (want)
		cr_expect_str_eq(got, want);
}

static void expect_names(const struct prof_frame *frames, const struct function_names *names,
			 size_t n)
{
	struct setup s = set_up(frames, n);
	__text struct text out = {0};

	for (size_t i = 0; i < n; i++) {
		uint32_t number = functions_of(s.functions, s.ids[i]);

		text_clear(&out);
		functions_put_jitp(s.functions, &out, s.ids[i], 'f', 0);
		expect(text_str(&out), names[i].jitp);
		text_clear(&out);
		functions_put_stable(s.functions, &out, number);
		expect(text_str(&out), names[i].stable);
		text_clear(&out);
		functions_put_unique(s.functions, &out, number);
		expect(text_str(&out), names[i].unique);
	}
	tear_down(&s);
}

static void expect_name(struct prof_frame frame, const char *jitp, const char *stable,
			const char *unique)
{
	struct function_names names = {jitp, stable, unique};

	expect_names(&frame, &names, 1);
}

static void expect_jitp(struct prof_frame frame, char what, unsigned int flags, const char *want)
{
	struct setup s = set_up(&frame, 1);
	__text struct text out = {0};

	functions_put_jitp(s.functions, &out, s.ids[0], what, flags);
	cr_expect_str_eq(text_str(&out), want);
	tear_down(&s);
}

Test(function, names_of_jit_p)
{
	struct prof_frame lua = {.kind = PROF_LUA, .chunk = "@a/b.lua", .firstline = 3, .line = 7};
	struct prof_frame lib = {.kind = PROF_LUA, .chunk = "table", .firstline = -1, .line = 1};
	struct prof_frame fast = {.kind = PROF_BUILTIN, .addr = 55, .symbol = "string.rep"};
	struct prof_frame c = {.kind = PROF_C};

	expect_jitp(lua, 'f', 0, "b.lua:3");
	expect_jitp(lua, 'l', NAME_PATH, "a/b.lua:7");
	lua.callname = "f";
	lua.line = -1;
	expect_jitp(lua, 'F', 0, "b.lua:f");
	expect_jitp(lua, 'l', 0, "b.lua:3");
	expect_jitp(lib, 'l', 0, "[builtin:table]");
	lib.callname = "foreach";
	expect_jitp(lib, 'F', 0, "foreach");
	expect_jitp(fast, 'l', 0, "string.rep");
	expect_jitp(fast, 'l', NAME_NUMBER, "[builtin#55]");
	expect_jitp(c, 'f', 0, "@NULL");
	c.addr = 0x1234;
	expect_jitp(c, 'f', 0, "@0x00001234");
	c.addr = 0x123456789;
	expect_jitp(c, 'f', 0, "@0x0123456789");
	c.addr = UINT64_MAX;
	expect_jitp(c, 'f', 0, "@0xffffffffffffffff");
	c.symbol = "lua_sleep";
	expect_jitp(c, 'l', 0, "lua_sleep");
	c.callname = "sleep";
	expect_jitp(c, 'F', 0, "sleep");
}

Test(function, a_c_function_without_a_symbol_is_a_place_in_its_module)
{
	struct prof_frame c = {.kind = PROF_C, .chunk = "luajit", .addr = 0x92c0};

	expect_name(c, "luajit+0x92c0", "luajit+0x92c0", "luajit+0x92c0");
	c.callname = "push"; /* jit.p has the call's name, what is compared has not */
	expect_name(c, "push", "luajit+0x92c0", "luajit+0x92c0");
	expect_name((struct prof_frame){.kind = PROF_C, .chunk = "[unknown]"}, "[unknown]",
		    "[unknown]", "[unknown]");
}

Test(function, stable_names)
{
	struct prof_frame lua = {.kind = PROF_LUA, .chunk = "@a/b.lua", .firstline = 3, .line = 7};
	struct prof_frame c = {.kind = PROF_C, .addr = 0x12345678, .callname = "?"};

	expect_name(lua, NULL, "a/b.lua:3", "a/b.lua:3");
	lua.callname = "?";
	expect_name(lua, "b.lua:3", "a/b.lua:3", "a/b.lua:3");
	lua.callname = "";
	expect_name(lua, "b.lua:3", "a/b.lua:3", "a/b.lua:3");
	lua.callname = "f";
	lua.defname = "?";
	expect_name(lua, "f", "f", "f (a/b.lua:3)");
	lua.defname = "M.f";
	expect_name(lua, "f", "M.f", "M.f (a/b.lua:3)");
	lua.chunk = NULL;
	expect_name(lua, "f", "M.f", "M.f (?:3)");
	lua.chunk = "=stdin";
	expect_name(lua, "f", "M.f", "M.f (stdin:3)");
	lua.chunk = "return 1";
	expect_name(lua, "f", "M.f", "M.f ([string \"return 1\"]:3)");
	lua = (struct prof_frame){.kind = PROF_LUA, .chunk = "table", .firstline = -1};
	expect_name(lua, NULL, "[builtin:table]", "[builtin:table]");
	lua.callname = "foreach";
	expect_name(lua, "foreach", "foreach", "foreach ([builtin:table])");
	expect_name(c, "@0x12345678", "@0x12345678", "@0x12345678");
	c.callname = "sleep";
	expect_name(c, "sleep", "@0x12345678", "@0x12345678");
	c.symbol = "lua_sleep";
	expect_name(c, "sleep", "lua_sleep", "lua_sleep");
	expect_name((struct prof_frame){.kind = PROF_CUT, .callname = "x"}, "[cut]", "[cut]",
		    "[cut]");
}

Test(function, chunks_of_text_are_distinguished)
{
	struct prof_frame lua = {.kind = PROF_LUA, .firstline = 3};
	const char *const cut = "[string \"123456789 123456789 123456789 12345678\xc3\xa4...\" "
				"658c91ec]:3";

	lua.chunk = "return 1";
	expect_name(lua, "[string \"return 1\"]:3", "[string \"return 1\"]:3", NULL);
	lua.chunk = "return 1\n, 2";
	expect_name(lua, "[string \"return 1...\" 022557dc]:3",
		    "[string \"return 1...\" 022557dc]:3", NULL);
	lua.chunk = "return 1\n, 3";
	expect_name(lua, "[string \"return 1...\" 0325596f]:3",
		    "[string \"return 1...\" 0325596f]:3", NULL);
	lua.chunk = "123456789 123456789 123456789 12345678\xc3\xa4\xc3\xa4";
	expect_name(lua, cut, cut, cut);
}

Test(function, no_chunk_is_empty)
{
	static const struct {
		const char *chunk, *shown;
	} rows[] = {{"@", "@:0"},	 {"=", "=:0"},	{"", "[string \"\"]:0"},
		    {"@dir/", "dir/:0"}, {"=?", "?:0"}, {"@a\\", "a\\:0"}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		expect_name((struct prof_frame){.kind = PROF_LUA, .chunk = rows[i].chunk},
			    rows[i].shown, rows[i].shown, rows[i].shown);
}

/* ---- one name, one function ------------------------------------------------------------------ */

#define FN(line_, call, def)                                                                       \
	{                                                                                          \
		.kind = PROF_LUA, .chunk = "@d.lua", .firstline = line_, .callname = call,         \
		.defname = def                                                                     \
	}

/* Four functions of a table, called through one variable. */
Test(function, a_name_of_two_functions_is_neither_s)
{
	static const struct prof_frame frames[] = {FN(5, "f", NULL), FN(6, "f", NULL),
						   FN(7, "f", "H.g"), FN(8, "one", NULL)};
	static const struct function_names names[] = {
		{"d.lua:5", "f (d.lua:5)", "f (d.lua:5)"},
		{"d.lua:6", "f (d.lua:6)", "f (d.lua:6)"},
		{"H.g", "H.g", "H.g (d.lua:7)"},
		{"one", "one", "one (d.lua:8)"},
	};

	expect_names(frames, names, 4);
}

/* A tail call leaves the caller's instruction with the name of another: idle() became parse(). */
/* One sample that shows a wrong caller must not rename the C function of all others. */
Test(function, a_symbol_is_not_shared_with_the_name_of_a_call)
{
	const struct prof_frame frames[] = {
		{.kind = PROF_C, .symbol = "pcall", .callname = "pcall", .chunk = "liblua.so"},
		{.kind = PROF_LUA,
		 .callname = "pcall",
		 .chunk = "@a.lua",
		 .firstline = 3,
		 .line = 4},
	};
	const struct function_names names[] = {
		{"pcall", "pcall", "pcall"},
		{"a.lua:3", "pcall (a.lua:3)", "pcall (a.lua:3)"},
	};

	expect_names(frames, names, 2);
}

/* A metamethod is not the function that calls it. */
Test(function, a_word_of_a_definition_is_its_name)
{
	static const struct {
		const char *defname, *callname, *jitp;
	} cases[] = {{"M.f", "f", "f"},
		     {"my_clock", "clock", "clock"},
		     {"myclock", "clock", "myclock"},
		     {"mt.__tostring", "tostring", "mt.__tostring"},
		     {"__index", "index", "__index"},
		     {"_f", "f", "_f"},
		     {"_f", "_f", "_f"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_name((struct prof_frame){.kind = PROF_LUA,
						.chunk = "@a.lua",
						.firstline = 3,
						.line = 7,
						.defname = cases[i].defname,
						.callname = cases[i].callname},
			    cases[i].jitp, NULL, NULL);
}

Test(function, a_definition_comes_before_another_name)
{
	static const struct prof_frame frames[] = {FN(8, "idle", "idle"), FN(9, "idle", "parse"),
						   FN(10, "idle", "M.emit")};
	static const struct function_names names[] = {{"idle", "idle", NULL},
						      {"parse", "parse", NULL},
						      {"M.emit", "M.emit", "M.emit (d.lua:10)"}};

	expect_names(frames, names, 3);
	expect_names(frames + 1, names + 1, 1); /* nor when the other is never seen */
}

Test(function, one_function_has_one_name)
{
	/* by two names; one of them the definition's; the definition unknown in one stack */
	static const struct prof_frame frames[] = {
		FN(1, "a", NULL),  FN(1, "b", NULL), FN(2, "add", "M.sum"), FN(2, "sum", "M.sum"),
		FN(3, NULL, NULL), FN(3, "x", NULL), FN(4, "cb", "on"),	    FN(4, "cb", NULL)};
	static const struct function_names names[] = {
		{"d.lua:1", "d.lua:1", NULL},
		{"d.lua:1", "d.lua:1", NULL},
		{"sum", "M.sum", NULL},
		{"sum", "M.sum", NULL},
		{"x", "x", NULL},
		{"x", "x", NULL},
		{"on", "on", NULL},
		{"on", "on", NULL},
	};

	expect_names(frames, names, 8);
}

/* Chunks that a host generates share a name, a line and a shape: one's definition is not that of the others. */
Test(function, a_generated_chunk_may_be_another)
{
	static const struct prof_frame generated[] = {
		{.kind = PROF_LUA, .chunk = "=gen", .firstline = 1},
		{.kind = PROF_LUA, .chunk = "=gen", .firstline = 1, .defname = "t.alpha"}};
	static const struct prof_frame file[] = {
		{.kind = PROF_LUA, .chunk = "@gen", .firstline = 1},
		{.kind = PROF_LUA, .chunk = "@gen", .firstline = 1, .defname = "t.alpha"}};
	static const struct function_names two[] = {{"gen:1~8bd1a4cf", "gen:1~8bd1a4cf", NULL},
						    {"t.alpha", "t.alpha", NULL}};
	static const struct function_names one[] = {{"t.alpha", "t.alpha", NULL},
						    {"t.alpha", "t.alpha", NULL}};

	expect_names(generated, two, 2);
	expect_names(file, one, 2);
	expect_name(generated[0], "gen:1", "gen:1", NULL);
	expect_names(generated + 1, &one[1], 1);
}

Test(function, methods_of_one_name_go_by_their_classes)
{
	static const struct prof_frame frames[] = {
		FN(1, "update", "A.update"), FN(2, "update", "B.update"), FN(3, "A.update", NULL)};
	static const struct function_names names[] = {{"d.lua:1", "A.update (d.lua:1)", NULL},
						      {"B.update", "B.update", NULL},
						      {"d.lua:3", "A.update (d.lua:3)", NULL}};

	expect_names(frames, names, 3);
}

/* Two functions of one line are distinguished by their prototypes, if not by their names. */
Test(function, one_line_may_have_two_functions)
{
	static const struct prof_frame frames[] = {
		{.kind = PROF_LUA,
		 .chunk = "@min.lua",
		 .firstline = 1,
		 .callname = "a",
		 .shape = 1},
		{.kind = PROF_LUA,
		 .chunk = "@min.lua",
		 .firstline = 1,
		 .callname = "b",
		 .shape = 2},
		{.kind = PROF_LUA, .chunk = "@min.lua", .firstline = 1, .defname = "c", .shape = 2},
	};
	static const struct function_names names[] = {
		{"a", "a", NULL}, {"c", "c", NULL}, {"c", "c", NULL}};

	expect_names(frames, names, 3);
}

/* A function whose definition is known to have no name is not the one around it, nor is one of which
 * nothing is known either's. */
Test(function, a_definition_may_have_no_name)
{
	static const struct prof_frame frames[] = {FN(1, NULL, "outer"), FN(1, NULL, ""),
						   FN(1, NULL, NULL), FN(2, "x", ""),
						   FN(2, "y", NULL)};
	static const struct function_names names[] = {
		{"outer", "outer", NULL},
		{"d.lua:1~9b24a0b3", "d.lua:1~9b24a0b3", NULL},
		{"d.lua:1~7522264a", "d.lua:1~7522264a", NULL},
		{"d.lua:2", "d.lua:2", NULL},
		{"d.lua:2", "d.lua:2", NULL}};

	expect_names(frames, names, 5);
}

/* Functions of one line with the same sizes and names have different numbers. A definition that is
 * known only while the parent is on the stack belongs to the number. */
Test(function, functions_of_one_line_are_numbered)
{
	static const struct prof_frame frames[] = {
		{.kind = PROF_LUA, .chunk = "@m.lua", .firstline = 1, .shape = 1},
		{.kind = PROF_LUA,
		 .chunk = "@m.lua",
		 .firstline = 1,
		 .shape = 1,
		 .order = 1,
		 .place = 1},
		{.kind = PROF_LUA,
		 .chunk = "@m.lua",
		 .firstline = 1,
		 .shape = 1,
		 .order = 1,
		 .place = 1,
		 .defname = "M.f"},
		{.kind = PROF_LUA,
		 .chunk = "@m.lua",
		 .firstline = 1,
		 .line = 7,
		 .shape = 1,
		 .order = 2,
		 .place = 2},
	};
	static const struct function_names names[] = {
		{"m.lua:1", "m.lua:1", "m.lua:1"},
		{"M.f", "M.f", "M.f (m.lua:1#2)"},
		{"M.f", "M.f", "M.f (m.lua:1#2)"},
		{"m.lua:1#3", "m.lua:1#3", "m.lua:1#3"},
	};

	expect_names(frames, names, 4);
	expect_jitp(frames[3], 'l', 0, "m.lua:7");
}

#define MIN(contents_, order_, place_, ...)                                                        \
	{                                                                                          \
		.kind = PROF_LUA, .chunk = "@min.lua", .firstline = 1, .shape = 1,                 \
		.contents = contents_, .order = order_, .place = place_, ##__VA_ARGS__             \
	}
#define NO PROF_NO_ORDER

/* Functions of one line and one size are distinguished by what they consist of. One whose VM was closed before it was
 * counted, or read whole, is the one that equals it otherwise. */
Test(function, contents_distinguish_functions)
{
	static const struct prof_frame frames[] = {
		MIN(7, 0, 0), MIN(7, NO, NO), MIN(7, 0, NO, .defname = "a"),
		MIN(9, 0, 1), MIN(9, NO, NO), MIN(9, 0, 0),
	};
	static const struct function_names names[] = {
		{"a", "a", "a (min.lua:1)"},	      {"a", "a", "a (min.lua:1)"},
		{"a", "a", "a (min.lua:1)"},	      {"min.lua:1#2", "min.lua:1#2", "min.lua:1#2"},
		{"min.lua:1#2", "min.lua:1#2", NULL}, {"min.lua:1#2", "min.lua:1#2", NULL},
	};
	static const struct prof_frame one[] = {MIN(7, 0, 0), MIN(0, NO, NO)};
	static const struct function_names same[] = {{"min.lua:1", "min.lua:1", "min.lua:1"},
						     {"min.lua:1", "min.lua:1", "min.lua:1"}};

	expect_names(frames, names, 6);
	expect_names(one, same, 2);
}

/* It may be either of two. */
Test(function, unknown_contents_are_none_of_several)
{
	struct setup s;
	static const struct prof_frame frames[] = {MIN(7, 0, 0), MIN(9, 0, 1), MIN(0, NO, NO),
						   MIN(7, 1, 2), MIN(7, NO, NO)};

	s = set_up(frames, 5);
	for (size_t i = 0; i < 5; i++)
		for (size_t j = 0; j < i; j++)
			cr_expect_neq(functions_of(s.functions, s.ids[i]),
				      functions_of(s.functions, s.ids[j]), "%zu %zu", i, j);
	tear_down(&s);
}

/* Returns whether three frames of one function, of order 0, 1 and of none, are one: with so many samples each. */
static bool are_one(const uint64_t count[3])
{
	static const struct prof_frame frames[] = {
		{.kind = PROF_LUA, .chunk = "=tpl", .firstline = 2, .shape = 1},
		{.kind = PROF_LUA,
		 .chunk = "=tpl",
		 .firstline = 2,
		 .shape = 1,
		 .order = 1,
		 .place = 1},
		{.kind = PROF_LUA,
		 .chunk = "=tpl",
		 .firstline = 2,
		 .shape = 1,
		 .order = NO,
		 .place = NO},
	};
	const struct prof_labels labels = {.vmstate = 'I'};
	struct setup s = {0};
	uint32_t of[3];

	cr_assert_eq(prof_new(&s.prof), 0);
	for (size_t i = 0; i < 3; i++) {
		cr_assert_eq(prof_frame_id(s.prof, &frames[i], &s.ids[i]), 0);
		if (count[i])
			cr_assert_eq(prof_add(s.prof, &s.ids[i], 1, &labels, count[i]), 0);
	}
	cr_assert_eq(functions_new(s.prof, &s.functions), 0);
	for (size_t i = 0; i < 3; i++)
		of[i] = functions_of(s.functions, s.ids[i]);
	tear_down(&s);
	return of[0] == of[1] && of[1] == of[2];
}

/* A chunk is loaded again and again: one sample counted the functions of an earlier load, too. */
Test(function, a_rare_order_is_doubted)
{
	cr_expect(are_one((uint64_t[]){100, 1, 50}));
	cr_expect(are_one((uint64_t[]){1, 100, 50}));
	cr_expect_not(are_one((uint64_t[]){100, 10, 50}), "two functions of the line");
	cr_expect_not(are_one((uint64_t[]){100, 100, 1}));
}

/* A path that one stack shows is that of all, as the contents are the same. */
Test(function, functions_are_known_by_their_contents)
{
	static const struct prof_frame frames[] = {
		{.kind = PROF_LUA, .chunk = "@sd.lj", .position = "~0a", .shape = 1},
		{.kind = PROF_LUA, .chunk = "@sd.lj", .position = "3", .defname = "", .shape = 1},
		{.kind = PROF_LUA, .chunk = "@sd.lj", .position = "~0a", .defname = "", .shape = 1},
		{.kind = PROF_LUA,
		 .chunk = "@sd.lj",
		 .position = "~0a.2",
		 .shape = 1,
		 .order = 1,
		 .place = 1},
		{.kind = PROF_LUA, .chunk = "=?", .position = "~0a", .firstline = 2, .shape = 1},
		{.kind = PROF_LUA, .chunk = "=?", .position = "~0b", .firstline = 2, .shape = 2},
	};
	static const struct function_names names[] = {
		{"sd.lj:0#3", "sd.lj:0#3", NULL}, {"sd.lj:0#3", "sd.lj:0#3", NULL},
		{"sd.lj:0#3", "sd.lj:0#3", NULL}, {"sd.lj:0#~0a.2", "sd.lj:0#~0a.2", NULL},
		{"?:2#~0a", "?:2#~0a", NULL},	  {"?:2#~0b", "?:2#~0b", NULL},
	};

	expect_names(frames, names, 6);
}

/* Rows of different functions are never one: two chunks of one name, two sizes. */
Test(function, no_two_functions_have_one_place)
{
	static const struct prof_frame frames[] = {
		{.kind = PROF_LUA, .chunk = "=x", .firstline = 1, .shape = 1},
		{.kind = PROF_LUA, .chunk = "=x", .firstline = 1, .shape = 2},
		{.kind = PROF_LUA, .chunk = "@x", .firstline = 1, .shape = 1},
		{.kind = PROF_LUA, .chunk = "@x", .firstline = 2, .shape = 1},
	};
	struct setup s = set_up(frames, 4);
	struct text out[4] = {0};

	for (size_t i = 0; i < 4; i++) {
		functions_put_jitp(s.functions, &out[i], s.ids[i], 'f', 0);
		for (size_t j = 0; j < i; j++)
			cr_expect_str_neq(text_str(&out[i]), text_str(&out[j]));
		cr_expect_eq(!strncmp(text_str(&out[i]), "x:1~", 4), i < 3, "%s",
			     text_str(&out[i]));
	}
	for (size_t i = 0; i < 4; i++)
		text_free(&out[i]);
	tear_down(&s);
}

Test(function, functions_without_lines_have_positions)
{
	static const struct prof_frame frames[] = {
		{.kind = PROF_LUA, .chunk = "@sd.lj"},
		{.kind = PROF_LUA, .chunk = "@sd.lj", .position = "3"},
		{.kind = PROF_LUA, .chunk = "@sd.lj", .position = "3.1", .callname = ""},
	};
	static const struct function_names names[] = {{"sd.lj:0", NULL, NULL},
						      {"sd.lj:0#3", NULL, NULL},
						      {"sd.lj:0#3.1", NULL, "sd.lj:0#3.1"}};

	expect_names(frames, names, 3);
	expect_jitp(frames[1], 'l', 0, "sd.lj:0#3");
}

Test(function, files_of_one_name_show_their_paths)
{
	static const struct prof_frame frames[] = {
		{.kind = PROF_LUA, .chunk = "@a/init.lua", .firstline = 1},
		{.kind = PROF_LUA, .chunk = "@b/init.lua", .firstline = 1},
		{.kind = PROF_LUA, .chunk = "@b/other.lua", .firstline = 1},
	};
	static const struct function_names names[] = {{"a/init.lua:1", NULL, NULL},
						      {"b/init.lua:1", NULL, NULL},
						      {"other.lua:1", NULL, NULL}};

	expect_names(frames, names, 3);
}

Test(function, a_builtin_called_by_another_name_is_itself)
{
	static const struct prof_frame frames[] = {
		{.kind = PROF_BUILTIN, .addr = 3, .symbol = "string.rep", .callname = "rep"},
		{.kind = PROF_BUILTIN, .addr = 4, .symbol = "string.format", .callname = "api"},
		{.kind = PROF_BUILTIN, .addr = 5, .symbol = "io.close", .callname = "close"},
		{.kind = PROF_C, .addr = 6, .symbol = "sock_close", .callname = "close"},
	};
	static const struct function_names names[] = {{"rep", "string.rep", "string.rep"},
						      {"string.format", "string.format", NULL},
						      {"io.close", "io.close", NULL},
						      {"sock_close", "sock_close", NULL}};

	expect_names(frames, names, 4);
}

struct in_vm {
	const char *vm;
	struct prof_frame frame;
	const char *name; /* in folded stacks */
};

/* Each frame in a sample of its VM. */
static struct setup set_up_in_vms(const struct in_vm *frames, size_t n)
{
	struct setup s = {0};

	cr_assert_eq(prof_new(&s.prof), 0);
	for (size_t i = 0; i < n; i++) {
		const struct prof_origin origin = {.vm = frames[i].vm};
		struct prof_labels labels = {.vmstate = 'I'};

		cr_assert_eq(prof_origin_id(s.prof, &origin, &labels.origin), 0);
		cr_assert_eq(prof_frame_id(s.prof, &frames[i].frame, &s.ids[i]), 0);
		cr_assert_eq(prof_add(s.prof, &s.ids[i], 1, &labels, 1), 0);
	}
	cr_assert_eq(functions_new(s.prof, &s.functions), 0);
	return s;
}

static void expect_in_vms(const struct in_vm *frames, size_t n)
{
	struct setup s = set_up_in_vms(frames, n);
	__text struct text out = {0};

	for (size_t i = 0; i < n; i++) {
		text_clear(&out);
		functions_put_unique(s.functions, &out, functions_of(s.functions, s.ids[i]));
		cr_expect_str_eq(text_str(&out), frames[i].name, "%zu: %s", i, text_str(&out));
	}
	tear_down(&s);
}

#define SHAPED(chunk_, line_, shape_, ...)                                                         \
	{                                                                                          \
		.kind = PROF_LUA, .chunk = chunk_, .firstline = line_, .shape = shape_,            \
		##__VA_ARGS__                                                                      \
	}

/* Its sizes are those of each VM's bytecode. */
Test(function, one_source_in_several_vms)
{
	static const struct in_vm frames[] = {
		{"5.1", SHAPED("@m.lua", 1, 1, .defname = "f"), "f (m.lua:1)"},
		{"5.4", SHAPED("@m.lua", 1, 2, .defname = "f"), "f (m.lua:1)"},
		{"5.5", SHAPED("@m.lua", 1, 3), "f (m.lua:1)"},
		{"5.1", SHAPED("@m.lua", 9, 1, .defname = ""), "m.lua:9"},
		{"5.4", SHAPED("@m.lua", 9, 2, .defname = ""), "m.lua:9"},
		{"5.1", SHAPED("return 1", 0, 1), "[string \"return 1\"]:0"},
		{"5.4", SHAPED("return 1", 0, 2), "[string \"return 1\"]:0"},
	};

	expect_in_vms(frames, 7);
}

/* A name, where nested functions of one line have other numbers in another VM. */
Test(function, one_line_of_several_functions_in_several_vms)
{
	static const struct in_vm frames[] = {
		{"5.1", SHAPED("@m.lua", 1, 1, .defname = "f"), "f (m.lua:1)"},
		{"JIT", SHAPED("@m.lua", 1, 2, .defname = "f", .order = 1, .place = 1),
		 "f (m.lua:1)"},
		{"5.1", SHAPED("@m.lua", 1, 3, .defname = "g", .order = 1, .place = 1),
		 "g (m.lua:1#2)"},
		{"JIT", SHAPED("@m.lua", 1, 4, .defname = "g"), "g (m.lua:1#2)"},
		{"5.1", SHAPED("@m.lua", 2, 5, .defname = ""), "m.lua:2"},
		{"JIT", SHAPED("@m.lua", 2, 6, .defname = "", .order = 1, .place = 1), "m.lua:2#2"},
	};

	expect_in_vms(frames, 6);
}

/* a runs in one VM, b in two. */
static void expect_distinct(struct prof_frame a, const char *vm_a, struct prof_frame b,
			    const char *vm_b, const char *vm_c)
{
	const struct in_vm frames[] = {{vm_a, a, NULL}, {vm_b, b, NULL}, {vm_c, b, NULL}};
	struct setup s = set_up_in_vms(frames, 3);

	cr_expect_neq(functions_of(s.functions, s.ids[0]), functions_of(s.functions, s.ids[1]));
	tear_down(&s);
}

/* One VM has two of them: the file was changed, or is another one in another container. */
Test(function, sources_that_differ_stay_two)
{
	static const struct prof_frame a = SHAPED("@m.lua", 1, 1, .defname = "f"),
				       b = SHAPED("@m.lua", 1, 2, .defname = "f"),
				       g = SHAPED("@m.lua", 1, 2, .defname = "g"),
				       in = SHAPED("=stdin", 1, 1, .defname = "f"),
				       in2 = SHAPED("=stdin", 1, 2, .defname = "f"),
				       path = SHAPED("@m.lua", 0, 1, .position = "1"),
				       path2 = SHAPED("@m.lua", 0, 2, .position = "1");

	expect_distinct(a, "5.1", b, "5.1", "5.4");
	expect_distinct(a, "5.1", b, "5.4", "5.1");
	expect_distinct(a, "5.1", g, "5.4", "5.4");
	expect_distinct(in, "5.1", in2, "5.4", "5.4");
	expect_distinct(path, "5.1", path2, "5.4", "5.4");
	expect_distinct(a, "", b, "", "");
}
