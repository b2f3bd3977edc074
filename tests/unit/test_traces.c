// SPDX-License-Identifier: BSD-2-Clause
/*
 * The traces and starts of a VM's image (lj_compiled_vm.h). That it holds for LuaJIT itself is for
 * tests/e2e/test_traces.py to show.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fail_each.h"
#include "lj_compiled_vm.h"
#include "lj_layouts.h"
#include "lua/lj/bc.h"
#include "lua/lj/proto.h"
#include "traces/report.h"

#define ALL (TRACES_TRACES | TRACES_STARTS | TRACES_HEAP | TRACES_CODE)

static struct lj_compiled_vm cv;
static struct traces_vm *vm;

static void begin(const struct lj_layout *lj)
{
	lj_compiled_vm_init(&cv, lj);
	cr_assert_eq(traces_vm_new(&cv.img.mem.mem, &cv.img.lj, cv.img.g, &vm), 0);
}

static void end(void)
{
	traces_vm_free(&vm);
	lj_compiled_vm_free(&cv);
}

static void begin_first(void)
{
	const char *name;

	begin(lj_layout_scene(0, &name));
}

TestSuite(traces, .init = begin_first, .fini = end);

static const struct traces_trace *trace(uint32_t no)
{
	for (size_t i = 0; i < vm->ntraces; i++)
		if (vm->traces[i].no == no && !vm->traces[i].gone)
			return &vm->traces[i];
	return NULL;
}

/* Returns the start at an instruction of a function; NULL if the VM has no such start any more. */
static const struct traces_start *start(uint64_t func, uint32_t pos)
{
	uint64_t pc = lji_bc(&cv.img, func, pos);

	for (size_t i = 0; i < vm->nstarts; i++)
		if (vm->starts[i].pc == pc && !vm->starts[i].gone)
			return &vm->starts[i];
	return NULL;
}

static bool is_at(const struct traces_place *at, uint64_t func, uint32_t pos)
{
	int line = func == cv.main ? 10 : func == cv.callee ? 50 : 90;

	return at->pt && lj_proto_firstline(at->pt) == line && at->bcpos == pos &&
	       at->line == line + (int)pos / 4;
}

static void judge_traces(const char *layout)
{
	const struct traces_trace *root = trace(1), *side = trace(2), *stitched = trace(5);

	cr_assert(root && side && stitched, "%s", layout);
	cr_expect_eq(vm->ntraces, 3);
	cr_expect(!root->root && !root->parent && root->link == 1 &&
			  root->linktype == TRACES_LINK_LOOP && root->snapshots == 3 &&
			  root->ir == 11 && root->mcode_size == 0x180,
		  "%s", layout);
	cr_expect(is_at(&root->start, cv.main, CV_TRACED), "%s", layout);
	cr_expect(is_at(&root->exits[1].at, cv.main, CV_SIDE), "%s", layout);
	cr_expect(is_at(&root->exits[2].at, cv.callee, 8), "%s", layout);
	cr_expect(root->exits[0].count == 0 && root->exits[1].count == TRACES_EXIT_DONE &&
			  root->exits[2].count == 7,
		  "%s", layout);
	cr_expect(side->root == 1 && side->parent == 1 && side->exitno == 1 && side->link == 1 &&
			  side->linktype == TRACES_LINK_ROOT && !side->stitched,
		  "%s", layout);
	cr_expect(stitched->stitched && stitched->parent == 1 && !stitched->root &&
			  stitched->linktype == TRACES_LINK_RETURN && !stitched->link,
		  "%s", layout);
}

static void judge_starts(const char *layout)
{
	const struct traces_start *penalised = start(cv.main, CV_PENALISED),
				  *black = start(cv.main, CV_BLACKLISTED),
				  *loop = start(cv.main, CV_WHILE), *func = start(cv.callee, 0),
				  *off = start(cv.off, CV_OFF);

	cr_assert(penalised && black && loop && func && off, "%s: %zu", layout, vm->nstarts);
	cr_expect_eq(vm->nstarts, 5, "%s", layout);
	cr_expect_null(start(cv.main, CV_TRACED), "%s: it was compiled since", layout);
	cr_expect(penalised->state == TRACES_PENALISED && penalised->penalty == 1152 &&
			  penalised->reason == CV_NYIBC && penalised->kind == TRACES_LOOP &&
			  penalised->lines.from == 16 && penalised->lines.to == 17,
		  "%s: %d-%d", layout, penalised->lines.from, penalised->lines.to);
	cr_expect(penalised->has_cause && is_at(&penalised->cause, cv.main, CV_CAUSE) &&
			  !strcmp(penalised->info, "FNEW"),
		  "%s: %s", layout, penalised->info);
	cr_expect(black->state == TRACES_BLACKLISTED && black->reason == CV_LLEAVE &&
			  black->lines.from == 17 && black->lines.to == 19 && !black->has_cause,
		  "%s", layout);
	cr_expect(loop->state == TRACES_BLACKLISTED && loop->reason == TRACES_NO_REASON &&
			  loop->lines.from == 20 && loop->lines.to == 21 && !loop->penalty,
		  "%s: %d-%d", layout, loop->lines.from, loop->lines.to);
	cr_expect(func->state == TRACES_BLACKLISTED && func->kind == TRACES_FUNCTION &&
			  func->lines.from == 50 && func->lines.to == 70,
		  "%s", layout);
	cr_expect(off->state == TRACES_JIT_OFF && off->lines.from == 91 && off->lines.to == 92,
		  "%s", layout);
}

static void judge_all(const char *layout)
{
	cr_expect(vm->has_penalties && vm->has_heap && !vm->unread && !vm->unread_starts, "%s",
		  layout);
	judge_traces(layout);
	judge_starts(layout);
}

/* In each shape of the objects that are read. */
Test(traces, each_layout)
{
	const struct lj_layout *lj;
	const char *name;
	size_t i;

	for (i = 0; (lj = lj_layout_row(i, &name)); i++) {
		if (lj->gc32 || lj->j_parent == 2672) /* of one day; no penalty cache is found */
			continue;
		end();
		begin(lj);
		cr_assert_eq(traces_vm_read(vm, ALL), 0, "%s", name);
		judge_all(name);
		cr_assert_eq(traces_vm_read(vm, ALL), 0, "%s", name);
		judge_all(name); /* the same, once more */
	}
}

/* Whichever read fails: less is known, and it is reported; never anything else. */
Test(traces, reads_that_fail)
{
	struct fail_each f;
	char text[128];

	fail_each_init(&f, &cv.img.mem.mem);
	while (fail_each_next(&f)) {
		int r;

		traces_vm_free(&vm);
		cr_assert_eq(traces_vm_new(&f.mem.mem, &cv.img.lj, cv.img.g, &vm), 0);
		r = traces_vm_read(vm, ALL);
		fail_each_tell(&f, text, sizeof(text));
		cr_assert(!r || vm->ntraces + vm->nstarts < 8, "%s", text);
		for (size_t i = 0; i < vm->ntraces; i++) {
			const struct traces_trace *t = &vm->traces[i];

			cr_expect(is_at(&t->start, t->no == 5 ? cv.callee : cv.main,
					t->no == 1   ? CV_TRACED
					: t->no == 2 ? CV_SIDE
						     : 4),
				  "%s", text);
			cr_expect_eq(t->ir, 11, "%s", text);
		}
		for (size_t i = 0; i < vm->nstarts; i++)
			cr_expect(vm->starts[i].at.pt && vm->starts[i].lines.to, "%s", text);
	}
}

/* jit.flush(), and another trace that gets a number again. */
Test(traces, flushed)
{
	cr_assert_eq(traces_vm_read(vm, ALL), 0);
	lji_put64(&cv.img, cv.img.traces + 8, 0);
	lji_put64(&cv.img, cv.side.addr + LJ_TRACE_MCODE, LJI_MCODE + 0x9000);
	lji_put32(&cv.img, cv.side.addr + LJ_TRACE_SZMCODE, 0x170);
	lji_put32(&cv.img, lji_bc(&cv.img, cv.main, CV_TRACED), LJ_BC_FORL | 3 << 8);
	memset(lji_at(&cv.img, cv.penalty, 1028), 0, 1028);
	cr_assert_eq(traces_vm_read(vm, TRACES_TRACES | TRACES_STARTS), 0);
	cr_assert_eq(vm->ntraces, 4);
	cr_expect(vm->traces[0].gone && vm->traces[0].no == 1);
	cr_expect(vm->traces[1].gone && vm->traces[1].no == 2);
	cr_expect_eq(trace(2)->mcode, LJI_MCODE + 0x9000);
	cr_expect_null(trace(1));
	cr_expect_null(start(cv.main, CV_PENALISED));
	cr_expect_not_null(start(cv.main, CV_BLACKLISTED), "the instruction is patched for good");
	lji_put64(&cv.img, cv.img.traces + 8, cv.root.addr); /* compiled again, elsewhere */
	lji_put64(&cv.img, cv.root.addr + LJ_TRACE_MCODE, LJI_MCODE + 0xa000);
	cr_assert_eq(traces_vm_read(vm, TRACES_TRACES), 0);
	cr_assert_eq(vm->ntraces, 4);
	cr_expect(trace(1)->times == 2 && trace(1)->mcode == LJI_MCODE + 0xa000);
}

/* A start that was penalised is compiled, or blacklisted, later. */
Test(traces, starts_change)
{
	uint64_t pc = lji_bc(&cv.img, cv.main, CV_PENALISED);

	cr_assert_eq(traces_vm_read(vm, ALL), 0);
	lji_put8(&cv.img, pc, LJ_BC_IFORL);
	cr_assert_eq(traces_vm_read(vm, TRACES_STARTS), 0);
	cr_expect_eq(start(cv.main, CV_PENALISED)->state, TRACES_BLACKLISTED);
	cr_expect_eq(start(cv.main, CV_PENALISED)->penalty, 1152);
	lji_put8(&cv.img, pc, LJ_BC_JFORL);
	cr_assert_eq(traces_vm_read(vm, TRACES_STARTS), 0);
	cr_expect_null(start(cv.main, CV_PENALISED));
}

/* Its function was collected: the penalty cache has the address for ever. */
Test(traces, collected)
{
	uint64_t root = cv.img.g + cv.img.lj.gc_total + LJ_GC_ROOT_BEHIND_TOTAL;

	lji_put64(&cv.img, root, cv.img.main_L);
	cr_assert_eq(traces_vm_read(vm, ALL), 0);
	cr_expect_eq(vm->nstarts, 0);
	cr_expect(vm->has_heap && vm->has_penalties);
}

/* The list leads to what is no object, or in a circle. */
Test(traces, broken_heap)
{
	uint64_t next = lji_proto_of(&cv.img, cv.callee);

	lji_put64(&cv.img, next, LJI_HEAP + 8);
	cr_assert_eq(traces_vm_read(vm, ALL), 0);
	cr_expect(!vm->has_heap && vm->has_penalties);
	cr_expect_not_null(start(cv.main, CV_PENALISED), "no list of functions contradicts");
	lji_put64(&cv.img, next, next);
	cr_assert_eq(traces_vm_read(vm, ALL), 0);
	cr_expect_not(vm->has_heap);
}

/* No penalty cache: entries are used in order, have a count, and a position in some code. */
Test(traces, no_penalties)
{
	const struct {
		uint32_t offset;
		uint64_t value;
	} bad[] = {
		{LJ_PENALTY_PC, 0},
		{LJ_PENALTY_PC, 1ULL << 60},
		{LJ_PENALTY_VAL, (uint64_t)CV_NYIBC << 16 | 71},
		{LJ_PENALTY_VAL, 40ULL << 16 | 1152},
		{LJ_PENALTY_SIZE * LJ_PENALTY_SLOTS, 64},
		{LJ_PENALTY_SIZE * LJ_PENALTY_SLOTS, 2},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint64_t was = lji_get64(&cv.img, cv.penalty + bad[i].offset);

		lji_put64(&cv.img, cv.penalty + bad[i].offset, bad[i].value);
		cr_assert_eq(traces_vm_read(vm, TRACES_STARTS), 0);
		cr_expect(!vm->has_penalties && !vm->nstarts, "%zu", i);
		lji_put64(&cv.img, cv.penalty + bad[i].offset, was);
	}
}

/* More aborts than the cache has entries: the oldest are overwritten. */
Test(traces, full_cache)
{
	cr_assert_eq(traces_vm_read(vm, TRACES_STARTS), 0);
	cv.npenalties = 0;
	for (int i = 0; i < LJ_PENALTY_SLOTS; i++)
		lj_compiled_vm_penalise(&cv, lji_bc(&cv.img, cv.main, CV_BLACKLISTED), 100,
					CV_LLEAVE);
	cr_assert_eq(traces_vm_read(vm, TRACES_STARTS), 0);
	cr_expect_not_null(start(cv.main, CV_PENALISED), "it is penalised still");
}

/* While a trace is recorded the last abort's place is not there any more. */
Test(traces, recording)
{
	lji_put16(&cv.img, cv.cur + LJ_TRACE_TRACENO, 6);
	lji_put64(&cv.img, cv.img.traces + 8 * 6, cv.cur);
	cr_assert_eq(traces_vm_read(vm, ALL), 0);
	cr_expect(vm->ntraces == 3 && !vm->unread);
	cr_expect_not(start(cv.main, CV_PENALISED)->has_cause);
}

/* Memory in which another trace is in the place of the root trace after n reads. */
struct changing {
	struct lb_mem mem;
	uint32_t n;
};

static void put_root(uint64_t func, uint32_t pos, uint32_t exit, uint64_t mcode)
{
	uint64_t map = cv.root.snapmap + 8; /* of snapshot 1 */

	lji_put64(&cv.img, cv.root.addr + LJ_TRACE_STARTPT, lji_proto_of(&cv.img, func));
	lji_put64(&cv.img, cv.root.addr + LJ_TRACE_STARTPC, lji_bc(&cv.img, func, pos));
	lji_put64(&cv.img, cv.root.addr + LJ_TRACE_MCODE, mcode);
	lji_put64(&cv.img, map, lji_bc(&cv.img, func, exit) << 8);
}

static int changing_read(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr)
{
	struct changing *c = (struct changing *)(uintptr_t)mem;

	if (!c->n--)
		put_root(cv.callee, 5, 12, LJI_MCODE + 0x8000);
	return mem_read(&cv.img.mem.mem, dst, size, addr);
}

/* A trace that changes while it is read is read again: it is one or the other as a whole. */
Test(traces, torn)
{
	uint32_t n, seen[2] = {};

	for (n = 0; n < 80; n++) {
		struct changing c = {.mem = {.read = changing_read, .uncached = 1}, .n = n};
		bool new;

		traces_vm_free(&vm);
		put_root(cv.main, CV_TRACED, CV_SIDE, cv.root.mcode);
		cr_assert_eq(traces_vm_new(&c.mem, &cv.img.lj, cv.img.g, &vm), 0);
		cr_assert_eq(traces_vm_read(vm, TRACES_TRACES), 0);
		cr_assert_not_null(trace(1));
		new = trace(1)->mcode != cv.root.mcode;
		seen[new]++;
		cr_expect(is_at(&trace(1)->start, new ? cv.callee : cv.main, new ? 5 : CV_TRACED) &&
				  is_at(&trace(1)->exits[1].at, new ? cv.callee : cv.main,
					new ? 12 : CV_SIDE),
			  "%u", n);
	}
	cr_expect(seen[0] && seen[1]);
}

/* The same trace by all that identifies it, but with more snapshots: another one. */
Test(traces, more_snapshots)
{
	cr_assert_eq(traces_vm_read(vm, TRACES_TRACES), 0);
	lji_put16(&cv.img, cv.side.addr + LJ_TRACE_NSNAP, 2);
	cr_assert_eq(traces_vm_read(vm, TRACES_TRACES), 0);
	cr_assert_not_null(trace(2));
	cr_expect_eq(trace(2)->snapshots, 2);
}

/* What is not a trace is counted, and not shown. */
Test(traces, unread)
{
	lji_put8(&cv.img, cv.side.addr + LJ_TRACE_GCT, LJ_GCT_FUNC);
	lji_put64(&cv.img, cv.img.traces + 8 * 5, 1);
	lji_put64(&cv.img, cv.img.traces + 8 * 7, cv.root.addr); /* which has another number */
	cr_assert_eq(traces_vm_read(vm, ALL), 0);
	cr_expect(vm->ntraces == 1 && vm->unread == 3, "%zu, %u", vm->ntraces, vm->unread);
}

/* The texts are those of the vmdef.lua that LuaJIT is installed with. */
Test(traces, reasons)
{
	struct traces_start s = {};
	char line[256], text[128];
	FILE *f __cleanup(cleanup_file) = NULL;
	glob_t found = {};

	if (!glob("/usr/share/luajit-2.1*/jit/vmdef.lua", 0, NULL, &found))
		f = fopen(found.gl_pathv[0], "re");
	globfree(&found);
	cr_assert(f, "LuaJIT is not installed: make deps");
	while (fgets(line, sizeof(line), f) && strcmp(line, "traceerr = {\n"))
		;
	for (; fgets(line, sizeof(line), f) && *line != '}'; s.reason++) {
		char *want = strchr(line, '"') + 1, *stop = strstr(want, " %");

		*(stop ? stop : strchr(want, '"')) = '\0';
		traces_reason(vm, &s, text, sizeof(text));
		cr_expect_str_eq(text, want, "%d", s.reason);
	}
	cr_expect_eq(s.reason, 35);
	traces_reason(vm, &s, text, sizeof(text));
	cr_expect_str_eq(text, "", "there is no other");
}

/* ---- samples and the report ------------------------------------------------------------------ */

static bool is_any(void *arg, const struct prof_labels *labels)
{
	(void)arg;
	return labels->pid == 7;
}

static void add(struct prof *prof, char state, uint32_t traceno, int function, int line,
		uint64_t count)
{
	struct prof_frame frame = {
		.kind = PROF_LUA, .chunk = "@test.lua", .firstline = function, .line = line};
	struct prof_labels labels = {.vmstate = state, .pid = 7, .trace = traceno};
	uint32_t id;

	cr_assert_eq(prof_frame_id(prof, &frame, &id), 0);
	cr_assert_eq(prof_add(prof, &id, 1, &labels, count), 0);
}

static struct prof *sampled(void)
{
	struct prof *prof;

	cr_assert_eq(prof_new(&prof), 0);
	add(prof, 'N', 1, 10, 15, 50);
	add(prof, 'N', 2, 10, 16, 10);
	add(prof, 'N', 3, 10, 16, 2);  /* gone before it was read */
	add(prof, 'I', 0, 10, 17, 12); /* in both loops: the smaller one */
	add(prof, 'I', 0, 50, 51, 4);
	add(prof, 'I', 0, 90, 90, 2); /* before its loop */
	add(prof, 'G', 0, 10, 15, 20);
	return prof;
}

Test(traces, shares)
{
	struct prof *prof __cleanup(prof_free) = sampled();
	struct traces_shares s __cleanup(traces_shares_free) = {};

	cr_assert_eq(traces_vm_read(vm, ALL), 0);
	cr_assert_eq(traces_share(vm, prof, is_any, NULL, &s), 0);
	cr_expect(s.samples == 100 && s.compiled == 62 && s.interpreted == 18 && s.collector == 20);
	cr_expect(s.no_trace == 2 && s.no_reason == 2);
	cr_expect_eq(trace(1)->samples, 50);
	cr_expect_eq(trace(2)->samples, 10);
	cr_expect_eq(start(cv.main, CV_PENALISED)->samples, 12);
	cr_expect_eq(start(cv.callee, 0)->samples, 4);
}

static const char want_text[] =
	"3 traces (2 root, 1 side), 1.1 KiB of machine code\n"
	"100 samples: 62.0 % compiled, 18.0 % interpreted, 0.0 % C code, 20.0 % garbage collector, "
	"0.0 % JIT compiler\n"
	"2.0 % were in traces that were gone before they were read\n"
	"\n"
	"  TRACE           START        LINK    LINES      BC  IR  SNAPS  MCODE    TIME\n"
	"  1               test.lua:15  loop    15-16, 52   -  11      3    384  50.0 %\n"
	"                  exit 2 at test.lua:52 taken 7 times\n"
	"    2 (1/1)       test.lua:16  -> 1    16          -  11      1    384  10.0 %\n"
	"    5 (1/stitch)  test.lua:51  return  51          -  11      1    384   0.0 %\n"
	"\n"
	"  NOT COMPILED             REASON                             STATE           TIME\n"
	"  test.lua:16-17 loop      NYI: bytecode FNEW at test.lua:16  penalty 1152  12.0 %\n"
	"  test.lua:50-70 function  not known any more                 blacklisted    4.0 %\n"
	"  test.lua:17-19 loop      leaving loop in root trace         blacklisted    0.0 %\n"
	"  test.lua:20-21 loop      not known any more                 blacklisted    0.0 %\n"
	"  test.lua:91-92 loop      jit.off()                          jit.off()      0.0 %\n"
	"\n"
	"Why code is not compiled:\n"
	"  NYI: bytecode FNEW: in 1 loop, 66.7 % of interpreted time\n"
	"  not known any more: in 1 loop and 1 function, 22.2 % of interpreted time\n"
	"  jit.off(): in 1 loop, 0.0 % of interpreted time\n"
	"  leaving loop in root trace: in 1 loop, 0.0 % of interpreted time\n"
	"  no abort is known: 11.1 % of interpreted time (not hot, or before its trace was made)\n";

Test(traces, text)
{
	struct prof *prof __cleanup(prof_free) = sampled();
	struct traces_shares s __cleanup(traces_shares_free) = {};
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	cr_assert_eq(traces_vm_read(vm, ALL), 0);
	cr_assert_eq(traces_share(vm, prof, is_any, NULL, &s), 0);
	cr_assert_eq(traces_print(vm, &s, to), 0);
	fclose(to);
	cr_expect_str_eq(text, want_text);
	free(text);
}
