/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where in BPF's map `modules` the VMs of each process are that has more than its entry holds. Processes
 * with equal VMs, as forked ones have, share a block.
 */
#ifndef BPF_MODULE_POOL_H
#define BPF_MODULE_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include <unwind/abi.h>

struct module_block {
	uint32_t first, n, users;
	struct lb_module *modules; /* as they are in the map: with their order */
	struct module_block *prev, *next;
};

struct module_pool {
	struct module_block *blocks; /* in order */
};

/*
 * Holds a block with these modules, of which there are n, at most LB_MODULES_MOST. is_new: it has to be
 * written to the map. -ENOSPC: no range is free; -ENOMEM.
 */
int module_pool_hold(struct module_pool *pool, const struct lb_module *modules, uint32_t n,
		     const struct module_block **out, bool *is_new);

/* One more user of the block that begins there. False: there is none. */
bool module_pool_share(struct module_pool *pool, uint32_t first);

/* One user less. The range of a block without users is free. */
void module_pool_drop(struct module_pool *pool, uint32_t first);

void module_pool_free(struct module_pool *pool);

#endif
