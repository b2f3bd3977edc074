// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <unwind/puc/selftest_sample.h>
#include <unwind/lj/selftest_sample.h>

#include "walk_host.h"

/*
 * The contract's loop has room for the memory and the walk only, and the walk is too large to be
 * copied into a struct with a counter: the steps are counted beside the memory.
 */
struct counting_steps {
	struct lb_mem mem;
	const struct lb_mem *under;
	uint32_t *steps;
};

static int steps_read(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr)
{
	return mem_read(((const struct counting_steps *)mem)->under, dst, size, addr);
}

static struct counting_steps counting_steps(const struct lb_mem *under, uint32_t *steps)
{
	return (struct counting_steps){.mem.read = steps_read,
				       .mem.uncached = under->uncached,
				       .under = under,
				       .steps = steps};
}

static void lb_selftest_run(const struct lb_mem *mem, struct lj_walk *w)
{
	const struct counting_steps *c = (const struct counting_steps *)mem;
	int i;

	for (i = 0; i < LB_MAX_STEPS; i++) {
		++*c->steps;
		if (lj_step(c->under, w) != LB_MORE)
			return;
	}
}

uint32_t walk_host_next(const struct lb_mem *mem, const struct lb_selftest *in,
			struct lj_walk *walk)
{
	uint32_t steps = 0;
	struct counting_steps c = counting_steps(mem, &steps);

	lb_selftest_sample(&c.mem, walk, in);
	return steps;
}

uint32_t walk_host(const struct lb_mem *mem, const struct lb_selftest *in, struct lj_walk *walk)
{
	memset(walk, 0, offsetof(struct lj_walk, cache.page)); /* no page is valid */
	return walk_host_next(mem, in, walk);
}

static void puc_selftest_run(const struct lb_mem *mem, struct puc_walk *w)
{
	const struct counting_steps *c = (const struct counting_steps *)mem;
	int i;

	for (i = 0; i < LB_MAX_STEPS; i++) {
		++*c->steps;
		if (puc_step(c->under, w) != LB_MORE)
			return;
	}
}

uint32_t walk_host_puc_next(const struct lb_mem *mem, const struct puc_selftest *in,
			    struct puc_walk *walk)
{
	uint32_t steps = 0;
	struct counting_steps c = counting_steps(mem, &steps);

	puc_selftest_sample(&c.mem, walk, in);
	return steps;
}

uint32_t walk_host_puc(const struct lb_mem *mem, const struct puc_selftest *in,
		       struct puc_walk *walk)
{
	memset(walk, 0, offsetof(struct puc_walk, cache.page));
	return walk_host_puc_next(mem, in, walk);
}

static bool touches(uint64_t addr, uint32_t size, uint64_t hole, uint64_t len)
{
	return addr < hole + len && hole < addr + size;
}

static int failing_read(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr)
{
	const struct mem_failing *f = (const struct mem_failing *)mem;
	uint32_t n;

	n = (*f->reads)++;
	if (n == f->nth)
		*f->where = addr;
	if ((f->mode == FAIL_ONCE && n == f->nth) || (f->mode == FAIL_AFTER && n >= f->nth) ||
	    (f->mode == FAIL_THERE && n >= f->nth && touches(addr, size, *f->where & ~63ULL, 64)))
		return -EFAULT;
	return mem_read(f->under, dst, size, addr);
}

void mem_failing_init(struct mem_failing *f, const struct lb_mem *under, enum fail_mode mode,
		      bool uncached, uint32_t nth, uint32_t *reads, uint64_t *where)
{
	*f = (struct mem_failing){.mem.read = failing_read,
				  .mem.uncached = uncached,
				  .under = under,
				  .mode = mode,
				  .nth = nth,
				  .reads = reads,
				  .where = where};
	*reads = 0;
	*where = 0;
}

static int counting_read(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr)
{
	const struct mem_counting *c = (const struct mem_counting *)mem;
	int r = mem_read(c->under, dst, size, addr);

	++*c->reads;
	*c->failed += r != 0;
	return r;
}

void mem_counting_init(struct mem_counting *c, const struct lb_mem *under, uint32_t *reads,
		       uint32_t *failed)
{
	*c = (struct mem_counting){
		.mem.read = counting_read, .under = under, .reads = reads, .failed = failed};
	*reads = 0;
	*failed = 0;
}
