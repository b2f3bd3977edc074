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

/*
 * "trace 12" before a count reads as two counts, that is a line of a differential profile, and
 * "trace 1.5" does, too: the space before such an end becomes an underscore.
 */
static void part_number(char *name, size_t len)
{
	size_t n = len;

	while (n && (is_digit(name[n - 1]) || name[n - 1] == '.'))
		n--;
	if (n == len)
		return;
	while (n && name[n - 1] == ' ')
		name[--n] = '_';
}

void folded_put_frame(struct text *out, struct text *name)
{
	size_t start = out->len;

	for (char *p = name->data; p && *p; p++) {
		if (*p == ';')
			*p = ':';
		else if (*p == '\t' || *p == '\r')
			*p = ' ';
	}
	if (name->len)
		text_put_clean(out, name->data, name->len);
	else
		text_putc(out, '?');
	if (!text_err(out))
		part_number(out->data + start, out->len - start);
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
