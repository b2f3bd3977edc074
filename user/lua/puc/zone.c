// SPDX-License-Identifier: BSD-2-Clause
/*
 * Arrays of all versions but 5.5 hold TValues. In 5.5 (lobject.h, ltable.h) the values lie below the
 * address in the table, from there downwards, and the types above it, behind an unsigned int:
 *
 *     ... | value 3 | value 2 | value 1 | hint | type 1, type 2, type 3 ...
 *                                       ^ array
 */
#include "zone.h"

#include <errno.h>
#include <stdbool.h>

#include "loaded.h"
#include "lua/foreign.h"

#define MODULE "zone"

enum {
	LUA_TSTRING = 4,
	BASIC = 0xf,	  /* type in a tag */
	TABLE_FLAGS = 10, /* 5.4: the byte whose top bit says that the size is a hint (ltable.h) */
	TV_55_VALUE = 8,
	HINT_55 = 4,
	KEY_51 = 3,    /* tags of keys: LUA_TNUMBER, */
	KEY_53 = 0x13, /* LUA_TNUMINT */
	KEY_54 = 3,    /* LUA_VNUMINT */
	HEAD = 72,     /* of the largest Table */
	NODE = 40,     /* the same of a node */
	NODES = 256,   /* a hash part with more is not read */
};

static bool is_zone_module(const struct lb_mem *mem, const struct puc_layout *puc, uint64_t table)
{
	return puc_loaded_has_function(mem, puc, table, "get") &&
	       puc_loaded_has_function(mem, puc, table, "flush");
}

/* Bytes of a Table, up to the last field that is read. */
static uint16_t head_size(const struct puc_layout *puc)
{
	uint16_t words = puc->t_array > puc->t_node ? puc->t_array : puc->t_node;

	return puc->t_sizearray > words ? puc->t_sizearray + 4 : words + 8;
}

/*
 * True if all nodes of the hash part have a string as their key, and a value: luaH_newkey() puts no
 * integer key there without moving all of it.
 */
static bool is_full(const struct lb_mem *mem, const struct puc_layout *puc, uint64_t node,
		    uint32_t nodes)
{
	uint8_t bytes[NODES * NODE];

	if (nodes > NODES || puc->node_size > NODE || puc->node_val + PUC_TV_TT >= puc->node_size ||
	    puc->node_key_tt >= puc->node_size ||
	    mem_read(mem, bytes, nodes * puc->node_size, node))
		return false;
	for (uint32_t i = 0; i < nodes; i++) {
		const uint8_t *n = bytes + (size_t)i * puc->node_size;

		if ((n[puc->node_key_tt] & BASIC) != LUA_TSTRING ||
		    !(n[puc->node_val + PUC_TV_TT] & BASIC))
			return false;
	}
	return true;
}

/* luaH_realasize() of 5.4. */
static uint32_t real_size(const struct puc_layout *puc, const uint8_t *head)
{
	uint32_t hint = foreign_half(head, puc->t_sizearray), size = 1;

	if (puc->version != 54 || !(head[TABLE_FLAGS] & 0x80) || !hint || hint > 1u << 31)
		return hint;
	while (size < hint)
		size *= 2;
	return size;
}

int puc_zone_find(const struct lb_mem *mem, const struct puc_layout *puc, uint64_t g,
		  const char *module, struct lb_zone *out)
{
	uint8_t head[HEAD];
	uint64_t table;
	int err = puc_loaded_module(mem, puc, g, module ? module : MODULE, &table);

	if (!err && !module && !is_zone_module(mem, puc, table))
		err = -ENOENT;
	if (!err && head_size(puc) > HEAD)
		err = -EINVAL;
	if (!err)
		err = mem_read(mem, head, head_size(puc), table);
	if (err)
		return err;
	*out = (struct lb_zone){
		.table = table,
		.array = foreign_word(head, puc->t_array),
		.node = foreign_word(head, puc->t_node),
		.size = real_size(puc, head),
		.nodes = 1u << (head[puc->t_lsizenode] & 31),
	};
	if (is_full(mem, puc, out->node, out->nodes))
		out->nodes = 0;
	return 0;
}

static void set_array(const struct puc_layout *puc, struct lb_zone_layout *out)
{
	if (puc->version < 55) {
		out->value_origin = PUC_TV_VALUE - PUC_TV_SIZE;
		out->type_origin = PUC_TV_TT - PUC_TV_SIZE;
		out->value_stride = out->type_stride = PUC_TV_SIZE;
		return;
	}
	out->value_stride = -TV_55_VALUE;
	out->type_origin = HINT_55 - 1;
	out->type_stride = 1;
}

void puc_zone_layout(const struct puc_layout *puc, struct lb_zone_layout *out)
{
	*out = (struct lb_zone_layout){
		.gc_type = PUC_GC_TT,
		.gc_mask = PUC_TT_MASK,
		.gc_str = puc->tt_shrstr,
		.gc_longstr = puc->tt_lngstr,
		.node_size = puc->node_size,
		.node_value = puc->node_val,
		.node_value_type = puc->node_val + PUC_TV_TT,
		.node_key = puc->node_key,
		.node_key_type = puc->node_key_tt,
		.key_integer = puc->version < 53    ? KEY_51
			       : puc->version == 53 ? KEY_53
						    : KEY_54,
		.key_double = puc->version < 53,
		.str_shortlen = puc->s_shrlen == PUC_NONE ? 0 : puc->s_shrlen,
		.str_len = puc->s_len,
		.str_text = puc->s_text,
		.longstr_away = puc->version == 55,
	};
	set_array(puc, out);
}
