// SPDX-License-Identifier: BSD-2-Clause
#include "listing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "lua/lj/proto_parts.h"

#define MARKS_MOST (4u << 20)
#define INS_MOST (1u << 20) /* of all functions */

static int add(struct traces_listing *l, struct traces_mark mark)
{
	if (!mark.pt || mark.bcpos >= mark.pt->sizebc)
		return 0;
	if (l->nmarks == MARKS_MOST) {
		l->left_out_marks++;
		return 0;
	}
	if (array_grow(&l->marks, l->nmarks, sizeof(*l->marks)))
		return -ENOMEM;
	l->marks[l->nmarks++] = mark;
	return 0;
}

/* The side trace that starts at an exit: `sides` has them all, by parent and exit. */
struct side {
	uint32_t parent, exit;
	const struct traces_trace *trace;
};

static int compare_sides(const void *a, const void *b)
{
	const struct side *x = a, *y = b;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	return x->exit < y->exit ? -1 : x->exit > y->exit;
}

static struct side *sides_of(const struct traces_vm *vm, size_t *n)
{
	struct side *sides = calloc(vm->ntraces + 1, sizeof(*sides));

	*n = 0;
	for (size_t i = 0; sides && i < vm->ntraces; i++) {
		const struct traces_trace *t = &vm->traces[i];

		if (!t->gone && t->parent && !t->stitched)
			sides[(*n)++] = (struct side){t->parent, t->exitno, t};
	}
	if (sides)
		qsort(sides, *n, sizeof(*sides), compare_sides);
	return sides;
}

static int add_exits(struct traces_listing *l, const struct traces_trace *t,
		     const struct side *sides, size_t nsides)
{
	int r = 0;

	for (uint32_t i = 0; i < t->snapshots && !r; i++) {
		const struct traces_exit *e = &t->exits[i];
		const struct side key = {t->no, i, NULL};
		const struct side *side = bsearch(&key, sides, nsides, sizeof(key), compare_sides);

		if (side || (e->count && e->count != TRACES_EXIT_DONE))
			r = add(l, (struct traces_mark){.pt = e->at.pt,
							.bcpos = e->at.bcpos,
							.kind = TRACES_MARK_EXIT,
							.trace = t,
							.exit = i,
							.side = side ? side->trace : NULL});
	}
	return r;
}

static int add_trace(struct traces_listing *l, const struct traces_trace *t,
		     const struct side *sides, size_t nsides)
{
	int r = add(l, (struct traces_mark){.pt = t->start.pt,
					    .bcpos = t->start.bcpos,
					    .kind = TRACES_MARK_TRACE,
					    .trace = t});

	for (size_t i = 0; i < t->ncovered && !r; i++)
		r = add(l, (struct traces_mark){.pt = t->covered[i].pt,
						.bcpos = t->covered[i].bcpos,
						.kind = TRACES_MARK_COVERED,
						.trace = t});
	return r ? r : add_exits(l, t, sides, nsides);
}

static int add_start(struct traces_listing *l, const struct traces_start *s)
{
	int r = add(l, (struct traces_mark){.pt = s->at.pt,
					    .bcpos = s->at.bcpos,
					    .kind = TRACES_MARK_START,
					    .start = s});

	if (!r && s->has_cause)
		r = add(l, (struct traces_mark){.pt = s->cause.pt,
						.bcpos = s->cause.bcpos,
						.kind = TRACES_MARK_CAUSE,
						.start = s});
	return r;
}

static int compare_functions(const struct lj_proto *a, const struct lj_proto *b)
{
	int r = a == b ? 0 : strcmp(a->chunkname, b->chunkname);

	if (!r && a->firstline != b->firstline)
		r = a->firstline < b->firstline ? -1 : 1;
	return r ? r : a < b ? -1 : a > b;
}

static int compare_marks(const void *a, const void *b)
{
	const struct traces_mark *x = a, *y = b;
	int r = compare_functions(x->pt, y->pt);

	if (!r && x->bcpos != y->bcpos)
		r = x->bcpos < y->bcpos ? -1 : 1;
	if (!r && x->kind != y->kind)
		r = x->kind < y->kind ? -1 : 1;
	if (!r && x->trace && x->trace->no != y->trace->no)
		r = x->trace->no < y->trace->no ? -1 : 1;
	return r ? r : x->exit < y->exit ? -1 : x->exit > y->exit;
}

/* Makes a function of each run of marks of one. */
static int divide(struct traces_listing *l)
{
	size_t i, from, ins = 0;

	for (from = 0; from < l->nmarks; from = i) {
		const struct lj_proto *pt = l->marks[from].pt;

		for (i = from; i < l->nmarks && l->marks[i].pt == pt; i++)
			;
		if (ins + pt->sizebc > INS_MOST) {
			l->left_out++;
			continue;
		}
		ins += pt->sizebc;
		if (array_grow(&l->functions, l->n, sizeof(*l->functions)))
			return -ENOMEM;
		l->functions[l->n++] = (struct traces_listed){pt, &l->marks[from], i - from};
	}
	return 0;
}

int traces_listing_new(const struct traces_vm *vm, struct traces_listing *out)
{
	struct traces_listing l __cleanup(traces_listing_free) = {};
	size_t nsides;
	struct side *sides __cleanup(cleanup_free) = sides_of(vm, &nsides);
	int r = sides ? 0 : -ENOMEM;

	for (size_t i = 0; i < vm->ntraces && !r; i++)
		if (!vm->traces[i].gone)
			r = add_trace(&l, &vm->traces[i], sides, nsides);
	for (size_t i = 0; i < vm->nstarts && !r; i++)
		if (!vm->starts[i].gone)
			r = add_start(&l, &vm->starts[i]);
	if (!r && l.nmarks)
		qsort(l.marks, l.nmarks, sizeof(*l.marks), compare_marks);
	if (!r)
		r = divide(&l);
	if (r)
		return r;
	*out = l;
	l = (struct traces_listing){};
	return 0;
}

void traces_listing_free(struct traces_listing *l)
{
	free(l->functions);
	free(l->marks);
	*l = (struct traces_listing){};
}
