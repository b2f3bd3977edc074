// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <string.h>

#include "loaded.h"

/* True if both are one C function. A library may have several closures of it: pairs() of 5.1 has its own next(). */
static bool is_same_c(lua_State *L, int a, int b)
{
	return lua_rawequal(L, a, b) ||
	       (lua_tocfunction(L, a) && lua_tocfunction(L, a) == lua_tocfunction(L, b));
}

/* True of the second names that 5.1 has for gmatch and fmod, from 5.0. */
static bool is_old_name(const char *module, const char *name)
{
	return (!strcmp(module, "string") && !strcmp(name, "gfind")) ||
	       (!strcmp(module, "math") && !strcmp(name, "mod"));
}

/*
 * Searches the function at stack index `fn` among the fields of a loaded module, the table on top of
 * the stack. Sets `name` to "string.format"; functions of _G have no prefix. Pops the table.
 */
static bool find_in_module(lua_State *L, int fn, const char *module, char *name, size_t size)
{
	int table = lua_gettop(L);
	bool found = false;

	if (lua_istable(L, table)) {
		for (lua_pushnil(L); !found && lua_next(L, table); lua_pop(L, 1)) {
			const char *field =
				lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;

			found = field && is_same_c(L, -1, fn) && !is_old_name(module, field);
			if (found && strcmp(module, "_G"))
				snprintf(name, size, "%s.%s", module, field);
			else if (found)
				snprintf(name, size, "%s", field);
		}
	}
	lua_settop(L, table - 1);
	return found;
}

bool name_in_loaded(lua_State *L, char *name, size_t size)
{
	static const char *const standard[] = {"string",    "table", "math",	"io",	"os",
					       "coroutine", "debug", "package", "utf8", "bit32",
					       "bit",	    "jit",   "ffi",	"_G"};
	int fn = lua_gettop(L);
	bool found = false;
	size_t i;

	lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
	if (lua_istable(L, -1)) {
		for (i = 0; !found && i < sizeof(standard) / sizeof(standard[0]); i++) {
			lua_getfield(L, fn + 1, standard[i]);
			found = find_in_module(L, fn, standard[i], name, size);
		}
		for (lua_pushnil(L); !found && lua_next(L, fn + 1);) {
			const char *module =
				lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : NULL;

			if (module)
				found = find_in_module(L, fn, module, name, size);
			else
				lua_pop(L, 1);
		}
	}
	lua_settop(L, fn);
	return found;
}
