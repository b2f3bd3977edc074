/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names under which a prototype's bytecode stores the closures that it makes: the search, which
 * is the same in both families. What their instructions do is for lua/lj/defs.c and lua/puc/defs.c to say.
 *
 *     slot = closure(child)       then, before slot is written again or the code branches,
 *     ... a local begins in slot  -> its name
 *     variable = slot             -> the variable's name
 *     t[key] = slot               -> name of t . key
 *
 * where the name of t is that of a local, upvalue or global, a field of one, or of a table
 * constructor that is itself stored under a name further down.
 *
 * Foreign bytes could make this quadratic: all searches draw on one budget.
 */
#ifndef LUA_DEFS_H
#define LUA_DEFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "definition.h"

struct def_name {
	char text[256];
};

struct def_local {
	const char *name;    /* NULL: not known, or one that no program wrote */
	uint32_t start, end; /* first position where it is live, first where it is not */
	uint8_t slot;
};

struct defs;

/* What an instruction does to a slot. */
enum def_write {
	DEF_KEPT,
	DEF_MADE, /* where from: origin() */
	DEF_LOST,
};

/*
 * A family's instructions. A position beyond the code has none: nothing is made or stored there.
 * False leaves the outputs alone. depth: through how many more tables a name may be searched.
 */
struct defs_vm {
	uint32_t first;	 /* position of the first instruction */
	const char *env; /* name of the table of globals; NULL: it has none */
	bool (*has_ins)(const struct defs *d, uint32_t pos);
	/* The local variables in the order in which they begin; their slots are not set. */
	bool (*next_local)(struct defs *d, struct def_local *local);
	bool (*closure)(const struct defs *d, uint32_t pos, uint32_t *slot, uint64_t *child);
	uint32_t (*next)(const struct defs *d, uint32_t pos); /* position of the next instruction */
	/* Does the instruction store slot somewhere that has a name? */
	bool (*store)(struct defs *d, uint32_t pos, uint32_t slot, int depth, struct def_name *n);
	/* Is the value in slot gone, or is control, after the instruction? */
	bool (*ends)(const struct defs *d, uint32_t pos, uint32_t slot);
	enum def_write (*writes)(const struct defs *d, uint32_t pos, uint32_t slot);
	/* Name of a table by the instruction that put it into its slot. */
	bool (*origin)(struct defs *d, uint32_t pos, int depth, struct def_name *n);
};

/* Begins a family's own struct, so that its functions know whose instructions they are asked of. */
struct defs {
	const struct defs_vm *vm;
	/* defs_each()'s own */
	struct def_local *locals; /* sorted by start */
	size_t nlocals;
	uint32_t budget;
};

/* Calls fn for each definition (lua/definition.h). d->vm is set. Returns 0, fn's value, or -ENOMEM. */
int defs_each(struct defs *d, sym_definition_fn fn, void *arg);

/* ---- for the functions of struct defs_vm ----------------------------------------------------- */

/* "prefix.text", or "text" without a prefix. */
void def_name_join(struct def_name *n, const char *prefix, const char *text);
/* False when there is no text (NULL or ""). */
bool def_name_set(struct def_name *n, const char *text);

/* The local that lives in slot at pos; NULL: none that has a name. */
const char *defs_local(struct defs *d, uint32_t pos, uint32_t slot);

/* The field key of the table in a slot: named by the table when that has a name, else by the key
 * alone. */
bool defs_field(struct defs *d, uint32_t pos, uint32_t table, const char *key, int depth,
		struct def_name *n);

/* What lies in slot at pos. */
bool defs_slot(struct defs *d, uint32_t pos, uint32_t slot, int depth, struct def_name *n);

/* Where does the value that the instruction at made wrote into slot get its name? */
bool defs_forward(struct defs *d, uint32_t made, uint32_t slot, int depth, struct def_name *n);

#endif
