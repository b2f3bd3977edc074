// SPDX-License-Identifier: BSD-2-Clause
#include "cdata.h"

#include <errno.h>
#include <string.h>

#include <unwind/lj/fingerprint.h>

#include "lua/foreign.h"

/* lj_obj.h, lj_ctype.h */
enum {
	CTSTATE_TAB = 0,
	CTSTATE_TOP = 8,
	CTSTATE_G = 24,
	CTSTATE_MAPS = 32, /* finalizer, miscmap; newer builds have no finalizer there */
	CTSTATE_READ = 48,
	CTYPE_INFO = 0,
	CTYPE_SIZE = 4,
	CTYPE_SIB = 8,
	CT_STRUCT = 1,
	CT_PTR = 2,
	CT_ARRAY = 3,
	CT_ENUM = 5,
	CT_ATTRIB = 8,
	TYPES_MAX = 65536,
	HOPS_MAX = 16,
	FIELDS_MAX = 1024,
};

struct ctype {
	uint32_t info, size;
	uint16_t sib;
	uint64_t name;
};

int lj_cdata_open(const struct lb_mem *mem, const struct lj_layout *lj, uint64_t g,
		  struct lj_cdata *out)
{
	uint8_t cts[CTSTATE_READ];
	uint64_t at; /* global_State: ctype_state comes after jit_base */
	int r = lj_reference(lj, mem, g + lj->jit_base + lj_ref_size(lj), &at);

	if (r)
		return r;
	if (!at)
		return -ENOENT;
	if (!foreign_plausible(at) || mem_read(mem, cts, sizeof(cts), at))
		return -EFAULT;
	out->mem = mem;
	out->lj = lj;
	out->tab = foreign_word(cts, CTSTATE_TAB);
	out->ntypes = foreign_half(cts, CTSTATE_TOP);
	if (foreign_word(cts, CTSTATE_G) != g || out->ntypes > TYPES_MAX)
		return -EBADMSG;
	r = lj_table_read(mem, lj, foreign_word(cts, CTSTATE_MAPS + 8), &out->miscmap);
	return r ? lj_table_read(mem, lj, foreign_word(cts, CTSTATE_MAPS), &out->miscmap) : 0;
}

uint32_t lj_cdata_type(const struct lj_layout *lj, const struct lb_mem *mem, uint64_t addr)
{
	uint16_t id;

	return mem_read(mem, &id, sizeof(id), addr + LJ_OFF(lj, CDATA_TYPE)) ? 0 : id;
}

static bool type_of(const struct lj_cdata *c, uint32_t id, struct ctype *ct)
{
	uint32_t size = LJ_OFF(c->lj, CTYPE_SIZE);
	uint8_t bytes[LJ_CTYPE_SIZE];

	if (id >= c->ntypes || mem_read(c->mem, bytes, size, c->tab + (uint64_t)id * size))
		return false;
	ct->info = foreign_half(bytes, CTYPE_INFO);
	ct->size = foreign_half(bytes, CTYPE_SIZE);
	ct->sib = lb_short(bytes, CTYPE_SIB);
	ct->name = lj_ref_at(c->lj, bytes, LJ_OFF(c->lj, CTYPE_NAME));
	return true;
}

/* Strips qualifiers, and with `follow` pointers and references, too. Returns the type; 0: none. */
static uint32_t raw(const struct lj_cdata *c, uint32_t id, bool follow, struct ctype *ct)
{
	uint32_t n;

	for (n = 0; n < HOPS_MAX && type_of(c, id, ct); n++) {
		if (ct->info >> 28 != CT_ATTRIB && (!follow || ct->info >> 28 != CT_PTR))
			return id;
		id = ct->info & 0xffff;
	}
	return 0;
}

uint32_t lj_cdata_element(const struct lj_cdata *c, uint32_t id)
{
	struct ctype ct;

	if (!raw(c, id, false, &ct) || (ct.info >> 28 != CT_PTR && ct.info >> 28 != CT_ARRAY))
		return 0;
	return ct.info & 0xffff;
}

uint32_t lj_cdata_size(const struct lj_cdata *c, uint32_t id)
{
	struct ctype ct;

	return raw(c, id, false, &ct) ? ct.size : 0;
}

bool lj_cdata_is_aggregate(const struct lj_cdata *c, uint32_t id)
{
	struct ctype ct;

	return raw(c, id, false, &ct) && (ct.info >> 28 == CT_STRUCT || ct.info >> 28 == CT_ARRAY);
}

bool lj_cdata_is_pointer(const struct lj_cdata *c, uint32_t id)
{
	struct ctype ct;

	return raw(c, id, false, &ct) && ct.info >> 28 == CT_PTR;
}

uint32_t lj_cdata_named(const struct lj_cdata *c, uint64_t addr)
{
	struct ctype ct;
	uint32_t id;

	if (!type_of(c, lj_cdata_type(c->lj, c->mem, addr), &ct) || ct.info >> 28 != CT_ENUM ||
	    mem_read(c->mem, &id, sizeof(id), addr + LJ_OFF(c->lj, CDATA_SIZE)))
		return 0;
	return id;
}

/* Finds the value under a name in a table's hash part. */
static bool named_value(const struct lj_cdata *c, uint64_t table, const char *name, uint64_t *val)
{
	struct lj_node nodes[LJ_TABLE_CHUNK];
	struct lj_table t;
	int n, i;

	if (lj_table_read(c->mem, c->lj, table, &t))
		return false;
	n = lj_table_nodes(c->mem, &t, 0, nodes); /* metatables have fewer */
	for (i = 0; i < n; i++) {
		if (LJ_TV_TYPE(nodes[i].key) != LJ_TSTR || nodes[i].val == (uint64_t)LJ_TNIL ||
		    !lj_string_is(c->lj, c->mem, LJ_TV_GCPTR(nodes[i].key), name))
			continue;
		*val = nodes[i].val;
		return true;
	}
	return false;
}

bool lj_cdata_meta(const struct lj_cdata *c, uint32_t id, const char *mm, uint64_t *val)
{
	struct ctype ct;
	uint64_t key, mt;
	double number;

	id = raw(c, id, true, &ct);
	number = -(double)id;
	memcpy(&key, &number, sizeof(key));
	return id && !lj_table_get(c->mem, &c->miscmap, key, &mt) && LJ_TV_TYPE(mt) == LJ_TTAB &&
	       named_value(c, LJ_TV_GCPTR(mt), mm, val);
}

bool lj_cdata_method(const struct lj_cdata *c, uint32_t id, uint64_t gcstr, uint64_t *val)
{
	struct lj_table index;
	uint32_t ofs, type;

	return !lj_cdata_field(c, id, gcstr, &ofs, &type) && lj_cdata_meta(c, id, "__index", val) &&
	       LJ_TV_TYPE(*val) == LJ_TTAB &&
	       !lj_table_read(c->mem, c->lj, LJ_TV_GCPTR(*val), &index) &&
	       !lj_table_get(c->mem, &index, (uint64_t)(int64_t)LJ_TSTR << 47 | gcstr, val);
}

bool lj_cdata_field(const struct lj_cdata *c, uint32_t id, uint64_t gcstr, uint32_t *ofs,
		    uint32_t *type)
{
	struct ctype ct;
	uint32_t n;

	if (!gcstr || !raw(c, id, true, &ct) || ct.info >> 28 != CT_STRUCT)
		return false;
	for (n = 0; ct.sib && n < FIELDS_MAX; n++) {
		if (!type_of(c, ct.sib, &ct))
			return false;
		if (ct.name == gcstr) {
			*ofs = ct.size;
			*type = ct.info & 0xffff;
			return true;
		}
	}
	return false;
}
