/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Instructions are 32 bit, fields from the least significant bit on (lopcodes.h):
 *
 *     5.1 - 5.3   op 6 | A 8 | C 9 | B 9         op 6 | A 8 | Bx 18        op 6 | Ax 26
 *     5.4, 5.5    op 7 | A 8 | k 1 | B 8 | C 8   op 7 | A 8 | Bx 17        op 7 | Ax 25
 *
 * Signed fields are biased by half their range.
 */
#include "bc.h"

struct bc_row {
	uint8_t op;
	bool writes_a;
	const char *mm;
};

enum { WRITES_NONE, WRITES_A };
#define PUC_BC(name, kind, writes, mm) {PUC_BC_##kind, WRITES_##writes, mm},
static const struct bc_row rows51[] = {
#include "bc51.def"
};
static const struct bc_row rows52[] = {
#include "bc52.def"
};
static const struct bc_row rows53[] = {
#include "bc53.def"
};
static const struct bc_row rows54[] = {
#include "bc54.def"
};
static const struct bc_row rows55[] = {
#include "bc55.def"
};
#undef PUC_BC

/* lopcodes.h, NUM_OPCODES: each table is complete */
_Static_assert(sizeof(rows51) / sizeof(rows51[0]) == 38, "5.1");
_Static_assert(sizeof(rows52) / sizeof(rows52[0]) == 40, "5.2");
_Static_assert(sizeof(rows53) / sizeof(rows53[0]) == 47, "5.3");
_Static_assert(sizeof(rows54) / sizeof(rows54[0]) == 83, "5.4");
_Static_assert(sizeof(rows55) / sizeof(rows55[0]) == 85, "5.5");

static struct bc_row row_of(unsigned version, uint32_t op)
{
#define TABLE(v)                                                                                   \
	{                                                                                          \
		rows##v, sizeof(rows##v) / sizeof(rows##v[0])                                      \
	}
	static const struct {
		const struct bc_row *rows;
		uint32_t n;
	} tables[] = {TABLE(51), TABLE(52), TABLE(53), TABLE(54), TABLE(55)};
#undef TABLE
	static const struct bc_row none = {PUC_BC_OTHER, false, ""};
	unsigned i = version - 51;

	if (i >= sizeof(tables) / sizeof(tables[0]) || op >= tables[i].n)
		return none;
	return tables[i].rows[op];
}

static uint32_t field(uint32_t ins, unsigned pos, unsigned size)
{
	return ins >> pos & ((1u << size) - 1);
}

static int32_t excess(uint32_t value, unsigned size)
{
	return (int32_t)value - (int32_t)((1u << size) - 1) / 2;
}

struct puc_ins puc_bc_decode(unsigned version, uint32_t ins)
{
	bool wide = version >= 54;
	struct bc_row row = row_of(version, field(ins, 0, wide ? 7 : 6));
	struct puc_ins i = {.op = row.op, .writes_a = row.writes_a, .mm = row.mm};

	if (wide) {
		i.a = field(ins, 7, 8);
		i.k = field(ins, 15, 1);
		i.b = field(ins, 16, 8);
		i.c = field(ins, 24, 8);
		i.bx = field(ins, 15, 17);
		i.sj = excess(field(ins, 7, 25), 25);
	} else {
		i.a = field(ins, 6, 8);
		i.b = field(ins, 23, 9);
		i.c = field(ins, 14, 9);
		i.bx = field(ins, 14, 18);
		i.sj = excess(i.bx, 18);
	}
	return i;
}

uint32_t puc_bc_ax(unsigned version, uint32_t ins)
{
	return version >= 54 ? field(ins, 7, 25) : field(ins, 6, 26);
}

bool puc_bc_isk(uint32_t operand, uint32_t *k)
{
	*k = operand & 0xff;
	return operand & 0x100;
}

const char *puc_bc_event(uint32_t event)
{
	static const char *const names[] = {
		"__index", "__newindex", "__gc",   "__mode",  "__len", "__eq",	 "__add",
		"__sub",   "__mul",	 "__mod",  "__pow",   "__div", "__idiv", "__band",
		"__bor",   "__bxor",	 "__shl",  "__shr",   "__unm", "__bnot", "__lt",
		"__le",	   "__concat",	 "__call", "__close",
	};

	return event < sizeof(names) / sizeof(names[0]) ? names[event] : "";
}
