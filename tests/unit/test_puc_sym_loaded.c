/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of PUC Lua's C functions, from the tables of loaded libraries that an arena holds, for each
 * layout.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "puc_code.h"
#include "lua/puc/cnames.h"
#include "lua/puc/loaded.h"

struct loaded_value {
	uint64_t val;
	uint8_t tt;
};

struct loaded_field {
	const char *key;
	struct loaded_value v;
};

#define CODE 0x550000000000ULL /* C functions are here */

static void put_node(struct test_arena *a, uint64_t at, const struct loaded_field *f)
{
	const struct puc_layout *puc = a->puc;
	bool is_short = f && strlen(f->key) <= PUC_SHORT_STRING;
	uint8_t key_tt = !f ? 0 : is_short ? puc->tt_shrstr : puc->tt_lngstr;

	if (puc->version > 51 && f)
		key_tt |= 0x40;
	arena_put64(a, at + puc->node_val, f ? f->v.val : 0);
	arena_put8(a, at + puc->node_val + PUC_TV_TT, f ? f->v.tt : 0);
	arena_put64(a, at + puc->node_key, f ? puc_code_str(a, f->key) : 0);
	arena_put8(a, at + puc->node_key_tt, key_tt);
}

static struct loaded_value table_at(struct test_arena *a, uint64_t t,
				    const struct loaded_field *fields, uint32_t n)
{
	const struct puc_layout *puc = a->puc;
	uint8_t lsize = 0;
	uint64_t node;
	uint32_t i;

	while (1u << lsize < n)
		lsize++;
	node = arena_take(a, puc->node_size << lsize);
	for (i = 0; i < 1u << lsize; i++)
		put_node(a, node + (uint64_t)i * puc->node_size, i < n ? &fields[i] : NULL);
	arena_put8(a, t + PUC_GC_TT, 5);
	arena_put8(a, t + puc->t_lsizenode, lsize);
	arena_put64(a, t + puc->t_node, node);
	return (struct loaded_value){t, puc->version == 51 ? 5 : 5 | 0x40};
}

static struct loaded_value table(struct test_arena *a, const struct loaded_field *fields,
				 uint32_t n)
{
	return table_at(a, arena_take(a, 72), fields, n);
}

static struct loaded_value closure(struct test_arena *a, bool is_c, uint64_t target)
{
	const struct puc_layout *puc = a->puc;
	uint64_t c = arena_take(a, puc->closure_p + 8);

	arena_put8(a, c + PUC_GC_TT,
		   is_c && puc->closure_isC == PUC_NONE ? puc->tt_ccl : puc->tt_lcl);
	if (puc->closure_isC != PUC_NONE)
		arena_put8(a, c + puc->closure_isC, is_c);
	arena_put64(a, c + puc->closure_p, target);
	return (struct loaded_value){
		c, (uint8_t)((is_c ? puc->tt_ccl : puc->tt_lcl) | (puc->version == 51 ? 0 : 0x40))};
}

/* A C function: light where there are such. */
static struct loaded_value cfunc(struct test_arena *a, uint64_t f)
{
	if (a->puc->version == 51)
		return closure(a, true, CODE + f);
	return (struct loaded_value){CODE + f, a->puc->tt_lcf};
}

/* A registry with these modules, and the metatable of files. Returns g. */
static uint64_t vm(struct test_arena *a, const struct loaded_field *modules, uint32_t n)
{
	uint64_t g = arena_take(a, a->puc->g_registry + 16);
	struct loaded_field index[] = {{"read", cfunc(a, 0x2100)}};
	struct loaded_field meta[] = {{"__index", table(a, index, 1)}, {"__gc", cfunc(a, 0x2110)}};
	struct loaded_field registry[] = {
		{"FILE*", table(a, meta, 2)},
		{"_PRELOAD", table(a, (struct loaded_field[]){{"nope", cfunc(a, 0x9000)}}, 1)},
		{"_LOADED", table(a, modules, n)},
		{"ref", {42, 3}},
		{"f_script", closure(a, false, 0x5100)},
		{"c_function", closure(a, true, CODE + 0x9100)},
	};
	struct loaded_value r = table(a, registry, 6);

	arena_put64(a, g + a->puc->g_registry, r.val);
	arena_put8(a, g + a->puc->g_registry + PUC_TV_TT, r.tt);
	return g;
}

static uint64_t sample_vm(struct test_arena *a)
{
	struct loaded_field globals[] = {
		{"print", cfunc(a, 0x2008)}, /* io.write, put there by the program */
		{"type", cfunc(a, 0x1010)},  {"pairs", closure(a, true, CODE + 0x1020)},
		{"fmt", cfunc(a, 0x3010)},   {"mylua", closure(a, false, 0x5000)},
		{"number", {3, 3}},	     {PUC_LONG_NAME, cfunc(a, 0x7200)},
	};
	struct loaded_field string[] = {{"rep", cfunc(a, 0x3000)}, {"format", cfunc(a, 0x3010)}};
	struct loaded_field io[] = {{"open", cfunc(a, 0x2000)}, {"write", cfunc(a, 0x2008)}};
	struct loaded_field deep[] = {{"f", cfunc(a, 0x7300)},
				      {"next_to_format", cfunc(a, 0x3011)}};
	struct loaded_field mine[] = {{"fmt", cfunc(a, 0x3010)},
				      {"enc", closure(a, true, CODE + 0x7000)},
				      {"type", cfunc(a, 0x1010)},
				      {"sub", table(a, deep, 2)}};
	struct loaded_field modules[] = {
		{"aaa", table(a, mine, 4)}, {"_G", table(a, globals, 7)},
		{"io", table(a, io, 2)},    {"string", table(a, string, 2)},
		{"cfn", cfunc(a, 0x7100)},
	};

	return vm(a, modules, 5);
}

Test(puc_sym, c_functions)
{
	static const struct {
		uint64_t f;
		const char *name;
	} expect[] = {
		{0x1010, "type"},
		{0x1020, "pairs"},
		{0x2000, "io.open"},
		{0x2008, "io.write"},
		{0x2100, "io.method.read"},
		{0x2110, "io.method.__gc"},
		{0x3000, "string.rep"},
		{0x3010, "string.format"},
		{0x7000, "aaa.enc"},
		{0x7100, "cfn"},
		{0x7200, PUC_LONG_NAME},
		{0x7300, "aaa.sub.f"},
		{0x9000, NULL},
		{0x1011, NULL},
	};
	const struct puc_layout *puc;
	const char *row, *name;
	size_t i, k;

	EACH_PUC_LAYOUT(puc, row, i)
	{
		struct test_arena *a __cleanup(arena_free) = arena_new(puc);
		struct puc_cnames *n = NULL;
		uint64_t g = sample_vm(a);

		cr_assert_eq(puc_cnames_read(arena_mem(a), puc, g, &n), 0, "%s", row);
		for (k = 0; k < LENGTH(expect); k++) {
			name = puc_cname(n, CODE + expect[k].f);
			cr_assert_eq(!name, !expect[k].name, "%s: %zu", row, k);
			if (name)
				cr_assert_str_eq(name, expect[k].name, "%s: %s", row, name);
		}
		cr_assert_null(puc_cname(n, 0x5000), "a Lua function");
		cr_assert_null(puc_cname(NULL, CODE + 0x1010), "a VM that could not be read");
		puc_cnames_free(&n);
	}
}

Test(puc_sym, c_functions_kth_read_fails)
{
	const struct puc_layout *puc;
	unsigned k;
	const char *row;
	size_t i;

	EACH_PUC_LAYOUT(puc, row, i)
	{
		struct test_arena *a __cleanup(arena_free) = arena_new(puc);
		uint64_t g = sample_vm(a);
		const struct lb_mem *mem = arena_mem(a);

		for (k = 0; k < 400; k++) {
			struct arena_failing f;
			struct puc_cnames *n = NULL;
			const char *name;

			arena_failing_init(&f, mem, k / 2, k % 2);
			if (puc_cnames_read(&f.mem, puc, g, &n)) {
				cr_assert_null(n);
				continue;
			}
			name = puc_cname(n, CODE + 0x3000);
			cr_assert(!name || !strcmp(name, "string.rep"), "%s", row);
			puc_cnames_free(&n);
		}
	}
}

static int count_calls(void *arg, const struct puc_loaded *l)
{
	(void)l;
	++*(int *)arg;
	return 0;
}

Test(puc_sym, loaded_tables_in_a_circle)
{
	const struct puc_layout *puc;
	const char *row;
	size_t i;

	EACH_PUC_LAYOUT(puc, row, i)
	{
		struct test_arena *a __cleanup(arena_free) = arena_new(puc);
		uint64_t mod = arena_take(a, 72), g;
		struct loaded_value self = {mod, puc->version == 51 ? 5 : 5 | 0x40};
		struct loaded_field fields[] = {{"self", self}, {"f", cfunc(a, 0x7000)}};
		struct loaded_field modules[] = {{"m", self}, {"again", self}};
		const struct lb_mem *mem;
		int found = 0;

		table_at(a, mod, fields, 2);
		g = vm(a, modules, 2);
		mem = arena_mem(a);
		cr_assert_eq(puc_loaded_walk(mem, puc, g, count_calls, &found), 0, "%s", row);
		cr_assert_eq(found, 3, "m.f, and the two of files: %d", found);
		cr_assert_eq(puc_loaded_walk(mem, puc, ARENA_BASE + (1 << 20), count_calls, &found),
			     -EFAULT);
		cr_assert_eq(puc_loaded_walk(mem, puc, g - 8, count_calls, &found), -EBADMSG);

		/* a table that claims more nodes than any has */
		arena_put8(a, mod + puc->t_lsizenode, 63);
		mem = arena_mem(a);
		found = 0;
		cr_assert_eq(puc_loaded_walk(mem, puc, g, count_calls, &found), 0);
		cr_assert_eq(found, 2);
	}
}

struct kept_list {
	char names[256];
};

static int list_kept(void *arg, const struct puc_loaded *l)
{
	struct kept_list *k = arg;
	size_t len = strlen(k->names);

	snprintf(k->names + len, sizeof(k->names) - len, "%s=%#lx ", l->field, (long)l->f);
	return 0;
}

/* Lua functions of the registry and globals, with their prototypes; nothing of a module. */
Test(puc_sym, kept_functions)
{
	const struct puc_layout *puc;
	const char *row;
	size_t i;
	unsigned int k;

	EACH_PUC_LAYOUT(puc, row, i)
	{
		struct test_arena *a __cleanup(arena_free) = arena_new(puc);
		uint64_t g = sample_vm(a);
		const struct lb_mem *mem = arena_mem(a);
		struct kept_list list = {""};

		cr_assert_eq(puc_loaded_kept(mem, puc, g, list_kept, &list), 0, "%s", row);
		cr_expect_str_eq(list.names, "f_script=0x5100 mylua=0x5000 ", "%s", row);
		for (k = 0; k < 200; k++) {
			struct arena_failing f;

			list.names[0] = '\0';
			arena_failing_init(&f, mem, k / 2, k % 2);
			puc_loaded_kept(&f.mem, puc, g, list_kept, &list);
			cr_assert(!*list.names || strstr(list.names, "f_script=0x5100 ") ||
				  !strcmp(list.names, "mylua=0x5000 "));
		}
	}
}
