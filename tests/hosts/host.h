/* SPDX-License-Identifier: BSD-2-Clause */
/* What the hosts share: each is compiled for LuaJIT or for several versions of PUC Lua. */
#ifndef LUABPF_TESTS_HOST_H
#define LUABPF_TESTS_HOST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

/* lua_resume() of this version. Inlined: a host's C frames are what a test is about. */
static inline __attribute__((always_inline)) int host_resume(lua_State *co, lua_State *from,
							     int nargs)
{
#if LUA_VERSION_NUM >= 504
	int results;

	return lua_resume(co, from, nargs, &results);
#elif LUA_VERSION_NUM >= 502
	return lua_resume(co, from, nargs);
#else
	(void)from;
	return lua_resume(co, nargs);
#endif
}

/*
 * Returns from n/2 to 3n/2, another one at each call (minimal standard generator): rounds of one
 * length may fall in step with the timer, which then shows shares that are off by a tenth.
 */
static inline int host_vary(int n)
{
	static unsigned long long state = 1;

	state = state * 16807 % 2147483647;
	return n / 2 + (int)(state % (unsigned)n);
}

/* A VM with the standard libraries. */
static inline lua_State *host_new(void)
{
	lua_State *L = luaL_newstate();

	luaL_openlibs(L);
	return L;
}

/* Runs a chunk with a number of seconds, that of the command line or 1. Returns main()'s result. */
static inline int host_run(lua_State *L, const char *text, const char *name, int argc, char **argv)
{
	if (luaL_loadbuffer(L, text, strlen(text), name))
		return 1;
	lua_pushnumber(L, argc > 1 ? atof(argv[1]) : 1);
	if (lua_pcall(L, 1, 0, 0))
		fprintf(stderr, "%s\n", lua_tostring(L, -1));
	return 0;
}

#endif
