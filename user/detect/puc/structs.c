// SPDX-License-Identifier: BSD-2-Clause
#include "structs.h"

#include <stddef.h>
#include <string.h>

#include "api.h"

enum kind { NONE, CLOSURE, PROTO, STRING, TABLE };

#define FIELD(f) offsetof(struct puc_layout, f)

static const struct field {
	uint8_t kind;
	uint8_t width;
	uint16_t offset; /* in struct puc_layout, of the field's offset */
	uint8_t from;	 /* version */
} fields[] = {
	{CLOSURE, 8, FIELD(closure_p), 51},    {PROTO, 8, FIELD(p_k), 51},
	{PROTO, 8, FIELD(p_code), 51},	       {PROTO, 8, FIELD(p_p), 51},
	{PROTO, 8, FIELD(p_lineinfo), 51},     {PROTO, 8, FIELD(p_abslineinfo), 54},
	{PROTO, 8, FIELD(p_locvars), 51},      {PROTO, 8, FIELD(p_upvalues), 51},
	{PROTO, 8, FIELD(p_source), 51},       {PROTO, 4, FIELD(p_sizek), 51},
	{PROTO, 4, FIELD(p_sizecode), 51},     {PROTO, 4, FIELD(p_sizep), 51},
	{PROTO, 4, FIELD(p_sizelineinfo), 51}, {PROTO, 4, FIELD(p_sizeabslineinfo), 54},
	{PROTO, 4, FIELD(p_sizelocvars), 51},  {PROTO, 4, FIELD(p_sizeupvalues), 51},
	{PROTO, 4, FIELD(p_linedefined), 51},  {PROTO, 4, FIELD(p_lastlinedefined), 51},
	{STRING, 8, FIELD(s_len), 51},	       {STRING, PUC_ADDRESS, FIELD(s_text), 51},
	{STRING, 8, FIELD(s_text), 55}, /* of a long string: the pointer to it */
	{TABLE, 8, FIELD(t_array), 51},	       {TABLE, 8, FIELD(t_node), 51},
	{TABLE, 8, FIELD(t_metatable), 51},
};

static uint16_t field_of(const struct puc_layout *puc, uint16_t offset)
{
	uint16_t v;

	memcpy(&v, (const uint8_t *)puc + offset, sizeof(v));
	return v;
}

static enum kind kind_of(const struct puc_layout *puc, const struct puc_path *p)
{
	const int16_t *d = p->d;

	if (d[0] == puc->L_top && d[1] == -PUC_TV_SIZE) {
		if (p->depth == 3)
			return CLOSURE;
		if (d[2] == puc->closure_p && (p->depth == 4 || d[3] == puc->p_source))
			return p->depth == 4 ? PROTO : STRING;
	}
	if (d[0] == puc->L_l_G && d[1] == puc->g_registry &&
	    (p->depth == 3 || (p->depth == 5 && d[2] == puc->t_array && d[3] == PUC_TV_SIZE)))
		return TABLE;
	return NONE;
}

/* True if such an access is evidence. Single bytes are flags, counts, or parts of larger fields. */
static bool is_evidence(enum kind kind, uint8_t width)
{
	return width == 8 || (width == 4 && kind == PROTO) ||
	       (width == PUC_ADDRESS && kind == STRING);
}

static bool is_field(const struct puc_layout *puc, enum kind kind, const struct puc_fact *f)
{
	size_t i;

	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (fields[i].kind == kind && fields[i].width == f->width &&
		    fields[i].from <= puc->version && field_of(puc, fields[i].offset) == f->at)
			return true;
	return false;
}

void puc_structs_used(struct elf_file *elf, const struct puc_layout *puc,
		      void (*fn)(void *arg, const struct puc_struct_use *use), void *arg)
{
	static const char *const names[] = {"", "LClosure", "Proto", "TString", "Table"};
	static const char *const functions[] = {"lua_dump", "lua_getglobal"};
	struct puc_fact facts[PUC_DEEP_FACTS];
	uint64_t start, size;
	size_t i, k, n;

	for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (elf_lookup(elf, functions[i], &start, &size))
			continue;
		n = puc_api_deep_facts(elf, start, facts);
		for (k = 0; k < n; k++) {
			enum kind kind = kind_of(puc, &facts[k].path);
			struct puc_struct_use use = {
				.function = functions[i],
				.name = names[kind],
				.at = facts[k].at,
				.width = facts[k].width,
				.known = is_field(puc, kind, &facts[k]),
			};

			if (kind != NONE && is_evidence(kind, use.width))
				fn(arg, &use);
		}
	}
}
