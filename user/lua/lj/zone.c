// SPDX-License-Identifier: BSD-2-Clause
#include "zone.h"

#include <errno.h>
#include <stdbool.h>

#include <unwind/lj/fingerprint.h>

#include "loaded.h"
#include "lua/foreign.h"
#include "table.h"

#define MODULE "jit.zone"
/* of a TValue: LJ_TV_TYPE(), LJ32_TV_TYPE() */
#define TYPE_SHIFT 47
#define TYPE_SHIFT32 32

/* jit.zone's table has these besides the zones. */
static bool is_zone_module(const struct lb_mem *mem, const struct lj_layout *layout, uint64_t table)
{
	return lj_loaded_has_function(mem, layout, table, "get") &&
	       lj_loaded_has_function(mem, layout, table, "flush");
}

/*
 * True if all nodes of the hash part have another key than a number, and a value: lj_tab_newkey()
 * puts no integer key there without moving all of it. The same of a table without one.
 */
static bool is_full(const struct lb_mem *mem, const struct lj_layout *lj, uint64_t table)
{
	struct lj_node nodes[LJ_TABLE_CHUNK];
	struct lj_table t;
	int n;

	if (lj_table_read(mem, lj, table, &t) || t.nnodes > LJ_TABLE_CHUNK)
		return false;
	if (t.nnodes == 1)
		return true;
	n = lj_table_nodes(mem, &t, 0, nodes);
	for (int i = 0; i < n; i++)
		if (LJ_TV_TYPE(nodes[i].key) != LJ_TSTR || LJ_TV_TYPE(nodes[i].val) == LJ_TNIL)
			return false;
	return n > 0;
}

int lj_zone_find(const struct lb_mem *mem, const struct lj_layout *layout, uint64_t g,
		 const char *module, struct lb_zone *out)
{
	uint8_t head[LJ_TAB_SIZE];
	uint64_t table;
	int err = lj_loaded_module(mem, layout, g, module ? module : MODULE, &table);

	if (!err && !module && !is_zone_module(mem, layout, table))
		err = -ENOENT;
	if (!err)
		err = mem_read(mem, head, LJ_OFF(layout, TAB_SIZE), table);
	if (err)
		return err;
	*out = (struct lb_zone){
		.table = table,
		.array = lj_ref_at(layout, head, LJ_OFF(layout, TAB_ARRAY)),
		.node = lj_ref_at(layout, head, LJ_OFF(layout, TAB_NODE)),
		.size = foreign_half(head, LJ_OFF(layout, TAB_ASIZE)),
		.nodes = foreign_half(head, LJ_OFF(layout, TAB_HMASK)) + 1,
	};
	out->size -= out->size > 0; /* slot 0 */
	if (is_full(mem, layout, table))
		out->nodes = 0;
	return 0;
}

void lj_zone_layout(const struct lj_layout *layout, struct lb_zone_layout *out)
{
	*out = (struct lb_zone_layout){
		.gc_type = LJ_OFF(layout, STR_GCT),
		.gc_mask = 0xff,
		.gc_str = LJ_GCT_STR,
		.gc_longstr = LJ_GCT_STR,
		.type_shift = lj_is_gc32(layout) ? TYPE_SHIFT32 : TYPE_SHIFT,
		.value_stride = 8,
		.node_size = LJ_NODE_SIZE,
		.node_value = LJ_NODE_VAL,
		.node_key = LJ_NODE_KEY,
		.key_double = 1,
		.str_len = layout->str_len,
		.str_len32 = 1,
		.str_text = lj_str_text(layout),
	};
}
