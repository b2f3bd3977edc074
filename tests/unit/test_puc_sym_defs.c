/* SPDX-License-Identifier: BSD-2-Clause */
/* Under which names a prototype of PUC Lua stores the closures that it makes, for each layout. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "puc_code.h"
#include "lua/puc/proto.h"

/* Closures have two upvalues each: in 5.1, two words that are no instructions follow. */
#define NEW(reg, child)                                                                            \
	{I_CLOSURE, reg, child, 0}, {I_DATA, 0, reg, 0},                                           \
	{                                                                                          \
		I_DATA, 0, 0, 0                                                                    \
	}

static const struct puc_code_ins stores[] = {
	NEW(0, 0), /* 3: local l */
	NEW(1, 1),
	{I_SETGLOBAL, 0, 1, 0}, /* g */
	{I_NEWTABLE, 1, 0, 0},	/* 7: */
	NEW(2, 2),
	{I_SETFIELD, 1, 1, 2}, /* M.x: M begins at 12 */
	NEW(2, 3),
	{I_SETUPVAL, 2, 1, 0}, /* up */
	NEW(2, 4),
	{I_SETFIELD, 3, 1, 2}, /* x of a table that has no name */
	NEW(2, 5),
	{I_CALL, 1, 0, 0}, /* none */
	NEW(1, 6),
	{I_TEST, 0, 0, 0},
	{I_JMP, 1, 0, 0},
	{I_SETGLOBAL, 0, 1, 0}, /* none */
	NEW(0, 7),		/* l again */
	{I_RETURN, 0, 0, 0},
};

static const char *const names[] = {"l", "g", "M.x", "up", "x", "", "", "l"};

struct defined {
	char names[8][16];
	uint64_t first;
	uint64_t stride;
};

static int on_definition(void *arg, uint64_t child, const char *name)
{
	struct defined *d = arg;
	size_t i = (child - d->first) / d->stride;

	cr_assert_lt(i, 8);
	snprintf(d->names[i], sizeof(d->names[i]), "%s", name);
	return 0;
}

static int stop_at_once(void *arg, uint64_t child, const char *name)
{
	(void)child;
	(void)name;
	++*(int *)arg;
	return 42;
}

static uint64_t sample_defs(struct test_arena *a, struct defined *d)
{
	static const char *const k[] = {"g", "x", NULL};
	uint64_t children[8];
	int i;

	for (i = 0; i < 8; i++)
		children[i] = puc_code_empty(a, 100 + i);
	memset(d, 0, sizeof(*d));
	d->first = children[0];
	d->stride = children[1] - children[0];
	return puc_code_proto(a, &(struct puc_code_source){
					 .code = stores,
					 .ncode = LENGTH(stores),
					 .k = k,
					 .locals = {{"l", 3, LENGTH(stores)}, {"M", 12, 24}},
					 .children = children,
					 .nchildren = 8,
				 });
}

Test(puc_sym, definitions)
{
	const struct puc_layout *puc;
	const char *row;
	size_t i, k;

	EACH_PUC_LAYOUT(puc, row, i)
	{
		struct test_arena *a __cleanup(arena_free) = arena_new(puc);
		struct puc_proto *p __cleanup(puc_proto_free) = NULL;
		struct defined d;
		uint64_t addr = sample_defs(a, &d);
		int calls_made = 0;

		cr_assert_eq(puc_proto_read(arena_mem(a), puc, addr, &p), 0, "%s", row);
		cr_assert_eq(puc_proto_definitions(p, on_definition, &d), 0);
		for (k = 0; k < 8; k++)
			cr_assert_str_eq(d.names[k], names[k], "%s: %zu is \"%s\"", row, k,
					 d.names[k]);
		cr_assert_eq(puc_proto_definitions(p, stop_at_once, &calls_made), 42);
		cr_assert_eq(calls_made, 1);
	}
}

Test(puc_sym, definitions_known_in_part)
{
	const struct puc_layout *puc;
	const char *row;
	size_t i, k;

	EACH_PUC_LAYOUT(puc, row, i)
	{
		struct test_arena *a __cleanup(arena_free) = arena_new(puc);
		struct defined d;
		uint64_t addr = sample_defs(a, &d);
		unsigned without;

		for (without = 0; without < a->n; without++) {
			const struct lb_mem *mem = arena_mem_without(a, without, 0);
			struct puc_proto *p __cleanup(puc_proto_free) = NULL;

			memset(d.names, 0, sizeof(d.names));
			if (!puc_proto_read(mem, puc, addr, &p))
				puc_proto_definitions(p, on_definition, &d);
			for (k = 0; k < 8; k++) {
				const char *got = d.names[k];

				cr_assert(!*got || !strcmp(got, names[k]) || !strcmp(got, "x"),
					  "%s without %u: %zu is %s", row, without, k, got);
			}
		}
	}
}
