// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>

#include <lauxlib.h>

#include "name.h"

static const struct {
	const char *module, *maker; /* the C function that returns it */
	bool of_table;		    /* maker's argument is a table, not a function */
	const char *name;
} builtins[NAME_BUILTINS] = {
	{"coroutine", "wrap", false, "coroutine.wrap_aux"},
	{"_G", "ipairs", true, "ipairs_aux"},
};

bool name_push_builtin(lua_State *L, int i)
{
	int top = lua_gettop(L);

	lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
	lua_getfield(L, -1, builtins[i].module);
	if (lua_istable(L, -1)) {
		lua_getfield(L, -1, builtins[i].maker);
		lua_pushvalue(L, builtins[i].of_table ? -2 : -1);
		if (lua_iscfunction(L, -2) && !lua_pcall(L, 1, 1, 0) && lua_iscfunction(L, -1) &&
		    !lua_tocfunction(L, -1)) {
			lua_replace(L, top + 1);
			lua_settop(L, top + 1);
			return true;
		}
	}
	lua_settop(L, top);
	return false;
}

const char *name_of_builtin(const uint64_t *keys, uint64_t key)
{
	for (int i = 0; key && i < NAME_BUILTINS; i++)
		if (keys[i] == key)
			return builtins[i].name;
	return NULL;
}

#if LUA_VERSION_NUM == 501

/*
 * No step of a proof makes an object, calls a metamethod, or lets the collector run. lua_pushstring() would
 * do the last: a field is looked up by lua_getfield(), or by a search if that might call __index.
 */

#define FIELDS_MAX 4096 /* that are looked at */
#define DEPTH_MAX 2	/* tables in tables */
#define CHAIN_MAX 16	/* tables, each __index of the one before */

struct call_site {
	lua_Debug caller;
	const char *name;
	int fn; /* stack index of the function */
	int fields;
};

/* ar: of a hook, or of lua_getstack(). The bits above are the frame's size, which a hook has not. */
static bool find_caller(lua_State *L, const lua_Debug *ar, lua_Debug *caller)
{
	for (int i = 0; lua_getstack(L, i, caller); i++)
		if ((caller->i_ci & 0xffff) == (ar->i_ci & 0xffff))
			return lua_getstack(L, i + 1, caller);
	return false;
}

/* The value on top of the stack is the function, or is called by it. Pops it. */
static bool pop_is_called(lua_State *L, struct call_site *call)
{
	bool is = lua_rawequal(L, -1, call->fn);

	if (!is && luaL_getmetafield(L, -1, "__call")) {
		is = lua_rawequal(L, -1, call->fn);
		lua_pop(L, 1);
	}
	lua_pop(L, 1);
	return is;
}

/* Pops the key on top of the stack and pushes the next one of the table below it, and its value. */
static bool next_field(lua_State *L, struct call_site *call)
{
	if (call->fields++ < FIELDS_MAX)
		return lua_next(L, -2);
	lua_pop(L, 1);
	return false;
}

/* The same of the field of the table on top of the stack that has the name. No __index. */
static bool raw_field_is_called(lua_State *L, struct call_site *call)
{
	if (!lua_getmetatable(L, -1)) {
		lua_getfield(L, -1, call->name);
		return pop_is_called(L, call);
	}
	lua_pop(L, 1);
	for (lua_pushnil(L); next_field(L, call); lua_pop(L, 1)) {
		bool is;

		if (lua_type(L, -2) != LUA_TSTRING || strcmp(lua_tostring(L, -2), call->name) != 0)
			continue;
		is = pop_is_called(L, call);
		lua_pop(L, 1);
		return is;
	}
	return false;
}

/* The same, with the tables that __index names, of the value on top of the stack. Pops it. */
static bool pop_field_is_called(lua_State *L, struct call_site *call)
{
	bool is = false;

	for (int i = 0; i < CHAIN_MAX; i++) {
		is = lua_istable(L, -1) && raw_field_is_called(L, call);
		if (is || !luaL_getmetafield(L, -1, "__index"))
			break;
		lua_replace(L, -2);
	}
	lua_pop(L, 1);
	return is;
}

/*
 * The same, if depth is 0; else of the values that are so deep in the value on top of the stack, each
 * in a table. Pops it.
 */
static bool pop_holds(lua_State *L, struct call_site *call, int depth)
{
	int root = lua_gettop(L), level = 0;
	bool holds = false;

	do {
		if (level == depth) {
			holds = pop_field_is_called(L, call);
		} else if (lua_istable(L, -1)) {
			lua_pushnil(L);
			level++;
		} else {
			lua_pop(L, 1);
		}
		while (!holds && level && !next_field(L, call)) {
			lua_pop(L, 1);
			level--;
		}
	} while (!holds && level);
	lua_settop(L, root - 1);
	return holds;
}

static bool is_local(lua_State *L, struct call_site *call)
{
	const char *name;

	for (int i = 1; (name = lua_getlocal(L, &call->caller, i)); i++)
		if (pop_is_called(L, call) && !strcmp(name, call->name))
			return true;
	return false;
}

/* caller: stack index of its function. */
static bool is_upvalue(lua_State *L, struct call_site *call, int caller)
{
	const char *name;

	for (int i = 1; (name = lua_getupvalue(L, caller, i)); i++)
		if (pop_is_called(L, call) && !strcmp(name, call->name))
			return true;
	return false;
}

static bool is_global(lua_State *L, struct call_site *call, int caller)
{
	bool is;

	lua_getfenv(L, caller);
	is = raw_field_is_called(L, call);
	lua_pop(L, 1);
	return is;
}

/* In the caller's locals, upvalues and globals. caller: stack index of its function. */
static bool is_in_reach(lua_State *L, struct call_site *call, int caller, int depth)
{
	for (int i = 1; lua_getlocal(L, &call->caller, i); i++)
		if (pop_holds(L, call, depth))
			return true;
	for (int i = 1; lua_getupvalue(L, caller, i); i++)
		if (pop_holds(L, call, depth))
			return true;
	lua_getfenv(L, caller);
	return pop_holds(L, call, depth);
}

/*
 * The table is not known, as the call may have overwritten it. So the field is searched in `self`,
 * which is the function's first argument, and in what is in the caller's reach.
 */
static bool is_field(lua_State *L, lua_Debug *ar, struct call_site *call, int caller)
{
	bool is = lua_getlocal(L, ar, 1) && pop_field_is_called(L, call);

	for (int depth = 0; !is && depth <= DEPTH_MAX; depth++)
		is = is_in_reach(L, call, caller, depth);
	return is;
}

/* True if the function is this metamethod of one of the two operands, or of the value that is called. */
static bool is_metamethod(lua_State *L, lua_Debug *ar, struct call_site *call)
{
	for (int i = 1; i <= 2 && lua_getlocal(L, ar, i); i++) {
		bool is = luaL_getmetafield(L, -1, call->name) && pop_is_called(L, call);

		lua_pop(L, 1);
		if (is)
			return true;
	}
	return false;
}

static bool is_proved(lua_State *L, lua_Debug *ar)
{
	struct call_site call = {.name = ar->name, .fn = lua_gettop(L)};
	bool is = false;

	if (!find_caller(L, ar, &call.caller))
		return false;
	lua_getinfo(L, "f", &call.caller);
	if (!strcmp(ar->namewhat, "local"))
		is = is_local(L, &call);
	else if (!strcmp(ar->namewhat, "upvalue"))
		is = is_upvalue(L, &call, call.fn + 1);
	else if (!strcmp(ar->namewhat, "global"))
		is = is_global(L, &call, call.fn + 1);
	else if (!strcmp(ar->namewhat, "metamethod"))
		is = is_metamethod(L, ar, &call);
	else
		is = is_field(L, ar, &call, call.fn + 1);
	lua_settop(L, call.fn);
	return is;
}

#endif

const char *name_of_call(lua_State *L, lua_Debug *ar, bool luajit)
{
	if (!lua_getinfo(L, "n", ar) || !ar->name)
		return NULL;
#if LUA_VERSION_NUM == 501
	if (luajit && !is_proved(L, ar))
		return NULL;
#endif
	(void)luajit;
	return ar->name;
}
