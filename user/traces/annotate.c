// SPDX-License-Identifier: BSD-2-Clause
/*
 * Source and bytecode, side by side: each function that has a trace, or a start without one. A line
 * of source is followed by its instructions, in their order. An instruction's traces, starts and
 * exits stand behind it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "bytecode.h"
#include "listing.h"
#include "lua/lj/proto.h"
#include "lua/lj/proto_parts.h"
#include "report.h"

#define ESC 27
#define COLUMN 52	/* of an instruction, at which its marks begin */
#define COVERING_MOST 6 /* traces that are named */
#define MARKS_MOST 12
#define GAP 4 /* so many lines in a row without code are left out */

/* The lines of one file. */
struct source_lines {
	char *text;
	size_t len, *starts, n;
	int err; /* why there are none */
};

struct lister {
	const struct traces_vm *vm;
	const struct traces_shares *shares;
	const struct source *source;
	FILE *to;
	struct source_lines file;
	const char *chunk; /* whose lines these are; NULL: of none */
	struct text line;
};

/* ---- source ---------------------------------------------------------------------------------- */

static void source_lines_free(struct source_lines *s)
{
	free(s->text);
	free(s->starts);
	*s = (struct source_lines){};
}

static int add_line(struct source_lines *s, size_t start)
{
	if (array_grow(&s->starts, s->n, sizeof(*s->starts)))
		return -ENOMEM;
	s->starts[s->n++] = start;
	return 0;
}

/* As source_line(). */
static int split(struct source_lines *s)
{
	int r = s->len ? add_line(s, 0) : 0;

	for (size_t i = 0; i + 1 < s->len && !r; i++) {
		char c = s->text[i], next = s->text[i + 1];

		if (c != '\n' && c != '\r')
			continue;
		i += next != c && (next == '\n' || next == '\r');
		if (i + 1 < s->len)
			r = add_line(s, i + 1);
	}
	return r;
}

/* Copies the text of the chunk: its file, or itself. */
static int read_source(struct lister *a, const struct lj_proto *pt)
{
	struct source_lines *s = &a->file;
	__fclose FILE *in = NULL;
	ssize_t len;
	size_t cap = 0;

	if (*pt->chunkname != '@' && *pt->chunkname != '=') {
		s->text = malloc(pt->chunklen + 1);
		if (!s->text)
			return -ENOMEM;
		memcpy(s->text, pt->chunkname, pt->chunklen + 1);
		s->len = pt->chunklen;
		return 0;
	}
	if (*pt->chunkname == '=' || !a->source)
		return -ENOENT;
	s->err = a->source->open(a->source->ctx, pt->chunkname + 1, &in);
	if (s->err)
		return s->err;
	len = getdelim(&s->text, &cap, '\0', in); /* a NUL ends it */
	s->len = len > 0 ? (size_t)len : 0;
	return s->len && s->text[0] == ESC ? -ENOEXEC : 0;
}

static int load_source(struct lister *a, const struct lj_proto *pt)
{
	if (a->chunk && !strcmp(a->chunk, pt->chunkname))
		return 0;
	source_lines_free(&a->file);
	a->chunk = pt->chunkname;
	a->file.err = pt->firstline < 0 ? -ENOENT : read_source(a, pt);
	if (!a->file.err)
		a->file.err = split(&a->file);
	return a->file.err == -ENOMEM ? -ENOMEM : 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void put_share(struct lister *a, uint64_t n)
{
	double share = a->shares->samples ? 100.0 * (double)n / (double)a->shares->samples : 0;

	if (n)
		text_printf(&a->line, "%8.1f %% ", share);
	else
		text_printf(&a->line, "%10s ", "");
}

/* line: 0: an instruction's row. */
static void put_shares(struct lister *a, const struct lj_proto *pt, int32_t line)
{
	const struct traces_line_share none = {}, *s = &none;

	if (!a->shares)
		return;
	if (line > 0 && traces_line_share(a->shares, pt, line))
		s = traces_line_share(a->shares, pt, line);
	put_share(a, s->compiled);
	put_share(a, s->other);
}

static void put_row(struct lister *a)
{
	text_putc(&a->line, '\n');
	fwrite(text_str(&a->line), 1, a->line.len, a->to);
	text_clear(&a->line);
}

static void put_source(struct lister *a, const struct lj_proto *pt, int32_t line)
{
	const struct source_lines *s = &a->file;
	size_t i = (size_t)line - 1, from, to;

	put_shares(a, pt, line);
	text_printf(&a->line, "%6d | ", line);
	if (!s->err && i < s->n) {
		from = s->starts[i];
		to = i + 1 < s->n ? s->starts[i + 1] : s->len;
		while (to > from && (s->text[to - 1] == '\n' || s->text[to - 1] == '\r'))
			to--;
		text_put_clean(&a->line, s->text + from, to - from);
	}
	put_row(a);
}

/* ---- marks ----------------------------------------------------------------------------------- */

static void put_trace(const struct traces_trace *t, struct text *out)
{
	text_printf(out, "trace %u", t->no);
	if (t->stitched)
		text_printf(out, " (%u/stitch)", t->parent);
	else if (t->parent)
		text_printf(out, " (%u/%u)", t->parent, t->exitno);
	text_puts(out, " starts: ");
	traces_put_link(t, out);
}

static void put_exit(const struct traces_mark *m, struct text *out)
{
	text_printf(out, "exit %u/%u ", m->trace->no, m->exit);
	if (m->side)
		text_printf(out, "-> trace %u", m->side->no);
	else
		text_printf(out, "taken %u time%s", m->trace->exits[m->exit].count,
			    m->trace->exits[m->exit].count == 1 ? "" : "s");
}

static void put_mark(const struct lister *a, const struct traces_mark *m, struct text *out)
{
	switch (m->kind) {
	case TRACES_MARK_TRACE:
		put_trace(m->trace, out);
		break;
	case TRACES_MARK_EXIT:
		put_exit(m, out);
		break;
	case TRACES_MARK_START:
		traces_put_state(m->start, out);
		text_puts(out, m->start->state == TRACES_JIT_OFF ? "" : ": ");
		if (m->start->state != TRACES_JIT_OFF)
			traces_put_reason(a->vm, m->start, out);
		break;
	case TRACES_MARK_CAUSE:
		text_puts(out, "abort of ");
		traces_put_start(m->start, out);
		break;
	case TRACES_MARK_COVERED:
		break;
	}
}

/* "[1 2 5]": the traces that cover the instruction. Returns how many there are. */
static size_t put_covering(const struct traces_mark *marks, size_t n, struct text *out)
{
	size_t i;

	for (i = 0; i < n && marks[i].kind == TRACES_MARK_COVERED; i++)
		if (i < COVERING_MOST)
			text_printf(out, "%s%u", i ? " " : "[", marks[i].trace->no);
	if (i > COVERING_MOST)
		text_printf(out, " +%zu", i - COVERING_MOST);
	text_puts(out, i ? "]" : "");
	return i;
}

static void put_marks(const struct lister *a, const struct lj_proto *pt, uint32_t pos,
		      const struct traces_mark *marks, size_t n, struct text *out)
{
	size_t i = put_covering(marks, n, out), last = i + MARKS_MOST;
	uint32_t was;

	if (traces_was(pt, pos, marks, n, &was)) {
		text_puts(out, out->len ? " was " : "was ");
		traces_put_bytecode(a->vm, pt, pos, was, out);
		text_puts(out, i < n ? ";" : "");
	}
	for (; i < n && i < last; i++) {
		text_puts(out, out->len ? " " : "");
		put_mark(a, &marks[i], out);
		text_puts(out, i + 1 < n ? ";" : "");
	}
	if (i < n)
		text_printf(out, " +%zu", n - i);
}

static void put_ins(struct lister *a, const struct lj_proto *pt, uint32_t pos, bool target,
		    const struct traces_mark *marks, size_t n)
{
	__text struct text said = {};
	size_t from;

	put_shares(a, pt, 0);
	text_printf(&a->line, "%6s |   ", "");
	from = a->line.len;
	text_printf(&a->line, "%04u %s ", pos, target ? "=>" : "  ");
	traces_put_bytecode(a->vm, pt, pos, lj_proto_ins(pt, pos), &a->line);
	put_marks(a, pt, pos, marks, n, &said);
	if (said.len) {
		size_t width = a->line.len - from;

		text_printf(&a->line, "%*s  %s", width < COLUMN ? (int)(COLUMN - width) : 0, "",
			    text_str(&said));
	}
	a->line.err = a->line.err ? a->line.err : text_err(&said);
	put_row(a);
}

/* ---- functions ------------------------------------------------------------------------------- */

/* The instructions of a function by line, those of one line in their order. */
struct by_line {
	int32_t line;
	uint32_t pos;
};

static int compare_lines(const void *a, const void *b)
{
	const struct by_line *x = a, *y = b;

	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return x->pos < y->pos ? -1 : x->pos > y->pos;
}

static struct by_line *by_line(const struct lj_proto *pt)
{
	struct by_line *order = calloc(pt->sizebc + 1UL, sizeof(*order));

	for (uint32_t i = 0; order && i < pt->sizebc; i++)
		order[i] = (struct by_line){lj_proto_line(pt, i), i};
	if (order)
		qsort(order, pt->sizebc, sizeof(*order), compare_lines);
	return order;
}

static void put_title(struct lister *a, const struct lj_proto *pt)
{
	const struct traces_lines lines = {pt, pt->firstline, pt->firstline + (int32_t)pt->numline};
	struct traces_place at = {.pt = pt};

	text_puts(&a->line, "\n====== ");
	if (*pt->chunkname == '@' && pt->firstline >= 0)
		text_put_utf8(&a->line, pt->chunkname + 1, pt->chunklen - 1);
	else
		traces_put_place(&at, &a->line);
	if (pt->firstline >= 0) {
		text_putc(&a->line, ':');
		traces_put_range(&lines, &a->line);
	}
	text_puts(&a->line, " ======");
	put_row(a);
	if (a->file.err && pt->firstline >= 0)
		fprintf(a->to, "[No source: %s]\n",
			a->file.err == -ENOEXEC ? "the file is bytecode"
			: !a->source		? "its process had ended, or cannot be looked into"
						: strerror(-a->file.err));
	else if (!a->file.err &&
		 (size_t)lines.to > a->file.n + 1) /* a chunk ends behind its last line */
		fprintf(a->to, "[The source has %zu lines: it has changed]\n", a->file.n);
	if (a->shares)
		fprintf(a->to, "%10s %10s %6s |\n", "compiled", "other", "");
}

/* Source lines behind `from` up to `to`; lines without code in a row are cut short. */
static void put_sources(struct lister *a, const struct lj_proto *pt, int32_t from, int32_t to)
{
	if (from && to - from > GAP) {
		put_source(a, pt, from + 1);
		put_shares(a, pt, 0);
		text_printf(&a->line, "%6s |", "...");
		put_row(a);
		from = to - 2;
	}
	if (a->file.err || !from)
		from = to - 1;
	while (from < to)
		put_source(a, pt, ++from);
}

static size_t skip_marks(const struct traces_listed *f, uint32_t pos)
{
	size_t lo = 0, hi = f->nmarks;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (f->marks[mid].bcpos < pos)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int put_function(struct lister *a, const struct traces_listed *f)
{
	bool *targets __cleanup(cleanup_free) = traces_jump_targets(f->pt);
	struct by_line *order __cleanup(cleanup_free) = by_line(f->pt);
	int r = targets && order ? load_source(a, f->pt) : -ENOMEM;
	int32_t line = 0;

	if (r)
		return r;
	put_title(a, f->pt);
	for (uint32_t i = 0; i < f->pt->sizebc; i++) {
		uint32_t pos = order[i].pos;
		size_t from = skip_marks(f, pos), to = skip_marks(f, pos + 1);

		if (order[i].line > line)
			put_sources(a, f->pt, line, order[i].line);
		if (order[i].line > line)
			line = order[i].line;
		put_ins(a, f->pt, pos, targets[pos], &f->marks[from], to - from);
	}
	return text_err(&a->line);
}

/* Traces whose bytecode the line attribution cannot follow, or that there was no room for. */
static void print_uncovered(const struct traces_vm *vm, FILE *to)
{
	size_t n = 0;

	for (size_t i = 0; i < vm->ntraces; i++)
		n += !vm->traces[i].gone && !vm->traces[i].ncovered;
	if (n)
		fprintf(to,
			"of %zu trace%s it is not known which bytecode %s: no [N] stands behind "
			"it\n",
			n, n == 1 ? "" : "s", n == 1 ? "it covers" : "they cover");
}

int traces_annotate(const struct traces_vm *vm, const struct traces_shares *shares,
		    const struct source *source, FILE *to)
{
	struct lister a = {.vm = vm, .shares = shares, .source = source, .to = to};
	struct traces_listing l __cleanup(traces_listing_free) = {};
	int r = traces_listing_new(vm, &l);

	if (!r)
		print_uncovered(vm, to);
	if (l.left_out)
		fprintf(to, "%zu function%s too large to be listed\n", l.left_out,
			l.left_out == 1 ? " is" : "s are");
	if (l.left_out_marks)
		fprintf(to, "%zu marks of instructions are left out\n", l.left_out_marks);
	for (size_t i = 0; i < l.n && !r; i++)
		r = put_function(&a, &l.functions[i]);
	source_lines_free(&a.file);
	text_free(&a.line);
	return r;
}
