// SPDX-License-Identifier: BSD-2-Clause
/*
 * usage: sparse SECONDS
 *
 * C functions with 32 KiB on the C stack of which they write little: frames of the main thread,
 * which were there before, show through. All but a little of the time is in work(), in coroutines
 * that are resumed in five ways.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>

#include "../host.h"
#include "burn.h"

#define SIZE (32 << 10)

static const char text[] =
	"local seconds = ...\n"
	"local clock = os.clock\n"
	"local function deep(n) if n > 0 then call(deep, n - 1) end return n end\n"
	"local function leaf() work() return 1 end\n"
	"local function wrapped() coroutine.wrap(leaf)() return 1 end\n"
	"local function resumed() resume(leaf) return 1 end\n"
	"local function far() resume_far(leaf) return 1 end\n"
	"local function body() resume(work) return 1 end\n"
	"local function far_body() resume_far(work) return 1 end\n"
	"local ways = {wrapped, resumed, far, body, far_body}\n"
	"local spent = {0, 0, 0, 0, 0}\n"
	"print 'ready' io.stdout:flush() io.read()\n"
	"local start = clock()\n"
	"deep(150)\n"
	"repeat\n"
	"  for i = 1, 5 do local t = clock() ways[i]() spent[i] = spent[i] + clock() - t end\n"
	"until clock() - start > seconds\n"
	"print(unpack(spent)) io.stdout:flush()\n";

static int call(lua_State *L)
{
	lua_call(L, lua_gettop(L) - 1, 0);
	return 0;
}

static int work(lua_State *L)
{
	lua_pushnumber(L, burn(30000, SIZE));
	return 1;
}

static void run(lua_State *L)
{
	lua_State *co = lua_newthread(L);

	lua_pushvalue(L, 1);
	lua_xmove(L, co, 1);
	host_resume(co, L, 0);
}

static int resume(lua_State *L)
{
	run(L);
	lua_pushnumber(L, 1);
	return 1;
}

static int resume_far(lua_State *L)
{
	volatile char buf[SIZE];

	buf[0] = buf[SIZE - 1] = (char)lua_gettop(L);
	run(L);
	lua_pushnumber(L, buf[0]);
	return 1;
}

int main(int argc, char **argv)
{
	lua_State *L = host_new();

	lua_register(L, "call", call);
	lua_register(L, "work", work);
	lua_register(L, "resume", resume);
	lua_register(L, "resume_far", resume_far);
#if LUA_VERSION_NUM >= 502
	lua_getglobal(L, "table");
	lua_getfield(L, -1, "unpack");
	lua_setglobal(L, "unpack");
#endif
	return host_run(L, text, "@sparse", argc, argv);
}
