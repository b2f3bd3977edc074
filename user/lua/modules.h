/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of a target's loaded libraries that are to be looked at: modules, then the tables in
 * them. Breadth first, so that what is reachable in two ways gets its shorter name; each once. Both
 * families' walks (lua/lj/loaded.c, lua/puc/loaded.c) keep to these bounds: the target may be hostile.
 */
#ifndef LUA_MODULES_H
#define LUA_MODULES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"

#define MODULES_MAX_VISITS 400000 /* of nodes, in the whole walk */
#define MODULES_MAX_INNER 256	  /* tables in a module's table: one that has more holds data */
#define MODULES_MAX_NAME 128

struct module {
	uint64_t ref; /* the table */
	unsigned depth;
	bool methods; /* of a userdata: the family's walk knows what that means */
	char name[MODULES_MAX_NAME];
	UT_hash_handle hh; /* in the order in which they were found: the list grows at its end */
};

/*
 * Adds a table, once. What lies too deep, or is one too many, is passed over. Returns 0 or -ENOMEM.
 */
int modules_add(struct module **modules, uint64_t ref, unsigned depth, bool methods,
		const char *name);
void modules_free(struct module **modules);

/* "a.b", or what is not empty of the two; false when it is too long. */
bool module_join(char name[MODULES_MAX_NAME], const char *module, const char *field);

#endif
