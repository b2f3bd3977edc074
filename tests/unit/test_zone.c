// SPDX-License-Identifier: BSD-2-Clause
/*
 * Zone stacks in the tables of each layout: they are found in package.loaded, and their innermost
 * zone is read as BPF reads it.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <unwind/zone.h>

#include "base/cleanup.h"
#include "base/container.h"
#include "fail_each.h"
#include "lua/lj/zone.h"
#include "lua/puc/zone.h"
#include "prof/prof.h"
#include "puc_code.h"
#include "sym/zones.h"

#define MOST 70 /* zones of a stack */

/* A value or a key of a table under test. */
struct item {
	enum { NIL, STRING, UNTAGGED, TABLE, FUNCTION, NUMBER, INTEGER } type;
	const char *text;
	uint32_t len; /* 0: of text */
	uint64_t number;
};

struct pair {
	struct item key, val;
	uint64_t table;
};

/* A VM of one layout: LuaJIT's if puc is NULL. */
struct zone_vm {
	struct test_arena *a;
	const struct puc_layout *puc;
	struct lj_layout lj;
	const char *name;
	struct lb_zone_layout z;
	struct item zones[MOST];
	uint32_t size;	       /* of the array part: keys 1 .. size */
	struct pair nodes[16]; /* of the zone stack's hash part, NIL keys included */
	uint32_t nnodes;       /* a power of two; 0: there is none */
	uint64_t table, g;
	uint64_t loaded_node; /* LuaJIT: of the module in package.loaded */
	uint32_t end_of_page; /* 0; or so many bytes of the array part are before one */
};

static uint64_t double_bits(uint64_t n)
{
	double d = (double)n;
	uint64_t bits;

	memcpy(&bits, &d, sizeof(bits));
	return bits;
}

static uint64_t put_string(struct zone_vm *v, const struct item *i)
{
	uint32_t len = i->len ? i->len : (uint32_t)strlen(i->text);
	uint64_t s;

	if (v->puc)
		return puc_code_lstr(v->a, i->text, len, len <= PUC_SHORT_STRING);
	s = arena_take(v->a, LJ_STR_SIZE + len + 1);
	arena_put8(v->a, s + LJ_STR_GCT, LJ_GCT_STR);
	arena_put32(v->a, s + v->lj.str_len, len);
	arena_put(v->a, s + LJ_STR_SIZE, i->text, len);
	arena_put8(v->a, s + LJ_STR_SIZE + len, 0);
	return s;
}

static uint64_t put_function(struct zone_vm *v)
{
	uint64_t f = arena_take(v->a, 64);

	arena_put8(v->a, f + LJ_FUNC_GCT, LJ_GCT_FUNC);
	return f;
}

/* The word of a LuaJIT value. */
static uint64_t lj_word(struct zone_vm *v, const struct item *i, uint64_t table)
{
	switch (i->type) {
	case NIL:
		return ~0ULL;
	case STRING:
		return (uint64_t)(int64_t)LJ_TSTR << 47 | put_string(v, i);
	case UNTAGGED:
		return put_string(v, i);
	case TABLE:
		return (uint64_t)(int64_t)LJ_TTAB << 47 | table;
	case FUNCTION:
		return (uint64_t)(int64_t)LJ_TFUNC << 47 | put_function(v);
	case NUMBER:
	case INTEGER:
		break;
	}
	return double_bits(i->number);
}

/* The same of PUC Lua; *tt: its type. */
static uint64_t puc_value(struct zone_vm *v, const struct item *i, uint64_t table, uint8_t *tt)
{
	uint8_t collectable = v->puc->version == 51 ? 0 : 0x40;
	uint32_t len;

	switch (i->type) {
	case NIL:
		*tt = 0;
		return 0;
	case UNTAGGED: /* LuaJIT only */
	case STRING:
		len = i->len ? i->len : (uint32_t)strlen(i->text);
		*tt = (len <= PUC_SHORT_STRING ? v->puc->tt_shrstr : v->puc->tt_lngstr) |
		      collectable;
		return put_string(v, i);
	case TABLE:
		*tt = 5 | collectable;
		return table;
	case FUNCTION:
		*tt = v->puc->tt_lcl | collectable;
		return put_function(v);
	case INTEGER:
		if (v->puc->version >= 53) {
			*tt = v->puc->version == 53 ? 0x13 : 3;
			return i->number;
		}
		break;
	case NUMBER:
		break;
	}
	*tt = v->puc->version >= 54 ? 0x13 : 3;
	return double_bits(i->number);
}

static void put_node(struct zone_vm *v, uint64_t at, const struct pair *p)
{
	uint8_t tt;

	if (!v->puc) {
		arena_put64(v->a, at + LJ_NODE_VAL, lj_word(v, &p->val, p->table));
		arena_put64(v->a, at + LJ_NODE_KEY, lj_word(v, &p->key, 0));
		return;
	}
	arena_put64(v->a, at + v->puc->node_val, puc_value(v, &p->val, p->table, &tt));
	arena_put8(v->a, at + v->puc->node_val + PUC_TV_TT, tt);
	arena_put64(v->a, at + v->puc->node_key, puc_value(v, &p->key, 0, &tt));
	arena_put8(v->a, at + v->puc->node_key_tt, tt);
}

/* Element k of an array part whose address is in the table. */
static void put_element(struct zone_vm *v, uint64_t array, uint32_t k, const struct item *i)
{
	uint64_t value;
	uint8_t tt;

	if (!v->puc) {
		arena_put64(v->a, array + 8ULL * k, lj_word(v, i, 0));
		return;
	}
	value = puc_value(v, i, 0, &tt);
	if (v->puc->version == 55) {
		arena_put64(v->a, array - 8ULL * k, value);
		arena_put8(v->a, array + 4 + k - 1, tt);
		return;
	}
	arena_put64(v->a, array + 16ULL * (k - 1), value);
	arena_put8(v->a, array + 16ULL * (k - 1) + 8, tt);
}

static uint64_t put_array(struct zone_vm *v, const struct item *items, uint32_t size)
{
	uint64_t array;

	if (v->end_of_page)
		arena_take(v->a, (LB_PAGE - v->end_of_page - v->a->used) % LB_PAGE);
	array = arena_take(v->a, 16 * (size + 2));
	if (v->puc && v->puc->version == 55)
		array += 8ULL * size + 8;
	for (uint32_t k = 1; k <= size; k++)
		put_element(v, array, k, &items[k - 1]);
	return array;
}

static uint64_t put_table(struct zone_vm *v, const struct item *items, uint32_t size,
			  const struct pair *nodes, uint32_t nnodes)
{
	uint32_t stride = v->puc ? v->puc->node_size : LJ_NODE_SIZE, n = nnodes ? nnodes : 1;
	uint64_t t = arena_take(v->a, 96), node = arena_take(v->a, stride * n);
	uint64_t array = size ? put_array(v, items, size) : 0;
	const struct pair none = {};

	for (uint32_t i = 0; i < n; i++)
		put_node(v, node + (uint64_t)i * stride, nnodes ? &nodes[i] : &none);
	if (v->puc) {
		arena_put8(v->a, t + PUC_GC_TT, 5);
		arena_put8(v->a, t + 10, 0);
		arena_put64(v->a, t + v->puc->t_array, array);
		arena_put32(v->a, t + v->puc->t_sizearray, size);
		arena_put64(v->a, t + v->puc->t_node, node);
		arena_put8(v->a, t + v->puc->t_lsizenode, (uint8_t)__builtin_ctz(n));
		return t;
	}
	arena_put8(v->a, t + LJ_STR_GCT, (uint8_t)~LJ_TTAB);
	arena_put64(v->a, t + LJ_TAB_ARRAY, array);
	arena_put32(v->a, t + LJ_TAB_ASIZE, size ? size + 1 : 0);
	arena_put64(v->a, t + LJ_TAB_NODE, node);
	arena_put32(v->a, t + LJ_TAB_HMASK, n - 1);
	return t;
}

/* The module's table under `module`, in package.loaded. */
static void put_vm(struct zone_vm *v, const char *module)
{
	uint64_t registry, loaded;
	uint8_t tt;

	v->table = put_table(v, v->zones, v->size, v->nodes, v->nnodes);
	loaded = put_table(v, NULL, 0,
			   (struct pair[]){{{STRING, .text = "string"}, {.type = NUMBER}, 0},
					   {{STRING, .text = module}, {.type = TABLE}, v->table}},
			   2);
	registry =
		put_table(v, NULL, 0,
			  (struct pair[]){{{NUMBER, .number = 1}, {.type = TABLE}, v->table},
					  {{STRING, .text = "_LOADED"}, {.type = TABLE}, loaded}},
			  2);
	if (!v->puc) {
		v->loaded_node = arena_get64(v->a, loaded + LJ_TAB_NODE) + LJ_NODE_SIZE;
		v->g = arena_take(v->a, v->lj.registrytv + 8);
		arena_put64(v->a, v->g + v->lj.registrytv,
			    lj_word(v, &(struct item){.type = TABLE}, registry));
		return;
	}
	v->g = arena_take(v->a, v->puc->g_registry + 16);
	arena_put64(v->a, v->g + v->puc->g_registry,
		    puc_value(v, &(struct item){.type = TABLE}, registry, &tt));
	arena_put8(v->a, v->g + v->puc->g_registry + PUC_TV_TT, tt);
}

static int find(const struct zone_vm *v, const struct lb_mem *mem, const char *module,
		struct lb_zone *zone)
{
	return v->puc ? puc_zone_find(mem, v->puc, v->g, module, zone)
		      : lj_zone_find(mem, &v->lj, v->g, module, zone);
}

static void vm_free(struct zone_vm *v)
{
	arena_free(&v->a);
}

/* VM i, of LuaJIT's two kinds of strings and of each layout of PUC Lua, with jit.zone's table that
 * has these zones in an array part of this size. False: there is no more. */
static bool vm_new(struct zone_vm *v, size_t i, const char *const *zones, uint32_t n, uint32_t size)
{
	*v = (struct zone_vm){
		.lj = {.registrytv = 0x40, .str_len = i ? LJ_STR_LEN_2017 : LJ_STR_LEN},
		.name = "LuaJIT",
		.size = size,
		.nnodes = 2};
	if (i > 1) {
		v->puc = puc_layout_row(i - 2, &v->name);
		if (!v->puc)
			return false;
		puc_zone_layout(v->puc, &v->z);
	} else {
		lj_zone_layout(&v->lj, &v->z);
	}
	v->a = arena_new(v->puc);
	v->z.seed = 42;
	v->nodes[0] = (struct pair){{STRING, .text = "flush"}, {.type = FUNCTION}, 0};
	v->nodes[1] = (struct pair){{STRING, .text = "get"}, {.type = FUNCTION}, 0};
	for (uint32_t k = 0; k < n; k++)
		v->zones[k] = (struct item){STRING, .text = zones[k]};
	return true;
}

static struct {
	struct lb_walk w;
	struct lb_cache cache;
} walk;

static uint64_t read_zone(const struct zone_vm *v, const struct lb_mem *mem,
			  const struct lb_zone *zone)
{
	memset(&walk.w.zone, 0xaa, sizeof(walk.w.zone));
	lb_begin(&walk.cache, walk.cache.sample + 1);
	return lb_zone_read(mem, &walk.w, &walk.cache, &v->z, zone);
}

static bool is_name(uint64_t word, const char *text, uint32_t len)
{
	uint32_t n = len < LB_ZONE_TEXT ? len : LB_ZONE_TEXT;

	return word >= LB_ZONE_NAMES && walk.w.zone.len == len &&
	       !memcmp(walk.w.zone.text, text, n);
}

/* Finds and reads; text: the name, NULL: word is expected. */
static void expect(struct zone_vm *v, const char *text, uint64_t word)
{
	const struct lb_mem *mem = arena_mem(v->a);
	struct lb_zone zone;
	uint64_t got;

	cr_assert_eq(find(v, mem, "m", &zone), 0, "%s", v->name);
	cr_assert_eq(zone.table, v->table, "%s", v->name);
	got = read_zone(v, mem, &zone);
	if (text)
		cr_assert(is_name(got, text, (uint32_t)strlen(text)), "%s: %s, %u: %lx %u", v->name,
			  text, v->size, got, walk.w.zone.len);
	else
		cr_assert_eq(got, word, "%s, %u: %lx", v->name, v->size, got);
}

static const char *const *names(void)
{
	static char text[MOST][8];
	static const char *all[MOST];

	for (int i = 0; i < MOST; i++) {
		snprintf(text[i], sizeof(text[i]), "z%d", i + 1);
		all[i] = text[i];
	}
	return all;
}

Test(zone, the_last_element_of_each_depth)
{
	static const uint32_t sizes[] = {0, 1, 2, 3, 4, 7, 8, 9, 16, 17, 64};
	struct zone_vm v;

	for (size_t i = 0; vm_new(&v, i, NULL, 0, 0); i++, vm_free(&v))
		for (size_t s = 0; s < LENGTH(sizes); s++)
			for (uint32_t depth = 0; depth <= sizes[s]; depth += 1 + depth / 8) {
				struct zone_vm one;

				vm_new(&one, i, names(), depth, sizes[s]);
				put_vm(&one, "m");
				expect(&one, depth ? names()[depth - 1] : NULL, LB_ZONE_EMPTY);
				vm_free(&one);
			}
}

/* All of the arena, as pages are read whole, which counts its reads. */
struct zone_counted {
	struct lb_mem mem;
	struct test_arena *a;
	unsigned reads;
};

static int read_counted(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr)
{
	struct zone_counted *c = container_of(mem, struct zone_counted, mem);

	c->reads++;
	if (addr < ARENA_BASE || addr + size > ARENA_BASE + ARENA_SIZE)
		return -EFAULT;
	memcpy(dst, arena_at(c->a, addr, size), size);
	return 0;
}

/* Reads the zone of a stack of so many, where the last sample had `last`. */
static void expect_after(struct zone_vm *v, uint32_t depth, uint32_t last)
{
	struct zone_counted c = {.mem.read = read_counted, .a = v->a};
	struct lb_zone zone;
	uint64_t got;

	cr_assert_eq(find(v, arena_mem(v->a), "m", &zone), 0);
	walk.w.zone_depth = last;
	memset(walk.cache.tag, 0, sizeof(walk.cache.tag)); /* no window is known */
	got = read_zone(v, &c.mem, &zone);
	cr_assert(depth ? is_name(got, names()[depth - 1], (uint32_t)strlen(names()[depth - 1]))
			: got == LB_ZONE_EMPTY,
		  "%s: %u of %u, after %u: %lx", v->name, depth, v->size, last, got);
	cr_assert_eq(walk.w.zone_depth, depth);
	if (v->size && !v->end_of_page && depth + 1 >= last && depth <= last + 2 &&
	    !(v->puc && v->puc->version == 55)) /* whose array part is searched */
		cr_assert_leq(c.reads, 2, "%s: %u of %u, after %u: %u reads", v->name, depth,
			      v->size, last, c.reads);
}

/* The length of the last sample, be it right or not, makes no difference but in time. */
Test(zone, after_another_depth)
{
	static const uint32_t sizes[] = {0, 1, 2, 3, 7, 8, 9, 16, 17, 64};
	struct zone_vm v;

	for (size_t i = 0; vm_new(&v, i, NULL, 0, 0); i++, vm_free(&v))
		for (size_t s = 0; s < LENGTH(sizes); s++)
			for (uint32_t depth = 0; depth <= sizes[s]; depth += 1 + depth / 8) {
				struct zone_vm one;

				vm_new(&one, i, names(), depth, sizes[s]);
				put_vm(&one, "m");
				for (uint32_t last = 0; last <= sizes[s] + 2; last++)
					expect_after(&one, depth, last);
				vm_free(&one);
			}
}

/* An array part of which each number of elements lies in a page, and the others in the next. */
Test(zone, an_array_part_in_two_pages)
{
	struct zone_vm v;

	for (size_t i = 0; vm_new(&v, i, NULL, 0, 0); i++, vm_free(&v))
		for (uint32_t before = 1; before <= 18; before++)
			for (uint32_t depth = 0; depth <= 16; depth++) {
				uint32_t stride = v.puc && v.puc->version < 55 ? 16 : 8;
				struct zone_vm one;

				vm_new(&one, i, names(), depth, 16);
				one.end_of_page = before * stride;
				put_vm(&one, "m");
				for (uint32_t last = 0; last <= 16; last += 1 + last / 4)
					expect_after(&one, depth, last);
				vm_free(&one);
			}
}

/* A table whose hash part has room keeps the first zones, or the next, there. */
Test(zone, zones_in_the_hash_part)
{
	struct zone_vm v;

	for (size_t i = 0; vm_new(&v, i, names(), 2, 2); i++, vm_free(&v)) {
		v.nnodes = 8;
		v.nodes[7] = (struct pair){{INTEGER, .number = 3}, {STRING, .text = "third"}, 0};
		v.nodes[4] = (struct pair){{INTEGER, .number = 4}, {STRING, .text = "fourth"}, 0};
		v.nodes[5] = (struct pair){{INTEGER, .number = 5}, {.type = NIL}, 0};
		v.nodes[3] = (struct pair){{NUMBER, .number = 1000}, {STRING, .text = "far"}, 0};
		put_vm(&v, "m");
		expect(&v, "fourth", 0);
	}
	for (size_t i = 0; vm_new(&v, i, NULL, 0, 0); i++, vm_free(&v)) {
		v.nnodes = 4;
		v.nodes[2] = (struct pair){{INTEGER, .number = 1}, {STRING, .text = "first"}, 0};
		put_vm(&v, "m");
		expect(&v, "first", 0);
	}
}

Test(zone, a_hole_in_the_hash_part_is_unknown)
{
	struct zone_vm v;

	for (size_t i = 0; vm_new(&v, i, names(), 2, 2); i++, vm_free(&v)) {
		v.nnodes = 4;
		v.nodes[2] = (struct pair){{INTEGER, .number = 3}, {STRING, .text = "third"}, 0};
		v.nodes[3] = (struct pair){{INTEGER, .number = 5}, {STRING, .text = "fifth"}, 0};
		put_vm(&v, "m");
		expect(&v, NULL, LB_ZONE_UNKNOWN);
	}
}

Test(zone, not_a_string)
{
	static const struct item others[] = {
		{NUMBER, .number = 7}, {INTEGER, .number = 7}, {.type = FUNCTION}, {.type = TABLE}};
	struct zone_vm v;

	for (size_t k = 0; k < LENGTH(others); k++)
		for (uint32_t size = 2; size < 40; size += 30)
			for (size_t i = 0; vm_new(&v, i, names(), 1, size); i++, vm_free(&v)) {
				v.zones[1] = others[k];
				put_vm(&v, "m");
				expect(&v, NULL, LB_ZONE_NO_STRING);
			}
	for (size_t i = 0; i < 2 && vm_new(&v, i, names(), 1, 2); i++, vm_free(&v)) {
		v.zones[1] = (struct item){UNTAGGED, .text = "z2"}; /* LuaJIT is storing one */
		put_vm(&v, "m");
		expect(&v, "z2", 0);
	}
}

Test(zone, names_of_each_length)
{
	static char text[1001];
	struct zone_vm v;

	for (size_t k = 0; k < sizeof(text) - 1; k++)
		text[k] = (char)('!' + k % 90);
	for (uint32_t len = 0; len < sizeof(text); len += 1 + len / 9) {
		uint64_t first = 0;

		for (size_t i = 0; vm_new(&v, i, NULL, 0, 1); i++, vm_free(&v)) {
			struct lb_zone zone;
			uint64_t got;

			v.zones[0] = (struct item){STRING, .text = len ? text : "", .len = len};
			put_vm(&v, "m");
			cr_assert_eq(find(&v, arena_mem(v.a), "m", &zone), 0);
			got = read_zone(&v, arena_mem(v.a), &zone);
			cr_assert(is_name(got, text, len), "%s: %u: %u", v.name, len,
				  walk.w.zone.len);
			if (!i)
				first = got;
			cr_assert_eq(got, first, "%s: the same name has another hash", v.name);
		}
	}
}

Test(zone, one_byte_more_or_another_is_another_name)
{
	static const char *const texts[] = {"",		"a",	    "b",	 "aa",
					    "aaaaaaaa", "aaaaaaab", "aaaaaaaaa", "baaaaaaa"};
	uint64_t got[LENGTH(texts)];
	struct zone_vm v;

	for (size_t k = 0; k < LENGTH(texts); k++) {
		struct lb_zone zone;

		vm_new(&v, 0, &texts[k], 1, 1);
		put_vm(&v, "m");
		cr_assert_eq(find(&v, arena_mem(v.a), "m", &zone), 0);
		got[k] = read_zone(&v, arena_mem(v.a), &zone);
		vm_free(&v);
		for (size_t j = 0; j < k; j++)
			cr_assert_neq(got[j], got[k], "%s, %s", texts[j], texts[k]);
	}
}

/* Lua 5.4 keeps a hint in place of the array part's size. */
Test(zone, a_hint_is_no_size)
{
	struct zone_vm v;
	int n = 0;

	for (size_t i = 0; vm_new(&v, i, names(), 7, 8); i++, vm_free(&v)) {
		if (!v.puc || v.puc->version != 54)
			continue;
		put_vm(&v, "m");
		arena_put32(v.a, v.table + v.puc->t_sizearray, 5);
		arena_put8(v.a, v.table + 10, 0x80);
		expect(&v, "z7", 0);
		n++;
	}
	cr_assert_gt(n, 0);
}

Test(zone, hostile_sizes)
{
	static const uint32_t sizes[] = {LB_ZONE_SIZE_MOST + 1, UINT32_MAX};
	struct lb_zone zone;
	struct zone_vm v;

	for (size_t i = 0; vm_new(&v, i, names(), 2, 2); i++, vm_free(&v)) {
		put_vm(&v, "m");
		cr_assert_eq(find(&v, arena_mem(v.a), "m", &zone), 0);
		for (size_t s = 0; s < LENGTH(sizes); s++) {
			zone.size = sizes[s];
			cr_assert_eq(read_zone(&v, arena_mem(v.a), &zone), LB_ZONE_UNKNOWN);
			zone.size = 2;
			zone.nodes = sizes[s];
			cr_assert_eq(read_zone(&v, arena_mem(v.a), &zone), LB_ZONE_UNKNOWN);
			zone.nodes = 0;
		}
	}
}

/* What is under the family's own name has to be a zone module. */
Test(zone, the_module)
{
	struct lb_zone zone;
	struct zone_vm v;

	for (size_t i = 0; vm_new(&v, i, names(), 2, 2); i++, vm_free(&v)) {
		const char *module = v.puc ? "zone" : "jit.zone";

		put_vm(&v, module);
		cr_expect_eq(find(&v, arena_mem(v.a), NULL, &zone), 0, "%s", v.name);
		cr_expect_eq(find(&v, arena_mem(v.a), "other", &zone), -ENOENT, "%s", v.name);
		cr_expect_eq(find(&v, arena_mem(v.a), "string", &zone), -ENOENT, "a number");
		v.nodes[1].val.type = NUMBER;
		put_vm(&v, module);
		cr_expect_eq(find(&v, arena_mem(v.a), NULL, &zone), -ENOENT, "%s", v.name);
		cr_expect_eq(find(&v, arena_mem(v.a), module, &zone), 0, "%s", v.name);
		put_vm(&v, v.puc ? "jit.zone" : "zone");
		cr_expect_eq(find(&v, arena_mem(v.a), NULL, &zone), -ENOENT, "%s", v.name);
	}
}

/* What cannot be read is unknown; what is read is right. */
Test(zone, kth_read_fails)
{
	struct zone_vm v;

	for (size_t i = 0; vm_new(&v, i, names(), 20, 32); i++, vm_free(&v)) {
		struct lb_zone zone, found;
		struct fail_each f;

		v.nnodes = 4; /* a free node */
		if (i % 2)
			v.size = 20;
		put_vm(&v, "m");
		cr_assert_eq(find(&v, arena_mem(v.a), "m", &zone), 0);
		fail_each_init(&f, arena_mem(v.a));
		while (fail_each_next(&f)) {
			uint64_t got = read_zone(&v, &f.mem.mem, &zone);

			cr_assert(got == LB_ZONE_UNKNOWN || is_name(got, "z20", 3), "%s: %lx",
				  v.name, got);
		}
		fail_each_init(&f, arena_mem(v.a));
		while (fail_each_next(&f)) {
			if (find(&v, &f.mem.mem, "m", &found))
				continue;
			cr_assert_eq(found.array, zone.array);
			cr_assert_eq(found.size, zone.size);
		}
	}
}

/* ---- labels ---------------------------------------------------------------------------------- */

static struct lb_zone registered;
static int sets;

static int on_set(void *arg, const struct lb_zone_key *key, const struct lb_zone *zone)
{
	(void)arg, (void)key;
	registered = *zone;
	sets++;
	return 0;
}

/* A recording of one VM. */
struct recording {
	struct zones *zones;
	struct vm_zones *vms;
	struct lb_build build;
	uint32_t round;
};

static void begin(struct recording *r, struct zone_vm *v)
{
	*r = (struct recording){.build = {.family = LB_FAMILY_LJ, .lj.lj = v->lj}};
	cr_assert_eq(zones_new(&(struct zones_options){.set = on_set, .module = "m"}, &r->zones),
		     0);
	registered = (struct lb_zone){};
	sets = 0;
}

static void end(struct recording *r)
{
	vm_zones_free(&r->vms);
	zones_free(&r->zones);
}

/* The label of a sample that BPF took by the last registered generation, in a round of its own. */
static const char *label(struct recording *r, struct zone_vm *v, const struct lb_mem *mem,
			 uint64_t zone)
{
	struct lb_rec_sample rec = {.vm = v->g, .pid = 1, .epoch = 1, .zone = zone};

	const char *text = zones_label(r->zones, &r->vms, mem, &r->build, &rec, ++r->round);

	zones_count(r->zones, text, 1);
	return text;
}

static uint64_t now(uint64_t word)
{
	return LB_ZONE(word, registered.generation);
}

static void send(struct recording *r, uint64_t word, const char *text)
{
	struct lb_rec_zone rec = {.word = word, .len = (uint32_t)strlen(text)};

	memcpy(rec.text, text, rec.len);
	cr_assert_eq(zones_name(r->zones, &rec), 0);
}

Test(zone, a_label_needs_the_present_generation)
{
	struct recording r;
	struct zone_vm v;
	uint64_t old;

	vm_new(&v, 0, names(), 1, 1);
	put_vm(&v, "m");
	begin(&r, &v);
	send(&r, 100, "z1");
	cr_expect_str_eq(label(&r, &v, arena_mem(v.a), LB_ZONE(LB_ZONE_UNSEEN, 0)),
			 PROF_UNKNOWN_ZONE, "before it was found");
	cr_assert_eq(sets, 1);
	cr_expect_eq(registered.table, v.table);
	cr_expect_str_eq(label(&r, &v, arena_mem(v.a), now(100)), "z1");
	cr_expect_str_eq(label(&r, &v, arena_mem(v.a), now(101)), PROF_UNKNOWN_ZONE, "no name");
	cr_expect_str_eq(label(&r, &v, arena_mem(v.a), now(LB_ZONE_EMPTY)), PROF_NO_ZONE);
	cr_expect_str_eq(label(&r, &v, arena_mem(v.a), now(LB_ZONE_NO_STRING)), "(not a string)");
	cr_expect_str_eq(label(&r, &v, arena_mem(v.a), now(LB_ZONE_UNKNOWN)), PROF_UNKNOWN_ZONE);
	cr_expect_null(label(&r, &v, arena_mem(v.a), 0), "zones are not recorded");
	cr_assert_eq(sets, 1);

	old = now(100);
	arena_put32(v.a, v.table + LJ_TAB_ASIZE, 1); /* its array part has moved */
	cr_expect_str_eq(label(&r, &v, arena_mem(v.a), old), PROF_UNKNOWN_ZONE);
	cr_assert_eq(sets, 2);
	cr_expect_str_eq(label(&r, &v, arena_mem(v.a), old), PROF_UNKNOWN_ZONE,
			 "of a sample between the search and its registration");
	cr_expect_str_eq(label(&r, &v, arena_mem(v.a), now(100)), "z1");
	end(&r);
	vm_free(&v);
}

static int read_ended(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr)
{
	(void)mem, (void)dst, (void)size, (void)addr;
	return -ESRCH;
}
static const struct lb_mem ended = {.read = read_ended};

Test(zone, a_module_that_comes_later_and_goes)
{
	struct recording r;
	struct zones_counts counts;
	struct zone_vm v;
	uint64_t old;

	vm_new(&v, 0, names(), 1, 1);
	put_vm(&v, "n"); /* not the one */
	begin(&r, &v);
	send(&r, 100, "z1");
	cr_expect_str_eq(label(&r, &v, arena_mem(v.a), LB_ZONE(LB_ZONE_UNSEEN, 0)), PROF_NO_ZONE);
	zones_counts(r.zones, &counts);
	cr_expect(counts.vms == 1 && counts.without == 1 && !counts.unknown);
	cr_expect_str_eq(label(&r, &v, arena_mem(v.a), now(LB_ZONE_ABSENT)), PROF_NO_ZONE);
	old = now(LB_ZONE_ABSENT);
	arena_put(v.a, arena_get64(v.a, v.loaded_node + LJ_NODE_KEY) % (1ULL << 47) + LJ_STR_SIZE,
		  "m", 1);
	cr_expect_str_eq(label(&r, &v, arena_mem(v.a), old), PROF_UNKNOWN_ZONE,
			 "it may have come before the sample");
	zones_counts(r.zones, &counts);
	cr_expect(counts.vms == 1 && !counts.without && counts.unknown == 1);
	cr_expect_str_eq(label(&r, &v, arena_mem(v.a), now(100)), "z1");
	old = now(100);
	cr_expect_str_eq(label(&r, &v, &ended, old), "z1",
			 "a process that has ended keeps what was known");
	arena_put64(v.a, v.loaded_node + LJ_NODE_VAL, 0);
	cr_expect_str_eq(label(&r, &v, arena_mem(v.a), old), PROF_UNKNOWN_ZONE);
	cr_expect_str_eq(label(&r, &v, arena_mem(v.a), now(LB_ZONE_ABSENT)), PROF_UNKNOWN_ZONE,
			 "the program may use it still");
	zones_counts(r.zones, &counts);
	cr_expect(counts.vms == 1 && !counts.without, "a VM that is closed had one");
	end(&r);
	vm_free(&v);
}

Test(zone, a_process_that_ended_before_the_search)
{
	struct recording r;
	struct zone_vm v;

	vm_new(&v, 0, names(), 1, 1);
	put_vm(&v, "m");
	begin(&r, &v);
	v.g += 8; /* nothing is there */
	cr_expect_str_eq(label(&r, &v, arena_mem(v.a), LB_ZONE(LB_ZONE_UNSEEN, 0)),
			 PROF_UNKNOWN_ZONE);
	cr_expect_str_eq(label(&r, &v, arena_mem(v.a), now(LB_ZONE_ABSENT)), PROF_UNKNOWN_ZONE);
	end(&r);
	vm_free(&v);
}

/* A table that is put back before the round's end cannot be distinguished from one that stayed. */
Test(zone, a_stack_that_is_replaced_again_is_not_trusted)
{
	struct recording r;
	struct zone_vm v;
	uint64_t other;

	vm_new(&v, 0, names(), 1, 1);
	put_vm(&v, "m");
	begin(&r, &v);
	send(&r, 100, "z1");
	other = put_table(&v, v.zones, v.size, v.nodes, v.nnodes);
	label(&r, &v, arena_mem(v.a), LB_ZONE(LB_ZONE_UNSEEN, 0));
	for (int i = 0; i < 2; i++) {
		uint64_t t = i % 2 ? v.table : other;

		arena_put64(v.a, v.loaded_node + LJ_NODE_VAL, (uint64_t)(int64_t)LJ_TTAB << 47 | t);
		cr_expect_str_eq(label(&r, &v, arena_mem(v.a), now(100)), PROF_UNKNOWN_ZONE);
		cr_expect_str_eq(label(&r, &v, arena_mem(v.a), now(100)),
				 i ? PROF_UNKNOWN_ZONE : "z1");
	}
	end(&r);
	vm_free(&v);
}
