// SPDX-License-Identifier: BSD-2-Clause
/*
 * A prototype's sizes distinguish two versions of a file in one VM, but they differ from VM to VM,
 * too. So functions of one location in a file, or in the same text, are one if no VM has two of them
 * and their names agree. The number of a function on its line is not the same in all VMs where
 * functions are nested: it has to agree only where there is no name.
 */
#include "function_vms.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "function_table.h"

struct shared_source {
	UT_hash_handle hh;
	struct {
		const char *chunk;
		const char *defname; /* NULL: of any */
		int64_t firstline;
	} key;
	struct function *first;
	const char *defname;
	uint32_t order; /* of those that have one */
	bool orders;	/* several */
	bool divided;
};

/* A function that a VM ran; and the same by source. */
struct vm_use {
	UT_hash_handle hh;
	struct {
		const void *of;
		const char *vm; /* equal strings are the same pointer */
	} key;
	struct function *function;
};

static void uses_free(struct vm_use **uses)
{
	struct vm_use *u, *next;

	HASH_ITER (hh, *uses, u, next) {
		HASH_DEL(*uses, u);
		free(u);
	}
}

static void sources_free(struct shared_source **sources)
{
	struct shared_source *s, *next;

	HASH_ITER (hh, *sources, s, next) {
		HASH_DEL(*sources, s);
		free(s);
	}
}

/* *other: the use that was there is another function's. */
static int add_use(struct vm_use **uses, const void *of, const char *vm, struct function *f,
		   bool *other)
{
	struct vm_use *u, probe = {.key = {of, vm}};

	HASH_FIND(hh, *uses, &probe.key, sizeof(probe.key), u);
	if (u) {
		*other |= u->function != f;
		return 0;
	}
	u = calloc(1, sizeof(*u));
	if (!u)
		return -ENOMEM;
	u->key = probe.key;
	u->function = f;
	HASH_ADD(hh, *uses, key, sizeof(u->key), u);
	if (u->hh.tbl)
		return 0;
	free(u);
	return -ENOMEM;
}

/* A name such as "=stdin" is that of many sources. Functions without lines have their contents. */
static bool has_source(const struct function *f)
{
	return f->same == f->id && f->frame.kind == PROF_LUA && f->frame.firstline >= 0 &&
	       f->frame.chunk && *f->frame.chunk != '=' && !f->frame.position && !f->contents;
}

static bool has_several_vms(const struct prof *prof)
{
	for (uint32_t i = 1; i < prof_norigins(prof); i++)
		if (prof_origin(prof, i)->vm != prof_origin(prof, 1)->vm)
			return true;
	return false;
}

static int find_uses(struct functions *fs, struct vm_use **uses)
{
	bool other = false;
	int err = 0;

	for (size_t i = 0; i < prof_nrows(fs->prof) && !err; i++) {
		struct prof_row row;
		const char *vm;

		prof_row(fs->prof, i, &row);
		vm = prof_origin(fs->prof, row.labels.origin)->vm;
		for (size_t j = 0; j < row.nframes && !err; j++) {
			struct function *f = fs->all[fs->all[fs->of[row.frames[j]]]->same];

			if (f->last_vm == vm || !has_source(f))
				continue;
			f->last_vm = vm;
			err = add_use(uses, f, vm, f, &other);
		}
	}
	return err;
}

/* by_name: only of functions that have one. */
static int list_sources(struct functions *fs, bool by_name, struct shared_source **sources)
{
	for (size_t i = 0; i < fs->n; i++) {
		struct function *f = fs->all[i];
		struct shared_source *s, probe = {};

		f->source = NULL;
		if (!has_source(f) || (by_name && !is_name(f->frame.defname)))
			continue;
		probe.key.chunk = f->frame.chunk;
		probe.key.defname = by_name ? f->frame.defname : NULL;
		probe.key.firstline = f->frame.firstline;
		HASH_FIND(hh, *sources, &probe.key, sizeof(probe.key), s);
		if (!s) {
			s = calloc(1, sizeof(*s));
			if (!s)
				return -ENOMEM;
			s->key = probe.key;
			s->first = f;
			s->order = PROF_NO_ORDER;
			HASH_ADD(hh, *sources, key, sizeof(s->key), s);
			if (!s->hh.tbl) {
				free(s);
				return -ENOMEM;
			}
		}
		f->source = s;
		s->divided |= learn(&s->defname, f->frame.defname);
		if (s->order == PROF_NO_ORDER)
			s->order = f->frame.order;
		s->orders |= f->frame.order != PROF_NO_ORDER && f->frame.order != s->order;
	}
	return 0;
}

static int join_sources(struct functions *fs, struct vm_use *uses, bool by_name)
{
	struct shared_source *sources __cleanup(sources_free) = NULL;
	struct vm_use *by_source __cleanup(uses_free) = NULL;
	int err = list_sources(fs, by_name, &sources);

	for (struct vm_use *u = uses; u && !err; u = u->hh.next)
		if (u->function->source)
			err = add_use(&by_source, u->function->source, u->key.vm, u->function,
				      &u->function->source->divided);
	for (size_t i = 0; i < fs->n && !err; i++) {
		struct function *f = fs->all[i];
		struct shared_source *s = f->source;

		if (!s || s->divided || (s->orders && !is_name(s->defname)))
			continue;
		f->same = s->first->id;
		s->first->frame.defname = s->defname;
	}
	return err;
}

int functions_join_vms(struct functions *fs)
{
	struct vm_use *uses __cleanup(uses_free) = NULL;
	int err = has_several_vms(fs->prof) ? find_uses(fs, &uses) : 0;

	if (!err && uses)
		err = join_sources(fs, uses, false);
	if (!err && uses)
		err = join_sources(fs, uses, true);
	for (uint32_t id = 0; id < prof_nframes(fs->prof) && !err; id++)
		fs->of[id] = fs->all[fs->all[fs->of[id]]->same]->same;
	return err;
}
