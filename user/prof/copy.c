// SPDX-License-Identifier: BSD-2-Clause
#include "copy.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define NOT_COPIED UINT32_MAX

struct copy {
	const struct prof *from;
	struct prof *to;
	uint32_t *ids;	   /* of the copy, by id */
	uint32_t *origins; /* the same */
	uint32_t *stack;
	size_t cap; /* of the stack */
};

static void copy_free(struct copy *c)
{
	free(c->ids);
	free(c->origins);
	free(c->stack);
	prof_free(&c->to);
}

static int copy_frame(struct copy *c, uint32_t id, uint32_t *out)
{
	int r = 0;

	if (c->ids[id] == NOT_COPIED)
		r = prof_frame_id(c->to, prof_frame(c->from, id), &c->ids[id]);
	*out = c->ids[id];
	return r;
}

static int copy_origin(struct copy *c, uint32_t id, uint32_t *out)
{
	int r = 0;

	if (c->origins[id] == NOT_COPIED)
		r = prof_origin_id(c->to, prof_origin(c->from, id), &c->origins[id]);
	*out = c->origins[id];
	return r;
}

static int copy_row(struct copy *c, const struct prof_row *row, const struct prof_frame *root)
{
	struct prof_labels labels = row->labels;
	size_t n = row->nframes;
	int r = 0;

	if (n + 1 > c->cap) {
		uint32_t *more = reallocarray(c->stack, n + 1, sizeof(*more));

		if (!more)
			return -ENOMEM;
		c->stack = more;
		c->cap = n + 1;
	}
	for (size_t i = 0; i < n && !r; i++)
		r = copy_frame(c, row->frames[i], &c->stack[i]);
	if (!r && root->symbol)
		r = prof_frame_id(c->to, root, &c->stack[n++]);
	if (!r)
		r = copy_origin(c, row->labels.origin, &labels.origin);
	return r ? r : prof_add(c->to, c->stack, n, &labels, row->count);
}

int prof_copy(const struct prof *prof, prof_copy_fn *fn, void *arg, struct prof **out)
{
	__cleanup(copy_free) struct copy c = {.from = prof};
	size_t nframes = prof_nframes(prof), norigins = prof_norigins(prof);
	int r = prof_new(&c.to);

	if (r)
		return r;
	*prof_meta(c.to) = *prof_meta_of(prof);
	c.ids = calloc(nframes + 1, sizeof(*c.ids));
	c.origins = calloc(norigins, sizeof(*c.origins));
	if (!c.ids || !c.origins)
		return -ENOMEM;
	for (size_t i = 0; i < nframes; i++)
		c.ids[i] = NOT_COPIED;
	for (size_t i = 0; i < norigins; i++)
		c.origins[i] = NOT_COPIED;
	for (size_t i = 0; i < prof_nrows(prof) && !r; i++) {
		struct prof_frame root = {.kind = PROF_C, .line = -1};
		struct prof_row row;

		prof_row(prof, i, &row);
		if (fn(arg, &row, &root))
			r = copy_row(&c, &row, &root);
	}
	if (!r)
		*out = TAKE_PTR(c.to);
	return r;
}
