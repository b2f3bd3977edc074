// SPDX-License-Identifier: BSD-2-Clause
/*
 * The profile in memory. Three tables that only grow: strings, frames (strings by pointer, so that
 * a frame is compared as plain bytes) and rows (frames by id, so that a row is, too). Numbers
 * saturate.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "prof.h"

struct string {
	UT_hash_handle hh;
	char data[];
};

/* `frame` is also the key: it is built in zeroed memory, so its padding compares equal. */
struct frame {
	UT_hash_handle hh;
	struct prof_frame frame;
	uint32_t id;
};

struct row_key {
	const char *comm;
	uint32_t pid, tid;
	uint32_t vmstate;
	uint32_t frames[];
};

struct row {
	UT_hash_handle hh;
	uint64_t count;
	size_t id; /* its index in rows[] */
	size_t nframes;
	struct row_key key;
};

struct loss {
	const char *reason;
	uint64_t count;
};

struct prof {
	struct prof_meta meta;
	struct string *strings;
	struct frame *frame_hash;
	struct frame **frames;
	size_t nframes, frames_cap;
	struct row *row_hash;
	struct row **rows;
	size_t nrows, rows_cap;
	struct row_key *scratch; /* the key of the row that is looked up */
	size_t scratch_cap;	 /* in bytes */
	struct loss *losses;
	size_t nlosses, losses_cap;
	uint64_t samples;
};

static uint64_t add_to(uint64_t a, uint64_t b, uint64_t max)
{
	return b > max - a ? max : a + b;
}

/* Makes room for one more element of `size` bytes. */
static int grow(void *array, size_t n, size_t *cap, size_t size)
{
	size_t more = *cap ? *cap * 2 : 64;
	void **slot = array;
	void *p;

	if (n < *cap)
		return 0;
	p = reallocarray(*slot, more, size);
	if (!p)
		return -ENOMEM;
	*slot = p;
	*cap = more;
	return 0;
}

int prof_new(struct prof **out)
{
	struct prof *prof = calloc(1, sizeof(*prof));

	if (!prof)
		return -ENOMEM;
	*out = prof;
	return 0;
}

void prof_free(struct prof **pp)
{
	struct prof *prof = *pp;
	struct string *s, *snext;

	if (!prof)
		return;
	HASH_CLEAR(hh, prof->frame_hash);
	for (size_t i = 0; i < prof->nframes; i++)
		free(prof->frames[i]);
	HASH_CLEAR(hh, prof->row_hash);
	for (size_t i = 0; i < prof->nrows; i++)
		free(prof->rows[i]);
	HASH_ITER (hh, prof->strings, s, snext) {
		HASH_DEL(prof->strings, s);
		free(s);
	}
	free(prof->frames);
	free(prof->rows);
	free(prof->scratch);
	free(prof->losses);
	free(prof);
	*pp = NULL;
}

/* *out is NULL for NULL. */
static int intern(struct prof *prof, const char *str, const char **out)
{
	struct string *s;
	size_t len;

	if (!str) {
		*out = NULL;
		return 0;
	}
	len = strlen(str);
	HASH_FIND(hh, prof->strings, str, len, s);
	if (!s) {
		s = calloc(1, sizeof(*s) + len + 1);
		if (!s)
			return -ENOMEM;
		memcpy(s->data, str, len);
		HASH_ADD(hh, prof->strings, data, len, s);
		if (!s->hh.tbl) {
			free(s);
			return -ENOMEM;
		}
	}
	*out = s->data;
	return 0;
}

static int intern_frame(struct prof *prof, const struct prof_frame *from, struct prof_frame *to)
{
	int err;

	memset(to, 0, sizeof(*to));
	to->kind = from->kind;
	to->addr = from->addr;
	to->firstline = from->firstline;
	to->line = from->line;
	err = intern(prof, from->callname, &to->callname);
	if (!err)
		err = intern(prof, from->defname, &to->defname);
	if (!err)
		err = intern(prof, from->chunk, &to->chunk);
	if (!err)
		err = intern(prof, from->symbol, &to->symbol);
	return err;
}

int prof_frame_id(struct prof *prof, const struct prof_frame *frame, uint32_t *id)
{
	__free struct frame *f = NULL;
	struct frame *found;
	struct prof_frame key;
	int err;

	err = intern_frame(prof, frame, &key);
	if (err)
		return err;
	HASH_FIND(hh, prof->frame_hash, &key, sizeof(key), found);
	if (found) {
		*id = found->id;
		return 0;
	}
	if (prof->nframes >= UINT32_MAX)
		return -EOVERFLOW;
	err = grow(&prof->frames, prof->nframes, &prof->frames_cap, sizeof(*prof->frames));
	if (err)
		return err;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	memcpy(&f->frame, &key, sizeof(key));
	f->id = prof->nframes;
	HASH_ADD(hh, prof->frame_hash, frame, sizeof(key), f);
	if (!f->hh.tbl)
		return -ENOMEM;
	*id = f->id;
	prof->frames[prof->nframes++] = TAKE_PTR(f);
	return 0;
}

/* Builds the key in prof->scratch. */
static int row_key(struct prof *prof, const uint32_t *frames, size_t n,
		   const struct prof_labels *labels, size_t *len)
{
	size_t need;
	struct row_key *key;
	int err;

	if (n > SIZE_MAX / sizeof(*frames) / 2)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (frames[i] >= prof->nframes)
			return -EINVAL;
	}
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
	err = intern(prof, labels->comm ? labels->comm : "", &key->comm);
	if (err)
		return err;
	key->pid = labels->pid;
	key->tid = labels->tid;
	key->vmstate = (unsigned char)labels->vmstate;
	if (n)
		memcpy(key->frames, frames, n * sizeof(*frames));
	*len = offsetof(struct row_key, frames) + n * sizeof(*frames);
	return 0;
}

static int add_row(struct prof *prof, size_t n, size_t keylen, struct row **out)
{
	__free struct row *row = NULL;
	int err = grow(&prof->rows, prof->nrows, &prof->rows_cap, sizeof(*prof->rows));

	if (err)
		return err;
	row = calloc(1, sizeof(*row) + keylen);
	if (!row)
		return -ENOMEM;
	row->nframes = n;
	memcpy(&row->key, prof->scratch, keylen);
	HASH_ADD(hh, prof->row_hash, key, keylen, row);
	if (!row->hh.tbl)
		return -ENOMEM;
	row->id = prof->nrows;
	*out = row;
	prof->rows[prof->nrows++] = TAKE_PTR(row);
	return 0;
}

int prof_row_id(struct prof *prof, const uint32_t *frames, size_t n,
		const struct prof_labels *labels, size_t *id)
{
	struct row *row;
	size_t keylen;
	int err = row_key(prof, frames, n, labels, &keylen);

	if (err)
		return err;
	HASH_FIND(hh, prof->row_hash, prof->scratch, keylen, row);
	if (!row)
		err = add_row(prof, n, keylen, &row);
	if (!err)
		*id = row->id;
	return err;
}

void prof_count(struct prof *prof, size_t id, uint64_t count)
{
	struct row *row = prof->rows[id];
	uint64_t before = row->count;

	row->count = add_to(before, count, INT64_MAX);
	prof->samples = add_to(prof->samples, row->count - before, UINT64_MAX);
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
	int err = intern(prof, reason ? reason : "", &name);

	if (err)
		return err;
	for (size_t i = 0; i < prof->nlosses; i++) {
		if (prof->losses[i].reason == name) {
			prof->losses[i].count = add_to(prof->losses[i].count, count, UINT64_MAX);
			return 0;
		}
	}
	err = grow(&prof->losses, prof->nlosses, &prof->losses_cap, sizeof(*prof->losses));
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
	out->labels.pid = row->key.pid;
	out->labels.tid = row->key.tid;
	out->labels.comm = row->key.comm;
	out->count = row->count;
}

size_t prof_nframes(const struct prof *prof)
{
	return prof->nframes;
}

const struct prof_frame *prof_frame(const struct prof *prof, uint32_t id)
{
	return &prof->frames[id]->frame;
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
