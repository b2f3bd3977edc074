/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names under which a prototype's bytecode stores the closures that it makes.
 *
 *     CLOSURE r, child         the closure; then, before r is written again or the code branches,
 *     ... a local begins in r             -> its name
 *     SETGLOBAL r, "f"                    -> f
 *     SETTABUP up, "f", r                 -> f when the upvalue is _ENV, else its name . f
 *     SETUPVAL r, up                      -> the upvalue's name
 *     SETTABLE, SETFIELD t, "f", r        -> name of t . f
 *
 * where the name of t is that of a local, upvalue or global, a field of one, or of a table
 * constructor that is itself stored under a name further down.
 *
 * Foreign bytes could make this quadratic: all searches draw on one budget.
 */
#include "sym/puc_proto_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define BUDGET 4000000u /* instructions and variables looked at, per prototype */
#define MAX_DEPTH 4	/* of fields and nested constructors */
#define MAX_FORWARD 4096
#define MAX_SLOTS 256
#define MAX_BACK 300 /* from the use of a key to where it was loaded */
#define ENV "_ENV"   /* llex.h, LUA_ENV */

struct defs {
	const struct puc_proto *p;
	uint8_t *slots; /* [i]: register of p->locals[i] */
	uint32_t nlocals;
	bool *data; /* 5.1: [pc] is no instruction, but belongs to the one before */
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

/* Neither unknown nor one of a loop's hidden ones, nor one that was stripped. */
static bool usable(const char *name)
{
	return name && *name && *name != '(' && *name != '?';
}

/* How many words after the instruction at pc belong to it: 5.1 lists a closure's upvalues behind
 * CLOSURE, and a large number behind SETLIST. */
static uint32_t data_words(const struct puc_proto *p, uint32_t pc)
{
	struct puc_ins i = puc_proto_ins(p, pc);

	if (i.op == PUC_BC_SETLIST)
		return !i.c;
	if (i.op != PUC_BC_CLOSURE)
		return 0;
	if (i.bx >= p->nchildren || p->children[i.bx].nups < 0)
		return p->ncode; /* not known: nothing is told of what follows */
	return (uint32_t)p->children[i.bx].nups;
}

static bool find_data(struct defs *d)
{
	uint32_t pc, words = 0;

	if (d->p->version != 51 || !d->p->ncode)
		return true;
	d->data = calloc(d->p->ncode, sizeof(*d->data));
	if (!d->data)
		return false;
	for (pc = 0; pc < d->p->ncode; pc++) {
		d->data[pc] = words;
		words = words ? words - 1 : data_words(d->p, pc);
	}
	return true;
}

static struct puc_ins ins_at(const struct defs *d, uint32_t pc)
{
	if (d->data && puc_proto_has_ins(d->p, pc) && d->data[pc])
		return (struct puc_ins){.op = PUC_BC_OTHER, .mm = ""};
	return puc_proto_ins(d->p, pc);
}

/* A variable's register is the number of those that are live when it begins. Those after one that
 * cannot be are left out. */
static bool list_slots(struct defs *d)
{
	const struct puc_proto *p = d->p;
	uint32_t live_end[MAX_SLOTS], nlive = 0, v;

	if (!p->nlocals)
		return true;
	d->slots = malloc(p->nlocals);
	if (!d->slots)
		return false;
	for (v = 0; v < p->nlocals && spend(d); v++) {
		uint32_t i, kept = 0, start = p->locals[v].startpc;

		if (v && start < p->locals[v - 1].startpc)
			break;
		for (i = 0; i < nlive; i++)
			if (live_end[i] > start)
				live_end[kept++] = live_end[i];
		nlive = kept;
		if (nlive >= MAX_SLOTS)
			break;
		d->slots[v] = (uint8_t)nlive;
		live_end[nlive++] = p->locals[v].endpc;
		d->nlocals = v + 1;
	}
	return true;
}

/* Index of the first variable that begins at pc or later. */
static uint32_t first_local(const struct defs *d, uint32_t pc)
{
	uint32_t lo = 0, hi = d->nlocals;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (d->p->locals[mid].startpc < pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* A local that lives in slot at pc. */
static const char *local_at(struct defs *d, uint32_t pc, uint32_t slot)
{
	uint32_t i = first_local(d, pc + 1);

	while (i-- && spend(d)) {
		const struct puc_local *v = &d->p->locals[i];

		if (d->slots[i] == slot && pc < v->endpc)
			return usable(v->name) ? v->name : NULL;
	}
	return NULL;
}

static bool slot_name(struct defs *d, uint32_t pc, uint32_t slot, int depth, struct name *n);

/* A field of a table: named by the table when that has a name, else by the key alone. */
static bool field_name(struct defs *d, uint32_t pc, uint32_t table, const char *key, int depth,
		       struct name *n)
{
	struct name prefix = {""};

	if (!key)
		return false;
	if (!depth || !slot_name(d, pc, table, depth - 1, &prefix) || !strcmp(prefix.text, ENV))
		prefix.text[0] = '\0';
	set_name(n, prefix.text, key);
	return true;
}

/* A field of an upvalue, which may be the table of globals. */
static bool upfield_name(const struct defs *d, uint32_t up, const char *key, struct name *n)
{
	const char *table = puc_proto_upvalname(d->p, up);

	if (!key)
		return false;
	set_name(n, usable(table) && strcmp(table, ENV) != 0 ? table : "", key);
	return true;
}

/* The string that a LOADK shortly before pc put into a slot: keys that do not fit an operand. A
 * closure with its upvalues may lie between. */
static const char *string_in(const struct defs *d, uint32_t pc, uint32_t slot)
{
	uint32_t back;

	for (back = 1; back <= MAX_BACK && back <= pc; back++) {
		struct puc_ins i = ins_at(d, pc - back);

		if (i.writes_a && i.a == slot)
			return i.op == PUC_BC_LOADK || i.op == PUC_BC_LOADKX
				       ? puc_proto_kstr(d->p, puc_proto_loadk(d->p, pc - back, &i))
				       : NULL;
	}
	return NULL;
}

/* A key operand: RK up to 5.3, later of GETTABUP and GETFIELD a constant, of GETTABLE a slot. */
static const char *key_string(const struct defs *d, uint32_t pc, const struct puc_ins *i,
			      uint32_t operand)
{
	uint32_t k = operand;
	bool constant = i->op != PUC_BC_GETTABLE && i->op != PUC_BC_SETTABLE;

	if (d->p->version < 54)
		constant = puc_bc_isk(operand, &k);
	return constant ? puc_proto_kstr(d->p, k) : string_in(d, pc, operand);
}

/* The value that a store to a table stores: operand C, when it is a slot. */
static bool stores(const struct defs *d, const struct puc_ins *i, uint32_t slot)
{
	return i->c == slot && !(d->p->version >= 54 && i->k);
}

/* Does the instruction at pc store slot somewhere that has a name? */
static bool store_name(struct defs *d, uint32_t pc, uint32_t slot, int depth, struct name *n)
{
	struct puc_ins i = ins_at(d, pc);
	const char *text = NULL;

	switch (i.op) {
	case PUC_BC_SETGLOBAL:
		if (i.a == slot)
			text = puc_proto_kstr(d->p, i.bx);
		break;
	case PUC_BC_SETUPVAL:
		if (i.a == slot)
			text = puc_proto_upvalname(d->p, i.b);
		break;
	case PUC_BC_MOVE:
		if (i.b == slot)
			text = local_at(d, pc + 1, i.a);
		break;
	case PUC_BC_SETTABUP:
		return stores(d, &i, slot) && upfield_name(d, i.a, key_string(d, pc, &i, i.b), n);
	case PUC_BC_SETTABLE:
	case PUC_BC_SETFIELD:
		return stores(d, &i, slot) &&
		       field_name(d, pc, i.a, key_string(d, pc, &i, i.b), depth, n);
	default:
		break;
	}
	if (!usable(text))
		return false;
	set_name(n, "", text);
	return true;
}

/* Is the value in slot gone after this instruction? */
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

/* Is it, or does control go elsewhere? */
static bool ends_slot(const struct puc_proto *p, const struct puc_ins *i, uint32_t slot)
{
	switch (i->op) {
	case PUC_BC_JMP:
	case PUC_BC_TAILCALL:
	case PUC_BC_TFORCALL:
	case PUC_BC_FORPREP:
	case PUC_BC_FORLOOP:
	case PUC_BC_RETURN:
		return true;
	default:
		return overwrites(p, i, slot);
	}
}

/* Where does the value that the instruction at made wrote into slot get its name? */
static bool forward_name(struct defs *d, uint32_t made, uint32_t slot, int depth, struct name *n)
{
	uint32_t first = made + 1, v = first_local(d, first), pc;

	while (d->data && puc_proto_has_ins(d->p, first) && d->data[first])
		first++;
	for (pc = first; pc - made < MAX_FORWARD && puc_proto_has_ins(d->p, pc); pc++) {
		struct puc_ins i = ins_at(d, pc);
		const char *local = pc == first ? local_at(d, pc, slot) : NULL;

		for (; !local && v < d->nlocals && d->p->locals[v].startpc <= pc && spend(d); v++)
			if (d->slots[v] == slot && usable(d->p->locals[v].name))
				local = d->p->locals[v].name;
		if (local) {
			set_name(n, "", local);
			return true;
		}
		if (!spend(d))
			return false;
		if (store_name(d, pc, slot, depth, n))
			return true;
		if (ends_slot(d->p, &i, slot))
			return false;
	}
	return false;
}

/* Name of a table by the instruction at pc that put it into its slot. */
static bool origin_name(struct defs *d, uint32_t pc, int depth, struct name *n)
{
	struct puc_ins i = ins_at(d, pc);
	const char *text = NULL;

	switch (i.op) {
	case PUC_BC_GETGLOBAL:
		text = puc_proto_kstr(d->p, i.bx);
		break;
	case PUC_BC_GETUPVAL:
		text = puc_proto_upvalname(d->p, i.b);
		break;
	case PUC_BC_GETTABUP:
		return upfield_name(d, i.b, key_string(d, pc, &i, i.c), n);
	case PUC_BC_GETTABLE:
	case PUC_BC_GETFIELD:
		return field_name(d, pc, i.b, key_string(d, pc, &i, i.c), depth, n);
	case PUC_BC_MOVE:
		return depth && slot_name(d, pc, i.b, depth - 1, n);
	case PUC_BC_NEWTABLE:
		return depth && forward_name(d, pc, i.a, depth - 1, n);
	default:
		break;
	}
	if (!usable(text))
		return false;
	set_name(n, "", text);
	return true;
}

static bool slot_name(struct defs *d, uint32_t pc, uint32_t slot, int depth, struct name *n)
{
	const char *local = local_at(d, pc, slot);

	if (local) {
		set_name(n, "", local);
		return true;
	}
	while (pc-- && spend(d)) {
		struct puc_ins i = ins_at(d, pc);

		if (i.writes_a && i.a == slot && i.op != PUC_BC_CALL)
			return origin_name(d, pc, depth, n);
		if (overwrites(d->p, &i, slot))
			return false;
	}
	return false;
}

int puc_proto_definitions(const struct puc_proto *p, puc_definition_fn fn, void *arg)
{
	uint8_t *slots __free = NULL;
	bool *data __free = NULL;
	struct defs d = {.p = p, .budget = BUDGET};
	uint32_t pc;
	bool listed;

	listed = list_slots(&d) && find_data(&d);
	slots = d.slots;
	data = d.data;
	if (!listed)
		return -ENOMEM;
	for (pc = 0; puc_proto_has_ins(p, pc) && d.budget; pc++) {
		struct puc_ins i = ins_at(&d, pc);
		struct name name = {""};
		int stop;

		if (i.op != PUC_BC_CLOSURE || i.bx >= p->nchildren)
			continue;
		if (!forward_name(&d, pc, i.a, MAX_DEPTH, &name))
			continue;
		stop = fn(arg, p->children[i.bx].proto, name.text);
		if (stop)
			return stop;
	}
	return 0;
}
