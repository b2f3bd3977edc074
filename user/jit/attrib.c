// SPDX-License-Identifier: BSD-2-Clause
/*
 * The phases of line attribution, in order: copy the trace, search for the bytecode that was
 * recorded, assign the machine code (jit.h).
 */
#include <errno.h>
#include <stdlib.h>

#include "attrib_mcode.h"
#include "base/cleanup.h"
#include "jit.h"
#include "read.h"
#include "search.h"

int lj_trace_read_wanted(const struct lb_mem *mem, const struct lj_layout *lj, uint64_t g,
			 const struct lj_trace_wanted *wanted, const struct lj_ffnames *names,
			 struct lj_trace **out)
{
	struct lj_trace *t __cleanup(lj_trace_free) = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	r = lj_trace_copy(t, mem, lj, g, wanted);
	if (!r)
		r = lj_trace_path(t, mem, lj, g, names);
	if (!r && !lj_trace_remains(t, mem, g, wanted))
		r = -ESTALE;
	if (!r)
		r = lj_trace_assign(t);
	if (r)
		return r;
	lj_trace_keep_lookup(t);
	*out = TAKE_PTR(t);
	return 0;
}

int lj_trace_read(const struct lb_mem *mem, const struct lj_layout *lj, uint64_t g,
		  uint32_t traceno, const struct lj_ffnames *names, struct lj_trace **out)
{
	const struct lj_trace_wanted wanted = {.no = traceno};

	return lj_trace_read_wanted(mem, lj, g, &wanted, names, out);
}
