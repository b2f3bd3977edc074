// SPDX-License-Identifier: BSD-2-Clause
/*
 * Each call in PUC Lua goes through luaD_precall(L, func, ...) of ldo.c, whether luaV_execute, the C
 * API, a metamethod or lua_resume makes it; from 5.4.4 on tail calls go through luaD_pretailcall(L,
 * ci, func, ...). A value that is no function is called by its metamethod "__call", which
 *
 *     luaT_gettmbyobj(L, func, TM_CALL)
 *
 * returns: this call is in luaD_precall, in a piece of it, or in luaD_tryfuncTM. So the search is for
 * calls with TM_CALL as the third argument, and for functions that luaV_execute calls and
 *
 *     that make such a call, or call a function that does      ("meta" below)
 *     that call C functions, or call a function that does
 *
 * These are the entries. A probe is at each one's begin, where the arguments are in registers; and at
 * the return of luaT_gettmbyobj, as the entry's own loop then goes on with the metamethod.
 *
 * In 5.4.0 to 5.4.3 luaV_execute calls luaD_tryfuncTM for a tail call itself, until the value is a function,
 * and then luaD_precall (5.4.0 and 5.4.1: luaD_call) for a C function, or luaD_pretailcall, which makes no
 * such call. luaD_pretailcall is then known by what it alone does: it sets CIST_TAIL in the CallInfo.
 *
 * The file is untrusted; call_graph.h bounds what is decoded.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "arch/insn_data.h"
#include "detect/call_graph.h"
#include "detect/calls.h"
#include "recognise.h"

#define METAS 8	     /* calls with TM_CALL */
#define ENTRIES 4    /* luaD_precall, luaD_pretailcall, and copies */
#define ARG_NEAR 8   /* instructions from the argument to the call */
#define ENTRY_NEAR 4 /* instructions of an entry, of which one may be emulated */
#define TEXT_MOST (128u << 10)

/* TM_CALL (ltm.h) */
static int64_t tm_call(uint8_t version)
{
	return version < 53 ? 16 : 23;
}

struct meta {
	uint32_t fn, to; /* the function that calls, and luaT_gettmbyobj */
	uint64_t ret;
};

struct puc_calls {
	struct call_graph g;
	uint8_t *text; /* of one function */
	uint32_t vm;
	int64_t tm;
	const struct puc_layout *layout;
	struct meta meta[METAS];
	uint32_t nmetas;
	uint32_t entry[ENTRIES];
	uint32_t nentries;
};

static void puc_calls_free(struct puc_calls *c)
{
	call_graph_free(&c->g);
	free(c->text);
}

/* Appends the call at `ret - len`, if it is of another function of the graph. */
static void add_meta(struct puc_calls *c, uint32_t fn, uint64_t ret, int64_t distance)
{
	uint64_t target = ret + (uint64_t)distance;
	uint32_t to = call_graph_find(&c->g, target);

	if (to == c->g.n || c->g.fn[to].start != target || to == fn)
		return;
	if (c->nmetas < METAS)
		c->meta[c->nmetas] = (struct meta){.fn = fn, .to = to, .ret = ret};
	c->nmetas++;
}

/* Finds the calls with TM_CALL in the third argument, and a second one that is no constant. */
static void find_metas(struct puc_calls *c, uint32_t fn)
{
	const struct call_function *f = &c->g.fn[fn];
	bool arg_is_constant = false;
	unsigned int near = 0;
	struct insn in;
	int64_t value;
	size_t at;

	if (f->size > TEXT_MOST || elf_read(c->g.elf, f->start, c->text, f->size))
		return;
	for (at = 0; at < f->size; at += in.len) {
		if (!insn_decode(c->text + at, f->size - at, &in)) {
			in.len = 1;
			near = 0;
			continue;
		}
		if (insn_writes(&in, insn_arg[1]) || insn_is_call(&in) || insn_is_jump(&in))
			arg_is_constant = insn_sets_address(&in, insn_arg[1]);
		if (insn_sets_constant(&in, insn_arg[2], &value) && value == c->tm) {
			near = arg_is_constant ? 0 : ARG_NEAR;
			continue;
		}
		if (near && insn_is_call(&in) && in.relative)
			add_meta(c, fn, f->start + at + in.len, in.imm);
		if (insn_sets_address(&in, insn_arg[1]) || insn_is_call(&in) || insn_is_jump(&in) ||
		    insn_ends(&in) || insn_writes(&in, insn_arg[2]))
			near = 0;
		near -= near != 0;
	}
}

static bool runs(const struct call_edge *e)
{
	return e->kind == CALL_CALL || e->kind == CALL_JUMP || e->kind == CALL_LINKED;
}

static bool calls_to(const struct puc_calls *c, uint32_t from, uint32_t to)
{
	uint32_t i;

	for (i = 0; i < c->g.nedges; i++)
		if (c->g.edge[i].from == from && c->g.edge[i].to == to && runs(&c->g.edge[i]))
			return true;
	return false;
}

/* True if a function, or one that it calls, calls through a pointer: a C function, for one. */
static bool calls_c(const struct puc_calls *c, uint32_t fn)
{
	uint32_t i;

	if (c->g.fn[fn].indirect)
		return true;
	for (i = 0; i < c->g.nedges; i++)
		if (c->g.edge[i].from == fn && runs(&c->g.edge[i]) &&
		    c->g.fn[c->g.edge[i].to].indirect)
			return true;
	return false;
}

static int add_entry(struct puc_calls *c, uint32_t fn)
{
	uint32_t i;

	for (i = 0; i < c->nentries; i++)
		if (c->entry[i] == fn)
			return 0;
	if (c->nentries == ENTRIES)
		return -ENOTSUP;
	c->entry[c->nentries++] = fn;
	return 0;
}

/*
 * Adds the entries that lead to a meta: its own function, or all that call it. One of them at least is
 * called by luaV_execute; copies that a compiler has put into luaD_call and luaD_callnoyield have
 * the same arguments.
 */
static int entries_of(struct puc_calls *c, const struct meta *m, bool *any)
{
	uint32_t i;
	int r = 0;

	*any = calls_to(c, c->vm, m->fn) && calls_c(c, m->fn);
	if (*any)
		return add_entry(c, m->fn);
	for (i = 0; i < c->g.nedges; i++) {
		const struct call_edge *e = &c->g.edge[i];

		*any |= e->to == m->fn && runs(e) && calls_to(c, c->vm, e->from) &&
			calls_c(c, e->from);
	}
	for (i = 0; *any && !r && i < c->g.nedges; i++)
		if (c->g.edge[i].to == m->fn && c->g.edge[i].from != c->vm && runs(&c->g.edge[i]))
			r = add_entry(c, c->g.edge[i].from);
	return r;
}

/* True if luaV_execute itself looks for the metamethod, by this function: luaD_tryfuncTM. */
static bool is_tried_by_vm(const struct puc_calls *c, const struct meta *m)
{
	return calls_to(c, c->vm, m->fn) && !calls_c(c, m->fn);
}

/* callstatus |= CIST_TAIL */
static bool sets_tail(const struct puc_calls *c, const struct insn *in, size_t at)
{
	(void)at;
	return insn_sets_bits(in, c->layout->ci_callstatus, c->layout->cist_tail);
}

/* A jump or a call to its function's own begin: then the probe there sees the metamethod, too. */
static bool is_recursion(const struct puc_calls *c, const struct insn *in, size_t at)
{
	(void)c;
	return in->relative && (int64_t)at + in->len + in->imm == 0;
}

/* True if one of the function's instructions is such. */
static bool has_insn(const struct puc_calls *c, uint32_t fn,
		     bool (*is)(const struct puc_calls *c, const struct insn *in, size_t at))
{
	const struct call_function *f = &c->g.fn[fn];
	struct insn in;
	size_t at;

	if (f->size > TEXT_MOST || elf_read(c->g.elf, f->start, c->text, f->size))
		return false;
	for (at = 0; at < f->size; at += in.len) {
		if (!insn_decode(c->text + at, f->size - at, &in))
			in.len = 1;
		else if (is(c, &in, at))
			return true;
	}
	return false;
}

/*
 * Finds luaD_pretailcall among the functions that luaV_execute calls, and adds it. Returns -ENOTSUP
 * unless exactly one fits.
 */
static int add_pretailcall(struct puc_calls *c)
{
	uint32_t found = c->g.n;

	for (uint32_t fn = 0; fn < c->g.n; fn++) {
		if (fn == c->vm || !calls_to(c, c->vm, fn) || !has_insn(c, fn, sets_tail))
			continue;
		if (found != c->g.n)
			return -ENOTSUP;
		found = fn;
	}
	return found == c->g.n ? -ENOTSUP : add_entry(c, found);
}

/* The probe of an entry: at its first instruction, or one near that the kernel emulates. */
static struct call_probe entry_probe(struct puc_calls *c, uint32_t fn)
{
	const struct call_function *f = &c->g.fn[fn];
	struct call_probe probe = {.addr = f->start, .site = LB_CALL_PUC_ENTRY, .stepped = true};
	uint8_t text[ENTRY_NEAR * INSN_BYTES];
	size_t size = f->size < sizeof(text) ? f->size : sizeof(text), at = 0;
	struct insn in;
	unsigned int i;

	if (elf_read(c->g.elf, f->start, text, size))
		return probe;
	for (i = 0; i < ENTRY_NEAR && insn_decode(text + at, size - at, &in); i++, at += in.len) {
		if (insn_is_emulated(&in)) {
			probe.addr = f->start + at;
			probe.stepped = false;
			return probe;
		}
		if (insn_writes(&in, insn_arg[0]) || insn_writes(&in, insn_arg[1]) ||
		    insn_writes(&in, insn_arg[2]) || insn_is_call(&in) || in.relative ||
		    insn_ends(&in))
			return probe;
	}
	return probe;
}

/*
 * Finds the entries, and adds the probes of the metas that lead to them. -ENOTSUP: one leads to none,
 * as a function that holds a copy of luaD_precall is no callee of luaV_execute.
 */
static int add_metas(struct puc_calls *c, struct call_probes *out)
{
	uint32_t i, gettm = c->g.n;
	bool any[METAS], vm_tries = false;
	int r = 0;

	for (i = 0; !r && i < c->nmetas; i++) {
		r = entries_of(c, &c->meta[i], &any[i]);
		if (any[i])
			gettm = c->meta[i].to;
	}
	for (i = 0; i < c->nmetas; i++)
		vm_tries |= c->meta[i].to == gettm && is_tried_by_vm(c, &c->meta[i]);
	if (!r && vm_tries)
		r = add_pretailcall(c);
	for (i = 0; !r && i < c->nmetas; i++) {
		struct call_probe probe = {
			.addr = c->meta[i].ret,
			.site = vm_tries ? LB_CALL_PUC_META_WITHIN : LB_CALL_PUC_META,
			.stepped = true,
		};

		if (c->meta[i].to != gettm)
			continue;
		if (!any[i] && is_tried_by_vm(c, &c->meta[i]))
			continue; /* luaD_tryfuncTM, of which luaD_precall has a copy */
		if (!any[i])
			return -ENOTSUP;
		if (!has_insn(c, c->meta[i].fn, is_recursion))
			r = call_probes_add(out, &probe);
	}
	return r;
}

static int add_probes(struct puc_calls *c, struct call_probes *out)
{
	uint32_t i;
	int r = c->nmetas <= METAS ? add_metas(c, out) : -ENOTSUP;

	for (i = 0; !r && i < c->nentries; i++) {
		const struct call_probe probe = entry_probe(c, c->entry[i]);

		r = call_probes_add(out, &probe);
	}
	return r ? r : c->nentries ? 0 : -ENOTSUP;
}

int puc_call_probes(struct elf_file *elf, const struct vm_build *build, struct call_probes *out,
		    struct error *err)
{
	struct puc_calls c __cleanup(puc_calls_free) = {.text = malloc(TEXT_MOST)};
	struct call_probes probes = {};
	uint32_t fn;
	int r;

	if (!c.text)
		return error_set(err, -ENOMEM, "out of memory");
	c.layout = &build->build.puc.puc;
	c.tm = tm_call(c.layout->version);
	r = call_graph_build(elf, build->start, PUC_WINDOW, &c.g);
	if (r == -ENOMEM)
		return error_set(err, r, "out of memory");
	c.vm = call_graph_find(&c.g, build->start);
	for (fn = 0; !r && fn < c.g.n; fn++)
		find_metas(&c, fn);
	if (r || c.vm == c.g.n || add_probes(&c, &probes))
		return error_set(err, -ENOTSUP,
				 "%s: luaD_precall, by which all calls go, was not found",
				 build->release);
	*out = probes;
	return 0;
}
