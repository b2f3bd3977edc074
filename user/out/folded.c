// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/hash_index.h"
#include "base/text.h"
#include "folded.h"
#include "frame_names.h"
#include "prof/name.h"
#include "tally.h"

/* A stack by the numbers of its names, root first: its text is made when it is written. */
struct line {
	uint64_t count;
	size_t depth;
	uint32_t names[];
};

/*
 * A profile of a few bytes can name long strings in each frame of many stacks. So the text is
 * bounded: further stacks count for NAME_OTHER.
 */
#define MAX_TEXT (1UL << 30)

struct fold {
	const struct prof *prof;
	struct frame_names names;
	const struct frame_name *other, *cut;
	size_t depth; /* frames of a stack, at most */
	struct line **lines;
	size_t n;
	struct hash_index index;
	uint32_t *stack; /* of the current row */
	size_t stack_cap;
	size_t bytes; /* of its text */
	size_t text;  /* bytes of all lines */
};

static void fold_free(struct fold *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->lines[i]);
	free(f->lines);
	hash_index_free(&f->index);
	free(f->stack);
	frame_names_free(&f->names);
}

static int grow_stack(struct fold *f, size_t n)
{
	uint32_t *stack;

	if (n <= f->stack_cap)
		return 0;
	stack = reallocarray(f->stack, n, sizeof(*stack));
	if (!stack)
		return -ENOMEM;
	f->stack = stack;
	f->stack_cap = n;
	return 0;
}

/* Sets f->stack, its depth, and the bytes of its text. */
static int name_row(struct fold *f, const struct prof_row *row, size_t *depth)
{
	bool cut = row->nframes > f->depth;
	size_t n = 0;
	int err = grow_stack(f, row->nframes + 1);

	if (err)
		return err;
	f->bytes = 0;
	if (cut)
		f->stack[n++] = f->cut->number;
	for (size_t i = cut ? f->depth : row->nframes; i > 0; i--) {
		const struct frame_number *name;

		if (f->bytes > TALLY_MAX_KEY) {
			f->stack[n++] = f->other->number;
			f->bytes += f->other->len + 1;
			break;
		}
		name = frame_names_number(&f->names, row->frames[i - 1]);
		if (!name)
			return -ENOMEM;
		f->stack[n++] = name->number - 1;
		f->bytes += name->len + 1;
	}
	*depth = n;
	return 0;
}

static struct line *find_line(const struct fold *f, size_t depth, uint32_t hash)
{
	size_t at = hash;
	uint32_t id;

	while (hash_index_next(&f->index, hash, &at, &id)) {
		struct line *line = f->lines[id];

		if (line->depth == depth &&
		    !memcmp(line->names, f->stack, depth * sizeof(*f->stack)))
			return line;
	}
	return NULL;
}

static int add_line(struct fold *f, size_t depth, uint32_t hash, struct line **out)
{
	size_t len = depth * sizeof(*f->stack);
	struct line *line;

	if (array_grow(&f->lines, f->n, sizeof(*f->lines)))
		return -ENOMEM;
	line = malloc(sizeof(*line) + len);
	if (!line || hash_index_add(&f->index, hash, (uint32_t)f->n)) {
		free(line);
		return -ENOMEM;
	}
	line->count = 0;
	line->depth = depth;
	memcpy(line->names, f->stack, len);
	f->lines[f->n++] = line;
	f->text += f->bytes;
	*out = line;
	return 0;
}

/* Adds to the line of f->stack. -E2BIG: it is new, and there is no room for its text. */
static int count_line(struct fold *f, size_t depth, uint64_t count)
{
	uint32_t hash = hash_bytes(f->stack, depth * sizeof(*f->stack));
	struct line *line = find_line(f, depth, hash);
	int err = 0;

	if (!line && f->text + f->bytes > MAX_TEXT && depth > 1)
		return -E2BIG;
	if (!line)
		err = add_line(f, depth, hash, &line);
	if (!err && __builtin_add_overflow(line->count, count, &line->count))
		line->count = UINT64_MAX;
	return err;
}

static int fold_rows(struct fold *f)
{
	int err = 0;

	for (size_t i = 0; i < prof_nrows(f->prof) && !err; i++) {
		struct prof_row row;
		size_t depth;

		prof_row(f->prof, i, &row);
		err = name_row(f, &row, &depth);
		if (!err)
			err = count_line(f, depth, row.count);
		if (err == -E2BIG) {
			f->stack[0] = f->other->number;
			err = count_line(f, 1, row.count);
		}
	}
	return err;
}

static void put_line(const struct fold *f, const struct line *line, struct text *text)
{
	text_clear(text);
	for (size_t i = 0; i < line->depth; i++) {
		const struct frame_name *name = f->names.all[line->names[i]];

		if (i)
			text_putc(text, ';');
		text_put(text, name->text, name->len);
	}
	if (!line->depth)
		text_puts(text, FOLDED_NO_FRAME);
	text_printf(text, " %" PRIu64 "\n", line->count);
}

static int write_lines(const struct fold *f, int min, FILE *out)
{
	__free struct ranked *lines = calloc(f->n + 1, sizeof(*lines));
	uint64_t samples = prof_samples(f->prof);
	__text struct text text = {0};

	if (!lines)
		return -ENOMEM;
	for (size_t i = 0; i < f->n; i++)
		lines[i] = (struct ranked){
			.count = f->lines[i]->count, .order = i, .line = f->lines[i]};
	tally_rank(lines, f->n);
	errno = 0;
	for (size_t i = 0; i < f->n && !text_err(&text); i++) {
		if (min && tally_percent(lines[i].count, samples) < min)
			break;
		put_line(f, lines[i].line, &text);
		fwrite(text_str(&text), 1, text.len, out);
	}
	if (text_err(&text))
		return text_err(&text);
	if (fflush(out))
		return -errno;
	return ferror(out) ? -EIO : 0;
}

int folded_render(const struct prof *prof, const struct folded_names *how, FILE *out)
{
	struct functions *functions __cleanup(functions_free) = NULL;
	__cleanup(fold_free) struct fold f = {.prof = prof, .depth = how->depth};
	int err = functions_new(prof, &functions);

	if (err)
		return err;
	f.names = (struct frame_names){.prof = prof,
				       .functions = functions,
				       .what = how->what,
				       .flags = how->flags,
				       .folded = true};
	f.other = frame_names_add(&f.names, NAME_OTHER, strlen(NAME_OTHER));
	f.cut = frame_names_add(&f.names, NAME_CUT, strlen(NAME_CUT));
	err = f.other && f.cut ? fold_rows(&f) : -ENOMEM;
	return err ? err : write_lines(&f, how->min, out);
}

int folded_write(const struct prof *prof, FILE *out)
{
	const struct folded_names unique = {.what = FRAME_UNIQUE, .depth = SIZE_MAX};

	return folded_render(prof, &unique, out);
}
