/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prototypes, built in an image. That names agree with LuaJIT's own is for
 * tests/e2e/test_luasym.py to show; here are the edges: what is missing, torn, or not what it says.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unwind/lj/layout.h>

#include "arena.h"
#include "base/cleanup.h"
#include "base/mem_image.h"
#include "lua/lj/proto.h"
#include "lua/lj/bc.h"

static const struct lj_layout layout = {.registrytv = 0x40, .str_len = LJ_STR_LEN};

#define AD(op, a, d) ((uint32_t)LJ_BC_##op | (uint32_t)(a) << 8 | (uint32_t)(d) << 16)
#define ABC(op, a, b, c) AD(op, a, (uint32_t)(b) << 8 | (c))

struct luasym_source {
	const uint32_t *bc;
	uint32_t nbc;
	const uint64_t *kgc; /* [i]: what operand D = i means */
	uint32_t nkgc;
	const char *uvinfo, *varinfo;
	uint32_t uvlen, varlen;
	uint32_t numline;
};

/* Line of instruction i is 10 + i, cut to numline. */
static uint64_t proto(struct test_arena *a, const struct luasym_source *s)
{
	uint32_t width = s->numline < 256 ? 1 : s->numline < 65536 ? 2 : 4;
	uint32_t k = (LJ_PROTO_SIZE + 4 * s->nbc + 8 * s->nkgc + 7) & ~7u, i;
	uint32_t line = k, uv = line + width * (s->nbc - 1), var = uv + s->uvlen;
	uint32_t size = var + s->varlen;
	uint64_t chunk = arena_lj_str(a, "@/srv/app/main.lua"), p = arena_take(a, size);

	arena_put8(a, p + LJ_PROTO_GCT, LJ_GCT_PROTO);
	arena_put32(a, p + LJ_PROTO_SIZEBC, s->nbc);
	arena_put64(a, p + LJ_PROTO_K, p + k);
	arena_put32(a, p + LJ_PROTO_SIZEKGC, s->nkgc);
	arena_put32(a, p + LJ_PROTO_SIZEPT, size);
	arena_put8(a, p + LJ_PROTO_SIZEUV, 2);
	arena_put64(a, p + LJ_PROTO_CHUNKNAME, chunk);
	arena_put32(a, p + LJ_PROTO_FIRSTLINE, 10);
	arena_put32(a, p + LJ_PROTO_NUMLINE, s->numline);
	arena_put64(a, p + LJ_PROTO_LINEINFO, p + line);
	arena_put64(a, p + LJ_PROTO_UVINFO, p + uv);
	arena_put64(a, p + LJ_PROTO_VARINFO, p + var);
	arena_put(a, p + LJ_PROTO_SIZE, s->bc, 4 * s->nbc);
	for (i = 0; i < s->nkgc; i++)
		arena_put64(a, p + k - 8 * (i + 1), s->kgc[i]);
	for (i = 1; i < s->nbc; i++)
		arena_put(a, p + line + (i - 1) * width, &i, width);
	arena_put(a, p + uv, s->uvinfo, s->uvlen);
	arena_put(a, p + var, s->varinfo, s->varlen);
	return p;
}

enum { FUNCF = LJ_BC__LISTED };

/*
 *     local f = ...            slot 0, live from 1 on
 *     f()  g()  obj:m()  up()  obj.x()  a + b  for .. in f
 */
static const uint32_t code[] = {
	FUNCF | 8 << 8,	     AD(MOV, 4, 0), /* 1 */
	ABC(CALL, 4, 1, 1),		    /* 2: local f */
	AD(GGET, 4, 0),			    /* 3 */
	ABC(CALL, 4, 1, 1),		    /* 4: global g */
	AD(MOV, 6, 0),			    /* 5 */
	ABC(TGETS, 4, 0, 1),		    /* 6 */
	ABC(CALL, 4, 1, 2),		    /* 7: method m */
	AD(UGET, 4, 1),			    /* 8 */
	ABC(CALL, 4, 1, 1),		    /* 9: upvalue second */
	AD(UGET, 5, 0),			    /* 10 */
	ABC(TGETS, 5, 5, 2),		    /* 11 */
	ABC(CALL, 5, 1, 1),		    /* 12: field x */
	ABC(ADDVV, 4, 0, 5),		    /* 13: metamethod __add */
	AD(KNIL, 2, 3),			    /* 14 */
	ABC(ITERC, 5, 3, 3),		    /* 15: slot 2: nothing known of it (KNIL) */
	ABC(ITERN, 3, 3, 3),		    /* 16: as ITERC: slot 0, local f */
	ABC(CALL, 7, 1, 1),		    /* 17: no writer */
	AD(GGET, 7, 0),			    /* 18 */
	AD(KNIL, 5, 6),			    /* 19: spares slot 7 */
	ABC(CALL, 7, 1, 1),		    /* 20: global g */
	AD(GGET, 8, 0),			    /* 21 */
	AD(KNIL, 7, 8),			    /* 22: does not spare slot 8 */
	ABC(CALL, 8, 1, 1),		    /* 23 */
	ABC(ITERC, 3, 3, 3),		    /* 24: slot 0 again, but f has ended */
	AD(RETM, 0, 1),
};
#define LAST 25
static const struct {
	uint32_t pos;
	enum lj_namewhat what;
	const char *name;
} expected[] = {
	{0, LJ_NAME_NONE, NULL},	  {1, LJ_NAME_NONE, NULL},
	{2, LJ_NAME_LOCAL, "f"},	  {4, LJ_NAME_GLOBAL, "g"},
	{7, LJ_NAME_METHOD, "m"},	  {9, LJ_NAME_UPVALUE, "second"},
	{12, LJ_NAME_FIELD, "x"},	  {13, LJ_NAME_METAMETHOD, "__add"},
	{15, LJ_NAME_NONE, NULL},	  {16, LJ_NAME_LOCAL, "f"},
	{17, LJ_NAME_NONE, NULL},	  {20, LJ_NAME_GLOBAL, "g"},
	{23, LJ_NAME_NONE, NULL},	  {24, LJ_NAME_NONE, NULL},
	{LAST, LJ_NAME_NONE, NULL},	  {LAST + 1, LJ_NAME_NONE, NULL},
	{UINT32_MAX, LJ_NAME_NONE, NULL},
};

static uint64_t sample_proto(struct test_arena *a, uint32_t numline)
{
	static const char varinfo[] =
		"f\0\1\27"; /* slot 0 from 1, 23 long; the NUL ends the table */
	static const char uvinfo[] = "first\0second";
	const uint64_t kgc[] = {arena_lj_str(a, "g"), arena_lj_str(a, "m"), arena_lj_str(a, "x")};

	return proto(a, &(struct luasym_source){.bc = code,
						.nbc = sizeof(code) / 4,
						.kgc = kgc,
						.nkgc = 3,
						.uvinfo = uvinfo,
						.uvlen = sizeof(uvinfo),
						.varinfo = varinfo,
						.varlen = sizeof(varinfo),
						.numline = numline});
}

/* The prototype at pt. Its memory is gone then: what was read stands by itself. */
static struct lj_proto *read_proto(struct test_arena *a, uint64_t pt)
{
	struct lj_proto *p = NULL;

	cr_assert_eq(lj_proto_read(arena_mem(a), &layout, pt, &p), 0);
	mem_image_clear(&a->img);
	return p;
}

static void check_names(const struct lj_proto *p, bool all)
{
	size_t i;

	for (i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		const char *name = NULL;
		enum lj_namewhat what = lj_proto_callname(p, expected[i].pos, &name);

		if (!all && what == LJ_NAME_NONE)
			continue;
		cr_assert_eq(what, expected[i].what, "at %u: %d", expected[i].pos, what);
		if (what)
			cr_assert_str_eq(name, expected[i].name);
	}
}

Test(luasym, names_and_lines)
{
	static const uint32_t numlines[] = {20, 300, 70000};
	size_t i;

	for (i = 0; i < 3; i++) {
		struct test_arena *a __cleanup(arena_free) = arena_new(NULL);
		uint64_t pt = sample_proto(a, numlines[i]);
		struct lj_proto *p = read_proto(a, pt);
		size_t len;

		cr_assert(lj_proto_complete(p));
		check_names(p, true);
		cr_assert_str_eq(lj_proto_chunkname(p, &len), "@/srv/app/main.lua");
		cr_assert_eq(len, 18);
		cr_assert_eq(lj_proto_line(p, 0), 10);
		cr_assert_eq(lj_proto_line(p, 1), 11);
		cr_assert_eq(lj_proto_line(p, 17), 27);
		cr_assert_eq(lj_proto_line(p, sizeof(code) / 4), 10 + (int32_t)numlines[i]);
		cr_assert_eq(lj_proto_line(p, sizeof(code) / 4 + 1), 0);
		cr_assert_eq(lj_proto_line(p, UINT32_MAX), 0);
		lj_proto_free(&p);
		cr_assert_null(p);
	}
}

/* Its lines were overwritten: they are beyond the prototype's last one. */
Test(luasym, lines_of_another)
{
	struct test_arena *a __cleanup(arena_free) = arena_new(NULL);
	uint64_t pt = sample_proto(a, 20);
	struct lj_proto *p __cleanup(lj_proto_free) = NULL;

	arena_put8(a, arena_get64(a, pt + LJ_OFF(&layout, PROTO_LINEINFO)) + 4, 21);
	p = read_proto(a, pt);
	cr_assert_eq(lj_proto_line(p, 4), 14);
	cr_assert_eq(lj_proto_line(p, 5), -1);
}

Test(luasym, kth_read_fails)
{
	struct test_arena *a __cleanup(arena_free) = arena_new(NULL);
	uint64_t pt = sample_proto(a, 20);
	const struct lb_mem *mem = arena_mem(a);
	unsigned k, partial = 0;
	int later;

	for (later = 0; later < 2; later++) {
		for (k = 0; k < 200; k++) {
			struct lj_proto *p __cleanup(lj_proto_free) = NULL;
			struct arena_failing f;
			int err;

			arena_failing_init(&f, mem, k, later);
			err = lj_proto_read(&f.mem, &layout, pt, &p);
			cr_assert_eq(!err, !!p);
			if (!p)
				continue;
			check_names(p, f.reads <= k);
			partial += !lj_proto_complete(p);
			cr_assert(lj_proto_line(p, 5) == 15 || lj_proto_line(p, 5) == -1);
		}
	}
	cr_assert_gt(partial, 0);
}

/* How many reads a prototype takes that has so many string constants. */
static unsigned reads_of(uint32_t nkgc)
{
	struct test_arena *a __cleanup(arena_free) = arena_new(NULL);
	struct lj_proto *p __cleanup(lj_proto_free) = NULL;
	uint64_t *kgc __free = calloc(nkgc, sizeof(*kgc));
	struct luasym_source s = {.bc = code,
				  .nbc = sizeof(code) / 4,
				  .kgc = kgc,
				  .nkgc = nkgc,
				  .uvinfo = "",
				  .varinfo = "",
				  .uvlen = 1,
				  .varlen = 1,
				  .numline = 20};
	struct arena_failing f;
	char text[16];
	uint64_t pt;
	uint32_t i;

	for (i = 0; i < nkgc; i++) {
		snprintf(text, sizeof(text), "name%u", i);
		kgc[i] = arena_lj_str(a, text);
	}
	pt = proto(a, &s);
	arena_failing_init(&f, arena_mem(a), UINT_MAX, false);
	cr_assert_eq(lj_proto_read(&f.mem, &layout, pt, &p), 0);
	cr_assert(lj_proto_complete(p));
	return f.reads;
}

/* A main chunk holds the names of all its functions, and is read again in each round. */
Test(luasym, strings_are_read_together)
{
	cr_expect_leq(reads_of(800), reads_of(8) + 2);
}

Test(luasym, known_in_part)
{
	struct test_arena *a __cleanup(arena_free) = arena_new(NULL);
	uint64_t pt = sample_proto(a, 20);
	struct lj_proto *p = NULL;
	struct mem_image img;
	const char *name;

	/* head and bytecode only, and all strings, which lie before it */
	mem_image_init(&img);
	mem_image_add(&img, ARENA_BASE, a->bytes, pt - ARENA_BASE + LJ_PROTO_SIZE + sizeof(code));
	cr_assert_eq(lj_proto_read(&img.mem, &layout, pt, &p), 0);
	cr_assert(!lj_proto_complete(p));
	cr_assert_eq(lj_proto_line(p, 0), 10);
	cr_assert_eq(lj_proto_line(p, 3), -1);
	check_names(p, false);
	cr_assert_eq(lj_proto_callname(p, 13, &name), LJ_NAME_METAMETHOD);
	lj_proto_free(&p);

	/* and the references to constants: BPF sends them apart */
	mem_image_add(&img, pt + LJ_PROTO_SIZE + sizeof(code),
		      arena_at(a, pt + LJ_PROTO_SIZE + sizeof(code), 4 + 3 * 8), 4 + 3 * 8);
	cr_assert_eq(lj_proto_read(&img.mem, &layout, pt, &p), 0);
	cr_assert(!lj_proto_complete(p));
	cr_assert_eq(lj_proto_callname(p, 4, &name), LJ_NAME_GLOBAL);
	cr_assert_str_eq(name, "g");
	lj_proto_free(&p);
	mem_image_clear(&img);
}

static void hash_and_print(struct test_arena *a, uint64_t pt, uint64_t *hash, uint32_t *fp)
{
	struct lj_proto *p __cleanup(lj_proto_free) = read_proto(a, pt);

	*hash = lj_proto_hash(p);
	*fp = lj_proto_fingerprint(p);
}

/* Is the prototype at pt read as a whole? */
static bool is_complete(struct test_arena *a, uint64_t pt)
{
	struct lj_proto *p __cleanup(lj_proto_free) = read_proto(a, pt);

	return lj_proto_complete(p);
}

/*
 * Memory of a VM that is being closed: what is still there is not the prototype any more. An
 * allocator keeps the size of a free block in its last word, and a constant may be gone first.
 */
Test(luasym, freed)
{
	struct test_arena *a __cleanup(arena_free) = arena_new(NULL);
	uint64_t pt = sample_proto(a, 20), end, constant;
	const uint32_t k = (LJ_PROTO_SIZE + sizeof(code) + 3 * 8 + 7) & ~7u;
	uint32_t size;

	memcpy(&size, arena_at(a, pt + LJ_PROTO_SIZEPT, 4), 4);
	end = arena_get64(a, pt + size - 8);
	constant = arena_get64(a, pt + k - 16);
	cr_expect(is_complete(a, pt));
	arena_put64(a, pt + size - 8, 0x238);
	cr_expect_not(is_complete(a, pt));
	arena_put64(a, pt + size - 8, end);
	cr_expect(is_complete(a, pt));
	arena_put8(a, constant + LJ_STR_GCT, 0xd8);
	cr_expect_not(is_complete(a, pt));
	arena_put8(a, constant + LJ_STR_GCT, LJ_GCT_PROTO);
	cr_expect(is_complete(a, pt));
}

/* What is left of a prototype, whose last word may be read as a table of variables. */
Test(luasym, freed_and_read_as_another)
{
	struct test_arena *a __cleanup(arena_free) = arena_new(NULL);
	struct luasym_source s = {
		.bc = code,
		.nbc = 12, /* so that 6 bytes of the last word are the prototype's */
		.uvinfo = "yield",
		.uvlen = 6,
		.varinfo = "x\0\0\5",
		.varlen = 5,
		.numline = 20};
	uint64_t pt = proto(a, &s), last;
	struct lj_proto *was __cleanup(lj_proto_free) = read_proto(a, pt);
	struct lj_proto *left __cleanup(lj_proto_free) = NULL;
	struct lj_proto *another __cleanup(lj_proto_free) = NULL;
	uint32_t size;

	memcpy(&size, arena_at(a, pt + LJ_PROTO_SIZEPT, 4), 4);
	cr_assert_eq(size % 8, 6);
	last = pt + size - 6;
	arena_put64(a, last, 0x1208);
	left = read_proto(a, pt);
	cr_assert(lj_proto_complete(left), "else there is nothing to prove");
	cr_expect_neq(lj_proto_fingerprint(left), lj_proto_fingerprint(was));
	cr_expect(lj_proto_same(was, left));
	arena_put8(a, last - 1, 'D'); /* "yielD" */
	another = read_proto(a, pt);
	cr_expect_not(lj_proto_same(was, another));
}

/* A collected prototype whose memory is still there, but the allocator wrote into the string whose
 * address is at ref. */
static void damage(struct test_arena *a, uint64_t pt, uint64_t ref)
{
	struct lj_proto *p[3] = {NULL};
	uint64_t str = arena_get64(a, ref);
	int i;

	for (i = 0; i < 3; i++) {
		if (i == 1)
			arena_put8(a, str + LJ_STR_SIZE, 0x30);
		if (i == 2)
			arena_put32(a, str + LJ_STR_SID, 77);
		p[i] = read_proto(a, pt);
	}
	cr_expect_neq(lj_proto_hash(p[0]), lj_proto_hash(p[1]));
	cr_expect(lj_proto_same(p[0], p[1]));
	cr_expect_not(lj_proto_same(p[1], p[2]));
	for (i = 0; i < 3; i++)
		lj_proto_free(&p[i]);
}

Test(luasym, damaged_strings_are_the_same_strings)
{
	struct test_arena *a __cleanup(arena_free) = arena_new(NULL);
	uint64_t pt = sample_proto(a, 20);
	const uint32_t k = (LJ_PROTO_SIZE + sizeof(code) + 3 * 8 + 7) & ~7u;

	damage(a, pt, pt + k - 8);
	damage(a, pt, pt + LJ_PROTO_CHUNKNAME);
}

/* What a change of one part of a prototype, or of what it refers to, does to both. */
Test(luasym, hash_and_fingerprint)
{
	enum { SAME, HASH = 1, PRINT = 2, BOTH = 3 };
	static const char *const what[] = {
		"a loop that was compiled", "an iterator", "another number",	"a mark",
		"another instruction",	    "a line",	   "the first line",	"an upvalue's name",
		"a local's name",	    "a string",	   "a string's number", "a constant",
	};
	static const int differs[] = {SAME, SAME, SAME, SAME, HASH,  HASH,
				      BOTH, BOTH, BOTH, BOTH, PRINT, BOTH};
	const uint32_t k = LJ_PROTO_SIZE + sizeof(code) + 3 * 8;
	const uint32_t names = ((k + 7) & ~7u) + sizeof(code) / 4 - 1;
	unsigned step;

	for (step = 0; step < sizeof(what) / sizeof(what[0]); step++) {
		struct test_arena *a __cleanup(arena_free) = arena_new(NULL);
		uint64_t pt = sample_proto(a, 20), bc = pt + LJ_PROTO_SIZE, was_hash, hash, ref;
		uint32_t was_print, fp;

		arena_put32(a, bc + 4 * 2, AD(KSHORT, 4, 100));
		hash_and_print(a, pt, &was_hash, &was_print);
		ref = arena_get64(a, pt + ((k + 7) & ~7u) - 8);
		switch (step) {
		case 0:
			arena_put32(a, bc + 4 * LAST, 0xff00ff00u | LJ_BC_JLOOP);
			break;
		case 1:
			arena_put32(a, bc + 4 * 16, ABC(ITERC, 3, 3, 3));
			break;
		case 2:
			arena_put32(a, bc + 4 * 2, AD(KSHORT, 4, 101));
			break;
		case 3:
			arena_put8(a, pt + 8, 3);
			arena_put8(a, ref + 8, 3);
			break;
		case 4:
			arena_put32(a, bc + 4 * 3, AD(GGET, 4, 1));
			break;
		case 5:
			arena_put8(a, pt + ((k + 7) & ~7u) + 4, 99);
			break;
		case 6:
			arena_put32(a, pt + LJ_PROTO_FIRSTLINE, 11);
			break;
		case 7:
			arena_put8(a, pt + names + 10, 'x'); /* "second" */
			break;
		case 8:
			arena_put8(a, pt + names + sizeof("first\0second"), 'g');
			break;
		case 9: /* another one at the same address */
			arena_put8(a, ref + LJ_STR_SIZE, 'h');
			arena_put32(a, ref + LJ_STR_HASH, 1234);
			break;
		case 10:
			arena_put32(a, ref + LJ_STR_SID, 1234);
			break;
		case 11:
			arena_put64(a, pt + ((k + 7) & ~7u) - 8, arena_lj_str(a, "h"));
			break;
		}
		hash_and_print(a, pt, &hash, &fp);
		cr_expect_eq(hash != was_hash, differs[step] & HASH, "%s", what[step]);
		cr_expect_eq(fp != was_print, differs[step] >> 1, "%s", what[step]);
	}
}

/* A chunk that was loaded again has the same children, at other addresses. */
Test(luasym, children_that_took_each_others_addresses)
{
	uint64_t hash[2], child[2], kgc[6];
	uint32_t fp[2];
	int i, j;

	for (i = 0; i < 2; i++) {
		struct test_arena *a __cleanup(arena_free) = arena_new(NULL);
		struct luasym_source s = {.bc = code,
					  .nbc = sizeof(code) / 4,
					  .kgc = kgc,
					  .nkgc = 6,
					  .uvinfo = "",
					  .varinfo = "",
					  .uvlen = 1,
					  .varlen = 1,
					  .numline = 20};

		for (j = 0; j < 2; j++) {
			child[j] = arena_take(a, LJ_PROTO_SIZE);
			arena_put8(a, child[j] + LJ_PROTO_GCT, LJ_GCT_PROTO);
		}
		for (j = 0; j < 4; j++)
			kgc[j] = arena_lj_str(a, "name");
		kgc[4] = child[i];
		kgc[5] = child[!i];
		hash_and_print(a, proto(a, &s), &hash[i], &fp[i]);
	}
	cr_expect_eq(fp[0], fp[1]);
	cr_expect_neq(hash[0], hash[1]);
}

/*
 * So many copies between two slots, from a global to the call, each of them in sight of 2000
 * variables that live in neither.
 */
static enum lj_namewhat name_through_copies(uint32_t ncopies)
{
	struct test_arena *a __cleanup(arena_free) = arena_new(NULL);
	struct lj_proto *p __cleanup(lj_proto_free) = NULL;
	const uint64_t kgc[] = {arena_lj_str(a, "g")};
	char varinfo[2000 * 4 + 1] = "";
	const char *name;
	uint32_t bc[700], i;

	for (i = 0; i < 2000; i++)
		varinfo[4 * i] = 'v';
	bc[0] = FUNCF | 8 << 8;
	bc[1] = AD(GGET, 0, 0);
	for (i = 0; i < ncopies; i++)
		bc[2 + i] = AD(MOV, 1 - i % 2, i % 2);
	bc[2 + i] = ABC(CALL, ncopies % 2, 1, 1);
	p = read_proto(a, proto(a, &(struct luasym_source){.bc = bc,
							   .nbc = 3 + ncopies,
							   .kgc = kgc,
							   .nkgc = 1,
							   .uvinfo = "",
							   .uvlen = 1,
							   .varinfo = varinfo,
							   .varlen = sizeof(varinfo),
							   .numline = 1}));
	cr_assert(lj_proto_complete(p));
	return lj_proto_callname(p, 2 + ncopies, &name);
}

Test(luasym, a_search_for_a_name_ends)
{
	cr_expect_eq(name_through_copies(50), LJ_NAME_GLOBAL);
	cr_expect_eq(name_through_copies(600), LJ_NAME_NONE);
}

/* Each field of the head that sizes and places depend on, set to what does not fit. */
Test(luasym, heads_that_lie)
{
	static const struct {
		unsigned field, size;
		uint64_t value;
	} lies[] = {
		{LJ_PROTO_GCT, 1, 6},
		{LJ_PROTO_SIZEBC, 4, 0},
		{LJ_PROTO_SIZEBC, 4, 0x3fffffff},
		{LJ_PROTO_SIZEBC, 4, 0xffffffff},
		{LJ_PROTO_SIZEPT, 4, 0},
		{LJ_PROTO_SIZEPT, 4, 108},
		{LJ_PROTO_SIZEPT, 4, 0xffffffff},
		{LJ_PROTO_SIZEKGC, 4, 1000},
		{LJ_PROTO_SIZEKGC, 4, 0xffffffff},
		{LJ_PROTO_SIZEKN, 4, 0xffffffff},
		{LJ_PROTO_SIZEKN, 4, 1000},
		{LJ_PROTO_K, 8, 0},
		{LJ_PROTO_K, 8, ARENA_BASE},
		{LJ_PROTO_K, 8, ~0ULL},
		{LJ_PROTO_LINEINFO, 8, ARENA_BASE},
		{LJ_PROTO_LINEINFO, 8, ~0ULL},
		{LJ_PROTO_NUMLINE, 4, 0xffffffff},
		{LJ_PROTO_UVINFO, 8, 8},
		{LJ_PROTO_VARINFO, 8, ARENA_BASE - 8},
		{LJ_PROTO_CHUNKNAME, 8, ARENA_BASE + 3},
		{LJ_PROTO_CHUNKNAME, 8, 0},
	};
	size_t i;

	for (i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct test_arena *a __cleanup(arena_free) = arena_new(NULL);
		uint64_t pt = sample_proto(a, 20);
		struct lj_proto *p = (void *)1;

		arena_put(a, pt + lies[i].field, &lies[i].value, lies[i].size);
		cr_assert_eq(lj_proto_read(arena_mem(a), &layout, pt, &p), -EBADMSG, "lie %zu", i);
		cr_assert_eq(p, (void *)1, "untouched on failure");
	}
}

Test(luasym, not_an_address)
{
	struct mem_image img;
	struct lj_proto *p = NULL;

	mem_image_init(&img);
	cr_assert_eq(lj_proto_read(&img.mem, &layout, 0, &p), -EBADMSG);
	cr_assert_eq(lj_proto_read(&img.mem, &layout, ARENA_BASE + 4, &p), -EBADMSG);
	cr_assert_eq(lj_proto_read(&img.mem, &layout, 1ULL << 48, &p), -EBADMSG);
	cr_assert_eq(lj_proto_read(&img.mem, &layout, ARENA_BASE, &p), -EFAULT);
}
