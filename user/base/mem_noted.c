// SPDX-License-Identifier: BSD-2-Clause
#include "base/mem_noted.h"

#include <stdlib.h>

#include "array.h"

/* Out of memory, the extent is not logged: its repetition is a single read. */
static void note(const struct lb_mem *mem, uint64_t addr, uint32_t size)
{
	struct mem_noted *noted = (struct mem_noted *)(uintptr_t)mem;

	if (array_grow(&noted->extent, noted->n, sizeof(*noted->extent)))
		return;
	noted->extent[noted->n++] = (struct mem_extent){addr, size};
}

static int noted_read(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr)
{
	int err = mem_read(((const struct mem_noted *)mem)->under, dst, size, addr);

	if (!err)
		note(mem, addr, size);
	return err;
}

static long noted_readv(const struct lb_mem *mem, struct mem_vec *vec, unsigned long n)
{
	long whole = mem_readv(((const struct mem_noted *)mem)->under, vec, n);
	unsigned long i;

	for (i = 0; whole > 0 && i < n; i++)
		if (!vec[i].err)
			note(mem, vec[i].addr, vec[i].size);
	return whole;
}

void mem_noted_init(struct mem_noted *noted, const struct lb_mem *under)
{
	*noted = (struct mem_noted){
		.mem = {.read = noted_read, .readv = noted_readv, .uncached = under->uncached},
		.under = under,
	};
}

void mem_noted_clear(struct mem_noted *noted)
{
	free(noted->extent);
	*noted = (struct mem_noted){.mem = noted->mem, .under = noted->under};
}
