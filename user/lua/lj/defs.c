/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LuaJIT's instructions for the search for definitions (lua/defs.h).
 *
 *     FNEW  r, child        the closure
 *     GSET  r, "f"          -> f
 *     USETV uv, r           -> the upvalue's name
 *     TSETS r, t, "f"       -> name of t . f
 */
#include "proto.h"
#include "proto_parts.h"

#include <unwind/lj/layout.h>

#include "lua/defs.h"
#include "bc.h"

struct lj_defs {
	struct defs d;
	const struct lj_proto *p;
	struct lj_varcursor locals;
};

static const struct lj_proto *proto(const struct defs *d)
{
	return ((const struct lj_defs *)d)->p;
}

static bool has_ins(const struct defs *d, uint32_t pos)
{
	return lj_proto_has_ins(proto(d), pos);
}

static bool next_local(struct defs *d, struct def_local *local)
{
	struct lj_var v;

	if (!lj_var_next(&((struct lj_defs *)d)->locals, &v))
		return false;
	/* a loop's hidden ones have no name */
	*local = (struct def_local){*v.name == '(' ? NULL : v.name, v.start, v.end, 0};
	return true;
}

static bool closure(const struct defs *d, uint32_t pos, uint32_t *slot, uint64_t *child)
{
	const struct lj_proto *p = proto(d);
	uint32_t ins = lj_proto_ins(p, pos), k = lj_bc_d(ins);

	if (lj_bc_op(ins) != LJ_BC_FNEW || k >= p->nkgc || p->kgc[k].gct != LJ_GCT_PROTO)
		return false;
	*slot = lj_bc_a(ins);
	*child = p->kgc[k].ref;
	return true;
}

static uint32_t next(const struct defs *d, uint32_t pos)
{
	(void)d;
	return pos + 1;
}

/* Returns the string that a KSTR just before pos wrote to a slot: a key that does not fit TSETS. */
static const char *string_in(const struct lj_proto *p, uint32_t pos, uint32_t slot)
{
	uint32_t back;

	for (back = 1; back <= 4 && back < pos; back++) {
		uint32_t ins = lj_proto_ins(p, pos - back);

		if (lj_bc_mode_a(ins) == LJ_BCM_DST && lj_bc_a(ins) == slot)
			return lj_bc_op(ins) == LJ_BC_KSTR ? lj_proto_kstr(p, lj_bc_d(ins)) : NULL;
	}
	return NULL;
}

static bool store(struct defs *d, uint32_t pos, uint32_t slot, int depth, struct def_name *n)
{
	const struct lj_proto *p = proto(d);
	uint32_t ins = lj_proto_ins(p, pos);
	bool a = lj_bc_a(ins) == slot, stores_d = lj_bc_d(ins) == slot;

	switch (lj_bc_op(ins)) {
	case LJ_BC_GSET:
		return a && def_name_set(n, lj_proto_kstr(p, lj_bc_d(ins)));
	case LJ_BC_USETV:
		return stores_d && def_name_set(n, lj_proto_uvname(p, lj_bc_a(ins)));
	case LJ_BC_MOV:
		return stores_d && def_name_set(n, defs_local(d, pos + 1, lj_bc_a(ins)));
	case LJ_BC_TSETS:
		return a &&
		       defs_field(d, pos, lj_bc_b(ins), lj_proto_kstr(p, lj_bc_c(ins)), depth, n);
	case LJ_BC_TSETV:
		return a &&
		       defs_field(d, pos, lj_bc_b(ins), string_in(p, pos, lj_bc_c(ins)), depth, n);
	default:
		return false;
	}
}

/* True if the instruction overwrites slot, or branches. */
static bool ends_slot(uint32_t ins, uint32_t slot)
{
	uint8_t op = lj_bc_op(ins);

	if (op >= LJ_BC_RETM || op == LJ_BC_ISNEXT)
		return true;
	switch (lj_bc_mode_a(ins)) {
	case LJ_BCM_DST:
		return lj_bc_a(ins) == slot;
	case LJ_BCM_BASE: /* TSETM reads its base, and a KNIL of other slots spares this one */
		return op != LJ_BC_TSETM && lj_bc_a(ins) <= slot &&
		       (op != LJ_BC_KNIL || lj_bc_d(ins) >= slot);
	default:
		return false;
	}
}

static bool ends(const struct defs *d, uint32_t pos, uint32_t slot)
{
	return ends_slot(lj_proto_ins(proto(d), pos), slot);
}

static enum def_write writes(const struct defs *d, uint32_t pos, uint32_t slot)
{
	uint32_t ins = lj_proto_ins(proto(d), pos);

	if (lj_bc_mode_a(ins) == LJ_BCM_DST && lj_bc_a(ins) == slot)
		return DEF_MADE;
	return lj_bc_mode_a(ins) == LJ_BCM_BASE && ends_slot(ins, slot) ? DEF_LOST : DEF_KEPT;
}

static bool origin(struct defs *d, uint32_t pos, int depth, struct def_name *n)
{
	const struct lj_proto *p = proto(d);
	uint32_t ins = lj_proto_ins(p, pos);

	switch (lj_bc_op(ins)) {
	case LJ_BC_GGET:
		return def_name_set(n, lj_proto_kstr(p, lj_bc_d(ins)));
	case LJ_BC_UGET:
		return def_name_set(n, lj_proto_uvname(p, lj_bc_d(ins)));
	case LJ_BC_TGETS:
		return defs_field(d, pos, lj_bc_b(ins), lj_proto_kstr(p, lj_bc_c(ins)), depth, n);
	case LJ_BC_MOV:
		return depth && defs_slot(d, pos, lj_bc_d(ins), depth - 1, n);
	case LJ_BC_TNEW:
	case LJ_BC_TDUP:
		return depth && defs_forward(d, pos, lj_bc_a(ins), depth - 1, n);
	default:
		return false;
	}
}

static const struct defs_vm vm = {
	.first = 1, /* after the function's head */
	.has_ins = has_ins,
	.next_local = next_local,
	.closure = closure,
	.next = next,
	.store = store,
	.ends = ends,
	.writes = writes,
	.origin = origin,
};

int lj_proto_definitions(const struct lj_proto *p, sym_definition_fn fn, void *arg)
{
	struct lj_defs d = {.d.vm = &vm, .p = p};

	lj_var_begin(p, &d.locals);
	return defs_each(&d.d, fn, arg);
}
