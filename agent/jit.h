/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LuaJIT's compiler under a call hook. The hook aborts the recording of any trace that makes a call (lj_dispatch.c,
 * callhook()), unless that trace ends at the call: it links to another that begins there. Only a trace that is stitched
 * to what follows a C function (lj_ffrecord.c, recff_stitch()) begins in a function and has calls.
 */
#ifndef AGENT_JIT_H
#define AGENT_JIT_H

#include <stdbool.h>

#include <lua.h>

/* LuaJIT exports it; NULL in Lua 5.1. */
#if LUA_VERSION_NUM == 501
extern int luaJIT_setmode(lua_State *L, int idx, int mode) __attribute__((weak));
#define IS_LUAJIT (luaJIT_setmode != NULL)
#else
#define IS_LUAJIT false
#endif

/*
 * Drops LuaJIT's traces, and has it stitch none. Returns false if calls in a loop of this module's own are missing all
 * the same, in this build. L has no hook.
 */
bool jit_keep_calls(lua_State *L);

#endif
