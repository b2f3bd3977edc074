// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "folded.h"
#include "prof/function.h"
#include "prof/name.h"
#include "tally.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/*
 * Returns the index of the space in a name such as "trace 12" or "trace 1.5", else strlen(name).
 * Such a number before the count would read as a line of a differential profile.
 */
static size_t number_at(const char *name)
{
	size_t len = strlen(name), n = len;

	while (n && (is_digit(name[n - 1]) || name[n - 1] == '.'))
		n--;
	return n < len && n && name[n - 1] == ' ' ? n - 1 : len;
}

/* True if a byte looks like an escape, separates frames, or is a space that parsers split at. */
static bool is_escaped(const char *name, size_t i, size_t len, size_t number)
{
	switch (name[i]) {
	case ';':
	case '\t':
		return true;
	case ' ':
		return !i || i + 1 == len || i == number;
	case '\\':
		return name[i + 1] == 'x' && is_hex(name[i + 2]) && is_hex(name[i + 3]);
	default:
		return false;
	}
}

void folded_put_frame(struct text *out, struct text *name)
{
	const char *bytes = text_str(name);
	size_t len = strlen(bytes), number = number_at(bytes), from = 0;

	if (!len)
		text_puts(out, "\\x00"); /* a byte that no name has */
	for (size_t i = 0; i < len; i++) {
		if (!is_escaped(bytes, i, len, number))
			continue;
		text_put_utf8(out, bytes + from, i - from);
		text_printf(out, "\\x%02x", (unsigned char)bytes[i]);
		from = i + 1;
	}
	text_put_utf8(out, bytes + from, len - from);
}

struct fold {
	const struct prof *prof;
	struct functions *functions;
	char **names; /* of each function, NULL until it is needed */
	struct tallies table;
	struct text line, name, raw;
};

static void fold_free(struct fold *f)
{
	for (size_t i = 0; f->names && i < functions_count(f->functions); i++)
		free(f->names[i]);
	free(f->names);
	functions_free(&f->functions);
	tally_free(&f->table);
	text_free(&f->line);
	text_free(&f->name);
	text_free(&f->raw);
}

/* NULL: out of memory. */
static const char *name_of(struct fold *f, uint32_t frame)
{
	uint32_t function = functions_of(f->functions, frame);
	char **name = &f->names[function];

	if (!*name) {
		text_clear(&f->name);
		text_clear(&f->raw);
		functions_put_unique(f->functions, &f->raw, function);
		folded_put_frame(&f->name, &f->raw);
		if (!text_err(&f->name) && !text_err(&f->raw))
			*name = strdup(text_str(&f->name));
	}
	return *name;
}

static int put_row(struct fold *f, const struct prof_row *row)
{
	struct text *line = &f->line;

	text_clear(line);
	for (size_t i = row->nframes; i > 0; i--) {
		bool full = line->len > TALLY_MAX_KEY;
		const char *name = full ? NAME_OTHER : name_of(f, row->frames[i - 1]);

		if (!name)
			return -ENOMEM;
		if (i < row->nframes)
			text_putc(line, ';');
		text_puts(line, name);
		if (full)
			break;
	}
	if (!row->nframes)
		text_puts(line, FOLDED_NO_FRAME);
	return text_err(line);
}

static int fold(struct fold *f)
{
	int err = functions_new(f->prof, &f->functions);

	if (err)
		return err;
	/* one more, as calloc(0) may be NULL */
	f->names = calloc(functions_count(f->functions) + 1, sizeof(*f->names));
	if (!f->names)
		return -ENOMEM;
	for (size_t i = 0; i < prof_nrows(f->prof); i++) {
		bool full = tally_is_full(&f->table);
		struct prof_row row;

		prof_row(f->prof, i, &row);
		err = full ? 0 : put_row(f, &row);
		if (!err)
			err = tally_add(&f->table, full ? NAME_OTHER : text_str(&f->line), NULL,
					row.count);
		if (err)
			return err;
	}
	return 0;
}

int folded_write(const struct prof *prof, FILE *out)
{
	__cleanup(fold_free) struct fold f = {.prof = prof};
	int err = fold(&f);

	if (err)
		return err;
	errno = 0;
	tally_sort(&f.table);
	for (const struct tally *t = f.table.first; t; t = t->hh.next)
		fprintf(out, "%s %" PRIu64 "\n", t->key, t->count);
	if (fflush(out))
		return -errno;
	return ferror(out) ? -EIO : 0;
}
