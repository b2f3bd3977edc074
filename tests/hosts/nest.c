// SPDX-License-Identifier: BSD-2-Clause
/*
 * usage: nest SECONDS
 *
 * A VM inside another: a C function of the outer one calls the inner one, whose C function calls a
 * function of the outer one, unprotected. Prints the CPU time of outer_work(), inner_work() and
 * outer_back().
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>

#include "host.h"

static lua_State *outer, *inner;

static const char inner_text[] =
	"local clock, spent = os.clock, 0\n"
	"local function spin(n) local a = 0 for i = 1, n do a = a + i % 7 end return a end\n"
	"function inner_work() local t = clock() spin(30000) spent = spent + clock() - t back() "
	"end\n"
	"function inner_spent() return spent end\n";

static const char outer_text[] =
	"local seconds = ...\n"
	"local clock, work, back = os.clock, 0, 0\n"
	"local function spin(n) local a = 0 for i = 1, n do a = a + i % 7 end return a end\n"
	"function outer_back() local t = clock() spin(10000) back = back + clock() - t end\n"
	"local function outer_work() local t = clock() spin(20000) work = work + clock() - t end\n"
	"print 'ready' io.stdout:flush() io.read()\n"
	"local start = clock()\n"
	"while clock() - start < seconds do outer_work() enter() end\n"
	"print(work, spent(), back) io.stdout:flush()\n";

static int enter(lua_State *L)
{
	(void)L;
	lua_getglobal(inner, "inner_work");
	if (lua_pcall(inner, 0, 0, 0))
		abort();
	return 0;
}

static int back(lua_State *L)
{
	(void)L;
	lua_getglobal(outer, "outer_back");
	lua_call(outer, 0, 0);
	return 0;
}

static int spent(lua_State *L)
{
	lua_getglobal(inner, "inner_spent");
	lua_call(inner, 0, 1);
	lua_pushnumber(L, lua_tonumber(inner, -1));
	lua_pop(inner, 1);
	return 1;
}

int main(int argc, char **argv)
{
	outer = host_new();
	inner = host_new();
	lua_register(outer, "enter", enter);
	lua_register(outer, "spent", spent);
	lua_register(inner, "back", back);
	if (host_run(inner, inner_text, "@inner", 0, NULL))
		return 1;
	return host_run(outer, outer_text, "@outer", argc, argv);
}
