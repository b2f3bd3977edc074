// SPDX-License-Identifier: BSD-2-Clause
/*
 * The base library's collectgarbage calls lua_gc, which alone of its callees tells of a number of
 * bytes the KiB and the rest, n >> 10 and n & 0x3ff. What lua_gc calls, and is no leaf like
 * luaE_setdebt, enters the collector. Of that luaV_execute calls luaC_step, in 5.2 by way of
 * another function; luaC_fullgc has a callee in common with it.
 *
 *	luaB_collectgarbage -> lua_gc -> luaC_step   -> singlestep
 *				     |-> luaC_fullgc -> singlestep
 *				     `-> luaE_setdebt
 *
 * Each collection runs below one of the two. With -flto the collector is in many pieces, with other
 * functions between them: then two pieces will do, and what is between them is skipped.
 */
#include "target/puc_gc.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "target/x86_insn.h"

#define MAX_CODE 8192	/* of lua_gc: 1.8 KiB is the largest that was seen */
#define MIN_CALLERS 5	/* of luaC_step: whatever makes an object */
#define MAX_SHARED_BY 8 /* callers of what luaC_step and luaC_fullgc both call */

static bool runs(const struct call_edge *e)
{
	return e->kind == CALL_CALL || e->kind == CALL_JUMP;
}

static bool calls_to(const struct call_graph *g, uint32_t from, uint32_t to)
{
	uint32_t i;

	for (i = 0; i < g->nedges; i++)
		if (g->edge[i].from == from && g->edge[i].to == to && runs(&g->edge[i]))
			return true;
	return false;
}

/* Different callers; edges are in order of these. */
static uint32_t callers_of(const struct call_graph *g, uint32_t to)
{
	uint32_t i, n = 0, last = UINT32_MAX;

	for (i = 0; i < g->nedges; i++)
		if (g->edge[i].to == to && runs(&g->edge[i]) && g->edge[i].from != last) {
			last = g->edge[i].from;
			n++;
		}
	return n;
}

static bool is_leaf(const struct call_graph *g, uint32_t fn)
{
	uint32_t i;

	for (i = 0; i < g->nedges; i++)
		if (g->edge[i].from == fn && runs(&g->edge[i]))
			return false;
	return true;
}

static bool shifts(const struct x86_insn *in)
{
	return (in->mnemonic == ZYDIS_MNEMONIC_SHR || in->mnemonic == ZYDIS_MNEMONIC_SAR) &&
	       in->has_imm && in->imm == 10;
}

static bool masks(const struct x86_insn *in)
{
	return (in->mnemonic == ZYDIS_MNEMONIC_AND || in->mnemonic == ZYDIS_MNEMONIC_MOV) &&
	       in->has_imm && in->imm == 0x3ff;
}

static bool counts_memory(const struct call_graph *g, uint32_t fn)
{
	uint64_t size = g->fn[fn].size;
	uint8_t *text __free = malloc(MAX_CODE);
	bool kib = false, rest = false;
	struct x86_insn in;
	size_t at;

	if (!text || size > MAX_CODE || elf_read(g->elf, g->fn[fn].start, text, size))
		return false;
	for (at = 0; at < size; at += in.len) {
		if (!x86_decode(text + at, size - at, &in)) {
			in.len = 1;
			continue;
		}
		kib |= shifts(&in);
		rest |= masks(&in);
	}
	return kib && rest;
}

/* The only callee that counts memory, or itself, with lua_gc inlined; g->n: none, or several. */
static uint32_t find_lua_gc(const struct call_graph *g, uint32_t collectgarbage)
{
	uint32_t i, found = g->n;

	for (i = 0; i < g->nedges; i++) {
		const struct call_edge *e = &g->edge[i];

		if (e->from != collectgarbage || !runs(e) || e->to == found ||
		    !counts_memory(g, e->to))
			continue;
		if (found != g->n)
			return g->n;
		found = e->to;
	}
	return found == g->n && counts_memory(g, collectgarbage) ? collectgarbage : found;
}

/* What luaV_execute calls to get to fn: itself, or, in 5.2, what calls it. g->n: nothing. */
static uint32_t way_to(const struct call_graph *g, uint32_t vm, uint32_t fn, bool by_another)
{
	uint32_t i;

	if (!by_another)
		return calls_to(g, vm, fn) && callers_of(g, fn) >= MIN_CALLERS ? fn : g->n;
	for (i = 0; i < g->nedges; i++)
		if (g->edge[i].to == fn && runs(&g->edge[i]) && calls_to(g, vm, g->edge[i].from) &&
		    callers_of(g, g->edge[i].from) >= MIN_CALLERS)
			return g->edge[i].from;
	return g->n;
}

/* The largest that both call, and few others do: singlestep. g->n: none. */
static uint32_t shared(const struct call_graph *g, uint32_t vm, uint32_t a, uint32_t b)
{
	uint32_t i, found = g->n;

	for (i = 0; i < g->nedges; i++) {
		const struct call_edge *e = &g->edge[i];

		if (e->from == a && runs(e) && calls_to(g, b, e->to) && !is_leaf(g, e->to) &&
		    !calls_to(g, vm, e->to) && callers_of(g, e->to) <= MAX_SHARED_BY &&
		    (found == g->n || g->fn[e->to].size > g->fn[found].size))
			found = e->to;
	}
	return found;
}

/* What lua_gc calls that luaV_execute does, too. */
static uint32_t find_step(const struct call_graph *g, uint32_t vm, uint32_t lua_gc, bool by_another)
{
	uint32_t i, found = g->n;

	for (i = 0; i < g->nedges; i++) {
		const struct call_edge *e = &g->edge[i];

		if (e->from != lua_gc || e->kind != CALL_CALL || e->to == found ||
		    is_leaf(g, e->to) || way_to(g, vm, e->to, by_another) == g->n)
			continue;
		if (found != g->n)
			return g->n;
		found = e->to;
	}
	return found;
}

/* Of the others that lua_gc calls, that which has most callers. */
static uint32_t find_full(const struct call_graph *g, uint32_t vm, uint32_t lua_gc, uint32_t step)
{
	uint32_t i, found = g->n, most = 0;

	for (i = 0; i < g->nedges; i++) {
		const struct call_edge *e = &g->edge[i];
		uint32_t n;

		if (e->from != lua_gc || e->kind != CALL_CALL || e->to == step ||
		    shared(g, vm, step, e->to) == g->n)
			continue;
		n = callers_of(g, e->to);
		if (n > most) {
			most = n;
			found = e->to;
		}
	}
	return found;
}

/* The functions by which the collector is entered: way leads from luaV_execute to step. */
struct entries {
	uint32_t way, step, full;
};

static bool is_entry(const struct entries *e, uint32_t fn)
{
	return fn == e->way || fn == e->step || fn == e->full;
}

/* What runs below these, and below nothing else. */
static void find_below(const struct call_graph *g, const struct entries *e, bool *below)
{
	bool more = true;
	uint32_t i;

	below[e->way] = below[e->step] = below[e->full] = true;
	while (more) {
		more = false;
		for (i = 0; i < g->nedges; i++)
			if (runs(&g->edge[i]) && below[g->edge[i].from] && !below[g->edge[i].to])
				more = below[g->edge[i].to] = true;
	}
	more = true;
	while (more) {
		more = false;
		for (i = 0; i < g->nedges; i++) {
			uint32_t to = g->edge[i].to;

			if (!below[to] || below[g->edge[i].from] || is_entry(e, to))
				continue;
			below[to] = false;
			more = true;
		}
	}
}

/* Functions first .. last, which lie side by side. */
struct run {
	uint32_t first, last;
};

static struct run run_at(const struct call_graph *g, const bool *below, uint32_t fn)
{
	struct run r = {fn, fn};

	while (r.first && below[r.first - 1])
		r.first--;
	while (r.last + 1 < g->n && below[r.last + 1])
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

static struct run larger(const struct call_graph *g, struct run a, struct run b)
{
	return end_of(g, a.last) - g->fn[a.first].start > end_of(g, b.last) - g->fn[b.first].start
		       ? a
		       : b;
}

/*
 * What lies beside luaC_step, and of two other pieces the larger: what lies beside luaC_fullgc, and
 * beside singlestep, which runs below that.
 */
static int take_pieces(const struct call_graph *g, uint32_t vm, const struct entries *e,
		       struct elf_puc_gc *gc)
{
	bool *below __free = calloc(g->n + 1, sizeof(*below));
	uint32_t single = shared(g, vm, e->step, e->full);
	struct run a, b;

	if (!below)
		return -ENOMEM;
	find_below(g, e, below);
	a = run_at(g, below, e->step);
	b = run_at(g, below, e->full);
	if (single != g->n && below[single] && !has(&a, single) && e->step != e->full)
		b = larger(g, run_at(g, below, single), b);
	if (a.first > b.first) {
		struct run other = a;

		a = b;
		b = other;
	}
	if (!has(&a, e->way) && !has(&b, e->way))
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

static int find_entries(const struct call_graph *g, uint32_t vm, uint32_t lua_gc, struct entries *e)
{
	bool by_another;

	e->step = find_step(g, vm, lua_gc, false);
	by_another = e->step == g->n;
	if (by_another)
		e->step = find_step(g, vm, lua_gc, true);
	if (e->step == g->n)
		return -ENOENT;
	e->way = way_to(g, vm, e->step, by_another);
	e->full = find_full(g, vm, lua_gc, e->step);
	if (e->full == g->n && shared(g, vm, e->step, lua_gc) != g->n)
		e->full = e->step; /* luaC_fullgc is inlined in lua_gc */
	return e->full == g->n ? -ENOENT : 0;
}

int elf_puc_collector_by(const struct call_graph *g, uint64_t collectgarbage, uint64_t vm_start,
			 struct elf_puc_gc *gc)
{
	uint32_t vm = call_graph_find(g, vm_start), base = call_graph_find(g, collectgarbage);
	struct elf_puc_gc whole;
	struct entries e;
	uint32_t lua_gc;

	if (vm == g->n || base == g->n)
		return -ENOENT;
	lua_gc = find_lua_gc(g, base);
	if (lua_gc == g->n || find_entries(g, vm, lua_gc, &e))
		return -ENOENT;
	/* what collectgarbage itself calls is not the collector's alone */
	if (lua_gc == base || elf_puc_collector(g, g->fn[lua_gc].start, &whole) ||
	    !covers(&whole, g->fn[e.way].start) || !covers(&whole, g->fn[e.step].start) ||
	    !covers(&whole, g->fn[e.full].start))
		return take_pieces(g, vm, &e, gc);
	*gc = whole;
	return 0;
}
