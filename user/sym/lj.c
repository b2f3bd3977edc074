// SPDX-License-Identifier: BSD-2-Clause
/* LuaJIT behind the table of functions that the symbolizer uses (family.h). */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/container.h"
#include "family.h"
#include "lua/foreign.h"
#include "lua/lj/ffnames.h"
#include "lua/lj/loaded.h"
#include "lua/lj/proto.h"
#include "lua/lj/proto_parts.h"
#include "lua/lj/zone.h"
#include "jit/cache.h"

/* ---- prototypes ------------------------------------------------------------------------------ */

static struct lj_proto *lj_of(const struct proto *p)
{
	return container_of(p, struct lj_proto, base);
}

static int lj_read(const struct lb_mem *mem, const struct lb_build *build, uint64_t addr,
		   struct proto **out)
{
	struct lj_proto *p = NULL;
	int r = lj_proto_read(mem, &build->lj.lj, addr, &p);

	if (r)
		return r;
	p->base.family = &lj_family;
	*out = &p->base;
	return 0;
}

static void lj_free(struct proto **p)
{
	struct lj_proto *own = *p ? lj_of(*p) : NULL;

	lj_proto_free(&own);
	*p = NULL;
}

static uint32_t lj_fingerprint(const struct proto *p)
{
	return lj_proto_fingerprint(lj_of(p));
}

static uint64_t lj_hash(const struct proto *p)
{
	return lj_proto_hash(lj_of(p));
}

static bool lj_complete(const struct proto *p)
{
	return lj_proto_complete(lj_of(p));
}

static bool lj_same(const struct proto *a, const struct proto *b)
{
	return lj_proto_same(lj_of(a), lj_of(b));
}

static const char *lj_chunkname(const struct proto *p, size_t *len)
{
	return lj_proto_chunkname(lj_of(p), len);
}

static int32_t lj_firstline(const struct proto *p)
{
	return lj_proto_firstline(lj_of(p));
}

static int32_t lj_line(const struct proto *p, uint32_t pc)
{
	return lj_proto_line(lj_of(p), pc);
}

static void lj_callname(const struct proto *p, uint32_t pc, const char **name)
{
	const char *found;

	if (lj_proto_callname(lj_of(p), pc, &found) && *found &&
	    !lj_proto_is_parameter(lj_of(p), found))
		*name = found;
}

static bool lj_is_main(const struct proto *p)
{
	return lj_proto_is_main(lj_of(p));
}

static uint32_t lj_shape(const struct proto *p)
{
	return lj_proto_shape(lj_of(p));
}

static uint32_t lj_contents(const struct proto *p)
{
	return lj_proto_contents(lj_of(p));
}

static uint32_t lj_child(const struct proto *p, uint64_t child)
{
	return lj_proto_child(lj_of(p), child);
}

static uint64_t ref_of(const struct lj_layout *lj, const uint8_t *head, unsigned int offset)
{
	return lj_is_gc32(lj) ? foreign_half(head, offset) : foreign_word(head, offset);
}

static int lj_object(const struct lb_mem *mem, const struct lb_build *build, uint64_t addr,
		     struct sym_object *out)
{
	const struct lj_layout *lj = &build->lj.lj;
	const uint32_t gct = LJ_OFF(lj, PROTO_GCT), line = LJ_OFF(lj, PROTO_FIRSTLINE);
	uint8_t head[LJ_PROTO_SIZE];
	int err;

	if (!foreign_plausible(addr))
		return -EBADMSG;
	err = mem_read(mem, head, gct + 1, addr);
	if (!err && head[gct] == LJ_GCT_PROTO)
		err = mem_read(mem, head, LJ_OFF(lj, PROTO_SIZE), addr);
	if (err)
		return err;
	if (head[gct] < LJ_GCT_STR || head[gct] > LJ_GCT_UDATA)
		return -EBADMSG;
	*out = (struct sym_object){.next = ref_of(lj, head, LJ_GC_NEXT)};
	if (head[gct] == LJ_GCT_FUNC)
		out->kind = SYM_OBJECT_CLOSURE;
	if (head[gct] != LJ_GCT_PROTO)
		return 0;
	out->kind = SYM_OBJECT_PROTO;
	out->chunk = ref_of(lj, head, LJ_OFF(lj, PROTO_CHUNKNAME));
	out->firstline = (int32_t)foreign_half(head, line);
	out->lastline =
		(int32_t)(foreign_half(head, line) + foreign_half(head, LJ_OFF(lj, PROTO_NUMLINE)));
	out->size = foreign_half(head, LJ_OFF(lj, PROTO_SIZEPT));
	return 0;
}

static int lj_definitions(const struct proto *p, sym_definition_fn fn, void *arg)
{
	return lj_proto_definitions(lj_of(p), fn, arg);
}

/* ---- names of built-in and C functions ------------------------------------------------------- */

struct lj_names {
	struct names base;
	struct lj_ffnames *names;
};

static const struct lj_ffnames *lj_names_of(const struct names *names)
{
	return names ? container_of(names, struct lj_names, base)->names : NULL;
}

static void lj_names_free(struct names **names)
{
	struct lj_names *own = *names ? container_of(*names, struct lj_names, base) : NULL;

	if (own)
		lj_ffnames_free(&own->names);
	free(own);
	*names = NULL;
}

static int lj_names_read(const struct lb_mem *mem, const struct lb_build *build, uint64_t g,
			 struct names **out)
{
	__free struct lj_names *own = calloc(1, sizeof(*own));
	int r;

	if (!own)
		return -ENOMEM;
	r = lj_ffnames_read(mem, &build->lj.lj, g, &own->names);
	if (r)
		return r;
	own->base.family = &lj_family;
	*out = &TAKE_PTR(own)->base;
	return 0;
}

static bool lj_names_same(const struct names *a, const struct names *b)
{
	return lj_ffnames_same(lj_names_of(a), lj_names_of(b));
}

static const char *lj_builtin(const struct names *names, uint64_t number)
{
	return lj_ffname(lj_names_of(names), (uint8_t)number);
}

static const char *lj_cfunction(const struct names *names, uint64_t addr)
{
	return lj_cfunc_name(lj_names_of(names), addr);
}

/* ---- compiled code --------------------------------------------------------------------------- */

struct lj_compiled {
	struct compiled base;
	struct lj_traces *traces;
};

static struct lj_compiled *lj_compiled_of(struct compiled *compiled)
{
	return container_of(compiled, struct lj_compiled, base);
}

static int lj_compiled_new(const struct lb_mem *mem, struct compiled **out)
{
	__free struct lj_compiled *own = calloc(1, sizeof(*own));
	int r;

	if (!own)
		return -ENOMEM;
	r = lj_traces_new(mem, &own->traces);
	if (r)
		return r;
	own->base.family = &lj_family;
	*out = &TAKE_PTR(own)->base;
	return 0;
}

static void lj_compiled_watch(struct compiled *compiled,
			      void (*saw)(void *arg, uint64_t proto, uint32_t fp), void *arg)
{
	lj_traces_watch(lj_compiled_of(compiled)->traces, saw, arg);
}

static void lj_compiled_free(struct compiled **compiled)
{
	struct lj_compiled *own = *compiled ? lj_compiled_of(*compiled) : NULL;

	if (own)
		lj_traces_free(&own->traces);
	free(own);
	*compiled = NULL;
}

static int lj_attribute(struct compiled *compiled, const struct lb_build *build,
			const struct names *names, struct lb_rec_sample *rec)
{
	return lj_traces_attribute(lj_compiled_of(compiled)->traces, &build->lj, lj_names_of(names),
				   rec);
}

static int lj_attribute_elsewhere(struct compiled *compiled, const struct lb_rec_sample *rec,
				  uint32_t mcofs, struct lb_rec_sample *snapshot,
				  struct lb_rec_sample *exact)
{
	return lj_traces_elsewhere(lj_compiled_of(compiled)->traces, rec, mcofs, snapshot, exact);
}

/* ---- functions that the host keeps ----------------------------------------------------------- */

struct lj_kept_arg {
	sym_definition_fn fn;
	void *arg;
};

static int lj_kept_function(void *arg, const struct lj_loaded *found)
{
	const struct lj_kept_arg *k = arg;

	return found->ffid ? 0 : k->fn(k->arg, found->code, found->field);
}

static int lj_kept(const struct lb_mem *mem, const struct lb_build *build, uint64_t g,
		   sym_definition_fn fn, void *arg)
{
	struct lj_kept_arg k = {fn, arg};

	return lj_loaded_kept(mem, &build->lj.lj, g, lj_kept_function, &k);
}

/* ---- zones ----------------------------------------------------------------------------------- */

static int lj_zone(const struct lb_mem *mem, const struct lb_build *build, uint64_t g,
		   const char *module, struct lb_zone *out)
{
	return lj_zone_find(mem, &build->lj.lj, g, module, out);
}

static void lj_zone_layout_of(const struct lb_build *build, struct lb_zone_layout *out)
{
	lj_zone_layout(&build->lj.lj, out);
}

/* ---- the table ------------------------------------------------------------------------------- */

const struct sym_family lj_family = {
	.read = lj_read,
	.free = lj_free,
	.fingerprint = lj_fingerprint,
	.hash = lj_hash,
	.same = lj_same,
	.complete = lj_complete,
	.chunkname = lj_chunkname,
	.firstline = lj_firstline,
	.line = lj_line,
	.callname = lj_callname,
	.definitions = lj_definitions,
	.is_main = lj_is_main,
	.shape = lj_shape,
	.contents = lj_contents,
	.object = lj_object,
	.child = lj_child,
	.names_read = lj_names_read,
	.names_free = lj_names_free,
	.names_same = lj_names_same,
	.builtin = lj_builtin,
	.cfunction = lj_cfunction,
	.kept = lj_kept,
	.compiled_new = lj_compiled_new,
	.compiled_watch = lj_compiled_watch,
	.attribute_elsewhere = lj_attribute_elsewhere,
	.compiled_free = lj_compiled_free,
	.attribute = lj_attribute,
	.zone = lj_zone,
	.zone_layout = lj_zone_layout_of,
};
