// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "folded.h"
#include "frame_names.h"
#include "prof/name.h"
#include "tally.h"

/* A stack by the numbers of its names, root first: its text is made when it is written. */
struct line {
	UT_hash_handle hh;
	uint64_t count;
	size_t depth;
	uint32_t names[];
};

/*
 * A profile of a few bytes can name long strings in each frame of many stacks. So the text is
 * bounded: further stacks count for NAME_OTHER.
 */
#define MAX_LINE (1UL << 20) /* ends in NAME_OTHER beyond it */
#define MAX_TEXT (1UL << 30)

struct fold {
	const struct prof *prof;
	struct functions *functions;
	struct frame_names names;
	const struct frame_name *other;
	struct line *table;
	uint32_t *stack; /* of the current row */
	size_t cap;
	size_t bytes; /* of its text */
	size_t text;  /* bytes of all lines */
};

static void fold_free(struct fold *f)
{
	struct line *line = f->table, *next;

	HASH_CLEAR(hh, f->table);
	for (; line; line = next) {
		next = line->hh.next;
		free(line);
	}
	free(f->stack);
	frame_names_free(&f->names);
	functions_free(&f->functions);
}

/* Sets f->stack, its depth, and the bytes of its text. */
static int name_row(struct fold *f, const struct prof_row *row, size_t *depth)
{
	size_t n = 0;

	if (row->nframes > f->cap) {
		uint32_t *stack = reallocarray(f->stack, row->nframes, sizeof(*stack));

		if (!stack)
			return -ENOMEM;
		f->stack = stack;
		f->cap = row->nframes;
	}
	f->bytes = 0;
	for (size_t i = row->nframes; i > 0; i--) {
		bool full = f->bytes > MAX_LINE;
		const struct frame_name *name =
			full ? f->other : frame_names_get(&f->names, row->frames[i - 1]);

		if (!name)
			return -ENOMEM;
		f->stack[n++] = name->number;
		f->bytes += name->len + 1;
		if (full)
			break;
	}
	*depth = n;
	return 0;
}

/* Adds to the line of f->stack. -E2BIG: it is new, and there is no room for its text. */
static int count_line(struct fold *f, size_t depth, uint64_t count)
{
	size_t len = depth * sizeof(*f->stack);
	struct line *line;
	unsigned int hash;

	HASH_VALUE(f->stack, len, hash);
	HASH_FIND_BYHASHVALUE(hh, f->table, f->stack, len, hash, line);
	if (!line && f->text + f->bytes > MAX_TEXT && depth > 1)
		return -E2BIG;
	if (!line) {
		line = malloc(sizeof(*line) + len);
		if (!line)
			return -ENOMEM;
		line->count = 0;
		line->depth = depth;
		if (len) /* else there may be no f->stack */
			memcpy(line->names, f->stack, len);
		HASH_ADD_BYHASHVALUE(hh, f->table, names, len, hash, line);
		if (!line->hh.tbl) {
			free(line);
			return -ENOMEM;
		}
		f->text += f->bytes;
	}
	if (__builtin_add_overflow(line->count, count, &line->count))
		line->count = UINT64_MAX;
	return 0;
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

static int write_lines(const struct fold *f, FILE *out)
{
	size_t n = HASH_COUNT(f->table), i = 0;
	__free struct ranked *lines = calloc(n + 1, sizeof(*lines));
	__text struct text text = {0};

	if (!lines)
		return -ENOMEM;
	for (struct line *line = f->table; line; line = line->hh.next, i++)
		lines[i] = (struct ranked){.count = line->count, .order = i, .line = line};
	tally_rank(lines, n);
	errno = 0;
	for (i = 0; i < n && !text_err(&text); i++) {
		put_line(f, lines[i].line, &text);
		fwrite(text_str(&text), 1, text.len, out);
	}
	if (text_err(&text))
		return text_err(&text);
	if (fflush(out))
		return -errno;
	return ferror(out) ? -EIO : 0;
}

int folded_write(const struct prof *prof, FILE *out)
{
	__cleanup(fold_free) struct fold f = {.prof = prof};
	int err = functions_new(prof, &f.functions);

	if (err)
		return err;
	f.names = (struct frame_names){
		.prof = prof, .functions = f.functions, .what = FRAME_UNIQUE, .folded = true};
	f.other = frame_names_add(&f.names, NAME_OTHER, strlen(NAME_OTHER));
	err = f.other ? fold_rows(&f) : -ENOMEM;
	if (err)
		return err;
	return write_lines(&f, out);
}
