/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prototypes and library tables of PUC Lua, built in an image for each layout. That names agree
 * with Lua's own is for tests/e2e/test_pucsym.py to show; here are the layouts that no interpreter
 * at hand has, and the edges: what is missing, torn, or not what it says.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <luabpf/puc_print.h>

#include "base/mem_image.h"
#include "sym/puc_cnames.h"
#include "sym/puc_loaded.h"
#include "sym/puc_proto.h"
#include "vm/puc_bc.h"
#include "vm/puc_recognise.h"

TestSuite(puc_sym, .timeout = 60);

#define BASE 0x40000000ULL

/* ---- the image ---------------------------------------------------------------------------------
 */

/* Objects in one piece of memory, allocated front to back, and filled with junk. */
struct arena {
	const struct puc_layout *puc;
	uint8_t bytes[262144];
	uint32_t used;
	struct {
		uint64_t addr;
		uint32_t size;
	} objects[1024];
	unsigned n;
};

static struct arena *arena(const struct puc_layout *puc)
{
	struct arena *a = malloc(sizeof(*a));

	memset(a->bytes, 0xa5, sizeof(a->bytes));
	a->puc = puc;
	a->used = 0;
	a->n = 0;
	return a;
}

static uint64_t take(struct arena *a, uint32_t size)
{
	uint64_t addr = BASE + a->used;

	cr_assert_lt(a->n, 1024);
	a->objects[a->n].addr = addr;
	a->objects[a->n++].size = size;
	a->used += (size + 15) & ~15u;
	cr_assert_leq(a->used, sizeof(a->bytes));
	return addr;
}

static void put(struct arena *a, uint64_t addr, const void *bytes, size_t n)
{
	cr_assert_leq(addr - BASE + n, sizeof(a->bytes));
	memcpy(a->bytes + (addr - BASE), bytes, n);
}

static void put8(struct arena *a, uint64_t addr, uint8_t v)
{
	put(a, addr, &v, 1);
}

static void put32(struct arena *a, uint64_t addr, uint32_t v)
{
	put(a, addr, &v, 4);
}

static void put64(struct arena *a, uint64_t addr, uint64_t v)
{
	put(a, addr, &v, 8);
}

static uint64_t lstr(struct arena *a, const char *text, uint32_t len, bool is_short)
{
	const struct puc_layout *puc = a->puc;
	bool apart = puc->version == 55 && !is_short;
	uint64_t s = take(a, puc->s_text + (apart ? 8 : len + 1)), at = s + puc->s_text;

	put8(a, s + PUC_GC_TT, is_short ? puc->tt_shrstr : puc->tt_lngstr);
	if (puc->s_shrlen != PUC_NONE)
		put8(a, s + puc->s_shrlen, is_short ? (uint8_t)len : 0xff);
	if (puc->s_shrlen == PUC_NONE || !is_short)
		put64(a, s + puc->s_len, len);
	if (apart) {
		at = take(a, len + 1);
		put64(a, s + puc->s_text, at);
	}
	put(a, at, text, len);
	put8(a, at + len, 0);
	return s;
}

static uint64_t str(struct arena *a, const char *text)
{
	return lstr(a, text, (uint32_t)strlen(text), strlen(text) <= 40);
}

static void fill(struct mem_image *img, struct arena *a)
{
	mem_image_init(img);
	cr_assert_eq(mem_image_add(img, BASE, a->bytes, a->used), 0);
}

/* All but one object, and of that the first `part` bytes. */
static void fill_without(struct mem_image *img, struct arena *a, unsigned without, uint32_t part)
{
	unsigned i;

	mem_image_init(img);
	for (i = 0; i < a->n; i++) {
		uint32_t size = i == without ? part : a->objects[i].size;

		if (size)
			cr_assert_eq(mem_image_add(img, a->objects[i].addr,
						   a->bytes + (a->objects[i].addr - BASE), size),
				     0);
	}
}

/* Memory of which the k-th read fails. */
struct failing {
	struct lb_mem mem;
	const struct lb_mem *under;
	unsigned *count;
	unsigned k;
	bool all_later;
};

static int failing_read(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr)
{
	const struct failing *f = (const struct failing *)mem;
	unsigned n = (*f->count)++;

	memset(dst, 0xa5, size);
	if (n == f->k || (f->all_later && n > f->k))
		return -EFAULT;
	return mem_read(f->under, dst, size, addr);
}

/* ---- code --------------------------------------------------------------------------------------
 */

#define PUC_BC(name, kind, writes, mm) OP51_##name,
enum {
#include "vm/puc_bc51.def"
};
#undef PUC_BC
#define PUC_BC(name, kind, writes, mm) OP52_##name,
enum {
#include "vm/puc_bc52.def"
};
#undef PUC_BC
#define PUC_BC(name, kind, writes, mm) OP53_##name,
enum {
#include "vm/puc_bc53.def"
};
#undef PUC_BC
#define PUC_BC(name, kind, writes, mm) OP54_##name,
enum {
#include "vm/puc_bc54.def"
};
#undef PUC_BC
#define PUC_BC(name, kind, writes, mm) OP55_##name,
enum {
#include "vm/puc_bc55.def"
};
#undef PUC_BC

/* One language for all versions: what they say in different ways. K is a constant's index. */
enum op {
	MOVE,	   /* a b */
	CALL,	   /* a */
	GLOBAL,	   /* a K */
	SELF,	   /* a b K */
	UPVAL,	   /* a up */
	FIELD,	   /* a b K */
	INDEX,	   /* a b K: not a string */
	LOADK,	   /* a K */
	ADDING,	   /* the instruction that calls __add */
	FORCALL,   /* a */
	TEST,	   /* a */
	JMP,	   /* how far */
	LOADNIL,   /* a last */
	CLOSURE,   /* a child */
	DATA,	   /* 5.1: an upvalue of the closure, MOVE a b; nothing since */
	SETGLOBAL, /* K c */
	SETFIELD,  /* a K c */
	SETUPVAL,  /* a up */
	NEWTABLE,  /* a */
	RETURN,
};

struct ins {
	enum op op;
	int a, b, c;
};

#define BY_VERSION(name51, name52, name53, name54, name55)                                         \
	(v == 51   ? OP51_##name51                                                                 \
	 : v == 52 ? OP52_##name52                                                                 \
	 : v == 53 ? OP53_##name53                                                                 \
	 : v == 54 ? OP54_##name54                                                                 \
		   : OP55_##name55)
#define ALL(name) BY_VERSION(name, name, name, name, name)

static uint32_t abc(unsigned v, int op, int a, int b, int c, int k)
{
	if (v >= 54)
		return (uint32_t)op | (uint32_t)a << 7 | (uint32_t)k << 15 | (uint32_t)b << 16 |
		       (uint32_t)c << 24;
	return (uint32_t)op | (uint32_t)a << 6 | (uint32_t)c << 14 | (uint32_t)b << 23;
}

static uint32_t abx(unsigned v, int op, int a, int bx)
{
	return v >= 54 ? (uint32_t)op | (uint32_t)a << 7 | (uint32_t)bx << 15
		       : (uint32_t)op | (uint32_t)a << 6 | (uint32_t)bx << 14;
}

static uint32_t jump(unsigned v, int distance)
{
	return v >= 54 ? (uint32_t)ALL(JMP) | (uint32_t)(distance + 0xffffff) << 7
		       : (uint32_t)ALL(JMP) | (uint32_t)(distance + 0x1ffff) << 14;
}

static uint32_t encode(unsigned v, const struct ins *i)
{
	int K = v < 54 ? 0x100 : 0; /* RK operands */
	bool wide = v >= 54;

	switch (i->op) {
	case MOVE:
		return abc(v, ALL(MOVE), i->a, i->b, 0, 0);
	case CALL:
		return abc(v, ALL(CALL), i->a, 1, 1, 0);
	case GLOBAL:
		return v == 51 ? abx(v, OP51_GETGLOBAL, i->a, i->b)
			       : abc(v, BY_VERSION(MOVE, GETTABUP, GETTABUP, GETTABUP, GETTABUP),
				     i->a, 0, K | i->b, 0);
	case SELF:
		return abc(v, ALL(SELF), i->a, i->b, K | i->c, wide);
	case UPVAL:
		return abc(v, ALL(GETUPVAL), i->a, i->b, 0, 0);
	case FIELD:
		return abc(v, BY_VERSION(GETTABLE, GETTABLE, GETTABLE, GETFIELD, GETFIELD), i->a,
			   i->b, K | i->c, 0);
	case INDEX:
		return abc(v, BY_VERSION(GETTABLE, GETTABLE, GETTABLE, GETI, GETI), i->a, i->b,
			   K | i->c, 0);
	case LOADK:
		return abx(v, ALL(LOADK), i->a, i->b);
	case ADDING:
		return abc(v, BY_VERSION(ADD, ADD, ADD, MMBIN, MMBIN), 1, 0, 6 /* TM_ADD */, 0);
	case FORCALL:
		return abc(v, BY_VERSION(TFORLOOP, TFORCALL, TFORCALL, TFORCALL, TFORCALL), i->a, 0,
			   1, 0);
	case TEST:
		return abc(v, ALL(TEST), i->a, 0, 0, 0);
	case JMP:
		return jump(v, i->a);
	case LOADNIL:
		return abc(v, ALL(LOADNIL), i->a, v == 51 ? i->b : i->b - i->a, 0, 0);
	case CLOSURE:
		return abx(v, ALL(CLOSURE), i->a, i->b);
	case DATA:
		return v == 51 ? abc(v, OP51_MOVE, i->a, i->b, 0, 0)
			       : abc(v, ALL(NOT), 200, 0, 0, 0);
	case SETGLOBAL:
		return v == 51 ? abx(v, OP51_SETGLOBAL, i->b, i->a)
			       : abc(v, BY_VERSION(MOVE, SETTABUP, SETTABUP, SETTABUP, SETTABUP), 0,
				     K | i->a, i->b, 0);
	case SETFIELD:
		return abc(v, BY_VERSION(SETTABLE, SETTABLE, SETTABLE, SETFIELD, SETFIELD), i->a,
			   K | i->b, i->c, 0);
	case SETUPVAL:
		return abc(v, ALL(SETUPVAL), i->a, i->b, 0, 0);
	case NEWTABLE:
		return abc(v, ALL(NEWTABLE), i->a, 0, 0, 0);
	case RETURN:
		return abc(v, ALL(RETURN), 0, 1, 0, 0);
	}
	abort();
}

/* ---- prototypes --------------------------------------------------------------------------------
 */

#define LONG_NAME "a_name_that_is_longer_than_the_forty_bytes_of_a_short_string"

struct source {
	const struct ins *code;
	unsigned ncode;
	const char *const *k; /* up to NULL; "#" is a number */
	struct {
		const char *name;
		uint32_t start, end;
	} locals[8];
	const uint64_t *children;
	unsigned nchildren;
	bool stripped;
};

/* Line of instruction i: 10 + i, from FAR on 1000 + i. */
#define FAR 20
static int32_t line_of(uint32_t i)
{
	return (int32_t)(i < FAR ? 10 + i : 1000 + i);
}

static void put_lines(struct arena *a, uint64_t p, unsigned n)
{
	const struct puc_layout *puc = a->puc;
	bool delta = puc->p_abslineinfo != PUC_NONE;
	uint64_t info = take(a, delta ? n : 4 * n), abs;
	unsigned i;

	put64(a, p + puc->p_lineinfo, info);
	put32(a, p + puc->p_sizelineinfo, n);
	for (i = 0; i < n; i++) {
		if (!delta)
			put32(a, info + 4 * i, (uint32_t)line_of(i));
		else
			put8(a, info + i, i == FAR || i == 12 ? 0x80 : i != 0);
	}
	if (!delta)
		return;
	abs = take(a, 16);
	put64(a, p + puc->p_abslineinfo, abs);
	put32(a, p + puc->p_sizeabslineinfo, 2);
	put32(a, abs, 12);
	put32(a, abs + 4, (uint32_t)line_of(12));
	put32(a, abs + 8, FAR);
	put32(a, abs + 12, (uint32_t)line_of(FAR));
}

static void put_constants(struct arena *a, uint64_t p, const char *const *texts)
{
	uint64_t k = take(a, 16 * 16);
	uint32_t n;

	for (n = 0; texts[n]; n++) {
		bool number = texts[n][0] == '#';
		bool is_long = strlen(texts[n]) > 40;

		put64(a, k + 16 * n, number ? 0x4008000000000000 : str(a, texts[n]));
		put32(a, k + 16 * n + PUC_TV_TT,
		      number		      ? 3u
		      : a->puc->version == 51 ? 4u
		      : is_long		      ? a->puc->tt_lngstr | 0x40u
					      : a->puc->tt_shrstr | 0x40u);
	}
	put64(a, p + a->puc->p_k, k);
	put32(a, p + a->puc->p_sizek, n);
}

static void put_upvals(struct arena *a, uint64_t p, bool stripped)
{
	uint32_t size = a->puc->upvaldesc_size;
	uint64_t up = take(a, 2 * size);

	put64(a, up, stripped ? 0 : str(a, a->puc->version == 51 ? "first" : "_ENV"));
	put64(a, up + size, stripped ? 0 : str(a, "up"));
	put64(a, p + a->puc->p_upvalues, up);
	put32(a, p + a->puc->p_sizeupvalues, stripped && a->puc->version == 51 ? 0 : 2);
}

static void put_locals(struct arena *a, uint64_t p, const struct source *s)
{
	uint64_t v = take(a, 16 * 8);
	uint32_t n;

	for (n = 0; !s->stripped && s->locals[n].name; n++) {
		put64(a, v + 16 * n, str(a, s->locals[n].name));
		put32(a, v + 16 * n + 8, s->locals[n].start);
		put32(a, v + 16 * n + 12, s->locals[n].end);
	}
	put64(a, p + a->puc->p_locvars, v);
	put32(a, p + a->puc->p_sizelocvars, n);
}

static uint64_t empty_proto(struct arena *a, int linedefined)
{
	static const uint16_t none = PUC_NONE;
	const struct puc_layout *puc = a->puc;
	const uint16_t sizes[] = {puc->p_sizecode,    puc->p_sizelineinfo, puc->p_sizeabslineinfo,
				  puc->p_sizek,	      puc->p_sizep,	   puc->p_sizelocvars,
				  puc->p_sizeupvalues};
	uint64_t p = take(a, puc->p_size);
	size_t i;

	put8(a, p + PUC_GC_TT, puc->tt_proto);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (sizes[i] != none)
			put32(a, p + sizes[i], 0);
	put32(a, p + puc->p_linedefined, (uint32_t)linedefined);
	put32(a, p + puc->p_lastlinedefined, 2000);
	if (puc->version == 51)
		put8(a, p + puc->p_numparams - 1, 2); /* nups */
	return p;
}

static uint64_t proto(struct arena *a, const struct source *s)
{
	const struct puc_layout *puc = a->puc;
	uint64_t p = empty_proto(a, 10), code = take(a, 4 * s->ncode), children;
	unsigned i;

	for (i = 0; i < s->ncode; i++)
		put32(a, code + 4 * i, encode(puc->version, &s->code[i]));
	put64(a, p + puc->p_code, code);
	put32(a, p + puc->p_sizecode, s->ncode);
	put64(a, p + puc->p_source, s->stripped ? 0 : str(a, "@/srv/app/main.lua"));
	if (!s->stripped)
		put_lines(a, p, s->ncode);
	put_constants(a, p, s->k);
	put_upvals(a, p, s->stripped);
	put_locals(a, p, s);
	if (s->nchildren) {
		children = take(a, 8 * s->nchildren);
		for (i = 0; i < s->nchildren; i++)
			put64(a, children + 8 * i, s->children[i]);
		put64(a, p + puc->p_p, children);
		put32(a, p + puc->p_sizep, s->nchildren);
	}
	return p;
}

static const struct ins calls[] = {
	{LOADNIL, 0, 0, 0},		     /* 0: local f begins, in register 0 */
	{MOVE, 1, 0, 0},    {CALL, 1, 0, 0}, /* 2: local f */
	{GLOBAL, 1, 0, 0},  {CALL, 1, 0, 0}, /* 4: global g */
	{SELF, 1, 0, 1},    {CALL, 1, 0, 0}, /* 6: method m */
	{UPVAL, 1, 1, 0},   {CALL, 1, 0, 0}, /* 8: upvalue up */
	{FIELD, 1, 0, 2},   {CALL, 1, 0, 0}, /* 10: field x */
	{INDEX, 1, 0, 3},   {CALL, 1, 0, 0}, /* 12: field, by a number */
	{LOADK, 1, 2, 0},   {CALL, 1, 0, 0}, /* 14: constant x */
	{ADDING, 0, 0, 0},		     /* 15: metamethod __add */
	{FORCALL, 0, 0, 0},		     /* 16: for iterator; 5.1: local f */
	{UPVAL, 1, 1, 0},   {TEST, 0, 0, 0},	{JMP, 1, 0, 0}, /* 19, to 21 */
	{GLOBAL, 1, 0, 0},  {CALL, 1, 0, 0}, /* 21: not known; 5.1 looks at the way around */
	{GLOBAL, 1, 0, 0},  {LOADNIL, 1, 1, 0}, {CALL, 1, 0, 0}, /* 24: nil */
	{GLOBAL, 2, 0, 0},  {LOADNIL, 0, 1, 0}, {CALL, 2, 0, 0}, /* 27: global g, spared */
	{FIELD, 1, 0, 4},   {CALL, 1, 0, 0},			 /* 29: field with a long name */
	{MOVE, 1, 0, 0},    {CALL, 1, 0, 0},			 /* 31: f has ended */
	{CALL, 5, 0, 0},					 /* 32: no writer */
	{GLOBAL, 0, 0, 0},  {MOVE, 1, 0, 0},	{CALL, 1, 0, 0}, /* 35: local h */
	{UPVAL, 0, 1, 0},   {FIELD, 1, 0, 2},	{CALL, 1, 0, 0}, /* 38: x of a local _ENV */
	{UPVAL, 1, 0, 0},   {FIELD, 1, 1, 2},	{CALL, 1, 0, 0}, /* 41: x of the upvalue _ENV */
	{RETURN, 0, 0, 0},					 /* 42 */
};
#define NCALLS (sizeof(calls) / sizeof(calls[0]))
#define F_ENDS 30

static const char *const call_k[] = {"g", "m", "x", "#", LONG_NAME, NULL};

struct expected {
	uint32_t pc;
	enum puc_namewhat what;
	const char *name;
};
static const struct expected called[] = {
	{2, PUC_NAME_LOCAL, "f"},	   {4, PUC_NAME_GLOBAL, "g"},
	{6, PUC_NAME_METHOD, "m"},	   {8, PUC_NAME_UPVALUE, "up"},
	{10, PUC_NAME_FIELD, "x"},	   {29, PUC_NAME_FIELD, LONG_NAME},
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

static uint64_t sample_proto(struct arena *a, bool stripped)
{
	return proto(a,
		     &(struct source){.code = calls,
				      .ncode = NCALLS,
				      .k = call_k,
				      .locals = {{"f", 1, F_ENDS}, {"h", 34, 36}, {"_ENV", 37, 39}},
				      .stripped = stripped});
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

#define LENGTH(x) (sizeof(x) / sizeof(x[0]))
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

		cr_assert(line == line_of(i) || (!all && line == -1), "%u: %d", i, line);
	}
	cr_assert_eq(puc_proto_line(p, NCALLS), -1);
	cr_assert_eq(puc_proto_line(p, UINT32_MAX), -1);
}

/* Each row of the table, with its name. */
#define EACH_LAYOUT(puc, name, i) for (i = 0; ((puc) = puc_layout_row(i, &(name))) != NULL; i++)

Test(puc_sym, names_and_lines)
{
	const struct puc_layout *puc;
	const char *row;
	size_t i;

	EACH_LAYOUT(puc, row, i)
	{
		struct arena *a = arena(puc);
		uint64_t addr = sample_proto(a, false);
		struct puc_proto *p = NULL;
		struct mem_image img;
		size_t len;

		fill(&img, a);
		cr_assert_eq(puc_proto_read(&img.mem, puc, addr, &p), 0, "%s", row);
		mem_image_clear(&img);
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
		free(a);
	}
	cr_assert_gt(i, 8, "the table has all versions");
}

Test(puc_sym, stripped)
{
	const struct puc_layout *puc;
	const char *row, *name;
	size_t i;

	EACH_LAYOUT(puc, row, i)
	{
		struct arena *a = arena(puc);
		uint64_t addr = sample_proto(a, true);
		struct puc_proto *p = NULL;
		struct mem_image img;

		fill(&img, a);
		cr_assert_eq(puc_proto_read(&img.mem, puc, addr, &p), 0, "%s", row);
		cr_assert(puc_proto_complete(p) && puc_proto_stripped(p));
		cr_assert_str_eq(puc_proto_chunkname(p, NULL), "=?");
		cr_assert_eq(puc_proto_line(p, 0), 0);
		cr_assert_eq(puc_proto_line(p, 30), 0);
		cr_assert_eq(puc_proto_callname(p, 2, &name), PUC_NAME_NONE);
		/* what is a global cannot be told without the upvalue's name, but in 5.1 */
		cr_assert_eq(puc_proto_callname(p, 4, &name),
			     puc->version == 51 ? PUC_NAME_GLOBAL : PUC_NAME_FIELD);
		cr_assert_str_eq(name, "g");
		cr_assert_eq(puc_proto_callname(p, 6, &name), PUC_NAME_METHOD);
		cr_assert_eq(puc_proto_callname(p, 8, &name), PUC_NAME_UPVALUE);
		cr_assert_str_eq(name, "?");
		puc_proto_free(&p);
		mem_image_clear(&img);
		free(a);
	}
}

Test(puc_sym, kth_read_fails)
{
	const struct puc_layout *puc;
	unsigned k, count = 0, partial = 0;
	const char *row;
	size_t i;

	EACH_LAYOUT(puc, row, i)
	{
		struct arena *a = arena(puc);
		uint64_t addr = sample_proto(a, false);
		struct mem_image img;

		fill(&img, a);
		for (k = 0; k < 400; k++) {
			struct failing f = {.mem.read = failing_read,
					    .under = &img.mem,
					    .count = &count,
					    .k = k / 2,
					    .all_later = k % 2};
			struct puc_proto *p = NULL;
			int err;

			count = 0;
			err = puc_proto_read(&f.mem, puc, addr, &p);
			cr_assert_eq(!err, !!p);
			if (!p)
				continue;
			check_names(p, puc->version, puc_proto_complete(p));
			check_lines(p, puc_proto_complete(p));
			cr_assert(puc_proto_complete(p) || count > f.k, "%s", row);
			partial += !puc_proto_complete(p);
			puc_proto_free(&p);
		}
		mem_image_clear(&img);
		free(a);
	}
	cr_assert_gt(partial, 0);
}

/* Each object is not there, or only a part of it: nothing is told that is not so. */
Test(puc_sym, known_in_part)
{
	const struct puc_layout *puc;
	const char *row;
	size_t i;

	EACH_LAYOUT(puc, row, i)
	{
		struct arena *a = arena(puc);
		uint64_t addr = sample_proto(a, false);
		unsigned k, known = 0;

		for (k = 0; k < 3 * a->n; k++) {
			uint32_t size = a->objects[k / 3].size;
			struct puc_proto *p = NULL;
			struct mem_image img;
			int err;

			fill_without(&img, a, k / 3, k % 3 ? size / 3 * (k % 3) : 0);
			err = puc_proto_read(&img.mem, puc, addr, &p);
			if (err) {
				cr_assert_eq(err, -EFAULT, "%s", row);
			} else {
				check_names(p, puc->version, puc_proto_complete(p));
				check_lines(p, puc_proto_complete(p));
				known++;
			}
			puc_proto_free(&p);
			mem_image_clear(&img);
		}
		cr_assert_gt(known, 2 * a->n, "head and chunk name alone have to be there");
		free(a);
	}
}

Test(puc_sym, hash_and_fingerprint)
{
	const struct puc_layout *puc;
	const char *row;
	size_t i;

	EACH_LAYOUT(puc, row, i)
	{
		const uint16_t fields[] = {puc->p_code,
					   puc->p_k,
					   puc->p_p,
					   puc->p_source,
					   puc->p_lineinfo,
					   puc->p_locvars,
					   puc->p_upvalues,
					   puc->p_sizecode,
					   puc->p_linedefined,
					   puc->p_lastlinedefined,
					   puc->p_sizek,
					   puc->p_sizep,
					   puc->p_sizelineinfo,
					   puc->p_sizelocvars,
					   puc->p_sizeupvalues};
		struct arena *a = arena(puc);
		uint64_t addr = sample_proto(a, false), hash;
		uint8_t head[PUC_PROTO_HEAD] __attribute__((aligned(8)));
		struct puc_proto *p = NULL;
		struct mem_image img;
		uint32_t print, of_head;
		size_t f;

		fill(&img, a);
		cr_assert_eq(puc_proto_read(&img.mem, puc, addr, &p), 0, "%s", row);
		mem_image_clear(&img);
		print = puc_proto_fingerprint(p);
		hash = puc_proto_hash(p);
		puc_proto_free(&p);

		memset(head, 0x77, sizeof(head)); /* what lies behind it does not count */
		memcpy(head, a->bytes + (addr - BASE), puc->p_size);
		of_head = puc_proto_print(head, puc);
		memset(head + puc->p_size, 0x33, sizeof(head) - puc->p_size);
		cr_assert_eq(puc_proto_print(head, puc), of_head);
		head[PUC_GC_NEXT] ^= 0x10;
		head[PUC_GC_TT + 1] ^= 1; /* marked */
		cr_assert_eq(puc_proto_print(head, puc), of_head);
		for (f = 0; f < LENGTH(fields); f++) {
			head[fields[f]] ^= 0x10;
			cr_assert_neq(puc_proto_print(head, puc), of_head, "%s: %zu", row, f);
			head[fields[f]] ^= 0x10;
		}

		/* the same elsewhere in memory */
		take(a, 64);
		addr = sample_proto(a, false);
		fill(&img, a);
		cr_assert_eq(puc_proto_read(&img.mem, puc, addr, &p), 0);
		cr_assert_eq(puc_proto_hash(p), hash);
		cr_assert_neq(puc_proto_fingerprint(p), print);
		mem_image_clear(&img);
		puc_proto_free(&p);

		/* another line of code */
		put32(a, addr + puc->p_linedefined, 11);
		fill(&img, a);
		cr_assert_eq(puc_proto_read(&img.mem, puc, addr, &p), 0);
		cr_assert_neq(puc_proto_hash(p), hash);
		mem_image_clear(&img);
		puc_proto_free(&p);
		free(a);
	}
}

/* `cache` and gclist change while a prototype lives: they are no part of the fingerprint. */
Test(puc_sym, fingerprint_spares_what_changes)
{
	static const struct {
		const char *release;
		unsigned offset; /* lobject.h */
	} changing[] = {
		{"5.1.5", 104},			/* gclist */
		{"5.2.4", 64},	{"5.2.4", 112}, /* cache, gclist */
		{"5.3.6", 96},	{"5.3.6", 112}, {"5.4.4", 120}, {"5.5.0", 120},
	};
	uint8_t head[PUC_PROTO_HEAD] __attribute__((aligned(8))) = {0};
	const char *row;
	size_t i;

	for (i = 0; i < LENGTH(changing); i++) {
		const struct puc_layout *puc = puc_layout_of(changing[i].release, &row);
		uint32_t print;

		cr_assert_not_null(puc);
		print = puc_proto_print(head, puc);
		memset(head + changing[i].offset, 0x5a, 8);
		cr_assert_eq(puc_proto_print(head, puc), print, "%s", changing[i].release);
		memset(head, 0, sizeof(head));
	}
}

/* Each of the first constants counts, and of a string its hash; none beyond them does. */
Test(puc_sym, fingerprint_of_constants)
{
	const char *row;
	const struct puc_layout *puc = puc_layout_of("5.4.4", &row);
	uint8_t k[PUC_TV_SIZE * (PUC_PRINT_KS + 1)] __attribute__((aligned(8))) = {0};
	uint8_t str[PUC_PRINT_STR] __attribute__((aligned(8))) = {0};
	__u64 first, string = BASE + 0x1000;
	uint32_t print, i;

	cr_assert_not_null(puc);
	memcpy(k + 2 * PUC_TV_SIZE, &string, sizeof(string));
	k[2 * PUC_TV_SIZE + PUC_TV_TT] = puc->tt_shrstr | 0x40;
	print = puc_print_k(7, k, PUC_PRINT_KS + 1, puc, &first);
	cr_expect_eq(first, string);
	cr_expect_neq(puc_print_k(8, k, PUC_PRINT_KS, puc, &first), print);
	for (i = 0; i <= PUC_PRINT_KS; i++) {
		k[i * PUC_TV_SIZE] ^= 0x10;
		cr_expect_eq(puc_print_k(7, k, PUC_PRINT_KS + 1, puc, &first) == print,
			     i == PUC_PRINT_KS, "constant %u", i);
		k[i * PUC_TV_SIZE] ^= 0x10;
	}
	cr_expect_neq(puc_print_k(7, k, 1, puc, &first), print);
	cr_expect_eq(first, 0, "no string among them");
	print = puc_print_str(7, str);
	str[9] ^= 1; /* marked */
	cr_expect_eq(puc_print_str(7, str), print);
	str[13] ^= 1;
	cr_expect_neq(puc_print_str(7, str), print);
}

/* Each field of the head that sizes and places depend on, set to what does not fit. */
Test(puc_sym, heads_that_lie)
{
	const struct puc_layout *puc;
	const char *row;
	size_t i, k;

	EACH_LAYOUT(puc, row, i)
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
			{puc->p_source, 8, BASE + 3},
			{puc->p_source, 8, 1ULL << 48},
		};

		for (k = 0; k < LENGTH(lies); k++) {
			struct arena *a = arena(puc);
			uint64_t addr = sample_proto(a, false);
			struct puc_proto *p = (void *)1;
			struct mem_image img;

			put(a, addr + lies[k].field, &lies[k].value, lies[k].size);
			fill(&img, a);
			cr_assert_eq(puc_proto_read(&img.mem, puc, addr, &p), -EBADMSG,
				     "%s: lie %zu", row, k);
			cr_assert_eq(p, (void *)1, "untouched on failure");
			mem_image_clear(&img);
			free(a);
		}
	}
}

/* More than there is, of each part: what there is counts. */
Test(puc_sym, sizes_that_lie)
{
	const struct puc_layout *puc;
	const char *row;
	size_t i, k;

	EACH_LAYOUT(puc, row, i)
	{
		const uint16_t sizes[] = {puc->p_sizecode, puc->p_sizelineinfo, puc->p_sizek,
					  puc->p_sizelocvars, puc->p_sizeupvalues};

		for (k = 0; k < LENGTH(sizes); k++) {
			struct arena *a = arena(puc);
			uint64_t addr = sample_proto(a, false);
			struct puc_proto *p = NULL;
			struct mem_image img;

			put32(a, addr + sizes[k], 0x7fffffff);
			fill_without(&img, a, UINT32_MAX, 0);
			cr_assert_eq(puc_proto_read(&img.mem, puc, addr, &p), 0, "%s", row);
			cr_assert_not(puc_proto_complete(p), "%s: %zu", row, k);
			check_names(p, puc->version, false);
			check_lines(p, true);
			puc_proto_free(&p);
			mem_image_clear(&img);
			free(a);
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
	cr_assert_eq(puc_proto_read(&img.mem, puc, BASE + 4, &p), -EBADMSG);
	cr_assert_eq(puc_proto_read(&img.mem, puc, 1ULL << 48, &p), -EBADMSG);
	cr_assert_eq(puc_proto_read(&img.mem, puc, BASE, &p), -EFAULT);
}

/* Tables of lines that the compiler would not write. */
Test(puc_sym, lines_that_lie)
{
	const struct puc_layout *puc = puc_layout_of("5.4.4", &(const char *){NULL});
	static const struct {
		int32_t abs[4]; /* pc, line; pc, line */
		uint8_t at[4];	/* lineinfo[2 .. 5] */
		int32_t lines[8];
	} lies[] = {
		/* no entry for a pc that asks for one: not known up to the next */
		{{5, 50, 9, 90}, {0x80, 1, 1, 0x80}, {10, 11, -1, -1, -1, 50, 51, 52}},
		/* out of order */
		{{5, 50, 2, 20}, {0x80, 1, 1, 0x80}, {10, 11, -1, -1, -1, 50, 51, 52}},
		/* below the beginning */
		{{-3, 7, 2, -5}, {0x80, 7, 1, 1}, {10, 11, -1, 2, 3, 4, 5, 6}},
		/* beyond what an int holds */
		{{2, INT32_MAX, 3, 0}, {0x80, 0x80, 0, 0}, {10, 11, INT32_MAX, 0, 0, 0, 1, 2}},
		{{2, INT32_MAX, 9, 0}, {0x80, 1, 0xff, 0}, {10, 11, INT32_MAX, -1, INT32_MAX}},
	};
	size_t i, k;

	for (i = 0; i < LENGTH(lies); i++) {
		struct arena *a = arena(puc);
		uint64_t addr = sample_proto(a, false), info, abs;
		struct puc_proto *p = NULL;
		struct mem_image img;

		memcpy(&info, a->bytes + (addr - BASE) + puc->p_lineinfo, 8);
		memcpy(&abs, a->bytes + (addr - BASE) + puc->p_abslineinfo, 8);
		put(a, info + 2, lies[i].at, sizeof(lies[i].at));
		put(a, abs, lies[i].abs, sizeof(lies[i].abs));
		fill(&img, a);
		cr_assert_eq(puc_proto_read(&img.mem, puc, addr, &p), 0);
		for (k = 0; k < 8 && (lies[i].lines[k] || i == 3); k++)
			cr_assert_eq(puc_proto_line(p, (uint32_t)k), lies[i].lines[k],
				     "lie %zu: %zu is %d", i, k, puc_proto_line(p, (uint32_t)k));
		puc_proto_free(&p);
		mem_image_clear(&img);
		free(a);
	}
}

/* A chunk whose name is its text. */
Test(puc_sym, chunkname_is_long)
{
	const struct puc_layout *puc;
	const char *row;
	size_t i, len;

	EACH_LAYOUT(puc, row, i)
	{
		static char text[9000];
		struct arena *a = arena(puc);
		uint64_t addr = sample_proto(a, false);
		struct puc_proto *p = NULL;
		struct mem_image img;

		memset(text, 'x', sizeof(text));
		text[5] = '\0';
		put64(a, addr + puc->p_source, lstr(a, text, sizeof(text), false));
		fill(&img, a);
		cr_assert_eq(puc_proto_read(&img.mem, puc, addr, &p), 0, "%s", row);
		cr_assert(puc_proto_complete(p));
		cr_assert_eq(memcmp(puc_proto_chunkname(p, &len), text, 8191), 0);
		cr_assert_eq(len, 8191);
		puc_proto_free(&p);
		mem_image_clear(&img);
		free(a);
	}
}

/* ---- definitions -------------------------------------------------------------------------------
 */

/* Closures have two upvalues each: in 5.1, two words that are no instructions follow. */
#define NEW(reg, child)                                                                            \
	{CLOSURE, reg, child, 0}, {DATA, 0, reg, 0},                                               \
	{                                                                                          \
		DATA, 0, 0, 0                                                                      \
	}

static const struct ins stores[] = {
	NEW(0, 0),				   /* 3: local l */
	NEW(1, 1),	     {SETGLOBAL, 0, 1, 0}, /* g */
	{NEWTABLE, 1, 0, 0},			   /* 7: */
	NEW(2, 2),	     {SETFIELD, 1, 1, 2},  /* M.x: M begins at 12 */
	NEW(2, 3),	     {SETUPVAL, 2, 1, 0},  /* up */
	NEW(2, 4),	     {SETFIELD, 3, 1, 2},  /* x of a table that has no name */
	NEW(2, 5),	     {CALL, 1, 0, 0},	   /* none */
	NEW(1, 6),	     {TEST, 0, 0, 0},	   {JMP, 1, 0, 0}, {SETGLOBAL, 0, 1, 0}, /* none */
	NEW(0, 7), /* l again */
	{RETURN, 0, 0, 0},
};

struct defined {
	char names[8][16];
	uint64_t first;
	uint64_t stride;
};

static int on_definition(void *arg, uint64_t child, const char *name)
{
	struct defined *d = arg;
	size_t i = (child - d->first) / d->stride;

	cr_assert_lt(i, 8);
	snprintf(d->names[i], sizeof(d->names[i]), "%s", name);
	return 0;
}

static int stop_at_once(void *arg, uint64_t child, const char *name)
{
	(void)child;
	(void)name;
	++*(int *)arg;
	return 42;
}

static uint64_t sample_defs(struct arena *a, struct defined *d)
{
	static const char *const k[] = {"g", "x", NULL};
	uint64_t children[8];
	int i;

	for (i = 0; i < 8; i++)
		children[i] = empty_proto(a, 100 + i);
	memset(d, 0, sizeof(*d));
	d->first = children[0];
	d->stride = children[1] - children[0];
	return proto(a, &(struct source){
				.code = stores,
				.ncode = LENGTH(stores),
				.k = k,
				.locals = {{"l", 3, LENGTH(stores)}, {"M", 12, 24}},
				.children = children,
				.nchildren = 8,
			});
}

Test(puc_sym, definitions)
{
	static const char *const names[] = {"l", "g", "M.x", "up", "x", "", "", "l"};
	const struct puc_layout *puc;
	const char *row;
	size_t i, k;

	EACH_LAYOUT(puc, row, i)
	{
		struct arena *a = arena(puc);
		struct puc_proto *p = NULL;
		struct mem_image img;
		struct defined d;
		uint64_t addr = sample_defs(a, &d);
		int calls_made = 0;

		fill(&img, a);
		cr_assert_eq(puc_proto_read(&img.mem, puc, addr, &p), 0, "%s", row);
		cr_assert_eq(puc_proto_definitions(p, on_definition, &d), 0);
		for (k = 0; k < 8; k++)
			cr_assert_str_eq(d.names[k], names[k], "%s: %zu is \"%s\"", row, k,
					 d.names[k]);
		cr_assert_eq(puc_proto_definitions(p, stop_at_once, &calls_made), 42);
		cr_assert_eq(calls_made, 1);
		puc_proto_free(&p);
		mem_image_clear(&img);
		free(a);
	}
}

Test(puc_sym, definitions_known_in_part)
{
	static const char *const names[] = {"l", "g", "M.x", "up", "x", "", "", "l"};
	const struct puc_layout *puc;
	const char *row;
	size_t i, k;

	EACH_LAYOUT(puc, row, i)
	{
		struct arena *a = arena(puc);
		struct defined d;
		uint64_t addr = sample_defs(a, &d);
		unsigned without;

		for (without = 0; without < a->n; without++) {
			struct puc_proto *p = NULL;
			struct mem_image img;

			memset(d.names, 0, sizeof(d.names));
			fill_without(&img, a, without, 0);
			if (!puc_proto_read(&img.mem, puc, addr, &p))
				puc_proto_definitions(p, on_definition, &d);
			for (k = 0; k < 8; k++) {
				const char *got = d.names[k];

				cr_assert(!*got || !strcmp(got, names[k]) || !strcmp(got, "x"),
					  "%s without %u: %zu is %s", row, without, k, got);
			}
			puc_proto_free(&p);
			mem_image_clear(&img);
		}
		free(a);
	}
}

/* ---- bytecode ----------------------------------------------------------------------------------
 */

Test(puc_sym, decoding)
{
	struct puc_ins i;
	unsigned v;

	for (v = 51; v <= 55; v++) {
		i = puc_bc_decode(v, jump(v, -5));
		cr_assert_eq(i.op, PUC_BC_JMP);
		cr_assert_eq(i.sj, -5);
		i = puc_bc_decode(v, jump(v, 70000));
		cr_assert_eq(i.sj, 70000);
		i = puc_bc_decode(v, abc(v, ALL(CALL), 201, 77, 33, 1));
		cr_assert(i.op == PUC_BC_CALL && i.a == 201 && i.b == 77 && i.c == 33);
		i = puc_bc_decode(v, abx(v, ALL(LOADK), 3, 99999));
		cr_assert(i.op == PUC_BC_LOADK && i.a == 3 && i.bx == 99999 && i.writes_a);
		i = puc_bc_decode(v, 0xffffffff); /* no such instruction */
		cr_assert(i.op == PUC_BC_OTHER && !i.writes_a && !*i.mm);
	}
	i = puc_bc_decode(50, 0);
	cr_assert_eq(i.op, PUC_BC_OTHER);
	cr_assert_str_eq(puc_bc_event(24), "__close");
	cr_assert_str_eq(puc_bc_event(25), "");
	cr_assert_str_eq(puc_bc_event(255), "");
}

/* ---- loaded libraries --------------------------------------------------------------------------
 */

struct value {
	uint64_t val;
	uint8_t tt;
};

struct field {
	const char *key;
	struct value v;
};

#define CODE 0x550000000000ULL /* C functions are here */

static void put_node(struct arena *a, uint64_t at, const struct field *f)
{
	const struct puc_layout *puc = a->puc;
	bool is_short = f && strlen(f->key) <= 40;
	uint8_t key_tt = !f ? 0 : is_short ? puc->tt_shrstr : puc->tt_lngstr;

	if (puc->version > 51 && f)
		key_tt |= 0x40;
	put64(a, at + puc->node_val, f ? f->v.val : 0);
	put8(a, at + puc->node_val + PUC_TV_TT, f ? f->v.tt : 0);
	put64(a, at + puc->node_key, f ? str(a, f->key) : 0);
	put8(a, at + puc->node_key_tt, key_tt);
}

static struct value table_at(struct arena *a, uint64_t t, const struct field *fields, uint32_t n)
{
	const struct puc_layout *puc = a->puc;
	uint8_t lsize = 0;
	uint64_t node;
	uint32_t i;

	while (1u << lsize < n)
		lsize++;
	node = take(a, puc->node_size << lsize);
	for (i = 0; i < 1u << lsize; i++)
		put_node(a, node + (uint64_t)i * puc->node_size, i < n ? &fields[i] : NULL);
	put8(a, t + PUC_GC_TT, 5);
	put8(a, t + puc->t_lsizenode, lsize);
	put64(a, t + puc->t_node, node);
	return (struct value){t, puc->version == 51 ? 5 : 5 | 0x40};
}

static struct value table(struct arena *a, const struct field *fields, uint32_t n)
{
	return table_at(a, take(a, 72), fields, n);
}

static struct value closure(struct arena *a, bool is_c, uint64_t target)
{
	const struct puc_layout *puc = a->puc;
	uint64_t c = take(a, puc->closure_p + 8);

	put8(a, c + PUC_GC_TT, is_c ? puc->tt_ccl : puc->tt_lcl);
	if (puc->closure_isC != PUC_NONE)
		put8(a, c + puc->closure_isC, is_c);
	put64(a, c + puc->closure_p, target);
	return (struct value){
		c, (uint8_t)((is_c ? puc->tt_ccl : puc->tt_lcl) | (puc->version == 51 ? 0 : 0x40))};
}

/* A C function: light where there are such. */
static struct value cfunc(struct arena *a, uint64_t f)
{
	if (a->puc->version == 51)
		return closure(a, true, CODE + f);
	return (struct value){CODE + f, a->puc->tt_lcf};
}

/* A registry with these modules, and the metatable of files. Returns g. */
static uint64_t vm(struct arena *a, const struct field *modules, uint32_t n)
{
	uint64_t g = take(a, a->puc->g_registry + 16);
	struct field index[] = {{"read", cfunc(a, 0x2100)}};
	struct field meta[] = {{"__index", table(a, index, 1)}, {"__gc", cfunc(a, 0x2110)}};
	struct field registry[] = {
		{"FILE*", table(a, meta, 2)},
		{"_PRELOAD", table(a, (struct field[]){{"nope", cfunc(a, 0x9000)}}, 1)},
		{"_LOADED", table(a, modules, n)},
		{"ref", {42, 3}},
	};
	struct value r = table(a, registry, 4);

	put64(a, g + a->puc->g_registry, r.val);
	put8(a, g + a->puc->g_registry + PUC_TV_TT, r.tt);
	return g;
}

static uint64_t sample_vm(struct arena *a)
{
	struct field globals[] = {
		{"print", cfunc(a, 0x2008)}, /* io.write, put there by the program */
		{"type", cfunc(a, 0x1010)},  {"pairs", closure(a, true, CODE + 0x1020)},
		{"fmt", cfunc(a, 0x3010)},   {"mylua", closure(a, false, 0x5000)},
		{"number", {3, 3}},	     {LONG_NAME, cfunc(a, 0x7200)},
	};
	struct field string[] = {{"rep", cfunc(a, 0x3000)}, {"format", cfunc(a, 0x3010)}};
	struct field io[] = {{"open", cfunc(a, 0x2000)}, {"write", cfunc(a, 0x2008)}};
	struct field deep[] = {{"f", cfunc(a, 0x7300)}, {"next_to_format", cfunc(a, 0x3011)}};
	struct field mine[] = {{"fmt", cfunc(a, 0x3010)},
			       {"enc", closure(a, true, CODE + 0x7000)},
			       {"type", cfunc(a, 0x1010)},
			       {"sub", table(a, deep, 2)}};
	struct field modules[] = {
		{"aaa", table(a, mine, 4)}, {"_G", table(a, globals, 7)},
		{"io", table(a, io, 2)},    {"string", table(a, string, 2)},
		{"cfn", cfunc(a, 0x7100)},
	};

	return vm(a, modules, 5);
}

Test(puc_sym, c_functions)
{
	static const struct {
		uint64_t f;
		const char *name;
	} expect[] = {
		{0x1010, "type"},
		{0x1020, "pairs"},
		{0x2000, "io.open"},
		{0x2008, "io.write"},
		{0x2100, "io.method.read"},
		{0x2110, "io.method.__gc"},
		{0x3000, "string.rep"},
		{0x3010, "string.format"},
		{0x7000, "aaa.enc"},
		{0x7100, "cfn"},
		{0x7200, LONG_NAME},
		{0x7300, "aaa.sub.f"},
		{0x9000, NULL},
		{0x1011, NULL},
	};
	const struct puc_layout *puc;
	const char *row, *name;
	size_t i, k;

	EACH_LAYOUT(puc, row, i)
	{
		struct arena *a = arena(puc);
		struct puc_cnames *n = NULL;
		uint64_t g = sample_vm(a);
		struct mem_image img;

		fill(&img, a);
		cr_assert_eq(puc_cnames_read(&img.mem, puc, g, &n), 0, "%s", row);
		for (k = 0; k < LENGTH(expect); k++) {
			name = puc_cname(n, CODE + expect[k].f);
			cr_assert_eq(!name, !expect[k].name, "%s: %zu", row, k);
			if (name)
				cr_assert_str_eq(name, expect[k].name, "%s: %s", row, name);
		}
		cr_assert_null(puc_cname(n, 0x5000), "a Lua function");
		cr_assert_null(puc_cname(NULL, CODE + 0x1010), "a VM that could not be read");
		puc_cnames_free(&n);
		mem_image_clear(&img);
		free(a);
	}
}

Test(puc_sym, c_functions_kth_read_fails)
{
	const struct puc_layout *puc;
	unsigned k, count = 0;
	const char *row;
	size_t i;

	EACH_LAYOUT(puc, row, i)
	{
		struct arena *a = arena(puc);
		uint64_t g = sample_vm(a);
		struct mem_image img;

		fill(&img, a);
		for (k = 0; k < 400; k++) {
			struct failing f = {.mem.read = failing_read,
					    .under = &img.mem,
					    .count = &count,
					    .k = k / 2,
					    .all_later = k % 2};
			struct puc_cnames *n = NULL;
			const char *name;

			count = 0;
			if (puc_cnames_read(&f.mem, puc, g, &n)) {
				cr_assert_null(n);
				continue;
			}
			name = puc_cname(n, CODE + 0x3000);
			cr_assert(!name || !strcmp(name, "string.rep"), "%s", row);
			puc_cnames_free(&n);
		}
		mem_image_clear(&img);
		free(a);
	}
}

static int count_calls(void *arg, const struct puc_loaded *l)
{
	(void)l;
	++*(int *)arg;
	return 0;
}

Test(puc_sym, loaded_tables_in_a_circle)
{
	const struct puc_layout *puc;
	const char *row;
	size_t i;

	EACH_LAYOUT(puc, row, i)
	{
		struct arena *a = arena(puc);
		uint64_t mod = take(a, 72), g;
		struct value self = {mod, puc->version == 51 ? 5 : 5 | 0x40};
		struct field fields[] = {{"self", self}, {"f", cfunc(a, 0x7000)}};
		struct field modules[] = {{"m", self}, {"again", self}};
		struct mem_image img;
		int found = 0;

		table_at(a, mod, fields, 2);
		g = vm(a, modules, 2);
		fill(&img, a);
		cr_assert_eq(puc_loaded_walk(&img.mem, puc, g, count_calls, &found), 0, "%s", row);
		cr_assert_eq(found, 3, "m.f, and the two of files: %d", found);
		cr_assert_eq(puc_loaded_walk(&img.mem, puc, BASE + (1 << 20), count_calls, &found),
			     -EFAULT);
		cr_assert_eq(puc_loaded_walk(&img.mem, puc, g - 8, count_calls, &found), -EBADMSG);
		mem_image_clear(&img);

		/* a table that claims more nodes than any has */
		put8(a, mod + puc->t_lsizenode, 63);
		fill(&img, a);
		found = 0;
		cr_assert_eq(puc_loaded_walk(&img.mem, puc, g, count_calls, &found), 0);
		cr_assert_eq(found, 2);
		mem_image_clear(&img);
		free(a);
	}
}
