// SPDX-License-Identifier: BSD-2-Clause
#include "function.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "function_join.h"
#include "function_table.h"
#include "function_vms.h"
#include "name.h"

/* Rounds in which a function with a shared name takes its next one, of three. */
#define ROUNDS 8

enum level {
	LEVEL_CALL,
	LEVEL_DEFINITION,
	LEVEL_LOCATION,
};

/* ---- which frames are one function ----------------------------------------------------------- */

static bool is_pseudo(const struct prof_frame *frame)
{
	return frame->kind == PROF_CUT || frame->kind == PROF_TAIL || frame->kind == PROF_VM ||
	       frame->kind == PROF_OTHER;
}

static bool is_path(const char *position)
{
	return position && *position != '~';
}

/* Strings of a profile's frames are equal when their pointers are. */
static void key_of(const struct prof_frame *frame, struct prof_frame *key)
{
	memset(key, 0, sizeof(*key));
	key->kind = frame->kind;
	if (is_pseudo(frame))
		return;
	key->symbol = frame->symbol;
	key->chunk = frame->chunk;
	if (frame->kind != PROF_C || !frame->symbol)
		key->addr = frame->addr;
	if (frame->kind != PROF_LUA)
		return;
	key->defname = frame->defname;
	key->position = is_path(frame->position) ? frame->position : NULL;
	key->firstline = frame->firstline;
	key->shape = frame->shape;
	key->order = frame->order;
	key->contents = frame->contents;
}

static struct function *find_or_add(struct functions *fs, const struct prof_frame *key)
{
	struct function *f;

	HASH_FIND(hh, fs->table, key, sizeof(*key), f);
	if (f)
		return f;
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	memcpy(&f->frame, key, sizeof(*key));
	f->id = f->same = (uint32_t)fs->n;
	f->place = PROF_NO_ORDER;
	HASH_ADD(hh, fs->table, frame, sizeof(*key), f);
	if (!f->hh.tbl) {
		free(f);
		return NULL;
	}
	fs->all[fs->n++] = f;
	return f;
}

static int group_frames(struct functions *fs)
{
	size_t n = prof_nframes(fs->prof);

	fs->all = calloc(n + 1, sizeof(*fs->all));
	fs->of = calloc(n + 1, sizeof(*fs->of));
	if (!fs->all || !fs->of)
		return -ENOMEM;
	for (uint32_t id = 0; id < n; id++) {
		const struct prof_frame *frame = prof_frame(fs->prof, id);
		struct prof_frame key;
		struct function *f;

		key_of(frame, &key);
		f = find_or_add(fs, &key);
		if (!f)
			return -ENOMEM;
		if (frame->position && !is_path(frame->position))
			f->contents = frame->position;
		/* those before it may have been collected: the highest is right */
		if (frame->place != PROF_NO_ORDER &&
		    (f->place == PROF_NO_ORDER || frame->place > f->place))
			f->place = frame->place;
		fs->of[id] = f->id;
	}
	return 0;
}

/* ---- their names ----------------------------------------------------------------------------- */

static const char *definition(const struct function *f)
{
	const char *name = f->frame.kind == PROF_LUA ? f->frame.defname : f->frame.symbol;

	return is_name(name) ? name : NULL;
}

static void note_calls(struct functions *fs)
{
	for (uint32_t id = 0; id < prof_nframes(fs->prof); id++) {
		const char *name = prof_frame(fs->prof, id)->callname;
		struct function *f = fs->all[fs->of[id]];

		if (is_pseudo(&f->frame) || !is_name(name))
			continue;
		if (definition(f) && name_ends_in(definition(f), name) &&
		    (!f->own || strlen(name) > strlen(f->own)))
			f->own = name;
		f->several |= f->callname && f->callname != name;
		if (!f->callname)
			f->callname = name;
	}
}

/* NULL: the location. */
static const char *name_at(const struct function *f, enum level level)
{
	switch (level) {
	case LEVEL_CALL:
		return f->own ? f->own : definition(f) || f->several ? NULL : f->callname;
	case LEVEL_DEFINITION:
		return definition(f);
	case LEVEL_LOCATION:
		break;
	}
	return NULL;
}

static const char *jitp_name(const struct function *f)
{
	return name_at(f, f->level);
}

/* The name of the definition or of all calls, whatever other functions are called; NULL: none. */
static const char *stable_name(const struct function *f)
{
	if (is_pseudo(&f->frame))
		return NULL;
	if (definition(f))
		return definition(f);
	return f->frame.kind == PROF_C || f->several ? NULL : f->callname;
}

/* The name of a C function or builtin; NULL: it has none. */
static const char *symbol_of(const struct function *f)
{
	return f->frame.kind == PROF_LUA || is_pseudo(&f->frame) ? NULL : definition(f);
}

struct owner {
	UT_hash_handle hh;
	const struct function *first;
	bool several;
};

static void owners_free(struct owner **owners)
{
	struct owner *o, *next;

	HASH_ITER (hh, *owners, o, next) {
		HASH_DEL(*owners, o);
		free(o);
	}
}

static int own(struct owner **owners, const char *name, const struct function *f)
{
	struct owner *o;

	HASH_FIND(hh, *owners, name, strlen(name), o);
	if (o) {
		o->several |= o->first != f;
		return 0;
	}
	o = calloc(1, sizeof(*o));
	if (!o)
		return -ENOMEM;
	o->first = f;
	HASH_ADD_KEYPTR(hh, *owners, name, strlen(name), o);
	if (o->hh.tbl)
		return 0;
	free(o);
	return -ENOMEM;
}

static bool is_shared(struct owner *owners, const char *name)
{
	struct owner *o;

	HASH_FIND(hh, owners, name, strlen(name), o);
	return o && o->several;
}

static int list_owners(const struct functions *fs, const char *(*name)(const struct function *f),
		       struct owner **owners)
{
	int err = 0;

	for (size_t i = 0; i < fs->n && !err; i++)
		if (fs->all[i]->same == i && name(fs->all[i]))
			err = own(owners, name(fs->all[i]), fs->all[i]);
	return err;
}

static void next_level(struct function *f)
{
	do
		f->level++;
	while (f->level < LEVEL_LOCATION && !jitp_name(f));
}

/* Functions that share a name give way to their next ones. *more: some did. */
static int give_way(struct functions *fs, bool *more)
{
	struct owner *owners __cleanup(owners_free) = NULL;
	int err = list_owners(fs, jitp_name, &owners);

	*more = false;
	for (size_t i = 0; i < fs->n && !err; i++) {
		struct function *f = fs->all[i];
		const char *name = jitp_name(f);

		if (f->same != i || !name || !is_shared(owners, name))
			continue;
		next_level(f);
		*more = true;
	}
	return err;
}

/*
 * A symbol stays as it is beside a Lua function of that name: the call of one wrong frame may give
 * it, and must not rename the C function of all others.
 */
static int find_shared(struct functions *fs)
{
	struct owner *owners __cleanup(owners_free) = NULL;
	struct owner *symbols __cleanup(owners_free) = NULL;
	int err = list_owners(fs, stable_name, &owners);

	if (!err)
		err = list_owners(fs, symbol_of, &symbols);
	for (size_t i = 0; i < fs->n && !err; i++) {
		struct function *f = fs->all[i];

		if (symbol_of(f))
			f->shared = is_shared(symbols, symbol_of(f));
		else
			f->shared = stable_name(f) && is_shared(owners, stable_name(f));
	}
	return err;
}

static int choose_names(struct functions *fs)
{
	bool more = true;
	int err = 0;

	for (size_t i = 0; i < fs->n; i++) {
		if (is_pseudo(&fs->all[i]->frame))
			fs->all[i]->level = LEVEL_LOCATION;
		else if (!jitp_name(fs->all[i]))
			next_level(fs->all[i]);
	}
	for (int round = 0; round < ROUNDS && more && !err; round++)
		err = give_way(fs, &more);
	return err ? err : find_shared(fs);
}

/* ---- chunks ---------------------------------------------------------------------------------- */

struct chunk {
	UT_hash_handle hh;
	const char *first; /* chunk of that end */
	bool several;
	char end[];
};

static void chunks_free(struct chunk **chunks)
{
	struct chunk *c, *next;

	HASH_ITER (hh, *chunks, c, next) {
		HASH_DEL(*chunks, c);
		free(c);
	}
}

static struct chunk *find_chunk(struct chunk *chunks, const struct prof_frame *frame,
				struct text *end)
{
	struct chunk *c;

	text_clear(end);
	name_chunk(end, frame, 0);
	HASH_FIND(hh, chunks, text_str(end), end->len, c);
	return c;
}

static int add_chunk(struct chunk **chunks, const struct prof_frame *frame, struct text *end)
{
	struct chunk *c = find_chunk(*chunks, frame, end);

	if (text_err(end))
		return -ENOMEM;
	if (c) {
		c->several |= c->first != frame->chunk;
		return 0;
	}
	c = calloc(1, sizeof(*c) + end->len + 1);
	if (!c)
		return -ENOMEM;
	c->first = frame->chunk;
	memcpy(c->end, text_str(end), end->len);
	HASH_ADD(hh, *chunks, end, end->len, c);
	if (c->hh.tbl)
		return 0;
	free(c);
	return -ENOMEM;
}

/* Files of one name in several directories are shown with their paths. */
static int find_paths(struct functions *fs)
{
	struct chunk *chunks __cleanup(chunks_free) = NULL;
	__text struct text end = {0};
	int err = 0;

	for (size_t i = 0; i < fs->n && !err; i++)
		if (fs->all[i]->frame.kind == PROF_LUA)
			err = add_chunk(&chunks, &fs->all[i]->frame, &end);
	for (size_t i = 0; i < fs->n && !err; i++) {
		struct function *f = fs->all[i];

		if (f->frame.kind == PROF_LUA) {
			const struct chunk *c = find_chunk(chunks, &f->frame, &end);

			f->path = c && c->several;
			err = text_err(&end);
		}
	}
	return err;
}

/* ---- locations ------------------------------------------------------------------------------- */

static const char *location_of(const struct function *f)
{
	return f->location;
}

/* Chunk and line of several functions may be the same, even so. */
static int find_locations(struct functions *fs)
{
	struct owner *owners __cleanup(owners_free) = NULL;
	__text struct text text = {0};
	int err;

	for (size_t i = 0; i < fs->n; i++) {
		struct function *f = fs->all[i];

		/* LuaJIT's bytecode functions of a library have one name, as jit.p shows them */
		if (f->same != i || f->frame.kind != PROF_LUA || f->frame.firstline == -1)
			continue;
		text_clear(&text);
		name_location(&text, &f->frame, false, NAME_PATH);
		f->location = text_err(&text) ? NULL : strdup(text_str(&text));
		if (!f->location)
			return -ENOMEM;
	}
	err = list_owners(fs, location_of, &owners);
	for (size_t i = 0; i < fs->n && !err; i++)
		fs->all[i]->shares_location =
			fs->all[i]->location && is_shared(owners, fs->all[i]->location);
	return err;
}

static uint32_t add_hash(uint32_t h, const char *str)
{
	for (; str && *str; str++)
		h = (h ^ (unsigned char)*str) * 16777619U;
	return (h ^ !str) * 16777619U; /* NULL, unknown, differs from "" */
}

/* A hash that distinguishes functions of one location. */
static uint32_t location_hash(const struct function *f)
{
	uint32_t h = add_hash(add_hash(2166136261U, f->frame.chunk), f->frame.defname);

	h = (h ^ f->frame.shape) * 16777619U ^ f->frame.order;
	return f->frame.contents ? (h ^ f->frame.contents) * 16777619U : h;
}

static void put_location(const struct function *f, struct text *out, unsigned int flags)
{
	name_location(out, &f->frame, false, flags);
	if (f->shares_location)
		text_printf(out, "~%08" PRIx32, location_hash(f));
}

/* The same with the current line of a frame. */
static void put_line(const struct function *f, const struct prof_frame *frame, struct text *out,
		     unsigned int flags)
{
	struct prof_frame shown = f->frame;

	shown.line = frame->line;
	name_location(out, &shown, true, flags);
}

/* ---- the rest -------------------------------------------------------------------------------- */

int functions_new(const struct prof *prof, struct functions **out)
{
	struct functions *fs __cleanup(functions_free) = calloc(1, sizeof(*fs));
	int err;

	if (!fs)
		return -ENOMEM;
	fs->prof = prof;
	err = group_frames(fs);
	if (err)
		return err;
	err = functions_join(fs);
	if (!err)
		err = functions_join_vms(fs);
	if (err)
		return err;
	functions_place(fs);
	note_calls(fs);
	err = choose_names(fs);
	if (!err)
		err = find_paths(fs);
	if (!err)
		err = find_locations(fs);
	if (err)
		return err;
	*out = TAKE_PTR(fs);
	return 0;
}

void functions_free(struct functions **fsp)
{
	struct functions *fs = *fsp;

	if (!fs)
		return;
	HASH_CLEAR(hh, fs->table);
	HASH_CLEAR(by_base, fs->bases);
	for (size_t i = 0; i < fs->n; i++) {
		free(fs->all[i]->location);
		free(fs->all[i]);
	}
	free(fs->all);
	free(fs->of);
	free(fs);
	*fsp = NULL;
}

uint32_t functions_of(const struct functions *fs, uint32_t frame)
{
	return fs->of[frame];
}

size_t functions_count(const struct functions *fs)
{
	return fs->n;
}

const struct prof_frame *functions_frame(const struct functions *fs, uint32_t function)
{
	return &fs->all[function]->frame;
}

void functions_put_jitp(const struct functions *fs, struct text *out, uint32_t frame, char what,
			unsigned int flags)
{
	const struct function *f = fs->all[fs->of[frame]];
	const struct prof_frame *shown = prof_frame(fs->prof, frame);
	const char *name = jitp_name(f);

	if (f->path)
		flags |= NAME_PATH;
	if (what == 'l') {
		put_line(f, shown, out, flags);
		return;
	}
	if (!name) {
		put_location(f, out, flags);
		return;
	}
	if (what == 'F' && shown->kind == PROF_LUA && shown->firstline != -1) {
		name_chunk(out, shown, flags);
		text_putc(out, ':');
	}
	text_puts(out, name);
}

static void put_stable(const struct function *f, struct text *out, bool location)
{
	const char *name = stable_name(f);

	if (!name) {
		put_location(f, out, NAME_PATH);
		return;
	}
	text_puts(out, name);
	if (!location)
		return;
	text_puts(out, " (");
	if (f->frame.kind == PROF_LUA && f->shared)
		put_location(f, out, NAME_PATH);
	else if (f->frame.kind ==
		 PROF_LUA) /* the name distinguishes it from others of its location */
		name_location(out, &f->frame, false, NAME_PATH);
	else
		name_module(out, &f->frame);
	text_putc(out, ')');
}

void functions_put_stable(const struct functions *fs, struct text *out, uint32_t function)
{
	put_stable(fs->all[function], out, fs->all[function]->shared);
}

void functions_put_unique(const struct functions *fs, struct text *out, uint32_t function)
{
	const struct function *f = fs->all[function];

	put_stable(f, out, f->shared || f->frame.kind == PROF_LUA);
}
