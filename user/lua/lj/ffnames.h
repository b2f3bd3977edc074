/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of a LuaJIT target's built-in and C functions, read from its loaded libraries.
 *
 * Fast functions are numbered (ffid), differently in each build. The names are those of the build's
 * own jit/vmdef.lua: "assert", "string.rep", "io.method.read", "string.gmatch_aux".
 */
#ifndef LUA_LJ_FFNAMES_H
#define LUA_LJ_FFNAMES_H

#include <stdbool.h>
#include <stdint.h>

#include <unwind/lj/layout.h>
#include <unwind/mem.h>

struct lj_ffnames;

/* Reads all names at once. A module that is loaded later adds functions: read again after a failed
 * lookup, at a limited rate. Errors: see lj_loaded_walk(). */
int lj_ffnames_read(const struct lb_mem *mem, const struct lj_layout *layout, uint64_t g,
		    struct lj_ffnames **out);
void lj_ffnames_free(struct lj_ffnames **names);
/* True if both name the same functions, each alike. */
bool lj_ffnames_same(const struct lj_ffnames *a, const struct lj_ffnames *b);

/* Returns the name of a fast function. NULL: not known, as for names NULL (a VM that could not be
 * read), and for 0 and 1, which are no fast functions. */
const char *lj_ffname(const struct lj_ffnames *names, uint8_t ffid);

/* Returns the name of the lua_CFunction at addr ("cjson.encode"). NULL: it is in no loaded module,
 * or names is NULL. */
const char *lj_cfunc_name(const struct lj_ffnames *names, uint64_t addr);

#endif
