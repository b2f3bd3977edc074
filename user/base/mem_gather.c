// SPDX-License-Identifier: BSD-2-Clause
#include "base/mem_gather.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OBJECT 64 /* bytes of one: a string's head and the text of most names */
#define PAGE 4096
/*
 * Up to so many bytes between two objects are read with them: that is cheaper than another piece.
 * These bytes are on the objects' own pages, so that no unmapped page is read.
 */
#define GAP 1024

static int beyond(const void *addr, const void *piece)
{
	const struct mem_vec *v = piece;
	uint64_t a = *(const uint64_t *)addr;

	return a < v->addr ? -1 : a - v->addr >= v->size;
}

static int gather_read(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr)
{
	const struct mem_gather *g = (const struct mem_gather *)mem;
	const struct mem_vec *v = NULL;

	if (g->npieces)
		v = bsearch(&addr, g->piece, g->npieces, sizeof(*v), beyond);
	if (!v || v->err || v->size - (addr - v->addr) < size)
		return mem_read(g->under, dst, size, addr);
	memcpy(dst, (const uint8_t *)v->dst + (addr - v->addr), size);
	return 0;
}

void mem_gather_init(struct mem_gather *g, const struct lb_mem *under)
{
	*g = (struct mem_gather){
		.mem = {.read = gather_read, .uncached = under->uncached},
		.under = under,
	};
}

void mem_gather_clear(struct mem_gather *g)
{
	free(g->want);
	free(g->piece);
	free(g->bytes);
	*g = (struct mem_gather){.mem = g->mem, .under = g->under};
}

void mem_gather_want_all(struct mem_gather *g, uint64_t addr, uint32_t size)
{
	if (g->nwants == g->cap) {
		size_t cap = g->cap ? 2 * g->cap : 64;
		struct mem_extent *more =
			cap > MEM_GATHER_MAX ? NULL : realloc(g->want, cap * sizeof(*more));

		if (!more)
			return;
		g->want = more;
		g->cap = cap;
	}
	if (!size || addr + size < addr || size > MEM_GATHER_BYTES - g->bytes_wanted)
		return;
	g->want[g->nwants++] = (struct mem_extent){addr, size};
	g->bytes_wanted += size;
}

void mem_gather_want(struct mem_gather *g, uint64_t addr)
{
	uint32_t left = PAGE - addr % PAGE;

	mem_gather_want_all(g, addr, left < OBJECT ? left : OBJECT);
}

static int by_address(const void *a, const void *b)
{
	uint64_t x = ((const struct mem_extent *)a)->addr;
	uint64_t y = ((const struct mem_extent *)b)->addr;

	return (x > y) - (x < y);
}

/* Sorts the wanted extents and merges neighbours into pieces; returns the pieces' bytes. */
static size_t plan(struct mem_gather *g)
{
	struct mem_vec *v = NULL;
	size_t i, bytes = 0;

	if (g->nwants)
		qsort(g->want, g->nwants, sizeof(g->want[0]), by_address);
	for (i = 0; i < g->nwants; i++) {
		uint64_t addr = g->want[i].addr, end = addr + g->want[i].size;

		if (!v || addr - v->addr > v->size + GAP) {
			v = &g->piece[g->npieces++];
			*v = (struct mem_vec){.addr = addr, .err = -EFAULT};
		}
		if (end - v->addr <= v->size) /* inside the piece */
			continue;
		bytes += end - v->addr - v->size;
		v->size = (uint32_t)(end - v->addr);
	}
	g->nwants = 0;
	g->bytes_wanted = 0;
	return bytes;
}

int mem_gather_read(struct mem_gather *g)
{
	size_t bytes, at = 0, i;

	free(g->piece);
	free(g->bytes);
	g->bytes = NULL;
	g->npieces = 0;
	g->piece = calloc(g->nwants + !g->nwants, sizeof(*g->piece));
	if (!g->piece)
		return -ENOMEM;
	bytes = plan(g);
	g->bytes = malloc(bytes + !bytes);
	if (!g->bytes) {
		g->npieces = 0;
		return -ENOMEM;
	}
	for (i = 0; i < g->npieces; i++) {
		g->piece[i].dst = g->bytes + at;
		at += g->piece[i].size;
	}
	mem_readv(g->under, g->piece, g->npieces); /* a piece that failed has its err */
	return 0;
}
