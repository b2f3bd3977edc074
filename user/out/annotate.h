/* SPDX-License-Identifier: BSD-2-Clause */
/* jit.p's annotated source (prof_annotate). Used by jitp.c only. */
#ifndef OUT_ANNOTATE_H
#define OUT_ANNOTATE_H

#include "jitp_options.h"
#include "source.h"
#include "tally.h"

/* `table` has keys "file:line", or keys without a file. 0 or -ENOMEM. */
int annotate_render(struct tally *table, uint64_t samples, const struct jitp_options *o,
		    const struct source *source, FILE *out);

#endif
