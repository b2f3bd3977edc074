// SPDX-License-Identifier: BSD-2-Clause
/*
 * luabpf.profile: the interface of LuaJIT's jit.profile for other processes, on top of <luabpf.h>. One
 * source for LuaJIT and Lua 5.1 to 5.5, compiled for each. docs/api.md describes it.
 *
 * Each function is a closure with two upvalues: the profiler, and a table with what belongs to it and the
 * collector has to see. profile.new() makes another set of both.
 */
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>
#include <luabpf.h>

struct profiler {
	luabpf *recording;     /* of the last start(); NULL: none yet */
	lua_State *L;	       /* that polls or stops */
	luabpf_sample *sample; /* within the callback; NULL: outside */
	jmp_buf out;	       /* of a callback that has failed */
};

#define PROFILER lua_upvalueindex(1)
#define TABLE lua_upvalueindex(2)

static struct profiler *profiler(lua_State *L)
{
	return lua_touserdata(L, PROFILER);
}

static int collect(lua_State *L)
{
	struct profiler *p = lua_touserdata(L, 1);

	luabpf_free(p->recording);
	p->recording = NULL;
	return 0;
}

static int fail(lua_State *L, const luabpf *recording)
{
	return luaL_error(L, "%s", luabpf_error(recording));
}

static void not_within(lua_State *L, const char *function)
{
	if (profiler(L)->sample)
		luaL_error(L, "%s(): not within the callback", function);
}

/* ---- targets --------------------------------------------------------------------------------- */

/* Returns the process number on top of the stack. */
static int process_number(lua_State *L)
{
	lua_Integer pid = lua_tointeger(L, -1);

	if (pid <= 0 || pid > INT32_MAX || lua_tonumber(L, -1) != (lua_Number)pid)
		luaL_error(L, "%s is not the number of a process",
			   lua_isstring(L, -1) ? lua_tostring(L, -1) : luaL_typename(L, -1));
	return (int)pid;
}

/* Checks the processes at index 1: a number, or a table of numbers. */
static void check_processes(lua_State *L)
{
	int i;

	lua_pushvalue(L, 1);
	if (lua_type(L, -1) == LUA_TNUMBER)
		process_number(L);
	for (i = 1; lua_istable(L, 1); i++) {
		lua_rawgeti(L, 1, i);
		if (lua_isnil(L, -1))
			break;
		process_number(L);
		lua_pop(L, 1);
	}
}

/* Options whose values are names, and the others. */
static const struct {
	const char *name;
	int kind;
} narrowing[] = {{"exe", LUABPF_EXE},
		 {"comm", LUABPF_COMM},
		 {"cgroup", LUABPF_CGROUP},
		 {"user", LUABPF_USER}},
  settings[] = {{"follow", LUABPF_FOLLOW},
		{"children", LUABPF_CHILDREN},
		{"coroutines", LUABPF_COROUTINES},
		{"zones", LUABPF_ZONES}};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static bool is_option(const char *name)
{
	for (size_t i = 0; i < COUNT(narrowing); i++)
		if (!strcmp(narrowing[i].name, name))
			return true;
	for (size_t i = 0; i < COUNT(settings); i++)
		if (!strcmp(settings[i].name, name))
			return true;
	return false;
}

/* Checks the names of the options at index 2: a recording with "exes" would be one of everything. */
static void check_options(lua_State *L)
{
	if (!lua_istable(L, 2))
		return;
	lua_pushnil(L);
	while (lua_next(L, 2)) {
		lua_pop(L, 1);
		if (lua_type(L, -1) != LUA_TSTRING)
			luaL_error(L, "the names of options are strings");
		if (!is_option(lua_tostring(L, -1)))
			luaL_error(L, "%s is no option", lua_tostring(L, -1));
	}
}

/* profile.attach(pid | {pids} | "all" [, options]): taken by start(). */
static int attach(lua_State *L)
{
	int type = lua_type(L, 1);

	luaL_argcheck(L,
		      type == LUA_TNUMBER || type == LUA_TTABLE ||
			      (type == LUA_TSTRING && !strcmp(lua_tostring(L, 1), "all")),
		      1, "a process, a table of processes or \"all\" expected");
	if (!lua_isnoneornil(L, 2))
		luaL_checktype(L, 2, LUA_TTABLE);
	lua_settop(L, 2);
	check_processes(L);
	check_options(L);
	lua_settop(L, 2);
	lua_setfield(L, TABLE, "options");
	lua_setfield(L, TABLE, "targets");
	return 0;
}

static void add_process(lua_State *L, luabpf *r)
{
	if (luabpf_attach(r, process_number(L)))
		fail(L, r);
}

/* The targets are on top of the stack. */
static void add_targets(lua_State *L, luabpf *r)
{
	int i;

	if (lua_isnil(L, -1))
		luaL_error(L, "no process to profile: call attach() first");
	if (lua_type(L, -1) == LUA_TSTRING) {
		if (luabpf_attach_all(r))
			fail(L, r);
	} else if (lua_type(L, -1) == LUA_TNUMBER) {
		add_process(L, r);
	} else {
		for (i = 1; lua_rawgeti(L, -1, i), !lua_isnil(L, -1); i++) {
			add_process(L, r);
			lua_pop(L, 1);
		}
		lua_pop(L, 1);
	}
}

/* options[name] is a string, or a table of strings. */
static void narrow(lua_State *L, luabpf *r, const char *name, int kind)
{
	int i;

	lua_getfield(L, -1, name);
	if (!lua_istable(L, -1)) {
		lua_createtable(L, 1, 0);
		lua_insert(L, -2);
		lua_rawseti(L, -2, 1);
	}
	for (i = 1; lua_rawgeti(L, -1, i), !lua_isnil(L, -1); i++) {
		const char *value = lua_tostring(L, -1);

		if (!value)
			luaL_error(L, "option %s: a string or a table of strings expected", name);
		if (luabpf_narrow(r, kind, value))
			fail(L, r);
		lua_pop(L, 1);
	}
	lua_pop(L, 2);
}

static void set(lua_State *L, luabpf *r, const char *name, int option)
{
	lua_getfield(L, -1, name);
	if (!lua_isnil(L, -1) && luabpf_set(r, option, lua_toboolean(L, -1)))
		fail(L, r);
	lua_pop(L, 1);
}

/* The options are on top of the stack: a table or nil. */
static void add_options(lua_State *L, luabpf *r)
{
	size_t i;

	if (lua_isnil(L, -1))
		return;
	for (i = 0; i < COUNT(narrowing); i++)
		narrow(L, r, narrowing[i].name, narrowing[i].kind);
	for (i = 0; i < COUNT(settings); i++)
		set(L, r, settings[i].name, settings[i].kind);
	lua_getfield(L, -1, "zones");
	if (lua_type(L, -1) == LUA_TSTRING && luabpf_zone_from(r, lua_tostring(L, -1)))
		fail(L, r);
	lua_pop(L, 1);
}

/* Whoever has loaded luabpf.zone wants zones: jit/p.lua cannot say so. */
static void want_zones(lua_State *L, luabpf *r)
{
	lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
	lua_getfield(L, -1, "luabpf.zone");
	if (lua_toboolean(L, -1))
		luabpf_set(r, LUABPF_ZONES, 1);
	lua_pop(L, 2);
}

/* ---- recording ------------------------------------------------------------------------------- */

/* Equal for the samples of one thread, or of one coroutine if these are recorded. */
static void push_thread(lua_State *L, luabpf_sample *sample)
{
	const char *coroutine = luabpf_label(sample, "coroutine");
	uint64_t id = (uint64_t)luabpf_tid(sample);

	if (coroutine)
		id = strtoull(coroutine + strcspn(coroutine, "0"), NULL, 16);
	/* LuaJIT holds 47 bits */
	lua_pushlightuserdata(L, (void *)(uintptr_t)(id & 0x7fffffffffffULL));
}

/* An error leaves luabpf_poll() by longjmp(): <luabpf.h> permits it. */
static void callback(void *data, luabpf_sample *sample, int samples, int vmstate)
{
	struct profiler *p = data;
	lua_State *L = p->L;
	char state = (char)vmstate;
	int failed;

	lua_getfield(L, TABLE, "callback");
	push_thread(L, sample);
	lua_pushinteger(L, samples);
	lua_pushlstring(L, &state, 1);
	p->sample = sample;
	failed = lua_pcall(L, 3, 0, 0);
	p->sample = NULL;
	if (failed)
		longjmp(p->out, 1);
}

/* profile.start([mode,] callback): begins anew if it had begun. */
static int start(lua_State *L)
{
	struct profiler *p = profiler(L);
	const char *mode;

	if (lua_isfunction(L, 1)) {
		lua_pushnil(L);
		lua_insert(L, 1);
	}
	mode = luaL_optstring(L, 1, "");
	luaL_checktype(L, 2, LUA_TFUNCTION);
	not_within(L, "start");
	lua_settop(L, 2);
	lua_setfield(L, TABLE, "callback");
	luabpf_free(p->recording);
	p->recording = luabpf_new();
	if (!p->recording)
		return luaL_error(L, "out of memory");
	lua_getfield(L, TABLE, "targets");
	add_targets(L, p->recording);
	lua_getfield(L, TABLE, "options");
	add_options(L, p->recording);
	want_zones(L, p->recording);
	if (luabpf_start(p->recording, mode, callback, p))
		return fail(L, p->recording);
	return 0;
}

static luabpf *recording(lua_State *L)
{
	luabpf *r = profiler(L)->recording;

	if (!r)
		luaL_error(L, "no recording: call start() first");
	return r;
}

/* In milliseconds; -1 or nil: no limit. */
static int timeout(lua_State *L)
{
	lua_Number ms = luaL_optnumber(L, 1, -1);

	return ms < 0 ? -1 : ms > INT32_MAX ? INT32_MAX : (int)ms;
}

static int answer(lua_State *L, int on)
{
	if (on < 0)
		return fail(L, profiler(L)->recording);
	lua_pushboolean(L, on);
	return 1;
}

/* profile.poll([ms]): true: it goes on; false: it is over. */
static int poll(lua_State *L)
{
	luabpf *r = recording(L);
	struct profiler *p = profiler(L);
	int ms = timeout(L);

	not_within(L, "poll");
	luaL_checkstack(L, 4, "callback");
	p->L = L;
	if (setjmp(p->out))
		return lua_error(L); /* the callback's, on top of the stack */
	return answer(L, luabpf_poll(r, ms));
}

/* profile.wait([ms]): the same without callbacks, which come with the next poll() or stop(). */
static int wait_for(lua_State *L)
{
	luabpf *r = recording(L);
	int ms = timeout(L);

	not_within(L, "wait");
	return answer(L, luabpf_wait(r, ms));
}

/* profile.stop(): calls back for what was not delivered, unless it is called by the callback. */
static int stop(lua_State *L)
{
	struct profiler *p = profiler(L);

	if (!p->recording)
		return 0;
	luaL_checkstack(L, 4, "callback");
	if (p->sample) {
		luabpf_stop(p->recording);
		return 0;
	}
	p->L = L;
	if (setjmp(p->out)) {
		luabpf_stop(p->recording); /* the rest is not delivered */
		return lua_error(L);
	}
	if (luabpf_stop(p->recording))
		return fail(L, p->recording);
	return 0;
}

/* profile.fd(): readable when poll(0) has something to do. */
static int descriptor(lua_State *L)
{
	int fd = luabpf_fd(recording(L));

	if (fd < 0)
		return luaL_error(L, "no recording: the start has failed");
	lua_pushinteger(L, fd);
	return 1;
}

/* ---- a sample -------------------------------------------------------------------------------- */

/* profile.dumpstack([thread,] fmt, depth). The thread is that of the callback. */
static int dumpstack(lua_State *L)
{
	luabpf_sample *sample = profiler(L)->sample;
	int at = lua_islightuserdata(L, 1) ? 2 : 1;
	const char *fmt = luaL_checkstring(L, at), *text;
	lua_Integer depth = luaL_checkinteger(L, at + 1);
	size_t len;

	if (!sample)
		return luaL_error(L, "dumpstack(): there is no sample outside of the callback");
	depth = depth > INT32_MAX ? INT32_MAX : depth < -INT32_MAX ? -INT32_MAX : depth;
	text = luabpf_dumpstack(sample, fmt, (int)depth, &len);
	if (!text)
		return fail(L, profiler(L)->recording);
	lua_pushlstring(L, text, len);
	return 1;
}

/* profile.label(name): of luabpf_label(), and "pid" and "tid"; nil: none, or outside of the callback. */
static int label(lua_State *L)
{
	luabpf_sample *sample = profiler(L)->sample;
	const char *name = luaL_checkstring(L, 1);

	if (sample && !strcmp(name, "pid"))
		lua_pushinteger(L, luabpf_pid(sample));
	else if (sample && !strcmp(name, "tid"))
		lua_pushinteger(L, luabpf_tid(sample));
	else
		lua_pushstring(L, sample ? luabpf_label(sample, name) : NULL);
	return 1;
}

/* ---- results --------------------------------------------------------------------------------- */

struct profile_losses {
	size_t n;
	struct {
		const char *reason;
		unsigned long count;
	} loss[64]; /* there are about 40 reasons */
};

static void take_loss(void *data, const char *reason, const char *sentence, unsigned long count)
{
	struct profile_losses *losses = data;

	(void)sentence;
	if (losses->n == sizeof(losses->loss) / sizeof(losses->loss[0]))
		return;
	losses->loss[losses->n].reason = reason;
	losses->loss[losses->n++].count = count;
}

/* profile.losses(): {[reason] = count}. */
static int losses(lua_State *L)
{
	struct profile_losses all = {0};
	size_t i;

	if (luabpf_losses(recording(L), take_loss, &all))
		return fail(L, profiler(L)->recording);
	lua_createtable(L, 0, (int)all.n);
	for (i = 0; i < all.n; i++) {
		lua_pushinteger(L, (lua_Integer)all.loss[i].count);
		lua_setfield(L, -2, all.loss[i].reason);
	}
	return 1;
}

/* profile.write(path): for `luabpf report`. */
static int write_profile(lua_State *L)
{
	const char *path = luaL_checkstring(L, 1);
	luabpf *r = recording(L);
	int err, file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (file < 0)
		return luaL_error(L, "%s: cannot be written", path);
	err = luabpf_write(r, file);
	close(file);
	return err ? fail(L, r) : 0;
}

/* ---- the module ------------------------------------------------------------------------------ */

static int new_profiler(lua_State *L);

static const luaL_Reg functions[] = {
	{"attach", attach},	  {"start", start},	    {"poll", poll},
	{"wait", wait_for},	  {"stop", stop},	    {"fd", descriptor},
	{"label", label},	  {"dumpstack", dumpstack}, {"losses", losses},
	{"write", write_profile}, {"new", new_profiler},    {NULL, NULL},
};

/* profile.new(): another profiler with the same functions. */
static int new_profiler(lua_State *L)
{
	const luaL_Reg *f;

	memset(lua_newuserdata(L, sizeof(struct profiler)), 0, sizeof(struct profiler));
	lua_createtable(L, 0, 1);
	lua_pushcfunction(L, collect);
	lua_setfield(L, -2, "__gc");
	lua_setmetatable(L, -2);
	lua_createtable(L, 0, 3);
	lua_createtable(L, 0, sizeof(functions) / sizeof(functions[0]));
	for (f = functions; f->name; f++) {
		lua_pushvalue(L, -3);
		lua_pushvalue(L, -3);
		lua_pushcclosure(L, f->func, 2);
		lua_setfield(L, -2, f->name);
	}
	lua_pushstring(L, luabpf_version());
	lua_setfield(L, -2, "_VERSION");
	return 1;
}

LUABPF_API int luaopen_luabpf_profile(lua_State *L);
LUABPF_API int luaopen_luabpf_profile(lua_State *L)
{
	return new_profiler(L);
}
