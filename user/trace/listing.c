// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <string.h>

#include "listing_priv.h"

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
