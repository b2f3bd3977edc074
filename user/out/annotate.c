// SPDX-License-Identifier: BSD-2-Clause
/*
 * Prints the files in the order of their names. The first that is no file or cannot be opened ends
 * the report, as in jit/p.lua. Any line that begins with ESC means bytecode.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "annotate.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/source_line.h"
#include "base/text.h"
#include "prof/name.h"

#define CONTEXT 3 /* lines shown around one with samples */
#define ESC 27

struct mark {
	UT_hash_handle hh;
	double line; /* as Lua's tonumber(): a name may end in any number of digits */
	uint64_t value;
};

struct source_file {
	UT_hash_handle hh;
	struct mark *marks;
	char name[];
};

struct annotator {
	struct source_file *files;
	uint64_t most; /* the largest count of a row, shown or not */
	int width;     /* of the value column */
	int context;   /* 0: whole files */
	const struct jitp_options *options;
	const struct source *source;
	FILE *out;
	struct text line;
};

static void file_free(struct source_file *file)
{
	struct mark *m, *mnext;

	HASH_ITER (hh, file->marks, m, mnext) {
		HASH_DEL(file->marks, m);
		free(m);
	}
	free(file);
}

static void annotator_free(struct annotator *a)
{
	struct source_file *f, *fnext;

	HASH_ITER (hh, a->files, f, fnext) {
		HASH_DEL(a->files, f);
		file_free(f);
	}
	text_free(&a->line);
}

static int file_of(struct annotator *a, const char *name, size_t len, struct source_file **out)
{
	struct source_file *f;

	HASH_FIND(hh, a->files, name, len, f);
	if (!f) {
		f = calloc(1, sizeof(*f) + len + 1);
		if (!f)
			return -ENOMEM;
		memcpy(f->name, name, len);
		HASH_ADD(hh, a->files, name, len, f);
		if (!f->hh.tbl) {
			free(f);
			return -ENOMEM;
		}
	}
	*out = f;
	return 0;
}

static const struct mark *mark_at(const struct source_file *f, double line)
{
	struct mark *m;

	HASH_FIND(hh, f->marks, &line, sizeof(line), m);
	return m;
}

static int mark(struct source_file *f, double line, uint64_t value)
{
	struct mark *m;

	HASH_FIND(hh, f->marks, &line, sizeof(line), m);
	if (!m) {
		m = calloc(1, sizeof(*m));
		if (!m)
			return -ENOMEM;
		m->line = line;
		HASH_ADD(hh, f->marks, line, sizeof(line), m);
		if (!m->hh.tbl) {
			free(m);
			return -ENOMEM;
		}
	}
	m->value = value;
	return 0;
}

/* k:match("^(.*):(%d+)$"), else the file is the whole key. */
static size_t file_length(const struct tally *t, double *line)
{
	size_t n = t->len;

	while (n && t->key[n - 1] >= '0' && t->key[n - 1] <= '9')
		n--;
	*line = 0;
	if (n == t->len || !n || t->key[n - 1] != ':')
		return t->len;
	*line = strtod(t->key + n, NULL);
	return n - 1;
}

static int collect(struct annotator *a, const struct tally *table, uint64_t samples)
{
	for (const struct tally *t = table; t; t = t->next) {
		int percent = tally_percent(t->count, samples);
		struct source_file *file;
		double line;
		size_t len;
		int err;

		if (t->count > a->most)
			a->most = t->count;
		if (percent < a->options->min)
			continue;
		len = file_length(t, &line);
		err = file_of(a, t->key, len, &file);
		if (!err)
			err = mark(file, line,
				   a->options->raw == JITP_COUNTS ? t->count : (uint64_t)percent);
		if (err)
			return err;
	}
	return 0;
}

/* NAME_OTHER is no file and would end the report: it sorts last. */
static int by_name(const struct source_file *a, const struct source_file *b)
{
	bool a_other = !strcmp(a->name, NAME_OTHER), b_other = !strcmp(b->name, NAME_OTHER);

	return a_other != b_other ? a_other - b_other : strcmp(a->name, b->name);
}

static void put_line(struct annotator *a, const struct mark *m, const char *text, size_t len,
		     bool crlf)
{
	text_clear(&a->line);
	if (a->options->raw == JITP_COUNTS && m)
		text_printf(&a->line, "%*" PRIu64 " | ", a->width, m->value);
	else if (a->options->raw == JITP_COUNTS)
		text_printf(&a->line, "%*s | ", a->width, "");
	else if (m)
		text_printf(&a->line, " %3" PRIu64 "%% | ", m->value);
	else
		text_puts(&a->line, "      | ");
	text_put_clean(&a->line, text, len);
	text_puts(&a->line, crlf ? "\r\n" : "\n");
	if (a->line.data)
		fwrite(a->line.data, 1, a->line.len, a->out);
}

/*
 * True if line n is in an excerpt: a line at most CONTEXT away has samples. *until: the last line
 * with samples that the current excerpt has reached; -1: outside of an excerpt.
 */
static bool in_excerpt(struct annotator *a, const struct source_file *f, const struct mark *m,
		       long n, long *until)
{
	bool ahead = mark_at(f, (double)n + a->context) != NULL;

	if (*until >= 0) {
		if (ahead)
			*until = n + a->context;
		else if (m)
			*until = n;
		else if (*until + a->context < n)
			*until = -1;
	} else if (ahead) {
		*until = n + a->context;
		fprintf(a->out, "@@ %ld @@\n", n);
	}
	return *until >= 0;
}

static bool has_changed(const struct source *source, FILE *in)
{
	int fd = fileno(in); /* -1: a test's text */
	struct stat st;

	return source->since_ns && fd >= 0 && !fstat(fd, &st) &&
	       (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec >
		       source->since_ns;
}

/* Says how many lines with samples a file of n lines does not have. */
static void put_behind(const struct annotator *a, const struct source_file *f, long n)
{
	unsigned int behind = 0;

	for (const struct mark *m = f->marks; m; m = m->hh.next)
		behind += m->line > (double)n;
	if (behind)
		fprintf(a->out, "[%u line%s with samples %s behind the file's end]\n", behind,
			behind == 1 ? "" : "s", behind == 1 ? "is" : "are");
}

static void put_file(struct annotator *a, const struct source_file *f, FILE *in)
{
	__free char *buf = NULL;
	size_t cap = 0;
	ssize_t len;
	long until = -1, at = 1;
	bool crlf;

	if (has_changed(a->source, in))
		fputs("[The file was changed after the program had started: its lines may be "
		      "others]\n",
		      a->out);
	for (long n = 1; a->context && n <= a->context && until < 0; n++) {
		if (mark_at(f, n)) {
			until = 1;
			fputs("@@ 1 @@\n", a->out);
		}
	}
	for (; (len = source_line(in, &buf, &cap, &crlf)) >= 0; at++) {
		const struct mark *m = mark_at(f, at);

		if (len && buf[0] == ESC) {
			fputs("[Cannot annotate bytecode file]\n", a->out);
			return;
		}
		if (!a->context || in_excerpt(a, f, m, at, &until))
			put_line(a, m, buf, len, crlf);
	}
	put_behind(a, f, at - 1);
}

/* Prints the file's name, filtered, between `before` and `after`. */
static void put_title(struct annotator *a, const char *before, const struct source_file *f,
		      const char *after)
{
	text_clear(&a->line);
	text_puts(&a->line, before);
	text_put_clean(&a->line, f->name, strlen(f->name));
	text_puts(&a->line, after);
	fputs(text_str(&a->line), a->out);
}

/* False ends the report. */
static bool annotate_file(struct annotator *a, const struct source_file *f)
{
	__fclose FILE *in = NULL;
	int err;

	if (f->name[0] == '(' || f->name[0] == '[') {
		put_title(a, "\n====== ", f, " ======\n[Cannot annotate non-file]\n");
		return false;
	}
	err = a->source->open(a->source->ctx, f->name, &in);
	if (err) {
		put_title(a, "====== ERROR: ", f, ": ");
		put_title(a, "", f, ": ");
		fprintf(a->out, "%s\n", err == -EINVAL ? "not a regular file" : strerror(-err));
		return false;
	}
	put_title(a, "\n====== ", f, " ======\n");
	put_file(a, f, in);
	return true;
}

static int columns(uint64_t most)
{
	double digits = ceil(log10((double)most));

	return digits > 5 ? (int)digits : 5;
}

int annotate_render(struct tally *table, uint64_t samples, const struct jitp_options *o,
		    const struct source *source, FILE *out)
{
	__cleanup(annotator_free) struct annotator a = {
		.context = o->annotate == JITP_EXCERPTS ? CONTEXT : 0,
		.options = o,
		.source = source,
		.out = out,
	};
	int err = collect(&a, table, samples);

	if (err)
		return err;
	a.width = columns(a.most);
	HASH_SORT(a.files, by_name);
	for (const struct source_file *f = a.files; f; f = f->hh.next) {
		if (!annotate_file(&a, f))
			break;
	}
	return text_err(&a.line);
}
