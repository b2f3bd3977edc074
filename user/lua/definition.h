/* SPDX-License-Identifier: BSD-2-Clause */
/* The callback of lj_proto_definitions() and puc_proto_definitions(). */
#ifndef LUA_DEFINITION_H
#define LUA_DEFINITION_H

#include <stdint.h>

/* Reports a child prototype whose closure its parent stores under a name: "f" (local, upvalue,
 * global; field of a table without a name), "M.f" (field of a table with a name, also a method:
 * bytecode does not distinguish them). A nonzero return ends the search and is returned. */
typedef int (*sym_definition_fn)(void *arg, uint64_t child, const char *name);

#endif
