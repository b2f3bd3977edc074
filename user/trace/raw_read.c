// SPDX-License-Identifier: BSD-2-Clause
/*
 * It keeps a stack of frames with what luatrace's profiler keeps: which are protected, and which were
 * tail-called. A record that does not fit the stack is counted and skipped.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "event.h"
#include "raw_read.h"
#include "costacks.h"

#define LINE_BYTES (1u << 18) /* of the file, at most */
#define FRAMES_MAX (4u << 20)
#define LINES_MAX (1u << 20) /* that can run, of a function */

struct read_frame {
	uint32_t function;
	int32_t line; /* -1: none yet */
	bool is_protected;
	bool goes_on; /* it was returned to: the next record of its line is the rest of it */
};

struct read_thread {
	UT_hash_handle hh;
	uint64_t id;	 /* of the file */
	uint32_t number; /* of the actions */
	bool on_chain;
	struct costack stack; /* of struct read_frame */
	struct read_thread *resumer;
};

struct read_place {
	UT_hash_handle hh;
	struct {
		uint32_t source;
		int32_t first, last;
	} key;
	uint64_t code; /* of the function that calls mean */
};

struct raw_reader {
	struct program *program;
	struct raw_counts *counts;
	struct read_place *places;
	raw_sink_fn sink_of;
	void *ctx;
	struct read_state *states, *state; /* state: of the next records */
	uint64_t code; /* of the next call; 0: that of the last one of the place */
};

/* A Lua state: its coroutines, and the time that its records have added up to. */
struct read_state {
	UT_hash_handle hh;
	int64_t number;
	struct trace_sink sink;
	struct read_thread *threads, *top;
	uint32_t *free_numbers; /* of ended coroutines; there is room for all */
	uint32_t nfree, nthreads;
	size_t nframes;
	uint64_t now;
	bool forked; /* the next call is its parent's */
};

#define BAD 1 /* a record that is skipped */

static struct read_frame *frames_of(const struct read_thread *t)
{
	return t->stack.frames;
}

static int put(struct read_state *s, enum trace_action_kind kind, uint32_t arg)
{
	const struct trace_action action = {.time_ns = s->now, .kind = kind, .arg = arg};

	return s->sink.put(s->sink.ctx, &action);
}

static void thread_free(struct read_state *s, struct read_thread *t)
{
	HASH_DEL(s->threads, t);
	s->free_numbers[s->nfree++] = t->number;
	s->nframes -= t->stack.n;
	free(t->stack.frames);
	free(t);
}

static void state_free(struct read_state *s)
{
	struct read_thread *t, *next;

	HASH_ITER (hh, s->threads, t, next)
		thread_free(s, t);
	free(s->free_numbers);
	free(s);
}

static struct read_frame *top_frame(const struct read_state *s)
{
	for (const struct read_thread *t = s->top; t; t = t->resumer)
		if (t->stack.n)
			return &frames_of(t)[t->stack.n - 1];
	return NULL;
}

/* After frames are gone: the next record is of the line that is on top now. */
static void go_on(struct read_state *s)
{
	struct read_frame *top = top_frame(s);

	if (top)
		top->goes_on = top->line >= 0;
}

static int resume(struct read_state *s, uint64_t id)
{
	struct read_thread *t;

	HASH_FIND(hh, s->threads, &id, sizeof(id), t);
	if (t && t->on_chain)
		return BAD;
	if (!t) {
		if (!s->nfree && s->nthreads == TRACE_THREADS)
			return BAD;
		if (!s->nfree &&
		    array_grow(&s->free_numbers, s->nthreads, sizeof(*s->free_numbers)))
			return -ENOMEM;
		t = calloc(1, sizeof(*t));
		if (!t)
			return -ENOMEM;
		t->id = id;
		HASH_ADD(hh, s->threads, id, sizeof(id), t);
		if (!t->hh.tbl) {
			free(t);
			return -ENOMEM;
		}
		t->number = s->nfree ? s->free_numbers[--s->nfree] : s->nthreads++;
	}
	t->resumer = s->top;
	t->on_chain = true;
	s->top = t;
	go_on(s);
	return put(s, TRACE_RESUME, t->number);
}

static int yield(struct read_state *s)
{
	struct read_thread *t = s->top;
	int ret;

	if (!t)
		return BAD;
	s->top = t->resumer;
	t->on_chain = false;
	if (!t->stack.n)
		thread_free(s, t);
	ret = put(s, TRACE_YIELD, 0);
	go_on(s);
	return ret;
}

/* The topmost coroutine that has frames; those above it have ended. */
static int end_empty(struct read_state *s)
{
	int ret = 0;

	while (!ret && s->top && !s->top->stack.n && s->top->resumer)
		ret = yield(s);
	return ret ? ret : s->top && s->top->stack.n ? 0 : BAD;
}

static int call(struct read_state *s, uint32_t function, bool is_tail)
{
	bool is_forked = s->forked;
	struct read_frame *frame;
	struct read_thread *t;
	int ret = s->top ? 0 : resume(s, 1); /* luatrace begins without a record for it */

	s->forked = false;
	if (ret)
		return ret;
	t = s->top;
	if (is_tail && t->stack.n) {
		frame = &frames_of(t)[t->stack.n - 1];
		*frame = (struct read_frame){function, -1, frame->is_protected, false};
		return put(s, TRACE_TAIL_CALL, function);
	}
	if (s->nframes == FRAMES_MAX)
		return BAD;
	frame = costack_push(&t->stack, sizeof(*frame));
	if (!frame)
		return -ENOMEM;
	*frame = (struct read_frame){function, -1, false, false};
	s->nframes++;
	return put(s, is_forked ? TRACE_FRAME : TRACE_CALL, function);
}

static int return_(struct read_state *s)
{
	struct read_frame *caller;
	int ret = end_empty(s);

	if (ret)
		return ret;
	s->top->stack.n--;
	s->nframes--;
	caller = top_frame(s);
	if (caller)
		caller->is_protected = false;
	go_on(s);
	return put(s, TRACE_RETURN, 0);
}

/* Frames end up to the one that a P preceded. */
static int unwind(struct read_state *s)
{
	int ret;

	do {
		struct read_thread *t;
		uint32_t n = 0;

		ret = end_empty(s);
		if (ret)
			return ret;
		t = s->top;
		do
			n++;
		while (n < t->stack.n && !frames_of(t)[t->stack.n - 1 - n].is_protected);
		t->stack.n -= n;
		s->nframes -= n;
		ret = put(s, TRACE_UNWIND, n);
	} while (!ret && top_frame(s) && !top_frame(s)->is_protected);
	if (!ret && top_frame(s))
		top_frame(s)->is_protected = false;
	go_on(s);
	return ret;
}

/* A coroutine that has no frames may have ended: the line is that of its resumer then. */
static int line(struct read_state *s, int32_t number, uint64_t ns)
{
	struct read_frame *top = top_frame(s);
	bool goes_on;
	int ret = 0;

	if (!top)
		return BAD;
	goes_on = top->goes_on && top->line == number;
	top->goes_on = false;
	top->line = number;
	if (!goes_on)
		ret = put(s, TRACE_LINE, number);
	s->now += ns;
	return ret;
}

static int protect(struct read_state *s)
{
	struct read_frame *top = top_frame(s);

	if (!top)
		return BAD;
	top->is_protected = true;
	top->goes_on = top->line >= 0;
	return 0;
}

/* ---- text ------------------------------------------------------------------------------------ */

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* In place; NULs are dropped. */
static void decode(char *s)
{
	char *to = s;

	while (*s) {
		if (*s == '%' && hex(s[1]) >= 0 && hex(s[2]) >= 0) {
			*to = hex(s[1]) << 4 | hex(s[2]);
			s += 3;
		} else {
			*to = *s++;
		}
		to += *to != '\0';
	}
	*to = '\0';
}

/* Finds or adds the source of a FILE, which is decoded in place. */
static int source_of(struct raw_reader *r, char *file, uint32_t *out)
{
	char kind = *file;
	char *name = NULL;
	int ret;

	decode(file);
	if (kind == '[')
		return program_source(r->program, file + 1, strlen(file + 1), out);
	if (kind == '=')
		return program_source(r->program, file, strlen(file), out);
	if (asprintf(&name, "@%s", file) < 0)
		return -ENOMEM;
	ret = program_source(r->program, name, strlen(name), out);
	free(name);
	return ret;
}

/* A decimal number and the character after it. */
static bool number(char **at, char after, int64_t max, int64_t *out)
{
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	errno = 0;
	*out = strtoll(*at, &end, 10);
	if (errno || *out > max || *end != after)
		return false;
	*at = end + (after != '\0');
	return true;
}

static int place_of(struct raw_reader *r, const struct program_function *f, struct read_place **out)
{
	struct read_place *p, key = {.key = {f->source, f->first, f->last}};

	HASH_FIND(hh, r->places, &key.key, sizeof(key.key), p);
	if (!p) {
		p = calloc(1, sizeof(*p));
		if (!p)
			return -ENOMEM;
		p->key = key.key;
		HASH_ADD(hh, r->places, key, sizeof(p->key), p);
		if (!p->hh.tbl) {
			free(p);
			return -ENOMEM;
		}
	}
	*out = p;
	return 0;
}

/* "FILE FIRST LAST" */
static int read_call(struct raw_reader *r, char *text, char letter)
{
	char *blank = strchr(text, ' '), *at = blank ? blank + 1 : text;
	struct program_function f = {};
	struct read_place *place;
	int64_t first, last;
	uint32_t id;
	int ret;

	if (!blank || blank == text || !number(&at, ' ', INT32_MAX, &first) ||
	    !number(&at, '\0', INT32_MAX, &last))
		return BAD;
	*blank = '\0';
	ret = source_of(r, text, &f.source);
	f.first = first;
	f.last = last;
	if (!ret)
		ret = place_of(r, &f, &place);
	if (ret)
		return ret == -ENOSPC ? BAD : ret;
	if (r->code)
		place->code = r->code;
	f.code = place->code;
	r->code = 0;
	ret = program_function(r->program, &f, &id);
	if (ret)
		return ret == -ENOSPC ? BAD : ret;
	return call(r->state, id, letter == 'T');
}

/* "1-3;7" or "?" */
static int read_lines(char *text, struct program_function *f)
{
	int64_t from, to;

	f->has_lines = strcmp(text, "?") != 0;
	for (char *end, *at = text; f->has_lines && *at; at = end) {
		end = at + strcspn(at, ";");
		if (*end)
			*end++ = '\0';
		if (!number(&at, '\0', INT32_MAX, &from)) {
			if (!number(&at, '-', INT32_MAX, &from) ||
			    !number(&at, '\0', INT32_MAX, &to))
				return BAD;
		} else {
			to = from;
		}
		if (to < from || to - from >= (int64_t)(LINES_MAX - f->nlines) ||
		    (f->nlines && from <= f->lines[f->nlines - 1]))
			return BAD;
		for (; from <= to; from++) {
			if (array_grow(&f->lines, f->nlines, sizeof(*f->lines)))
				return -ENOMEM;
			f->lines[f->nlines++] = from;
		}
	}
	return 0;
}

/* "FILE:FIRST-LAST,CODE,LINES,NAME" */
static int read_function(struct raw_reader *r, char *text)
{
	__free uint32_t *lines = NULL;
	struct program_function f = {};
	char *place, *part[3], *at = text;
	struct read_place *p;
	int64_t first, last;
	uint32_t id;
	int ret;

	for (int i = 0; i < 3; i++) {
		at = strchr(at, ',');
		if (!at)
			return BAD;
		*at++ = '\0';
		part[i] = at;
	}
	place = strrchr(text, ':');
	if (!place)
		return BAD;
	*place++ = '\0';
	if (!number(&place, '-', INT32_MAX, &first) || !number(&place, '\0', INT32_MAX, &last))
		return BAD;
	f.first = first;
	f.last = last;
	f.code = strtoull(part[0], NULL, 16);
	decode(part[2]);
	f.name = part[2];
	ret = read_lines(part[1], &f);
	lines = f.lines;
	if (!ret)
		ret = source_of(r, text, &f.source);
	if (!ret)
		ret = program_function(r->program, &f, &id);
	if (!ret)
		ret = place_of(r, &f, &p);
	if (!ret && !p->code)
		p->code = f.code;
	return ret == -ENOSPC ? BAD : ret;
}

/* "FILE,PATH[,SIZE,MTIME]" */
static int read_source(struct raw_reader *r, char *text)
{
	char *path = strchr(text, ','), *stamp;
	struct program_source *s;
	int64_t size, mtime;
	uint32_t id;
	int ret;

	if (!path)
		return BAD;
	*path++ = '\0';
	stamp = strchr(path, ',');
	if (stamp)
		*stamp++ = '\0';
	ret = source_of(r, text, &id);
	if (ret)
		return ret == -ENOSPC ? BAD : ret;
	s = &r->program->sources[id];
	decode(path);
	if (s->path)
		return 0;
	s->path = strdup(path);
	if (!s->path)
		return -ENOMEM;
	if (!stamp || !number(&stamp, ',', INT64_MAX, &size) ||
	    !number(&stamp, '\0', INT64_MAX, &mtime))
		return 0;
	s->has_stamp = true;
	s->size = size;
	s->mtime_ns = mtime;
	return 0;
}

/* "LINE MICROSECONDS", the latter perhaps with a fraction, or an exponent */
static int read_line(struct raw_reader *r, char *text)
{
	int64_t n;
	double us;
	char *end;

	if (!number(&text, ' ', INT32_MAX, &n))
		return BAD;
	us = strtod(text, &end);
	if (end == text || *end || !(us >= 0) || us > 1e15)
		return BAD;
	return line(r->state, n, us * 1000 + 0.5);
}

static int enter_state(struct raw_reader *r, int64_t number)
{
	struct read_state *s;
	int ret;

	HASH_FIND(hh, r->states, &number, sizeof(number), s);
	if (!s) {
		if (HASH_COUNT(r->states) == RAW_STATES_MAX)
			return BAD;
		s = calloc(1, sizeof(*s));
		if (!s)
			return -ENOMEM;
		s->number = number;
		ret = r->sink_of(r->ctx, &s->sink);
		if (!ret)
			HASH_ADD(hh, r->states, number, sizeof(number), s);
		if (ret || !s->hh.tbl) {
			free(s);
			return ret ? ret : -ENOMEM;
		}
	}
	r->state = s;
	return 0;
}

static int read_record(struct raw_reader *r, char *text)
{
	int64_t id;
	char *at = text + 2;

	r->counts->ended = !strcmp(text, "#end");
	r->counts->is_ours |= *text == '#';
	if (r->counts->ended)
		return 0;
	if (!strncmp(text, "#function ", 10))
		return read_function(r, text + 10);
	if (!strncmp(text, "#source ", 8))
		return read_source(r, text + 8);
	if (!strncmp(text, "#code ", 6)) {
		r->code = strtoull(text + 6, NULL, 16);
		return 0;
	}
	if (!strncmp(text, "#state ", 7)) {
		at = text + 7;
		return number(&at, '\0', INT64_MAX, &id) ? enter_state(r, id) : BAD;
	}
	if (!strcmp(text, "#forked")) {
		r->state->forked = true;
		return 0;
	}
	if (*text >= '0' && *text <= '9')
		return read_line(r, text);
	if (text[0] && text[1] == ' ') {
		if (strchr("S>T", text[0]))
			return read_call(r, at, text[0]);
		if (text[0] == 'R' && number(&at, '\0', INT64_MAX, &id))
			return resume(r->state, id);
		return BAD;
	}
	if (!text[0] || text[1])
		return BAD;
	switch (text[0]) {
	case '<':
		return return_(r->state);
	case 'Y':
		return yield(r->state);
	case 'P':
		return protect(r->state);
	case 'E':
		return unwind(r->state);
	}
	return BAD;
}

static void reader_free(struct raw_reader *r)
{
	struct read_place *p, *pnext;
	struct read_state *s, *snext;

	HASH_ITER (hh, r->states, s, snext) {
		HASH_DEL(r->states, s);
		state_free(s);
	}
	HASH_ITER (hh, r->places, p, pnext) {
		HASH_DEL(r->places, p);
		free(p);
	}
}

/* Functions that still run end with the time of the last records. */
static int end_states(struct raw_reader *r)
{
	int ret = 0;

	for (struct read_state *s = r->states; s && ret >= 0; s = s->hh.next)
		while (s->top && ret >= 0)
			ret = yield(s);
	return ret < 0 ? ret : 0;
}

/* As fgets(). *is_long: the line goes on behind it, whatever bytes it has. */
static bool read_text(FILE *from, char buf[LINE_BYTES], bool *is_long)
{
	buf[LINE_BYTES - 1] = '\n'; /* '\0' when all is filled */
	if (!fgets(buf, LINE_BYTES, from))
		return false;
	*is_long = !buf[LINE_BYTES - 1] && buf[LINE_BYTES - 2] != '\n';
	return true;
}

static int read_records(struct raw_reader *r, FILE *from)
{
	__free char *buf = malloc(LINE_BYTES);
	int ret = buf ? enter_state(r, 1) : -ENOMEM;
	bool is_long;

	while (ret >= 0 && read_text(from, buf, &is_long)) {
		size_t len = strlen(buf);

		if (len && buf[len - 1] == '\n')
			buf[len - 1] = '\0';
		ret = is_long ? -EBADMSG : read_record(r, buf);
		r->counts->records++;
		r->counts->bad += ret == BAD;
	}
	if (ret >= 0 && ferror(from))
		return -errno;
	return ret < 0 ? ret : end_states(r);
}

int raw_read(FILE *from, struct program *program, raw_sink_fn sink_of, void *ctx,
	     struct raw_counts *counts)
{
	__cleanup(reader_free) struct raw_reader r = {
		.program = program, .counts = counts, .sink_of = sink_of, .ctx = ctx};

	return read_records(&r, from);
}
