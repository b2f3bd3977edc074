// SPDX-License-Identifier: BSD-2-Clause
/*
 * Finds the collector if lua_gc has no symbol: in the call graph, from the base library's
 * collectgarbage and luaV_execute, whose addresses are known.
 *
 *	luaB_collectgarbage -> lua_gc -> luaC_step   -> singlestep
 *				     |-> luaC_fullgc -> singlestep
 *				     `-> luaE_setdebt
 *
 *	lua_gc	     the only callee of collectgarbage that splits a number of bytes into KiB and
 *		     the rest, n >> 10 and n & 0x3ff
 *	luaC_step    the only callee of lua_gc that luaV_execute calls, too: in 5.2 through a
 *		     function between them, `from_vm`
 *	luaC_fullgc  the other callee of lua_gc that shares a callee with luaC_step; if it is
 *		     inlined in lua_gc, the callee that these two share is taken in its place
 *
 * Each collection runs below luaC_step or luaC_fullgc. With -flto the collector is in many pieces,
 * with other functions between them: then two pieces are taken, and the text between them is
 * skipped.
 *
 * The file is untrusted. Edges are sorted by caller, so a pass over one function's callees (at most
 * MAX_CALLEES), or over all functions that are reached, takes one step per edge at most. At most
 * MAX_CALLEES passes over all edges are made.
 */
#include "gc.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "arch/insn_data.h"

#define MAX_CODE 8192	/* of lua_gc: the largest of 35 builds has 1.8 KiB */
#define MAX_CALLEES 64	/* distinct ones, of collectgarbage, lua_gc and the collector's entries */
#define MIN_CALLERS 5	/* of luaC_step: all functions that allocate an object call it */
#define MAX_SHARED_BY 8 /* callers of the function that luaC_step and luaC_fullgc share */

struct gc_node {
	uint32_t first_edge;
	uint32_t callers, last_caller; /* number of distinct ones; the last of them */
	bool branch;		       /* it calls another function */
	bool by_vm;		       /* luaV_execute calls it */
	bool below, elsewhere;	       /* the collector's entries reach it; others do */
};

struct gc_search {
	const struct call_graph *g;
	struct gc_node *node; /* one for each function, and one more */
	uint32_t *stack;      /* functions whose edges are not followed yet */
	uint32_t vm;
};

static void search_free(struct gc_search *s)
{
	free(s->node);
	free(s->stack);
}

static bool runs(const struct call_edge *e)
{
	return e->kind == CALL_CALL || e->kind == CALL_JUMP;
}

static int search_begin(struct gc_search *s)
{
	const struct call_graph *g = s->g;
	uint32_t i, fn = 0;

	s->node = calloc(g->n + 1, sizeof(*s->node));
	s->stack = calloc(g->n + 1, sizeof(*s->stack));
	if (!s->node || !s->stack)
		return -ENOMEM;
	for (i = 0; i < g->n; i++)
		s->node[i].last_caller = UINT32_MAX;
	for (i = 0; i < g->nedges; i++) {
		const struct call_edge *e = &g->edge[i];
		struct gc_node *to = &s->node[e->to];

		while (fn <= e->from)
			s->node[fn++].first_edge = i;
		if (!runs(e))
			continue;
		to->callers += to->last_caller != e->from;
		to->last_caller = e->from;
		to->by_vm |= e->from == s->vm;
		s->node[e->from].branch = true;
	}
	while (fn <= g->n)
		s->node[fn++].first_edge = g->nedges;
	return 0;
}

/* The distinct functions that one calls or jumps to. n == 0: none, or more than MAX_CALLEES. */
struct callees {
	uint32_t fn[MAX_CALLEES], n;
};

static bool has_callee(const struct callees *c, uint32_t fn)
{
	uint32_t i;

	for (i = 0; i < c->n; i++)
		if (c->fn[i] == fn)
			return true;
	return false;
}

static void list_callees(const struct gc_search *s, uint32_t fn, struct callees *c)
{
	uint32_t i;

	c->n = 0;
	for (i = s->node[fn].first_edge; i < s->node[fn + 1].first_edge; i++) {
		const struct call_edge *e = &s->g->edge[i];

		if (!runs(e) || has_callee(c, e->to))
			continue;
		if (c->n == MAX_CALLEES) {
			c->n = 0;
			return;
		}
		c->fn[c->n++] = e->to;
	}
}

static bool counts_memory(const struct call_graph *g, uint32_t fn)
{
	uint64_t size = g->fn[fn].size;
	uint8_t *text __free = malloc(MAX_CODE);
	bool kib = false, rest = false;
	struct insn in;
	size_t at;

	if (!text || size > MAX_CODE || elf_read(g->elf, g->fn[fn].start, text, size))
		return false;
	for (at = 0; at < size; at += in.len) {
		if (!insn_decode(text + at, size - at, &in)) {
			in.len = 1;
			continue;
		}
		kib |= insn_shifts_right(&in, 10);
		rest |= insn_has_mask(&in, 0x3ff);
	}
	return kib && rest;
}

/* Returns the only callee that counts memory; without one, collectgarbage itself if it does (lua_gc
 * is inlined). g->n: none, or several. */
static uint32_t find_lua_gc(const struct gc_search *s, uint32_t collectgarbage)
{
	uint32_t i, found = s->g->n;
	struct callees c;

	list_callees(s, collectgarbage, &c);
	for (i = 0; i < c.n; i++) {
		if (!counts_memory(s->g, c.fn[i]))
			continue;
		if (found != s->g->n)
			return s->g->n;
		found = c.fn[i];
	}
	return found == s->g->n && counts_memory(s->g, collectgarbage) ? collectgarbage : found;
}

/* True if luaV_execute and enough others, which allocate objects, call fn. */
static bool makes_objects(const struct gc_search *s, uint32_t fn)
{
	return s->node[fn].by_vm && s->node[fn].callers >= MIN_CALLERS;
}

/* Returns the function by which luaV_execute reaches fn: fn or a caller of it. g->n: none. */
static uint32_t between(const struct gc_search *s, uint32_t fn, bool by_another)
{
	uint32_t i;

	if (!by_another)
		return makes_objects(s, fn) ? fn : s->g->n;
	for (i = 0; i < s->g->nedges; i++) {
		const struct call_edge *e = &s->g->edge[i];

		if (e->to == fn && runs(e) && makes_objects(s, e->from))
			return e->from;
	}
	return s->g->n;
}

/* Returns the largest function that both call, and few others call: singlestep. g->n: none. */
static uint32_t shared(const struct gc_search *s, uint32_t a, uint32_t b)
{
	uint32_t i, found = s->g->n;
	struct callees of_a, of_b;

	list_callees(s, a, &of_a);
	list_callees(s, b, &of_b);
	for (i = 0; i < of_a.n; i++) {
		uint32_t fn = of_a.fn[i];
		const struct gc_node *node = &s->node[fn];

		if (has_callee(&of_b, fn) && node->branch && !node->by_vm &&
		    node->callers <= MAX_SHARED_BY &&
		    (found == s->g->n || s->g->fn[fn].size > s->g->fn[found].size))
			found = fn;
	}
	return found;
}

/* Returns the only callee of lua_gc that luaV_execute reaches. g->n: none, or several. */
static uint32_t find_step(const struct gc_search *s, const struct callees *of_gc, bool by_another)
{
	uint32_t i, found = s->g->n;

	for (i = 0; i < of_gc->n; i++) {
		uint32_t fn = of_gc->fn[i];

		if (!s->node[fn].branch || between(s, fn, by_another) == s->g->n)
			continue;
		if (found != s->g->n)
			return s->g->n;
		found = fn;
	}
	return found;
}

/* Returns lua_gc's other callee with most callers that shares one with step. g->n: none. */
static uint32_t find_full(const struct gc_search *s, const struct callees *of_gc, uint32_t step)
{
	uint32_t i, found = s->g->n, most = 0;

	for (i = 0; i < of_gc->n; i++) {
		uint32_t fn = of_gc->fn[i];

		if (fn == step || s->node[fn].callers <= most || shared(s, step, fn) == s->g->n)
			continue;
		most = s->node[fn].callers;
		found = fn;
	}
	return found;
}

/* The collector's entries. luaV_execute calls `from_vm`, which is step or calls it. */
struct gc_entries {
	uint32_t from_vm, step, full;
};

static int find_entries(const struct gc_search *s, uint32_t lua_gc, struct gc_entries *e)
{
	struct callees of_gc;
	bool by_another;

	list_callees(s, lua_gc, &of_gc);
	e->step = find_step(s, &of_gc, false);
	by_another = e->step == s->g->n;
	if (by_another)
		e->step = find_step(s, &of_gc, true);
	if (e->step == s->g->n)
		return -ENOENT;
	e->from_vm = between(s, e->step, by_another);
	e->full = find_full(s, &of_gc, e->step);
	if (e->full == s->g->n) /* luaC_fullgc is inlined in lua_gc */
		e->full = shared(s, e->step, lua_gc);
	return e->full == s->g->n ? -ENOENT : 0;
}

static bool is_entry(const struct gc_entries *e, uint32_t fn)
{
	return fn == e->from_vm || fn == e->step || fn == e->full;
}

/* Marks all functions that those on the stack reach, which are marked: depth-first search. */
static void mark_below(struct gc_search *s, uint32_t depth)
{
	while (depth) {
		uint32_t fn = s->stack[--depth], i;

		for (i = s->node[fn].first_edge; i < s->node[fn + 1].first_edge; i++) {
			struct gc_node *to = &s->node[s->g->edge[i].to];

			if (!runs(&s->g->edge[i]) || to->below)
				continue;
			to->below = true;
			s->stack[depth++] = s->g->edge[i].to;
		}
	}
}

/* Marks all functions that those on the stack reach, also by references, except the entries. */
static void mark_elsewhere(struct gc_search *s, const struct gc_entries *e, uint32_t depth)
{
	while (depth) {
		uint32_t fn = s->stack[--depth], i;

		for (i = s->node[fn].first_edge; i < s->node[fn + 1].first_edge; i++) {
			uint32_t to = s->g->edge[i].to;

			if (s->node[to].elsewhere || is_entry(e, to))
				continue;
			s->node[to].elsewhere = true;
			s->stack[depth++] = to;
		}
	}
}

/* Marks the functions that only the entries reach. */
static void find_below(struct gc_search *s, const struct gc_entries *e)
{
	const uint32_t entry[] = {e->from_vm, e->step, e->full};
	uint32_t i, depth = 0;

	for (i = 0; i < 3; i++) {
		if (!s->node[entry[i]].below)
			s->stack[depth++] = entry[i];
		s->node[entry[i]].below = true;
	}
	mark_below(s, depth);
	for (i = 0, depth = 0; i < s->g->n; i++)
		if (!s->node[i].below) {
			s->node[i].elsewhere = true;
			s->stack[depth++] = i;
		}
	mark_elsewhere(s, e, depth);
	for (i = 0; i < s->g->n; i++)
		s->node[i].below &= !s->node[i].elsewhere;
}

/* Functions first .. last, which are adjacent. */
struct run {
	uint32_t first, last;
};

static struct run run_at(const struct gc_search *s, uint32_t fn)
{
	struct run r = {fn, fn};

	while (r.first && s->node[r.first - 1].below)
		r.first--;
	while (r.last + 1 < s->g->n && s->node[r.last + 1].below)
		r.last++;
	return r;
}

static bool has(const struct run *r, uint32_t fn)
{
	return fn >= r->first && fn <= r->last;
}

static uint64_t end_of(const struct call_graph *g, uint32_t fn)
{
	return g->fn[fn].start + g->fn[fn].size;
}

static uint64_t bytes_of(const struct call_graph *g, const struct run *r)
{
	return end_of(g, r->last) - g->fn[r->first].start;
}

/*
 * Takes the run around luaC_step, and the larger of the runs around luaC_fullgc and around
 * singlestep, which luaC_fullgc calls.
 */
static int take_pieces(struct gc_search *s, const struct gc_entries *e, struct elf_puc_gc *gc)
{
	const struct call_graph *g = s->g;
	uint32_t single = shared(s, e->step, e->full);
	struct run a, b, c;

	find_below(s, e);
	a = run_at(s, e->step);
	b = run_at(s, e->full);
	if (single != g->n && s->node[single].below && !has(&a, single)) {
		c = run_at(s, single);
		if (bytes_of(g, &c) > bytes_of(g, &b))
			b = c;
	}
	if (a.first > b.first) {
		c = a;
		a = b;
		b = c;
	}
	if (!has(&a, e->from_vm) && !has(&b, e->from_vm))
		return -ENOENT;
	*gc = (struct elf_puc_gc){.lo = g->fn[a.first].start, .hi = end_of(g, b.last)};
	if (a.first != b.first) {
		gc->skip_lo = end_of(g, a.last);
		gc->skip_hi = g->fn[b.first].start;
	}
	return 0;
}

static bool covers(const struct elf_puc_gc *gc, uint64_t start)
{
	return start >= gc->lo && start < gc->hi && !(start >= gc->skip_lo && start < gc->skip_hi);
}

int elf_puc_collector_by(const struct call_graph *g, uint64_t collectgarbage, uint64_t vm_start,
			 struct elf_puc_gc *gc)
{
	struct gc_search s __cleanup(search_free) = {.g = g, .vm = call_graph_find(g, vm_start)};
	uint32_t base = call_graph_find(g, collectgarbage), lua_gc;
	struct elf_puc_gc whole;
	struct gc_entries e;
	int err;

	if (s.vm == g->n || base == g->n)
		return -ENOENT;
	err = search_begin(&s);
	if (err)
		return err;
	lua_gc = find_lua_gc(&s, base);
	if (lua_gc == g->n || find_entries(&s, lua_gc, &e))
		return -ENOENT;
	/* with lua_gc inlined, callees of collectgarbage are not all the collector's */
	if (lua_gc == base || elf_puc_collector(g, g->fn[lua_gc].start, &whole) ||
	    !covers(&whole, g->fn[e.from_vm].start) || !covers(&whole, g->fn[e.step].start) ||
	    !covers(&whole, g->fn[e.full].start))
		return take_pieces(&s, &e, gc);
	*gc = whole;
	return 0;
}
