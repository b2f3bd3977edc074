/* SPDX-License-Identifier: BSD-2-Clause */
#include "defs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUDGET 4000000u /* visited instructions and variables, per prototype */
#define MAX_DEPTH 4	/* of fields and nested constructors */
#define MAX_FORWARD 4096
#define MAX_SLOTS 256

static bool spend(struct defs *d)
{
	return d->budget && d->budget--;
}

void def_name_join(struct def_name *n, const char *prefix, const char *text)
{
	snprintf(n->text, sizeof(n->text), "%s%s%s", prefix, *prefix ? "." : "", text);
}

bool def_name_set(struct def_name *n, const char *text)
{
	if (!text || !*text)
		return false;
	def_name_join(n, "", text);
	return true;
}

static bool add_local(struct defs *d, size_t *cap, const struct def_local *local)
{
	if (d->nlocals == *cap) {
		size_t more = *cap ? 2 * *cap : 32;
		struct def_local *grown = reallocarray(d->locals, more, sizeof(*grown));

		if (!grown)
			return false;
		d->locals = grown;
		*cap = more;
	}
	d->locals[d->nlocals++] = *local;
	return true;
}

/* A variable's slot is the number of variables live at its start. Variables after an invalid one
 * are left out. */
static int list_locals(struct defs *d)
{
	uint32_t live_end[MAX_SLOTS], last = 0;
	size_t nlive = 0, cap = 0;
	struct def_local v;

	while (d->vm->next_local(d, &v) && spend(d)) {
		size_t i, kept = 0;

		if (v.start < last)
			break;
		last = v.start;
		for (i = 0; i < nlive; i++)
			if (live_end[i] > v.start)
				live_end[kept++] = live_end[i];
		nlive = kept;
		if (nlive >= MAX_SLOTS)
			break;
		v.slot = (uint8_t)nlive;
		if (!add_local(d, &cap, &v))
			return -ENOMEM;
		live_end[nlive++] = v.end;
	}
	return 0;
}

/* Returns the index of the first variable that begins at pos or later. */
static size_t first_local(const struct defs *d, uint32_t pos)
{
	size_t lo = 0, hi = d->nlocals;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (d->locals[mid].start < pos)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

const char *defs_local(struct defs *d, uint32_t pos, uint32_t slot)
{
	size_t i = first_local(d, pos + 1);

	while (i-- && spend(d)) {
		const struct def_local *v = &d->locals[i];

		if (v->slot == slot && pos < v->end)
			return v->name;
	}
	return NULL;
}

/* True for a metatable's key: it names the purpose of a value, and no table. */
static bool is_event(const char *key)
{
	return key[0] == '_' && key[1] == '_';
}

bool defs_field(struct defs *d, uint32_t pos, uint32_t table, const char *key, int depth,
		struct def_name *n)
{
	struct def_name prefix = {""};

	if (!key || (depth < MAX_DEPTH && is_event(key)))
		return false;
	if (!depth || !defs_slot(d, pos, table, depth - 1, &prefix) ||
	    (d->vm->env && !strcmp(prefix.text, d->vm->env)))
		prefix.text[0] = '\0';
	def_name_join(n, prefix.text, key);
	return true;
}

bool defs_forward(struct defs *d, uint32_t made, uint32_t slot, int depth, struct def_name *n)
{
	uint32_t first = d->vm->next(d, made), pos;
	size_t i = first_local(d, made + 1);

	for (pos = first; pos - made < MAX_FORWARD && d->vm->has_ins(d, pos); pos++) {
		const char *local = pos == first ? defs_local(d, pos, slot) : NULL;

		for (; !local && i < d->nlocals && d->locals[i].start <= pos && spend(d); i++)
			if (d->locals[i].slot == slot)
				local = d->locals[i].name;
		if (local) {
			def_name_join(n, "", local);
			return true;
		}
		if (!spend(d))
			return false;
		if (d->vm->store(d, pos, slot, depth, n))
			return true;
		if (d->vm->ends(d, pos, slot))
			return false;
	}
	return false;
}

bool defs_slot(struct defs *d, uint32_t pos, uint32_t slot, int depth, struct def_name *n)
{
	const char *local = defs_local(d, pos, slot);

	if (local) {
		def_name_join(n, "", local);
		return true;
	}
	while (pos-- > d->vm->first && spend(d)) {
		switch (d->vm->writes(d, pos, slot)) {
		case DEF_MADE:
			return d->vm->origin(d, pos, depth, n);
		case DEF_LOST:
			return false;
		case DEF_KEPT:
			break;
		}
	}
	return false;
}

static int each_closure(struct defs *d, sym_definition_fn fn, void *arg)
{
	uint32_t pos;

	for (pos = d->vm->first; d->vm->has_ins(d, pos) && d->budget; pos++) {
		struct def_name name = {""};
		uint64_t child;
		uint32_t slot;
		int stop;

		if (!d->vm->closure(d, pos, &slot, &child))
			continue;
		if (!defs_forward(d, pos, slot, MAX_DEPTH, &name))
			continue;
		stop = fn(arg, child, name.text);
		if (stop)
			return stop;
	}
	return 0;
}

int defs_each(struct defs *d, sym_definition_fn fn, void *arg)
{
	int err;

	d->locals = NULL;
	d->nlocals = 0;
	d->budget = BUDGET;
	err = list_locals(d);
	if (!err)
		err = each_closure(d, fn, arg);
	free(d->locals);
	d->locals = NULL;
	return err;
}
