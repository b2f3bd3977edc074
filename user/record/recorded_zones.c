// SPDX-License-Identifier: BSD-2-Clause
#include "recorded_zones.h"

#include "sym/family.h"

static int set(void *loader, const struct lb_zone_key *key, const struct lb_zone *zone)
{
	return loader_set_zone(loader, key, zone);
}

int recorded_zones_open(struct loader *loader, struct symbolizer *symbolizer, const char *module)
{
	const struct zones_options options = {.module = module, .set = set, .arg = loader};

	return symbolizer_record_zones(symbolizer, &options);
}

int recorded_zones_build(struct loader *loader, uint32_t index, const struct lb_build *build)
{
	struct lb_zone_layout layout;

	sym_family(build->family)->zone_layout(build, &layout);
	return loader_set_zone_layout(loader, index, &layout);
}
