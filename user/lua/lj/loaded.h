/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Walks a live LuaJIT target's loaded libraries: registry -> _LOADED -> each module's table -> each
 * function in it. All names of things that have no ELF symbol come from here.
 *
 * The target runs while it is read and may be hostile: everything is bounded, cycles are harmless,
 * and what does not look like a table or a function is passed over.
 */
#ifndef LUA_LJ_LOADED_H
#define LUA_LJ_LOADED_H

#include <stdbool.h>
#include <stdint.h>

#include <unwind/lj/layout.h>
#include <unwind/mem.h>

/* A function found under module.field; "print" (module "_G") has an empty module. Strings are
 * borrowed. */
struct lj_loaded {
	const char *module; /* "string", "jit.util", "io.method", "" for globals */
	const char *field;  /* "" when the module itself is the function */
	uint64_t func;	    /* GCfunc */
	uint64_t code;	    /* ffid 0: GCproto; else lua_CFunction */
	uint8_t ffid;	    /* 0 Lua, 1 C, above: fast function */
};

/* A nonzero return ends the walk and is returned. */
typedef int (*lj_loaded_fn)(void *arg, const struct lj_loaded *found);

/*
 * g: global_State. Returns 0, fn's value, or -errno when the registry or _LOADED cannot be read
 * (-ENOENT: the host opened no libraries).
 */
int lj_loaded_walk(const struct lb_mem *mem, const struct lj_layout *layout, uint64_t g,
		   lj_loaded_fn fn, void *arg);

/*
 * Calls fn for the Lua functions that the registry holds under a string, then for those that are
 * globals: module is "". At most MODULES_MAX_KEPT values are looked at. Returns as lj_loaded_walk().
 */
int lj_loaded_kept(const struct lb_mem *mem, const struct lj_layout *layout, uint64_t g,
		   lj_loaded_fn fn, void *arg);

/*
 * Finds the table package.loaded[module]. Returns 0, -ENOENT: there is no such module, or it is no
 * table, or -errno when the registry or _LOADED cannot be read.
 */
int lj_loaded_module(const struct lb_mem *mem, const struct lj_layout *layout, uint64_t g,
		     const char *module, uint64_t *table);

/* True if the table has a function in this field. */
bool lj_loaded_has_function(const struct lb_mem *mem, const struct lj_layout *layout,
			    uint64_t table, const char *field);

#endif
