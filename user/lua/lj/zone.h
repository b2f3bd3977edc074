/* SPDX-License-Identifier: BSD-2-Clause */
/* The zone stack of a LuaJIT VM: the table that the module jit.zone returns. */
#ifndef LUA_LJ_ZONE_H
#define LUA_LJ_ZONE_H

#include <stdint.h>

#include <unwind/abi.h>
#include <unwind/mem.h>

/* Contracts: struct sym_family in lua/family.h. */
int lj_zone_find(const struct lb_mem *mem, const struct lj_layout *layout, uint64_t g,
		 const char *module, struct lb_zone *out);
void lj_zone_layout(const struct lj_layout *layout, struct lb_zone_layout *out);

#endif
