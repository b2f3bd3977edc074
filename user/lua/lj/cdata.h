/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * C types of a live LuaJIT target (lj_ctype.h), and the metatables that ffi.metatype() gave them.
 * The compiler treats these as constants: a trace has no record of lookups in them.
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
	const struct lj_layout *lj;
	uint64_t tab; /* CType[ntypes] */
	uint32_t ntypes;
	struct lj_table miscmap; /* metatables by -CTypeID */
};

/* -ENOENT: the VM g uses no C types; -EFAULT, -EBADMSG. */
int lj_cdata_open(const struct lb_mem *mem, const struct lj_layout *lj, uint64_t g,
		  struct lj_cdata *out);

/* Returns the CTypeID of the GCcdata at addr; 0: it cannot be read. */
uint32_t lj_cdata_type(const struct lj_layout *lj, const struct lb_mem *mem, uint64_t addr);

/* Returns the type that a ctype object names (ffi.typeof()); 0 for other cdata. */
uint32_t lj_cdata_named(const struct lj_cdata *c, uint64_t addr);

/* Finds the metamethod (TValue) of a type, or of the one that it points to. False: it has none. */
bool lj_cdata_meta(const struct lj_cdata *c, uint32_t id, const char *mm, uint64_t *val);

/* Finds a method: the value under a string (GCstr) in the metatable's __index table. Not for
 * fields. */
bool lj_cdata_method(const struct lj_cdata *c, uint32_t id, uint64_t gcstr, uint64_t *val);

/* Finds the offset and type of the field of this name (GCstr) in a struct, or in the one pointed
 * to. Returns false if there is no such field. */
bool lj_cdata_field(const struct lj_cdata *c, uint32_t id, uint64_t gcstr, uint32_t *ofs,
		    uint32_t *type);

/* Returns the type of an array's elements, or of a pointer's target; 0: it is neither. */
uint32_t lj_cdata_element(const struct lj_cdata *c, uint32_t id);

/* Returns its size in bytes; 0: not known. */
uint32_t lj_cdata_size(const struct lj_cdata *c, uint32_t id);

/* True if it is a struct or an array, which are referenced, not loaded; if it is a pointer. */
bool lj_cdata_is_aggregate(const struct lj_cdata *c, uint32_t id);
bool lj_cdata_is_pointer(const struct lj_cdata *c, uint32_t id);

#endif
