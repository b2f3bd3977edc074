/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joins a profile's samples with traces and starts: how much time each trace takes, and how much
 * time is interpreted because a start has no trace.
 */
#ifndef TRACES_SHARES_H
#define TRACES_SHARES_H

#include <stdbool.h>

#include "prof/prof.h"
#include "traces.h"

/* The samples that had a line on top. */
struct traces_line_share {
	const struct lj_proto *pt; /* one of those with its chunk and first line */
	int32_t line;
	uint64_t compiled, other;
};

struct traces_shares {
	uint64_t samples; /* of this VM; 0: none was taken */
	/* by state; their sum is samples */
	uint64_t compiled, interpreted, c, collector, compiler;
	uint64_t no_trace;  /* of compiled: of a trace that was gone before it was read */
	uint64_t no_reason; /* of interpreted: below no start that has no trace */
	struct traces_line_share *lines; /* of the listed functions, by function and line */
	size_t nlines;
};

/* True if a row of the profile is of this VM. */
typedef bool traces_is_of_fn(void *arg, const struct prof_labels *labels);

/*
 * Returns 0 or -ENOMEM. Counts a profile's rows in *shares, which is all zero or of an earlier call, and in `samples` of the VM's traces and starts. A sample of a
 * trace's number counts for the newest trace of this number that covers the sample's line. An interpreted sample counts for the
 * start that is nearest to the top of its stack: the innermost loop that contains the frame's line,
 * else the frame's function.
 */
int traces_share(struct traces_vm *vm, const struct prof *prof, traces_is_of_fn *is_of, void *arg,
		 struct traces_shares *shares);

void traces_shares_free(struct traces_shares *shares);

/* Returns a line's samples; NULL: it had none. */
const struct traces_line_share *traces_line_share(const struct traces_shares *shares,
						  const struct lj_proto *pt, int32_t line);

#endif
