// SPDX-License-Identifier: BSD-2-Clause
#include "table.h"

#include <errno.h>
#include <string.h>

#include "lua/foreign.h"

#define MAX_NODES 65536

enum {
	GCT = 9, /* gct byte of each GCobj */
	LJ_GCT_TAB = ~LJ_TTAB,
};

int lj_table_read(const struct lb_mem *mem, uint64_t ref, struct lj_table *t)
{
	uint8_t head[LJ_TAB_SIZE];
	uint32_t hmask;

	if (!foreign_plausible(ref) || mem_read(mem, head, sizeof(head), ref))
		return -EFAULT;
	hmask = foreign_half(head, LJ_TAB_HMASK);
	if (head[GCT] != LJ_GCT_TAB || hmask & (hmask + 1) || hmask >= MAX_NODES)
		return -EBADMSG;
	t->node = foreign_word(head, LJ_TAB_NODE);
	t->nnodes = hmask + 1;
	return 0;
}

int lj_table_nodes(const struct lb_mem *mem, const struct lj_table *t, uint32_t first,
		   struct lj_node nodes[LJ_TABLE_CHUNK])
{
	uint32_t n = t->nnodes - first < LJ_TABLE_CHUNK ? t->nnodes - first : LJ_TABLE_CHUNK;

	if (mem_read(mem, nodes, n * (uint32_t)sizeof(*nodes),
		     t->node + (uint64_t)first * sizeof(*nodes)))
		return -EFAULT;
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

bool lj_string_is(const struct lb_mem *mem, uint64_t gcstr, const char *name)
{
	char text[32];
	uint32_t size = (uint32_t)strlen(name) + 1;

	return gcstr && size <= sizeof(text) && !mem_read(mem, text, size, gcstr + LJ_STR_SIZE) &&
	       !memcmp(text, name, size);
}
