// SPDX-License-Identifier: BSD-2-Clause
/*
 * Bytecode beside source, of a VM's image (lj_compiled_vm.h). That an instruction's text is LuaJIT's
 * own is for tests/e2e/test_traces.py to show.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fail_each.h"
#include "lj_compiled_vm.h"
#include "lj_layouts.h"
#include "lua/lj/bc.h"
#include "traces/report.h"

#define ALL (TRACES_TRACES | TRACES_STARTS | TRACES_HEAP | TRACES_CODE)

static struct lj_compiled_vm cv;
static struct traces_vm *vm;

static void begin(void)
{
	const char *name;

	lj_compiled_vm_init(&cv, lj_layout_scene(0, &name));
	cr_assert_eq(traces_vm_new(&cv.img.mem.mem, &cv.img.lj, cv.img.g, &vm), 0);
}

static void end(void)
{
	traces_vm_free(&vm);
	lj_compiled_vm_free(&cv);
}

TestSuite(traces_listing, .init = begin, .fini = end);

/* A file of 30 lines, "line 1" and so on; ctx: an error instead. */
static int open_lines(void *ctx, const char *path, FILE **out)
{
	int err = ctx ? *(const int *)ctx : 0;

	cr_expect_str_eq(path, "test.lua");
	if (err)
		return err;
	*out = tmpfile();
	for (int i = 1; i <= 30; i++)
		fprintf(*out, "line %d%s\n", i, i == 17 ? "\033[31m" : i == 18 ? "\r" : "");
	rewind(*out);
	return 0;
}

static char *annotated(const struct traces_shares *shares, int err)
{
	const struct source source = {.open = open_lines, .ctx = err ? &err : NULL};
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	cr_assert_eq(traces_annotate(vm, shares, &source, to), 0);
	fclose(to);
	return text;
}

static const char main_head[] = "\n====== test.lua:10-30 ======\n"
				"    10 | line 10\n"
				"       |   0000    ";

/* The loop's own row, and what the last recording began and ended with. */
Test(traces_listing, marks)
{
	char *text __cleanup(cleanup_free) = NULL;

	lji_put32(&cv.img, cv.root.addr + LJ_TRACE_STARTINS, LJ_BC_FORL | 3 << 8 | 0x7ffb << 16);
	cr_assert_eq(traces_vm_read(vm, ALL), 0);
	text = annotated(NULL, 0);
	cr_expect(strstr(text, main_head), "%s", text);
	cr_expect(strstr(text, "   0020    JFORL    3   1"), "%s", text);
	cr_expect(strstr(text, " was FORL     3 => 0016; trace 1 starts: loop\n"), "%s", text);
	cr_expect(strstr(text, " trace 2 (1/1) starts: -> 1; exit 1/1 -> trace 2\n"), "%s", text);
	cr_expect(strstr(text, " trace 5 (1/stitch) starts: return\n"), "%s", text);
	cr_expect(strstr(text, " exit 1/2 taken 7 times\n"), "%s", text);
	cr_expect(strstr(text, " penalty 1152: NYI: bytecode FNEW at test.lua:16\n"), "%s", text);
	cr_expect(strstr(text, " abort of test.lua:16-17 loop\n"), "%s", text);
	cr_expect(
		strstr(text, " was FORL     3 => 0031; blacklisted: leaving loop in root trace\n"),
		"%s", text);
	cr_expect(strstr(text, " was LOOP     3 => 0046; blacklisted: not known any more\n"), "%s",
		  text);
	cr_expect(strstr(text, " was FUNCF    3; blacklisted: not known any more\n"), "%s", text);
	cr_expect(strstr(text, " was FORL     3 => 0004; jit.off()\n"), "%s", text);
	cr_expect(strstr(text, "    17 | line 17\\x1b[31m\n") && strstr(text, "    18 | line 18\n"),
		  "control characters: %s", text);
	cr_expect(strstr(text, "of 3 traces it is not known which bytecode they cover"), "%s",
		  text);
}

/* Lines beyond the file's end, and no file. */
Test(traces_listing, sources)
{
	char *text __cleanup(cleanup_free) = NULL, *none __cleanup(cleanup_free) = NULL;

	cr_assert_eq(traces_vm_read(vm, ALL), 0);
	text = annotated(NULL, 0);
	cr_expect(strstr(text, "\n====== test.lua:50-70 ======\n"
			       "[The source has 30 lines: it has changed]\n    50 | \n"),
		  "%s", text);
	none = annotated(NULL, -EACCES);
	cr_expect(strstr(none, "\n====== test.lua:10-30 ======\n[No source: Permission denied]\n"
			       "    10 | \n       |   0000 "),
		  "%s", none);
}

/* A trace that was flushed has no marks, and a start that was compiled since. */
Test(traces_listing, gone)
{
	char *text __cleanup(cleanup_free) = NULL;

	cr_assert_eq(traces_vm_read(vm, ALL), 0);
	lji_put64(&cv.img, cv.img.traces + 8, 0);
	lji_put32(&cv.img, lji_bc(&cv.img, cv.main, CV_TRACED),
		  LJ_BC_FORL | 3 << 8 | 0x7ffbu << 16);
	lji_put8(&cv.img, lji_bc(&cv.img, cv.main, CV_PENALISED), LJ_BC_JFORL);
	cr_assert_eq(traces_vm_read(vm, ALL), 0);
	text = annotated(NULL, 0);
	cr_expect_null(strstr(text, "trace 1 starts"), "%s", text);
	cr_expect_null(strstr(text, "penalty 1152"), "%s", text);
	cr_expect(strstr(text, "   0020    FORL     3 => 0016 "), "as it is patched now: %s", text);
}

static bool is_any(void *arg, const struct prof_labels *labels)
{
	(void)arg, (void)labels;
	return true;
}

/* Samples with the line on top, in whichever function of that chunk and first line. */
Test(traces_listing, shares)
{
	struct prof *prof __cleanup(prof_free) = NULL;
	struct traces_shares shares __cleanup(traces_shares_free) = {};
	struct prof_frame frame = {
		.kind = PROF_LUA, .chunk = "@test.lua", .firstline = 10, .line = 16};
	struct prof_labels labels = {.vmstate = 'N', .trace = 1};
	char *text __cleanup(cleanup_free) = NULL;
	uint32_t id;

	cr_assert_eq(traces_vm_read(vm, ALL), 0);
	cr_assert_eq(prof_new(&prof), 0);
	cr_assert_eq(prof_frame_id(prof, &frame, &id), 0);
	cr_assert_eq(prof_add(prof, &id, 1, &labels, 30), 0);
	labels.vmstate = 'I';
	labels.trace = 0;
	cr_assert_eq(prof_add(prof, &id, 1, &labels, 10), 0);
	frame.line = 17;
	cr_assert_eq(prof_frame_id(prof, &frame, &id), 0);
	cr_assert_eq(prof_add(prof, &id, 1, &labels, 60), 0);
	cr_assert_eq(traces_share(vm, prof, is_any, NULL, &shares), 0);
	text = annotated(&shares, 0);
	cr_expect(strstr(text, "  compiled      other        |\n"), "%s", text);
	cr_expect(strstr(text, "\n    30.0 %     10.0 %     16 | line 16\n"), "%s", text);
	cr_expect(strstr(text, "\n               60.0 %     17 | line 17"), "%s", text);
}

/* Whichever read fails: the listing is shorter, or its parts are not known. */
Test(traces_listing, reads_that_fail)
{
	struct fail_each f;

	fail_each_init(&f, &cv.img.mem.mem);
	while (fail_each_next(&f)) {
		char *text __cleanup(cleanup_free) = NULL;
		cJSON *json;

		traces_vm_free(&vm);
		cr_assert_eq(traces_vm_new(&f.mem.mem, &cv.img.lj, cv.img.g, &vm), 0);
		traces_vm_read(vm, ALL);
		text = annotated(NULL, 0);
		json = traces_json(vm, NULL);
		cr_expect_not_null(json);
		cJSON_Delete(json);
	}
}
