// SPDX-License-Identifier: BSD-2-Clause
/*
 * The core calls no API function; finalizers do, but luaD_call is between the collector and them.
 * So the API's callers are the libraries, lauxlib.c and a host's functions that are linked into the
 * same file. They are adjacent: Debian's builds of 5.1 to 5.4 have some 300 of them, in 12 to 25
 * ranges.
 */
#include "api_callers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

bool puc_is_api(struct elf_file *elf, uint64_t start)
{
	const char *name;
	uint64_t at;

	return !elf_symbol(elf, start, &name, &at) && at == start &&
	       (!strncmp(name, "lua_", 4) || !strncmp(name, "luaL_", 5));
}

/* Joins adjacent functions into ranges: only padding is between them. */
static size_t join(const struct call_graph *g, const bool *calls_api, struct elf_text *text)
{
	size_t n = 0;
	uint32_t i;

	for (i = 0; i < g->n; i++) {
		uint64_t start = g->fn[i].start, end = start + g->fn[i].size;

		if (!calls_api[i])
			continue;
		if (!i || !calls_api[i - 1])
			text[n++].start = start;
		text[n - 1].size = end - text[n - 1].start;
	}
	return n;
}

static int larger_first(const void *a, const void *b)
{
	const struct elf_text *x = a, *y = b;

	return x->size > y->size ? -1 : x->size < y->size;
}

static int by_address(const void *a, const void *b)
{
	const struct elf_text *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

int elf_puc_api_callers(const struct call_graph *g, struct elf_text *out, size_t max, size_t *n)
{
	struct elf_text *text __free = calloc(g->n + 1, sizeof(*text));
	bool *api __free = calloc(g->n + 1, sizeof(*api));
	bool *calls_api __free = calloc(g->n + 1, sizeof(*calls_api));
	uint32_t i;

	if (!text || !api || !calls_api)
		return -ENOMEM;
	for (i = 0; i < g->n; i++)
		calls_api[i] = api[i] = puc_is_api(g->elf, g->fn[i].start);
	for (i = 0; i < g->nedges; i++)
		if (g->edge[i].kind != CALL_REFERENCE && api[g->edge[i].to])
			calls_api[g->edge[i].from] = true;
	*n = join(g, calls_api, text);
	if (*n > max) {
		qsort(text, *n, sizeof(*text), larger_first);
		*n = max;
		qsort(text, *n, sizeof(*text), by_address);
	}
	memcpy(out, text, *n * sizeof(*text));
	return 0;
}
