/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Call-site names of a prototype, as LuaJIT's lj_debug.c derives them: a backward search for the
 * instruction that set the called slot, with a budget.
 */
#include "proto.h"
#include "proto_parts.h"

#include <string.h>

#include "bc.h"

/* A backward search for a name. At each copy it scans all variables for the new slot: foreign bytes
 * could make this quadratic. */
struct lj_name_search {
	const struct lj_proto *p;
	uint32_t budget;
};
#define BUDGET (1u << 20) /* instructions and variables; a function of 100,000 needs a fraction */

static bool spend(struct lj_name_search *s, uint32_t n)
{
	s->budget -= n < s->budget ? n : s->budget;
	return s->budget;
}

/* debug_varname: returns the local variable in a slot at bcpos, or NULL. Long names cost more
 * budget. */
static const char *varname(struct lj_name_search *s, uint32_t bcpos, uint32_t slot)
{
	struct lj_varcursor c;
	const uint8_t *from;
	struct lj_var var;

	lj_var_begin(s->p, &c);
	from = c.p;
	while (lj_var_next(&c, &var) && var.start <= bcpos) {
		if (bcpos < var.end && slot-- == 0)
			return var.name;
		if (!spend(s, 1 + (uint32_t)(c.p - from) / 16))
			break;
		from = c.p;
	}
	return NULL;
}

/* Sets a name that may be missing: then there is no kind either. */
static enum lj_namewhat named(enum lj_namewhat what, const char *text, const char **name)
{
	if (!text)
		return LJ_NAME_NONE;
	*name = text;
	return what;
}

/* True for obj:f(): a copy of obj to the first argument's slot is just before the method's load. */
static bool is_method(const struct lj_proto *p, uint32_t pos)
{
	uint32_t get = lj_proto_ins(p, pos), before;

	if (!pos)
		return false;
	before = lj_proto_ins(p, pos - 1);
	return lj_bc_op(before) == LJ_BC_MOV && lj_bc_a(before) == lj_bc_a(get) + 2u &&
	       lj_bc_d(before) == lj_bc_b(get);
}

/* Names the source of the value that the instruction at pos wrote to a slot. */
static enum lj_namewhat origin(const struct lj_proto *p, uint32_t pos, const char **name)
{
	uint32_t ins = lj_proto_ins(p, pos);

	switch (lj_bc_op(ins)) {
	case LJ_BC_GGET:
		return named(LJ_NAME_GLOBAL, lj_proto_kstr(p, lj_bc_d(ins)), name);
	case LJ_BC_TGETS:
		return named(is_method(p, pos) ? LJ_NAME_METHOD : LJ_NAME_FIELD,
			     lj_proto_kstr(p, lj_bc_c(ins)), name);
	case LJ_BC_UGET:
		return named(LJ_NAME_UPVALUE, lj_proto_uvname(p, lj_bc_d(ins)), name);
	default:
		return LJ_NAME_NONE;
	}
}

/* lj_debug_slotname: searches backward for the instruction that wrote the slot. */
static enum lj_namewhat slotname(struct lj_name_search *s, uint32_t pos, uint32_t slot,
				 const char **name)
{
	const char *local = varname(s, pos, slot);

	if (local)
		return named(LJ_NAME_LOCAL, local, name);
	while (pos-- > 1 && spend(s, 1)) {
		uint32_t ins = lj_proto_ins(s->p, pos);

		switch (lj_bc_mode_a(ins)) {
		case LJ_BCM_BASE:
			if (slot >= lj_bc_a(ins) &&
			    (lj_bc_op(ins) != LJ_BC_KNIL || slot <= lj_bc_d(ins)))
				return LJ_NAME_NONE;
			break;
		case LJ_BCM_DST:
			if (slot != lj_bc_a(ins))
				break;
			if (lj_bc_op(ins) != LJ_BC_MOV)
				return origin(s->p, pos, name);
			slot = lj_bc_d(ins);
			local = varname(s, pos, slot);
			if (local)
				return named(LJ_NAME_LOCAL, local, name);
			break;
		default:
			break;
		}
	}
	return LJ_NAME_NONE;
}

enum lj_namewhat lj_proto_callname(const struct lj_proto *p, uint32_t bcpos, const char **name)
{
	uint32_t ins = lj_proto_ins(p, bcpos);
	struct lj_name_search s = {.p = p, .budget = BUDGET};
	enum lj_mm mm = lj_bc_mm(ins);
	uint32_t slot = lj_bc_a(ins);

	if (!lj_proto_has_ins(p, bcpos) || mm == LJ_MM_NONE)
		return LJ_NAME_NONE;
	if (!lj_bc_is_call(ins))
		return named(LJ_NAME_METAMETHOD, lj_mm_name(mm), name);
	/* ITERN runs next() without a frame. A frame on one means that the VM has since
	 * despecialized it to ITERC, and this copy is older. */
	if (lj_bc_op(ins) == LJ_BC_ITERC || lj_bc_op(ins) == LJ_BC_ITERN)
		slot -= 3;
	return slotname(&s, bcpos, slot, name);
}

/* callname() returns the records' own strings: equal pointers are the same variable. */
bool lj_proto_is_parameter(const struct lj_proto *p, const char *name)
{
	struct lj_varcursor c;
	struct lj_var var;

	lj_var_begin(p, &c);
	while (lj_var_next(&c, &var) && !var.start)
		if (var.name == name)
			return true;
	return false;
}

const char *lj_namewhat_str(enum lj_namewhat what)
{
	static const char *const names[] = {
		[LJ_NAME_NONE] = "",
		[LJ_NAME_LOCAL] = "local",
		[LJ_NAME_GLOBAL] = "global",
		[LJ_NAME_METHOD] = "method",
		[LJ_NAME_FIELD] = "field",
		[LJ_NAME_UPVALUE] = "upvalue",
		[LJ_NAME_METAMETHOD] = "metamethod",
	};

	return names[what];
}
