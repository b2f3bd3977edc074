// SPDX-License-Identifier: BSD-2-Clause
#include "shares.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "lua/lj/proto_priv.h"
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

int traces_share(struct traces_vm *vm, const struct prof *prof, traces_is_of_fn *is_of, void *arg,
		 struct traces_shares *shares)
{
	uint32_t *newest __cleanup(cleanup_free) = calloc(TRACES_NUMBERS, sizeof(*newest));
	uint32_t *before __cleanup(cleanup_free) = calloc(vm->ntraces + 1, sizeof(*before));
	struct traces_start **starts __cleanup(cleanup_free) =
		calloc(prof_nframes(prof) + 1, sizeof(*starts));
	const struct sharing s = {vm, prof, shares, newest, before, starts};

	*shares = (struct traces_shares){};
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
	return 0;
}
