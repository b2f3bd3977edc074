// SPDX-License-Identifier: BSD-2-Clause
/*
 * The module that an interpreter loads under `luabpf count` or `luabpf trace`, built for each Lua's
 * headers (5.1: LuaJIT, too). It sets a hook in C, which counts calls by function, or writes events,
 * into the state's file (user/hook/abi.h). It keeps no Lua object alive and makes none that the
 * program could notice, so that collections come and finalizers run as without it.
 *
 * A function's ID. Its closure's address is looked up in a small cache. Behind that, closures of one
 * prototype have one ID: `known` maps the prototype's address to it. Memory that the collector frees
 * is used again, so the module stands before the state's allocator: an address that is freed is
 * forgotten. A prototype that is not known is recognised by a hash of the function as lua_dump()
 * writes it, so that what is loaded twice is one function, and two functions on one line are two.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lua.h>
#include <lauxlib.h>

#include "describe.h"
#include "jit.h"
#include "loaded.h"
#include "map.h"
#include "name.h"
#include "share.h"
#include "twins.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define LUA51 (LUA_VERSION_NUM == 501)

/* Keys of the registry. luaL_ref() takes positive ones. */
#define KEY_STATE (-0x6c7561)
#define KEY_GUARD (-0x6c7562)

/*
 * Where a closure of a Lua function has its prototype's address: lobject.h's LClosure.p; LuaJIT,
 * with 64-bit references: GCfuncL.pc, the address of the prototype's bytecode.
 */
#define PROTO_AT (LUA51 ? 32 : 24)

#define CACHE_SLOTS 8192
#define NAME_MAX_LEN 256

/* Event 4 is the return from a function that was left by a tail call in 5.1, else a tail call. */
#define EVENT_4 4

struct slot {
	const void *closure;
	struct hook_func *func;
};

struct state {
	struct share share;
	bool off; /* events go only to the program's hook */
	bool trace;
	bool took_long; /* this hook: a function was described */
	bool luajit;
	bool protos;	      /* PROTO_AT and proto_head hold for this build */
	uintptr_t proto_head; /* bytes of the prototype before the address that is at PROTO_AT */
	uint64_t builtins[NAME_BUILTINS]; /* their keys */
	struct map known;		  /* address of a prototype or C function: ID */
	struct twins twins;
	struct map defined; /* identity: ID */
	struct map sources; /* hash of a source: its bytes */
	struct map files;   /* the same: those of its file */
	struct map hooked;  /* thread: mask and count of the program's hook */
	lua_Hook program_hook;
	lua_CFunction sethook, gethook; /* the debug library's */
	lua_Alloc alloc;
	void *alloc_arg;
	struct slot cache[CACHE_SLOTS];
};

static void on_event(lua_State *L, lua_Debug *ar);

/* ---- the state of a lua_State ---------------------------------------------------------------- */

static struct state *only_state; /* NULL: none, or there were several */

static struct state *find_state(lua_State *L)
{
	struct state *st;

	lua_rawgeti(L, LUA_REGISTRYINDEX, KEY_STATE);
	st = lua_touserdata(L, -1);
	lua_pop(L, 1);
	return st;
}

static inline struct state *state_of(lua_State *L)
{
	return likely(only_state) ? only_state : find_state(L);
}

/* ---- addresses that are freed ---------------------------------------------------------------- */

static inline struct slot *slot_of(struct state *st, const void *closure)
{
	return &st->cache[map_hash((uintptr_t)closure) % CACHE_SLOTS];
}

static inline void forget(struct state *st, void *freed)
{
	struct slot *slot = slot_of(st, freed);
	struct map_entry *e = map_find(&st->known, (uintptr_t)freed);

	if (slot->closure == freed)
		slot->closure = NULL;
	if (unlikely(e))
		map_remove(&st->known, e);
	twins_forget(&st->twins, (uintptr_t)freed);
}

static void *on_alloc(void *arg, void *block, size_t old_size, size_t new_size)
{
	struct state *st = arg;

	if (block && !new_size)
		forget(st, block);
	return st->alloc(st->alloc_arg, block, old_size, new_size);
}

/* ---- a function that is new ------------------------------------------------------------------ */

static struct hook_bytes put_name(struct state *st, const char *name)
{
	return share_put(&st->share, name, strnlen(name, NAME_MAX_LEN));
}

/* The executable has the name by which it was called. */
static struct hook_bytes put_module(struct state *st, const char *path)
{
	char exe[PATH_MAX];
	ssize_t n = *path == '/' ? 0 : readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n <= 0)
		return describe_source(&st->share, &st->sources, path);
	exe[n] = '\0';
	return describe_source(&st->share, &st->sources, exe);
}

/* The name at a C function's call; NULL: it has none. A generic `for` calls any iterator by one name. */
static const char *called_c(struct state *st, lua_State *L, lua_Debug *ar)
{
	const char *name = name_of_call(L, ar, st->luajit);

	return !name || *name == '(' || !strcmp(name, "for iterator") ? NULL : name;
}

/* Describes the C function on top of the stack. Returns its identity in this state: the key, or a
 * hash of its name if the key is 0. */
static uint64_t describe_c(struct state *st, lua_State *L, lua_Debug *ar, uint64_t key,
			   struct hook_func *func)
{
	lua_CFunction address = lua_tocfunction(L, -1);
	char name[NAME_MAX_LEN] = "";
	Dl_info info;

	func->kind = HOOK_C;
	if (address && dladdr((void *)address, &info) && info.dli_fname) {
		func->identity = (uintptr_t)address - (uintptr_t)info.dli_fbase;
		func->source = put_module(st, info.dli_fname);
	}
	if (!name_in_loaded(L, name, sizeof(name))) {
		const char *called = name_of_builtin(st->builtins, key) ?: called_c(st, L, ar);

		if (called)
			snprintf(name, sizeof(name), "%s", called);
		else if (func->identity && info.dli_sname)
			snprintf(name, sizeof(name), "%s", info.dli_sname);
	}
	if (*name)
		func->name = put_name(st, name);
	return key ? key : describe_hash_bytes(name, strlen(name)) | 1;
}

static void describe_lua(struct state *st, lua_State *L, lua_Debug *ar, struct hook_func *func)
{
	const char *name = name_of_call(L, ar, st->luajit);

	lua_getinfo(L, "S", ar);
	func->kind = *ar->what == 'm' ? HOOK_MAIN : HOOK_LUA;
	func->line = ar->linedefined < 0 ? 0 : ar->linedefined;
	func->last_line = ar->lastlinedefined < 0 ? 0 : ar->lastlinedefined;
	func->source = describe_source(&st->share, &st->sources, ar->source);
	if (name && func->kind == HOOK_LUA)
		func->name = put_name(st, name);
}

/*
 * Returns the ID of the function on top of the stack, which runs in the frame `ar`. key: what makes
 * it out among those of the state that are alive, or 0.
 */
static uint32_t define(struct state *st, lua_State *L, lua_Debug *ar, uint64_t key)
{
	struct hook_func func = {};
	bool finalizers = false;
	struct map_entry *e;
	uint64_t identity;
	uint32_t id;

	if (lua_iscfunction(L, -1)) {
		identity = describe_c(st, L, ar, key, &func);
	} else {
		func.twin = key ? twins_meet(&st->twins, st->luajit, key) : 0;
		identity = describe_hash(L, st->luajit, &finalizers);
		identity = func.identity = hook_twin_hash(identity, func.twin) ?: 1;
		st->share.head->flags |= finalizers ? HOOK_FINALIZERS : 0;
	}
	e = map_find(&st->defined, identity);
	if (e) {
		id = e->value;
	} else {
		if (!lua_iscfunction(L, -1))
			describe_lua(st, L, ar, &func);
		if (!lua_iscfunction(L, -1) && st->trace) {
			func.dump = describe_dump(&st->share, L);
			func.file = describe_file(&st->share, &st->files, ar->source);
		}
		id = share_add(&st->share, &func);
		if (id)
			map_put(&st->defined, identity, id);
	}
	if (id && key)
		map_put(&st->known, key, id);
	return id;
}

/* The function on top of the stack: its prototype, C function or LuaJIT builtin. 0: cannot say. */
static uint64_t function_key(struct state *st, lua_State *L, const void *closure)
{
	lua_CFunction c = lua_tocfunction(L, -1);
	uintptr_t word;

	if (c)
		return (uintptr_t)c;
	if (!st->protos)
		return 0;
	memcpy(&word, (const char *)closure + PROTO_AT, sizeof(word));
	return lua_iscfunction(L, -1) ? word : word - st->proto_head;
}

static void remember(struct state *st, lua_State *L, lua_Debug *ar, const void *closure,
		     struct slot *slot)
{
	uint64_t key = function_key(st, L, closure);
	struct map_entry *e = key ? map_find(&st->known, key) : NULL;
	uint32_t id = e ? e->value : define(st, L, ar, key);
	void *arg;

	st->took_long = true;
	if (lua_getallocf(L, &arg) != on_alloc)
		st->share.head->flags |= HOOK_REALLOCATED;
	slot->func = &st->share.funcs[id];
	slot->closure = closure;
}

/* A call site may have a name for a function that was called without one before. */
static void name_again(struct state *st, lua_State *L, lua_Debug *ar, struct hook_func *func)
{
	const char *name;

	if (func->kind != HOOK_LUA && func->kind != HOOK_C)
		return;
	lua_getinfo(L, "f", ar);
	name = func->kind == HOOK_C ? called_c(st, L, ar) : name_of_call(L, ar, st->luajit);
	if (name)
		func->name = put_name(st, name);
	lua_pop(L, 1);
}

/* The function that runs in the frame `ar`. */
static inline struct hook_func *function_of(struct state *st, lua_State *L, lua_Debug *ar)
{
	const void *closure;
	struct slot *slot;

	lua_getinfo(L, "f", ar);
	closure = lua_topointer(L, -1);
	slot = slot_of(st, closure);
	if (unlikely(slot->closure != closure))
		remember(st, L, ar, closure, slot);
	lua_pop(L, 1);
	return slot->func;
}

static inline struct hook_func *count_call(struct state *st, lua_State *L, lua_Debug *ar)
{
	struct hook_func *func = function_of(st, L, ar);
	uint64_t calls = ++func->calls;

	if (unlikely(!func->name.len && !(calls & (calls - 1))))
		name_again(st, L, ar, func);
	return func;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* LuaJIT: the frame's slot; the bits above have its size if lua_getstack() found it. */
static inline uint64_t frame_of(struct state *st, lua_Debug *ar)
{
	uint64_t frame = (uintptr_t)ar->i_ci;

	return st->luajit ? frame & 0xffff : frame;
}

/* False: luabpf has ended. time: when the hook began, so that its own time is not the program's. */
static inline bool put_event(struct state *st, lua_State *L, uint64_t frame, uint32_t kind,
			     uint32_t value, uint64_t time)
{
	struct hook_event *ev = share_event(&st->share);

	if (unlikely(!ev)) {
		st->off = true;
		return false;
	}
	ev->time = time;
	ev->thread = (uintptr_t)L;
	ev->frame = frame;
	ev->func = kind == HOOK_EV_LINE ? 0 : value;
	ev->kind_and_line = kind << 24 | (kind == HOOK_EV_LINE ? value & HOOK_LINE_MAX : 0);
	share_commit(&st->share);
	return true;
}

/*
 * LuaJIT reports no return of a C function: the caller's frame shows which ones have returned before
 * this call.
 */
static inline uint64_t called_frame(struct state *st, lua_State *L, lua_Debug *ar)
{
	uint64_t frame = frame_of(st, ar);
	lua_Debug caller;

	if (LUA51 && st->luajit && lua_getstack(L, 1, &caller))
		frame |= frame_of(st, &caller) << 32;
	return frame;
}

/* The functions that run already, outermost first. */
static void put_frames(struct state *st, lua_State *L)
{
	lua_Debug ar;
	int n = 0;

	while (lua_getstack(L, n, &ar))
		n++;
	while (n-- > 0) {
		if (!lua_getstack(L, n, &ar))
			continue;
		if (!put_event(st, L, frame_of(st, &ar), HOOK_EV_FRAME,
			       function_of(st, L, &ar) - st->share.funcs, share_now()))
			return;
	}
}

static void trace_event(struct state *st, lua_State *L, lua_Debug *ar)
{
	uint64_t time = share_now(), frame;
	uint32_t kind, value = 0;

	st->took_long = false;
	switch (ar->event) {
	case LUA_HOOKLINE:
		kind = HOOK_EV_LINE;
		value = ar->currentline < 0 ? 0 : ar->currentline;
		frame = frame_of(st, ar);
		break;
	case LUA_HOOKCALL:
		kind = HOOK_EV_CALL;
		value = count_call(st, L, ar) - st->share.funcs;
		frame = called_frame(st, L, ar);
		break;
	case LUA_HOOKRET:
		kind = HOOK_EV_RETURN;
		frame = frame_of(st, ar);
		break;
	case EVENT_4:
		kind = LUA51 ? HOOK_EV_TAIL_RETURN : HOOK_EV_TAIL_CALL;
		if (!LUA51)
			value = count_call(st, L, ar) - st->share.funcs;
		frame = frame_of(st, ar);
		break;
	default:
		return;
	}
	if (put_event(st, L, frame, kind, value, time) && unlikely(st->took_long))
		share_waited(&st->share, time);
}

static void after_fork(struct state *st, lua_State *L)
{
	memset(st->cache, 0, sizeof(st->cache)); /* it points into the parent's file */
	if (!share_fork(&st->share))
		st->off = true;
	else if (st->trace)
		put_frames(st, L);
}

static int our_mask(const struct state *st)
{
	return st->off ? 0 : st->trace ? LUA_MASKCALL | LUA_MASKRET | LUA_MASKLINE : LUA_MASKCALL;
}

/* ---- the program's own hook ------------------------------------------------------------------ */

/* The program's hook of this thread; LuaJIT has one for all. */
static struct map_entry *find_hooked(struct state *st, lua_State *L)
{
	return map_find(&st->hooked, st->luajit ? 1 : (uintptr_t)L);
}

/* The thread's hook is the program's: from now on the module's stands before it. */
static void take_hook(struct state *st, lua_State *L)
{
	lua_Hook hook = lua_gethook(L);
	int mask = lua_gethookmask(L), count = lua_gethookcount(L);
	struct map_entry *e = find_hooked(st, L);

	if (hook == on_event)
		return;
	if (hook) {
		st->program_hook = hook;
		map_put(&st->hooked, st->luajit ? 1 : (uintptr_t)L,
			(uint64_t)mask << 32 | (uint32_t)count);
		if (!st->off)
			st->share.head->flags |= HOOK_PROGRAM_HOOK;
	} else if (e) {
		map_remove(&st->hooked, e);
	}
	lua_sethook(L, on_event, mask | our_mask(st), count);
}

static void give_hook_back(struct state *st, lua_State *L)
{
	struct map_entry *e = find_hooked(st, L);

	if (e)
		lua_sethook(L, st->program_hook, e->value >> 32, (int)(uint32_t)e->value);
	else
		lua_sethook(L, NULL, 0, 0);
}

static lua_State *thread_argument(lua_State *L)
{
	return lua_isthread(L, 1) ? lua_tothread(L, 1) : L;
}

/*
 * Stand in the debug library for its own functions, which do the work on the same arguments. An
 * error of theirs leaves before it has changed a hook.
 */
static int sethook(lua_State *L)
{
	struct state *st = find_state(L);
	lua_State *thread = thread_argument(L);
	int results = st->sethook(L);

	take_hook(st, thread);
	return results;
}

static int gethook(lua_State *L)
{
	struct state *st = find_state(L);
	lua_State *thread = thread_argument(L);
	int results;

	if (lua_gethook(thread) != on_event)
		return st->gethook(L);
	give_hook_back(st, thread);
	results = st->gethook(L);
	take_hook(st, thread);
	return results;
}

static lua_CFunction replace(lua_State *L, const char *name, lua_CFunction with)
{
	lua_CFunction was;

	lua_getfield(L, -1, name);
	was = lua_tocfunction(L, -1);
	lua_pop(L, 1);
	if (was) {
		lua_pushcfunction(L, with);
		lua_setfield(L, -2, name);
	}
	return was;
}

static void replace_debug(struct state *st, lua_State *L)
{
	lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
	lua_getfield(L, -1, "debug");
	if (lua_istable(L, -1)) {
		st->sethook = replace(L, "sethook", sethook);
		st->gethook = replace(L, "gethook", gethook);
	}
	lua_pop(L, 2);
}

static int event_mask(int event)
{
	switch (event) {
	case LUA_HOOKCALL:
		return LUA_MASKCALL;
	case LUA_HOOKRET:
		return LUA_MASKRET;
	case LUA_HOOKLINE:
		return LUA_MASKLINE;
	case LUA_HOOKCOUNT:
		return LUA_MASKCOUNT;
	}
	return LUA51 ? LUA_MASKRET : LUA_MASKCALL;
}

static void forward(struct state *st, lua_State *L, lua_Debug *ar)
{
	struct map_entry *e = find_hooked(st, L);

	if (e && (e->value >> 32) & event_mask(ar->event))
		st->program_hook(L, ar);
}

static void on_event(lua_State *L, lua_Debug *ar)
{
	struct state *st = state_of(L);

	if (unlikely(!st))
		return; /* the state closes */
	if (likely(!st->off) && unlikely(!share_is_mine(&st->share)))
		after_fork(st, L);
	if (likely(!st->off)) {
		if (st->trace)
			trace_event(st, L, ar);
		else if (ar->event == LUA_HOOKCALL || (!LUA51 && ar->event == EVENT_4))
			count_call(st, L, ar);
	}
	if (unlikely(st->hooked.n))
		forward(st, L, ar);
}

/* ---- start and end --------------------------------------------------------------------------- */

/* Runs when the state closes. */
static int on_close(lua_State *L)
{
	struct state *st = find_state(L);
	void *arg;

	if (!st)
		return 0;
	if (!st->off && share_is_mine(&st->share) && lua_gethook(L) != on_event)
		st->share.head->flags |= HOOK_REPLACED;
	only_state = NULL;
	lua_pushnil(L);
	lua_rawseti(L, LUA_REGISTRYINDEX, KEY_STATE);
	share_close(&st->share);
	if (lua_getallocf(L, &arg) != on_alloc)
		return 0; /* it may be called on through another one */
	lua_setallocf(L, st->alloc, st->alloc_arg);
	map_free(&st->known);
	map_free(&st->twins.known);
	map_free(&st->defined);
	map_free(&st->sources);
	map_free(&st->files);
	map_free(&st->hooked);
	free(st);
	return 0;
}

static void set_guard(lua_State *L)
{
	lua_newuserdata(L, 1);
	lua_createtable(L, 0, 1);
	lua_pushcfunction(L, on_close);
	lua_setfield(L, -2, "__gc");
	lua_setmetatable(L, -2);
	lua_rawseti(L, LUA_REGISTRYINDEX, KEY_GUARD);
}

static uintptr_t word_at(lua_State *L, int closure)
{
	uintptr_t word;

	memcpy(&word, (const char *)lua_topointer(L, closure) + PROTO_AT, sizeof(word));
	return word;
}

#if LUA51
/* The prototype's address of the function at this index, by jit.util.funcinfo(); 0: none. */
static uintptr_t lj_proto(lua_State *L, int closure)
{
	lua_getfield(L, LUA_GLOBALSINDEX, "package");
	lua_getfield(L, -1, "preload");
	lua_getfield(L, -1, "jit.util"); /* require() would leave it in package.loaded */
	if (!lua_isfunction(L, -1) || lua_pcall(L, 0, 1, 0) || !lua_istable(L, -1))
		return 0;
	lua_getfield(L, -1, "funcinfo");
	lua_pushvalue(L, closure);
	if (lua_pcall(L, 1, 1, 0) || !lua_istable(L, -1))
		return 0;
	lua_getfield(L, -1, "proto");
	return (uintptr_t)lua_topointer(L, -1);
}
#endif

/* Makes two closures each of two functions, and compares what is at PROTO_AT. */
static void check_protos(struct state *st, lua_State *L)
{
	static const char code[] =
		"local x = ...\nreturn function() return x end,\nfunction() return x,\nx end";
	int at = lua_gettop(L) + 1;
	uintptr_t word = 0, second = 0;

	if (!luaL_loadbuffer(L, code, sizeof(code) - 1, HOOK_OWN_SOURCE)) {
		lua_pushvalue(L, at);
		lua_pushinteger(L, 1);
		if (!lua_pcall(L, 1, 2, 0)) {
			lua_pushvalue(L, at);
			lua_pushinteger(L, 2);
			if (!lua_pcall(L, 1, 2, 0)) {
				word = word_at(L, at + 1);
				second = word_at(L, at + 2);
				st->protos = word == word_at(L, at + 3) &&
					     second == word_at(L, at + 4) && word != second;
			}
		}
	}
#if LUA51
	if (st->protos && st->luajit) {
		uintptr_t proto = lj_proto(L, at + 1);

		st->protos = proto && proto < word && word - proto < 256;
		st->proto_head = word - proto;
	}
#endif
	if (st->protos)
		twins_check(&st->twins, st->luajit, word_at(L, at) - st->proto_head,
			    word - st->proto_head, second - st->proto_head);
	lua_settop(L, at - 1);
}

/*
 * Runs a function of nothing but calls and lines, so that luabpf can subtract what the hook takes: its
 * events go the way of all.
 */
static void calibrate(lua_State *L)
{
	static const char code[] = "local function f()\nend\nlocal x = 0\n"
				   "for i = 1, 300 do\nx = x + i\nx = x - i\nf()\nend\n";
	int top = lua_gettop(L);

	if (!luaL_loadbuffer(L, code, sizeof(code) - 1, HOOK_OWN_SOURCE))
		lua_pcall(L, 0, 0, 0);
	lua_settop(L, top);
}

static void find_builtins(struct state *st, lua_State *L)
{
	for (int i = 0; i < NAME_BUILTINS; i++) {
		if (!name_push_builtin(L, i))
			continue;
		st->builtins[i] = function_key(st, L, lua_topointer(L, -1));
		lua_pop(L, 1);
	}
}

/* Sets the hook; the main thread's, too. */
static void set_hooks(struct state *st, lua_State *L)
{
	take_hook(st, L);
#if LUA_VERSION_NUM >= 502
	lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
	if (lua_tothread(L, -1))
		take_hook(st, lua_tothread(L, -1));
	lua_pop(L, 1);
#endif
}

/* The functions that run already may hold twins. */
static void meet_frames(struct state *st, lua_State *L)
{
	lua_Debug ar;
	uint64_t key;

	for (int i = 0; st->protos && lua_getstack(L, i, &ar); i++) {
		lua_getinfo(L, "f", &ar);
		key = lua_iscfunction(L, -1) ? 0 : function_key(st, L, lua_topointer(L, -1));
		if (key)
			twins_meet(&st->twins, st->luajit, key);
		lua_pop(L, 1);
	}
}

/* False: luabpf did not start this process, or there is no file to be had. */
static bool start(lua_State *L, bool late)
{
	static bool had_state;
	uint32_t mode = share_mode();
	struct state *st;

	if (!mode || find_state(L))
		return mode;
	st = calloc(1, sizeof(*st));
	if (!st)
		return false;
	st->trace = mode == HOOK_TRACE;
	st->luajit = IS_LUAJIT;
	if (!share_open(&st->share, mode, st->luajit ? HOOK_VM_LUAJIT : LUA_VERSION_NUM)) {
		free(st);
		return false;
	}
	if (late)
		st->share.head->flags |= HOOK_LATE;
	check_protos(st, L);
	meet_frames(st, L);
	if (st->luajit)
		find_builtins(st, L);
#if LUA51
	if (st->luajit && !lua_gethook(L) && !jit_keep_calls(L))
		st->share.head->flags |= HOOK_JIT_HIDES;
#endif
	set_guard(L);
	lua_pushlightuserdata(L, st);
	lua_rawseti(L, LUA_REGISTRYINDEX, KEY_STATE);
	replace_debug(st, L);
	only_state = __atomic_exchange_n(&had_state, true, __ATOMIC_RELAXED) ? NULL : st;
	st->alloc = lua_getallocf(L, &st->alloc_arg);
	lua_setallocf(L, on_alloc, st);
	if (st->trace)
		put_frames(st, L);
	set_hooks(st, L);
	if (st->trace)
		calibrate(L);
	return true;
}

/* require() gives arguments; what luabpf puts into LUA_INIT (agent/init.lua) gives none. */
__attribute__((visibility("default"))) int luaopen_luabpf_hook(lua_State *L)
{
	bool active = start(L, lua_gettop(L) > 0);

	lua_createtable(L, 0, 1);
	lua_pushboolean(L, active);
	lua_setfield(L, -2, "active");
	return 1;
}
