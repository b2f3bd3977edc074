// SPDX-License-Identifier: BSD-2-Clause
/*
 * Records of a file: SF, then FN:first line,name and FNDA:calls,name of each function, FNF, FNH, then
 * DA:line,hits, LF, LH. genhtml ends at a file that is not there. Functions of one name differ by their line: names are unique in a file.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "report.h"

/* A name is the last field of its record; genhtml takes a comma in it for an end. */
static void put_name(const struct coverage_file *file, size_t at, struct text *text)
{
	const struct program_function *f = file->functions[at];
	char name[256];
	size_t same = 0;

	coverage_name(f, name, sizeof(name));
	for (char *c = name; *c; c++)
		if (*c == ',' || (unsigned char)*c < ' ')
			*c = '_';
	text_put_utf8(text, name, strlen(name));
	if (*f->name)
		text_printf(text, ":%" PRId32, f->first);
	while (same < at && file->functions[at - 1 - same]->first == f->first)
		same++;
	if (same)
		text_printf(text, ".%zu", same + 1);
}

static void put_functions(const struct coverage_file *file, struct text *text)
{
	for (size_t i = 0; i < file->nfunctions; i++) {
		int32_t first = file->functions[i]->first;

		text_printf(text, "FN:%" PRId32 ",", first ? first : 1);
		put_name(file, i, text);
		text_putc(text, '\n');
	}
	for (size_t i = 0; i < file->nfunctions; i++) {
		text_printf(text, "FNDA:%" PRIu64 ",", file->functions[i]->stats.calls);
		put_name(file, i, text);
		text_putc(text, '\n');
	}
	text_printf(text, "FNF:%zu\nFNH:%zu\n", file->nfunctions, file->ncalled);
}

int report_lcov(const struct coverage *coverage, FILE *to)
{
	__text struct text text = {};

	for (size_t i = 0; i < coverage->n; i++) {
		const struct coverage_file *file = &coverage->files[i];

		if (file->missing)
			continue;
		text_clear(&text);
		text_puts(&text, "TN:\nSF:");
		text_put_utf8(&text, file->path, strlen(file->path));
		text_putc(&text, '\n');
		put_functions(file, &text);
		for (size_t l = 0; l < file->nlines; l++)
			text_printf(&text, "DA:%" PRIu32 ",%" PRIu64 "\n", file->lines[l].line,
				    file->lines[l].hits);
		text_printf(&text, "LF:%zu\nLH:%zu\nend_of_record\n", file->nlines, file->nhit);
		if (text_err(&text))
			return text_err(&text);
		fputs(text_str(&text), to);
	}
	return 0;
}
