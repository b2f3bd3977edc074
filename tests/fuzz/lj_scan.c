// SPDX-License-Identifier: BSD-2-Clause
/* Any bytes as machine code of LuaJIT's VM: what is looked for in it lies inside them. */
#include <stdint.h>
#include <stdlib.h>

#include "arch/lj_jumps.h"
#include "detect/lj/sites.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct lj_site sites[4096];
	/* its own allocation, so that a bit too far is seen */
	uint8_t *jumps = calloc(size / 8 + 1, 1);
	uint32_t lo = 0, hi = 0;
	size_t n = 0;
	bool gc32 = size & 1;

	if (!jumps)
		return 0;
	lj_jumps_scan(data, size, gc32, jumps);
	lj_links_scan(data, size, gc32, jumps);
	free(jumps);
	lj_exit_scan(data, size, &lo, &hi);
	if (lo > hi || hi > size)
		abort();
	if (!lj_sites_scan(data, size, gc32, 0, sites, 4096, &n) && n > 4096)
		abort();
	return 0;
}
