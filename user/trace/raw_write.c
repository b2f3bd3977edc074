// SPDX-License-Identifier: BSD-2-Clause
/*
 * It keeps the stack that a reader of the file has: of Lua functions only. An error is an E if that
 * reader would find the frame where the error ended, else as many returns.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "event.h"
#include "raw_write.h"
#include "costacks.h"

struct written_frame {
	uint32_t function;
	int32_t line; /* -1: none yet */
	bool is_lua;
	bool is_protected; /* as a reader has it: a P was written, and no return since */
};

/* Functions of one place: calls do not distinguish them. */
struct written_place {
	UT_hash_handle hh;
	struct {
		uint32_t source;
		int32_t first, last;
	} key;
	uint32_t function; /* the one that calls mean */
};

struct raw_file {
	FILE *to;
	const struct program *program;
	struct written_place *places;
	uint8_t *known; /* by function: it was written; 2: with its name */
	size_t nknown;
	uint8_t *source_known;
	size_t nsources_known;
	uint32_t nwriters, current; /* from 1 */
};

struct raw_writer {
	struct raw_file *file;
	uint32_t number;
	struct costacks stacks; /* of struct written_frame: all frames, C functions' too */
	uint64_t now, since;	/* since: the time up to there is written */
	bool open;		/* the current line has to be written, even with no time */
};

int raw_file_new(FILE *to, const struct program *program, struct raw_file **out)
{
	struct raw_file *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->to = to;
	f->program = program;
	f->current = 1;
	*out = f;
	return 0;
}

void raw_file_free(struct raw_file **file)
{
	struct raw_file *f = *file;
	struct written_place *p, *next;

	if (!f)
		return;
	HASH_ITER (hh, f->places, p, next) {
		HASH_DEL(f->places, p);
		free(p);
	}
	free(f->known);
	free(f->source_known);
	free(f);
	*file = NULL;
}

int raw_writer_new(struct raw_file *file, struct raw_writer **out)
{
	struct raw_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->stacks.frame_size = sizeof(struct written_frame);
	w->file = file;
	w->number = ++file->nwriters;
	*out = w;
	return 0;
}

void raw_writer_free(struct raw_writer **writer)
{
	if (!*writer)
		return;
	costacks_free(&(*writer)->stacks);
	free(*writer);
	*writer = NULL;
}

static void put_encoded(FILE *to, const char *s)
{
	for (; *s; s++) {
		bool plain = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
			     (*s >= '0' && *s <= '9') || strchr("./_-:[]", *s);

		if (plain)
			putc_unlocked(*s, to);
		else
			fprintf(to, "%%%02X", (unsigned char)*s);
	}
}

static void put_file(const struct raw_file *file, uint32_t source)
{
	const char *name = file->program->sources[source].name;

	if (*name == '@') {
		name++;
		if (*name == '[' || *name == '=')
			fprintf(file->to, "%%%02X", (unsigned char)*name++);
		else if (!*name) /* a field is not empty */
			fputs("%00", file->to);
	} else if (*name == '=') {
		putc_unlocked(*name++, file->to);
	} else {
		putc_unlocked('[', file->to);
	}
	put_encoded(file->to, name);
}

/* Sets a flag of an array that grows. Returns its former value, or -ENOMEM. */
static int test_and_set(uint8_t **flags, size_t *n, size_t at)
{
	if (at >= *n) {
		size_t more = at + 1 + *n;
		uint8_t *grown = realloc(*flags, more);

		if (!grown)
			return -ENOMEM;
		memset(grown + *n, 0, more - *n);
		*flags = grown;
		*n = more;
	}
	if ((*flags)[at])
		return 1;
	(*flags)[at] = 1;
	return 0;
}

static int put_source(struct raw_file *file, uint32_t source)
{
	const struct program_source *s = &file->program->sources[source];
	int known;

	if (!s->path)
		return 0;
	known = test_and_set(&file->source_known, &file->nsources_known, source);
	if (known)
		return known < 0 ? known : 0;
	fputs("#source ", file->to);
	put_file(file, source);
	putc_unlocked(',', file->to);
	put_encoded(file->to, s->path);
	if (s->has_stamp)
		fprintf(file->to, ",%" PRIu64 ",%" PRId64, s->size, s->mtime_ns);
	putc_unlocked('\n', file->to);
	return 0;
}

#define RANGES_MAX 9000 /* that fit into a record that raw_read.c takes */

static size_t count_ranges(const struct program_function *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->nlines; i++)
		n += !i || f->lines[i] != f->lines[i - 1] + 1;
	return n;
}

static void put_lines(FILE *to, const struct program_function *f)
{
	size_t end;

	if (!f->has_lines || count_ranges(f) > RANGES_MAX) {
		putc_unlocked('?', to);
		return;
	}
	for (size_t i = 0; i < f->nlines; i = end) {
		for (end = i + 1; end < f->nlines && f->lines[end] == f->lines[end - 1] + 1;)
			end++;
		fprintf(to, "%s%" PRIu32, i ? ";" : "", f->lines[i]);
		if (end > i + 1)
			fprintf(to, "-%" PRIu32, f->lines[end - 1]);
	}
}

static int put_function(struct raw_file *file, uint32_t id)
{
	const struct program_function *f = &file->program->functions[id];
	int ret = put_source(file, f->source);

	if (ret)
		return ret;
	fputs("#function ", file->to);
	put_file(file, f->source);
	fprintf(file->to, ":%" PRId32 "-%" PRId32 ",%" PRIx64 ",", f->first, f->last, f->code);
	put_lines(file->to, f);
	putc_unlocked(',', file->to);
	put_encoded(file->to, f->name);
	putc_unlocked('\n', file->to);
	if (*f->name)
		file->known[id] = 2;
	return 0;
}

/* Writes which of the functions of its place the next call means, if it is not the last one. */
static int put_code(struct raw_file *file, uint32_t id)
{
	const struct program_function *f = &file->program->functions[id];
	struct written_place *p, key = {.key = {f->source, f->first, f->last}};

	HASH_FIND(hh, file->places, &key.key, sizeof(key.key), p);
	if (p && p->function == id)
		return 0;
	if (p) {
		fprintf(file->to, "#code %" PRIx64 "\n", f->code);
		p->function = id;
		return 0;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->key = key.key;
	p->function = id;
	HASH_ADD(hh, file->places, key, sizeof(p->key), p);
	if (p->hh.tbl)
		return 0;
	free(p);
	return -ENOMEM;
}

static int put_call(struct raw_file *file, char letter, uint32_t id)
{
	const struct program_function *f = &file->program->functions[id];
	int ret = test_and_set(&file->known, &file->nknown, id);

	if (!ret)
		ret = put_function(file, id);
	if (ret >= 0)
		ret = put_code(file, id);
	if (ret < 0)
		return ret;
	putc_unlocked(letter, file->to);
	putc_unlocked(' ', file->to);
	put_file(file, f->source);
	fprintf(file->to, " %" PRId32 " %" PRId32 "\n", f->first, f->last);
	return 0;
}

/* The topmost Lua frame below the `skip` topmost frames; NULL: there is none. */
static struct written_frame *lua_frame(const struct raw_writer *w, size_t skip)
{
	struct written_frame *frame;

	do
		frame = costacks_frame(&w->stacks, skip++);
	while (frame && !frame->is_lua);
	return frame;
}

static char *put_number(char *end, uint64_t n)
{
	do
		*--end = '0' + n % 10;
	while (n /= 10);
	return end;
}

/* Writes the time since the last such record: millions of them, so without printf(). */
static void put_line(struct raw_writer *w)
{
	const struct written_frame *top = lua_frame(w, 0);
	uint64_t ns = w->now - w->since;
	char buf[64], *end = buf + sizeof(buf), *at = end;

	if (!top) /* a host's time, of no function */
		w->since = w->now;
	if (!top || top->line < 0 || (!w->open && !ns))
		return;
	*--at = '\n';
	if (ns % 1000) {
		for (unsigned i = 0, frac = ns % 1000; i < 3; i++, frac /= 10)
			*--at = '0' + frac % 10;
		*--at = '.';
	}
	at = put_number(at, ns / 1000);
	*--at = ' ';
	at = put_number(at, top->line);
	fwrite_unlocked(at, 1, end - at, w->file->to);
	w->since = w->now;
	w->open = false;
}

static void put_letter(struct raw_writer *w, char letter)
{
	putc_unlocked(letter, w->file->to);
	putc_unlocked('\n', w->file->to);
}

static bool is_lua(const struct raw_writer *w, uint32_t id)
{
	return id < w->file->program->nfunctions &&
	       w->file->program->functions[id].role == TRACE_ROLE_LUA;
}

static int push(struct raw_writer *w, uint32_t id)
{
	struct written_frame *frame = costack_push(costacks_current(&w->stacks), sizeof(*frame));

	if (!frame)
		return -ENOMEM;
	*frame = (struct written_frame){.function = id, .line = -1, .is_lua = is_lua(w, id)};
	return 0;
}

static bool is_protecting(const struct raw_writer *w, uint32_t id)
{
	return id < w->file->program->nfunctions &&
	       w->file->program->functions[id].role == TRACE_ROLE_PROTECT;
}

static int on_call(struct raw_writer *w, uint32_t id, bool is_forked)
{
	struct written_frame *caller = lua_frame(w, 0);
	int ret = 0;

	if (is_lua(w, id)) {
		put_line(w);
		if (is_forked)
			fputs("#forked\n", w->file->to);
		ret = put_call(w->file, '>', id);
	} else if (caller && is_protecting(w, id)) {
		put_line(w);
		put_letter(w, 'P');
		caller->is_protected = true;
		w->open = true;
	}
	return ret ? ret : push(w, id);
}

/* A return, as a reader does it. */
static void return_to(struct raw_writer *w, size_t skip)
{
	struct written_frame *caller = lua_frame(w, skip);

	put_letter(w, '<');
	if (caller)
		caller->is_protected = false;
}

static void on_return(struct raw_writer *w)
{
	const struct written_frame *top = costacks_frame(&w->stacks, 0);

	if (top->is_lua) {
		put_line(w);
		return_to(w, 1);
		w->open = true;
	}
	costacks_current(&w->stacks)->n--;
}

/* The frame changes its function: the reader keeps the old one below, and its P. */
static int on_tail_call(struct raw_writer *w, uint32_t id)
{
	struct written_frame *top = costacks_frame(&w->stacks, 0);
	bool was_protected = top->is_protected;
	int ret;

	if (!top->is_lua || !is_lua(w, id)) {
		on_return(w);
		return on_call(w, id, false);
	}
	put_line(w);
	ret = put_call(w->file, 'T', id);
	*top = (struct written_frame){
		.function = id, .line = -1, .is_lua = true, .is_protected = was_protected};
	return ret;
}

static size_t count_lua(const struct written_frame *frames, size_t n)
{
	size_t lua = 0;

	while (n--)
		lua += frames[n].is_lua;
	return lua;
}

/*
 * True if an E removes just these frames: a reader removes the topmost one, then those that are not
 * protected.
 */
static bool is_error(const struct raw_writer *w, const struct written_frame *frames, size_t n)
{
	const struct written_frame *stop = lua_frame(w, n);
	size_t lua = count_lua(frames, n);

	for (; n && lua > 1; n--, frames++) {
		if (frames->is_lua && frames->is_protected)
			return false;
		lua -= frames->is_lua;
	}
	return stop && stop->is_protected;
}

static void on_unwind(struct raw_writer *w, size_t n)
{
	struct costack *t = costacks_current(&w->stacks);
	const struct written_frame *frames = (struct written_frame *)t->frames + t->n - n;
	struct written_frame *stop = lua_frame(w, n);

	if (!count_lua(frames, n)) {
		t->n -= n;
		return;
	}
	put_line(w);
	if (is_error(w, frames, n)) {
		put_letter(w, 'E');
		stop->is_protected = false;
		t->n -= n;
		n = 0;
	}
	for (; n; n--) {
		if (((struct written_frame *)t->frames)[t->n - 1].is_lua)
			return_to(w, 1);
		t->n--;
	}
	w->open = true;
}

static int on_resume(struct raw_writer *w, uint32_t number)
{
	int ret;

	put_line(w);
	fprintf(w->file->to, "R %" PRIu32 "\n", number + 1);
	ret = costacks_resume(&w->stacks, number);
	w->open = !ret && costacks_current(&w->stacks)->n;
	return ret;
}

static void on_yield(struct raw_writer *w)
{
	put_line(w);
	put_letter(w, 'Y');
	costacks_yield(&w->stacks);
	w->open = true;
}

static void on_line(struct raw_writer *w, int32_t line)
{
	struct written_frame *top = costacks_frame(&w->stacks, 0);

	if (!top->is_lua)
		return;
	if (top->line >= 0)
		put_line(w);
	top->line = line;
	w->open = true;
}

/* Several states share the file. */
static void begin(struct raw_writer *w)
{
	if (w->file->current == w->number)
		return;
	fprintf(w->file->to, "#state %" PRIu32 "\n", w->number);
	w->file->current = w->number;
}

int raw_writer_put(void *writer, const struct trace_action *action)
{
	struct raw_writer *w = writer;

	begin(w);
	if (!w->stacks.nchain)
		w->since = action->time_ns;
	w->now = action->time_ns;
	switch (action->kind) {
	case TRACE_CALL:
	case TRACE_FRAME:
		return on_call(w, action->arg, action->kind == TRACE_FRAME);
	case TRACE_TAIL_CALL:
		return on_tail_call(w, action->arg);
	case TRACE_RETURN:
		on_return(w);
		return 0;
	case TRACE_UNWIND:
		on_unwind(w, action->arg);
		return 0;
	case TRACE_LINE:
		on_line(w, action->arg);
		return 0;
	case TRACE_RESUME:
		return on_resume(w, action->arg);
	case TRACE_YIELD:
		on_yield(w);
		return 0;
	}
	return 0;
}

void raw_writer_finish(struct raw_writer *w)
{
	begin(w);
	put_line(w);
}

int raw_file_finish(struct raw_file *file)
{
	for (size_t id = 0; id < file->program->nfunctions; id++) {
		const struct program_function *f = &file->program->functions[id];
		int known = test_and_set(&file->known, &file->nknown, id);

		if (known < 0)
			return known;
		if (f->role != TRACE_ROLE_LUA || (known && (file->known[id] == 2 || !*f->name)))
			continue;
		known = put_function(file, id);
		if (known < 0)
			return known;
	}
	fputs("#end\n", file->to);
	return 0;
}
