// SPDX-License-Identifier: BSD-2-Clause
/* The same host for PUC Lua: each version has its own lua_resume(), and there is no luajit.h. */
#include <lua.h>

#if LUA_VERSION_NUM >= 504
#define resume_vm(co, n)                                                                           \
	({                                                                                         \
		int results;                                                                       \
		lua_resume(co, NULL, n, &results);                                                 \
	})
#elif LUA_VERSION_NUM >= 502
#define resume_vm(co, n) lua_resume(co, NULL, n)
#else
#define resume_vm(co, n) lua_resume(co, n)
#endif

#include "../modes.c"
