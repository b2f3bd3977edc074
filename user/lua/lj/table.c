// SPDX-License-Identifier: BSD-2-Clause
#include "table.h"

#include <errno.h>
#include <string.h>

#include <unwind/lj/fingerprint.h>

#include "lua/foreign.h"

#define MAX_NODES 65536

enum {
	LJ_GCT_TAB = ~LJ_TTAB,
};

uint64_t lj_tv_of_gc32(uint64_t tv)
{
	int32_t type = LJ32_TV_TYPE(tv);

	if (type == LJ_TNIL)
		return (uint64_t)LJ_TNIL;
	return type >= LJ_TUDATA && type < 0 ? (uint64_t)(int64_t)type << 47 | LJ32_TV_GCPTR(tv)
					     : tv;
}

int lj_table_read(const struct lb_mem *mem, const struct lj_layout *lj, uint64_t ref,
		  struct lj_table *t)
{
	uint8_t head[LJ_TAB_SIZE];
	uint32_t hmask;

	if (!foreign_plausible(ref) || mem_read(mem, head, LJ_OFF(lj, TAB_SIZE), ref))
		return -EFAULT;
	hmask = foreign_half(head, LJ_OFF(lj, TAB_HMASK));
	if (head[LJ_OFF(lj, TAB_GCT)] != LJ_GCT_TAB || hmask & (hmask + 1) || hmask >= MAX_NODES)
		return -EBADMSG;
	t->node = lj_ref_at(lj, head, LJ_OFF(lj, TAB_NODE));
	t->nnodes = hmask + 1;
	t->gc32 = lj_is_gc32(lj);
	return 0;
}

int lj_table_nodes(const struct lb_mem *mem, const struct lj_table *t, uint32_t first,
		   struct lj_node nodes[LJ_TABLE_CHUNK])
{
	uint32_t n = t->nnodes - first < LJ_TABLE_CHUNK ? t->nnodes - first : LJ_TABLE_CHUNK;

	if (mem_read(mem, nodes, n * (uint32_t)sizeof(*nodes),
		     t->node + (uint64_t)first * sizeof(*nodes)))
		return -EFAULT;
	for (uint32_t i = 0; t->gc32 && i < n; i++) {
		nodes[i].key = lj_tv_of_gc32(nodes[i].key);
		nodes[i].val = lj_tv_of_gc32(nodes[i].val);
	}
	return (int)n;
}

int lj_table_get(const struct lb_mem *mem, const struct lj_table *t, uint64_t key, uint64_t *val)
{
	struct lj_node nodes[LJ_TABLE_CHUNK];
	uint32_t first;
	int n, i;

	for (first = 0; first < t->nnodes; first += LJ_TABLE_CHUNK) {
		n = lj_table_nodes(mem, t, first, nodes);
		if (n < 0)
			return n;
		for (i = 0; i < n; i++)
			if (nodes[i].key == key && nodes[i].val != (uint64_t)LJ_TNIL) {
				*val = nodes[i].val;
				return 0;
			}
	}
	return -ENOENT;
}

int lj_reference(const struct lj_layout *lj, const struct lb_mem *mem, uint64_t addr, uint64_t *out)
{
	uint64_t word = 0;
	int r = mem_read(mem, &word, lj_ref_size(lj), addr);

	if (!r)
		*out = word;
	return r;
}

int lj_tvalue(const struct lj_layout *lj, const struct lb_mem *mem, uint64_t addr, uint64_t *out)
{
	int r = mem_read(mem, out, sizeof(*out), addr);

	if (!r && lj_is_gc32(lj))
		*out = lj_tv_of_gc32(*out);
	return r;
}

bool lj_string_is(const struct lj_layout *lj, const struct lb_mem *mem, uint64_t gcstr,
		  const char *name)
{
	char text[32];
	uint32_t size = (uint32_t)strlen(name) + 1;

	return gcstr && size <= sizeof(text) &&
	       !mem_read(mem, text, size, gcstr + lj_str_text(lj)) && !memcmp(text, name, size);
}
