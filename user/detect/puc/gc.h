/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the text of PUC Lua's collector (lgc.c) in a file without symbols of it: see gc.c. */
#ifndef DETECT_PUC_GC_H
#define DETECT_PUC_GC_H

#include <stdint.h>

#include "detect/call_graph.h"

/* Text [lo, hi) without [skip_lo, skip_hi); 0, 0: nothing is skipped. */
struct elf_puc_gc {
	uint64_t lo, hi;
	uint64_t skip_lo, skip_hi;
};

/*
 * Finds the functions that mark, sweep, free and step; not those that allocate (luaC_newobj), nor
 * those of other files that the collector calls. Needs the calls of the text around luaV_execute
 * and the address of lua_gc. -ENOENT: not found.
 */
int elf_puc_collector(const struct call_graph *calls, uint64_t lua_gc, struct elf_puc_gc *gc);

/*
 * The same for a file without a symbol of lua_gc, or with a collector that is not contiguous, by
 * the addresses of luaV_execute and the base library's collectgarbage. The result may be only two
 * pieces of the collector; each collection runs below one of them. -ENOENT: not found.
 */
int elf_puc_collector_by(const struct call_graph *calls, uint64_t collectgarbage, uint64_t vm,
			 struct elf_puc_gc *gc);

#endif
