// SPDX-License-Identifier: BSD-2-Clause
/*
 * usage: frames SCRIPT [ARG...]
 *
 * Gives a script call(f, size) and resume(f, size): C functions with a buffer of so many bytes on
 * the C stack, which call f by lua_call(), or resume it in a thread of its own.
 */
#include <alloca.h>
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <string.h>

static char *buffer(lua_State *L, char *bytes, size_t size)
{
	memset(bytes, lua_gettop(L), size);
	return bytes;
}

static int call(lua_State *L)
{
	size_t size = (size_t)luaL_checkinteger(L, 2);
	volatile char *bytes = buffer(L, alloca(size), size);

	lua_pushvalue(L, 1);
	lua_call(L, 0, 0);
	lua_pushinteger(L, bytes[size / 2]);
	return 1;
}

static int resume(lua_State *L)
{
	size_t size = (size_t)luaL_checkinteger(L, 2);
	volatile char *bytes = buffer(L, alloca(size), size);
	lua_State *co = lua_newthread(L);

	lua_pushvalue(L, 1);
	lua_xmove(L, co, 1);
	if (lua_resume(co, 0))
		return luaL_error(L, "%s", lua_tostring(co, -1));
	lua_pushinteger(L, bytes[size / 2]);
	return 1;
}

int main(int argc, char **argv)
{
	lua_State *L;
	int i, status;

	if (argc < 2)
		return 2;
	L = luaL_newstate();
	luaL_openlibs(L);
	lua_register(L, "call", call);
	lua_register(L, "resume", resume);
	status = luaL_loadfile(L, argv[1]);
	for (i = 2; i < argc; i++)
		lua_pushstring(L, argv[i]);
	status = status ? status : lua_pcall(L, argc - 2, 0, 0);
	if (status)
		fprintf(stderr, "frames: %s\n", lua_tostring(L, -1));
	lua_close(L);
	return status != 0;
}
