/* SPDX-License-Identifier: BSD-2-Clause */
/* The hash part of a live LuaJIT target's tables. All reads are bounded. */
#ifndef LUA_LJ_TABLE_H
#define LUA_LJ_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include <unwind/lj/layout.h>
#include <unwind/mem.h>

/* TValues, as GC64 has them: those of GC32 are converted. */
struct lj_node {
	uint64_t val, key, next;
};
_Static_assert(sizeof(struct lj_node) == LJ_NODE_SIZE, "Node");

struct lj_table {
	uint64_t node;
	uint32_t nnodes;
	bool gc32;
};

/* Returns a GC32 TValue in GC64's form: only types of objects and nil are kept apart. */
uint64_t lj_tv_of_gc32(uint64_t tv);

#define LJ_TABLE_CHUNK 256 /* nodes per read */

/* Reads the GCtab at ref. -EFAULT: it cannot be read; -EBADMSG: it is no GCtab. */
int lj_table_read(const struct lb_mem *mem, const struct lj_layout *lj, uint64_t ref,
		  struct lj_table *t);

/* Copies up to LJ_TABLE_CHUNK nodes from number `first` on. Returns how many; -EFAULT. */
int lj_table_nodes(const struct lb_mem *mem, const struct lj_table *t, uint32_t first,
		   struct lj_node nodes[LJ_TABLE_CHUNK]);

/* Finds the value under a key, the TValue of a number or an interned string; O(nodes). -ENOENT,
 * -EFAULT. */
int lj_table_get(const struct lb_mem *mem, const struct lj_table *t, uint64_t key, uint64_t *val);

/* Reads the reference (GCRef, MRef) at addr: of 32 bits in GC32. Returns 0, or the error of mem_read(). */
int lj_reference(const struct lj_layout *lj, const struct lb_mem *mem, uint64_t addr,
		 uint64_t *out);

/* Reads the TValue at addr, in GC64's form. Returns 0, or the error of mem_read(). */
int lj_tvalue(const struct lj_layout *lj, const struct lb_mem *mem, uint64_t addr, uint64_t *out);

/* True if the GCstr has this text, of less than 32 characters. */
bool lj_string_is(const struct lj_layout *lj, const struct lb_mem *mem, uint64_t gcstr,
		  const char *name);

#endif
