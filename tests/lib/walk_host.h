/* SPDX-License-Identifier: BSD-2-Clause */
/* The walkers in user space, as the sampler runs them in the kernel; and memory that fails. */
#ifndef LIB_WALK_HOST_H
#define LIB_WALK_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include <unwind/lj/selftest.h>
#include <unwind/puc/selftest.h>

struct puc_walk;

/* Takes the sample over mem into *walk. Returns the steps made (of two walks at most). */
uint32_t walk_host(const struct lb_mem *mem, const struct lb_selftest *in, struct lj_walk *walk);

uint32_t walk_host_puc(const struct lb_mem *mem, const struct puc_selftest *in,
		       struct puc_walk *walk);

/* The same, with what the walk knows of the samples before. */
uint32_t walk_host_next(const struct lb_mem *mem, const struct lb_selftest *in,
			struct lj_walk *walk);
uint32_t walk_host_puc_next(const struct lb_mem *mem, const struct puc_selftest *in,
			    struct puc_walk *walk);

enum fail_mode {
	FAIL_NEVER,
	FAIL_ONCE,  /* the nth read fails */
	FAIL_AFTER, /* and all after it */
	FAIL_THERE, /* and all that touch its first byte's 64 */
};

struct mem_failing {
	struct lb_mem mem; /* hand &mem to mem_read() */
	const struct lb_mem *under;
	enum fail_mode mode;
	uint32_t nth;	 /* counts from 0 */
	uint32_t *reads; /* counts them; borrowed */
	uint64_t *where; /* of the nth; borrowed */
};

void mem_failing_init(struct mem_failing *f, const struct lb_mem *under, enum fail_mode mode,
		      bool uncached, uint32_t nth, uint32_t *reads, uint64_t *where);

/* Counts what is read, and in vain: in the kernel that costs a page fault. */
struct mem_counting {
	struct lb_mem mem; /* hand &mem to mem_read() */
	const struct lb_mem *under;
	uint32_t *reads, *failed; /* borrowed; set to 0 */
};

void mem_counting_init(struct mem_counting *c, const struct lb_mem *under, uint32_t *reads,
		       uint32_t *failed);

#endif
