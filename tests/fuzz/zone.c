// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any bytes as a VM's tables and strings, and as where its zone stack is: the zone that is read of
 * them is a word of enum lb_zone_word, or a name that lies inside its record.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <unwind/zone.h>

#include "base/mem_image.h"
#include "detect/puc/recognise.h"
#include "lua/lj/zone.h"
#include "lua/puc/zone.h"

#define BASE 0x10000ULL
#define MOST 8192

/* The first byte chooses the layout; then a struct lb_zone, with addresses from BASE on. */
struct zone_input {
	uint8_t layout, node, shift, depth;
	uint16_t array, size, nodes, table;
};

static struct {
	struct lb_walk w;
	struct lb_cache cache;
} walk;

static void set_layout(uint8_t number, struct lb_zone_layout *z)
{
	const struct lj_layout lj = {.str_len = number ? LJ_STR_LEN : LJ_STR_LEN_2017};
	const struct puc_layout *puc = NULL;
	const char *name;

	if (number > 1)
		puc = puc_layout_row(number - 2u, &name);
	if (puc)
		puc_zone_layout(puc, z);
	else
		lj_zone_layout(&lj, z);
}

static void judge(uint64_t word)
{
	if (word < LB_ZONE_NAMES ? word < LB_ZONE_EMPTY || word > LB_ZONE_NO_STRING : word >> 56)
		abort();
}

/* Is walk.w.zone_depth a length of the array part, as Lua's # gives it? One that is unreadable may be. */
static bool is_length(const struct lb_mem *mem, const struct lb_zone_layout *z,
		      const struct lb_zone *zone)
{
	struct lb_zone_walk c = {
		.mem = mem, .w = &walk.w, .cache = &walk.cache, .z = z, .array = zone->array};
	uint32_t depth = walk.w.zone_depth;

	if (depth && depth <= zone->size && lb_zone_element(&c, depth) == LB_ZONE_NIL)
		return false;
	return depth >= zone->size || lb_zone_element(&c, depth + 1) == LB_ZONE_NIL || c.failed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lb_zone_layout z;
	struct mem_image image;
	struct lb_zone zone;
	struct zone_input in;
	uint64_t first, again;
	uint32_t depth;

	if (size < sizeof(in) || size > MOST)
		return 0;
	memcpy(&in, data, sizeof(in));
	set_layout(in.layout % 24, &z);
	zone = (struct lb_zone){
		.array = BASE + in.array,
		.node = BASE + in.node * 8u,
		.size = (uint32_t)in.size << (in.shift & 15),
		.nodes = in.nodes,
	};
	mem_image_init(&image);
	if (mem_image_add(&image, BASE, data, size))
		return 0;
	lb_begin(&walk.cache, walk.cache.sample + 1);
	walk.w.zone_depth = in.depth;
	first = lb_zone_read(&image.mem, &walk.w, &walk.cache, &z, &zone);
	judge(first);
	depth = walk.w.zone_depth;
	if (first != LB_ZONE_UNKNOWN && !is_length(&image.mem, &z, &zone))
		abort();
	lb_begin(&walk.cache, walk.cache.sample + 1);
	/*
	 * Without windows of pages the result is the same, unless the table has holes, and so several
	 * lengths, or a part that only the search of the whole table reads cannot be read.
	 */
	image.mem.uncached = 1;
	again = lb_zone_read(&image.mem, &walk.w, &walk.cache, &z, &zone);
	judge(again);
	if (first != again && depth == walk.w.zone_depth && again != LB_ZONE_UNKNOWN)
		abort();
	mem_image_clear(&image);
	return 0;
}
