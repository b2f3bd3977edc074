/* SPDX-License-Identifier: BSD-2-Clause */
/* The name of a C function in package.loaded. */
#ifndef AGENT_LOADED_H
#define AGENT_LOADED_H

#include <stdbool.h>
#include <stddef.h>

#include <lua.h>

/*
 * Sets `name` to that of the C function on top of the stack, cut to size: "string.format", without a
 * prefix in _G. The standard libraries come first, as programs have other names for their functions
 * ("local M = {insert = table.insert}"). False: no loaded module has it.
 */
bool name_in_loaded(lua_State *L, char *name, size_t size);

#endif
