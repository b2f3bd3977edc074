// SPDX-License-Identifier: BSD-2-Clause
#include "zones.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/mem_gather.h"
#include "base/mem_noted.h"
#include "base/text.h"
#include "family.h"
#include "prof/prof.h"

#define NAMES_MAX 16384 /* further ones are unknown zones */
#define VMS_MAX 1024	/* of an image; then all are forgotten */
#define NO_STRING "(not a string)"

/* A table that comes back within a round looks as if it had been there. So a VM's zones are unknown
 * once its zone stack was replaced more often than by a reload of the module. */
#define REPLACED_MOST 1

struct zone_name {
	uint64_t word; /* its hash */
	UT_hash_handle hh;
	char text[];
};

struct zones {
	struct zones_options options;
	struct zone_name *names;
	struct zones_counts counts;
	uint32_t generation; /* of the last struct lb_zone */
};

struct vm_zones {
	uint64_t g;
	const struct sym_family *family;
	struct lb_zone stack;	   /* as BPF has it; table 0: the VM had none */
	uint32_t round;		   /* in which it was searched */
	bool searched;		   /* it was, with success */
	bool had_stack;		   /* it was found: later, package.loaded may lose it */
	uint32_t replaced;	   /* by another table, so often */
	struct mem_extent *extent; /* that the last search has read */
	size_t nextents;
	UT_hash_handle hh;
};

int zones_new(const struct zones_options *options, struct zones **out)
{
	struct zones *zones = calloc(1, sizeof(*zones));

	if (!zones)
		return -ENOMEM;
	zones->options = *options;
	*out = zones;
	return 0;
}

void zones_free(struct zones **zones)
{
	struct zone_name *name, *next;

	if (!*zones)
		return;
	HASH_ITER (hh, (*zones)->names, name, next) {
		HASH_DEL((*zones)->names, name);
		free(name);
	}
	free(*zones);
	*zones = NULL;
}

void vm_zones_free(struct vm_zones **vms)
{
	struct vm_zones *v, *next;

	HASH_ITER (hh, *vms, v, next) {
		HASH_DEL(*vms, v);
		free(v->extent);
		free(v);
	}
}

/* ---- names ----------------------------------------------------------------------------------- */

static const struct zone_name *find_name(const struct zones *zones, uint64_t word)
{
	struct zone_name *name;

	HASH_FIND(hh, zones->names, &word, sizeof(word), name);
	return name;
}

int zones_name(struct zones *zones, const struct lb_rec_zone *rec)
{
	size_t n = rec->len < LB_ZONE_TEXT ? rec->len : LB_ZONE_TEXT;
	__text struct text text = {0};
	struct zone_name *name;

	if (find_name(zones, rec->word) || HASH_COUNT(zones->names) >= NAMES_MAX)
		return 0;
	text_put_utf8(&text, rec->text, n);
	if (n < rec->len)
		text_puts(&text, "...");
	if (text_err(&text))
		return -ENOMEM;
	name = calloc(1, sizeof(*name) + text.len + 1);
	if (!name)
		return -ENOMEM;
	name->word = rec->word;
	memcpy(name->text, text_str(&text), text.len);
	HASH_ADD(hh, zones->names, word, sizeof(name->word), name);
	if (name->hh.tbl)
		return 0;
	free(name);
	return -ENOMEM;
}

/* ---- zone stacks ----------------------------------------------------------------------------- */

/* Most of what a search reads is what the one before has read: one system call gets all of it. */
static int search(struct vm_zones *v, const struct lb_mem *mem, const struct lb_build *build,
		  const char *module, struct lb_zone *out)
{
	struct mem_gather gather;
	struct mem_noted noted;
	int r;

	mem_gather_init(&gather, mem);
	for (size_t i = 0; i < v->nextents; i++)
		mem_gather_want_all(&gather, v->extent[i].addr, v->extent[i].size);
	r = mem_gather_read(&gather);
	mem_noted_init(&noted, &gather.mem);
	if (!r)
		r = v->family->zone(&noted.mem, build, v->g, module, out);
	if (!r || r == -ENOENT) {
		free(v->extent);
		v->extent = noted.extent;
		v->nextents = noted.n;
		noted.extent = NULL;
	}
	mem_noted_clear(&noted);
	mem_gather_clear(&gather);
	return r;
}

static void count_vm(struct zones *zones, const struct vm_zones *v, int by)
{
	zones->counts.vms += (uint64_t)by;
	zones->counts.without += v->had_stack ? 0 : (uint64_t)by;
}

static bool is_same(const struct lb_zone *a, const struct lb_zone *b)
{
	return a->table == b->table && a->array == b->array && a->node == b->node &&
	       a->size == b->size && a->nodes == b->nodes;
}

/* For a process that has ended, earlier findings count. */
static void look(struct zones *zones, struct vm_zones *v, const struct lb_mem *mem,
		 const struct lb_build *build, const struct lb_rec_sample *rec)
{
	const struct lb_zone_key key = {.g = v->g, .pid = rec->pid, .epoch = rec->epoch};
	bool is_changed = !v->round; /* or it is the first search */
	struct lb_zone found = {};
	int r = search(v, mem, build, zones->options.module, &found);

	if (r && r != -ENOENT)
		found = v->stack;
	is_changed |= !is_same(&found, &v->stack);
	v->replaced += v->stack.table && found.table && found.table != v->stack.table;
	if (v->searched)
		count_vm(zones, v, -1);
	v->searched |= !r || r == -ENOENT;
	found.generation = is_changed ? ++zones->generation : v->stack.generation;
	v->stack = found;
	v->had_stack |= found.table != 0;
	if (v->searched)
		count_vm(zones, v, 1);
	/* BPF may have evicted its entry */
	if (is_changed || LB_ZONE_WORD(rec->zone) == LB_ZONE_UNSEEN)
		zones->options.set(zones->options.arg, &key, &v->stack);
}

static struct vm_zones *vm_of(struct vm_zones **vms, const struct lb_build *build, uint64_t g)
{
	const struct sym_family *family = sym_family(build->family);
	struct vm_zones *v;

	HASH_FIND(hh, *vms, &g, sizeof(g), v);
	if (v && v->family == family)
		return v;
	if (v || HASH_COUNT(*vms) >= VMS_MAX) /* they come and go */
		vm_zones_free(vms);
	v = calloc(1, sizeof(*v));
	if (!v)
		return NULL;
	v->g = g;
	v->family = family;
	HASH_ADD(hh, *vms, g, sizeof(v->g), v);
	if (v->hh.tbl)
		return v;
	free(v);
	return NULL;
}

static struct vm_zones *look_once(struct zones *zones, struct vm_zones **vms,
				  const struct lb_mem *mem, const struct lb_build *build,
				  const struct lb_rec_sample *rec, uint32_t round)
{
	struct vm_zones *v = vm_of(vms, build, rec->vm);

	if (v && v->round != round)
		look(zones, v, mem, build, rec);
	if (v)
		v->round = round;
	return v;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* NULL: it is not known. */
static const char *label_of(const struct zones *zones, const struct vm_zones *v, uint64_t zone)
{
	const struct zone_name *name;

	if (!v || !v->searched || v->replaced > REPLACED_MOST)
		return NULL;
	if (LB_ZONE_WORD(zone) == LB_ZONE_UNSEEN ||
	    !v->stack.table) /* the program may have kept the table */
		return v->had_stack ? NULL : PROF_NO_ZONE;
	if (LB_ZONE_GENERATION(zone) != LB_ZONE_GENERATION(v->stack.generation))
		return NULL;
	switch (LB_ZONE_WORD(zone)) {
	case LB_ZONE_ABSENT:
	case LB_ZONE_EMPTY:
		return PROF_NO_ZONE;
	case LB_ZONE_NO_STRING:
		return NO_STRING;
	}
	name = find_name(zones, LB_ZONE_WORD(zone));
	return name ? name->text : NULL;
}

const char *zones_label(struct zones *zones, struct vm_zones **vms, const struct lb_mem *mem,
			const struct lb_build *build, const struct lb_rec_sample *rec,
			uint32_t round)
{
	const char *label;

	if (!zones || !rec->zone)
		return NULL;
	label = label_of(zones, look_once(zones, vms, mem, build, rec, round), rec->zone);
	return label ? label : PROF_UNKNOWN_ZONE;
}

void zones_count(struct zones *zones, const char *label, uint32_t count)
{
	if (zones && label && !strcmp(label, PROF_UNKNOWN_ZONE))
		zones->counts.unknown += count;
}

void zones_counts(const struct zones *zones, struct zones_counts *out)
{
	*out = zones->counts;
}
