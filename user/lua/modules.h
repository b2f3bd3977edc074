/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The work list of a target's loaded libraries: modules, then the tables in them. Breadth-first
 * search, so that the shortest name is found first; each table once. Both families' walks
 * (lua/lj/loaded.c, lua/puc/loaded.c) keep to these bounds: the target may be hostile.
 */
#ifndef LUA_MODULES_H
#define LUA_MODULES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"

#define MODULES_MAX_VISITS 400000 /* nodes, in the whole walk */
#define MODULES_MAX_KEPT 40000	  /* nodes of the registry and of the globals */
#define MODULES_MAX_INNER 256	  /* tables in a module's table: one with more holds data */
#define MODULES_MAX_NAME 128

struct module {
	uint64_t ref; /* the table */
	unsigned depth;
	bool methods; /* a userdata's methods: the family's walk handles these */
	char name[MODULES_MAX_NAME];
	UT_hash_handle hh; /* in order of discovery: the list grows at its end */
};

/* Adds a table, once. Skips tables that are too deep or too many. Returns 0 or -ENOMEM. */
int modules_add(struct module **modules, uint64_t ref, unsigned depth, bool methods,
		const char *name);
void modules_free(struct module **modules);

/* Writes "a.b", or the one that is not empty. False: it is too long. */
bool module_join(char name[MODULES_MAX_NAME], const char *module, const char *field);

#endif
