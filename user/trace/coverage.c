// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "coverage.h"

static const struct stats_line *ran(const struct program_function *f, uint32_t line)
{
	const struct stats_line *l = stats_line(&f->stats.lines, line);

	return l && l->hits ? l : NULL;
}

uint64_t coverage_hits(const struct program_function *function, uint32_t line)
{
	const struct stats_line *l = ran(function, line);

	return l ? l->hits : 0;
}

void coverage_name(const struct program_function *function, char *buf, size_t size)
{
	if (*function->name)
		snprintf(buf, size, "%s", function->name);
	else if (!function->first)
		snprintf(buf, size, "main chunk");
	else
		snprintf(buf, size, "function at %" PRId32, function->first);
}

static int compare_lines(const void *a, const void *b)
{
	const struct coverage_line *x = a, *y = b;

	return x->line < y->line ? -1 : x->line > y->line;
}

static int compare_functions(const void *a, const void *b)
{
	const struct program_function *x = *(const struct program_function **)a;
	const struct program_function *y = *(const struct program_function **)b;

	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	if (x->last != y->last)
		return x->last < y->last ? -1 : 1;
	if (x->code != y->code) /* so that their order is that of other runs, too */
		return x->code < y->code ? -1 : 1;
	return x < y ? -1 : x > y; /* both are in one array */
}

static int compare_files(const void *a, const void *b)
{
	const struct coverage_file *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static size_t count_lines(const struct program_function *f)
{
	size_t n = f->nlines;

	for (uint32_t i = 0; i < f->stats.lines.n; i++)
		n += f->stats.lines.at[i].hits != 0;
	return n;
}

/* Appends a record for each line that can run, then for each that ran. */
static void put_lines(const struct program_function *f, struct coverage_file *file)
{
	for (size_t i = 0; i < f->nlines; i++)
		file->lines[file->nlines++] =
			(struct coverage_line){.line = f->lines[i], .can_run = true};
	for (uint32_t i = 0; i < f->stats.lines.n; i++) {
		const struct stats_line *l = &f->stats.lines.at[i];

		if (!l->hits)
			continue;
		file->lines[file->nlines++] = (struct coverage_line){
			.line = f->stats.lines.first + i,
			.hits = l->hits,
			.self_ns = l->self_ns,
		};
	}
}

/* Joins the records of a line. Its total is no sum: its functions may have been on the stack together. */
static void join_lines(struct coverage_file *file)
{
	size_t n = 0;

	qsort(file->lines, file->nlines, sizeof(*file->lines), compare_lines);
	for (size_t i = 0; i < file->nlines; i++) {
		const struct coverage_line *from = &file->lines[i];
		struct coverage_line *to = n ? &file->lines[n - 1] : NULL;

		if (!to || to->line != from->line) {
			file->lines[n++] = *from;
			continue;
		}
		to->can_run |= from->can_run;
		to->hits += from->hits;
		to->self_ns += from->self_ns;
	}
	file->nlines = n;
	for (size_t i = 0; i < n; i++) {
		struct coverage_line *l = &file->lines[i];
		const struct stats_line *total = stats_line(&file->source->totals, l->line);

		l->total_ns = total ? total->total_ns : 0;
		file->nhit += l->hits != 0;
	}
}

static int fill(const struct program *p, const uint32_t *functions, size_t n,
		struct coverage_file *file)
{
	size_t nlines = 0;

	file->functions = calloc(n + 1, sizeof(*file->functions));
	for (size_t i = 0; i < n; i++)
		nlines += count_lines(&p->functions[functions[i]]);
	file->lines = calloc(nlines + 1, sizeof(*file->lines));
	if (!file->functions || !file->lines)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct program_function *f = &p->functions[functions[i]];

		put_lines(f, file);
		file->functions[file->nfunctions++] = f;
		file->ncalled += f->stats.calls != 0;
	}
	join_lines(file);
	qsort(file->functions, n, sizeof(*file->functions), compare_functions);
	return 0;
}

struct by_source {
	uint32_t source, function;
};

static int compare_sources(const void *a, const void *b)
{
	const struct by_source *x = a, *y = b;

	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return x->function < y->function ? -1 : x->function > y->function;
}

/* Lists the functions of files, those of each file together. */
static size_t list_functions(const struct program *p, struct by_source *list)
{
	size_t n = 0;

	for (size_t i = 0; i < p->nfunctions; i++) {
		uint32_t source = p->functions[i].source;

		if (p->functions[i].role == TRACE_ROLE_LUA && source < p->nsources &&
		    *p->sources[source].name == '@')
			list[n++] = (struct by_source){source, i};
	}
	qsort(list, n, sizeof(*list), compare_sources);
	return n;
}

static int add_files(const struct program *p, const struct by_source *list, size_t n,
		     struct coverage *c)
{
	__free uint32_t *functions = calloc(n + 1, sizeof(*functions));
	size_t end;

	if (!functions)
		return -ENOMEM;
	for (size_t i = 0; i < n; i = end) {
		struct coverage_file *file = &c->files[c->n++];
		int ret;

		file->source = &p->sources[list[i].source];
		file->path = file->source->path ?: file->source->name + 1;
		for (end = i; end < n && list[end].source == list[i].source; end++)
			functions[end - i] = list[end].function;
		ret = fill(p, functions, end - i, file);
		if (ret)
			return ret;
		c->lines += file->nlines;
		c->hit += file->nhit;
		c->functions += file->nfunctions;
		c->called += file->ncalled;
	}
	qsort(c->files, c->n, sizeof(*c->files), compare_files);
	return 0;
}

int coverage_new(const struct program *program, struct coverage *out)
{
	__free struct by_source *list = calloc(program->nfunctions + 1, sizeof(*list));
	__coverage struct coverage c = {};
	size_t n;
	int ret;

	if (!list)
		return -ENOMEM;
	n = list_functions(program, list);
	c.files = calloc(program->nsources + 1, sizeof(*c.files));
	if (!c.files)
		return -ENOMEM;
	ret = add_files(program, list, n, &c);
	if (ret)
		return ret;
	*out = c;
	c = (struct coverage){};
	return 0;
}

void coverage_free(struct coverage *coverage)
{
	for (size_t i = 0; i < coverage->n; i++) {
		free(coverage->files[i].lines);
		free(coverage->files[i].functions);
	}
	free(coverage->files);
	*coverage = (struct coverage){};
}
