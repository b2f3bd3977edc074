// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "folded.h"
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

static void put_frame(struct text *out, const struct prof_frame *frame, struct text *raw)
{
	size_t start = out->len;

	text_clear(raw);
	name_unique(raw, frame);
	for (char *p = raw->data; p && *p; p++) {
		if (*p == ';')
			*p = ':';
		else if (*p == '\t')
			*p = ' ';
	}
	if (raw->len)
		text_put_clean(out, raw->data, raw->len);
	else
		text_putc(out, '?');
	if (!text_err(out))
		part_number(out->data + start, out->len - start);
}

static int put_row(struct text *line, struct text *raw, const struct prof *prof,
		   const struct prof_row *row)
{
	text_clear(line);
	for (size_t i = row->nframes; i > 0; i--) {
		if (i < row->nframes)
			text_putc(line, ';');
		put_frame(line, prof_frame(prof, row->frames[i - 1]), raw);
	}
	if (!row->nframes)
		text_puts(line, "[no frame]");
	return text_err(line) ? text_err(line) : text_err(raw);
}

static int fold(const struct prof *prof, struct tally **table)
{
	__text struct text line = {0}, raw = {0};

	for (size_t i = 0; i < prof_nrows(prof); i++) {
		struct prof_row row;
		int err;

		prof_row(prof, i, &row);
		err = put_row(&line, &raw, prof, &row);
		if (!err)
			err = tally_add(table, text_str(&line), NULL, row.count);
		if (err)
			return err;
	}
	return 0;
}

int folded_write(const struct prof *prof, FILE *out)
{
	__cleanup(tally_free) struct tally *table = NULL;
	int err = fold(prof, &table);

	if (err)
		return err;
	errno = 0;
	tally_sort(&table);
	for (const struct tally *t = table; t; t = t->hh.next)
		fprintf(out, "%s %" PRIu64 "\n", t->key, t->count);
	if (fflush(out))
		return -errno;
	return ferror(out) ? -EIO : 0;
}
