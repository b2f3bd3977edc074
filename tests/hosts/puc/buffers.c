// SPDX-License-Identifier: BSD-2-Clause
/*
 * usage: buffers SECONDS
 *
 * C functions that have 64 KiB on the C stack call a Lua function, or resume a coroutine, which runs
 * another of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>

#include "../host.h"

#define SIZE (64 << 10)

static const char text[] =
	"local seconds = ...\n"
	"local clock = os.clock\n"
	"local function spin(n) local a = 0 for i = 1, n do a = a + i % 7 end return a end\n"
	"local function work() spin(30000) end\n"
	"local function inner() resume(work) end\n"
	"local function outer() call(inner) end\n"
	"print 'ready' io.stdout:flush() io.read()\n"
	"local start = clock()\n"
	"repeat call(work) resume(work) resume(outer) until clock() - start > seconds\n"
	"print 'done' io.stdout:flush()\n";

static int call(lua_State *L)
{
	volatile char buf[SIZE];

	memset((char *)buf, lua_gettop(L), sizeof(buf));
	lua_pushvalue(L, 1);
	lua_call(L, 0, 0);
	lua_pushnumber(L, buf[77]);
	return 1;
}

static int resume(lua_State *L)
{
	volatile char buf[SIZE];
	lua_State *co = lua_newthread(L);

	memset((char *)buf, lua_gettop(L), sizeof(buf));
	lua_pushvalue(L, 1);
	lua_xmove(L, co, 1);
	host_resume(co, L, 0);
	lua_pushnumber(L, buf[77]);
	return 1;
}

int main(int argc, char **argv)
{
	lua_State *L = host_new();

	lua_register(L, "call", call);
	lua_register(L, "resume", resume);
	return host_run(L, text, "@buffers", argc, argv);
}
