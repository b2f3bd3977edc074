/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Selects one name of a function that has several, as programs alias functions ("unpack =
 * table.unpack", "mymod.fmt = string.format"). Names of the standard libraries take precedence.
 * Between two of these, the library of the nearest function decides: each library is one C file.
 * For other names the first one found is kept, which has the shortest path.
 */
#include "cnames.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "loaded.h"

#define MAX_NAMES 65536
#define CANDIDATES 4  /* standard names under which one function is found */
#define MAX_DOUBTS 64 /* functions with several standard names: programs alias a few */

enum {
	LIB_NONE = -1, /* not a standard library */
	LIB_BASE = 0,  /* above: libraries[] */
};

struct candidate {
	char *text; /* owned */
	int lib;
};

struct cname {
	uint64_t f;
	unsigned n;
	struct candidate names[CANDIDATES]; /* after settle(), the first one is used */
	UT_hash_handle hh;
};

struct puc_cnames {
	struct cname *by_f;
};

struct collect {
	struct puc_cnames *names;
	unsigned version;
};

static int index_of(const char *text, const char *const *list)
{
	int i;

	for (i = 0; list[i]; i++)
		if (!strcmp(text, list[i]))
			return i;
	return -1;
}

/* Returns the standard library whose name it is, or LIB_NONE. */
static int library_of(const struct collect *c, const struct puc_loaded *l)
{
	static const char *const base[] = {
		"assert",   "collectgarbage", "dofile",	  "error",    "getmetatable",
		"ipairs",   "load",	      "loadfile", "next",     "pairs",
		"pcall",    "print",	      "require",  "rawequal", "rawget",
		"rawlen",   "rawset",	      "select",	  "warn",     "setmetatable",
		"tonumber", "tostring",	      "type",	  "xpcall",   NULL};
	static const char *const base51[] = {"gcinfo",	 "getfenv", "loadstring", "module",
					     "newproxy", "setfenv", "unpack",	  NULL};
	static const char *const libraries[] = {"string", "table",     "math",	"io",
						"os",	  "coroutine", "debug", "package",
						"utf8",	  "bit32",     NULL};
	/* aliases of fmod and gmatch, from 5.0 */
	static const char *const old[] = {"mod", "gfind", NULL};
	int lib = index_of(l->module, libraries);

	if (!*l->module && (index_of(l->field, base) >= 0 ||
			    (c->version == 51 && index_of(l->field, base51) >= 0)))
		return LIB_BASE;
	return lib < 0 || index_of(l->field, old) >= 0 ? LIB_NONE : LIB_BASE + 1 + lib;
}

static void drop_names(struct cname *name)
{
	while (name->n)
		free(name->names[--name->n].text);
}

static int add_name(struct cname *name, const struct puc_loaded *l, int lib)
{
	char *text;

	if (asprintf(&text, "%s%s%s", l->module, *l->module && *l->field ? "." : "", l->field) < 0)
		return -ENOMEM;
	if (name->n && name->names[0].lib == LIB_NONE)
		drop_names(name);
	name->names[name->n++] = (struct candidate){.text = text, .lib = lib};
	return 0;
}

static int collect(void *arg, const struct puc_loaded *l)
{
	struct collect *c = arg;
	int lib = library_of(c, l);
	struct cname *name;

	HASH_FIND(hh, c->names->by_f, &l->f, sizeof(l->f), name);
	if (name && name->n && (lib == LIB_NONE || name->n == CANDIDATES))
		return 0;
	if (!name) {
		if (HASH_COUNT(c->names->by_f) >= MAX_NAMES)
			return 0;
		name = calloc(1, sizeof(*name));
		if (!name)
			return -ENOMEM;
		name->f = l->f;
		HASH_ADD(hh, c->names->by_f, f, sizeof(name->f), name);
		if (!name->hh.tbl) {
			free(name);
			return -ENOMEM;
		}
	}
	return add_name(name, l, lib);
}

/* Returns the distance to the nearest function whose only standard name is of this library. */
static uint64_t distance(const struct puc_cnames *names, const struct cname *to, int lib)
{
	uint64_t nearest = UINT64_MAX;
	const struct cname *name;

	for (name = names->by_f; name; name = name->hh.next) {
		uint64_t d = name->f > to->f ? name->f - to->f : to->f - name->f;

		if (name->n == 1 && name->names[0].lib == lib && d < nearest)
			nearest = d;
	}
	return nearest;
}

/* Moves the name to use to the front. Keeps the others: distance() skips functions with several. */
static void settle(const struct puc_cnames *names)
{
	struct cname *name;
	unsigned doubts = 0;

	for (name = names->by_f; name && doubts < MAX_DOUBTS; name = name->hh.next) {
		uint64_t nearest = UINT64_MAX;
		unsigned i, best = 0;
		struct candidate first;

		if (name->n < 2)
			continue;
		doubts++;
		for (i = 0; i < name->n; i++) {
			uint64_t d = distance(names, name, name->names[i].lib);

			if (d < nearest) {
				nearest = d;
				best = i;
			}
		}
		first = name->names[0];
		name->names[0] = name->names[best];
		name->names[best] = first;
	}
}

int puc_cnames_read(const struct lb_mem *mem, const struct puc_layout *puc, uint64_t g,
		    struct puc_cnames **out)
{
	struct puc_cnames *names __cleanup(puc_cnames_free) = calloc(1, sizeof(*names));
	struct collect c = {.names = names, .version = puc->version};
	int err;

	if (!names)
		return -ENOMEM;
	err = puc_loaded_walk(mem, puc, g, collect, &c);
	if (err)
		return err;
	settle(names);
	*out = TAKE_PTR(names);
	return 0;
}

void puc_cnames_free(struct puc_cnames **names)
{
	struct cname *name, *next;

	if (!*names)
		return;
	HASH_ITER (hh, (*names)->by_f, name, next) {
		HASH_DEL((*names)->by_f, name);
		drop_names(name);
		free(name);
	}
	free(*names);
	*names = NULL;
}

const char *puc_cname(const struct puc_cnames *names, uint64_t addr)
{
	struct cname *name;

	if (!names)
		return NULL;
	HASH_FIND(hh, names->by_f, &addr, sizeof(addr), name);
	return name && name->n ? name->names[0].text : NULL;
}

bool puc_cnames_same(const struct puc_cnames *a, const struct puc_cnames *b)
{
	const struct cname *name;

	if (HASH_COUNT(a->by_f) != HASH_COUNT(b->by_f))
		return false;
	for (name = a->by_f; name; name = name->hh.next) {
		const char *text = puc_cname(a, name->f), *other = puc_cname(b, name->f);

		if (!text != !other || (text && strcmp(text, other) != 0))
			return false;
	}
	return true;
}
