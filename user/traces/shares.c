// SPDX-License-Identifier: BSD-2-Clause
#include "shares.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "listing.h"
#include "lua/lj/proto_parts.h"
#include "reader.h"

/* True if the frame is of this function: chunk and first line decide identity. */
static bool is_frame_of(const struct prof_frame *f, const struct lj_proto *pt)
{
	return f->kind == PROF_LUA && f->chunk && f->firstline == pt->firstline &&
	       !strcmp(f->chunk, pt->chunkname);
}

/* True if a is a better match for the line than b: the smaller of two nested loops. */
static bool is_inner(const struct traces_start *a, const struct traces_start *b)
{
	if (!b || a->kind != b->kind)
		return !b || a->kind == TRACES_LOOP;
	return a->lines.to - a->lines.from < b->lines.to - b->lines.from;
}

static struct traces_start *start_of(struct traces_vm *vm, const struct prof_frame *f)
{
	struct traces_start *best = NULL;

	for (size_t i = 0; i < vm->nstarts; i++) {
		struct traces_start *s = &vm->starts[i];

		if (s->gone || !is_frame_of(f, s->at.pt) ||
		    (s->kind == TRACES_LOOP && (f->line < s->lines.from || f->line > s->lines.to)))
			continue;
		if (is_inner(s, best))
			best = s;
	}
	return best;
}

struct sharing {
	struct traces_vm *vm;
	const struct prof *prof;
	struct traces_shares *shares;
	uint32_t *newest;	      /* by number: index + 1 of the trace */
	uint32_t *before;	      /* by index: that of the one before with its number */
	struct traces_start **starts; /* by frame */
};

static void add_interpreted(const struct sharing *s, const struct prof_row *row)
{
	struct traces_start *start = NULL;

	for (size_t i = 0; i < row->nframes && !start; i++)
		start = s->starts[row->frames[i]];
	if (start)
		start->samples += row->count;
	else
		s->shares->no_reason += row->count;
}

static bool covers(const struct traces_trace *t, const struct prof_frame *f)
{
	for (size_t i = 0; i < t->nlines; i++)
		if (is_frame_of(f, t->lines[i].pt) && f->line >= t->lines[i].from &&
		    f->line <= t->lines[i].to)
			return true;
	return false;
}

/* Adds to the newest trace of the number that covers a frame, else to the newest. */
static void add_compiled(const struct sharing *s, const struct prof_row *row)
{
	uint32_t no = row->labels.trace, newest = no < TRACES_NUMBERS ? s->newest[no] : 0, i;
	const struct prof_frame *top = row->nframes ? prof_frame(s->prof, row->frames[0]) : NULL;

	for (i = newest; i && top && !covers(&s->vm->traces[i - 1], top);)
		i = s->before[i - 1];
	if (!i)
		i = newest;
	if (i)
		s->vm->traces[i - 1].samples += row->count;
	else
		s->shares->no_trace += row->count;
}

static void add_row(const struct sharing *s, const struct prof_row *row)
{
	struct traces_shares *shares = s->shares;

	shares->samples += row->count;
	switch (row->labels.vmstate) {
	case 'N':
		shares->compiled += row->count;
		add_compiled(s, row);
		break;
	case 'I':
		shares->interpreted += row->count;
		add_interpreted(s, row);
		break;
	case 'C':
		shares->c += row->count;
		break;
	case 'G':
		shares->collector += row->count;
		break;
	default:
		shares->compiler += row->count;
		break;
	}
}

/* ---- lines ----------------------------------------------------------------------------------- */

static int compare_functions(const struct lj_proto *a, const struct lj_proto *b)
{
	if (a->firstline != b->firstline)
		return a->firstline < b->firstline ? -1 : 1;
	return a == b ? 0 : strcmp(a->chunkname, b->chunkname);
}

static int compare_lines(const void *a, const void *b)
{
	const struct traces_line_share *x = a, *y = b;
	int r = compare_functions(x->pt, y->pt);

	return r ? r : x->line < y->line ? -1 : x->line > y->line;
}

static int compare_listed(const void *a, const void *b)
{
	return compare_functions(((const struct traces_listed *)a)->pt,
				 ((const struct traces_listed *)b)->pt);
}

/* Finds a listed function with the frame's chunk and first line: they are sorted so. */
static const struct lj_proto *listed(const struct traces_listing *l, const struct prof_frame *f)
{
	size_t lo = 0, hi = l->n;

	if (f->kind != PROF_LUA || !f->chunk)
		return NULL;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		const struct lj_proto *pt = l->functions[mid].pt;
		int r = pt->firstline != f->firstline ? (pt->firstline < f->firstline ? -1 : 1)
						      : strcmp(pt->chunkname, f->chunk);

		if (!r)
			return pt;
		if (r < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

/* The rows of a line are added up. */
static void merge_lines(struct traces_shares *shares)
{
	size_t n = 0;

	if (shares->nlines)
		qsort(shares->lines, shares->nlines, sizeof(*shares->lines), compare_lines);
	for (size_t i = 0; i < shares->nlines; i++) {
		struct traces_line_share *to = n ? &shares->lines[n - 1] : NULL;

		if (!to || compare_lines(to, &shares->lines[i])) {
			shares->lines[n++] = shares->lines[i];
			continue;
		}
		to->compiled += shares->lines[i].compiled;
		to->other += shares->lines[i].other;
	}
	shares->nlines = n;
}

static int share_lines(const struct traces_vm *vm, const struct prof *prof, traces_is_of_fn *is_of,
		       void *arg, struct traces_shares *shares)
{
	struct traces_listing l __cleanup(traces_listing_free) = {};
	int r = traces_listing_new(vm, &l);

	if (l.n)
		qsort(l.functions, l.n, sizeof(*l.functions), compare_listed);
	for (size_t i = 0; i < prof_nrows(prof) && !r; i++) {
		const struct prof_frame *top;
		const struct lj_proto *pt;
		struct prof_row row;

		prof_row(prof, i, &row);
		top = row.nframes ? prof_frame(prof, row.frames[0]) : NULL;
		pt = top && is_of(arg, &row.labels) ? listed(&l, top) : NULL;
		if (!pt)
			continue;
		r = array_grow(&shares->lines, shares->nlines, sizeof(*shares->lines));
		if (!r)
			shares->lines[shares->nlines++] = (struct traces_line_share){
				.pt = pt,
				.line = top->line,
				.compiled = row.labels.vmstate == 'N' ? row.count : 0,
				.other = row.labels.vmstate == 'N' ? 0 : row.count,
			};
	}
	merge_lines(shares);
	return r;
}

void traces_shares_free(struct traces_shares *shares)
{
	free(shares->lines);
	*shares = (struct traces_shares){};
}

const struct traces_line_share *traces_line_share(const struct traces_shares *shares,
						  const struct lj_proto *pt, int32_t line)
{
	const struct traces_line_share key = {.pt = pt, .line = line};

	return shares->nlines
		       ? bsearch(&key, shares->lines, shares->nlines, sizeof(key), compare_lines)
		       : NULL;
}

/* ---- traces and starts ----------------------------------------------------------------------- */

int traces_share(struct traces_vm *vm, const struct prof *prof, traces_is_of_fn *is_of, void *arg,
		 struct traces_shares *shares)
{
	uint32_t *newest __cleanup(cleanup_free) = calloc(TRACES_NUMBERS, sizeof(*newest));
	uint32_t *before __cleanup(cleanup_free) = calloc(vm->ntraces + 1, sizeof(*before));
	struct traces_start **starts __cleanup(cleanup_free) =
		calloc(prof_nframes(prof) + 1, sizeof(*starts));
	const struct sharing s = {vm, prof, shares, newest, before, starts};

	traces_shares_free(shares);
	if (!newest || !before || !starts)
		return -ENOMEM;
	for (size_t i = 0; i < vm->ntraces; i++) {
		vm->traces[i].samples = 0;
		before[i] = newest[vm->traces[i].no];
		newest[vm->traces[i].no] = (uint32_t)i + 1;
	}
	for (size_t i = 0; i < vm->nstarts; i++)
		vm->starts[i].samples = 0;
	for (size_t i = 0; i < prof_nframes(prof); i++)
		starts[i] = start_of(vm, prof_frame(prof, (uint32_t)i));
	for (size_t i = 0; i < prof_nrows(prof); i++) {
		struct prof_row row;

		prof_row(prof, i, &row);
		if (is_of(arg, &row.labels))
			add_row(&s, &row);
	}
	return share_lines(vm, prof, is_of, arg, shares);
}
