// SPDX-License-Identifier: BSD-2-Clause
#include "base/mem_gather.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OBJECT 64 /* bytes of one: a string's head and the text of most names */
#define PAGE 4096
/*
 * To read what lies between two objects is cheaper than another piece up to here, and it lies on
 * their pages: nothing is read that may not be there.
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
	const struct mem_vec *v = bsearch(&addr, g->piece, g->npieces, sizeof(*v), beyond);

	if (!v || v->err || v->size - (addr - v->addr) < size)
		return mem_read(g->under, dst, size, addr);
	memcpy(dst, (const uint8_t *)v->dst + (addr - v->addr), size);
	return 0;
}

void mem_gather_init(struct mem_gather *g, const struct lb_mem *under)
{
	g->mem = (struct lb_mem){.read = gather_read, .uncached = under->uncached};
	g->under = under;
	g->nwants = g->npieces = 0;
	g->bytes = NULL;
}

void mem_gather_clear(struct mem_gather *g)
{
	free(g->bytes);
	mem_gather_init(g, g->under);
}

void mem_gather_want(struct mem_gather *g, uint64_t addr)
{
	if (g->nwants < MEM_GATHER_MAX)
		g->want[g->nwants++] = addr;
}

static int by_address(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Makes pieces of what is wanted; returns how many bytes they have. */
static size_t plan(struct mem_gather *g)
{
	struct mem_vec *v = NULL;
	size_t i, bytes = 0;

	g->npieces = 0;
	qsort(g->want, g->nwants, sizeof(g->want[0]), by_address);
	for (i = 0; i < g->nwants; i++) {
		uint64_t addr = g->want[i], left = PAGE - addr % PAGE;
		uint64_t end = addr + (left < OBJECT ? left : OBJECT);

		if (end < addr)
			break;
		if (!v || addr - v->addr > v->size + GAP) {
			v = &g->piece[g->npieces++];
			*v = (struct mem_vec){.addr = addr, .err = -EFAULT};
		}
		bytes += end - v->addr - v->size;
		v->size = (uint32_t)(end - v->addr);
	}
	g->nwants = 0;
	return bytes;
}

int mem_gather_read(struct mem_gather *g)
{
	size_t bytes = plan(g), at = 0, i;

	free(g->bytes);
	g->bytes = malloc(bytes + !bytes);
	if (!g->bytes) {
		g->npieces = 0;
		return -ENOMEM;
	}
	for (i = 0; i < g->npieces; i++) {
		g->piece[i].dst = g->bytes + at;
		at += g->piece[i].size;
	}
	mem_readv(g->under, g->piece, g->npieces); /* what could not be read says so in its err */
	return 0;
}
