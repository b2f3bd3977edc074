// SPDX-License-Identifier: BSD-2-Clause
/*
 * usage: embed-5.x call|resume SCRIPT [ARG...]
 *
 * A program that has PUC Lua as a shared library and runs one script from main(): by an unprotected
 * call, or as a coroutine that C resumes until it ends.
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <string.h>

#include "../host.h"

static int run_as_coroutine(lua_State *L)
{
	lua_State *co = lua_newthread(L);
	int r;

	lua_insert(L, 1);
	lua_xmove(L, co, 1);
	do
		r = host_resume(co, L, 0);
	while (r == LUA_YIELD);
	if (r)
		fprintf(stderr, "embed: %s\n", lua_tostring(co, -1));
	return r;
}

int main(int argc, char **argv)
{
	lua_State *L = luaL_newstate();
	int i, r = 0;

	if (argc < 3 || !L)
		return 2;
	luaL_openlibs(L);
	lua_newtable(L);
	for (i = 2; i < argc; i++) {
		lua_pushstring(L, argv[i]);
		lua_rawseti(L, -2, i - 2);
	}
	lua_setglobal(L, "arg");
	if (luaL_loadfile(L, argv[2])) {
		fprintf(stderr, "embed: %s\n", lua_tostring(L, -1));
		return 1;
	}
	if (!strcmp(argv[1], "resume"))
		r = run_as_coroutine(L);
	else
		lua_call(L, 0, 0);
	lua_close(L);
	return r;
}
