/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names and lines of PUC Lua's prototypes, built in an arena for each layout. That names agree with
 * Lua's own is for tests/e2e/test_pucsym.py to show; here are the layouts that no interpreter at
 * hand has, and the edges: what is missing, torn, or not what it says.
 *
 * The suite's other files, test_puc_sym_*.c: what a prototype defines, loaded libraries,
 * fingerprints, bytecode.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include <unwind/puc/fingerprint.h>

#include "base/cleanup.h"
#include "base/mem_image.h"
#include "puc_code.h"
#include "lua/puc/proto.h"

static const struct puc_code_ins calls[] = {
	{I_LOADNIL, 0, 0, 0},			 /* 0: local f begins, in register 0 */
	{I_MOVE, 1, 0, 0},    {I_CALL, 1, 0, 0}, /* 2: local f */
	{I_GLOBAL, 1, 0, 0},  {I_CALL, 1, 0, 0}, /* 4: global g */
	{I_SELF, 1, 0, 1},    {I_CALL, 1, 0, 0}, /* 6: method m */
	{I_UPVAL, 1, 1, 0},   {I_CALL, 1, 0, 0}, /* 8: upvalue up */
	{I_FIELD, 1, 0, 2},   {I_CALL, 1, 0, 0}, /* 10: field x */
	{I_INDEX, 1, 0, 3},   {I_CALL, 1, 0, 0}, /* 12: field, by a number */
	{I_LOADK, 1, 2, 0},   {I_CALL, 1, 0, 0}, /* 14: constant x */
	{I_ADDING, 0, 0, 0},			 /* 15: metamethod __add */
	{I_FORCALL, 0, 0, 0},			 /* 16: for iterator; 5.1: local f */
	{I_UPVAL, 1, 1, 0},   {I_TEST, 0, 0, 0},
	{I_JMP, 1, 0, 0},			 /* 19, to 21 */
	{I_GLOBAL, 1, 0, 0},  {I_CALL, 1, 0, 0}, /* 21: not known; 5.1 looks at the way around */
	{I_GLOBAL, 1, 0, 0},  {I_LOADNIL, 1, 1, 0},
	{I_CALL, 1, 0, 0}, /* 24: nil */
	{I_GLOBAL, 2, 0, 0},  {I_LOADNIL, 0, 1, 0},
	{I_CALL, 2, 0, 0},			 /* 27: global g, spared */
	{I_FIELD, 1, 0, 4},   {I_CALL, 1, 0, 0}, /* 29: field with a long name */
	{I_MOVE, 1, 0, 0},    {I_CALL, 1, 0, 0}, /* 31: f has ended */
	{I_CALL, 5, 0, 0},			 /* 32: no writer */
	{I_GLOBAL, 0, 0, 0},  {I_MOVE, 1, 0, 0},
	{I_CALL, 1, 0, 0}, /* 35: local h */
	{I_UPVAL, 0, 1, 0},   {I_FIELD, 1, 0, 2},
	{I_CALL, 1, 0, 0}, /* 38: x of a local _ENV */
	{I_UPVAL, 1, 0, 0},   {I_FIELD, 1, 1, 2},
	{I_CALL, 1, 0, 0},   /* 41: x of the upvalue _ENV */
	{I_RETURN, 0, 0, 0}, /* 42 */
};
#define NCALLS (sizeof(calls) / sizeof(calls[0]))
#define F_ENDS 30

static const char *const call_k[] = {"g", "m", "x", "#", PUC_LONG_NAME, NULL};

struct expected {
	uint32_t pc;
	enum puc_namewhat what;
	const char *name;
};
static const struct expected called[] = {
	{2, PUC_NAME_LOCAL, "f"},	   {4, PUC_NAME_GLOBAL, "g"},
	{6, PUC_NAME_METHOD, "m"},	   {8, PUC_NAME_UPVALUE, "up"},
	{10, PUC_NAME_FIELD, "x"},	   {29, PUC_NAME_FIELD, PUC_LONG_NAME},
	{27, PUC_NAME_GLOBAL, "g"},	   {24, PUC_NAME_NONE, NULL},
	{31, PUC_NAME_NONE, NULL},	   {32, PUC_NAME_NONE, NULL},
	{35, PUC_NAME_LOCAL, "h"},	   {43, PUC_NAME_NONE, NULL},
	{UINT32_MAX, PUC_NAME_NONE, NULL},
};
static const struct expected called_51[] = {
	{12, PUC_NAME_FIELD, "?"}, {14, PUC_NAME_NONE, NULL},	 {15, PUC_NAME_NONE, NULL},
	{16, PUC_NAME_LOCAL, "f"}, {21, PUC_NAME_UPVALUE, "up"}, {38, PUC_NAME_FIELD, "x"},
	{41, PUC_NAME_FIELD, "x"}, {42, PUC_NAME_NONE, NULL},
};
static const struct expected called_52[] = {
	{12, PUC_NAME_FIELD, "?"},	    {14, PUC_NAME_CONSTANT, "x"},
	{15, PUC_NAME_METAMETHOD, "__add"}, {16, PUC_NAME_FOR_ITERATOR, "for iterator"},
	{21, PUC_NAME_NONE, NULL},	    {38, PUC_NAME_GLOBAL, "x"},
	{41, PUC_NAME_FIELD, "x"},	    {42, PUC_NAME_NONE, NULL},
};
static const struct expected called_54[] = {
	{12, PUC_NAME_FIELD, "integer index"},
	{14, PUC_NAME_CONSTANT, "x"},
	{15, PUC_NAME_METAMETHOD, "__add"},
	{16, PUC_NAME_FOR_ITERATOR, "for iterator"},
	{21, PUC_NAME_NONE, NULL},
	{38, PUC_NAME_GLOBAL, "x"},
	{41, PUC_NAME_GLOBAL, "x"},
	{42, PUC_NAME_METAMETHOD, "__close"},
};

static uint64_t sample_proto(struct test_arena *a, bool stripped)
{
	return puc_code_proto(a,
			      &(struct puc_code_source){
				      .code = calls,
				      .ncode = NCALLS,
				      .k = call_k,
				      .locals = {{"f", 1, F_ENDS}, {"h", 34, 36}, {"_ENV", 37, 39}},
				      .stripped = stripped});
}

/* The prototype at addr. Its memory is gone then: what was read stands by itself. */
static struct puc_proto *read_proto(struct test_arena *a, uint64_t addr, const char *row)
{
	struct puc_proto *p = NULL;

	cr_assert_eq(puc_proto_read(arena_mem(a), a->puc, addr, &p), 0, "%s", row);
	mem_image_clear(&a->img);
	return p;
}

/* all: nothing may be missing */
static void check_list(const struct puc_proto *p, const struct expected *e, size_t n, bool all)
{
	for (; n--; e++) {
		const char *name = NULL;
		enum puc_namewhat what = puc_proto_callname(p, e->pc, &name);

		if (!all && what == PUC_NAME_NONE)
			continue;
		cr_assert_eq(what, e->what, "at %u: %d", e->pc, what);
		if (what)
			cr_assert_str_eq(name, e->name);
	}
}

static void check_names(const struct puc_proto *p, unsigned version, bool all)
{
	check_list(p, called, LENGTH(called), all);
	if (version == 51)
		check_list(p, called_51, LENGTH(called_51), all);
	else if (version < 54)
		check_list(p, called_52, LENGTH(called_52), all);
	else
		check_list(p, called_54, LENGTH(called_54), all);
}

static void check_lines(const struct puc_proto *p, bool all)
{
	uint32_t i;

	for (i = 0; i < NCALLS; i++) {
		int32_t line = puc_proto_line(p, i);

		cr_assert(line == puc_code_line(i) || (!all && line == -1), "%u: %d", i, line);
	}
	cr_assert_eq(puc_proto_line(p, NCALLS), -1);
	cr_assert_eq(puc_proto_line(p, UINT32_MAX), -1);
}

Test(puc_sym, names_and_lines)
{
	const struct puc_layout *puc;
	const char *row;
	size_t i;

	EACH_PUC_LAYOUT(puc, row, i)
	{
		struct test_arena *a __cleanup(arena_free) = arena_new(puc);
		uint64_t addr = sample_proto(a, false);
		struct puc_proto *p __cleanup(puc_proto_free) = read_proto(a, addr, row);
		size_t len;

		cr_assert(puc_proto_complete(p), "%s", row);
		check_names(p, puc->version, true);
		check_lines(p, true);
		cr_assert_not(puc_proto_stripped(p));
		cr_assert_str_eq(puc_proto_chunkname(p, &len), "@/srv/app/main.lua");
		cr_assert_eq(len, 18);
		cr_assert_eq(puc_proto_addr(p), addr);
		cr_assert_eq(puc_proto_sizecode(p), NCALLS);
		cr_assert_eq(puc_proto_firstline(p), 10);
		cr_assert_eq(puc_proto_lastline(p), 2000);
		puc_proto_free(&p);
		cr_assert_null(p);
	}
	cr_assert_gt(i, 8, "the table has all versions");
}

Test(puc_sym, stripped)
{
	const struct puc_layout *puc;
	const char *row, *name;
	size_t i;

	EACH_PUC_LAYOUT(puc, row, i)
	{
		struct test_arena *a __cleanup(arena_free) = arena_new(puc);
		uint64_t addr = sample_proto(a, true);
		struct puc_proto *p __cleanup(puc_proto_free) = read_proto(a, addr, row);

		cr_assert(puc_proto_complete(p) && puc_proto_stripped(p));
		cr_assert_str_eq(puc_proto_chunkname(p, NULL), "=?");
		cr_assert_eq(puc_proto_line(p, 0), 0);
		cr_assert_eq(puc_proto_line(p, 30), 0);
		cr_assert_eq(puc_proto_callname(p, 2, &name), PUC_NAME_NONE);
		/* without the upvalue's name a global counts as a field, but in 5.1 */
		cr_assert_eq(puc_proto_callname(p, 4, &name),
			     puc->version == 51 ? PUC_NAME_GLOBAL : PUC_NAME_FIELD);
		cr_assert_str_eq(name, "g");
		cr_assert_eq(puc_proto_callname(p, 6, &name), PUC_NAME_METHOD);
		cr_assert_eq(puc_proto_callname(p, 8, &name), PUC_NAME_UPVALUE);
		cr_assert_str_eq(name, "?");
	}
}

/* Closures as arguments. In 5.1 the words after CLOSURE list two upvalues each, as MOVE 0. */
static const struct puc_code_ins closures[] = {
	{I_GLOBAL, 0, 0, 0}, {I_CLOSURE, 1, 0, 0}, {I_DATA, 0, 5, 0}, {I_DATA, 0, 6, 0},
	{I_CALL, 0, 0, 0}, /* 4: global g */
	{I_GLOBAL, 1, 1, 0}, {I_CLOSURE, 2, 1, 0}, {I_DATA, 0, 5, 0}, {I_DATA, 0, 6, 0},
	{I_CALL, 1, 0, 0}, /* 9: global m, whatever the words are */
	{I_GLOBAL, 0, 0, 0}, {I_CLOSURE, 1, 0, 0}, {I_DATA, 0, 5, 0}, {I_DATA, 0, 6, 0},
	{I_UPVAL, 0, 1, 0},  {I_CALL, 0, 0, 0}, /* 15: upvalue up, not the words' part */
	{I_GLOBAL, 0, 0, 0}, {I_CLOSURE, 1, 0, 0}, {I_DATA, 0, 5, 0}, {I_DATA, 0, 6, 0},
	{I_GLOBAL, 0, 1, 0}, {I_CALL, 0, 0, 0}, /* 21: global m, set after all of them */
	{I_RETURN, 0, 0, 0},
};
static const struct expected called_with_closures[] = {
	{4, PUC_NAME_GLOBAL, "g"},
	{9, PUC_NAME_GLOBAL, "m"},
	{15, PUC_NAME_UPVALUE, "up"},
	{21, PUC_NAME_GLOBAL, "m"},
};

static uint64_t sample_closures(struct test_arena *a, uint64_t children[2])
{
	children[0] = puc_code_empty(a, 100);
	children[1] = puc_code_empty(a, 200);
	return puc_code_proto(a, &(struct puc_code_source){
					 .code = closures,
					 .ncode = LENGTH(closures),
					 .k = call_k,
					 .children = children,
					 .nchildren = 2,
				 });
}

Test(puc_sym, calls_with_closures)
{
	const struct puc_layout *puc;
	const char *row, *name;
	size_t i;

	EACH_PUC_LAYOUT(puc, row, i)
	{
		struct test_arena *a __cleanup(arena_free) = arena_new(puc);
		struct puc_proto *p __cleanup(puc_proto_free) = NULL;
		uint64_t children[2], addr = sample_closures(a, children);

		p = read_proto(a, addr, row);
		check_list(p, called_with_closures, LENGTH(called_with_closures), true);
		if (puc->version != 51)
			continue;
		puc_proto_free(&p);
		/* how many words there are is not known: what they cannot change is */
		arena_put64(a, children[0], 0);
		arena_put64(a, addr + puc->p_sizep, 0);
		p = read_proto(a, addr, row);
		cr_expect_eq(puc_proto_callname(p, 4, &name), PUC_NAME_NONE);
		cr_expect_eq(puc_proto_callname(p, 15, &name), PUC_NAME_NONE);
		check_list(p, &called_with_closures[1], 1, true);
		check_list(p, &called_with_closures[3], 1, true);
	}
}

/* Up to 5.4.2, 5.4 does not distinguish `<` from `<=`. */
Test(puc_sym, comparisons)
{
	static const struct puc_code_ins code[] = {
		{I_LT, 0, 0, 0}, {I_LE, 0, 0, 0}, {I_RETURN, 0, 0, 0}};
	const struct puc_layout *puc;
	const char *row;
	size_t i;

	EACH_PUC_LAYOUT(puc, row, i)
	{
		bool order = !strcmp(row, "PUC Lua 5.4.0") || !strcmp(row, "PUC Lua 5.4.1") ||
			     !strcmp(row, "PUC Lua 5.4.2");
		enum puc_namewhat what = puc->version == 51 ? PUC_NAME_NONE : PUC_NAME_METAMETHOD;
		const struct expected calls[] = {{0, what, order ? "order" : "__lt"},
						 {1, what, order ? "order" : "__le"}};
		struct test_arena *a __cleanup(arena_free) = arena_new(puc);
		struct puc_proto *p __cleanup(puc_proto_free) = NULL;
		uint64_t addr = puc_code_proto(
			a, &(struct puc_code_source){.code = code, .ncode = 3, .k = call_k});

		p = read_proto(a, addr, row);
		check_list(p, calls, LENGTH(calls), true);
	}
}

/* So many copies from a global to the call, each down one register, after 20,000 instructions. */
static enum puc_namewhat name_through_copies(const struct puc_layout *puc, int ncopies)
{
	enum { BEFORE = 20000 };
	static const char *const k[] = {"g", NULL};
	static struct puc_code_ins code[BEFORE + 256];
	struct test_arena *a __cleanup(arena_free) = arena_new(puc);
	struct puc_proto *p __cleanup(puc_proto_free) = NULL;
	unsigned n;
	const char *name;
	int i;

	for (n = 0; n < BEFORE; n++)
		code[n] = (struct puc_code_ins){I_RETURN, 0, 0, 0};
	code[n++] = (struct puc_code_ins){I_GLOBAL, 0, 0, 0};
	for (i = 0; i < ncopies; i++)
		code[n++] = (struct puc_code_ins){I_MOVE, i + 1, i, 0};
	code[n++] = (struct puc_code_ins){I_CALL, ncopies, 0, 0};
	p = read_proto(
		a, puc_code_proto(a, &(struct puc_code_source){.code = code, .ncode = n, .k = k}),
		"");
	cr_assert(puc_proto_complete(p));
	return puc_proto_callname(p, n - 1, &name);
}

Test(puc_sym, a_search_for_a_name_ends)
{
	const struct puc_layout *puc;
	const char *row;
	size_t i;

	EACH_PUC_LAYOUT(puc, row, i)
	{
		cr_expect_eq(name_through_copies(puc, 50), PUC_NAME_GLOBAL, "%s", row);
		cr_expect_eq(name_through_copies(puc, 240), PUC_NAME_NONE, "%s", row);
	}
}

/* A main chunk holds the names of all its functions, and is read again in each round. */
static unsigned reads_of(const struct puc_layout *puc, unsigned n)
{
	static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g",
					    "h", "i", "j", "k", "l", "m", "n"};
	static const struct puc_code_ins code[] = {{I_RETURN, 0, 0, 0}};
	struct test_arena *a __cleanup(arena_free) = arena_new(puc);
	struct puc_proto *p __cleanup(puc_proto_free) = NULL;
	const char *k[16] = {NULL};
	struct arena_failing f;
	uint64_t addr, children[14];
	unsigned i;

	for (i = 0; i < n; i++) {
		k[i] = names[i];
		children[i] = puc_code_empty(a, 1);
	}
	addr = puc_code_proto(
		a, &(struct puc_code_source){
			   .code = code, .ncode = 1, .k = k, .children = children, .nchildren = n});
	arena_take(a, 64); /* memory does not end with the last string */
	arena_failing_init(&f, arena_mem(a), UINT_MAX, false);
	cr_assert_eq(puc_proto_read(&f.mem, puc, addr, &p), 0);
	cr_assert(puc_proto_complete(p));
	return f.reads;
}

Test(puc_sym, strings_are_read_together)
{
	const struct puc_layout *puc;
	const char *row;
	size_t i;

	EACH_PUC_LAYOUT(puc, row, i)
	cr_expect_leq(reads_of(puc, 14), reads_of(puc, 1) + 2, "%s", row);
}

Test(puc_sym, kth_read_fails)
{
	const struct puc_layout *puc;
	unsigned k, partial = 0;
	const char *row;
	size_t i;

	EACH_PUC_LAYOUT(puc, row, i)
	{
		struct test_arena *a __cleanup(arena_free) = arena_new(puc);
		uint64_t addr = sample_proto(a, false);
		const struct lb_mem *mem = arena_mem(a);

		for (k = 0; k < 400; k++) {
			struct arena_failing f;
			struct puc_proto *p __cleanup(puc_proto_free) = NULL;
			int err;

			arena_failing_init(&f, mem, k / 2, k % 2);
			err = puc_proto_read(&f.mem, puc, addr, &p);
			cr_assert_eq(!err, !!p);
			if (!p)
				continue;
			check_names(p, puc->version, puc_proto_complete(p));
			check_lines(p, puc_proto_complete(p));
			cr_assert(puc_proto_complete(p) || f.reads > k / 2, "%s", row);
			partial += !puc_proto_complete(p);
		}
	}
	cr_assert_gt(partial, 0);
}

/* Each object is missing, or partial: no wrong result is returned. */
Test(puc_sym, known_in_part)
{
	const struct puc_layout *puc;
	const char *row;
	size_t i;

	EACH_PUC_LAYOUT(puc, row, i)
	{
		struct test_arena *a __cleanup(arena_free) = arena_new(puc);
		uint64_t addr = sample_proto(a, false);
		unsigned k, known = 0;

		for (k = 0; k < 3 * a->n; k++) {
			uint32_t size = a->objects[k / 3].size;
			uint32_t part = k % 3 ? size / 3 * (k % 3) : 0;
			struct puc_proto *p __cleanup(puc_proto_free) = NULL;
			int err;

			err = puc_proto_read(arena_mem_without(a, k / 3, part), puc, addr, &p);
			if (err) {
				cr_assert_eq(err, -EFAULT, "%s", row);
			} else {
				check_names(p, puc->version, puc_proto_complete(p));
				check_lines(p, puc_proto_complete(p));
				known++;
			}
		}
		cr_assert_gt(known, 2 * a->n, "head and chunk name alone have to be there");
	}
}

/* A function's lines lie between its first and its last, or none is its own; a main chunk's are
 * not beyond its last instruction's. */
Test(puc_sym, lines_beyond_the_function)
{
	const char *row;
	const struct puc_layout *puc = puc_layout_of("5.4.4", &row);
	struct test_arena *a __cleanup(arena_free) = arena_new(puc);
	uint64_t addr = sample_proto(a, false);
	struct puc_proto *p;
	int main;

	for (main = 0; main < 2; main++) {
		arena_put32(a, addr + puc->p_linedefined, main ? 0 : 10);
		arena_put32(a, addr + puc->p_lastlinedefined, main ? 0 : 12);
		p = read_proto(a, addr, row);
		cr_expect_eq(puc_proto_line(p, 0), main ? 0 : -1);
		cr_expect_eq(puc_proto_line(p, 2), main ? 2 : -1);
		cr_expect_eq(puc_proto_line(p, 3), main ? 3 : -1);
		puc_proto_free(&p);
	}
}

/* A chunk whose name is its text. */
Test(puc_sym, chunkname_is_long)
{
	const struct puc_layout *puc;
	const char *row;
	size_t i, len;

	EACH_PUC_LAYOUT(puc, row, i)
	{
		static char text[9000];
		struct test_arena *a __cleanup(arena_free) = arena_new(puc);
		uint64_t addr = sample_proto(a, false);
		struct puc_proto *p __cleanup(puc_proto_free) = NULL;

		memset(text, 'x', sizeof(text));
		text[5] = '\0';
		arena_put64(a, addr + puc->p_source, puc_code_lstr(a, text, sizeof(text), false));
		p = read_proto(a, addr, row);
		cr_assert(puc_proto_complete(p));
		cr_assert_eq(memcmp(puc_proto_chunkname(p, &len), text, 8191), 0);
		cr_assert_eq(len, 8191);
	}
}

Test(puc_sym, hash_and_fingerprint)
{
	const struct puc_layout *puc;
	const char *row;
	size_t i;

	EACH_PUC_LAYOUT(puc, row, i)
	{
		const uint16_t fields[] = {
			puc->p_code,	     puc->p_k,		 puc->p_source,
			puc->p_lineinfo,     puc->p_upvalues,	 puc->p_sizecode,
			puc->p_linedefined,  puc->p_sizek,	 puc->p_sizep,
			puc->p_sizelineinfo, puc->p_sizelocvars, puc->p_sizeupvalues};
		struct test_arena *a __cleanup(arena_free) = arena_new(puc);
		uint64_t addr = sample_proto(a, false), hash;
		uint8_t head[PUC_PROTO_HEAD] __attribute__((aligned(8)));
		struct puc_proto *p __cleanup(puc_proto_free) = read_proto(a, addr, row);
		uint32_t fp;
		uint64_t before;
		size_t f;

		fp = puc_proto_fingerprint(p);
		hash = puc_proto_hash(p);
		puc_proto_free(&p);

		memset(head, 0x77, sizeof(head)); /* the bytes after it do not count */
		memcpy(head, arena_at(a, addr, puc->p_size), puc->p_size);
		before = puc_code_print(head, puc);
		memset(head + puc->p_size, 0x33, sizeof(head) - puc->p_size);
		cr_assert_eq(puc_code_print(head, puc), before);
		head[PUC_GC_NEXT] ^= 0x10;
		head[PUC_GC_TT + 1] ^= 1; /* marked */
		cr_assert_eq(puc_code_print(head, puc), before);
		for (f = 0; f < LENGTH(fields); f++) {
			head[fields[f]] ^= 0x10;
			cr_assert_neq(puc_code_print(head, puc), before, "%s: %zu", row, f);
			head[fields[f]] ^= 0x10;
		}

		/* the same elsewhere in memory */
		arena_take(a, 64);
		addr = sample_proto(a, false);
		p = read_proto(a, addr, row);
		cr_assert_eq(puc_proto_hash(p), hash);
		cr_assert_neq(puc_proto_fingerprint(p), fp);
		puc_proto_free(&p);

		/* another line of code */
		arena_put32(a, addr + puc->p_linedefined, 11);
		p = read_proto(a, addr, row);
		cr_assert_neq(puc_proto_hash(p), hash);
	}
}

/* ---- hostile prototypes ---------------------------------------------------------------------- */

/* Each field of the head that sizes and places depend on, set to what does not fit. */
Test(puc_sym, heads_that_lie)
{
	const struct puc_layout *puc;
	const char *row;
	size_t i, k;

	EACH_PUC_LAYOUT(puc, row, i)
	{
		const struct {
			uint16_t field;
			unsigned size;
			uint64_t value;
		} lies[] = {
			{PUC_GC_TT, 1, 7},
			{puc->p_sizecode, 4, 0},
			{puc->p_sizecode, 4, 0xffffffff},
			{puc->p_sizek, 4, 0x80000000},
			{puc->p_sizep, 4, 0xffffffff},
			{puc->p_sizelocvars, 4, 0xffffffff},
			{puc->p_sizeupvalues, 4, 0xfffffff0},
			{puc->p_sizelineinfo, 4, 0xffffffff},
			{puc->p_code, 8, 0},
			{puc->p_code, 8, 1ULL << 47},
		};

		for (k = 0; k < LENGTH(lies); k++) {
			struct test_arena *a __cleanup(arena_free) = arena_new(puc);
			uint64_t addr = sample_proto(a, false);
			struct puc_proto *p = (void *)1;

			arena_put(a, addr + lies[k].field, &lies[k].value, lies[k].size);
			cr_assert_eq(puc_proto_read(arena_mem(a), puc, addr, &p), -EBADMSG,
				     "%s: lie %zu", row, k);
			cr_assert_eq(p, (void *)1, "untouched on failure");
		}
	}
}

/* A head that may be one, but what it says is so of no prototype. Names and lines are not asked. */
Test(puc_sym, what_no_prototype_is)
{
	const struct puc_layout *puc;
	const char *row;
	size_t i, k;

	EACH_PUC_LAYOUT(puc, row, i)
	{
		const struct {
			uint16_t field;
			unsigned size;
			uint64_t value;
			const char *misfit;
		} lies[] = {
			{puc->p_linedefined, 4, 10, NULL},
			{puc->p_linedefined, 4, 2000, NULL}, /* all on one line */
			{puc->p_source, 8, 0, NULL},
			{puc->p_source, 8, ARENA_BASE + 3, "layout-source"},
			{puc->p_source, 8, 1ULL << 48, "layout-source"},
			{puc->p_linedefined, 4, 2001, "layout-lines"},
			{puc->p_linedefined, 4, 0, "layout-lines"},
			{puc->p_linedefined, 4, 0xffffffff, "layout-lines"},
			{puc->p_lastlinedefined, 4, 0x80000000, "layout-lines"},
			{puc->p_sizelineinfo, 4, NCALLS - 1, "layout-lineinfo"},
			{puc->p_sizelineinfo, 4, 0, NULL},
			{puc->p_sizecode, 4, NCALLS - 1, "layout-lineinfo"},
		};

		for (k = 0; k < LENGTH(lies); k++) {
			struct test_arena *a __cleanup(arena_free) = arena_new(puc);
			struct puc_proto *p __cleanup(puc_proto_free) = NULL;
			uint64_t addr = sample_proto(a, false);

			arena_put(a, addr + lies[k].field, &lies[k].value, lies[k].size);
			p = read_proto(a, addr, row);
			if (!lies[k].misfit)
				cr_expect_null(puc_proto_misfit(p), "%s: %zu", row, k);
			else
				cr_expect_str_eq(puc_proto_misfit(p), lies[k].misfit, "%s: %zu",
						 row, k);
		}
	}
}

Test(puc_sym, parts_of_no_prototype)
{
	static const uint8_t types[] = {2, 5, 6, 7, 8, 9, 15};
	const struct puc_layout *puc;
	const char *row;
	size_t i, k;

	EACH_PUC_LAYOUT(puc, row, i)
	{
		struct test_arena *a __cleanup(arena_free) = arena_new(puc);
		uint64_t addr = sample_proto(a, true), at;
		struct puc_proto *p __cleanup(puc_proto_free) = read_proto(a, addr, row);

		cr_expect_null(puc_proto_misfit(p), "%s: stripped", row);
		puc_proto_free(&p);
		at = arena_get64(a, addr + puc->p_k) + PUC_TV_SIZE + PUC_TV_TT;
		for (k = 0; k < LENGTH(types); k++) {
			arena_put8(a, at, types[k]);
			p = read_proto(a, addr, row);
			cr_expect_str_eq(puc_proto_misfit(p), "layout-constants", "%s", row);
			puc_proto_free(&p);
		}
		arena_put8(a, at, 0);
		arena_put32(a, arena_get64(a, addr + puc->p_code) + 4 * (NCALLS - 1), 0);
		p = read_proto(a, addr, row);
		cr_expect_str_eq(puc_proto_misfit(p), "layout-code", "%s", row);
	}
}

/* More than there is, of each part: what there is counts. */
Test(puc_sym, sizes_that_lie)
{
	const struct puc_layout *puc;
	const char *row;
	size_t i, k;

	EACH_PUC_LAYOUT(puc, row, i)
	{
		const uint16_t sizes[] = {puc->p_sizecode, puc->p_sizelineinfo, puc->p_sizek,
					  puc->p_sizelocvars, puc->p_sizeupvalues};

		for (k = 0; k < LENGTH(sizes); k++) {
			struct test_arena *a __cleanup(arena_free) = arena_new(puc);
			uint64_t addr = sample_proto(a, false);
			struct puc_proto *p __cleanup(puc_proto_free) = NULL;
			const struct lb_mem *mem;

			arena_put32(a, addr + sizes[k], 0x7fffffff);
			mem = arena_mem_without(a, ARENA_OBJECTS, 0);
			cr_assert_eq(puc_proto_read(mem, puc, addr, &p), 0, "%s", row);
			cr_assert_not(puc_proto_complete(p), "%s: %zu", row, k);
			check_names(p, puc->version, false);
			check_lines(p, true);
		}
	}
}

Test(puc_sym, not_an_address)
{
	const char *row;
	const struct puc_layout *puc = puc_layout_row(0, &row);
	struct puc_proto *p = NULL;
	struct mem_image img;

	mem_image_init(&img);
	cr_assert_eq(puc_proto_read(&img.mem, puc, 0, &p), -EBADMSG);
	cr_assert_eq(puc_proto_read(&img.mem, puc, ARENA_BASE + 4, &p), -EBADMSG);
	cr_assert_eq(puc_proto_read(&img.mem, puc, 1ULL << 48, &p), -EBADMSG);
	cr_assert_eq(puc_proto_read(&img.mem, puc, ARENA_BASE, &p), -EFAULT);
}

/* A line beyond the last instruction's, as of a main function whose array was freed and holds
 * instructions by now; or outside a function. No line is shown then. */
Test(puc_sym, lines_of_another)
{
	const struct puc_layout *puc;
	const char *row;
	size_t i, k;

	EACH_PUC_LAYOUT(puc, row, i)
	{
		const struct {
			uint32_t first, last, line; /* linedefined, lastlinedefined */
		} cases[] = {
			{0, 0, 0x7fff005f}, /* FORLOOP 1 -4 */
			{10, 2000, 0x7fff005f},
			{1, 1500, 1501},
			{11, 2000, 10},
		};

		for (k = 0; k < LENGTH(cases); k++) {
			struct test_arena *a __cleanup(arena_free) = arena_new(puc);
			struct puc_proto *p __cleanup(puc_proto_free) = NULL;
			uint64_t addr = sample_proto(a, false), info;

			arena_put32(a, addr + puc->p_linedefined, cases[k].first);
			arena_put32(a, addr + puc->p_lastlinedefined, cases[k].last);
			info = arena_get64(a, addr + (puc->p_abslineinfo == PUC_NONE
							      ? puc->p_lineinfo
							      : puc->p_abslineinfo));
			arena_put32(a, info + 4, cases[k].line); /* of pc 1, or 12 */
			p = read_proto(a, addr, row);
			cr_expect_null(puc_proto_misfit(p), "%s: %zu", row, k);
			cr_expect_not(puc_proto_complete(p), "%s: %zu", row, k);
			cr_expect_eq(puc_proto_line(p, 0), -1, "%s: %zu", row, k);
			cr_expect_eq(puc_proto_line(p, 1), -1, "%s: %zu", row, k);
		}
	}
}

/* Tables of lines that the compiler would not write. */
Test(puc_sym, lines_that_lie)
{
	const char *row;
	const struct puc_layout *puc = puc_layout_of("5.4.4", &row);
	static const struct {
		int32_t abs[4]; /* pc, line; pc, line */
		uint8_t at[4];	/* lineinfo[2 .. 5] */
		int32_t lines[8];
	} lies[] = {
		/* no entry for a pc that asks for one: not known up to the next */
		{{5, 50, 9, 90}, {0x80, 1, 1, 0x80}, {10, 11, -1, -1, -1, 50, 51, 52}},
		/* out of order */
		{{5, 50, 2, 20}, {0x80, 1, 1, 0x80}, {10, 11, -1, -1, -1, 50, 51, 52}},
		/* below the function's first line: none of these lines is its own */
		{{-3, 7, 2, -5}, {0x80, 7, 13, 1}, {-1, -1, -1, -1, -1, -1, -1, -1}},
		{{2, INT32_MAX, 3, 0}, {0x80, 0x80, 0, 0}, {-1, -1, -1, -1, -1, -1, -1, -1}},
		/* beyond what an int holds */
		{{2, INT32_MAX, 9, 100}, {0x80, 1, 0xff, 0}, {10, 11, INT32_MAX, -1, INT32_MAX}},
	};
	size_t i, k;

	for (i = 0; i < LENGTH(lies); i++) {
		struct test_arena *a __cleanup(arena_free) = arena_new(puc);
		uint64_t addr = sample_proto(a, false), info, abs;
		struct puc_proto *p __cleanup(puc_proto_free) = NULL;

		info = arena_get64(a, addr + puc->p_lineinfo);
		abs = arena_get64(a, addr + puc->p_abslineinfo);
		arena_put(a, info + 2, lies[i].at, sizeof(lies[i].at));
		arena_put(a, abs, lies[i].abs, sizeof(lies[i].abs));
		arena_put32(a, addr + puc->p_lastlinedefined, INT32_MAX);
		p = read_proto(a, addr, row);
		for (k = 0; k < 8 && lies[i].lines[k]; k++)
			cr_assert_eq(puc_proto_line(p, (uint32_t)k), lies[i].lines[k],
				     "lie %zu: %zu is %d", i, k, puc_proto_line(p, (uint32_t)k));
	}
}
