// SPDX-License-Identifier: BSD-2-Clause
/*
 * usage: embed -joff|-jon SCRIPT [ARG...]
 *
 * A program that embeds LuaJIT as a shared library: runs one script, called from main() directly.
 */
#include <lauxlib.h>
#include <lua.h>
#include <luajit.h>
#include <lualib.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	lua_State *L = luaL_newstate();
	int i, r;

	if (argc < 3 || !L)
		return 2;
	luaL_openlibs(L);
	luaJIT_setmode(L, 0,
		       LUAJIT_MODE_ENGINE |
			       (strcmp(argv[1], "-joff") ? LUAJIT_MODE_ON : LUAJIT_MODE_OFF));
	lua_newtable(L);
	for (i = 2; i < argc; i++) {
		lua_pushstring(L, argv[i]);
		lua_rawseti(L, -2, i - 2);
	}
	lua_setglobal(L, "arg");
	r = luaL_loadfile(L, argv[2]) || lua_pcall(L, 0, 0, 0);
	if (r)
		fprintf(stderr, "embed: %s\n", lua_tostring(L, -1));
	lua_close(L);
	return r;
}
