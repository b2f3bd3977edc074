/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of a prototype's copy: instructions, string constants, names of local variables and upvalues, as LuaJIT's
 * lj_debug.c reads them. They are foreign bytes: all bounds are checked.
 */
#include "proto_parts.h"

#include <string.h>

#include "bc.h"

/* lj_debug.h, VARNAMEDEF: hidden variables of loops, numbered from 1; 0 ends the table. */
static const char *const hidden_names[] = {
	NULL,	       "(for index)",	"(for limit)", "(for step)", "(for generator)",
	"(for state)", "(for control)",
};
#define NHIDDEN (sizeof(hidden_names) / sizeof(hidden_names[0]))

/* 2.0 has no ISTYPE, ISNUM, TGETR and TSETR. */
uint32_t lj_bc_of_21(const struct lj_layout *lj, uint32_t ins)
{
	uint32_t op = lj_bc_op(ins);

	if (!lj->v20)
		return ins;
	op += 2 * (op >= LJ_BC_ISTYPE);
	op += op >= LJ_BC_TGETR;
	op += op >= LJ_BC_TSETR;
	return (ins & ~0xffu) | (op & 0xff);
}

uint32_t lj_proto_ins(const struct lj_proto *p, uint32_t bcpos)
{
	uint32_t ins = 0;

	if (lj_proto_has_ins(p, bcpos))
		memcpy(&ins, p->bc.p + 4 * (size_t)bcpos, sizeof(ins));
	return lj_bc_of_21(&p->lj, ins);
}

const char *lj_proto_kstr(const struct lj_proto *p, uint32_t i)
{
	return i < p->nkgc ? p->kgc[i].str : NULL;
}

static bool uleb128(const uint8_t **p, const uint8_t *end, uint32_t *value)
{
	uint32_t v = 0;
	unsigned shift;

	for (shift = 0; *p < end && shift < 35; shift += 7) {
		uint8_t byte = *(*p)++;

		if (shift < 32)
			v |= (uint32_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*value = v;
			return true;
		}
	}
	return false;
}

void lj_var_begin(const struct lj_proto *p, struct lj_varcursor *c)
{
	*c = (struct lj_varcursor){.p = p->varinfo.p, .end = p->varinfo.p + p->varinfo.len};
}

bool lj_var_next(struct lj_varcursor *c, struct lj_var *var)
{
	uint32_t start, length;

	if (c->p >= c->end || !*c->p)
		return false;
	if (*c->p < NHIDDEN) {
		var->name = hidden_names[*c->p++];
	} else {
		const uint8_t *nul = memchr(c->p, 0, (size_t)(c->end - c->p));

		if (!nul)
			return false;
		var->name = (const char *)c->p;
		c->p = nul + 1;
	}
	if (!uleb128(&c->p, c->end, &start) || !uleb128(&c->p, c->end, &length))
		return false;
	var->start = c->lastpc = c->lastpc + start;
	var->end = var->start + length;
	return true;
}

const char *lj_proto_uvname(const struct lj_proto *p, uint32_t idx)
{
	const uint8_t *s = p->uvinfo.p, *end = p->uvinfo.p + p->uvinfo.len;

	if (!p->has_uvinfo)
		return "";
	if (idx >= p->sizeuv)
		return NULL;
	for (;;) {
		const uint8_t *nul = s < end ? memchr(s, 0, (size_t)(end - s)) : NULL;

		if (!nul)
			return NULL;
		if (!idx--)
			return (const char *)s;
		s = nul + 1;
	}
}
