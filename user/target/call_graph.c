// SPDX-License-Identifier: BSD-2-Clause
#include "target/call_graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "target/x86_insn.h"

#define MAX_FUNCTIONS 8192
#define MAX_EDGES (256u << 10)
#define MAX_TEXT (128u << 10) /* of one function */

struct build {
	struct call_graph *g;
	uint64_t near, window;
	uint8_t *text;
};

static void build_free(struct build *b)
{
	free(b->text);
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
	struct call_function *f = &g->fn[g->n];

	if (fde->start + b->window < b->near || fde->start > b->near + b->window || !fde->size ||
	    fde->size > MAX_TEXT || g->n == MAX_FUNCTIONS)
		return 0;
	if (g->n && fde->start < f[-1].start + f[-1].size)
		return 0; /* out of order, or one inside the other */
	*f = (struct call_function){.start = fde->start, .size = fde->size};
	g->n++;
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
	if (g->nedges == g->capacity) {
		uint32_t capacity = g->capacity ? 2 * g->capacity : 4096;
		struct call_edge *grown = reallocarray(g->edge, capacity, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		g->edge = grown;
		g->capacity = capacity;
	}
	g->edge[g->nedges++] = (struct call_edge){from, to, kind};
	return 0;
}

static int edges_of(struct build *b, uint32_t from)
{
	struct call_function *f = &b->g->fn[from];
	size_t at = 0;
	int err = 0;

	if (elf_read(b->g->elf, f->start, b->text, f->size))
		return 0;
	while (!err && at < f->size) {
		struct x86_insn in;
		uint64_t next;

		if (!x86_decode(b->text + at, f->size - at, &in)) {
			at++;
			continue;
		}
		at += in.len;
		next = f->start + at;
		if (!in.map && in.op == 0xff && (in.reg & 6) == 2)
			f->indirect = true;
		if (!in.map && in.op == 0xe8)
			err = add_edge(b, from, next + (uint64_t)in.imm, CALL_CALL);
		else if (x86_is_jmp_rel(&in) || x86_is_jcc_rel(&in))
			err = add_edge(b, from, next + (uint64_t)in.imm, CALL_JUMP);
		else if (!in.map && in.op == 0x8d && in.base == X86_RIP)
			err = add_edge(b, from, next + (uint64_t)(int64_t)in.disp, CALL_REFERENCE);
		else if (!in.map && ((in.op >= 0xb8 && in.op <= 0xbf) || in.op == 0xc7))
			err = add_edge(b, from, (uint64_t)in.imm, CALL_REFERENCE);
	}
	return err;
}

int call_graph_build(struct elf_file *elf, uint64_t near, uint64_t window, struct call_graph *g)
{
	struct build b __cleanup(build_free) = {.g = g, .near = near, .window = window};
	uint32_t i;
	int err;

	*g = (struct call_graph){.elf = elf, .fn = calloc(MAX_FUNCTIONS, sizeof(*g->fn))};
	b.text = malloc(MAX_TEXT);
	if (!g->fn || !b.text)
		return -ENOMEM;
	err = elf_fdes(elf, add_function, &b);
	for (i = 0; !err && i < g->n; i++)
		err = edges_of(&b, i);
	return err;
}
