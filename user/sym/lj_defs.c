/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names under which a prototype's bytecode stores the closures that it makes.
 *
 *     FNEW  r, child        the closure; then, before r is written again or the code branches,
 *     ... a local begins in r          -> its name
 *     GSET  r, "f"                     -> f
 *     USETV uv, r                      -> the upvalue's name
 *     TSETS r, t, "f"                  -> name of t . f
 *
 * where the name of t is that of a local, upvalue or global, a field of one, or of a table
 * constructor that is itself stored under a name further down.
 *
 * Foreign bytes could make this quadratic: all searches draw on one budget.
 */
#include "sym/lj_proto_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <luabpf/layout.h>

#include "base/cleanup.h"
#include "vm/lj_bc.h"

#define BUDGET 4000000u /* instructions and variables looked at, per prototype */
#define MAX_DEPTH 4	/* of fields and nested constructors */
#define MAX_FORWARD 4096
#define MAX_SLOTS 256

struct var {
	const char *name;
	uint32_t start, end;
	uint8_t slot;
};

struct defs {
	const struct lj_proto *p;
	struct var *vars; /* sorted by start */
	size_t nvars;
	uint32_t budget;
};

struct name {
	char text[256];
};

static bool spend(struct defs *d)
{
	return d->budget && d->budget--;
}

static void set_name(struct name *n, const char *prefix, const char *text)
{
	snprintf(n->text, sizeof(n->text), "%s%s%s", prefix, *prefix ? "." : "", text);
}

/*
 * Lists the locals with their slots: a variable's slot is the number of those that are live when it
 * begins.
 */
static bool list_vars(struct defs *d)
{
	uint32_t live_end[MAX_SLOTS];
	size_t nlive = 0, cap = 0;
	struct lj_varcursor c;
	struct lj_var v;

	lj_var_begin(d->p, &c);
	while (lj_var_next(&c, &v) && spend(d)) {
		size_t i, kept = 0;

		for (i = 0; i < nlive; i++)
			if (live_end[i] > v.start)
				live_end[kept++] = live_end[i];
		nlive = kept;
		if (nlive >= MAX_SLOTS)
			return true;
		if (d->nvars == cap) {
			struct var *grown;

			cap = cap ? 2 * cap : 32;
			grown = reallocarray(d->vars, cap, sizeof(*grown));
			if (!grown)
				return false;
			d->vars = grown;
		}
		d->vars[d->nvars++] = (struct var){v.name, v.start, v.end, (uint8_t)nlive};
		live_end[nlive++] = v.end;
	}
	return true;
}

/* Index of the first variable that begins at pos or later. */
static size_t first_var(const struct defs *d, uint32_t pos)
{
	size_t lo = 0, hi = d->nvars;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (d->vars[mid].start < pos)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* A local that lives in slot at pos, but not one of a loop's hidden ones. */
static const char *local_at(struct defs *d, uint32_t pos, uint32_t slot)
{
	size_t i = first_var(d, pos + 1);

	while (i-- && spend(d)) {
		const struct var *v = &d->vars[i];

		if (v->slot == slot && pos < v->end)
			return *v->name == '(' ? NULL : v->name;
	}
	return NULL;
}

static bool slot_name(struct defs *d, uint32_t pos, uint32_t slot, int depth, struct name *n);

/* The store of key into table: named by the table when that has a name, else by the key alone. */
static bool field_name(struct defs *d, uint32_t pos, uint32_t table, const char *key, int depth,
		       struct name *n)
{
	struct name prefix = {""};

	if (!key)
		return false;
	if (!depth || !slot_name(d, pos, table, depth - 1, &prefix))
		prefix.text[0] = '\0';
	set_name(n, prefix.text, key);
	return true;
}

/* The string that a KSTR just before pos put into a slot: keys that do not fit TSETS. */
static const char *string_in(const struct defs *d, uint32_t pos, uint32_t slot)
{
	uint32_t back;

	for (back = 1; back <= 4 && back < pos; back++) {
		uint32_t ins = lj_proto_ins(d->p, pos - back);

		if (lj_bc_mode_a(ins) == LJ_BCM_DST && lj_bc_a(ins) == slot)
			return lj_bc_op(ins) == LJ_BC_KSTR ? lj_proto_kstr(d->p, lj_bc_d(ins))
							   : NULL;
	}
	return NULL;
}

/* Does the instruction at pos store slot somewhere that has a name? */
static bool store_name(struct defs *d, uint32_t pos, uint32_t slot, int depth, struct name *n)
{
	uint32_t ins = lj_proto_ins(d->p, pos);
	const char *text = NULL;

	switch (lj_bc_op(ins)) {
	case LJ_BC_GSET:
		if (lj_bc_a(ins) == slot)
			text = lj_proto_kstr(d->p, lj_bc_d(ins));
		break;
	case LJ_BC_USETV:
		if (lj_bc_d(ins) == slot)
			text = lj_proto_uvname(d->p, lj_bc_a(ins));
		break;
	case LJ_BC_MOV:
		if (lj_bc_d(ins) == slot)
			text = local_at(d, pos + 1, lj_bc_a(ins));
		break;
	case LJ_BC_TSETS:
		return lj_bc_a(ins) == slot &&
		       field_name(d, pos, lj_bc_b(ins), lj_proto_kstr(d->p, lj_bc_c(ins)), depth,
				  n);
	case LJ_BC_TSETV:
		return lj_bc_a(ins) == slot &&
		       field_name(d, pos, lj_bc_b(ins), string_in(d, pos, lj_bc_c(ins)), depth, n);
	default:
		break;
	}
	if (!text || !*text)
		return false;
	set_name(n, "", text);
	return true;
}

/* Is the value in slot gone, or is control, after this instruction? */
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

/* Where does the value that the instruction at made wrote into slot get its name? */
static bool forward_name(struct defs *d, uint32_t made, uint32_t slot, int depth, struct name *n)
{
	size_t v = first_var(d, made + 1);
	uint32_t pos;

	for (pos = made + 1; pos - made < MAX_FORWARD && lj_proto_has_ins(d->p, pos); pos++) {
		uint32_t ins = lj_proto_ins(d->p, pos);
		const char *local = pos == made + 1 ? local_at(d, pos, slot) : NULL;

		for (; !local && v < d->nvars && d->vars[v].start <= pos && spend(d); v++)
			if (d->vars[v].slot == slot && *d->vars[v].name != '(')
				local = d->vars[v].name;
		if (local) {
			set_name(n, "", local);
			return true;
		}
		if (!spend(d))
			return false;
		if (store_name(d, pos, slot, depth, n))
			return true;
		if (ends_slot(ins, slot))
			return false;
	}
	return false;
}

/* Name of a table by the instruction at pos that put it into its slot. */
static bool origin_name(struct defs *d, uint32_t pos, int depth, struct name *n)
{
	uint32_t ins = lj_proto_ins(d->p, pos);
	const char *text = NULL;

	switch (lj_bc_op(ins)) {
	case LJ_BC_GGET:
		text = lj_proto_kstr(d->p, lj_bc_d(ins));
		break;
	case LJ_BC_UGET:
		text = lj_proto_uvname(d->p, lj_bc_d(ins));
		break;
	case LJ_BC_TGETS:
		return field_name(d, pos, lj_bc_b(ins), lj_proto_kstr(d->p, lj_bc_c(ins)), depth,
				  n);
	case LJ_BC_MOV:
		return depth && slot_name(d, pos, lj_bc_d(ins), depth - 1, n);
	case LJ_BC_TNEW:
	case LJ_BC_TDUP:
		return depth && forward_name(d, pos, lj_bc_a(ins), depth - 1, n);
	default:
		break;
	}
	if (!text || !*text)
		return false;
	set_name(n, "", text);
	return true;
}

static bool slot_name(struct defs *d, uint32_t pos, uint32_t slot, int depth, struct name *n)
{
	const char *local = local_at(d, pos, slot);

	if (local) {
		set_name(n, "", local);
		return true;
	}
	while (pos-- > 1 && spend(d)) {
		uint32_t ins = lj_proto_ins(d->p, pos);

		if (lj_bc_mode_a(ins) == LJ_BCM_DST && lj_bc_a(ins) == slot)
			return origin_name(d, pos, depth, n);
		if (lj_bc_mode_a(ins) == LJ_BCM_BASE && ends_slot(ins, slot))
			return false;
	}
	return false;
}

static void free_vars(struct var **vars)
{
	free(*vars);
}

int lj_proto_definitions(const struct lj_proto *p, lj_definition_fn fn, void *arg)
{
	struct var *vars __cleanup(free_vars) = NULL;
	struct defs d = {.p = p, .budget = BUDGET};
	uint32_t pos;
	bool listed;

	listed = list_vars(&d);
	vars = d.vars;
	if (!listed)
		return -ENOMEM;
	for (pos = 1; lj_proto_has_ins(p, pos) && d.budget; pos++) {
		uint32_t ins = lj_proto_ins(p, pos), k = lj_bc_d(ins);
		struct name name = {""};
		int stop;

		if (lj_bc_op(ins) != LJ_BC_FNEW || k >= p->nkgc || p->kgc[k].gct != LJ_GCT_PROTO)
			continue;
		if (!forward_name(&d, pos, lj_bc_a(ins), MAX_DEPTH, &name))
			continue;
		stop = fn(arg, p->kgc[k].ref, name.text);
		if (stop)
			return stop;
	}
	return 0;
}
