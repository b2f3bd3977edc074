// SPDX-License-Identifier: BSD-2-Clause
/*
 * Finds the collector as the heaviest range of adjacent functions around an entry. lua_gc calls the
 * entries, luaC_step and luaC_fullgc; functions of lgc.c come from one object file, so they are
 * adjacent. Functions that the entries reach and that nothing outside the range calls weigh their
 * size, others minus their size. At most MAX_SEEDS * (REACH + 1)^2 ranges are weighed.
 *
 *	sweeplist GCTM | propagatemark atomic singlestep | luaC_barrier_ luaC_newobj | luaC_step
 *	`- neighbours -' `---- only from luaC_step ----'   `----- from elsewhere ---'   lua_gc's
 *
 * gcc puts static functions first and so has luaC_newobj between two parts of the collector. A
 * return address in luaC_newobj is no sign of a collection.
 */
#include "gc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "api_callers.h"

#define REACH 48 /* functions on each side of a seed: lgc.c has up to 90 */
#define MAX_SEEDS 8
#define MANY 2
#define TRAMPOLINE 16 /* bytes, at most */
#define MIN_BYTES 1024
#define MAX_SKIP 1024

struct gc_function {
	uint64_t start, size;
	uint32_t jumps_to; /* of a function that is one jump: its target; else itself */
	uint32_t owner;	   /* of a cold part: the function that it belongs to; else itself */
	bool exported;
	bool seed;     /* lua_gc calls it */
	bool reached;  /* from a seed */
	bool indirect; /* calls through a pointer */
	bool allocates;
	uint32_t first_caller, last_caller;
};

/* A copy of the call graph, in which edges are redirected and removed. */
struct graph {
	const struct call_graph *calls;
	uint64_t lua_gc;
	struct gc_function *fn;
	uint32_t n;
	struct call_edge *edge;
	uint32_t nedges;
};

static void graph_free(struct graph *g)
{
	free(g->fn);
	free(g->edge);
}

/*
 * A function to which only one other function jumps, and which none calls, counts as that one's
 * cold part.
 */
static void find_owners(struct graph *g, uint32_t *jumper, uint8_t *called)
{
	uint32_t i;

	for (i = 0; i < g->n; i++)
		jumper[i] = UINT32_MAX;
	for (i = 0; i < g->nedges; i++) {
		const struct call_edge *e = &g->edge[i];

		if (e->kind != CALL_JUMP)
			called[e->to] = 1;
		else if (jumper[e->to] == UINT32_MAX)
			jumper[e->to] = e->from;
		else if (jumper[e->to] != e->from)
			called[e->to] = 1;
	}
	for (i = 0; i < g->n; i++)
		if (!called[i] && jumper[i] != UINT32_MAX && !g->fn[i].exported)
			g->fn[i].owner = jumper[i];
	for (i = 0; i < g->nedges; i++)
		g->edge[i].from = g->fn[g->edge[i].from].owner;
}

/* luaC_newobj may be a jump to luaC_newobjdt: callers of the one are callers of the other. */
static void skip_trampolines(struct graph *g)
{
	uint32_t i;

	for (i = 0; i < g->n; i++)
		g->fn[i].jumps_to = i;
	for (i = 0; i < g->nedges; i++)
		if (g->edge[i].kind == CALL_JUMP && g->fn[g->edge[i].from].size <= TRAMPOLINE)
			g->fn[g->edge[i].from].jumps_to = g->edge[i].to;
	for (i = 0; i < g->nedges; i++)
		g->edge[i].to = g->fn[g->edge[i].to].jumps_to;
}

/* Removes the edges of functions without callers: luaC_runtilstate, which was inlined. */
static void drop_dead(struct graph *g, const uint8_t *entered)
{
	uint32_t i, kept = 0;

	for (i = 0; i < g->nedges; i++)
		if (entered[g->edge[i].from] || g->fn[g->edge[i].from].exported)
			g->edge[kept++] = g->edge[i];
	g->nedges = kept;
}

static int build(struct graph *g)
{
	uint32_t *jumper __free = calloc(g->calls->n + 1, sizeof(*jumper)), i;
	uint8_t *called __free = calloc(g->calls->n + 1, 1);

	g->n = g->calls->n;
	g->fn = calloc(g->n + 1, sizeof(*g->fn));
	g->edge = calloc(g->calls->nedges + 1, sizeof(*g->edge));
	if (!g->fn || !g->edge || !jumper || !called)
		return -ENOMEM;
	for (i = 0; i < g->calls->nedges; i++)
		if (g->calls->edge[i].kind != CALL_LINKED) /* never within the core */
			g->edge[g->nedges++] = g->calls->edge[i];
	for (i = 0; i < g->n; i++) {
		const struct call_function *f = &g->calls->fn[i];

		g->fn[i] = (struct gc_function){
			.start = f->start,
			.size = f->size,
			.owner = i,
			.indirect = f->indirect,
			.exported = f->start == g->lua_gc || puc_is_api(g->calls->elf, f->start),
		};
	}
	skip_trampolines(g);
	find_owners(g, jumper, called);
	memset(called, 0, g->n);
	for (i = 0; i < g->nedges; i++)
		called[g->edge[i].to] = 1;
	drop_dead(g, called);
	return 0;
}

/* Marks what lua_gc's callees reach. Each round passes over all edges; at most n + 1 rounds. */
static void reach(struct graph *g, uint32_t lua_gc)
{
	bool more = true;
	uint32_t i;

	for (i = 0; i < g->nedges; i++)
		if (g->edge[i].from == lua_gc && g->edge[i].kind != CALL_REFERENCE)
			g->fn[g->edge[i].to].seed = g->fn[g->edge[i].to].reached = true;
	while (more) {
		more = false;
		for (i = 0; i < g->nedges; i++) {
			const struct call_edge *e = &g->edge[i];

			if (g->fn[e->from].reached && !g->fn[e->to].reached &&
			    !g->fn[e->to].exported)
				more = g->fn[e->to].reached = true;
		}
	}
}

/* Finds each function's first and last live caller, in order of address. */
static void find_callers(struct graph *g)
{
	uint32_t i;

	for (i = 0; i < g->n; i++)
		g->fn[i].first_caller = UINT32_MAX;
	for (i = 0; i < g->nedges; i++) {
		struct gc_function *f = &g->fn[g->edge[i].to];

		if (g->edge[i].from < f->first_caller)
			f->first_caller = g->edge[i].from;
		if (g->edge[i].from > f->last_caller)
			f->last_caller = g->edge[i].from;
	}
}

/* Functions first .. last */
struct gc_range {
	uint32_t first, last;
	int64_t weight;
};

static bool within(const struct gc_range *r, uint32_t i)
{
	return i >= r->first && i <= r->last;
}

/* True of a seed, and of a function that seeds reach and only the range calls. */
static bool is_private(const struct gc_function *f, const struct gc_range *r)
{
	return f->seed || (f->reached && !f->exported && f->first_caller >= r->first &&
			   f->first_caller != UINT32_MAX && f->last_caller <= r->last);
}

/* Returns the bytes in a part of a range that are private to the range, minus the others. */
static int64_t weigh(const struct graph *g, const struct gc_range *r, const struct gc_range *all)
{
	int64_t sum = 0;
	uint32_t i;

	for (i = r->first; i <= r->last; i++)
		sum += is_private(&g->fn[i], all) ? (int64_t)g->fn[i].size
						  : -(int64_t)g->fn[i].size;
	return sum;
}

static void around(const struct graph *g, uint32_t seed, struct gc_range *best)
{
	struct gc_range r;

	for (r.first = seed < REACH ? 0 : seed - REACH; r.first <= seed; r.first++)
		for (r.last = seed; r.last < g->n && r.last <= seed + REACH; r.last++) {
			r.weight = weigh(g, &r, &r);
			if (r.weight > best->weight)
				*best = r;
		}
}

static struct gc_range heaviest(const struct graph *g)
{
	struct gc_range best = {};
	uint32_t i, seeds = 0;

	for (i = 0; i < g->n && seeds < MAX_SEEDS; i++) {
		if (!g->fn[i].seed)
			continue;
		seeds++;
		if (!best.weight || !within(&best, i))
			around(g, i, &best);
	}
	return best;
}

static uint64_t end_of(const struct graph *g, uint32_t i)
{
	return g->fn[i].start + g->fn[i].size;
}

static int64_t bytes_of(const struct graph *g, const struct gc_range *r)
{
	return (int64_t)(end_of(g, r->last) - g->fn[r->first].start);
}

/* True if `many` functions outside call it, and it calls some, but none private: luaC_newobj. */
static bool allocates(const struct graph *g, const struct gc_range *r, uint32_t i, uint32_t many)
{
	uint32_t k, callers = 0, last = UINT32_MAX;
	bool leaves = g->fn[i].indirect;

	for (k = 0; k < g->nedges; k++) {
		const struct call_edge *e = &g->edge[k];

		if (e->to == i && !within(r, e->from) && e->from != last) {
			callers++;
			last = e->from;
		}
		if (e->from == i && within(r, e->to) && is_private(&g->fn[e->to], r))
			return false;
		if (e->from == i && e->kind != CALL_REFERENCE)
			leaves = true;
	}
	return callers >= many && leaves;
}

/* True if one that allocates calls it: luaC_newobjdt, whose only other caller is lua_newthread. */
static bool serves(const struct graph *g, const struct gc_range *r, uint32_t i)
{
	uint32_t k;

	for (k = 0; k < g->nedges; k++)
		if (g->edge[k].to == i && within(r, g->edge[k].from) &&
		    g->fn[g->edge[k].from].allocates)
			return allocates(g, r, i, 1);
	return false;
}

/* True if it calls a seed: 5.2's luaC_step, which calls luaC_forcestep, as lua_gc does. */
static bool is_entry(const struct graph *g, uint32_t i, const struct gc_range *all)
{
	uint32_t k;

	if (i >= g->n || g->fn[i].exported || g->fn[i].indirect)
		return false;
	for (k = 0; k < g->nedges; k++) {
		const struct call_edge *e = &g->edge[k];

		if (e->from == i && e->kind != CALL_REFERENCE && within(all, e->to) &&
		    g->fn[e->to].seed)
			return true;
	}
	return false;
}

/*
 * Finds the collector in the range `all`, and the part to skip in it. Functions that allocate are
 * cut off at the ends; if they are large, other files' are among them (LTO): -ENOENT.
 */
static int divide(struct graph *g, struct gc_range all, struct gc_range *gc, struct gc_range *skip)
{
	struct gc_range found = {.first = UINT32_MAX};
	uint32_t i;

	while (all.first < all.last && allocates(g, &all, all.first, MANY))
		all.first++;
	while (all.first < all.last && allocates(g, &all, all.last, MANY))
		all.last--;
	while (is_entry(g, all.last + 1, &all))
		all.last++;
	for (i = all.first; i <= all.last; i++)
		g->fn[i].allocates = !is_private(&g->fn[i], &all) && allocates(g, &all, i, MANY);
	for (i = all.first; i <= all.last; i++) {
		if (!g->fn[i].allocates && (is_private(&g->fn[i], &all) || !serves(g, &all, i)))
			continue;
		if (found.first == UINT32_MAX)
			found.first = i;
		found.last = i;
	}
	if (found.first != UINT32_MAX && bytes_of(g, &found) > MAX_SKIP)
		return -ENOENT;
	if (2 * weigh(g, &all, &all) < bytes_of(g, &all))
		return -ENOENT;
	*gc = all;
	*skip = found;
	return 0;
}

int elf_puc_collector(const struct call_graph *calls, uint64_t lua_gc, struct elf_puc_gc *out)
{
	struct graph g __cleanup(graph_free) = {.calls = calls, .lua_gc = lua_gc};
	struct gc_range all, gc, skip;
	struct elf_puc_gc found = {};
	uint32_t entry;
	int err = build(&g);

	if (err)
		return err;
	entry = call_graph_find(calls, lua_gc);
	if (entry == g.n)
		return -ENOENT;
	reach(&g, entry);
	find_callers(&g);
	all = heaviest(&g);
	if (all.weight < MIN_BYTES)
		return -ENOENT;
	err = divide(&g, all, &gc, &skip);
	if (err)
		return err;
	found.lo = g.fn[gc.first].start;
	found.hi = end_of(&g, gc.last);
	if (skip.first != UINT32_MAX) {
		found.skip_lo = g.fn[skip.first].start;
		found.skip_hi = end_of(&g, skip.last);
	}
	*out = found;
	return 0;
}
