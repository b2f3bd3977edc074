// SPDX-License-Identifier: BSD-2-Clause
#include "sections.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "jitp.h"
#include "prof/copy.h"
#include "prof/name.h"
#include "tally.h"

#define SECTIONS_MOST 1000 /* shown: each takes a pass over the profile */

static const char *const words[] = {
	[SECTIONS_PID] = "pid",	      [SECTIONS_COMM] = "comm",		  [SECTIONS_EXE] = "exe",
	[SECTIONS_CGROUP] = "cgroup", [SECTIONS_CONTAINER] = "container", [SECTIONS_VM] = "vm",
	[SECTIONS_THREAD] = "thread", [SECTIONS_COROUTINE] = "coroutine", [SECTIONS_ZONE] = "zone",
};

enum sections_by sections_named(const char *word)
{
	for (size_t i = SECTIONS_PID; i < sizeof(words) / sizeof(*words); i++)
		if (!strcmp(word, words[i]))
			return (enum sections_by)i;
	return SECTIONS_NONE;
}

/* The same address in two processes is two coroutines. */
static void put_coroutine(struct text *out, const struct prof_labels *labels)
{
	char id[32];

	name_coroutine(labels->coroutine, id, sizeof(id));
	if (labels->coroutine)
		text_printf(out, "coroutine:%" PRIu32 "/%s", labels->pid, id);
	else
		text_puts(out, "(coroutine not recorded)");
}

static void put_key(struct text *out, enum sections_by by, const struct prof *prof,
		    const struct prof_labels *labels)
{
	const struct prof_origin *o = prof_origin(prof, labels->origin);

	text_clear(out);
	switch (by) {
	case SECTIONS_NONE:
		break;
	case SECTIONS_PID:
		text_printf(out, "pid:%" PRIu32, labels->pid);
		break;
	case SECTIONS_COMM:
		text_puts(out, *labels->comm ? labels->comm : "(no name)");
		break;
	case SECTIONS_EXE:
		text_puts(out, *o->exe ? o->exe : "(exe not known)");
		break;
	case SECTIONS_CGROUP:
		text_puts(out, *o->cgroup ? o->cgroup : "(cgroup not known)");
		break;
	case SECTIONS_CONTAINER:
		text_puts(out, *o->container ? o->container : "(no container)");
		break;
	case SECTIONS_VM:
		text_puts(out, *o->vm ? o->vm : "(VM not known)");
		break;
	case SECTIONS_THREAD:
		text_printf(out, "thread:%" PRIu32, labels->tid);
		break;
	case SECTIONS_COROUTINE:
		put_coroutine(out, labels);
		break;
	case SECTIONS_ZONE:
		text_puts(out, labels->zone ? labels->zone : PROF_ZONE_NOT_RECORDED);
		break;
	}
}

struct sections {
	struct tallies table;
	struct tally **of; /* by row */
};

static void sections_free(struct sections *s)
{
	tally_free(&s->table);
	free(s->of);
}

static int find_sections(const struct prof *prof, enum sections_by by, struct sections *s)
{
	size_t n = prof_nrows(prof);
	__text struct text key = {0};

	s->of = calloc(n + 1, sizeof(*s->of));
	if (!s->of)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct prof_row row;

		prof_row(prof, i, &row);
		put_key(&key, by, prof, &row.labels);
		s->of[i] = text_err(&key)
				   ? NULL
				   : tally_add_to(&s->table, NULL, text_str(&key), row.count);
		if (!s->of[i])
			return -ENOMEM;
	}
	return tally_sort(&s->table);
}

/* A section's rows: rows are asked for in their order. */
struct select {
	const struct tally *section;
	struct tally **next; /* of the next row */
};

static bool is_selected(void *arg, const struct prof_row *row, struct prof_frame *root)
{
	struct select *s = arg;

	(void)row, (void)root;
	return *s->next++ == s->section;
}

struct section_roots {
	const struct prof *prof;
	enum sections_by by;
	struct text text;
};

static void roots_free(struct section_roots *r)
{
	text_free(&r->text);
}

static bool add_root(void *arg, const struct prof_row *row, struct prof_frame *root)
{
	struct section_roots *r = arg;

	put_key(&r->text, r->by, r->prof, &row->labels);
	root->symbol = text_str(&r->text);
	return true;
}

int sections_as_roots(const struct prof *prof, enum sections_by by, struct prof **out)
{
	__cleanup(roots_free) struct section_roots roots = {.prof = prof, .by = by};
	int r = prof_copy(prof, add_root, &roots, out);

	return r ? r : text_err(&roots.text);
}

static int render(const struct prof *prof, const struct sections *sections,
		  const struct tally *section, const struct jitp_options *options,
		  const struct source *source, FILE *out)
{
	struct select s = {.section = section, .next = sections->of};
	__cleanup(prof_free) struct prof *part = NULL;
	__text struct text name = {0};
	int r = prof_copy(prof, is_selected, &s, &part);

	if (r)
		return r;
	text_put_clean(&name, section->key, section->len);
	fprintf(out, "==== %s: %d%%, %" PRIu64 " samples ====\n", text_str(&name),
		tally_percent(section->count, prof_samples(prof)), section->count);
	return jitp_render(part, options, source, out);
}

int sections_render(const struct prof *prof, enum sections_by by,
		    const struct jitp_options *options, const struct source *source, FILE *out)
{
	__cleanup(sections_free) struct sections sections = {};
	__cleanup(prof_free) struct prof *roots = NULL;
	uint64_t small = 0, nsmall = 0, n = 0;
	int r;

	if (options->raw == JITP_STACKS) {
		r = sections_as_roots(prof, by, &roots);
		return r ? r : jitp_render(roots, options, source, out);
	}
	r = find_sections(prof, by, &sections);
	for (const struct tally *s = sections.table.first; s && !r; s = s->next) {
		if (tally_percent(s->count, prof_samples(prof)) >= options->min &&
		    n++ < SECTIONS_MOST) {
			r = render(prof, &sections, s, options, source, out);
		} else {
			small += s->count;
			nsmall++;
		}
	}
	if (!r && small)
		fprintf(out, "==== %" PRIu64 " others: %d%%, %" PRIu64 " samples ====\n", nsmall,
			tally_percent(small, prof_samples(prof)), small);
	return r;
}
