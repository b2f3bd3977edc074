// SPDX-License-Identifier: BSD-2-Clause
/* PUC Lua behind the table of functions that the symbolizer uses (family.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/container.h"
#include "family.h"
#include "lua/foreign.h"
#include "lua/puc/cnames.h"
#include "lua/puc/loaded.h"
#include "lua/puc/proto_priv.h"
#include "lua/puc/zone.h"

/* ---- prototypes ------------------------------------------------------------------------------ */

static struct puc_proto *puc_of(const struct proto *p)
{
	return container_of(p, struct puc_proto, base);
}

static int puc_read(const struct lb_mem *mem, const struct lb_build *build, uint64_t addr,
		    struct proto **out)
{
	struct puc_proto *p = NULL;
	int r = puc_proto_read(mem, &build->puc.puc, addr, &p);

	if (r)
		return r;
	p->base.family = &puc_family;
	*out = &p->base;
	return 0;
}

static void puc_free(struct proto **p)
{
	struct puc_proto *own = *p ? puc_of(*p) : NULL;

	puc_proto_free(&own);
	*p = NULL;
}

static uint32_t puc_fingerprint(const struct proto *p)
{
	return puc_proto_fingerprint(puc_of(p));
}

static uint64_t puc_hash(const struct proto *p)
{
	return puc_proto_hash(puc_of(p));
}

static bool puc_complete(const struct proto *p)
{
	return puc_proto_complete(puc_of(p));
}

static const char *puc_misfit(const struct proto *p)
{
	return puc_proto_misfit(puc_of(p));
}

static const char *puc_chunkname(const struct proto *p, size_t *len)
{
	return puc_proto_chunkname(puc_of(p), len);
}

static int32_t puc_firstline(const struct proto *p)
{
	return puc_proto_firstline(puc_of(p));
}

static int32_t puc_line(const struct proto *p, uint32_t pc)
{
	return puc_proto_line(puc_of(p), pc);
}

/* ldebug.c has a text for what it cannot name, and for a key that is no string. */
static bool names_a_function(enum puc_namewhat what, const char *name)
{
	return what && what != PUC_NAME_CONSTANT && *name && strcmp(name, "?") != 0 &&
	       strcmp(name, "integer index") != 0;
}

static void puc_callname(const struct proto *p, uint32_t pc, const char **name)
{
	const char *found = "";
	enum puc_namewhat what = puc_proto_callname(puc_of(p), pc, &found);

	if (!names_a_function(what, found))
		return;
	if (what != PUC_NAME_LOCAL || !puc_proto_is_parameter(puc_of(p), found))
		*name = found;
}

/* Dumps keep the lines of definition: a main function's is 0. */
static bool puc_is_main(const struct proto *p)
{
	return !puc_proto_firstline(puc_of(p));
}

static uint32_t puc_shape(const struct proto *p)
{
	return puc_proto_shape(puc_of(p));
}

static uint32_t puc_contents(const struct proto *p)
{
	return puc_proto_contents(puc_of(p));
}

static uint32_t puc_child(const struct proto *p, uint64_t child)
{
	return puc_proto_child(puc_of(p), child);
}

/* lua.h: LUA_TSTRING to what Lua programs never see; without their variants. */
enum { TT_FIRST = 4, TT_FUNCTION = 6, TT_LAST = 11, TT_BASIC = 0x0f };

static int puc_object(const struct lb_mem *mem, const struct lb_build *build, uint64_t addr,
		      struct sym_object *out)
{
	const struct puc_layout *puc = &build->puc.puc;
	uint8_t head[PUC_PROTO_HEAD];
	uint8_t tt;
	int err;

	if (!foreign_plausible(addr))
		return -EBADMSG;
	err = mem_read(mem, head, PUC_GC_TT + 1, addr);
	tt = err ? 0 : head[PUC_GC_TT] & PUC_TT_MASK;
	if (!err && tt == puc->tt_proto)
		err = mem_read(mem, head, puc->p_size, addr);
	if (err)
		return err;
	if ((tt & TT_BASIC) < TT_FIRST || (tt & TT_BASIC) > TT_LAST)
		return -EBADMSG;
	*out = (struct sym_object){.next = foreign_word(head, PUC_GC_NEXT)};
	if ((tt & TT_BASIC) == TT_FUNCTION)
		out->kind = SYM_OBJECT_CLOSURE;
	if (tt != puc->tt_proto)
		return 0;
	out->kind = SYM_OBJECT_PROTO;
	out->chunk = foreign_word(head, puc->p_source);
	out->firstline = (int32_t)foreign_half(head, puc->p_linedefined);
	out->lastline = (int32_t)foreign_half(head, puc->p_lastlinedefined);
	out->size = foreign_half(head, puc->p_sizecode);
	return 0;
}

static int puc_definitions(const struct proto *p, sym_definition_fn fn, void *arg)
{
	return puc_proto_definitions(puc_of(p), fn, arg);
}

/* ---- names of built-in and C functions ------------------------------------------------------- */

struct puc_names {
	struct names base;
	struct puc_cnames *names;
};

static const struct puc_cnames *puc_names_of(const struct names *names)
{
	return names ? container_of(names, struct puc_names, base)->names : NULL;
}

static void puc_names_free(struct names **names)
{
	struct puc_names *own = *names ? container_of(*names, struct puc_names, base) : NULL;

	if (own)
		puc_cnames_free(&own->names);
	free(own);
	*names = NULL;
}

static int puc_names_read(const struct lb_mem *mem, const struct lb_build *build, uint64_t g,
			  struct names **out)
{
	__free struct puc_names *own = calloc(1, sizeof(*own));
	int r;

	if (!own)
		return -ENOMEM;
	r = puc_cnames_read(mem, &build->puc.puc, g, &own->names);
	if (r)
		return r;
	own->base.family = &puc_family;
	*out = &TAKE_PTR(own)->base;
	return 0;
}

static bool puc_names_same(const struct names *a, const struct names *b)
{
	return puc_cnames_same(puc_names_of(a), puc_names_of(b));
}

/* All built-in functions are C functions. */
static const char *puc_builtin(const struct names *names, uint64_t number)
{
	(void)names;
	(void)number;
	return NULL;
}

static const char *puc_cfunction(const struct names *names, uint64_t addr)
{
	return puc_cname(puc_names_of(names), addr);
}

/* ---- functions that the host keeps ----------------------------------------------------------- */

struct puc_kept_arg {
	sym_definition_fn fn;
	void *arg;
};

static int puc_kept_function(void *arg, const struct puc_loaded *found)
{
	const struct puc_kept_arg *k = arg;

	return k->fn(k->arg, found->f, found->field);
}

static int puc_kept(const struct lb_mem *mem, const struct lb_build *build, uint64_t g,
		    sym_definition_fn fn, void *arg)
{
	struct puc_kept_arg k = {fn, arg};

	return puc_loaded_kept(mem, &build->puc.puc, g, puc_kept_function, &k);
}

/* ---- zones ----------------------------------------------------------------------------------- */

static int puc_zone(const struct lb_mem *mem, const struct lb_build *build, uint64_t g,
		    const char *module, struct lb_zone *out)
{
	return puc_zone_find(mem, &build->puc.puc, g, module, out);
}

static void puc_zone_layout_of(const struct lb_build *build, struct lb_zone_layout *out)
{
	puc_zone_layout(&build->puc.puc, out);
}

/* ---- the table ------------------------------------------------------------------------------- */

const struct sym_family puc_family = {
	.read = puc_read,
	.free = puc_free,
	.fingerprint = puc_fingerprint,
	.hash = puc_hash,
	.complete = puc_complete,
	.misfit = puc_misfit,
	.chunkname = puc_chunkname,
	.firstline = puc_firstline,
	.line = puc_line,
	.callname = puc_callname,
	.definitions = puc_definitions,
	.is_main = puc_is_main,
	.shape = puc_shape,
	.contents = puc_contents,
	.object = puc_object,
	.child = puc_child,
	.names_read = puc_names_read,
	.names_free = puc_names_free,
	.names_same = puc_names_same,
	.zone = puc_zone,
	.zone_layout = puc_zone_layout_of,
	.builtin = puc_builtin,
	.cfunction = puc_cfunction,
	.kept = puc_kept,
	.libraries_first = true,
	.slots_change = true,
};
