// SPDX-License-Identifier: BSD-2-Clause
/*
 * usage: resumes SCRIPT [ARG...]
 *
 * Gives a script run(f, how): runs f in another thread of the VM, then works in C by itself for a
 * while, on behalf of the thread that has called run(). how:
 *
 *	yields	f is resumed, and yields; the next call resumes it again
 *	ends	f is resumed to its end
 *	fails	... and fails
 *	calls	f is called in a thread of its own, not resumed
 *	main	f is called in the main thread
 *	hooked	f is resumed, and a count hook yields
 *	far	as yields; the work has a C frame of 64 KiB
 *	later	the callback that call_later(f) got from the FFI is called
 *
 * call_back(f) does the same for the FFI: it calls back, then works by itself.
 *
 * seconds() returns the CPU time that this work took so far.
 */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "host.h"

static lua_State *main_L, *co;
static double worked;
static void (*called_later)(void);

static double cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void work(void)
{
	volatile double x = 1;
	double begin = cpu();
	int i, n = host_vary(60000);

	for (i = 0; i < n; i++)
		x = x * 1.0000001 + 0.5;
	worked += cpu() - begin;
}

/* Most of the frame's pages are never touched. */
static void __attribute__((noinline)) work_far(void)
{
	volatile char frame[64 << 10];

	frame[0] = 1;
	frame[sizeof(frame) - 1] = 1;
	work();
	frame[0] = 2;
}

static void yield(lua_State *L, lua_Debug *ar)
{
	(void)ar;
	lua_yield(L, 0);
}

/* A thread whose next call is that of the function at index 1. */
static lua_State *thread_of(lua_State *L)
{
	lua_State *thread = lua_newthread(L);

	lua_pushvalue(L, 1);
	lua_xmove(L, thread, 1);
	return thread;
}

static int run(lua_State *L)
{
	const char *how = luaL_checkstring(L, 2);

	if (!strcmp(how, "later")) {
		called_later();
	} else if (!strcmp(how, "calls")) {
		lua_pcall(thread_of(L), 0, 0, 0);
	} else if (!strcmp(how, "main")) {
		lua_pushvalue(L, 1);
		if (L != main_L)
			lua_xmove(L, main_L, 1);
		lua_pcall(main_L, 0, 0, 0);
	} else if (!strcmp(how, "ends") || !strcmp(how, "fails")) {
		host_resume(thread_of(L), L, 0);
	} else {
		if (!co) {
			co = thread_of(L);
			lua_setfield(L, LUA_REGISTRYINDEX, "co");
			if (!strcmp(how, "hooked"))
				lua_sethook(co, yield, LUA_MASKCOUNT, 20000);
		}
		host_resume(co, L, 0);
	}
	lua_settop(L, 0);
	if (!strcmp(how, "far"))
		work_far();
	else
		work();
	return 0;
}

void call_back(void (*f)(void));
void call_back(void (*f)(void))
{
	f();
	work();
}

void call_later(void (*f)(void));
void call_later(void (*f)(void))
{
	called_later = f;
}

static int seconds(lua_State *L)
{
	lua_pushnumber(L, worked);
	return 1;
}

int main(int argc, char **argv)
{
	int i, status;

	if (argc < 2)
		return 2;
	main_L = luaL_newstate();
	luaL_openlibs(main_L);
	lua_pushcfunction(main_L, run);
	lua_setglobal(main_L, "run");
	lua_pushcfunction(main_L, seconds);
	lua_setglobal(main_L, "seconds");
	status = luaL_loadfile(main_L, argv[1]);
	for (i = 2; i < argc; i++)
		lua_pushstring(main_L, argv[i]);
	status = status ? status : lua_pcall(main_L, argc - 2, 0, 0);
	if (status)
		fprintf(stderr, "resumes: %s\n", lua_tostring(main_L, -1));
	lua_close(main_L);
	return status != 0;
}
