// SPDX-License-Identifier: BSD-2-Clause
/*
 * out/annotate.c shows one figure beside a line, in the layout of jit.p. Here are three, and a line
 * that several functions share has a row for each of them.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/source_line.h"
#include "base/text.h"
#include "report.h"

#define ESC 27

static void put_figures(struct text *text, uint64_t hits, uint64_t self_ns, uint64_t total_ns)
{
	text_printf(text, "%12" PRIu64 " %12.3f %14.3f | ", hits, (double)self_ns / 1e6,
		    (double)total_ns / 1e6);
}

static bool has_line(const struct program_function *f, uint32_t line)
{
	size_t from = 0, to = f->nlines;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (f->lines[mid] == line)
			return true;
		if (f->lines[mid] < line)
			from = mid + 1;
		else
			to = mid;
	}
	return coverage_hits(f, line);
}

/* The rows of the functions that share a line. */
static void put_functions(const struct coverage_file *file, uint32_t line, struct text *text)
{
	const struct program_function *sharing[64];
	size_t n = 0;
	char name[256];

	for (size_t i = 0; i < file->nfunctions && n < sizeof(sharing) / sizeof(*sharing); i++) {
		const struct program_function *f = file->functions[i];

		if (f->first > (int64_t)line)
			break;
		if (has_line(f, line))
			sharing[n++] = f;
	}
	for (size_t i = 0; n > 1 && i < n; i++) {
		const struct stats_line none = {}, *l = stats_line(&sharing[i]->stats.lines, line);

		l = l && l->hits ? l : &none;
		put_figures(text, l->hits, l->self_ns, l->total_ns);
		coverage_name(sharing[i], name, sizeof(name));
		text_puts(text, "    ^ ");
		text_put_utf8(text, name, strlen(name));
		text_putc(text, '\n');
	}
}

static void put_line(const struct coverage_file *file, const struct coverage_line *l,
		     const char *source, size_t len, struct text *text)
{
	if (!l)
		text_printf(text, "%12s %12s %14s | ", "", "", "");
	else if (!l->hits)
		text_printf(text, "%12s %12s %14s | ", "not run", "", "");
	else
		put_figures(text, l->hits, l->self_ns, l->total_ns);
	text_put_clean(text, source, len);
	text_putc(text, '\n');
	if (l)
		put_functions(file, l->line, text);
}

static int put_file(const struct coverage_file *file, FILE *in, FILE *to)
{
	__text struct text text = {};
	__free char *buf = NULL;
	size_t cap = 0, at = 0;
	ssize_t len;

	fprintf(to, "%12s %12s %14s |\n", "hits", "self ms", "total ms");
	for (uint32_t n = 1; (len = source_line(in, &buf, &cap, NULL)) >= 0; n++) {
		const struct coverage_line *l = NULL;

		if (n == 1 && buf[0] == ESC) {
			fputs("[Cannot annotate bytecode file]\n", to);
			return 0;
		}
		if (at < file->nlines && file->lines[at].line == n)
			l = &file->lines[at++];
		text_clear(&text);
		put_line(file, l, buf, len, &text);
		fputs(text_str(&text), to);
	}
	return text_err(&text);
}

int report_annotate(const struct coverage *coverage, const struct report_sources *files, FILE *to)
{
	__text struct text title = {};

	for (size_t i = 0; i < coverage->n; i++) {
		const struct coverage_file *file = &coverage->files[i];
		__fclose FILE *in = NULL;
		int ret;

		text_clear(&title);
		text_put_utf8(&title, file->path, strlen(file->path));
		fprintf(to, "%s====== %s ======\n", i ? "\n" : "", text_str(&title));
		if (!files->is_same(files->ctx, file->source)) {
			fputs("[Not shown: the file has changed since it ran]\n", to);
			continue;
		}
		ret = files->source.open(files->source.ctx, file->path, &in);
		if (ret)
			fprintf(to, "[Cannot read it: %s]\n", strerror(-ret));
		else
			ret = put_file(file, in, to);
		if (ret == -ENOMEM)
			return ret;
	}
	return text_err(&title);
}
