// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unwind/lj/layout.h>

#include "arena.h"

struct test_arena *arena_new(const struct puc_layout *puc)
{
	struct test_arena *a = malloc(sizeof(*a));

	if (!a)
		abort();
	a->puc = puc;
	memset(a->bytes, puc ? 0xa5 : 0, sizeof(a->bytes));
	a->used = 0;
	a->n = 0;
	mem_image_init(&a->img);
	return a;
}

void arena_free(struct test_arena **a)
{
	if (!*a)
		return;
	mem_image_clear(&(*a)->img);
	free(*a);
	*a = NULL;
}

uint64_t arena_take(struct test_arena *a, uint32_t size)
{
	uint64_t addr = ARENA_BASE + a->used;
	uint32_t padded = (size + 15) & ~15u;

	if (a->n == ARENA_OBJECTS || padded < size || padded > ARENA_SIZE - a->used) {
		fprintf(stderr, "arena: it is full\n");
		abort();
	}
	a->objects[a->n].addr = addr;
	a->objects[a->n++].size = size;
	a->used += padded;
	return addr;
}

void *arena_at(struct test_arena *a, uint64_t addr, size_t size)
{
	if (addr - ARENA_BASE > ARENA_SIZE || size > ARENA_SIZE - (addr - ARENA_BASE)) {
		fprintf(stderr, "arena: %#llx is not in it\n", (unsigned long long)addr);
		abort();
	}
	return a->bytes + (addr - ARENA_BASE);
}

void arena_put(struct test_arena *a, uint64_t addr, const void *bytes, size_t n)
{
	memcpy(arena_at(a, addr, n), bytes, n);
}

void arena_put8(struct test_arena *a, uint64_t addr, uint8_t v)
{
	arena_put(a, addr, &v, 1);
}

void arena_put32(struct test_arena *a, uint64_t addr, uint32_t v)
{
	arena_put(a, addr, &v, 4);
}

void arena_put64(struct test_arena *a, uint64_t addr, uint64_t v)
{
	arena_put(a, addr, &v, 8);
}

uint64_t arena_get64(struct test_arena *a, uint64_t addr)
{
	uint64_t v;

	memcpy(&v, arena_at(a, addr, 8), 8);
	return v;
}

static void add(struct test_arena *a, uint64_t addr, uint32_t size)
{
	if (mem_image_add(&a->img, addr, arena_at(a, addr, size), size))
		abort();
}

const struct lb_mem *arena_mem(struct test_arena *a)
{
	mem_image_clear(&a->img);
	add(a, ARENA_BASE, a->used);
	return &a->img.mem;
}

const struct lb_mem *arena_mem_without(struct test_arena *a, unsigned without, uint32_t part)
{
	unsigned i;

	mem_image_clear(&a->img);
	for (i = 0; i < a->n; i++) {
		uint32_t size = i == without ? part : a->objects[i].size;

		if (size)
			add(a, a->objects[i].addr, size);
	}
	return &a->img.mem;
}

static int failing_read(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr)
{
	const struct arena_failing *f = (const struct arena_failing *)mem;
	unsigned n = (*f->counts)++;

	memset(dst, 0xa5, size);
	if (n == f->k || (f->all_later && n > f->k))
		return -EFAULT;
	return mem_read(f->under, dst, size, addr);
}

void arena_failing_init(struct arena_failing *f, const struct lb_mem *under, unsigned k,
			bool all_later)
{
	*f = (struct arena_failing){.mem.read = failing_read,
				    .under = under,
				    .k = k,
				    .all_later = all_later,
				    .counts = &f->reads};
}

uint64_t arena_lj_str(struct test_arena *a, const char *text)
{
	uint32_t len = (uint32_t)strlen(text);
	uint64_t s = arena_take(a, LJ_STR_SIZE + len + 1);

	arena_put8(a, s + LJ_STR_GCT, LJ_GCT_STR);
	arena_put32(a, s + LJ_STR_HASH, len * 7 + (uint8_t)text[0]);
	arena_put32(a, s + LJ_STR_LEN, len);
	arena_put(a, s + LJ_STR_SIZE, text, len + 1);
	return s;
}
