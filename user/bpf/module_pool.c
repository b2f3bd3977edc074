// SPDX-License-Identifier: BSD-2-Clause
#include "module_pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "base/cleanup.h"

static int by_address(const void *a, const void *b)
{
	const struct lb_module *x = *(const struct lb_module *const *)a;
	const struct lb_module *y = *(const struct lb_module *const *)b;

	return (x->text_lo > y->text_lo) - (x->text_lo < y->text_lo);
}

/* Returns a copy with ids and order. */
static struct lb_module *ordered(const struct lb_module *modules, uint32_t n)
{
	struct lb_module *copy = malloc(n * sizeof(*copy)), *at[LB_MODULES_MOST];
	uint32_t i;

	if (!copy)
		return NULL;
	for (i = 0; i < n; i++) {
		copy[i] = modules[i];
		copy[i].id = (uint8_t)i;
		at[i] = &copy[i];
	}
	qsort(at, n, sizeof(*at), by_address);
	for (i = 0; i < n; i++)
		copy[i].order = at[i]->id;
	return copy;
}

/* Returns the first of a range that holds n; LB_MODULES_POOL: none. *after: the block before it, or NULL. */
static uint32_t find_range(const struct module_pool *p, uint32_t n, struct module_block **after)
{
	struct module_block *b;
	uint32_t first = 0;

	*after = NULL;
	DL_FOREACH(p->blocks, b)
	{
		if (b->first - first >= n)
			return first;
		first = b->first + b->n;
		*after = b;
	}
	return LB_MODULES_POOL - first >= n ? first : LB_MODULES_POOL;
}

static struct module_block *find_equal(const struct module_pool *p, const struct lb_module *modules,
				       uint32_t n)
{
	struct module_block *b;

	DL_FOREACH(p->blocks, b)
	{
		if (b->n == n && !memcmp(b->modules, modules, n * sizeof(*modules)))
			return b;
	}
	return NULL;
}

int module_pool_hold(struct module_pool *p, const struct lb_module *modules, uint32_t n,
		     const struct module_block **out, bool *is_new)
{
	struct lb_module *copy __free = ordered(modules, n);
	struct module_block *b, *after;
	uint32_t first;

	if (!copy)
		return -ENOMEM;
	b = find_equal(p, copy, n);
	*is_new = !b;
	if (!b) {
		first = find_range(p, n, &after);
		if (first == LB_MODULES_POOL)
			return -ENOSPC;
		b = calloc(1, sizeof(*b));
		if (!b)
			return -ENOMEM;
		*b = (struct module_block){.first = first, .n = n, .modules = TAKE_PTR(copy)};
		DL_APPEND_ELEM(p->blocks, after, b);
	}
	b->users++;
	*out = b;
	return 0;
}

static struct module_block *find(const struct module_pool *p, uint32_t first)
{
	struct module_block *b;

	DL_SEARCH_SCALAR(p->blocks, b, first, first);
	return b;
}

bool module_pool_share(struct module_pool *p, uint32_t first)
{
	struct module_block *b = find(p, first);

	if (b)
		b->users++;
	return b;
}

static void free_block(struct module_pool *p, struct module_block *b)
{
	DL_DELETE(p->blocks, b);
	free(b->modules);
	free(b);
}

void module_pool_drop(struct module_pool *p, uint32_t first)
{
	struct module_block *b = find(p, first);

	if (b && !--b->users)
		free_block(p, b);
}

void module_pool_free(struct module_pool *p)
{
	while (p->blocks)
		free_block(p, p->blocks);
}
