// SPDX-License-Identifier: BSD-2-Clause
/* Bytecode as text: what LuaJIT's jit/bc.lua prints (bcline()), blanks at the end of a line aside. */
#include "bytecode.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua/lj/bc.h"
#include "lua/lj/proto_parts.h"
#include "reader.h"
#include "report.h"

#define STRING_SHOWN 40
#define INT_TYPE (-14) /* lj_obj.h, LJ_TISNUM: of builds that have integers */

/* Function headers, from FUNCF on. */
static const struct lj_bc_row headers[] = {
	{.name = "FUNCF", .a = LJ_BCM_RBASE},
	{.name = "IFUNCF", .a = LJ_BCM_RBASE},
	{.name = "JFUNCF", .a = LJ_BCM_RBASE, .c = LJ_BCM_LIT},
	{.name = "FUNCV", .a = LJ_BCM_RBASE},
	{.name = "IFUNCV", .a = LJ_BCM_RBASE},
	{.name = "JFUNCV", .a = LJ_BCM_RBASE, .c = LJ_BCM_LIT},
	{.name = "FUNCC", .a = LJ_BCM_RBASE},
	{.name = "FUNCCW", .a = LJ_BCM_RBASE},
};

/* NULL: an instruction that is not known. */
static const struct lj_bc_row *row_of(const struct lj_layout *lj, uint32_t ins)
{
	uint32_t op = lj_bc_op(ins), header = op - lj_bc_funcf_21(lj);

	if (op < LJ_BC__LISTED)
		return &lj_bc_rows[op];
	return header < sizeof(headers) / sizeof(headers[0]) ? &headers[header] : NULL;
}

static uint32_t jump_target(uint32_t pos, uint32_t ins)
{
	return pos + lj_bc_d(ins) - 0x7fff;
}

static bool is_jump(const struct lj_layout *lj, uint32_t ins)
{
	const struct lj_bc_row *row = row_of(lj, ins);

	return row && row->c == LJ_BCM_JUMP;
}

/* As tostring() does it. */
static void put_number(const struct lj_proto *pt, uint32_t i, bool less_2_52, struct text *out)
{
	uint64_t tv;
	double n;

	if (!lj_proto_knum(pt, i, &tv)) {
		text_putc(out, '?');
		return;
	}
	memcpy(&n, &tv, sizeof(n));
	if ((lj_is_gc32(&pt->lj) ? (int32_t)(tv >> 32) : LJ_TV_TYPE(tv)) == INT_TYPE)
		n = (int32_t)tv;
	if (less_2_52)
		n -= 0x1p52;
	if (isnan(n))
		text_puts(out, "nan");
	else
		text_printf(out, "%.14g", n);
}

/* The first STRING_SHOWN bytes; control characters are escaped before they are counted. */
static void put_string(const struct lj_proto *pt, uint32_t i, struct text *out)
{
	const char *s = lj_proto_kstr(pt, i);
	char shown[8 * STRING_SHOWN];
	size_t n = 0;
	uint32_t len;

	if (!s) {
		text_putc(out, '?');
		return;
	}
	len = pt->kgc[i].len;
	for (uint32_t at = 0; at < len && n < sizeof(shown) - 8; at++) {
		unsigned char c = (unsigned char)s[at];
		const char *named = c ? strchr("\nn\rr\tt", c) : NULL;

		if (named && c < ' ')
			n += (size_t)snprintf(shown + n, 8, "\\%c", named[1]);
		else if (c < ' ' || c == 127)
			n += (size_t)snprintf(shown + n, 8, "\\%03d", c);
		else
			shown[n++] = (char)c;
	}
	if (len > STRING_SHOWN && n > STRING_SHOWN)
		n = STRING_SHOWN;
	text_putc(out, '"');
	text_put_utf8(out, shown, n);
	text_puts(out, len > STRING_SHOWN ? "\"~" : "\"");
}

static void put_upvalue(const struct lj_proto *pt, uint32_t i, struct text *out)
{
	const char *name = lj_proto_uvname(pt, i);

	if (name)
		text_put_utf8(out, name, strlen(name));
}

static void put_function(const struct traces_vm *vm, const struct lj_proto *pt, uint32_t i,
			 struct text *out)
{
	const struct lj_proto *child =
		i < pt->nkgc ? traces_function_read(vm->reader, pt->kgc[i].ref) : NULL;
	struct traces_place at = {.pt = child, .line = child ? child->firstline : 0};

	traces_put_place(&at, out);
}

/* True if there is a comment. */
static bool put_constant(const struct traces_vm *vm, const struct lj_proto *pt, uint32_t ins,
			 const struct lj_bc_row *row, struct text *out)
{
	uint32_t d = row->b ? lj_bc_c(ins) : lj_bc_d(ins);

	if (row->a == LJ_BCM_UV) {
		put_upvalue(pt, lj_bc_a(ins), out);
		if (row->c == LJ_BCM_NUM || row->c == LJ_BCM_STR)
			text_puts(out, " ; ");
	}
	switch (row->c) {
	case LJ_BCM_STR:
		put_string(pt, d, out);
		return true;
	case LJ_BCM_NUM:
		put_number(pt, d, lj_bc_op(ins) == LJ_BC_TSETM, out);
		return true;
	case LJ_BCM_FUNC:
		put_function(vm, pt, d, out);
		return true;
	case LJ_BCM_UV:
		put_upvalue(pt, d, out);
		return true;
	default:
		return row->a == LJ_BCM_UV;
	}
}

void traces_put_bytecode(const struct traces_vm *vm, const struct lj_proto *pt, uint32_t bcpos,
			 uint32_t ins, struct text *out)
{
	const struct lj_bc_row *row = row_of(&pt->lj, ins);
	__text struct text comment = {};
	int d;

	if (!row) {
		text_printf(out, "?%u", lj_bc_op(ins));
		return;
	}
	text_printf(out, row->c || row->a ? "%-6s" : "%s", row->name);
	if (row->a)
		text_printf(out, " %3u", lj_bc_a(ins));
	else if (row->c)
		text_printf(out, " %3s", "");
	if (row->c == LJ_BCM_JUMP) {
		text_printf(out, " => %04u", jump_target(bcpos, ins));
		return;
	}
	d = row->b ? lj_bc_c(ins) : row->c == LJ_BCM_LITS ? (int16_t)lj_bc_d(ins) : lj_bc_d(ins);
	if (row->b)
		text_printf(out, " %3u %3d", lj_bc_b(ins), d);
	else if (row->c)
		text_printf(out, " %3d", d);
	if (!put_constant(vm, pt, ins, row, &comment))
		return;
	text_printf(out, row->b ? "  ; %s" : "      ; %s", text_str(&comment));
	if (text_err(&comment))
		out->err = text_err(&comment);
}

bool *traces_jump_targets(const struct lj_proto *pt)
{
	bool *targets = calloc(pt->sizebc + 1UL, sizeof(*targets));

	for (uint32_t i = 1; targets && lj_proto_has_ins(pt, i); i++) {
		uint32_t ins = lj_proto_ins(pt, i);

		if (is_jump(&pt->lj, ins) && jump_target(i, ins) <= pt->sizebc)
			targets[jump_target(i, ins)] = true;
	}
	return targets;
}

/* Of a compiled start: what the root trace keeps of it. */
static bool traced_ins(const struct traces_mark *marks, size_t nmarks, uint32_t *ins)
{
	for (size_t i = 0; i < nmarks; i++) {
		const struct traces_mark *m = &marks[i];

		if (m->kind != TRACES_MARK_TRACE || m->trace->root || m->trace->stitched)
			continue;
		*ins = m->trace->startins;
		return true;
	}
	return false;
}

bool traces_was(const struct lj_proto *pt, uint32_t bcpos, const struct traces_mark *marks,
		size_t nmarks, uint32_t *ins)
{
	uint32_t now = lj_proto_ins(pt, bcpos), op = lj_bc_op(now);
	uint32_t header = op - lj_bc_funcf_21(&pt->lj);

	switch (op) {
	case LJ_BC_JFORI: /* with the same operands */
	case LJ_BC_IFORL:
	case LJ_BC_IITERL:
	case LJ_BC_ILOOP:
		*ins = now - 1;
		return true;
	case LJ_BC_JFORL:
	case LJ_BC_JITERL:
	case LJ_BC_JLOOP:
		return traced_ins(marks, nmarks, ins);
	default:
		break;
	}
	if (op < LJ_BC__LISTED || header >= LJ_FUNCC || header % 3 == 0)
		return false;
	if (header % 3 == 2)
		return traced_ins(marks, nmarks, ins);
	*ins = now - 1;
	return true;
}
