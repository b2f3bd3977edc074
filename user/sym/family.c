// SPDX-License-Identifier: BSD-2-Clause
/* The families' own functions behind one table: here are their casts, and
 * nothing else. */
#include "family.h"
#include "lj_ffnames.h"
#include "lj_proto.h"
#include "lj_traces.h"
#include "puc_cnames.h"
#include "puc_proto.h"

/* ---- LuaJIT ---------------------------------------------------------------------------------- */

static int lj_read(const struct lb_mem *mem, const struct lb_build *build, uint64_t addr,
		   struct proto **out)
{
	(void)build;
	return lj_proto_read(mem, addr, (struct lj_proto **)out);
}

static void lj_free(struct proto **p)
{
	lj_proto_free((struct lj_proto **)p);
}

static uint32_t lj_fingerprint(const struct proto *p)
{
	return lj_proto_fingerprint((const struct lj_proto *)p);
}

static uint64_t lj_hash(const struct proto *p)
{
	return lj_proto_hash((const struct lj_proto *)p);
}

static bool lj_same(const struct proto *a, const struct proto *b)
{
	return lj_proto_same((const struct lj_proto *)a, (const struct lj_proto *)b);
}

static bool lj_complete(const struct proto *p)
{
	return lj_proto_complete((const struct lj_proto *)p);
}

static void lj_code(const struct proto *p, uint64_t *lo, uint64_t *hi)
{
	*lo = lj_proto_addr((const struct lj_proto *)p) + LJ_PROTO_SIZE;
	*hi = *lo + 4ULL * lj_proto_sizebc((const struct lj_proto *)p);
}

static const char *lj_chunkname(const struct proto *p, size_t *len)
{
	return lj_proto_chunkname((const struct lj_proto *)p, len);
}

static int32_t lj_firstline(const struct proto *p)
{
	return lj_proto_firstline((const struct lj_proto *)p);
}

static int32_t lj_line(const struct proto *p, uint32_t pc)
{
	return lj_proto_line((const struct lj_proto *)p, pc);
}

static void lj_callname(const struct proto *p, uint32_t pc, const char **name)
{
	lj_proto_callname((const struct lj_proto *)p, pc, name);
}

static int lj_definitions(const struct proto *p, sym_definition_fn fn, void *arg)
{
	return lj_proto_definitions((const struct lj_proto *)p, fn, arg);
}

static int lj_names_read(const struct lb_mem *mem, const struct lb_build *build, uint64_t g,
			 struct names **out)
{
	return lj_ffnames_read(mem, &build->lj.lj, g, (struct lj_ffnames **)out);
}

static void lj_names_free(struct names **names)
{
	lj_ffnames_free((struct lj_ffnames **)names);
}

static const char *lj_builtin(const struct names *names, uint64_t number)
{
	return lj_ffname((const struct lj_ffnames *)names, (uint8_t)number);
}

static const char *lj_cfunction(const struct names *names, uint64_t addr)
{
	return lj_cfunc_name((const struct lj_ffnames *)names, addr);
}

static int lj_compiled_new(const struct lb_mem *mem, struct compiled **out)
{
	return lj_traces_new(mem, (struct lj_traces **)out);
}

static void lj_compiled_free(struct compiled **compiled)
{
	lj_traces_free((struct lj_traces **)compiled);
}

static int lj_refine(struct compiled *compiled, const struct lb_build *build,
		     const struct names *names, struct lb_rec_sample *rec)
{
	return lj_traces_refine((struct lj_traces *)compiled, &build->lj,
				(const struct lj_ffnames *)names, rec);
}

static const struct sym_family lj_family = {
	.read = lj_read,
	.free = lj_free,
	.fingerprint = lj_fingerprint,
	.hash = lj_hash,
	.same = lj_same,
	.complete = lj_complete,
	.code = lj_code,
	.chunkname = lj_chunkname,
	.firstline = lj_firstline,
	.line = lj_line,
	.callname = lj_callname,
	.definitions = lj_definitions,
	.names_read = lj_names_read,
	.names_free = lj_names_free,
	.builtin = lj_builtin,
	.cfunction = lj_cfunction,
	.compiled_new = lj_compiled_new,
	.compiled_free = lj_compiled_free,
	.refine = lj_refine,
};

/* ---- PUC Lua --------------------------------------------------------------------------------- */

static int puc_read(const struct lb_mem *mem, const struct lb_build *build, uint64_t addr,
		    struct proto **out)
{
	return puc_proto_read(mem, &build->puc.puc, addr, (struct puc_proto **)out);
}

static void puc_free(struct proto **p)
{
	puc_proto_free((struct puc_proto **)p);
}

static uint32_t puc_fingerprint(const struct proto *p)
{
	return puc_proto_fingerprint((const struct puc_proto *)p);
}

static uint64_t puc_hash(const struct proto *p)
{
	return puc_proto_hash((const struct puc_proto *)p);
}

static bool puc_complete(const struct proto *p)
{
	return puc_proto_complete((const struct puc_proto *)p);
}

static const char *puc_misfit(const struct proto *p)
{
	return puc_proto_misfit((const struct puc_proto *)p);
}

static void puc_code(const struct proto *p, uint64_t *lo, uint64_t *hi)
{
	*lo = puc_proto_code((const struct puc_proto *)p);
	*hi = *lo + 4ULL * puc_proto_sizecode((const struct puc_proto *)p);
}

static const char *puc_chunkname(const struct proto *p, size_t *len)
{
	return puc_proto_chunkname((const struct puc_proto *)p, len);
}

static int32_t puc_firstline(const struct proto *p)
{
	return puc_proto_firstline((const struct puc_proto *)p);
}

static int32_t puc_line(const struct proto *p, uint32_t pc)
{
	return puc_proto_line((const struct puc_proto *)p, pc);
}

static void puc_callname(const struct proto *p, uint32_t pc, const char **name)
{
	puc_proto_callname((const struct puc_proto *)p, pc, name);
}

static int puc_definitions(const struct proto *p, sym_definition_fn fn, void *arg)
{
	return puc_proto_definitions((const struct puc_proto *)p, fn, arg);
}

static int puc_names_read(const struct lb_mem *mem, const struct lb_build *build, uint64_t g,
			  struct names **out)
{
	return puc_cnames_read(mem, &build->puc.puc, g, (struct puc_cnames **)out);
}

static void puc_names_free(struct names **names)
{
	puc_cnames_free((struct puc_cnames **)names);
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
	return puc_cname((const struct puc_cnames *)names, addr);
}

static const struct sym_family puc_family = {
	.read = puc_read,
	.free = puc_free,
	.fingerprint = puc_fingerprint,
	.hash = puc_hash,
	.complete = puc_complete,
	.misfit = puc_misfit,
	.code = puc_code,
	.chunkname = puc_chunkname,
	.firstline = puc_firstline,
	.line = puc_line,
	.callname = puc_callname,
	.definitions = puc_definitions,
	.names_read = puc_names_read,
	.names_free = puc_names_free,
	.builtin = puc_builtin,
	.cfunction = puc_cfunction,
	.libraries_first = true,
	.slots_change = true,
};

const struct sym_family *sym_family(uint32_t family)
{
	switch (family) {
	case LB_FAMILY_LJ:
		return &lj_family;
	case LB_FAMILY_PUC:
		return &puc_family;
	}
	return NULL;
}
