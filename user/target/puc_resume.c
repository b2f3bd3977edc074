// SPDX-License-Identifier: BSD-2-Clause
/*
 * A C function that Lua called stays on top of its lua_State while that calls anything by the API:
 * what it calls has a CallInfo of its own. There are few ways to run code of another lua_State
 * without one, and all of them are functions of the API. Who calls one of them, directly, or calls
 * who does, may do so: luaB_coresume and luaB_auxwrap, and in 5.4 luaB_close. All other functions
 * of the libraries cannot, as all that they call otherwise is Lua's own.
 *
 * That holds for PUC Lua's own code only: between the functions that the file exports.
 */
#include "target/puc_resume.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* lua_resume and its like: they run code of the lua_State that they are given. */
static const char *const entries[] = {"lua_resume", "lua_resetthread", "lua_closethread",
				      "lua_close"};
#define ENTRIES (sizeof(entries) / sizeof(entries[0]))

static bool is_lua(const char *name)
{
	return !strncmp(name, "lua_", 4) || !strncmp(name, "luaL_", 5) ||
	       !strncmp(name, "luaopen_", 8);
}

static void find_text(const struct call_graph *g, struct elf_puc_resume *out)
{
	uint32_t i;

	out->lo = UINT64_MAX;
	out->hi = 0;
	for (i = 0; i < g->n; i++) {
		const struct call_function *f = &g->fn[i];
		const char *name;
		uint64_t at;

		if (elf_symbol(g->elf, f->start, &name, &at) || at != f->start || !is_lua(name))
			continue;
		if (f->start < out->lo)
			out->lo = f->start;
		out->hi = f->start + f->size;
	}
}

static void mark_entries(const struct call_graph *g, uint8_t *can)
{
	size_t i;

	for (i = 0; i < ENTRIES; i++) {
		uint64_t at;
		uint32_t fn;

		if (elf_lookup(g->elf, entries[i], &at, NULL))
			continue;
		fn = call_graph_find(g, at);
		if (fn < g->n)
			can[fn] = 1;
	}
}

/* Each round passes over all edges; a path has at most as many as there are functions. */
static void mark_callers(const struct call_graph *g, uint8_t *can)
{
	bool more = true;
	uint32_t i;

	while (more) {
		more = false;
		for (i = 0; i < g->nedges; i++) {
			const struct call_edge *e = &g->edge[i];

			if (e->kind != CALL_REFERENCE && can[e->to] && !can[e->from])
				can[e->from] = more = true;
		}
	}
}

int elf_puc_resumers(const struct call_graph *g, struct elf_puc_resume *out)
{
	uint8_t *can __free = calloc(g->n + 1, 1);
	struct elf_puc_resume found = {};
	uint64_t resume;
	uint32_t i, at;

	if (!can)
		return -ENOMEM;
	if (elf_lookup(g->elf, "lua_resume", &resume, NULL))
		return -ENOENT;
	at = call_graph_find(g, resume);
	if (at == g->n || g->fn[at].start != resume)
		return -ENOENT;
	mark_entries(g, can);
	mark_callers(g, can);
	find_text(g, &found);
	for (i = 0; i < g->n; i++) {
		const struct call_function *f = &g->fn[i];

		if (!can[i] || f->start < found.lo || f->start >= found.hi)
			continue;
		if (found.n == ELF_PUC_RESUMERS)
			return -ENOENT; /* no library has so many */
		found.resumer[found.n++] = f->start;
	}
	if (found.n < 2) /* lua_resume, and nobody who calls it: calls go ways unknown */
		return -ENOENT;
	*out = found;
	return 0;
}
