/* SPDX-License-Identifier: BSD-2-Clause */
/* The name by which a function is called. */
#ifndef AGENT_NAME_H
#define AGENT_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include <lua.h>

/*
 * LuaJIT's builtins that no table holds. One builtin is the function of all its closures, so that the
 * name of one call site would stand for the others.
 */
#define NAME_BUILTINS 2

/* Pushes builtin i. False: it is not to be had, and nothing is pushed. */
bool name_push_builtin(lua_State *L, int i);

/* keys[i] identifies builtin i; 0: it is not there. Returns the name, or NULL if no builtin has `key`. */
const char *name_of_builtin(const uint64_t *keys, uint64_t key);

/*
 * Returns the name that the call site has for the function on top of the stack, which runs in the
 * frame `ar`; NULL: none. LuaJIT takes it from the caller's call instruction, which may have called
 * another function, whose tail call has begun this one: there it is returned only if the caller's
 * variable or field of that name holds this function, or its value's metatable does as __call.
 */
const char *name_of_call(lua_State *L, lua_Debug *ar, bool luajit);

#endif
