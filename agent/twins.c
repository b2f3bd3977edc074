// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>

#include "twins.h"
#include "hook/abi.h"

/* lobject.h, struct Proto, on 64-bit machines; the last line follows the first one */
#if LUA_VERSION_NUM == 501
enum { PROTOS_AT = 32, NPROTOS_AT = 88, LINE_AT = 96 };
#elif LUA_VERSION_NUM == 502
enum { PROTOS_AT = 32, NPROTOS_AT = 96, LINE_AT = 104 };
#elif LUA_VERSION_NUM == 503
enum { PROTOS_AT = 64, NPROTOS_AT = 32, LINE_AT = 40 };
#else
enum { PROTOS_AT = 72, NPROTOS_AT = 32, LINE_AT = 44 };
#endif

/*
 * lj_obj.h, struct GCproto with LJ_GC64: prototypes are among the constants, which lie below k, the first one on top.
 * The number of lines follows the first one.
 */
enum { LJ_K_AT = 32, LJ_NKGC_AT = 48, LJ_LINE_AT = 72, LJ_GCT_AT = 9, LJ_GCT_PROTO = 7 };

static uint32_t word_at(uintptr_t at)
{
	uint32_t word;

	memcpy(&word, (const void *)at, sizeof(word));
	return word;
}

static uintptr_t pointer_at(uintptr_t at)
{
	uintptr_t pointer;

	memcpy(&pointer, (const void *)at, sizeof(pointer));
	return pointer;
}

static uint32_t count(bool luajit, uintptr_t proto)
{
	return word_at(proto + (luajit ? LJ_NKGC_AT : NPROTOS_AT));
}

static uint32_t line_of(bool luajit, uintptr_t proto)
{
	return word_at(proto + (luajit ? LJ_LINE_AT : LINE_AT));
}

static uint32_t last_line_of(bool luajit, uintptr_t proto)
{
	return luajit ? word_at(proto + LJ_LINE_AT) + word_at(proto + LJ_LINE_AT + 4)
		      : word_at(proto + LINE_AT + 4);
}

/* Returns the i-th prototype that this one holds. In LuaJIT, i counts constants: 0 for another constant. */
static uintptr_t held(bool luajit, uintptr_t proto, uint32_t i)
{
	uintptr_t object;

	if (!luajit)
		return pointer_at(pointer_at(proto + PROTOS_AT) + i * sizeof(object));
	object = pointer_at(pointer_at(proto + LJ_K_AT) - (i + 1) * sizeof(object));
	return *(const uint8_t *)(object + LJ_GCT_AT) == LJ_GCT_PROTO ? object : 0;
}

void twins_check(struct twins *t, bool luajit, uintptr_t chunk, uintptr_t first, uintptr_t second)
{
	t->works = count(luajit, chunk) == 2 && line_of(luajit, chunk) == 0 &&
		   line_of(luajit, first) == 2 && last_line_of(luajit, first) == 2 &&
		   line_of(luajit, second) == 3 && last_line_of(luajit, second) == 4 &&
		   held(luajit, chunk, 0) == first && held(luajit, chunk, 1) == second;
}

uint32_t twins_meet(struct twins *t, bool luajit, uintptr_t proto)
{
	struct map_entry *e = map_find(&t->known, proto);
	uint32_t own = e ? (uint32_t)e->value : 0, n = t->works ? count(luajit, proto) : 0;
	uint32_t last = 0, before = 0;

	for (uint32_t i = 0; i < n; i++) {
		uintptr_t inner = held(luajit, proto, i);
		uint32_t number;

		if (!inner)
			continue;
		before = before && line_of(luajit, inner) == last ? before : 0;
		last = last_line_of(luajit, inner);
		number = hook_twin(own, line_of(luajit, proto), line_of(luajit, inner), before++);
		if (number)
			map_put(&t->known, inner, number);
	}
	return own;
}
