/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Walks a live PUC Lua target's loaded libraries: registry -> _LOADED -> each module's table ->
 * each function in it; and the registry's metatables, where libraries keep the methods of their
 * userdata.
 *
 * The target runs while it is read and may be hostile: all loops are bounded, each table is visited
 * once, and values that are no table or function are skipped.
 */
#ifndef LUA_PUC_LOADED_H
#define LUA_PUC_LOADED_H

#include <stdbool.h>
#include <stdint.h>

#include <unwind/puc/layout.h>
#include <unwind/mem.h>

/* A C function found under module.field; "print" (module "_G") has an empty module. Strings are
 * borrowed. */
struct puc_loaded {
	const char *module; /* "string", "socket.core", "io.method", "" for globals */
	const char *field;  /* "" if the module itself is the function */
	uint64_t f;	    /* lua_CFunction */
};

/* A nonzero return ends the walk and is returned. */
typedef int (*puc_loaded_fn)(void *arg, const struct puc_loaded *found);

/*
 * g: global_State. Returns 0, fn's value, or -errno if the registry or _LOADED cannot be read
 * (-ENOENT: the host opened no libraries).
 */
int puc_loaded_walk(const struct lb_mem *mem, const struct puc_layout *puc, uint64_t g,
		    puc_loaded_fn fn, void *arg);

/*
 * Calls fn for the Lua functions that the registry holds under a string, then for those that are
 * globals: module is "", f the Proto. At most MODULES_MAX_KEPT values are looked at. Returns as
 * puc_loaded_walk().
 */
int puc_loaded_kept(const struct lb_mem *mem, const struct puc_layout *puc, uint64_t g,
		    puc_loaded_fn fn, void *arg);

/*
 * Finds the table package.loaded[module]. Returns 0, -ENOENT: there is no such module, or it is no
 * table, or -errno if the registry or _LOADED cannot be read.
 */
int puc_loaded_module(const struct lb_mem *mem, const struct puc_layout *puc, uint64_t g,
		      const char *module, uint64_t *table);

/* True if the table has a function in this field. */
bool puc_loaded_has_function(const struct lb_mem *mem, const struct puc_layout *puc, uint64_t table,
			     const char *field);

#endif
