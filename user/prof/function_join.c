// SPDX-License-Identifier: BSD-2-Clause
#include "function_join.h"

#include <errno.h>

#include "function_table.h"

static int list_bases(struct functions *fs)
{
	for (size_t i = 0; i < fs->n; i++) {
		struct function *f = fs->all[i], *first;

		memcpy(&f->base, &f->frame, sizeof(f->base));
		f->base.defname = NULL;
		/* a main function has none, and is not one whose path is not known */
		f->base.position = f->frame.position || f->contents ? "" : NULL;
		HASH_FIND(by_base, fs->bases, &f->base, sizeof(f->base), first);
		if (!first) {
			HASH_ADD(by_base, fs->bases, base, sizeof(f->base), f);
			if (!f->by_base.tbl)
				return -ENOMEM;
			first = f;
		}
		f->first = first;
	}
	return 0;
}

/* True if a chunk's name is not its source's: a host gives it, to any number of generated chunks. */
static bool is_given_name(const char *chunk)
{
	return chunk && *chunk == '=';
}

/*
 * A definition, that a function has no name there (""), and its path in the chunk are known only
 * while its parents are on the stack: functions that are equal in all else are one, unless there
 * are several definitions or paths. In generated chunks of one name those without a definition may be any.
 */
static int join_unknown(struct functions *fs)
{
	int err = list_bases(fs);

	for (size_t i = 0; i < fs->n && !err; i++) {
		struct function *f = fs->all[i], *first = f->first;

		if (f->frame.defname && *f->frame.defname && is_given_name(f->frame.chunk))
			first->defined = true;
		first->undefined |= !f->frame.defname && is_given_name(f->frame.chunk);
		first->divided |= learn(&first->defname, f->frame.defname);
		first->divided |= learn(&first->position, f->frame.position);
	}
	for (size_t i = 0; i < fs->n && !err; i++) {
		struct function *f = fs->all[i], *first = f->first;

		if (first->divided || (first->defined && first->undefined))
			continue;
		f->same = first->id;
		first->frame.defname = first->defname;
		first->frame.position = first->position;
		if (f->contents)
			first->contents = f->contents;
	}
	for (size_t i = 0; i < fs->n && !err; i++)
		if (!fs->all[i]->frame.position)
			fs->all[i]->frame.position = fs->all[i]->contents;
	return err;
}

/* What a function may lack: the VM was closed before it was read. */
enum {
	LACKS_ORDER = 1,
	LACKS_CONTENTS = 2,
	LACKS_BOTH = LACKS_ORDER | LACKS_CONTENTS,
};

static unsigned int lacks(const struct function *f)
{
	return (f->frame.order == PROF_NO_ORDER ? LACKS_ORDER : 0) |
	       (f->frame.contents ? 0 : LACKS_CONTENTS);
}

/* Lists functions by their bases without this, and for each base one that does not lack it. */
static int list_lacking(struct functions *fs, unsigned int what)
{
	HASH_CLEAR(by_base, fs->bases);
	for (size_t i = 0; i < fs->n; i++) {
		struct function *f = fs->all[i];

		if (f->same != i)
			continue;
		/* orders are of equal contents, where these are known */
		f->base.order = 0;
		f->base.contents = what & LACKS_CONTENTS ? 0 : f->frame.contents;
		f->base.place = what == LACKS_CONTENTS ? f->place : 0;
		f->whole = NULL;
		f->wholes = false;
		HASH_FIND(by_base, fs->bases, &f->base, sizeof(f->base), f->first);
		if (!f->first) {
			HASH_ADD(by_base, fs->bases, base, sizeof(f->base), f);
			if (!f->by_base.tbl)
				return -ENOMEM;
			f->first = f;
		}
		if (lacks(f) & (what & LACKS_CONTENTS ? LACKS_CONTENTS : LACKS_ORDER))
			continue;
		f->first->wholes |= f->first->whole != NULL;
		f->first->whole = f;
	}
	return 0;
}

/*
 * A function that lacks `who` is the one that is equal in all but `what`, unless there are several such: of the same
 * contents, if these are known; else of the same number on the line, if that is known.
 */
static int join_lacking(struct functions *fs, unsigned int who, unsigned int what)
{
	int err = list_lacking(fs, what);

	for (size_t i = 0; i < fs->n && !err; i++) {
		struct function *f = fs->all[i], *whole = f->first->whole;
		const char *defname;

		if (f->same != i || lacks(f) != who || f->may_be_several || !whole)
			continue;
		f->may_be_several = f->first->wholes;
		defname = whole->frame.defname;
		if (f->may_be_several || learn(&defname, f->frame.defname))
			continue;
		f->same = whole->id;
		whole->frame.defname = defname;
	}
	for (size_t i = 0; i < fs->n; i++)
		fs->all[i]->same = fs->all[fs->all[i]->same]->same;
	return err;
}

void functions_place(struct functions *fs)
{
	for (size_t i = 0; i < fs->n; i++) {
		struct function *of = fs->all[fs->all[i]->same];

		if (of->place == PROF_NO_ORDER)
			of->place = fs->all[i]->place;
	}
	for (size_t i = 0; i < fs->n; i++)
		fs->all[i]->frame.place = fs->all[fs->all[i]->same]->place;
}

static void count_samples(struct functions *fs)
{
	for (size_t i = 0; i < prof_nrows(fs->prof); i++) {
		struct prof_row row;

		prof_row(fs->prof, i, &row);
		for (size_t j = 0; j < row.nframes; j++)
			fs->all[fs->all[fs->of[row.frames[j]]]->same]->samples += row.count;
	}
}

/* An order that fewer samples show than this part of another's, where others show none, is not known either. */
#define RARE 16

/*
 * In a program that loads a file or closes VMs all the time, few orders are counted in a list that had changed: they are
 * rare, and of other prototypes that are equal there is no order.
 */
static int doubt_orders(struct functions *fs)
{
	int err = list_lacking(fs, LACKS_ORDER);

	count_samples(fs);
	for (size_t i = 0; i < fs->n && !err; i++) {
		struct function *f = fs->all[i], *first = f->first;

		if (f->same != i)
			continue;
		first->doubtful |= (lacks(f) & LACKS_ORDER) != 0;
		if (!(lacks(f) & LACKS_ORDER) && f->samples > first->most)
			first->most = f->samples;
	}
	for (size_t i = 0; i < fs->n && !err; i++) {
		struct function *f = fs->all[i];

		if (f->same == i && f->first->doubtful && f->samples < f->first->most / RARE)
			f->frame.order = PROF_NO_ORDER;
	}
	return err;
}

int functions_join(struct functions *fs)
{
	int err = join_unknown(fs);

	if (!err)
		err = doubt_orders(fs);
	if (!err)
		err = join_lacking(fs, LACKS_ORDER, LACKS_ORDER);
	if (!err)
		err = join_lacking(fs, LACKS_CONTENTS, LACKS_CONTENTS);
	if (!err)
		err = join_lacking(fs, LACKS_BOTH, LACKS_BOTH);
	return err ? err : join_lacking(fs, LACKS_BOTH, LACKS_ORDER);
}
