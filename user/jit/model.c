// SPDX-License-Identifier: BSD-2-Clause
/* Queries on a trace's constants and bytecode, and its release (layer 0). */
#include <stdlib.h>
#include <string.h>

#include "jit.h"
#include "model.h"

uint64_t lj_trace_const(const struct lj_trace *t, uint32_t ref)
{
	return ref >= t->nk && ref < LJ_REF_BIAS ? t->consts[ref - t->nk] : 0;
}

/* Returns the constant in a slot of a snapshot. */
static uint64_t constant_in(const struct lj_trace *t, const struct lj_tsnap *s, int32_t slot)
{
	return slot < 0 ? 0 : lj_trace_const(t, lj_snap_entry(s, (uint32_t)slot) & 0xffff);
}

/* Returns the link of a GC32 snapshot's frame or continuation at this slot. The links are ordered from the highest slot down. */
static uint64_t link_word(const struct lj_tsnap *s, int32_t slot)
{
	uint32_t i, n = 0;

	for (i = s->nent; i-- > 0 && n < s->nlinks;) {
		if (!(s->map[i] & (LJ_SNAP_FRAME | LJ_SNAP_CONT)))
			continue;
		if ((int32_t)(s->map[i] >> 24) == slot)
			return s->links[n];
		n++;
	}
	return 0;
}

uint64_t lj_snap_link(const struct lj_trace *t, const struct lj_tsnap *s, int32_t slot)
{
	return lj_is_gc32(&t->lj) ? link_word(s, slot) : constant_in(t, s, slot + 1);
}

uint64_t lj_snap_contpc(const struct lj_trace *t, const struct lj_tsnap *s, int32_t slot)
{
	return lj_is_gc32(&t->lj) ? link_word(s, slot - 1) : constant_in(t, s, slot - 1);
}

uint64_t lj_trace_key(const struct lj_trace *t, const struct lj_ins *ir)
{
	uint32_t ref = ir->op2;

	if (lj_ref_ok(t, ref) && lj_ins_at(t, ref)->o == LJ_IR_KSLOT)
		ref = lj_ins_at(t, ref)->op1;
	return lj_trace_const(t, ref);
}

int lj_trace_code(const struct lj_trace *t, uint64_t pc, uint32_t *bcpos)
{
	uint32_t i;

	for (i = 0; i < t->ncodes; i++) {
		uint64_t at = pc - t->codes[i].proto - LJ_OFF(&t->lj, PROTO_SIZE);

		if (!(at & 3) && at / 4 < t->codes[i].sizebc) {
			*bcpos = (uint32_t)(at / 4);
			return (int)i;
		}
	}
	return -1;
}

uint32_t lj_trace_table(const struct lj_trace *t, const struct lj_ins *ir)
{
	if ((ir->o == LJ_IR_HREFK || ir->o == LJ_IR_AREF) && lj_ref_ok(t, ir->op1) &&
	    lj_ins_at(t, ir->op1)->o == LJ_IR_FLOAD)
		return lj_ins_at(t, ir->op1)->op1;
	return ir->op1;
}

/* Frees all that only attribution uses. */
static void free_work(struct lj_trace *t)
{
	uint32_t i;

	for (i = 0; i < t->ncodes; i++) {
		free(t->codes[i].bc);
		free(t->codes[i].kgc);
		free(t->codes[i].kn);
		t->codes[i].bc = NULL;
		t->codes[i].kgc = NULL;
		t->codes[i].kn = NULL;
	}
	free(t->map); /* the snapshots' entries */
	free(t->ir);
	free(t->consts);
	free(t->code_bytes);
	free(t->label);
	t->map = NULL;
	t->ir = NULL;
	t->consts = NULL;
	t->code_bytes = NULL;
	t->label = NULL;
}

void lj_trace_free(struct lj_trace **tp)
{
	struct lj_trace *t = *tp;

	if (!t)
		return;
	free_work(t);
	free(t->codes);
	free(t->snap);
	free(t->frames);
	free(t->history);
	free(t->mc_entries);
	free(t);
	*tp = NULL;
}

static void shrink(void *array, size_t n, size_t size)
{
	void *p, *smaller;

	memcpy(&p, array, sizeof(p));
	smaller = realloc(p, n ? n * size : size);
	if (smaller)
		memcpy(array, &smaller, sizeof(smaller));
}

void lj_trace_keep_lookup(struct lj_trace *t)
{
	free_work(t);
	shrink(&t->codes, t->ncodes, sizeof(*t->codes));
	shrink(&t->frames, t->nframes, sizeof(*t->frames));
	shrink(&t->history, t->nhistory, sizeof(*t->history));
	shrink(&t->mc_entries, t->nmc_entries, sizeof(*t->mc_entries));
}

uint32_t lj_trace_fp(const struct lj_trace *t)
{
	return t->fp;
}
