// SPDX-License-Identifier: BSD-2-Clause
/*
 * One package, a class for each file, a method for each function. There are no branches in it. A
 * file name is relative to the source "/", or as in the chunk name.
 */
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "report.h"

/* An attribute's text. Bytes that are not UTF-8, and control characters, become \xNN. */
static void put_xml(struct text *to, const char *s)
{
	__text struct text clean = {};

	text_put_utf8(&clean, s, strlen(s));
	for (s = text_str(&clean); *s; s++) {
		if (*s == '&')
			text_puts(to, "&amp;");
		else if (*s == '<')
			text_puts(to, "&lt;");
		else if (*s == '"')
			text_puts(to, "&quot;");
		else
			text_putc(to, *s);
	}
	if (text_err(&clean))
		to->err = text_err(&clean);
}

static double rate(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 1;
}

static void put_line(struct text *to, const char *indent, uint32_t line, uint64_t hits)
{
	text_printf(to, "%s<line number=\"%" PRIu32 "\" hits=\"%" PRIu64 "\" branch=\"false\"/>\n",
		    indent, line, hits);
}

static void put_method(struct text *to, const struct program_function *f)
{
	char name[256];
	size_t hit = 0;

	for (size_t i = 0; i < f->nlines; i++)
		hit += coverage_hits(f, f->lines[i]) != 0;
	coverage_name(f, name, sizeof(name));
	text_puts(to, "\t\t\t\t\t\t<method name=\"");
	put_xml(to, name);
	text_printf(to, "\" signature=\"%" PRId32 "-%" PRId32 "\" line-rate=\"%.4f\"", f->first,
		    f->last, rate(hit, f->nlines));
	text_puts(to, " branch-rate=\"1\" complexity=\"0\">\n\t\t\t\t\t\t\t<lines>\n");
	for (size_t i = 0; i < f->nlines; i++)
		put_line(to, "\t\t\t\t\t\t\t\t", f->lines[i], coverage_hits(f, f->lines[i]));
	text_puts(to, "\t\t\t\t\t\t\t</lines>\n\t\t\t\t\t\t</method>\n");
}

static void put_file(struct text *to, const struct coverage_file *file)
{
	const char *path = file->path + (*file->path == '/');

	text_puts(to, "\t\t\t\t<class name=\"");
	put_xml(to, path);
	text_puts(to, "\" filename=\"");
	put_xml(to, path);
	text_printf(to, "\" line-rate=\"%.4f\" branch-rate=\"1\" complexity=\"0\">\n",
		    rate(file->nhit, file->nlines));
	text_puts(to, "\t\t\t\t\t<methods>\n");
	for (size_t i = 0; i < file->nfunctions; i++)
		put_method(to, file->functions[i]);
	text_puts(to, "\t\t\t\t\t</methods>\n\t\t\t\t\t<lines>\n");
	for (size_t i = 0; i < file->nlines; i++)
		put_line(to, "\t\t\t\t\t\t", file->lines[i].line, file->lines[i].hits);
	text_puts(to, "\t\t\t\t\t</lines>\n\t\t\t\t</class>\n");
}

int report_cobertura(const struct coverage *coverage, uint64_t time, FILE *to)
{
	uint64_t hit = 0, lines = 0;
	__text struct text text = {};
	double all;

	for (size_t i = 0; i < coverage->n; i++) {
		hit += coverage->files[i].missing ? 0 : coverage->files[i].nhit;
		lines += coverage->files[i].missing ? 0 : coverage->files[i].nlines;
	}
	all = rate(hit, lines);

	fprintf(to,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<!DOCTYPE coverage SYSTEM "
		"\"http://cobertura.sourceforge.net/xml/coverage-04.dtd\">\n"
		"<coverage line-rate=\"%.4f\" branch-rate=\"1\" lines-covered=\"%" PRIu64
		"\" lines-valid=\"%" PRIu64 "\" branches-covered=\"0\" branches-valid=\"0\" "
		"complexity=\"0\" version=\"luabpf " LUABPF_VERSION "\" timestamp=\"%" PRIu64
		"\">\n"
		"\t<sources>\n\t\t<source>/</source>\n\t</sources>\n\t<packages>\n"
		"\t\t<package name=\"lua\" line-rate=\"%.4f\" branch-rate=\"1\" complexity=\"0\">\n"
		"\t\t\t<classes>\n",
		all, hit, lines, time, all);
	for (size_t i = 0; i < coverage->n; i++) {
		if (coverage->files[i].missing)
			continue;
		text_clear(&text);
		put_file(&text, &coverage->files[i]);
		if (text_err(&text))
			return text_err(&text);
		fputs(text_str(&text), to);
	}
	fputs("\t\t\t</classes>\n\t\t</package>\n\t</packages>\n</coverage>\n", to);
	return 0;
}
