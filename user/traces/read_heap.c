// SPDX-License-Identifier: BSD-2-Clause
/*
 * All functions of a VM. The collector has a list of all objects but strings, the newest first, so
 * the functions that a program loaded first are at its end. Memory is read by pages: objects that
 * were allocated one after the other lie side by side. The target may free an object while the list
 * leads there; what is no object ends the walk, and it starts again, up to TRIES times.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/mem_pages.h"
#include "lua/lj/table.h"
#include "lua/foreign.h"
#include "reader.h"

#define OBJECTS_MOST 10000000
#define TRIES 3

static int add(struct traces_reader *rd, uint64_t proto)
{
	if (array_grow(&rd->heap, rd->nheap, sizeof(*rd->heap)))
		return -ENOMEM;
	rd->heap[rd->nheap++] = proto;
	return 0;
}

/* -EBADMSG: it leads to what is no object; -ELOOP: in a circle (found as Brent's algorithm does). */
static int walk(struct traces_reader *rd, const struct lb_mem *mem)
{
	const struct lj_layout *lj = rd->lj;
	const uint32_t gct = LJ_OFF(lj, PROTO_GCT);
	uint8_t head[16] = {};
	uint64_t at, seen = 0; /* seen: the object at the last power of two */
	uint32_t n;
	int r = lj_reference(rd->lj, rd->mem,
			     rd->g + lj->gc_total + LJ_OFF(lj, GC_ROOT_BEHIND_TOTAL), &at);

	for (n = 0; !r && at && n < OBJECTS_MOST; n++) {
		if (!foreign_plausible(at))
			return -EBADMSG;
		if (at == seen)
			return -ELOOP;
		if (!(n & (n - 1)))
			seen = at;
		r = mem_read(mem, head, gct + 1, at);
		if (!r && (head[gct] < LJ_GCT_STR || head[gct] > LJ_GCT_UDATA))
			r = -EBADMSG;
		if (!r && head[gct] == LJ_GCT_PROTO)
			r = add(rd, at);
		at = lj_is_gc32(lj) ? foreign_half(head, LJ_GC_NEXT)
				    : foreign_word(head, LJ_GC_NEXT);
	}
	return r ? r : at ? -E2BIG : 0;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

int traces_read_heap(struct traces_reader *rd)
{
	int r = -EBADMSG;

	rd->has_heap = false;
	for (int i = 0; i < TRIES && (r == -EBADMSG || r == -EFAULT); i++) {
		struct mem_pages *pages __cleanup(mem_pages_free) = mem_pages_new(rd->mem);

		if (!pages)
			return -ENOMEM;
		free(rd->heap);
		rd->heap = NULL;
		rd->nheap = 0;
		r = walk(rd, &pages->mem);
	}
	if (r == -ENOMEM)
		return r;
	rd->has_heap = !r;
	if (rd->nheap)
		qsort(rd->heap, rd->nheap, sizeof(*rd->heap), compare);
	return 0;
}
