// SPDX-License-Identifier: BSD-2-Clause
/* The summary of a trace: the functions with most time of their own, and the coverage of each file. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "report.h"

#define TOP 20
#define MISSED_MAX 20 /* ranges of lines that are listed, for each file */

static int by_self(const void *a, const void *b)
{
	const struct program_function *x = *(const struct program_function **)a;
	const struct program_function *y = *(const struct program_function **)b;

	if (x->stats.self_ns != y->stats.self_ns)
		return x->stats.self_ns > y->stats.self_ns ? -1 : 1;
	return x < y ? -1 : x > y;
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100 * (double)part / (double)whole : 0;
}

/* "name  x.lua:3-5" */
static void put_function(const struct program *p, const struct program_function *f,
			 struct text *text)
{
	const char *source = f->source < p->nsources ? p->sources[f->source].name : "";
	char name[256];

	coverage_name(f, name, sizeof(name));
	if (f->role != TRACE_ROLE_LUA) {
		text_put_utf8(text, *f->name ? f->name : "?", *f->name ? strlen(f->name) : 1);
		text_puts(text, "  [C]");
		return;
	}
	text_put_utf8(text, name, strlen(name));
	text_puts(text, "  ");
	if (*source == '@' || *source == '=')
		text_put_utf8(text, source + 1, strlen(source + 1));
	else
		text_puts(text, "[string]");
	if (f->first)
		text_printf(text, ":%" PRId32 "-%" PRId32, f->first, f->last);
}

static int put_top(const struct program *p, FILE *to)
{
	__free const struct program_function **list = calloc(p->nfunctions + 1, sizeof(*list));
	__text struct text text = {};
	uint64_t all = 0;
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < p->nfunctions; i++) {
		if (p->functions[i].stats.calls)
			list[n++] = &p->functions[i];
		all += p->functions[i].stats.self_ns;
	}
	qsort(list, n, sizeof(*list), by_self);
	fprintf(to, "Functions by time: %zu of %zu that were called, %.3f ms in all\n",
		n < TOP ? n : TOP, n, (double)all / 1e6);
	fputs("     self ms      %   with callees         calls  function\n", to);
	for (size_t i = 0; i < n && i < TOP; i++) {
		const struct stats_function *s = &list[i]->stats;

		text_clear(&text);
		put_function(p, list[i], &text);
		fprintf(to, "%12.3f %6.2f %14.3f %13" PRIu64 "  %s\n", (double)s->self_ns / 1e6,
			all ? percent(s->self_ns, all) : 0, (double)s->total_ns / 1e6, s->calls,
			text_str(&text));
	}
	return text_err(&text);
}

/* "3-5 9": lines that can run and did not. */
static void put_missed(const struct coverage_file *file, struct text *text)
{
	size_t end, ranges = 0;

	for (size_t i = 0; i < file->nlines; i = end) {
		end = i + 1;
		if (file->lines[i].hits)
			continue;
		/* a line in between that cannot run does not end a range */
		while (end < file->nlines && !file->lines[end].hits)
			end++;
		if (ranges++ == MISSED_MAX) {
			text_puts(text, " ...");
			return;
		}
		text_printf(text, " %" PRIu32, file->lines[i].line);
		if (end > i + 1)
			text_printf(text, "-%" PRIu32, file->lines[end - 1].line);
	}
}

/* Functions of one line that were not called: the line may have run, as that of the code around. */
static void put_hidden(const struct coverage_file *file, struct text *text)
{
	const char *before = "\n                      not called:";

	for (size_t i = 0; i < file->nfunctions; i++) {
		const struct program_function *f = file->functions[i];
		char name[256];

		if (f->stats.calls || f->first != f->last)
			continue;
		coverage_name(f, name, sizeof(name));
		text_printf(text, "%s %" PRId32 " (", before, f->first);
		text_put_utf8(text, name, strlen(name));
		text_putc(text, ')');
		before = "";
	}
}

static int put_coverage(const struct coverage *c, FILE *to)
{
	__text struct text text = {};

	fprintf(to,
		"\nCoverage: %" PRIu64 " of %" PRIu64 " lines (%.2f %%), %" PRIu64 " of %" PRIu64
		" functions\n",
		c->hit, c->lines, percent(c->hit, c->lines), c->called, c->functions);
	for (size_t i = 0; i < c->n; i++) {
		const struct coverage_file *file = &c->files[i];

		text_clear(&text);
		text_put_utf8(&text, file->path, strlen(file->path));
		if (file->nhit < file->nlines) {
			text_puts(&text, "\n                      not run:");
			put_missed(file, &text);
		}
		put_hidden(file, &text);
		fprintf(to, "%6.2f %% %11zu/%zu  %s\n", percent(file->nhit, file->nlines),
			file->nhit, file->nlines, text_str(&text));
	}
	return text_err(&text);
}

int report_summary(const struct program *program, const struct coverage *coverage, FILE *to)
{
	int ret = put_top(program, to);

	return ret ? ret : put_coverage(coverage, to);
}
