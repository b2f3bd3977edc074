// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include <unwind/puc/fingerprint.h>

#include "puc_code.h"

/* ---- instructions ---------------------------------------------------------------------------- */

#define PUC_BC(name, kind, writes, mm) OP51_##name,
enum {
#include "lua/puc/bc51.def"
};
#undef PUC_BC
#define PUC_BC(name, kind, writes, mm) OP52_##name,
enum {
#include "lua/puc/bc52.def"
};
#undef PUC_BC
#define PUC_BC(name, kind, writes, mm) OP53_##name,
enum {
#include "lua/puc/bc53.def"
};
#undef PUC_BC
#define PUC_BC(name, kind, writes, mm) OP54_##name,
enum {
#include "lua/puc/bc54.def"
};
#undef PUC_BC
#define PUC_BC(name, kind, writes, mm) OP55_##name,
enum {
#include "lua/puc/bc55.def"
};
#undef PUC_BC

#define BY_VERSION(name51, name52, name53, name54, name55)                                         \
	{                                                                                          \
		OP51_##name51, OP52_##name52, OP53_##name53, OP54_##name54, OP55_##name55          \
	}
#define ALL(name) BY_VERSION(name, name, name, name, name)

static const uint8_t opcodes[][5] = {
	[I_MOVE] = ALL(MOVE),
	[I_CALL] = ALL(CALL),
	[I_GLOBAL] = BY_VERSION(GETGLOBAL, GETTABUP, GETTABUP, GETTABUP, GETTABUP),
	[I_SELF] = ALL(SELF),
	[I_UPVAL] = ALL(GETUPVAL),
	[I_FIELD] = BY_VERSION(GETTABLE, GETTABLE, GETTABLE, GETFIELD, GETFIELD),
	[I_INDEX] = BY_VERSION(GETTABLE, GETTABLE, GETTABLE, GETI, GETI),
	[I_LOADK] = ALL(LOADK),
	[I_ADDING] = BY_VERSION(ADD, ADD, ADD, MMBIN, MMBIN),
	[I_LT] = ALL(LT),
	[I_LE] = ALL(LE),
	[I_FORCALL] = BY_VERSION(TFORLOOP, TFORCALL, TFORCALL, TFORCALL, TFORCALL),
	[I_TEST] = ALL(TEST),
	[I_JMP] = ALL(JMP),
	[I_LOADNIL] = ALL(LOADNIL),
	[I_CLOSURE] = ALL(CLOSURE),
	[I_DATA] = BY_VERSION(MOVE, NOT, NOT, NOT, NOT),
	[I_SETGLOBAL] = BY_VERSION(SETGLOBAL, SETTABUP, SETTABUP, SETTABUP, SETTABUP),
	[I_SETFIELD] = BY_VERSION(SETTABLE, SETTABLE, SETTABLE, SETFIELD, SETFIELD),
	[I_SETUPVAL] = ALL(SETUPVAL),
	[I_NEWTABLE] = ALL(NEWTABLE),
	[I_RETURN] = ALL(RETURN),
};

int puc_code_op(unsigned v, enum puc_code_op op)
{
	return opcodes[op][v - 51];
}

uint32_t puc_code_abc(unsigned v, int op, int a, int b, int c, int k)
{
	if (v >= 54)
		return (uint32_t)op | (uint32_t)a << 7 | (uint32_t)k << 15 | (uint32_t)b << 16 |
		       (uint32_t)c << 24;
	return (uint32_t)op | (uint32_t)a << 6 | (uint32_t)c << 14 | (uint32_t)b << 23;
}

uint32_t puc_code_abx(unsigned v, int op, int a, int bx)
{
	return v >= 54 ? (uint32_t)op | (uint32_t)a << 7 | (uint32_t)bx << 15
		       : (uint32_t)op | (uint32_t)a << 6 | (uint32_t)bx << 14;
}

uint32_t puc_code_jump(unsigned v, int distance)
{
	uint32_t op = (uint32_t)puc_code_op(v, I_JMP);

	return v >= 54 ? op | (uint32_t)(distance + 0xffffff) << 7
		       : op | (uint32_t)(distance + 0x1ffff) << 14;
}

static uint32_t encode(unsigned v, const struct puc_code_ins *i)
{
	int op = puc_code_op(v, i->op);
	int K = v < 54 ? 0x100 : 0; /* RK operands */

	switch (i->op) {
	case I_MOVE:
	case I_UPVAL:
	case I_SETUPVAL:
		return puc_code_abc(v, op, i->a, i->b, 0, 0);
	case I_CALL:
		return puc_code_abc(v, op, i->a, 1, 1, 0);
	case I_GLOBAL:
		return v == 51 ? puc_code_abx(v, op, i->a, i->b)
			       : puc_code_abc(v, op, i->a, 0, K | i->b, 0);
	case I_SELF:
		return puc_code_abc(v, op, i->a, i->b, K | i->c, v >= 54);
	case I_FIELD:
	case I_INDEX:
		return puc_code_abc(v, op, i->a, i->b, K | i->c, 0);
	case I_LOADK:
	case I_CLOSURE:
		return puc_code_abx(v, op, i->a, i->b);
	case I_ADDING:
		return puc_code_abc(v, op, 1, 0, 6 /* TM_ADD */, 0);
	case I_FORCALL:
		return puc_code_abc(v, op, i->a, 0, 1, 0);
	case I_TEST:
	case I_NEWTABLE:
	case I_LT:
	case I_LE:
		return puc_code_abc(v, op, i->a, 0, 0, 0);
	case I_JMP:
		return puc_code_jump(v, i->a);
	case I_LOADNIL:
		return puc_code_abc(v, op, i->a, v == 51 ? i->b : i->b - i->a, 0, 0);
	case I_DATA: /* writes a register that is not looked at */
		return v == 51 ? puc_code_abc(v, op, i->a, i->b, 0, 0)
			       : puc_code_abc(v, op, 200, 0, 0, 0);
	case I_SETGLOBAL:
		return v == 51 ? puc_code_abx(v, op, i->b, i->a)
			       : puc_code_abc(v, op, 0, K | i->a, i->b, 0);
	case I_SETFIELD:
		return puc_code_abc(v, op, i->a, K | i->b, i->c, 0);
	case I_RETURN:
		return puc_code_abc(v, op, 0, 1, 0, 0);
	}
	abort();
}

/* ---- objects --------------------------------------------------------------------------------- */

uint64_t puc_code_lstr(struct test_arena *a, const char *text, uint32_t len, bool is_short)
{
	const struct puc_layout *puc = a->puc;
	bool apart = puc->version == 55 && !is_short;
	uint64_t s = arena_take(a, puc->s_text + (apart ? 8 : len + 1)), at = s + puc->s_text;

	arena_put8(a, s + PUC_GC_TT, is_short ? puc->tt_shrstr : puc->tt_lngstr);
	if (puc->s_shrlen != PUC_NONE)
		arena_put8(a, s + puc->s_shrlen, is_short ? (uint8_t)len : 0xff);
	if (puc->s_shrlen == PUC_NONE || !is_short)
		arena_put64(a, s + puc->s_len, len);
	if (apart) {
		at = arena_take(a, len + 1);
		arena_put64(a, s + puc->s_text, at);
	}
	arena_put(a, at, text, len);
	arena_put8(a, at + len, 0);
	return s;
}

uint64_t puc_code_str(struct test_arena *a, const char *text)
{
	return puc_code_lstr(a, text, (uint32_t)strlen(text), strlen(text) <= PUC_SHORT_STRING);
}

/* Line of instruction i: 10 + i, from FAR on 1000 + i. */
#define FAR 20
int32_t puc_code_line(uint32_t i)
{
	return (int32_t)(i < FAR ? 10 + i : 1000 + i);
}

static void put_lines(struct test_arena *a, uint64_t p, unsigned n)
{
	const struct puc_layout *puc = a->puc;
	bool delta = puc->p_abslineinfo != PUC_NONE;
	uint64_t info = arena_take(a, delta ? n : 4 * n), abs;
	unsigned i;

	arena_put64(a, p + puc->p_lineinfo, info);
	arena_put32(a, p + puc->p_sizelineinfo, n);
	if (puc_code_line(n) > 2000)
		arena_put32(a, p + puc->p_lastlinedefined, (uint32_t)puc_code_line(n));
	for (i = 0; i < n; i++) {
		if (!delta)
			arena_put32(a, info + 4 * i, (uint32_t)puc_code_line(i));
		else
			arena_put8(a, info + i, i == FAR || i == 12 ? 0x80 : i != 0);
	}
	if (!delta)
		return;
	abs = arena_take(a, 16);
	arena_put64(a, p + puc->p_abslineinfo, abs);
	arena_put32(a, p + puc->p_sizeabslineinfo, 2);
	arena_put32(a, abs, 12);
	arena_put32(a, abs + 4, (uint32_t)puc_code_line(12));
	arena_put32(a, abs + 8, FAR);
	arena_put32(a, abs + 12, (uint32_t)puc_code_line(FAR));
}

static void put_constants(struct test_arena *a, uint64_t p, const char *const *texts)
{
	uint64_t k = arena_take(a, 16 * 16);
	uint32_t n;

	for (n = 0; texts[n]; n++) {
		bool number = texts[n][0] == '#';
		bool is_long = strlen(texts[n]) > PUC_SHORT_STRING;

		arena_put64(a, k + 16 * n, number ? 0x4008000000000000 : puc_code_str(a, texts[n]));
		arena_put32(a, k + 16 * n + PUC_TV_TT,
			    number		    ? 3u
			    : a->puc->version == 51 ? 4u
			    : is_long		    ? a->puc->tt_lngstr | 0x40u
						    : a->puc->tt_shrstr | 0x40u);
	}
	arena_put64(a, p + a->puc->p_k, k);
	arena_put32(a, p + a->puc->p_sizek, n);
}

static void put_upvals(struct test_arena *a, uint64_t p, bool stripped)
{
	uint32_t size = a->puc->upvaldesc_size;
	uint64_t up = arena_take(a, 2 * size);

	arena_put64(a, up,
		    stripped ? 0 : puc_code_str(a, a->puc->version == 51 ? "first" : "_ENV"));
	arena_put64(a, up + size, stripped ? 0 : puc_code_str(a, "up"));
	arena_put64(a, p + a->puc->p_upvalues, up);
	arena_put32(a, p + a->puc->p_sizeupvalues, stripped && a->puc->version == 51 ? 0 : 2);
}

static void put_locals(struct test_arena *a, uint64_t p, const struct puc_code_source *s)
{
	uint64_t v = arena_take(a, 16 * 8);
	uint32_t n;

	for (n = 0; !s->stripped && s->locals[n].name; n++) {
		arena_put64(a, v + 16 * n, puc_code_str(a, s->locals[n].name));
		arena_put32(a, v + 16 * n + 8, s->locals[n].start);
		arena_put32(a, v + 16 * n + 12, s->locals[n].end);
	}
	arena_put64(a, p + a->puc->p_locvars, v);
	arena_put32(a, p + a->puc->p_sizelocvars, n);
}

uint64_t puc_code_empty(struct test_arena *a, int linedefined)
{
	static const uint16_t none = PUC_NONE;
	const struct puc_layout *puc = a->puc;
	const uint16_t sizes[] = {puc->p_sizecode,    puc->p_sizelineinfo, puc->p_sizeabslineinfo,
				  puc->p_sizek,	      puc->p_sizep,	   puc->p_sizelocvars,
				  puc->p_sizeupvalues};
	uint64_t p = arena_take(a, puc->p_size);
	size_t i;

	arena_put8(a, p + PUC_GC_TT, puc->tt_proto);
	for (i = 0; i < LENGTH(sizes); i++)
		if (sizes[i] != none)
			arena_put32(a, p + sizes[i], 0);
	arena_put32(a, p + puc->p_linedefined, (uint32_t)linedefined);
	arena_put32(a, p + puc->p_lastlinedefined, 2000);
	if (puc->version == 51)
		arena_put8(a, p + puc->p_numparams - 1, 2); /* nups */
	return p;
}

uint64_t puc_code_proto(struct test_arena *a, const struct puc_code_source *s)
{
	const struct puc_layout *puc = a->puc;
	uint64_t p = puc_code_empty(a, 10), code = arena_take(a, 4 * s->ncode), children;
	unsigned i;

	for (i = 0; i < s->ncode; i++)
		arena_put32(a, code + 4 * i, encode(puc->version, &s->code[i]));
	arena_put64(a, p + puc->p_code, code);
	arena_put32(a, p + puc->p_sizecode, s->ncode);
	arena_put64(a, p + puc->p_source, s->stripped ? 0 : puc_code_str(a, "@/srv/app/main.lua"));
	if (!s->stripped)
		put_lines(a, p, s->ncode);
	put_constants(a, p, s->k);
	put_upvals(a, p, s->stripped);
	put_locals(a, p, s);
	if (s->nchildren) {
		children = arena_take(a, 8 * s->nchildren);
		for (i = 0; i < s->nchildren; i++)
			arena_put64(a, children + 8 * i, s->children[i]);
		arena_put64(a, p + puc->p_p, children);
		arena_put32(a, p + puc->p_sizep, s->nchildren);
	}
	return p;
}

uint64_t puc_code_print(const uint8_t *head, const struct puc_layout *puc)
{
	struct puc_fp_head h;

	return puc_fp_head(head, puc, &h);
}
