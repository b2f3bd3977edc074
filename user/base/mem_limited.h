/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory with a bounded number of reads: for loops whose length a hostile target decides. */
#ifndef BASE_MEM_LIMITED_H
#define BASE_MEM_LIMITED_H

#include <stdint.h>

#include <unwind/mem.h>

struct mem_limited {
	struct lb_mem mem; /* hand &limited.mem to mem_read() */
	const struct lb_mem *under;
	uint32_t remaining; /* reads; 0: all that follow fail with -EFAULT */
};

/* under is borrowed. */
void mem_limited_init(struct mem_limited *limited, const struct lb_mem *under, uint32_t reads);

#endif
