// SPDX-License-Identifier: BSD-2-Clause
#include <lauxlib.h>

#include "jit.h"
#include "hook/abi.h"

#if LUA_VERSION_NUM == 501

#define MODE_ENGINE_FLUSH 0x0200 /* luajit.h */

/* A trace is stitched if it has so many instructions, which is more than any has; 2.0 knows no such parameter. */
static const char no_stitches[] =
	"local opt = package.loaded['jit.opt'] if opt then opt.start('minstitch=1000000') end";

/* Its calls of f, g and os.time; LuaJIT's hotloop is 56, and a function is hot after twice as many. */
static const char loops[] = "local time = os.time local function f() end "
			    "local function g() local t = time() return t end "
			    "for i = 1, 300 do f() end for i = 1, 300 do g() end";
#define LOOP_CALLS 900

static __thread unsigned int probed;

static void on_probe(lua_State *L, lua_Debug *ar)
{
	(void)L, (void)ar;
	probed++;
}

static bool run(lua_State *L, const char *code, size_t len)
{
	int top = lua_gettop(L);
	bool ok = !luaL_loadbuffer(L, code, len, HOOK_OWN_SOURCE) && !lua_pcall(L, 0, 0, 0);

	lua_settop(L, top);
	return ok;
}

bool jit_keep_calls(lua_State *L)
{
	bool ok;

	run(L, no_stitches, sizeof(no_stitches) - 1);
	probed = 0;
	lua_sethook(L, on_probe, LUA_MASKCALL, 0);
	ok = run(L, loops, sizeof(loops) - 1) && probed >= LOOP_CALLS;
	lua_sethook(L, NULL, 0, 0);
	luaJIT_setmode(L, 0, MODE_ENGINE_FLUSH);
	return ok;
}

#endif
