// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>

#include "fail_each.h"

static const struct {
	enum fail_mode mode;
	bool uncached;
} ways[] = {
	{FAIL_ONCE, false}, {FAIL_AFTER, false}, {FAIL_THERE, false},
	{FAIL_ONCE, true},  {FAIL_AFTER, true},	 {FAIL_THERE, true},
};

void fail_each_init(struct fail_each *f, const struct lb_mem *under)
{
	*f = (struct fail_each){.under = under};
}

bool fail_each_next(struct fail_each *f)
{
	if (f->reads > f->total)
		f->total = f->reads;
	if (!f->mem.under) { /* the first */
		f->k = 0;
	} else if (++f->k >= f->total) {
		f->k = f->total = 0;
		f->way++;
	}
	if (f->way == sizeof(ways) / sizeof(ways[0]))
		return false;
	mem_failing_init(&f->mem, f->under, ways[f->way].mode, ways[f->way].uncached, f->k,
			 &f->reads, &f->where);
	return true;
}

const char *fail_each_tell(const struct fail_each *f, char *text, size_t size)
{
	snprintf(text, size, "mode %d%s, read %u at %#lx", ways[f->way].mode,
		 ways[f->way].uncached ? ", uncached" : "", f->k, (unsigned long)f->where);
	return text;
}
