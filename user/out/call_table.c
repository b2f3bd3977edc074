// SPDX-License-Identifier: BSD-2-Clause
#include "call_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "prof/function.h"
#include "prof/name.h"

int call_table_add(struct call_table *t, const char *name, const char *place, uint64_t calls)
{
	struct call_row row = {.calls = calls};

	row.name = strdup(name);
	row.place = strdup(place);
	if (!row.name || !row.place || array_grow(&t->row, t->n, sizeof(*t->row))) {
		free(row.name);
		free(row.place);
		return -ENOMEM;
	}
	t->row[t->n++] = row;
	return 0;
}

void call_table_free(struct call_table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->row[i].name);
		free(t->row[i].place);
	}
	free(t->row);
	*t = (struct call_table){};
}

/* Of a C function the file that holds it; a builtin's is LuaJIT's own. */
static void put_place(struct text *out, const struct prof_frame *frame)
{
	if (frame->kind == PROF_C)
		name_module(out, frame);
	else if (frame->kind == PROF_BUILTIN)
		text_puts(out, "[builtin]");
	else
		name_place(out, frame, false, 0);
}

static int add_function(struct call_table *t, const struct functions *functions, uint32_t fn,
			uint64_t calls)
{
	__text struct text name = {}, place = {};

	functions_put_stable(functions, &name, fn);
	put_place(&place, functions_frame(functions, fn));
	if (text_err(&name) || text_err(&place))
		return -ENOMEM;
	return call_table_add(t, text_str(&name), text_str(&place), calls);
}

static void functions_cleanup(struct functions **functions)
{
	functions_free(functions);
}

int call_table_add_prof(struct call_table *t, const struct prof *prof)
{
	struct functions *functions __cleanup(functions_cleanup) = NULL;
	uint64_t *calls __free = NULL;
	struct prof_row row;
	size_t i, n;
	int r = functions_new(prof, &functions);

	if (r)
		return r;
	n = functions_count(functions);
	calls = calloc(n + 1, sizeof(*calls));
	if (!calls)
		return -ENOMEM;
	for (i = 0; i < prof_nrows(prof); i++) {
		prof_row(prof, i, &row);
		if (row.nframes)
			calls[functions_of(functions, row.frames[0])] += row.count;
	}
	for (i = 0; i < n && !r; i++)
		if (calls[i])
			r = add_function(t, functions, (uint32_t)i, calls[i]);
	return r;
}

/* By name where the calls are equal: the order is always the same. */
static int by_calls(const void *a, const void *b)
{
	const struct call_row *x = a, *y = b;
	int names;

	if (x->calls != y->calls)
		return x->calls < y->calls ? 1 : -1;
	names = strcmp(x->name, y->name);
	return names ? names : strcmp(x->place, y->place);
}

#define NAME_WIDTH 32

int call_table_write(struct call_table *t, FILE *to)
{
	uint64_t all = 0;
	size_t i;

	if (t->n)
		qsort(t->row, t->n, sizeof(*t->row), by_calls);
	for (i = 0; i < t->n; i++)
		all += t->row[i].calls;
	fprintf(to, "%12s %6s  %-*s %s\n", "calls", "%", NAME_WIDTH, "function", "place");
	for (i = 0; i < t->n; i++) {
		const struct call_row *row = &t->row[i];
		__text struct text name = {}, place = {};

		text_put_clean(&name, row->name, strlen(row->name));
		text_put_clean(&place, row->place, strlen(row->place));
		if (text_err(&name) || text_err(&place))
			return -ENOMEM;
		fprintf(to, "%12" PRIu64 " %6.2f  %-*s %s\n", row->calls,
			100.0 * (double)row->calls / (double)all, NAME_WIDTH, text_str(&name),
			text_str(&place));
	}
	return ferror(to) ? -EIO : 0;
}
