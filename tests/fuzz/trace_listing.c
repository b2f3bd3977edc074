// SPDX-License-Identifier: BSD-2-Clause
/* Any bytes as a dumped function: lines that can run are ascending, none is below 1; functions are held by later ones. */
#include <stdlib.h>

#include "trace/listing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct listing listing;

	if (listing_parse(data, size, &listing))
		return 0;
	if (!listing.n || listing.root >= listing.n || listing.n > LISTING_FUNCTIONS_MAX)
		abort();
	for (size_t i = 0; i < listing.n; i++) {
		const struct listing_function *f = &listing.functions[i];

		if (f->first < 0 || f->last < 0 || f->outer < i || f->outer >= listing.n)
			abort();
		for (size_t l = 0; l < f->nlines; l++)
			if (!f->lines[l] || (l && f->lines[l] <= f->lines[l - 1]))
				abort();
	}
	listing_free(&listing);
	return 0;
}
