/* SPDX-License-Identifier: BSD-2-Clause */
/* The zone stack of a PUC Lua VM: the table that the module zone returns (lua/zone.lua). */
#ifndef LUA_PUC_ZONE_H
#define LUA_PUC_ZONE_H

#include <stdint.h>

#include <unwind/abi.h>
#include <unwind/mem.h>

/* Contracts: struct sym_family in lua/family.h. */
int puc_zone_find(const struct lb_mem *mem, const struct puc_layout *puc, uint64_t g,
		  const char *module, struct lb_zone *out);
void puc_zone_layout(const struct puc_layout *puc, struct lb_zone_layout *out);

#endif
