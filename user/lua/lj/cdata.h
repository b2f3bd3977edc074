/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * C types of a live LuaJIT target (lj_ctype.h): the metatables that ffi.metatype() gave them. The
 * compiler takes these for constant, so that nothing in a trace tells what was found in them.
 */
#ifndef LUA_LJ_CDATA_H
#define LUA_LJ_CDATA_H

#include <stdbool.h>
#include <stdint.h>

#include <unwind/lj/layout.h>
#include <unwind/mem.h>

#include "table.h"

struct lj_cdata {
	const struct lb_mem *mem;
	uint64_t tab; /* CType[ntypes] */
	uint32_t ntypes;
	struct lj_table miscmap; /* metatables by -CTypeID */
};

/* -ENOENT: the VM g uses no C types; -EFAULT, -EBADMSG. */
int lj_cdata_open(const struct lb_mem *mem, const struct lj_layout *lj, uint64_t g,
		  struct lj_cdata *out);

/* The CTypeID of the GCcdata at addr; 0: it cannot be read. */
uint32_t lj_cdata_type(const struct lb_mem *mem, uint64_t addr);

/*
 * The type that a GCcdata is, which itself stands for a type (ffi.typeof()); 0: it stands for none.
 */
uint32_t lj_cdata_named(const struct lj_cdata *c, uint64_t addr);

/* The metamethod (TValue) of a type, or of the one that it points to. False: it has none. */
bool lj_cdata_meta(const struct lj_cdata *c, uint32_t id, const char *mm, uint64_t *val);

enum { LJ_CDATA_SIZE = 16 }; /* GCcdata: a struct follows it */

/* What its metatable has under a string (GCstr) in the table that is __index, and is no field. */
bool lj_cdata_method(const struct lj_cdata *c, uint32_t id, uint64_t gcstr, uint64_t *val);

/* Where a struct, or what the type points to, has the field of this name (GCstr), and the field's
 * type. False: nowhere. */
bool lj_cdata_field(const struct lj_cdata *c, uint32_t id, uint64_t gcstr, uint32_t *ofs,
		    uint32_t *type);

/* The type of the elements of an array or what a pointer points to; 0: it is neither. */
uint32_t lj_cdata_element(const struct lj_cdata *c, uint32_t id);

/* Its size in bytes; 0: not known. */
uint32_t lj_cdata_size(const struct lj_cdata *c, uint32_t id);

/* Is it a struct or an array, which are referred to, not loaded? Is it a pointer? */
bool lj_cdata_is_aggregate(const struct lj_cdata *c, uint32_t id);
bool lj_cdata_is_pointer(const struct lj_cdata *c, uint32_t id);

#endif
