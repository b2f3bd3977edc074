// SPDX-License-Identifier: BSD-2-Clause
/* Symbolic execution of accesses to fields and elements of cdata (layer 2). */
#include <math.h>
#include <string.h>

#include "lua/lj/cdata.h"
#include "callee.h"
#include "exec.h"
#include "lua/lj/bc.h"

/* The data of a cdata: `ofs` bytes after pointer `ref`, of this C type. */
struct memref {
	uint32_t ref, ofs, type;
};

/* True for the load of a cdata's field of this type (LJ_IRT_*): its pointer, its C type. */
static bool is_field(const struct lj_trace *t, const struct lj_ins *ir, op_set type)
{
	(void)t;
	return ir->o == LJ_IR_FLOAD && (ir->t & LJ_IRT_TYPE) == type;
}

/* Labels its initialization, too. */
uint32_t lj_step_new_cdata(struct sim *l)
{
	const struct lj_trace *t = l->t;
	uint32_t ref = lj_value_find(l, lj_step_is, OPS(CNEW) | OPS(CNEWI), NULL, NULL), r;

	for (r = ref + 1; ref && r < l->hi; r++) {
		const struct lj_ins *ir = lj_ins_at(t, r);
		bool field = ir->o == LJ_IR_ADD && ir->op1 == ref;
		bool store = ir->o == LJ_IR_XSTORE && lj_ref_ok(t, ir->op1) &&
			     lj_ins_at(t, ir->op1)->op1 == ref;

		if (!field && !store && ir->o != LJ_IR_CONV)
			break;
		lj_claim_ref(l, r);
	}
	return ref;
}

static bool memref_of(struct sim *l, struct value *cdata, struct memref *p)
{
	uint32_t ref = lj_value_ref(l, cdata);
	const struct lj_ins *ir;

	*p = (struct memref){.ref = ref, .type = lj_value_ctype(l, cdata)};
	if (!p->type || !l->cdata)
		return false;
	if (cdata->kind == VAL_PLACE) {
		p->ref = cdata->ref;
		p->ofs = cdata->ofs;
		return true;
	}
	if (ref <= LJ_REF_BIAS)
		return false;
	ir = lj_ins_at(l->t, ref);
	if (ir->o == LJ_IR_CNEWI)
		p->ref = ir->op2;
	else if (lj_cdata_is_pointer(l->cdata, p->type))
		p->ref = lj_value_find(l, is_field, LJ_IRT_P64, cdata, NULL);
	else
		p->ofs = LJ_OFF(&l->t->lj, CDATA_SIZE);
	if (p->ref <= LJ_REF_BIAS)
		return false;
	ir = lj_ins_at(l->t, p->ref);
	if (!p->ofs && ir->o == LJ_IR_ADD && lj_value_integer(l->t, ir->op2)) {
		p->ofs = (uint32_t)lj_value_integer(l->t, ir->op2); /* offsets add up */
		p->ref = ir->op1;
	}
	return true;
}

#define TERMS 4
#define TERMS_VISITS 128	       /* cost of one, in visited instructions */
#define INDEX_MAX 65536.0	       /* largest constant in an index */
#define ELEMENT_MAX ((int64_t)1 << 31) /* bytes */

/* The terms of an integer sum: references, in ascending order, and a constant. */
struct terms {
	uint32_t ref[TERMS], n;
	double ofs;
};

static bool insert_term(struct terms *s, uint32_t ref)
{
	uint32_t i = s->n++;

	if (i == TERMS)
		return false;
	for (; i && s->ref[i - 1] > ref; i--)
		s->ref[i] = s->ref[i - 1];
	s->ref[i] = ref;
	return true;
}

/* Collects the terms of a affine. False: too many, or no sum of LuaJIT's. */
static bool terms_of(const struct lj_trace *t, uint32_t ref, struct terms *out)
{
	uint32_t todo[TERMS] = {ref}, n = 1, hops;

	for (hops = 0; n && hops < 2 * TERMS; hops++) {
		struct lj_affine affine = lj_value_affine(t, todo[--n]);
		const struct lj_ins *ir;

		out->ofs += affine.ofs;
		if (!affine.base)
			continue;
		if (!lj_ref_ok(t, affine.base))
			return false;
		ir = lj_ins_at(t, affine.base);
		if (ir->o != LJ_IR_ADD && ir->o != LJ_IR_ADDOV) {
			if (!insert_term(out, affine.base))
				return false;
			continue;
		}
		if (n + 2 > TERMS)
			return false;
		todo[n++] = ir->op1;
		todo[n++] = ir->op2;
	}
	return !n;
}

/* The same for a value, also for one without an instruction. */
static bool terms_of_value(const struct sim *l, const struct value *v, struct terms *out)
{
	uint32_t ref = v->kind == VAL_UNKNOWN ? v->ref : lj_value_ref(l, v);

	*out = (struct terms){.ofs = v->kind == VAL_UNKNOWN ? v->num : 0};
	return ref && terms_of(l->t, ref, out);
}

/* Returns the index that is multiplied by an element's size, and that. */
static uint32_t unscaled(const struct lj_trace *t, uint32_t ref, int64_t *size)
{
	const struct lj_ins *ir = lj_ins_at(t, ref);

	*size = 1;
	if (ir->o == LJ_IR_MUL)
		*size = lj_value_integer(t, ir->op2);
	else if (ir->o == LJ_IR_BSHL && ir->op2 < LJ_REF_BIAS)
		*size <<= lj_value_integer(t, ir->op2) & 31;
	else
		return ref;
	if (*size > 0 && *size <= ELEMENT_MAX)
		return ir->op1;
	*size = 1;
	return ref;
}

/* True if ir adds the element's offset to the pointer, but for a constant: *rest, in bytes. */
static bool adds_index(struct sim *l, const struct lj_ins *ir, uint32_t ptr,
		       const struct terms *index, int64_t *rest)
{
	const struct lj_trace *t = l->t;
	uint32_t by = ir->op1 == ptr ? ir->op2 : ir->op1;
	struct terms is = {0};
	int64_t size;

	if (ir->o != LJ_IR_ADD || (ir->op1 != ptr && ir->op2 != ptr) || by <= LJ_REF_BIAS ||
	    !lj_ref_ok(t, by))
		return false;
	l->visits += TERMS_VISITS;
	if (!terms_of(t, unscaled(t, by, &size), &is) || is.n != index->n ||
	    memcmp(is.ref, index->ref, is.n * sizeof(*is.ref)) != 0 ||
	    !(fabs(index->ofs - is.ofs) < INDEX_MAX))
		return false;
	*rest = size * (int64_t)(index->ofs - is.ofs);
	return true;
}

/* Moves *p to the element of this index. LuaJIT adds constants in the index to the pointer instead
 * (lj_opt_fold.c, reassociation). False: the trace does not show it. */
static bool go_to_element(struct sim *l, const struct value *index, struct memref *p)
{
	struct terms want;
	uint32_t ref, size;
	int64_t rest;

	if (index->kind == VAL_NUM) {
		size = lj_cdata_size(l->cdata, p->type);
		if (!size || !(fabs(index->num) < INDEX_MAX))
			return false;
		p->ofs += (uint32_t)((int64_t)index->num * size);
		return true;
	}
	if (!terms_of_value(l, index, &want))
		return false;
	l->visits += l->hi - LJ_REF_BIAS;
	for (ref = LJ_REF_BIAS + 1; ref < l->hi; ref++)
		if (adds_index(l, lj_ins_at(l->t, ref), p->ref, &want, &rest)) {
			lj_claim_ref(l, ref);
			p->ref = ref;
			p->ofs += (uint32_t)rest;
			return true;
		}
	return false;
}

/* True for an addition without a constant. */
static bool is_indexed(const struct lj_trace *t, const struct lj_ins *ir, op_set unused)
{
	(void)t;
	(void)unused;
	return ir->o == LJ_IR_ADD && ir->op1 > LJ_REF_BIAS && ir->op2 > LJ_REF_BIAS;
}

/* Returns the pointer to the data; 0: the trace has none. */
static uint32_t find_memref(struct sim *l, const struct memref *p)
{
	struct value from = {.kind = VAL_REF, .ref = p->ref, .by = -1};
	struct value by = lj_value_number((int32_t)p->ofs);

	return p->ofs ? lj_value_find(l, lj_step_is, OPS(ADD), &from, &by) : p->ref;
}

/* Moves *p to a field or an element of it. */
static bool go_inside(struct sim *l, const struct value *index, uint32_t ins, struct memref *p)
{
	struct value from = {.kind = VAL_REF, .ref = p->ref, .by = -1};
	uint8_t op = lj_bc_op(ins);
	uint32_t ofs;

	if (op == LJ_BC_TGETS || op == LJ_BC_TSETS) {
		if (!lj_cdata_field(l->cdata, p->type, lj_step_string(l->t, l->step, lj_bc_c(ins)),
				    &ofs, &p->type))
			return false;
		p->ofs += ofs;
		return true;
	}
	p->type = lj_cdata_element(l->cdata, p->type);
	if (p->type && go_to_element(l, index, p))
		return true;
	p->ref = lj_value_find(l, is_indexed, 0, &from, NULL);
	return p->type && p->ref;
}

void lj_step_ctype(struct sim *l, struct value *cdata)
{
	uint32_t at = lj_value_find(l, is_field, LJ_IRT_U16, cdata, NULL);

	if (at)
		lj_step_through(l, OPS(EQ), at, NULL);
}

/* Loads of these types are converted to a number at once (crec_tv_ct). */
static void made_number(struct sim *l, struct value *v)
{
	uint8_t type = lj_value_type(l, v);
	uint32_t ref = 0;

	if (v->kind == VAL_REF && (type == LJ_IRT_FLOAT || type == LJ_IRT_U32))
		ref = lj_step_through(l, OPS(CONV), v->ref, NULL);
	if (ref)
		lj_value_set(v, ref);
}

bool lj_step_cdata(struct sim *l, uint32_t ins, struct value *cdata, const struct value *index,
		   struct value *dst)
{
	uint32_t at;
	struct memref p;
	struct value ptr;

	lj_step_ctype(l, cdata);
	if (lj_bc_op(ins) == LJ_BC_TGETS &&
	    lj_calls_method(l, cdata, lj_step_string(l->t, l->step, lj_bc_c(ins)), dst)) {
		l->t->history[l->step].folded = true;
		return true;
	}
	if (!memref_of(l, cdata, &p) || !go_inside(l, index, ins, &p))
		return false;
	at = find_memref(l, &p);
	if (lj_bc_mm(ins) == LJ_MM_NEWINDEX) {
		lj_step_stored(l, at, dst);
		return true;
	}
	if (lj_cdata_is_aggregate(l->cdata, p.type)) {
		lj_value_set(&ptr, at);
		if (at)
			lj_value_find(l, lj_step_is, OPS(CNEWI), NULL, &ptr);
		*dst = (struct value){
			.kind = VAL_PLACE, .ref = p.ref, .ofs = p.ofs, .ctype = p.type, .by = -1};
		return true;
	}
	*dst = lj_step_loaded(l, at);
	made_number(l, dst);
	return true;
}
