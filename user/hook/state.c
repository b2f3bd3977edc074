// SPDX-License-Identifier: BSD-2-Clause
/*
 * A file's header says how many functions, bytes and events there are; each number is checked against
 * the file's fixed areas, and may only grow. The module writes a record before the number that
 * includes it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "state.h"

#define CHUNK 4096 /* events that are read at once */

/* False: the file ends before, or cannot be read. */
static bool read_at(int fd, void *to, size_t len, uint64_t at)
{
	char *p = to;

	while (len) {
		ssize_t n = pread(fd, p, len, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		len -= n;
		at += n;
	}
	return true;
}

/* Bytes of memory that the new functions and texts take. */
static uint64_t growth(const struct hook_state *st, const struct hook_header *h)
{
	return (uint64_t)(h->nfuncs - st->nfuncs) * sizeof(*st->funcs) + (h->nbytes - st->nbytes);
}

static bool is_sound(const struct hook_state *st, const struct hook_header *h, uint64_t budget)
{
	return h->magic == HOOK_MAGIC && (h->mode == HOOK_COUNT || h->mode == HOOK_TRACE) &&
	       h->nfuncs <= HOOK_FUNCS_MAX && h->nfuncs >= st->nfuncs &&
	       h->nbytes <= HOOK_BYTES_MAX && h->nbytes >= st->nbytes && growth(st, h) <= budget &&
	       h->head - st->tail <= HOOK_EVENTS;
}

/* Counts and names of known functions change, too: all records are read. */
static int read_functions(struct hook_state *st, int fd, uint64_t *budget)
{
	uint32_t nfuncs = st->header.nfuncs, nbytes = st->header.nbytes;
	void *grown;

	grown = reallocarray(st->funcs, nfuncs + 1, sizeof(*st->funcs));
	if (!grown)
		return -ENOMEM;
	st->funcs = grown;
	grown = realloc(st->bytes, nbytes + 1);
	if (!grown)
		return -ENOMEM;
	st->bytes = grown;
	if (!read_at(fd, st->bytes + st->nbytes, nbytes - st->nbytes, HOOK_BYTES_AT + st->nbytes) ||
	    !read_at(fd, st->funcs, nfuncs * sizeof(*st->funcs), HOOK_FUNCS_AT)) {
		st->broken = true;
		return 0;
	}
	*budget -= growth(st, &st->header);
	st->nfuncs = nfuncs;
	st->nbytes = nbytes;
	return 0;
}

static int read_events(struct hook_state *st, int fd, hook_events_fn fn, void *arg)
{
	struct hook_event *events __free = malloc(CHUNK * sizeof(*events));
	int ret = 0;

	if (!events)
		return -ENOMEM;
	while (!ret && st->tail < st->header.head) {
		size_t from = st->tail % HOOK_EVENTS, n = st->header.head - st->tail;

		n = n > CHUNK ? CHUNK : n;
		n = n > HOOK_EVENTS - from ? HOOK_EVENTS - from : n;
		if (!read_at(fd, events, n * sizeof(*events),
			     HOOK_EVENTS_AT + from * sizeof(*events))) {
			st->broken = true;
			break;
		}
		st->tail += n;
		if (pwrite(fd, &st->tail, sizeof(st->tail), offsetof(struct hook_header, tail)) !=
		    sizeof(st->tail))
			st->broken = true;
		ret = fn(arg, st, events, n);
	}
	return ret;
}

int hook_state_read(struct hook_state *st, int fd, hook_events_fn fn, void *arg, uint64_t *budget)
{
	struct hook_header header = {}; /* a file that has just been made is empty */
	uint64_t head;
	int ret = 0;

	/* First: the functions of these events are in the number of functions that is read then. */
	if (!read_at(fd, &head, sizeof(head), offsetof(struct hook_header, head)) ||
	    !read_at(fd, &header, sizeof(header), 0) || !is_sound(st, &header, *budget)) {
		/* A header without magic is being made. */
		st->broken = st->broken || header.magic;
		return 0;
	}
	st->header = header;
	st->header.head = head < header.head ? head : header.head;
	if (header.nfuncs > st->nfuncs || header.mode == HOOK_COUNT || !fn)
		ret = read_functions(st, fd, budget);
	if (!ret && fn && header.mode == HOOK_TRACE && !st->broken)
		ret = read_events(st, fd, fn, arg);
	return ret;
}

void hook_state_free(struct hook_state *st)
{
	free(st->funcs);
	free(st->bytes);
	free(st);
}

const struct hook_header *hook_state_header(const struct hook_state *st)
{
	return &st->header;
}

int hook_state_broken(const struct hook_state *st)
{
	return st->broken;
}

uint32_t hook_state_nfuncs(const struct hook_state *st)
{
	return st->nfuncs;
}

const struct hook_func *hook_state_func(const struct hook_state *st, uint32_t id)
{
	return id < st->nfuncs ? &st->funcs[id] : NULL;
}

const char *hook_state_bytes(const struct hook_state *st, struct hook_bytes bytes, size_t *len)
{
	if (bytes.at > st->nbytes || bytes.len > st->nbytes - bytes.at) {
		*len = 0;
		return "";
	}
	*len = bytes.len;
	return st->bytes + bytes.at;
}

void hook_state_set_data(struct hook_state *st, void *data)
{
	st->data = data;
}

void *hook_state_data(const struct hook_state *st)
{
	return st->data;
}
