/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds definitions (lua/defs.h) in PUC Lua's bytecode.
 *
 *     CLOSURE r, child                    the closure
 *     SETGLOBAL r, "f"                    -> f
 *     SETTABUP up, "f", r                 -> f if the upvalue is _ENV, else its name . f
 *     SETUPVAL r, up                      -> the upvalue's name
 *     SETTABLE, SETFIELD t, "f", r        -> name of t . f
 */
#include "proto_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "lua/defs.h"

#define MAX_BACK 300 /* instructions from a key's use back to its load */
#define ENV "_ENV"   /* llex.h, LUA_ENV */

struct puc_defs {
	struct defs d;
	const struct puc_proto *p;
	uint32_t local;	  /* the next of p->locals */
	const bool *data; /* 5.1: [pc] is a data word of an instruction before */
};

static const struct puc_proto *proto(const struct defs *d)
{
	return ((const struct puc_defs *)d)->p;
}

/* True unless the name is unknown, stripped, or of a loop's hidden variable. */
static bool usable(const char *name)
{
	return name && *name && *name != '(' && *name != '?';
}

static bool set_usable(struct def_name *n, const char *name)
{
	return usable(name) && def_name_set(n, name);
}

/* Returns the number of data words after pc; if it is unknown, all words that follow. */
static uint32_t data_words(const struct puc_proto *p, uint32_t pc)
{
	struct puc_ins i = puc_proto_ins(p, pc);
	uint32_t n;

	return puc_proto_data_words(p, &i, &n) ? n : p->ncode;
}

/* Sets *data, if the version has data words. */
static int find_data(const struct puc_proto *p, bool **data)
{
	uint32_t pc, words = 0;
	bool *found;

	if (p->version != 51 || !p->ncode)
		return 0;
	found = calloc(p->ncode, sizeof(*found));
	if (!found)
		return -ENOMEM;
	for (pc = 0; pc < p->ncode; pc++) {
		found[pc] = words;
		words = words ? words - 1 : data_words(p, pc);
	}
	*data = found;
	return 0;
}

static bool has_ins(const struct defs *d, uint32_t pc)
{
	return puc_proto_has_ins(proto(d), pc);
}

static bool is_data(const struct defs *d, uint32_t pc)
{
	const bool *data = ((const struct puc_defs *)d)->data;

	return data && has_ins(d, pc) && data[pc];
}

static struct puc_ins ins_at(const struct defs *d, uint32_t pc)
{
	if (is_data(d, pc))
		return (struct puc_ins){.op = PUC_BC_OTHER, .mm = ""};
	return puc_proto_ins(proto(d), pc);
}

static bool next_local(struct defs *d, struct def_local *local)
{
	const struct puc_proto *p = proto(d);
	const struct puc_local *v;

	if (((struct puc_defs *)d)->local >= p->nlocals)
		return false;
	v = &p->locals[((struct puc_defs *)d)->local++];
	*local = (struct def_local){usable(v->name) ? v->name : NULL, v->startpc, v->endpc, 0};
	return true;
}

static bool closure(const struct defs *d, uint32_t pc, uint32_t *slot, uint64_t *child)
{
	const struct puc_proto *p = proto(d);
	struct puc_ins i = ins_at(d, pc);

	if (i.op != PUC_BC_CLOSURE || i.bx >= p->nchildren)
		return false;
	*slot = i.a;
	*child = p->children[i.bx].proto;
	return true;
}

static uint32_t next(const struct defs *d, uint32_t pc)
{
	do
		pc++;
	while (is_data(d, pc));
	return pc;
}

/* Names a field of an upvalue, which may be the table of globals. */
static bool upfield_name(const struct puc_proto *p, uint32_t up, const char *key,
			 struct def_name *n)
{
	const char *table = puc_proto_upvalname(p, up);

	if (!key)
		return false;
	def_name_join(n, usable(table) && strcmp(table, ENV) != 0 ? table : "", key);
	return true;
}

/* Returns the string that a LOADK, up to MAX_BACK before pc, loads into a slot: a key that does not
 * fit an operand. A closure with its upvalues may be between. */
static const char *string_in(const struct defs *d, uint32_t pc, uint32_t slot)
{
	const struct puc_proto *p = proto(d);
	uint32_t back;

	for (back = 1; back <= MAX_BACK && back <= pc; back++) {
		struct puc_ins i = ins_at(d, pc - back);

		if (i.writes_a && i.a == slot)
			return i.op == PUC_BC_LOADK || i.op == PUC_BC_LOADKX
				       ? puc_proto_kstr(p, puc_proto_loadk(p, pc - back, &i))
				       : NULL;
	}
	return NULL;
}

/* Returns a key operand's string: RK up to 5.3; later a slot for GETTABLE, else a constant. */
static const char *key_string(const struct defs *d, uint32_t pc, const struct puc_ins *i,
			      uint32_t operand)
{
	const struct puc_proto *p = proto(d);
	uint32_t k = operand;
	bool constant = i->op != PUC_BC_GETTABLE && i->op != PUC_BC_SETTABLE;

	if (p->version < 54)
		constant = puc_bc_isk(operand, &k);
	return constant ? puc_proto_kstr(p, k) : string_in(d, pc, operand);
}

/* True if a store to a table stores this slot: operand C, unless it is a constant. */
static bool stores(const struct puc_proto *p, const struct puc_ins *i, uint32_t slot)
{
	return i->c == slot && !(p->version >= 54 && i->k);
}

static bool store(struct defs *d, uint32_t pc, uint32_t slot, int depth, struct def_name *n)
{
	const struct puc_proto *p = proto(d);
	struct puc_ins i = ins_at(d, pc);

	switch (i.op) {
	case PUC_BC_SETGLOBAL:
		return i.a == slot && set_usable(n, puc_proto_kstr(p, i.bx));
	case PUC_BC_SETUPVAL:
		return i.a == slot && set_usable(n, puc_proto_upvalname(p, i.b));
	case PUC_BC_MOVE:
		return i.b == slot && def_name_set(n, defs_local(d, pc + 1, i.a));
	case PUC_BC_SETTABUP:
		return stores(p, &i, slot) && upfield_name(p, i.a, key_string(d, pc, &i, i.b), n);
	case PUC_BC_SETTABLE:
	case PUC_BC_SETFIELD:
		return stores(p, &i, slot) &&
		       defs_field(d, pc, i.a, key_string(d, pc, &i, i.b), depth, n);
	default:
		return false;
	}
}

/* True if this instruction overwrites slot. */
static bool overwrites(const struct puc_proto *p, const struct puc_ins *i, uint32_t slot)
{
	switch (i->op) {
	case PUC_BC_LOADNIL:
		return i->a <= slot && slot <= (p->version == 51 ? i->b : i->a + i->b);
	case PUC_BC_SELF:
		return slot == i->a || slot == i->a + 1;
	case PUC_BC_CALL:
	case PUC_BC_TAILCALL:
	case PUC_BC_VARARG:
		return slot >= i->a;
	case PUC_BC_TFORCALL:
		return slot >= i->a + 2;
	case PUC_BC_FORPREP:
	case PUC_BC_FORLOOP:
		return slot >= i->a && slot <= i->a + 3;
	default:
		return i->writes_a && slot == i->a;
	}
}

/* True if it overwrites slot, or may transfer control. */
static bool ends(const struct defs *d, uint32_t pc, uint32_t slot)
{
	struct puc_ins i = ins_at(d, pc);

	switch (i.op) {
	case PUC_BC_JMP:
	case PUC_BC_TAILCALL:
	case PUC_BC_TFORCALL:
	case PUC_BC_FORPREP:
	case PUC_BC_FORLOOP:
	case PUC_BC_RETURN:
		return true;
	default:
		return overwrites(proto(d), &i, slot);
	}
}

static enum def_write writes(const struct defs *d, uint32_t pc, uint32_t slot)
{
	struct puc_ins i = ins_at(d, pc);

	if (i.writes_a && i.a == slot && i.op != PUC_BC_CALL)
		return DEF_MADE;
	return overwrites(proto(d), &i, slot) ? DEF_LOST : DEF_KEPT;
}

static bool origin(struct defs *d, uint32_t pc, int depth, struct def_name *n)
{
	const struct puc_proto *p = proto(d);
	struct puc_ins i = ins_at(d, pc);

	switch (i.op) {
	case PUC_BC_GETGLOBAL:
		return set_usable(n, puc_proto_kstr(p, i.bx));
	case PUC_BC_GETUPVAL:
		return set_usable(n, puc_proto_upvalname(p, i.b));
	case PUC_BC_GETTABUP:
		return upfield_name(p, i.b, key_string(d, pc, &i, i.c), n);
	case PUC_BC_GETTABLE:
	case PUC_BC_GETFIELD:
		return defs_field(d, pc, i.b, key_string(d, pc, &i, i.c), depth, n);
	case PUC_BC_MOVE:
		return depth && defs_slot(d, pc, i.b, depth - 1, n);
	case PUC_BC_NEWTABLE:
		return depth && defs_forward(d, pc, i.a, depth - 1, n);
	default:
		return false;
	}
}

static const struct defs_vm vm = {
	.env = ENV,
	.has_ins = has_ins,
	.next_local = next_local,
	.closure = closure,
	.next = next,
	.store = store,
	.ends = ends,
	.writes = writes,
	.origin = origin,
};

int puc_proto_definitions(const struct puc_proto *p, sym_definition_fn fn, void *arg)
{
	bool *data __free = NULL;
	struct puc_defs d = {.d.vm = &vm, .p = p};
	int err = find_data(p, &data);

	if (err)
		return err;
	d.data = data;
	return defs_each(&d.d, fn, arg);
}
