// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <string.h>

#include "listing_priv.h"

/* Functions are in postorder, so that their numbers of inner ones make a tree of them. */
static int join(struct listing *listing)
{
	struct listing_function *all = listing->functions;
	__free size_t *open = calloc(listing->n + 1, sizeof(*open)); /* no outer one has come yet */
	size_t n = 0;

	if (!open)
		return -ENOMEM;
	for (size_t i = 0; i < listing->n; i++) {
		size_t first = all[i].ninner <= n ? n - all[i].ninner : n;

		all[i].outer = i;
		for (size_t k = first; k < n; k++) {
			const struct listing_function *prev = k > first ? &all[open[k - 1]] : NULL;
			struct listing_function *f = &all[open[k]];

			f->outer = i;
			f->before = prev && prev->last == f->first ? prev->before + 1 : 0;
		}
		n = first;
		open[n++] = i;
	}
	return 0;
}

int listing_parse(const uint8_t *bytes, size_t len, struct listing *out)
{
	__listing struct listing listing = {};
	struct dump_cursor c = {.at = bytes, .end = bytes + len};
	int ret = -EBADMSG;

	if (len > 4 && !memcmp(bytes, "\033Lua", 4))
		ret = listing_parse_puc(&c, &listing);
	else if (len > 4 && !memcmp(bytes, "\033LJ\002", 4))
		ret = listing_parse_lj(&c, &listing);
	if (ret)
		return ret;
	if (c.bad || !listing.n)
		return -EBADMSG;
	ret = join(&listing);
	if (ret)
		return ret;
	*out = listing;
	listing = (struct listing){};
	return 0;
}

void listing_free(struct listing *listing)
{
	for (size_t i = 0; i < listing->n; i++)
		free(listing->functions[i].lines);
	free(listing->functions);
	*listing = (struct listing){};
}
