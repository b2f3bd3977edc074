// SPDX-License-Identifier: BSD-2-Clause
#include "call_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "prof/function.h"
#include "prof/name.h"

int call_table_add(struct call_table *t, const char *name, const char *location, uint64_t calls)
{
	struct call_row row = {.calls = calls};

	row.name = strdup(name);
	row.location = strdup(location);
	if (!row.name || !row.location || array_grow(&t->row, t->n, sizeof(*t->row))) {
		free(row.name);
		free(row.location);
		return -ENOMEM;
	}
	t->row[t->n++] = row;
	return 0;
}

void call_table_free(struct call_table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->row[i].name);
		free(t->row[i].location);
	}
	for (size_t i = 0; i < t->ninexact; i++)
		free(t->inexact[i]);
	free(t->row);
	free(t->inexact);
	*t = (struct call_table){};
}

/* A C function's location is the file that holds it; a builtin's is LuaJIT's own. */
static void put_location(struct text *out, const struct prof_frame *frame)
{
	if (frame->kind == PROF_C)
		name_module(out, frame);
	else if (frame->kind == PROF_BUILTIN)
		text_puts(out, "[builtin]");
	else
		name_location(out, frame, false, 0);
}

static int add_function(struct call_table *t, const struct functions *functions, uint32_t fn,
			uint64_t calls)
{
	__text struct text name = {}, location = {};

	functions_put_stable(functions, &name, fn);
	put_location(&location, functions_frame(functions, fn));
	if (text_err(&name) || text_err(&location))
		return -ENOMEM;
	return call_table_add(t, text_str(&name), text_str(&location), calls);
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
	return names ? names : strcmp(x->location, y->location);
}

int call_table_inexact(struct call_table *t, const char *sentence)
{
	for (size_t i = 0; i < t->ninexact; i++)
		if (!strcmp(t->inexact[i], sentence))
			return 0;
	if (array_grow(&t->inexact, t->ninexact, sizeof(*t->inexact)))
		return -ENOMEM;
	t->inexact[t->ninexact] = strdup(sentence);
	if (!t->inexact[t->ninexact])
		return -ENOMEM;
	t->ninexact++;
	return 0;
}

static uint64_t all_calls(const struct call_table *t)
{
	uint64_t all = 0;

	for (size_t i = 0; i < t->n; i++)
		all += t->row[i].calls;
	return all;
}

static void sort(struct call_table *t)
{
	if (t->n)
		qsort(t->row, t->n, sizeof(*t->row), by_calls);
}

#define NAME_WIDTH 32

int call_table_write(struct call_table *t, FILE *to)
{
	uint64_t all = all_calls(t);
	size_t i;

	sort(t);
	fprintf(to, "%12s %6s  %-*s %s\n", "calls", "%", NAME_WIDTH, "function", "place");
	for (i = 0; i < t->n; i++) {
		const struct call_row *row = &t->row[i];
		__text struct text name = {}, location = {};

		text_put_clean(&name, row->name, strlen(row->name));
		text_put_clean(&location, row->location, strlen(row->location));
		if (text_err(&name) || text_err(&location))
			return -ENOMEM;
		fprintf(to, "%12" PRIu64 " %6.2f  %-*s %s\n", row->calls,
			100.0 * (double)row->calls / (double)all, NAME_WIDTH, text_str(&name),
			text_str(&location));
	}
	return ferror(to) ? -EIO : 0;
}

/* Foreign bytes as text of JSON. */
static cJSON *add_text(cJSON *json, const char *name, const char *foreign)
{
	__text struct text text = {};

	text_put_utf8(&text, foreign, strlen(foreign));
	return text_err(&text) ? NULL : cJSON_AddStringToObject(json, name, text_str(&text));
}

static bool fill_json(const struct call_table *t, cJSON *json)
{
	cJSON *inexact = cJSON_AddArrayToObject(json, "not_exact");
	cJSON *functions = cJSON_AddArrayToObject(json, "functions");

	if (!inexact || !functions || !cJSON_AddBoolToObject(json, "exact", !t->ninexact) ||
	    !cJSON_AddNumberToObject(json, "calls", (double)all_calls(t)))
		return false;
	for (size_t i = 0; i < t->ninexact; i++)
		if (!cJSON_AddItemToArray(inexact, cJSON_CreateString(t->inexact[i])))
			return false;
	for (size_t i = 0; i < t->n; i++) {
		cJSON *row = cJSON_CreateObject();

		if (!cJSON_AddItemToArray(functions, row) ||
		    !cJSON_AddNumberToObject(row, "calls", (double)t->row[i].calls) ||
		    !add_text(row, "function", t->row[i].name) ||
		    !add_text(row, "place", t->row[i].location))
			return false;
	}
	return true;
}

int call_table_json(struct call_table *t, FILE *to)
{
	cJSON *json = cJSON_CreateObject();
	char *text;

	sort(t);
	text = fill_json(t, json) ? cJSON_Print(json) : NULL;
	cJSON_Delete(json);
	if (!text)
		return -ENOMEM;
	fprintf(to, "%s\n", text);
	cJSON_free(text);
	return ferror(to) ? -EIO : 0;
}

void call_table_summary(const struct call_table *t, FILE *to)
{
	fprintf(to, "luabpf: %" PRIu64 " calls of %zu function%s, %s\n", all_calls(t), t->n,
		t->n == 1 ? "" : "s", t->ninexact ? "not all of them:" : "exact");
	for (size_t i = 0; i < t->ninexact; i++)
		fprintf(to, "luabpf: %s\n", t->inexact[i]);
}
