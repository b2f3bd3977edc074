/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A target's objects in one piece of memory, allocated front to back, for tests of what reads them
 * one by one: each object is known with its exact size and can be left out, whole or in part. What
 * a walker sees, a process with threads and a C stack, is lj_image.h's and puc_image.h's.
 *
 * Running out of room, and a place beyond it, abort: a test's size is known.
 */
#ifndef LIB_ARENA_H
#define LIB_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem_image.h"

struct puc_layout;

#define ARENA_BASE 0x40000000ULL
#define ARENA_SIZE (256u << 10)
#define ARENA_OBJECTS 1024

struct test_arena {
	const struct puc_layout *puc; /* of PUC Lua's objects (puc_code.h) */
	uint8_t bytes[ARENA_SIZE];
	uint32_t used;
	struct {
		uint64_t addr;
		uint32_t size;
	} objects[ARENA_OBJECTS];
	unsigned n;
	struct mem_image img; /* what arena_mem() gave away */
};

/* Filled with junk. NULL: LuaJIT's objects; filled with zeros, as far as nothing is put there. */
struct test_arena *arena_new(const struct puc_layout *puc);
void arena_free(struct test_arena **a);

uint64_t arena_take(struct test_arena *a, uint32_t size);
uint64_t arena_lj_str(struct test_arena *a, const char *text); /* a GCstr of LuaJIT 2.1 */
void *arena_at(struct test_arena *a, uint64_t addr, size_t size);
void arena_put(struct test_arena *a, uint64_t addr, const void *bytes, size_t n);
void arena_put8(struct test_arena *a, uint64_t addr, uint8_t v);
void arena_put32(struct test_arena *a, uint64_t addr, uint32_t v);
void arena_put64(struct test_arena *a, uint64_t addr, uint64_t v);
uint64_t arena_get64(struct test_arena *a, uint64_t addr);

/* A copy of all that was taken, as it is now. Belongs to a, and lives up to the next one. */
const struct lb_mem *arena_mem(struct test_arena *a);

/*
 * The same, but of one object only the first `part` bytes, and nothing between the objects.
 * ARENA_OBJECTS: all of them.
 */
const struct lb_mem *arena_mem_without(struct test_arena *a, unsigned without, uint32_t part);

/* Memory of which a read fails; junk is all that it leaves then. Not to be copied. */
struct arena_failing {
	struct lb_mem mem; /* hand &mem to mem_read() */
	const struct lb_mem *under;
	unsigned k;
	bool all_later;
	unsigned reads;	  /* so far */
	unsigned *counts; /* these: the memory itself is const to its readers */
};

/* Read k fails, counted from 0; all_later: and all after it. */
void arena_failing_init(struct arena_failing *f, const struct lb_mem *under, unsigned k,
			bool all_later);

#endif
