/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of a PUC Lua target's C functions, read from its loaded libraries: "print", "string.rep",
 * "io.method.read", "cjson.encode".
 */
#ifndef LUA_PUC_CNAMES_H
#define LUA_PUC_CNAMES_H

#include <stdbool.h>
#include <stdint.h>

#include <unwind/puc/layout.h>
#include <unwind/mem.h>

struct puc_cnames;

/*
 * Reads all names at once. Modules loaded later have new functions: read again if a lookup fails,
 * at a bounded rate. g: global_State. Errors: see puc_loaded_walk().
 */
int puc_cnames_read(const struct lb_mem *mem, const struct puc_layout *puc, uint64_t g,
		    struct puc_cnames **out);
void puc_cnames_free(struct puc_cnames **names);
/* True if both name the same functions, each alike. */
bool puc_cnames_same(const struct puc_cnames *a, const struct puc_cnames *b);

/* Returns the name of the lua_CFunction at addr; NULL if it is in no loaded module, or if names is
 * NULL (the VM could not be read). */
const char *puc_cname(const struct puc_cnames *names, uint64_t addr);

#endif
