// SPDX-License-Identifier: BSD-2-Clause
/*
 * usage: deep SECONDS
 *
 * C functions with 400 KiB and 4 MiB on the C stack, of which they write little, that work: called by
 * the main thread and by coroutines, and after they have resumed one; and Lua that works in a
 * coroutine which such a function has resumed. Prints the CPU time of each way: its turns times their
 * median, as a turn that the machine interrupted takes any time, of which the timer sees nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>

#include "host.h"

#define LARGE (400 << 10)
#define HUGE (4 << 20)

static const char text[] =
	"local seconds = ...\n"
	"local clock = os.clock\n"
	"local function leaf() local a = 0 for i = 1, 100000 do a = a + i % 7 end return a end\n"
	"local function idle() return 1 end\n"
	"local function main_large() large() return 1 end\n"
	"local function main_huge() huge() return 1 end\n"
	"local function co_large() large() return 1 end\n"
	"local function co_huge() huge() return 1 end\n"
	"local function wrap_large() coroutine.wrap(co_large)() return 1 end\n"
	"local function wrap_huge() coroutine.wrap(co_huge)() return 1 end\n"
	"local function after_large() large(idle) return 1 end\n"
	"local function after_huge() huge(idle) return 1 end\n"
	"local function below_large() resume_large(leaf) return 1 end\n"
	"local function below_huge() resume_huge(leaf) return 1 end\n"
	"local ways = {main_large, main_huge, wrap_large, wrap_huge, after_large, after_huge,\n"
	"  below_large, below_huge}\n"
	"local spent = {}\n"
	"for i = 1, #ways do spent[i] = {} end\n"
	"print 'ready' io.stdout:flush() io.read()\n"
	"local start = clock()\n"
	"repeat\n"
	"  for i = 1, #ways do\n"
	"    local t = clock() ways[i]() spent[i][#spent[i] + 1] = clock() - t\n"
	"  end\n"
	"until clock() - start > seconds\n"
	"for i, times in ipairs(spent) do\n"
	"  table.sort(times) spent[i] = times[math.ceil(#times / 2)] * #times\n"
	"end\n"
	"print((table.unpack or unpack)(spent)) io.stdout:flush()\n";

static void resume(lua_State *L)
{
	lua_State *co = lua_newthread(L);

	lua_pushvalue(L, 1);
	lua_xmove(L, co, 1);
	host_resume(co, L, 0);
}

/* About 2 ms; first resumes a coroutine that runs the argument. */
static __attribute__((noinline)) int work(lua_State *L, int size, int rounds)
{
	volatile char frame[size];
	volatile double x = 1;
	int i;

	frame[0] = frame[size - 1] = 1;
	if (lua_isfunction(L, 1))
		resume(L);
	for (i = 0; i < rounds; i++)
		x = x * 1.0000001 + 0.5;
	lua_pushnumber(L, x + frame[0]);
	return 1;
}

static int large(lua_State *L)
{
	return work(L, LARGE, 1000000);
}

static int huge(lua_State *L)
{
	return work(L, HUGE, 1000000);
}

static int resume_large(lua_State *L)
{
	return work(L, LARGE, 1);
}

static int resume_huge(lua_State *L)
{
	return work(L, HUGE, 1);
}

int main(int argc, char **argv)
{
	lua_State *L = host_new();

	lua_register(L, "large", large);
	lua_register(L, "huge", huge);
	lua_register(L, "resume_large", resume_large);
	lua_register(L, "resume_huge", resume_huge);
	return host_run(L, text, "@deep", argc, argv);
}
