// SPDX-License-Identifier: BSD-2-Clause
#include "vm_modules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int vm_modules_set(struct vm_modules *ms, const struct lb_module *at, uint32_t n)
{
	vm_modules_free(ms);
	if (!n)
		return 0;
	ms->at = malloc(n * sizeof(*at));
	if (!ms->at)
		return -ENOMEM;
	memcpy(ms->at, at, n * sizeof(*at));
	ms->n = n;
	return 0;
}

void vm_modules_free(struct vm_modules *ms)
{
	free(ms->at);
	*ms = (struct vm_modules){};
}

static bool is_same(const struct lb_module *a, const struct lb_module *b)
{
	struct lb_module copy = *b;

	copy.id = a->id;
	return !memcmp(a, &copy, sizeof(copy));
}

bool vm_modules_has(const struct vm_modules *ms, const struct lb_module *m)
{
	for (uint32_t i = 0; i < ms->n; i++)
		if (is_same(&ms->at[i], m))
			return true;
	return false;
}

static bool overlaps(const struct lb_module *a, const struct lb_module *b)
{
	return a->text_lo < b->text_hi && b->text_lo < a->text_hi;
}

static int put(struct vm_modules *ms, uint32_t id, const struct lb_module *m)
{
	ms->at[id] = *m;
	ms->at[id].id = (uint8_t)id;
	return 1;
}

int vm_modules_add(struct vm_modules *ms, const struct lb_module *m)
{
	struct lb_module *at;

	for (uint32_t i = 0; i < ms->n; i++) {
		if (is_same(&ms->at[i], m))
			return 0;
		if (overlaps(&ms->at[i], m))
			return put(ms, i, m);
	}
	if (ms->n == LB_MODULES_MOST)
		return -ENOSPC;
	at = reallocarray(ms->at, ms->n + 1, sizeof(*at));
	if (!at)
		return -ENOMEM;
	ms->at = at;
	return put(ms, ms->n++, m);
}
