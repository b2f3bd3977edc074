// SPDX-License-Identifier: BSD-2-Clause
/* The collector's text, by who calls whom. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "detect/puc/gc.h"
#include "detect/puc/lib.h"
#include "detect/puc/recognise.h"

#define LUA54 "/usr/bin/lua5.4"
#define BASE 0x40000000 /* outside of the file */

/* As gcc -O1 compiles 5.4.6: luaC_newobj calls luaC_newobjdt, and only lua_newthread does so, too. */
Test(puc_gc, what_allocates_for_another)
{
	enum { NEWTHREAD, CONCAT, MALLOC, SINGLESTEP, NEWOBJDT, NEWOBJ, STEP, FULLGC, GC };
	static const uint16_t size[] = {100, 100, 50, 2000, 58, 19, 200, 100, 300};
	static struct call_function fn[GC + 1];
	static struct call_edge edge[] = {
		{NEWTHREAD, CONCAT, CALL_CALL},	 {NEWTHREAD, NEWOBJDT, CALL_CALL},
		{NEWTHREAD, NEWOBJ, CALL_CALL},	 {NEWTHREAD, STEP, CALL_CALL},
		{CONCAT, NEWTHREAD, CALL_CALL},	 {CONCAT, MALLOC, CALL_CALL},
		{CONCAT, NEWOBJ, CALL_CALL},	 {CONCAT, STEP, CALL_CALL},
		{SINGLESTEP, MALLOC, CALL_CALL}, {NEWOBJDT, MALLOC, CALL_CALL},
		{NEWOBJ, NEWOBJDT, CALL_CALL},	 {STEP, SINGLESTEP, CALL_CALL},
		{FULLGC, SINGLESTEP, CALL_CALL}, {GC, STEP, CALL_CALL},
		{GC, FULLGC, CALL_CALL},
	};
	struct call_graph g = {.fn = fn, .n = GC + 1, .edge = edge, .nedges = 15};
	uint64_t at = BASE;
	struct elf_puc_gc gc;
	uint32_t i;

	for (i = 0; i < g.n; at += size[i++])
		fn[i] = (struct call_function){.start = at, .size = size[i]};
	cr_assert_eq(elf_open(LUA54, &g.elf), 0);
	cr_assert_eq(elf_puc_collector(&g, fn[GC].start, &gc), 0);
	cr_expect_eq(gc.lo, fn[SINGLESTEP].start);
	cr_expect_eq(gc.hi, fn[GC].start);
	cr_expect_eq(gc.skip_lo, fn[NEWOBJDT].start);
	cr_expect_eq(gc.skip_hi, fn[STEP].start);
	elf_close(&g.elf);
}

static bool calls(const struct call_graph *g, uint32_t from, uint32_t to)
{
	uint32_t i;

	for (i = 0; i < g->nedges; i++)
		if (g->edge[i].from == from && g->edge[i].to == to && g->edge[i].kind == CALL_CALL)
			return true;
	return false;
}

/* Adds so many calls of all functions in turn behind one function's own. */
static void add_calls(struct call_graph *g, uint32_t from, uint32_t many)
{
	struct call_edge *edge = calloc(g->nedges + many, sizeof(*edge));
	uint32_t i, k, n = 0;

	for (i = 0; i < g->nedges && g->edge[i].from <= from; i++)
		edge[n++] = g->edge[i];
	for (k = 0; k < many; k++)
		edge[n++] = (struct call_edge){from, k % g->n, CALL_CALL};
	for (; i < g->nedges; i++)
		edge[n++] = g->edge[i];
	free(g->edge);
	g->edge = edge;
	g->nedges = n;
}

/* A foreign file's luaC_step may call 200,000 functions: then it is not luaC_step. */
Test(puc_gc, an_entry_that_calls_everything)
{
	static struct elf_puc_lib lib;
	static struct vm_build b;
	struct call_graph g;
	struct elf_puc_gc gc;
	struct elf_file *elf;
	struct error err;
	uint64_t at, size;
	uint32_t i, vm, lua_gc;

	cr_assert_eq(elf_open(LUA54, &elf), 0);
	cr_assert_eq(puc_recognise(elf, &b, &err), 0);
	cr_assert_eq(call_graph_build(elf, b.start, 320 << 10, &g), 0);
	cr_assert_eq(elf_puc_library(&g, &lib), 0);
	cr_assert_eq(elf_lookup(elf, "lua_gc", &at, &size), 0);
	vm = call_graph_find(&g, b.start);
	lua_gc = call_graph_find(&g, at);
	cr_assert_eq(elf_puc_collector_by(&g, lib.collectgarbage, b.start, &gc), 0);
	cr_expect_eq(gc.lo, b.gc_lo);
	for (i = 0; i < g.n && !(calls(&g, lua_gc, i) && calls(&g, vm, i)); i++)
		;
	cr_assert_lt(i, g.n);
	add_calls(&g, i, 200000);
	cr_expect_eq(elf_puc_collector_by(&g, lib.collectgarbage, b.start, &gc), -ENOENT);
	call_graph_free(&g);
	elf_close(&elf);
}
