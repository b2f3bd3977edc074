/* SPDX-License-Identifier: BSD-2-Clause */
/* A function as luabpf gets it: bytes of the state's file (share.h). {0, 0}: there was no room. */
#ifndef AGENT_DESCRIBE_H
#define AGENT_DESCRIBE_H

#include <stdbool.h>

#include <lua.h>

#include "map.h"
#include "share.h"

uint64_t describe_hash_bytes(const void *data, size_t len);

/*
 * A hash of the Lua function on top of the stack, as lua_dump() writes it; not 0. finalizers is set if it, or one that
 * it holds, has the constant "__gc", or LuaJIT's "gc", which may be ffi.gc().
 */
uint64_t describe_hash(lua_State *L, bool luajit, bool *finalizers);

/* The Lua function on top of the stack, precompiled: luabpf finds in it which lines can run. */
struct hook_bytes describe_dump(struct share *share, lua_State *L);

/* The name of a source. `known` has those that were written: there is one copy of each. */
struct hook_bytes describe_source(struct share *share, struct map *known, const char *source);

/* A source's file as it is now: "SIZE MTIME_NS PATH". */
struct hook_bytes describe_file(struct share *share, struct map *known, const char *source);

#endif
