/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names under which a prototype's bytecode stores the closures that it makes: the search common
 * to both families. lua/lj/defs.c and lua/puc/defs.c decode the instructions.
 *
 *     slot = closure(child)       then, before slot is written again or the code branches,
 *     ... a local begins in slot  -> its name
 *     variable = slot             -> the variable's name
 *     t[key] = slot               -> name of t . key
 *
 * The name of t is that of a local, upvalue or global, a field of one, or of a table constructor
 * that is itself stored under a name further down.
 *
 * Algorithm: forward scan from each closure, backward scan for its table. Foreign bytes could make
 * that quadratic: all scans of a prototype share one budget (BUDGET).
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
	const char *name;    /* NULL: not known, or a hidden variable */
	uint32_t start, end; /* live in [start, end) */
	uint8_t slot;
};

struct defs;

/* The effect of an instruction on a slot. */
enum def_write {
	DEF_KEPT,
	DEF_MADE, /* its source: origin() */
	DEF_LOST,
};

/* A family's instructions. Beyond the code there are none: nothing is made or stored there. On
 * false the outputs are unchanged. depth: how many more tables a name may be searched through. */
struct defs_vm {
	uint32_t first;	 /* position of the first instruction */
	const char *env; /* name of the table of globals; NULL: it has none */
	bool (*has_ins)(const struct defs *d, uint32_t pos);
	/* Copies the next local variable in the order in which they begin, but for its slot. */
	bool (*next_local)(struct defs *d, struct def_local *local);
	bool (*closure)(const struct defs *d, uint32_t pos, uint32_t *slot, uint64_t *child);
	uint32_t (*next)(const struct defs *d, uint32_t pos); /* position of the next instruction */
	/* True if the instruction stores slot under a name. */
	bool (*store)(struct defs *d, uint32_t pos, uint32_t slot, int depth, struct def_name *n);
	/* True if the instruction overwrites slot, or branches. */
	bool (*ends)(const struct defs *d, uint32_t pos, uint32_t slot);
	enum def_write (*writes)(const struct defs *d, uint32_t pos, uint32_t slot);
	/* Finds a table's name from the instruction that wrote it to its slot. */
	bool (*origin)(struct defs *d, uint32_t pos, int depth, struct def_name *n);
};

/* The first member of a family's own struct. */
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

/* Returns the name of the local live in slot at pos; NULL: none with a name. */
const char *defs_local(struct defs *d, uint32_t pos, uint32_t slot);

/* Names field `key` of the table in a slot: by the table's name, if it has one, and the key. */
bool defs_field(struct defs *d, uint32_t pos, uint32_t table, const char *key, int depth,
		struct def_name *n);

/* Names the value in slot at pos. */
bool defs_slot(struct defs *d, uint32_t pos, uint32_t slot, int depth, struct def_name *n);

/* Finds the name under which the value that the instruction at `made` wrote to slot is stored. */
bool defs_forward(struct defs *d, uint32_t made, uint32_t slot, int depth, struct def_name *n);

#endif
