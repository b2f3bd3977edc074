/* SPDX-License-Identifier: BSD-2-Clause */
/* What lj_proto_definitions() and puc_proto_definitions() tell. */
#ifndef LUA_DEFINITION_H
#define LUA_DEFINITION_H

#include <stdint.h>

/*
 * A child prototype whose closure its parent stores under a name: "f" (local, upvalue, global),
 * "M.f" (field of a table with a name; a method, too: bytecode does not tell them apart), "f"
 * (field of a table without one). A nonzero return ends it and is returned.
 */
typedef int (*sym_definition_fn)(void *arg, uint64_t child, const char *name);

#endif
