// SPDX-License-Identifier: BSD-2-Clause
/*
 * usage: nest_c SECONDS [WAY]
 *
 * VMs inside another, as nest.c has them, which run C functions: work() of the outer VM is called
 * through back(), of the inner VM, or of a coroutine of the outer one. back() goes on for a while,
 * in a large frame, through which the frames of work()'s callers show. Prints the CPU time of both.
 * WAY is one of the four ways to call back(); else each is taken in turn.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <lauxlib.h>
#include <lua.h>

#include "../host.h"
#include "burn.h"

#define SMALL 64
#define LARGE (16 << 10)

static lua_State *outer, *inner;
static double worked, returned;

static const char inner_text[] = "function inner_work() back() return 1 end\n";

static const char outer_text[] =
	"local seconds = ...\n"
	"local clock = os.clock\n"
	"function outer_back() work() return 1 end\n"
	"local function protected() enter() return 1 end\n"
	"local function unprotected() enter_bare() return 1 end\n"
	"local function in_coroutine() coroutine.wrap(protected)() return 1 end\n"
	"local function backs() back() return 1 end\n"
	"local function same_vm() coroutine.wrap(backs)() return 1 end\n"
	"print 'ready' io.stdout:flush() io.read()\n"
	"local start = clock()\n"
	"local ways = {protected = protected, unprotected = unprotected,\n"
	"	in_coroutine = in_coroutine, same_vm = same_vm}\n"
	"local function all() protected() unprotected() in_coroutine() same_vm() end\n"
	"local run = ways[way] or all\n"
	"repeat run() until clock() - start > seconds\n"
	"print(spent()) io.stdout:flush()\n";

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int work(lua_State *L)
{
	static int calls;
	double t = now();

	lua_pushnumber(L, burn(host_vary(20000), calls++ & 4 ? LARGE : SMALL));
	worked += now() - t;
	return 1;
}

static int back(lua_State *L)
{
	double t;

	lua_getglobal(outer, "outer_back");
	lua_call(outer, 0, 0);
	t = now();
	lua_pushnumber(L, burn(host_vary(15000), LARGE));
	returned += now() - t;
	return 1;
}

static int enter(lua_State *L)
{
	lua_getglobal(inner, "inner_work");
	if (lua_pcall(inner, 0, 0, 0))
		abort();
	lua_pushnumber(L, 1);
	return 1;
}

static int enter_bare(lua_State *L)
{
	lua_getglobal(inner, "inner_work");
	lua_call(inner, 0, 0);
	lua_pushnumber(L, 1);
	return 1;
}

static int spent(lua_State *L)
{
	lua_pushnumber(L, worked);
	lua_pushnumber(L, returned);
	return 2;
}

int main(int argc, char **argv)
{
	outer = host_new();
	inner = host_new();
	lua_register(outer, "enter", enter);
	lua_register(outer, "enter_bare", enter_bare);
	lua_register(outer, "work", work);
	lua_register(outer, "back", back);
	lua_register(outer, "spent", spent);
	lua_register(inner, "back", back);
	if (host_run(inner, inner_text, "@inner", 0, NULL))
		return 1;
	lua_pushstring(outer, argc > 2 ? argv[2] : "");
	lua_setglobal(outer, "way");
	return host_run(outer, outer_text, "@outer", argc, argv);
}
