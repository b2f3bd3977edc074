// SPDX-License-Identifier: BSD-2-Clause
/*
 * The profile in memory. Arrays that only grow, each with an index by its keys: strings, frames
 * (strings by pointer, so that a frame is compared as plain bytes), origins, and rows (frames by id,
 * so that a row is, too), up to the bounds in prof.h. Numbers saturate.
 */
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/hash_index.h"
#include "prof.h"

struct row_key {
	const char *comm;
	const char *zone;
	uint64_t coroutine, vm;
	uint32_t pid, tid;
	uint8_t vmstate, cause, snapshot_line, zero;
	uint32_t origin;
	uint32_t trace, zero2;
	uint32_t frames[];
};

struct row {
	uint64_t count;
	size_t nframes;
	struct row_key key;
};

struct loss {
	const char *reason;
	uint64_t count;
};

#define NO_ID UINT32_MAX

struct prof {
	struct prof_meta meta;
	size_t frames_left, rows_left; /* of the bounds */
	size_t limit;		       /* both, at the beginning */
	uint32_t other;		       /* id of PROF_OTHER, or NO_ID */
	char **strings;
	struct hash_index string_index;
	size_t nstrings;
	struct prof_frame *frames; /* built in zeroed memory: their padding compares equal */
	struct hash_index frame_index;
	size_t nframes;
	struct prof_origin *origins; /* the first has no string, and is not in the index */
	struct hash_index origin_index;
	size_t norigins;
	struct row **rows;
	struct hash_index row_index;
	size_t nrows;
	struct row_key *scratch; /* the key of the row that is looked up */
	size_t scratch_cap;	 /* in bytes */
	struct loss *losses;
	size_t nlosses;
	uint64_t samples;
};

static uint64_t add_to(uint64_t a, uint64_t b, uint64_t max)
{
	return b > max - a ? max : a + b;
}

static int add_origin(struct prof *prof, const struct prof_origin *origin)
{
	int err = array_grow(&prof->origins, prof->norigins, sizeof(*prof->origins));

	if (!err)
		prof->origins[prof->norigins++] = *origin;
	return err;
}

int prof_new(struct prof **out)
{
	struct prof *prof = calloc(1, sizeof(*prof));

	if (!prof)
		return -ENOMEM;
	prof->other = NO_ID;
	prof_limit(prof, PROF_MAX_FRAMES, PROF_MAX_ROWS);
	if (add_origin(prof,
		       &(struct prof_origin){.exe = "", .cgroup = "", .container = "", .vm = ""})) {
		prof_free(&prof);
		return -ENOMEM;
	}
	*out = prof;
	return 0;
}

void prof_limit(struct prof *prof, size_t frames, size_t rows)
{
	prof->frames_left = frames;
	prof->rows_left = rows;
	prof->limit = frames + rows;
}

void prof_free(struct prof **pp)
{
	struct prof *prof = *pp;

	if (!prof)
		return;
	for (size_t i = 0; i < prof->nstrings; i++)
		free(prof->strings[i]);
	for (size_t i = 0; i < prof->nrows; i++)
		free(prof->rows[i]);
	hash_index_free(&prof->string_index);
	hash_index_free(&prof->frame_index);
	hash_index_free(&prof->origin_index);
	hash_index_free(&prof->row_index);
	free(prof->strings);
	free(prof->frames);
	free(prof->origins);
	free(prof->rows);
	free(prof->scratch);
	free(prof->losses);
	free(prof);
	*pp = NULL;
}

/* ---- what the file takes --------------------------------------------------------------------- */

/*
 * Upper bounds of what pprof_write() makes of a frame or a row beyond its strings. The reader's
 * message tree takes at most four times as much.
 */
#define FRAME_BYTES 384
#define ROW_BYTES 320
#define ID_BYTES 3

static_assert(PROF_MAX_FRAMES / FRAME_BYTES < 1UL << (7 * ID_BYTES), "a varint of an id");

/* In the string table, where what is not ASCII may be escaped (text_put_utf8()). */
static size_t readable_bytes(const char *str, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < max && str[i]; i++)
		n += str[i] >= 0x20 && str[i] < 0x7f ? 1 : 4;
	return n;
}

/* The string itself and `readable` forms of it. */
static size_t string_bytes(const char *str, size_t max, size_t readable)
{
	return str ? strnlen(str, max) + readable * readable_bytes(str, max) : 0;
}

/* A path is the file, and may be a part of both names as well; of source text these show 40 bytes. */
static size_t frame_bytes(const struct prof_frame *frame)
{
	const char *chunk = frame->chunk ? frame->chunk : "";
	bool named = *chunk == '@' || *chunk == '=' || frame->firstline == -1;

	return FRAME_BYTES + string_bytes(frame->callname, PROF_MAX_NAME, 1) +
	       string_bytes(frame->defname, PROF_MAX_NAME, 1) +
	       string_bytes(frame->symbol, PROF_MAX_NAME, 1) +
	       string_bytes(frame->position, PROF_MAX_NAME, 4) +
	       string_bytes(chunk, PROF_MAX_CHUNK, named ? 3 : 1);
}

/* ---- strings and frames ---------------------------------------------------------------------- */

static const char *find_string(const struct prof *prof, const char *str, size_t len, uint32_t hash)
{
	size_t at = hash;
	uint32_t id;

	while (hash_index_next(&prof->string_index, hash, &at, &id))
		if (!strncmp(prof->strings[id], str, len) && !prof->strings[id][len])
			return prof->strings[id];
	return NULL;
}

static int add_string(struct prof *prof, const char *str, size_t len, uint32_t hash)
{
	__free char *copy = NULL;
	int err = array_grow(&prof->strings, prof->nstrings, sizeof(*prof->strings));

	if (err)
		return err;
	copy = strndup(str, len);
	if (!copy)
		return -ENOMEM;
	err = hash_index_add(&prof->string_index, hash, (uint32_t)prof->nstrings);
	if (!err)
		prof->strings[prof->nstrings++] = TAKE_PTR(copy);
	return err;
}

/* *out is NULL for NULL. -ENOENT: it is new, and `add` is false. */
static int intern(struct prof *prof, const char *str, size_t max, bool add, const char **out)
{
	const char *found;
	uint32_t hash;
	size_t len;
	int err;

	if (!str) {
		*out = NULL;
		return 0;
	}
	len = strnlen(str, max);
	hash = hash_bytes(str, len);
	found = find_string(prof, str, len, hash);
	if (!found) {
		err = add ? add_string(prof, str, len, hash) : -ENOENT;
		if (err)
			return err;
		found = prof->strings[prof->nstrings - 1];
	}
	*out = found;
	return 0;
}

static int intern_frame(struct prof *prof, const struct prof_frame *from, bool add,
			struct prof_frame *to)
{
	int err;

	memset(to, 0, sizeof(*to));
	to->kind = from->kind;
	to->addr = from->addr;
	to->firstline = from->firstline;
	to->line = from->line;
	to->shape = from->shape;
	to->order = from->order;
	to->place = from->place;
	to->contents = from->contents;
	err = intern(prof, from->callname, PROF_MAX_NAME, add, &to->callname);
	if (!err)
		err = intern(prof, from->defname, PROF_MAX_NAME, add, &to->defname);
	if (!err)
		err = intern(prof, from->chunk, PROF_MAX_CHUNK, add, &to->chunk);
	if (!err)
		err = intern(prof, from->symbol, PROF_MAX_NAME, add, &to->symbol);
	if (!err)
		err = intern(prof, from->position, PROF_MAX_NAME, add, &to->position);
	return err;
}

/* The key is in zeroed memory. */
static bool find_frame(const struct prof *prof, const struct prof_frame *key, uint32_t hash,
		       uint32_t *id)
{
	size_t at = hash;

	while (hash_index_next(&prof->frame_index, hash, &at, id))
		if (!memcmp(&prof->frames[*id], key, sizeof(*key)))
			return true;
	return false;
}

static int add_frame(struct prof *prof, const struct prof_frame *key, uint32_t *id)
{
	int err = array_grow(&prof->frames, prof->nframes, sizeof(*prof->frames));

	if (!err)
		err = hash_index_add(&prof->frame_index, hash_bytes(key, sizeof(*key)),
				     (uint32_t)prof->nframes);
	if (err)
		return err;
	memcpy(&prof->frames[prof->nframes], key, sizeof(*key));
	*id = (uint32_t)prof->nframes++;
	return 0;
}

/* The one frame that stands for all that there is no room for; it takes none of the bound. */
static int other_frame(struct prof *prof, uint32_t *id)
{
	struct prof_frame key;
	int err = 0;

	memset(&key, 0, sizeof(key));
	key.kind = PROF_OTHER;
	key.line = -1;
	if (prof->other == NO_ID)
		err = add_frame(prof, &key, &prof->other);
	if (!err)
		*id = prof->other;
	return err;
}

int prof_frame_id(struct prof *prof, const struct prof_frame *frame, uint32_t *id)
{
	struct prof_frame key;
	size_t bytes;
	int err;

	if (frame->kind == PROF_OTHER)
		return other_frame(prof, id);
	err = intern_frame(prof, frame, false, &key);
	if (!err && find_frame(prof, &key, hash_bytes(&key, sizeof(key)), id))
		return 0;
	bytes = frame_bytes(frame);
	if (bytes > prof->frames_left)
		return other_frame(prof, id);
	err = intern_frame(prof, frame, true, &key);
	if (!err)
		err = add_frame(prof, &key, id);
	if (!err)
		prof->frames_left -= bytes;
	return err;
}

/* ---- origins --------------------------------------------------------------------------------- */

const char *const prof_origin_labels[PROF_ORIGIN_STRINGS] = {"exe", "cgroup", "container", "vm"};

static int intern_origin(struct prof *prof, const struct prof_origin *from, bool add,
			 struct prof_origin *to)
{
	int err = 0;

	for (size_t i = 0; i < PROF_ORIGIN_STRINGS && !err; i++)
		err = intern(prof, from->string[i] ? from->string[i] : "", PROF_MAX_CHUNK, add,
			     &to->string[i]);
	return err;
}

static size_t origin_bytes(const struct prof_origin *origin)
{
	size_t bytes = ROW_BYTES;

	for (size_t i = 0; i < PROF_ORIGIN_STRINGS; i++)
		bytes += string_bytes(origin->string[i], PROF_MAX_CHUNK, 1);
	return bytes;
}

static bool find_origin(const struct prof *prof, const struct prof_origin *key, uint32_t *id)
{
	uint32_t hash = hash_bytes(key, sizeof(*key));
	size_t at = hash;

	while (hash_index_next(&prof->origin_index, hash, &at, id))
		if (!memcmp(&prof->origins[*id], key, sizeof(*key)))
			return true;
	return false;
}

int prof_origin_id(struct prof *prof, const struct prof_origin *origin, uint32_t *id)
{
	size_t bytes = origin_bytes(origin);
	struct prof_origin key;
	int err = intern_origin(prof, origin, false, &key);

	if (!err && find_origin(prof, &key, id))
		return 0;
	if (bytes > prof->rows_left || bytes == ROW_BYTES) {
		*id = 0;
		return 0;
	}
	err = intern_origin(prof, origin, true, &key);
	if (!err)
		err = add_origin(prof, &key);
	if (!err)
		err = hash_index_add(&prof->origin_index, hash_bytes(&key, sizeof(key)),
				     (uint32_t)prof->norigins - 1);
	if (err)
		return err;
	prof->rows_left -= bytes;
	*id = (uint32_t)prof->norigins - 1;
	return 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Builds the key in prof->scratch, without strings; PROF_OTHERs that follow one another are one. */
static int row_key(struct prof *prof, const uint32_t *frames, size_t n,
		   const struct prof_labels *labels, size_t *depth)
{
	size_t need, kept = 0;
	struct row_key *key;

	if (n > SIZE_MAX / sizeof(*frames) / 4 || labels->origin >= prof->norigins)
		return -EINVAL;
	need = sizeof(*key) + n * sizeof(*frames);
	if (need > prof->scratch_cap) {
		key = realloc(prof->scratch, need * 2);
		if (!key)
			return -ENOMEM;
		prof->scratch = key;
		prof->scratch_cap = need * 2;
	}
	key = prof->scratch;
	memset(key, 0, sizeof(*key));
	key->pid = labels->pid;
	key->tid = labels->tid;
	key->vmstate = (unsigned char)labels->vmstate;
	key->cause = labels->cause;
	key->trace = labels->trace;
	key->snapshot_line = labels->snapshot_line;
	key->origin = labels->origin;
	key->coroutine = labels->coroutine;
	key->vm = labels->vm;
	for (size_t i = 0; i < n; i++) {
		if (frames[i] >= prof->nframes)
			return -EINVAL;
		if (!kept || frames[i] != prof->other || key->frames[kept - 1] != prof->other)
			key->frames[kept++] = frames[i];
	}
	*depth = kept;
	return 0;
}

static size_t key_bytes(size_t depth)
{
	return offsetof(struct row_key, frames) + depth * sizeof(uint32_t);
}

/* The row whose key is in prof->scratch. */
static bool find_row(const struct prof *prof, size_t depth, uint32_t hash, size_t *row)
{
	size_t at = hash;
	uint32_t id;

	while (hash_index_next(&prof->row_index, hash, &at, &id)) {
		if (prof->rows[id]->nframes != depth ||
		    memcmp(&prof->rows[id]->key, prof->scratch, key_bytes(depth)) != 0)
			continue;
		*row = id;
		return true;
	}
	return false;
}

static uint32_t key_hash(const struct prof *prof, size_t depth)
{
	return hash_bytes(prof->scratch, key_bytes(depth));
}

static int add_row(struct prof *prof, size_t depth, uint32_t hash, size_t *id)
{
	__free struct row *row = NULL;
	size_t keylen = key_bytes(depth);
	int err = array_grow(&prof->rows, prof->nrows, sizeof(*prof->rows));

	if (err)
		return err;
	row = malloc(sizeof(*row) + keylen);
	if (!row)
		return -ENOMEM;
	row->count = 0;
	row->nframes = depth;
	memcpy(&row->key, prof->scratch, keylen);
	err = hash_index_add(&prof->row_index, hash, (uint32_t)prof->nrows);
	if (err)
		return err;
	*id = prof->nrows;
	prof->rows[prof->nrows++] = TAKE_PTR(row);
	return 0;
}

/* The row of a state's stacks that there is no room for; it takes none of the bound. */
static int other_row(struct prof *prof, char vmstate, size_t *id)
{
	struct prof_labels labels = {.vmstate = vmstate};
	const char *none = NULL;
	uint32_t frame, hash;
	size_t depth;
	int err = other_frame(prof, &frame);

	if (!err)
		err = intern(prof, "", 0, true, &none);
	if (!err)
		err = row_key(prof, &frame, 1, &labels, &depth);
	if (err)
		return err;
	prof->scratch->comm = none;
	hash = key_hash(prof, depth);
	return find_row(prof, depth, hash, id) ? 0 : add_row(prof, depth, hash, id);
}

/* True if the key in prof->scratch is that of an other_row(). */
static bool is_other(const struct prof *prof, size_t depth)
{
	const struct row_key *key = prof->scratch;

	return depth == 1 && key->frames[0] == prof->other && !key->pid && !key->tid &&
	       !key->origin && !key->coroutine && !key->vm && !key->zone && !key->cause &&
	       !key->trace && !key->snapshot_line && (!key->comm || !*key->comm);
}

/* Sets the strings of the key in prof->scratch. -ENOENT: one is new, and `add` is false. */
static int intern_labels(struct prof *prof, const struct prof_labels *labels, bool add)
{
	const char *comm = labels->comm ? labels->comm : "";
	int err = intern(prof, comm, PROF_MAX_NAME, add, &prof->scratch->comm);

	return err ? err : intern(prof, labels->zone, PROF_MAX_NAME, add, &prof->scratch->zone);
}

int prof_row_id(struct prof *prof, const uint32_t *frames, size_t n,
		const struct prof_labels *labels, size_t *id)
{
	size_t depth, bytes;
	uint32_t hash = 0;
	bool known;
	int err = row_key(prof, frames, n, labels, &depth);

	if (err)
		return err;
	known = !intern_labels(prof, labels, false);
	if (known)
		hash = key_hash(prof, depth);
	if (known && find_row(prof, depth, hash, id))
		return 0;
	bytes = ROW_BYTES + depth * ID_BYTES + string_bytes(labels->comm, PROF_MAX_NAME, 1) +
		string_bytes(labels->zone, PROF_MAX_NAME, 1);
	if (bytes > prof->rows_left || is_other(prof, depth))
		return other_row(prof, labels->vmstate, id);
	err = intern_labels(prof, labels, true);
	if (err)
		return err;
	err = add_row(prof, depth, known ? hash : key_hash(prof, depth), id);
	if (!err)
		prof->rows_left -= bytes;
	return err;
}

void prof_count(struct prof *prof, size_t id, uint64_t count)
{
	struct row *row = prof->rows[id];
	uint64_t before = row->count;

	row->count = add_to(before, count, INT64_MAX);
	prof->samples = add_to(prof->samples, row->count - before, UINT64_MAX);
}

void prof_move(struct prof *prof, size_t from, size_t to, uint64_t count)
{
	struct row *row = prof->rows[from];

	if (count > row->count)
		count = row->count;
	row->count -= count;
	prof->samples -= count;
	prof_count(prof, to, count);
}

int prof_add(struct prof *prof, const uint32_t *frames, size_t n, const struct prof_labels *labels,
	     uint64_t count)
{
	size_t id;
	int err = count ? prof_row_id(prof, frames, n, labels, &id) : 0;

	if (count && !err)
		prof_count(prof, id, count);
	return err;
}

int prof_lose(struct prof *prof, const char *reason, uint64_t count)
{
	const char *name;
	int err = intern(prof, reason ? reason : "", PROF_MAX_NAME, true, &name);

	if (err)
		return err;
	for (size_t i = 0; i < prof->nlosses; i++) {
		if (prof->losses[i].reason == name) {
			prof->losses[i].count = add_to(prof->losses[i].count, count, UINT64_MAX);
			return 0;
		}
	}
	err = array_grow(&prof->losses, prof->nlosses, sizeof(*prof->losses));
	if (err)
		return err;
	prof->losses[prof->nlosses++] = (struct loss){.reason = name, .count = count};
	return 0;
}

struct prof_meta *prof_meta(struct prof *prof)
{
	return &prof->meta;
}

const struct prof_meta *prof_meta_of(const struct prof *prof)
{
	return &prof->meta;
}

uint64_t prof_samples(const struct prof *prof)
{
	return prof->samples;
}

uint64_t prof_other(const struct prof *prof)
{
	uint64_t n = 0;

	for (size_t i = 0; i < prof->nrows && prof->other != NO_ID; i++) {
		const struct row *row = prof->rows[i];
		size_t f = 0;

		while (f < row->nframes && row->key.frames[f] != prof->other)
			f++;
		if (f < row->nframes)
			n = add_to(n, row->count, UINT64_MAX);
	}
	return n;
}

size_t prof_nrows(const struct prof *prof)
{
	return prof->nrows;
}

void prof_row(const struct prof *prof, size_t i, struct prof_row *out)
{
	const struct row *row = prof->rows[i];

	out->frames = row->key.frames;
	out->nframes = row->nframes;
	out->labels.vmstate = (char)row->key.vmstate;
	out->labels.cause = row->key.cause;
	out->labels.trace = row->key.trace;
	out->labels.snapshot_line = row->key.snapshot_line;
	out->labels.pid = row->key.pid;
	out->labels.tid = row->key.tid;
	out->labels.comm = row->key.comm;
	out->labels.origin = row->key.origin;
	out->labels.coroutine = row->key.coroutine;
	out->labels.vm = row->key.vm;
	out->labels.zone = row->key.zone;
	out->count = row->count;
}

size_t prof_nframes(const struct prof *prof)
{
	return prof->nframes;
}

const struct prof_frame *prof_frame(const struct prof *prof, uint32_t id)
{
	return &prof->frames[id];
}

size_t prof_nstrings(const struct prof *prof)
{
	return prof->nstrings;
}

size_t prof_bytes(const struct prof *prof)
{
	return prof->limit - prof->frames_left - prof->rows_left;
}

size_t prof_norigins(const struct prof *prof)
{
	return prof->norigins;
}

const struct prof_origin *prof_origin(const struct prof *prof, uint32_t id)
{
	return &prof->origins[id];
}

size_t prof_nlosses(const struct prof *prof)
{
	return prof->nlosses;
}

void prof_loss(const struct prof *prof, size_t i, struct prof_loss *loss)
{
	loss->reason = prof->losses[i].reason;
	loss->count = prof->losses[i].count;
}

uint64_t prof_lost(const struct prof *prof, const char *reason)
{
	struct prof_loss loss;

	for (size_t i = 0; i < prof->nlosses; i++) {
		prof_loss(prof, i, &loss);
		if (!strcmp(loss.reason, reason))
			return loss.count;
	}
	return 0;
}
