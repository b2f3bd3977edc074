/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Library tables and the names of their functions, built in an image (tests/e2e/test_luasym.py has those
 * of real ones).
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unwind/lj/layout.h>

#include "arena.h"
#include "base/cleanup.h"
#include "lua/lj/ffnames.h"
#include "lua/lj/loaded.h"

static const struct lj_layout layout = {.registrytv = 0x40, .str_len = LJ_STR_LEN};

#define TV(type, ptr) ((uint64_t)(int64_t)(type) << 47 | (ptr))

struct loaded_name {
	const char *key;
	uint64_t val;
};

static uint64_t table(struct test_arena *a, const struct loaded_name *fields, uint32_t n)
{
	uint64_t t = arena_take(a, LJ_TAB_SIZE), node;
	uint32_t size = 1, i;

	while (size < n)
		size *= 2;
	node = arena_take(a, size * LJ_NODE_SIZE);
	for (i = 0; i < size; i++) {
		uint64_t at = node + i * LJ_NODE_SIZE;

		arena_put64(a, at + LJ_NODE_VAL, i < n ? fields[i].val : ~0ULL);
		arena_put64(a, at + LJ_NODE_KEY,
			    i < n ? TV(LJ_TSTR, arena_lj_str(a, fields[i].key)) : ~0ULL);
	}
	arena_put8(a, t + 9, 11);
	arena_put64(a, t + LJ_TAB_NODE, node);
	arena_put32(a, t + LJ_TAB_HMASK, size - 1);
	return t;
}

static uint64_t func(struct test_arena *a, uint8_t ffid, uint64_t code_addr, uint64_t env)
{
	uint64_t f = arena_take(a, LJ_FUNC_READ);

	arena_put8(a, f + LJ_FUNC_GCT, LJ_GCT_FUNC);
	arena_put8(a, f + LJ_FUNC_FFID, ffid);
	arena_put64(a, f + 16, env);
	arena_put64(a, f + (ffid ? LJ_FUNC_F : LJ_FUNC_PC), code_addr);
	return TV(LJ_TFUNC, f);
}

/* Library `names[i]` as global function number 2 + i; modules as given. Returns g. */
static uint64_t vm_with(struct test_arena *a, const struct loaded_name *globals, uint32_t nglobals,
			const struct loaded_name *modules, uint32_t nmodules)
{
	uint64_t g = arena_take(a, 0x80), env = table(a, globals, nglobals);
	struct loaded_name loaded[16], registry[4];
	uint32_t i;

	loaded[0] = (struct loaded_name){"_G", TV(LJ_TTAB, env)};
	for (i = 0; i < nmodules; i++)
		loaded[i + 1] = modules[i];
	registry[0] = (struct loaded_name){"FILE*", TV(LJ_TTAB, env)};
	registry[1] = (struct loaded_name){"_LOADED", TV(LJ_TTAB, table(a, loaded, nmodules + 1))};
	registry[2] = (struct loaded_name){"c_function", func(a, 1, 0x7200, 0)};
	registry[3] = (struct loaded_name){"f_script", func(a, 0, 0x5100 + LJ_PROTO_SIZE, 0)};
	arena_put64(a, g + 0x40, TV(LJ_TTAB, table(a, registry, 4)));
	return g;
}

static uint64_t sample_vm(struct test_arena *a)
{
	struct loaded_name globals[] = {
		{"assert", func(a, 2, 0, 0)},
		{"type", func(a, 3, 0, 0)},
		{"next", func(a, 4, 0, 0)},
		{"pairs", func(a, 5, 0, 0)},
		/* 6 is ipairs_aux */ {"ipairs", func(a, 7, 0, 0)},
		{"getmetatable", func(a, 8, 0, 0)},
		{"setmetatable", func(a, 9, 0, 0)},
		{"mylua", func(a, 0, 0x5000 + LJ_PROTO_SIZE, 0)},
		{"number", 0x4024000000000000},
	};
	struct loaded_name aliases[] = {{"assert_alias", globals[0].val},
					{"enc", func(a, 1, 0x7000, 0)}};
	struct loaded_name compat[] = {{"kind", globals[1].val}, {"getfenv", func(a, 10, 0, 0)}};
	struct loaded_name modules[] = {
		{"aaa", TV(LJ_TTAB, table(a, compat, 2))},
		{"cjson", TV(LJ_TTAB, table(a, aliases, 2))},
		{"table.new", func(a, 200, 0, 0)},
		{"cfn", func(a, 1, 0x7100, 0)},
	};

	return vm_with(a, globals, 9, modules, 4);
}

Test(loaded, ffnames)
{
	struct test_arena *a __cleanup(arena_free) = arena_new(NULL);
	struct lj_ffnames *n = NULL;
	uint64_t g = sample_vm(a);

	cr_assert_eq(lj_ffnames_read(arena_mem(a), &layout, g, &n), 0);
	cr_assert_null(lj_ffname(n, 0));
	cr_assert_null(lj_ffname(n, 1));
	cr_assert_str_eq(lj_ffname(n, 2), "assert");
	cr_assert_str_eq(lj_ffname(n, 3), "type", "not aaa.kind, its alias");
	cr_assert_str_eq(lj_ffname(n, 6), "ipairs_aux", "reachable from no table");
	cr_assert_str_eq(lj_ffname(n, 9), "setmetatable");
	cr_assert_str_eq(lj_ffname(n, 200), "table.new");
	cr_assert_null(lj_ffname(n, 100));
	cr_assert_str_eq(lj_cfunc_name(n, 0x7000), "cjson.enc");
	cr_assert_str_eq(lj_cfunc_name(n, 0x7100), "cfn");
	cr_assert_null(lj_cfunc_name(n, 0x7001));
	cr_assert_null(lj_ffname(NULL, 2), "a VM that was closed before it was read");
	cr_assert_null(lj_cfunc_name(NULL, 0x7000));
	lj_ffnames_free(&n);
}

/* {ffi.meta.__call, jit.attach, ffi.cdef} of 2.1, 2.1.0-beta3 and 2.0.5. */
Test(loaded, ffnames_of_older_builds)
{
	static const uint8_t builds[][3] = {{175, 152, 191}, {174, 151, 190}, {171, 151, 187}};

	for (size_t i = 0; i < 3; i++) {
		struct test_arena *a __cleanup(arena_free) = arena_new(NULL);
		const uint8_t *id = builds[i];
		struct loaded_name j[] = {{"status", func(a, 150, 0, 0)},
					  {"attach", func(a, id[1], 0, 0)}};
		struct loaded_name f[] = {{"cdef", func(a, id[2], 0, 0)},
					  {"new", func(a, id[2] + 1, 0, 0)}};
		struct loaded_name modules[] = {{"jit", TV(LJ_TTAB, table(a, j, 2))},
						{"ffi", TV(LJ_TTAB, table(a, f, 2))}};
		struct lj_ffnames *n __cleanup(lj_ffnames_free) = NULL;
		uint64_t g = vm_with(a, NULL, 0, modules, 2);

		lj_ffnames_read(arena_mem(a), &layout, g, &n);
		cr_expect_str_eq(lj_ffname(n, id[0]), "ffi.meta.__call", "%zu", i);
	}
}

Test(loaded, ffnames_kth_read_fails)
{
	struct test_arena *a __cleanup(arena_free) = arena_new(NULL);
	uint64_t g = sample_vm(a);
	const struct lb_mem *mem = arena_mem(a);
	unsigned k;

	for (k = 0; k < 200; k++) {
		struct arena_failing f;
		struct lj_ffnames *n = NULL;
		int i;

		arena_failing_init(&f, mem, k, false);
		if (lj_ffnames_read(&f.mem, &layout, g, &n))
			continue;
		for (i = 2; i < 10; i++)
			cr_assert(!lj_ffname(n, (uint8_t)i) || lj_ffname(n, (uint8_t)i)[0]);
		lj_ffnames_free(&n);
	}
}

static int count_calls(void *arg, const struct lj_loaded *l)
{
	(void)l;
	++*(int *)arg;
	return 0;
}

Test(loaded, loaded_tables_in_a_circle)
{
	struct test_arena *a __cleanup(arena_free) = arena_new(NULL);
	uint64_t mod = arena_take(a, LJ_TAB_SIZE), g;
	struct loaded_name self[] = {{"self", TV(LJ_TTAB, mod)}, {"f", func(a, 1, 0x7000, 0)}};
	struct loaded_name modules[] = {{"m", TV(LJ_TTAB, mod)}};
	const struct lb_mem *mem;
	int calls = 0;

	arena_put(a, mod, arena_at(a, table(a, self, 2), LJ_TAB_SIZE), LJ_TAB_SIZE);
	g = vm_with(a, self, 2, modules, 1);
	mem = arena_mem(a);
	cr_assert_eq(lj_loaded_walk(mem, &layout, g, count_calls, &calls), 0);
	cr_assert_eq(calls, 2, "once as f, once as m.f");
	cr_assert_eq(lj_loaded_walk(mem, &layout, ARENA_BASE + (1 << 20), count_calls, &calls),
		     -EFAULT);
	cr_assert_eq(lj_loaded_walk(mem, &layout, g + 8, count_calls, &calls), -EBADMSG);
}

static int list_kept(void *arg, const struct lj_loaded *l)
{
	char *names = arg;
	size_t len = strlen(names);

	if (!l->ffid)
		snprintf(names + len, 256 - len, "%s=%#lx ", l->field, (long)l->code);
	return 0;
}

/* Lua functions of the registry and globals, with their prototypes; nothing of a module. */
Test(loaded, kept_functions)
{
	struct test_arena *a __cleanup(arena_free) = arena_new(NULL);
	uint64_t g = sample_vm(a);
	const struct lb_mem *mem = arena_mem(a);
	char names[256] = "";
	unsigned int k;

	cr_assert_eq(lj_loaded_kept(mem, &layout, g, list_kept, names), 0);
	cr_expect_str_eq(names, "f_script=0x5100 mylua=0x5000 ");
	for (k = 0; k < 100; k++) {
		struct arena_failing f;

		names[0] = '\0';
		arena_failing_init(&f, mem, k, false);
		lj_loaded_kept(&f.mem, &layout, g, list_kept, names);
		cr_assert(!*names || strstr(names, "f_script=0x5100 ") ||
			  !strcmp(names, "mylua=0x5000 "));
	}
}
