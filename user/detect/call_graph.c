// SPDX-License-Identifier: BSD-2-Clause
#include "call_graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "arch/insn_refs.h"

#define MAX_FUNCTIONS 8192
#define MAX_EDGES (256u << 10)
#define MAX_TEXT (128u << 10) /* bytes of one function */
#define MAX_LINKED 4096

struct build {
	struct call_graph *g;
	uint64_t near, window;
	uint8_t *text;
	struct elf_pointer *linked; /* sorted by slot */
	size_t nlinked;
};

static void build_free(struct build *b)
{
	free(b->text);
	free(b->linked);
}

void call_graph_free(struct call_graph *g)
{
	free(g->fn);
	free(g->edge);
}

static int add_function(void *arg, const struct elf_fde *fde)
{
	struct build *b = arg;
	struct call_graph *g = b->g;
	struct call_function *last = g->n ? &g->fn[g->n - 1] : NULL;

	if (fde->start + b->window < b->near || fde->start > b->near + b->window || !fde->size ||
	    fde->size > MAX_TEXT || g->n == MAX_FUNCTIONS)
		return 0;
	if (last && fde->start < last->start + last->size)
		return 0; /* out of order, or they overlap */
	if (array_grow(&g->fn, g->n, sizeof(*g->fn)))
		return -ENOMEM;
	g->fn[g->n++] = (struct call_function){.start = fde->start, .size = fde->size};
	return 0;
}

uint32_t call_graph_find(const struct call_graph *g, uint64_t addr)
{
	uint32_t lo = 0, hi = g->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (g->fn[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || addr - g->fn[lo - 1].start >= g->fn[lo - 1].size)
		return g->n;
	return lo - 1;
}

static int add_edge(struct build *b, uint32_t from, uint64_t target, enum call_kind kind)
{
	struct call_graph *g = b->g;
	uint32_t to = call_graph_find(g, target);

	if (to == g->n || to == from || g->fn[to].start != target || g->nedges == MAX_EDGES)
		return 0;
	if (array_grow(&g->edge, g->nedges, sizeof(*g->edge)))
		return -ENOMEM;
	g->edge[g->nedges++] = (struct call_edge){from, to, kind};
	return 0;
}

static int add_linked(void *arg, const struct elf_pointer *p)
{
	struct build *b = arg;

	if (b->nlinked == MAX_LINKED)
		return 0;
	if (array_grow(&b->linked, b->nlinked, sizeof(*b->linked)))
		return -ENOMEM;
	b->linked[b->nlinked++] = *p;
	return 0;
}

static int by_slot(const void *a, const void *b)
{
	const struct elf_pointer *x = a, *y = b;

	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* Adds a call or jump through the word at slot. */
static int add_by_slot(struct build *b, uint32_t from, uint64_t slot)
{
	const struct elf_pointer key = {.slot = slot};
	const struct elf_pointer *p = NULL;

	if (b->nlinked)
		p = bsearch(&key, b->linked, b->nlinked, sizeof(key), by_slot);
	return p ? add_edge(b, from, p->value, CALL_LINKED) : 0;
}

/* Adds a branch to a PLT entry, as one to the function that the entry jumps to. */
static int add_by_plt(struct build *b, uint32_t from, uint64_t target)
{
	uint8_t text[PLT_ENTRY];
	uint64_t slot;

	if (!b->nlinked || elf_read(b->g->elf, target, text, sizeof(text)) ||
	    !insn_plt_slot(text, target, &slot))
		return 0;
	return add_by_slot(b, from, slot);
}

static int add_branch(struct build *b, uint32_t from, uint64_t target, enum call_kind kind)
{
	uint32_t to = call_graph_find(b->g, target);

	if (to == from)
		return 0;
	if (to != b->g->n && b->g->fn[to].start == target)
		return add_edge(b, from, target, kind);
	return add_by_plt(b, from, target);
}

static int add_ref(struct build *b, uint32_t from, const struct insn *in, uint64_t next)
{
	uint64_t addr;

	switch (insn_ref(in, next, &addr)) {
	case INSN_REF_TARGET:
		return add_branch(b, from, addr, insn_is_call(in) ? CALL_CALL : CALL_JUMP);
	case INSN_REF_SLOT:
		return add_by_slot(b, from, addr);
	case INSN_REF_VALUE:
		return add_edge(b, from, addr, CALL_REFERENCE);
	default:
		return 0;
	}
}

static int edges_of(struct build *b, uint32_t from)
{
	struct call_function *f = &b->g->fn[from];
	size_t at = 0;
	int err = 0;

	/* the PLT has call frame information, too */
	if (elf_read(b->g->elf, f->start, b->text, f->size) || insn_is_plt(b->text, f->size))
		return 0;
	while (!err && at < f->size) {
		struct insn in;

		if (!insn_decode(b->text + at, f->size - at, &in)) {
			at++;
			continue;
		}
		at += in.len;
		if (insn_is_call(&in) && !in.relative)
			f->indirect = true;
		err = add_ref(b, from, &in, f->start + at);
	}
	return err;
}

int call_graph_build(struct elf_file *elf, uint64_t near, uint64_t window, struct call_graph *g)
{
	struct build b __cleanup(build_free) = {.g = g, .near = near, .window = window};
	uint32_t i;
	int err;

	*g = (struct call_graph){.elf = elf};
	b.text = malloc(MAX_TEXT);
	if (!b.text)
		return -ENOMEM;
	if (elf_linked(elf, add_linked, &b) == -ENOMEM)
		return -ENOMEM;
	if (b.nlinked)
		qsort(b.linked, b.nlinked, sizeof(*b.linked), by_slot);
	err = elf_fdes(elf, add_function, &b);
	for (i = 0; !err && i < g->n; i++)
		err = edges_of(&b, i);
	return err;
}
