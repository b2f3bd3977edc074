/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of fast functions by number (ffid). A function found as string.rep is "string.rep", unless
 * a program stored it there itself (table.unpack = unpack). Others are in no table (the iterator of
 * gmatch), or a sandbox removed them. Builds number their functions in the order of the libraries'
 * sources, which ffnames.def lists. So the found names are aligned with that list: where two of
 * them have the same distance in both, the list names all between them.
 */
#include "ffnames.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "loaded.h"

#define FFIDS 256
#define CANDIDATES 4 /* names found for one function */
#define NEAR 6	     /* distance, at most, of two names that confirm each other */
#define MAX_NAMES 65536
#define MAX_NAME 192

enum { LJ = 1, OR = 2, B3 = 4, V20 = 8, V21 = LJ | OR | B3, ALL = V21 | V20 };
static const struct {
	const char *name;
	unsigned builds;
} listed[] = {
#define LJ_FF(name, builds) {name, builds},
#include "ffnames.def"
#undef LJ_FF
};
#define NLISTED (sizeof(listed) / sizeof(listed[0]))

/* A C function's address and name; key 0 is not used. */
struct ff_entry {
	uint64_t addr;
	UT_hash_handle hh;
	char name[];
};

struct lj_ffnames {
	char *ff[FFIDS]; /* owned */
	struct ff_entry *cfuncs;
};

struct ff_found {
	struct lj_ffnames *names;
	char *ff[FFIDS][CANDIDATES]; /* owned */
	size_t n;
};

/* One build's list: number -> name. */
struct list {
	const char *name[FFIDS];
	int n;
};

static void free_entries(struct ff_entry **entries)
{
	struct ff_entry *e, *next;

	HASH_ITER (hh, *entries, e, next) {
		HASH_DEL(*entries, e);
		free(e);
	}
}

static int add_entry(struct ff_entry **entries, uint64_t addr, const char *name)
{
	size_t len = strlen(name);
	struct ff_entry *e;

	HASH_FIND(hh, *entries, &addr, sizeof(addr), e);
	if (e || HASH_COUNT(*entries) >= MAX_NAMES)
		return 0;
	e = malloc(sizeof(*e) + len + 1);
	if (!e)
		return -ENOMEM;
	e->addr = addr;
	memcpy(e->name, name, len + 1);
	HASH_ADD(hh, *entries, addr, sizeof(e->addr), e);
	if (!e->hh.tbl) {
		free(e);
		return -ENOMEM;
	}
	return 0;
}

static int add_candidate(struct ff_found *f, uint8_t ffid, const char *name)
{
	int i;

	for (i = 0; i < CANDIDATES; i++) {
		char **slot = &f->ff[ffid][i];

		if (*slot && !strcmp(*slot, name))
			return 0;
		if (*slot)
			continue;
		*slot = strdup(name);
		return *slot ? 0 : -ENOMEM;
	}
	return 0;
}

static int collect(void *arg, const struct lj_loaded *l)
{
	struct ff_found *f = arg;
	char name[MAX_NAME];

	snprintf(name, sizeof(name), "%s%s%s", l->module, *l->module && *l->field ? "." : "",
		 l->field);
	if (l->ffid > 1)
		return add_candidate(f, l->ffid, name);
	return l->ffid ? add_entry(&f->names->cfuncs, l->code, name) : 0;
}

static void make_list(struct list *list, unsigned build)
{
	size_t i;

	*list = (struct list){.n = 2};
	for (i = 0; i < NLISTED && list->n < FFIDS; i++)
		if (listed[i].builds & build)
			list->name[list->n++] = listed[i].name;
}

/* Returns the position of a name of ffid in the list; 0: it is not there. */
static int position_of(const struct ff_found *f, const struct list *list, int ffid, int candidate)
{
	const char *name = f->ff[ffid][candidate];
	int i;

	for (i = 2; name && i < list->n; i++)
		if (!strcmp(list->name[i], name))
			return i;
	return 0;
}

/* Finds the shift between number and list position that a name of ffid and a neighbour's agree
 * on. */
static bool shift_of(const int (*positions)[CANDIDATES], int ffid, int *shift)
{
	int c, d, n;

	for (c = 0; c < CANDIDATES; c++)
		for (n = ffid - NEAR; positions[ffid][c] && n <= ffid + NEAR; n++)
			for (d = 0; d < CANDIDATES && n > 1 && n < FFIDS; d++)
				if (n != ffid && positions[n][d] &&
				    positions[n][d] - n == positions[ffid][c] - ffid) {
					*shift = positions[ffid][c] - ffid;
					return true;
				}
	return false;
}

/* Names by the list all functions between two listed ones with the same shift. Returns how many it
 * names, which are most by the list of the build itself. */
static int apply_list(const struct ff_found *f, const struct list *list, const char *names[FFIDS])
{
	int positions[FFIDS][CANDIDATES] = {{0}};
	int ffid, c, last = 0, last_shift = 0, named = 0;

	for (ffid = 2; ffid < FFIDS; ffid++)
		for (c = 0; c < CANDIDATES; c++)
			positions[ffid][c] = position_of(f, list, ffid, c);
	for (ffid = 2; ffid < FFIDS; ffid++) {
		int shift, i;

		if (!shift_of((const int(*)[CANDIDATES])positions, ffid, &shift))
			continue;
		named++;
		names[ffid] = list->name[ffid + shift];
		for (i = last + 1; last && shift == last_shift && i < ffid; i++, named++)
			names[i] = list->name[i + shift];
		last = ffid;
		last_shift = shift;
	}
	return named;
}

static int choose_names(const struct ff_found *f, char *ff[FFIDS])
{
	const char *best[FFIDS] = {NULL}, *names[FFIDS];
	static const unsigned builds[] = {LJ, OR, B3, V20};
	int most = 0, i;
	size_t b;

	for (b = 0; b < sizeof(builds) / sizeof(builds[0]); b++) {
		struct list list;
		int named;

		memset(names, 0, sizeof(names));
		make_list(&list, builds[b]);
		named = apply_list(f, &list, names);
		if (named <= most)
			continue;
		most = named;
		memcpy(best, names, sizeof(best));
	}
	for (i = 2; i < FFIDS; i++) {
		const char *name = best[i] ? best[i] : f->ff[i][0];

		ff[i] = name ? strdup(name) : NULL;
		if (name && !ff[i])
			return -ENOMEM;
	}
	return 0;
}

static void free_found(struct ff_found **f)
{
	int i, c;

	if (!*f)
		return;
	for (i = 0; i < FFIDS; i++)
		for (c = 0; c < CANDIDATES; c++)
			free((*f)->ff[i][c]);
	free(*f);
}

int lj_ffnames_read(const struct lb_mem *mem, const struct lj_layout *layout, uint64_t g,
		    struct lj_ffnames **out)
{
	struct lj_ffnames *names __cleanup(lj_ffnames_free) = calloc(1, sizeof(*names));
	struct ff_found *found __cleanup(free_found) = calloc(1, sizeof(*found));
	int err;

	if (!names || !found)
		return -ENOMEM;
	found->names = names;
	err = lj_loaded_walk(mem, layout, g, collect, found);
	if (!err)
		err = choose_names(found, names->ff);
	if (err)
		return err;
	*out = TAKE_PTR(names);
	return 0;
}

void lj_ffnames_free(struct lj_ffnames **names)
{
	int i;

	if (!*names)
		return;
	for (i = 0; i < FFIDS; i++)
		free((*names)->ff[i]);
	free_entries(&(*names)->cfuncs);
	free(*names);
	*names = NULL;
}

const char *lj_ffname(const struct lj_ffnames *names, uint8_t ffid)
{
	if (!names)
		return NULL;
	return names->ff[ffid];
}

static const char *find_entry(const struct ff_entry *entries, uint64_t addr)
{
	struct ff_entry *e;

	HASH_FIND(hh, entries, &addr, sizeof(addr), e);
	return e ? e->name : NULL;
}

const char *lj_cfunc_name(const struct lj_ffnames *names, uint64_t addr)
{
	if (!names)
		return NULL;
	return find_entry(names->cfuncs, addr);
}

static bool are_same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

bool lj_ffnames_same(const struct lj_ffnames *a, const struct lj_ffnames *b)
{
	const struct ff_entry *e;
	int i;

	for (i = 0; i < FFIDS; i++)
		if (!are_same(a->ff[i], b->ff[i]))
			return false;
	if (HASH_COUNT(a->cfuncs) != HASH_COUNT(b->cfuncs))
		return false;
	for (e = a->cfuncs; e; e = e->hh.next)
		if (!are_same(e->name, find_entry(b->cfuncs, e->addr)))
			return false;
	return true;
}
