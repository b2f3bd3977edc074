/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of a PUC Lua target's C functions, read from its loaded libraries: "print", "string.rep",
 * "io.method.read", "cjson.encode".
 */
#ifndef LUA_PUC_CNAMES_H
#define LUA_PUC_CNAMES_H

#include <stdint.h>

#include <unwind/puc/layout.h>
#include <unwind/mem.h>

struct puc_cnames;

/*
 * Reads all names at once. A module that is loaded later brings new functions: read again when a
 * lookup fails (but not too often). g: global_State. Errors: see puc_loaded_walk().
 */
int puc_cnames_read(const struct lb_mem *mem, const struct puc_layout *puc, uint64_t g,
		    struct puc_cnames **out);
void puc_cnames_free(struct puc_cnames **names);

/* Name of the lua_CFunction at addr; NULL when it is in no loaded module, or names is NULL (a VM
 * that could not be read). */
const char *puc_cname(const struct puc_cnames *names, uint64_t addr);

#endif
