// SPDX-License-Identifier: BSD-2-Clause
#include "value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lua/lj/cdata.h"
#include "lua/lj/bc.h"

int lj_sim_mark(struct sim *l, struct sim_mark *mark)
{
	if (l->nsaved + l->top > l->maxsaved) {
		size_t max = 2 * (l->nsaved + l->top);
		struct value *more = reallocarray(l->saved, max, sizeof(*more));

		if (!more)
			return -ENOMEM;
		l->saved = more;
		l->maxsaved = max;
	}
	*mark = (struct sim_mark){
		.top = l->top,
		.done = l->done,
		.next_snap = l->next_snap,
		.cur = l->cur,
		.nclaimed = l->nclaimed,
		.saved = l->nsaved,
		.multres = l->multres,
		.nstores = l->nstores,
		.retf = l->retf,
	};
	if (l->top)
		memcpy(l->saved + l->nsaved, l->slot, l->top * sizeof(*l->slot));
	l->nsaved += l->top;
	return 0;
}

static struct value unset(uint32_t slot)
{
	return (struct value){.kind = VAL_ENTRY_SLOT, .ref = slot, .by = -1};
}

void lj_sim_back(struct sim *l, const struct sim_mark *mark)
{
	if (mark->top)
		memcpy(l->slot, l->saved + mark->saved, mark->top * sizeof(*l->slot));
	while (l->top > mark->top) {
		l->top--;
		l->slot[l->top] = unset(l->top);
	}
	while (l->nclaimed > mark->nclaimed)
		*lj_label_of(l->t, l->claimed[--l->nclaimed]) = -1;
	l->done = mark->done;
	l->next_snap = mark->next_snap;
	l->cur = mark->cur;
	l->nsaved = mark->saved;
	l->multres = mark->multres;
	l->nstores = mark->nstores;
	l->retf = mark->retf;
	l->dead_end = false;
}

struct value lj_value_number(double num)
{
	return (struct value){.kind = VAL_NUM, .num = num, .by = -1};
}

struct value lj_value_object(uint64_t addr, uint8_t type)
{
	return (struct value){.kind = VAL_OBJ, .obj = addr, .type = type, .by = -1};
}

struct value lj_value_const(const struct lj_code *code, uint32_t idx)
{
	return lj_value_number(idx < code->nkn ? code->kn[idx] : 0);
}

struct value lj_value_string(const struct lj_code *code, uint32_t idx)
{
	return lj_value_object(lj_code_kgc(code, idx), LJ_IRT_STR);
}

void lj_value_unset(struct sim *l)
{
	uint32_t i;

	for (i = 0; i < SLOTS; i++)
		l->slot[i] = unset(i);
}

void lj_value_store(struct sim *l, uint32_t at, const struct value *v)
{
	if (at && l->nstores < l->maxstores)
		l->stores[l->nstores++] = (struct stored){at, *v};
}

const struct value *lj_value_stored(const struct sim *l, uint32_t at)
{
	uint32_t i;

	for (i = l->nstores; i-- > 0;)
		if (l->stores[i].at == at)
			return &l->stores[i].v;
	return NULL;
}

struct value *lj_value_at(struct sim *l, uint32_t slot)
{
	if (slot >= l->top)
		l->top = slot + 1;
	return &l->slot[slot];
}

struct value *lj_value_slot(struct sim *l, const struct lj_tframe *f, uint32_t local)
{
	uint32_t i = (uint32_t)f->slot + lj_frame_slots(l->t) + local;

	if (f->slot >= 0 && i < SLOTS)
		return lj_value_at(l, i);
	l->elsewhere = (struct value){.kind = VAL_UNKNOWN, .by = -1};
	return &l->elsewhere;
}

struct value *lj_value_arg(struct sim *l, const struct lj_tframe *f, uint32_t ins, uint32_t i)
{
	return lj_value_slot(l, f, lj_bc_a(ins) + lj_frame_slots(l->t) + i);
}

#define CONVERSIONS 4 /* longest chain */

#define CONV_INDEX 2 /* lj_ir.h, IRCONV_INDEX: mode of a conversion of a table's index */

static bool converts_index(const struct lj_ins *ir)
{
	return ir->o == LJ_IR_CONV && ir->op2 >> 12 == CONV_INDEX;
}

/* Strips conversions, of a table's index only where `index` says so. */
static uint32_t unconverted(const struct lj_trace *t, uint32_t ref, bool index)
{
	uint32_t n = CONVERSIONS;

	while (n-- && ref > LJ_REF_BIAS && ref < t->nins &&
	       (lj_ins_at(t, ref)->o == LJ_IR_CONV || lj_ins_at(t, ref)->o == LJ_IR_TOBIT) &&
	       (index || !converts_index(lj_ins_at(t, ref))))
		ref = lj_ins_at(t, ref)->op1;
	return ref;
}

int64_t lj_value_integer(const struct lj_trace *t, uint32_t ref)
{
	const struct lj_ins *ir;

	if (!lj_ref_ok(t, ref) || ref >= LJ_REF_BIAS)
		return 0;
	ir = lj_ins_at(t, ref);
	return ir->o == LJ_IR_KINT     ? (int32_t)(ir->op1 | (uint32_t)ir->op2 << 16)
	       : ir->o == LJ_IR_KINT64 ? (int64_t)lj_trace_const(t, ref)
				       : 0;
}

bool lj_value_constant(const struct lj_trace *t, uint32_t ref, struct value *out)
{
	const struct lj_ins *ir;
	uint64_t bits;
	double num;

	if (!lj_ref_ok(t, ref) || ref >= LJ_REF_BIAS)
		return false;
	ir = lj_ins_at(t, ref);
	switch (ir->o) {
	case LJ_IR_KINT:
	case LJ_IR_KINT64:
		*out = lj_value_number((double)lj_value_integer(t, ref));
		return true;
	case LJ_IR_KNUM:
		bits = lj_trace_const(t, ref);
		memcpy(&num, &bits, sizeof(num));
		*out = lj_value_number(num);
		return true;
	case LJ_IR_KGC:
		if ((ir->t & LJ_IRT_TYPE) != LJ_IRT_STR)
			return false;
		*out = lj_value_object(lj_trace_const(t, ref), LJ_IRT_STR);
		return true;
	default:
		return false;
	}
}

static bool constant_is(const struct lj_trace *t, uint32_t ref, double num, bool divisor)
{
	struct value c;

	if (!lj_value_constant(t, ref, &c) || c.kind != VAL_NUM)
		return false;
	return c.num == num ||
	       (divisor && lj_ins_at(t, ref)->o == LJ_IR_KNUM && c.num * num == 1.0);
}

#define SUMS_MAX 16 /* longest chain */

struct lj_affine lj_value_affine(const struct lj_trace *t, uint32_t ref)
{
	struct lj_affine s = {.base = ref};
	struct value c;
	uint32_t n;

	for (n = 0; n < SUMS_MAX && lj_ref_ok(t, s.base); n++) {
		const struct lj_ins *ir = lj_ins_at(t, s.base);

		if (lj_value_constant(t, s.base, &c) && c.kind == VAL_NUM) {
			s.ofs += c.num;
			s.base = 0;
			break;
		}
		if (ir->o != LJ_IR_CONV) {
			bool adds = ir->o == LJ_IR_ADD || ir->o == LJ_IR_ADDOV;

			if ((!adds && ir->o != LJ_IR_SUB && ir->o != LJ_IR_SUBOV) ||
			    !lj_value_constant(t, ir->op2, &c) || c.kind != VAL_NUM)
				break;
			s.ofs += adds ? c.num : -c.num;
		}
		s.base = ir->op1;
	}
	return s;
}

/* True if a table's index is this value, narrowed: the same affine form (lj_opt_narrow.c). */
static bool is_same_affine(const struct lj_trace *t, uint32_t a, uint32_t b)
{
	struct lj_affine sa = lj_value_affine(t, a), sb = lj_value_affine(t, b);

	return sa.base && sa.base == sb.base && sa.ofs == sb.ofs;
}

enum match { MATCH_NO, MATCH_MAYBE, MATCH_YES };

static enum match matches(const struct sim *l, const struct value *v, uint32_t ref, bool index)
{
	const struct lj_ins *ir;

	switch (v->kind) {
	case VAL_REF:
		return ref == v->ref ||
				       unconverted(l->t, ref, index) ==
					       unconverted(l->t, v->ref, index) ||
				       (index && is_same_affine(l->t, ref, v->ref))
			       ? MATCH_YES
			       : MATCH_NO;
	case VAL_OBJ:
		if (lj_ref_ok(l->t, ref) && lj_ins_at(l->t, ref)->o == LJ_IR_KSLOT)
			ref = lj_ins_at(l->t, ref)->op1;
		if (!lj_ref_ok(l->t, ref) || ref >= LJ_REF_BIAS ||
		    (lj_ins_at(l->t, ref)->t & LJ_IRT_TYPE) != v->type)
			return MATCH_NO;
		if (lj_ins_at(l->t, ref)->o == LJ_IR_KPRI) /* the type determines the value */
			return MATCH_YES;
		if (!v->obj && v->type == LJ_IRT_STR) /* its content is not computed */
			return MATCH_MAYBE;
		return lj_trace_const(l->t, ref) == v->obj ? MATCH_YES : MATCH_NO;
	case VAL_NUM:
		return constant_is(l->t, ref, v->num, l->divides) ? MATCH_YES : MATCH_NO;
	case VAL_TYPENAME:
	case VAL_PLACE:
		return MATCH_NO;
	case VAL_UNKNOWN:
		return MATCH_MAYBE;
	default:
		ref = unconverted(l->t, ref, index);
		if (ref <= LJ_REF_BIAS || ref >= l->t->nins)
			return MATCH_MAYBE;
		if (ref <= l->retf)
			return MATCH_NO;
		ir = lj_ins_at(l->t, ref);
		return ir->o == LJ_IR_SLOAD && ir->op1 == v->ref ? MATCH_YES : MATCH_NO;
	}
}

uint32_t lj_value_bound(const struct sim *l)
{
	return l->next_snap < l->t->npre ? l->t->snap[l->next_snap].ref : lj_recorded_end(l->t);
}

void lj_value_range(const struct sim *l, int32_t step, uint32_t *lo, uint32_t *hi)
{
	const struct lj_trace *t = l->t;
	uint8_t op = lj_bc_op(lj_step_ins(t, (uint32_t)step));
	bool loads = op <= LJ_BC_ISNEP || (op >= LJ_BC_RETM && op <= LJ_BC_RET1);
	uint32_t i;

	*lo = LJ_REF_BIAS + 1;
	*hi = lj_value_bound(l);
	for (i = l->next_snap; i-- > 0;) {
		const struct lj_tsnap *s = &t->snap[i];

		/* a comparison's is taken after its operands are loaded (rec_comp_prep), a return's
		 * after its results are (lj_record_ret) */
		if (s->step == step && !s->inside && loads) {
			loads = false;
			continue;
		}
		/* one inside a step: its guard is that step's */
		if (s->step < step + !s->inside) {
			*lo = s->ref;
			break;
		}
		if (s->step > step)
			*hi = s->ref;
	}
}

uint32_t lj_value_ref(const struct sim *l, const struct value *v)
{
	uint32_t ref;

	if (v->kind == VAL_REF)
		return v->ref;
	if (v->kind != VAL_ENTRY_SLOT)
		return 0;
	for (ref = l->retf + 1; ref < lj_recorded_end(l->t); ref++)
		if (lj_ins_at(l->t, ref)->o == LJ_IR_SLOAD && lj_ins_at(l->t, ref)->op1 == v->ref)
			return ref;
	return 0;
}

/* True for a string's byte: a number. A byte of cdata may be a boolean. */
static bool is_character(const struct lj_trace *t, uint32_t ref)
{
	const struct lj_ins *ir = lj_ins_at(t, ref);

	return ir->o == LJ_IR_XLOAD && lj_ref_ok(t, ir->op1) &&
	       lj_ins_at(t, ir->op1)->o == LJ_IR_STRREF;
}

uint8_t lj_value_type(const struct sim *l, const struct value *v)
{
	uint32_t ref;

	if (v->kind == VAL_NUM || (v->kind == VAL_UNKNOWN && v->number))
		return LJ_IRT_NUM;
	if (v->kind == VAL_OBJ)
		return v->type;
	if (v->kind == VAL_TYPENAME)
		return LJ_IRT_STR;
	if (v->kind == VAL_PLACE)
		return LJ_IRT_CDATA;
	ref = lj_value_ref(l, v);
	if (!lj_ref_ok(l->t, ref))
		return LJ_IRT_UNKNOWN;
	return is_character(l->t, ref) ? LJ_IRT_INT : lj_ins_at(l->t, ref)->t & LJ_IRT_TYPE;
}

bool lj_value_is_number(const struct sim *l, const struct value *v)
{
	uint8_t type = lj_value_type(l, v);

	return type != LJ_IRT_UNKNOWN && type >= LJ_IRT_FLOAT;
}

/* Returns the constant with which the trace guards a field of this type of cdata `ref`
 * (argv2cdata). */
static uint32_t guarded_field(const struct lj_trace *t, uint32_t ref, uint8_t type)
{
	uint32_t i;

	for (i = LJ_REF_BIAS + 1; i < lj_recorded_end(t); i++) {
		const struct lj_ins *ir = lj_ins_at(t, i), *of;

		if (ir->o != LJ_IR_EQ || !lj_ref_ok(t, ir->op1))
			continue;
		of = lj_ins_at(t, ir->op1);
		if (of->o == LJ_IR_FLOAD && of->op1 == ref && (of->t & LJ_IRT_TYPE) == type)
			return (uint32_t)lj_value_integer(t, ir->op2);
	}
	return 0;
}

uint32_t lj_value_ctype(const struct sim *l, const struct value *v)
{
	uint32_t ref = lj_value_ref(l, v);
	const struct lj_ins *ir;

	if (v->kind == VAL_PLACE)
		return v->ctype;
	if (v->kind == VAL_OBJ)
		return lj_cdata_type(&l->t->lj, l->mem, v->obj);
	if (!lj_ref_ok(l->t, ref))
		return 0;
	ir = lj_ins_at(l->t, ref);
	if (ir->o == LJ_IR_KGC)
		return lj_cdata_type(&l->t->lj, l->mem, lj_trace_const(l->t, ref));
	if (ir->o == LJ_IR_CNEW || ir->o == LJ_IR_CNEWI)
		return (uint32_t)lj_value_integer(l->t, ir->op1);
	return guarded_field(l->t, ref, LJ_IRT_U16);
}

uint32_t lj_value_ctype_named(const struct sim *l, const struct value *v)
{
	uint32_t ref = lj_value_ref(l, v);

	if (v->kind == VAL_OBJ)
		return l->cdata ? lj_cdata_named(l->cdata, v->obj) : 0;
	if (!lj_ref_ok(l->t, ref))
		return 0;
	if (lj_ins_at(l->t, ref)->o == LJ_IR_KGC)
		return l->cdata ? lj_cdata_named(l->cdata, lj_trace_const(l->t, ref)) : 0;
	return guarded_field(l->t, ref, LJ_IRT_INT);
}

static void settle(struct sim *l, uint32_t ref, int32_t step)
{
	*lj_label_of(l->t, ref) = step;
	l->claimed[l->nclaimed++] = ref;
}

/* Narrowing converts an index to an integer at its use, and repeats the additions that computed the
 * number (lj_opt_narrow.c). Labels these with the current step. Returns the number. */
static uint32_t settle_narrowed(struct sim *l, uint32_t ref)
{
	uint32_t n, at = ref;
	const struct lj_ins *ir;

	for (n = 0; n < CONVERSIONS && at > LJ_REF_BIAS && at < l->t->nins; n++) {
		ir = lj_ins_at(l->t, at);
		if (converts_index(ir)) {
			for (; n--; ref = lj_ins_at(l->t, ref)->op1)
				lj_claim_ref(l, ref);
			lj_claim_ref(l, at);
			return ir->op1;
		}
		if (ir->o != LJ_IR_ADD && ir->o != LJ_IR_SUB && ir->o != LJ_IR_ADDOV &&
		    ir->o != LJ_IR_SUBOV)
			break;
		at = ir->op1;
	}
	for (at = ref; n-- > 0 && lj_is_narrowed(lj_ins_at(l->t, at));
	     at = lj_ins_at(l->t, at)->op1)
		lj_claim_ref(l, at);
	return ref;
}

/* Labels the conversions from `made` to ref: they belong to the first use. */
static void claim_conversions(struct sim *l, uint32_t ref, uint32_t made)
{
	for (; ref != made; ref = lj_ins_at(l->t, ref)->op1)
		lj_claim_ref(l, ref);
}

void lj_bind_ref(struct sim *l, struct value *v, uint32_t ref)
{
	uint32_t lo, hi;
	bool narrowed = false;

	if (v->kind == VAL_UNKNOWN || ref >= l->cur)
		narrowed = settle_narrowed(l, ref) != ref;
	if (v->kind != VAL_UNKNOWN)
		return;
	if (narrowed) {
		*v = (struct value){.kind = VAL_REF, .ref = ref, .by = -1};
		return;
	}
	if (v->by >= 0) {
		uint32_t made = unconverted(l->t, ref, true);

		claim_conversions(l, ref, made);
		lj_value_range(l, v->by, &lo, &hi);
		if (made >= lo && made < hi && *lj_label_of(l->t, made) < 0)
			settle(l, made, v->by);
	}
	v->kind = VAL_REF;
	v->ref = ref;
}

/* True for the load of a table's field, or a guard of one. */
static bool is_of_table(const struct lj_trace *t, uint32_t ref, uint32_t table)
{
	const struct lj_ins *ir = lj_ins_at(t, ref);

	if (ir->o <= LJ_IR_ABC && lj_ref_ok(t, ir->op1))
		ir = lj_ins_at(t, ir->op1);
	return ir->o == LJ_IR_FLOAD && ir->op1 == table;
}

/* Labels the loads and guards that a table lookup needs, up to its address; also the load of the
 * table of globals from its function. */
static void claim_lookup(struct sim *l, uint32_t memref)
{
	const struct lj_trace *t = l->t;
	uint32_t table = lj_trace_table(t, lj_ins_at(t, memref)), ref;

	for (ref = l->lo; ref < memref; ref++)
		if (*lj_label_of(t, ref) < 0 &&
		    (is_of_table(t, ref, table) ||
		     (ref == table && lj_ins_at(t, ref)->o == LJ_IR_FLOAD)))
			settle(l, ref, l->step);
}

void lj_claim_ref(struct sim *l, uint32_t ref)
{
	uint8_t o;

	if (l->peeks || ref < l->lo || ref >= l->hi || *lj_label_of(l->t, ref) >= 0)
		return;
	settle(l, ref, l->step);
	if (ref >= l->cur)
		l->cur = ref + 1;
	o = lj_ins_at(l->t, ref)->o;
	if (o == LJ_IR_HREFK || o == LJ_IR_HREF || o == LJ_IR_AREF || o == LJ_IR_NEWREF)
		claim_lookup(l, ref);
}

void lj_value_set(struct value *v, uint32_t ref)
{
	*v = (struct value){.kind = VAL_REF, .ref = ref, .by = -1};
}

void lj_set_unknown(struct sim *l, struct value *v)
{
	*v = (struct value){.kind = VAL_UNKNOWN, .by = l->step};
}

bool lj_value_is(const struct sim *l, const struct value *v, uint32_t ref)
{
	return matches(l, v, ref, true) == MATCH_YES;
}

bool lj_value_may_be(const struct sim *l, const struct value *v, uint32_t ref)
{
	return matches(l, v, ref, true) != MATCH_NO;
}

static void bind_operand(struct sim *l, struct value *v, uint32_t ref)
{
	if (v->kind != VAL_UNKNOWN)
		claim_conversions(l, ref, unconverted(l->t, ref, false));
	lj_bind_ref(l, v, ref);
}

/* True if these are an instruction's operands, in this order. Binds them. */
static bool are_operands(struct sim *l, uint32_t op1, uint32_t op2, struct value *a,
			 struct value *b, bool sure)
{
	enum match ma = a ? matches(l, a, op1, l->index) : MATCH_YES;
	enum match mb = b ? matches(l, b, op2, l->index) : MATCH_YES;

	/* at least one operand has to be known to match */
	if (ma == MATCH_NO || mb == MATCH_NO || (sure && (ma != MATCH_YES || mb != MATCH_YES)) ||
	    (ma != MATCH_YES && mb != MATCH_YES) || (b && !a && mb != MATCH_YES) ||
	    (a && !b && ma != MATCH_YES && !l->keyed))
		return false;
	if (a)
		bind_operand(l, a, op1);
	if (b)
		bind_operand(l, b, op2);
	return true;
}

static bool has_operands(struct sim *l, const struct lj_ins *ir, struct value *a, struct value *b,
			 bool sure)
{
	uint32_t op1 = lj_trace_table(l->t, ir);

	return are_operands(l, op1, ir->op2, a, b, sure) ||
	       (a && (b || lj_ir_mode[ir->o] & LJ_IRK_C) &&
		are_operands(l, ir->op2, op1, a, b, sure));
}

/* True for a table lookup, whose result depends on the table's content. */
static bool is_lookup(uint8_t o)
{
	return o == LJ_IR_HREF || o == LJ_IR_HREFK || o == LJ_IR_AREF;
}

/* True for two different tables, both allocated by the trace. */
static bool is_other_table(const struct lj_trace *t, uint32_t a, uint32_t b)
{
	return a != b && lj_ins_at(t, a)->o >= LJ_IR_TNEW && lj_ins_at(t, a)->o <= LJ_IR_TDUP &&
	       lj_ins_at(t, b)->o >= LJ_IR_TNEW && lj_ins_at(t, b)->o <= LJ_IR_TDUP;
}

/* True if a table may have got a new key since the lookup: then the trace repeats it
 * (lj_opt_fwd_tptr). */
static bool is_outdated(struct sim *l, uint32_t lookup, uint32_t now)
{
	const struct lj_trace *t = l->t;
	const struct lj_ins *ir = lj_ins_at(t, lookup);
	uint32_t table = lj_trace_table(t, ir), from = lookup, i;

	if (!is_lookup(ir->o) || !lj_ref_ok(t, table))
		return false;
	if (table != ir->op1)
		from = ir->op1; /* the load of its array's or hash's address */
	for (i = l->nnewrefs; i-- > 0 && l->newrefs[i] >= from; l->visits++)
		if (l->newrefs[i] < now &&
		    !is_other_table(t, table, lj_ins_at(t, l->newrefs[i])->op1))
			return true;
	return false;
}

struct range {
	uint32_t from, to;
	bool known;  /* both operands have to be known */
	bool common; /* common subexpressions only */
	bool valid;  /* no outdated lookups */
};

bool lj_is_number_of_int(const struct lj_trace *t, uint32_t ref)
{
	const struct lj_ins *ir = ref > LJ_REF_BIAS && lj_ref_ok(t, ref) ? lj_ins_at(t, ref) : NULL;

	return ir && ir->o == LJ_IR_CONV && (ir->t & LJ_IRT_TYPE) == LJ_IRT_NUM &&
	       (ir->op2 & LJ_IRT_TYPE) == LJ_IRT_INT;
}

/* True for an integer's remainder, where the value is a number: that has one of its own (lj_opt_narrow_mod). */
static bool is_of_integer(const struct lj_trace *t, const struct lj_ins *ir, const struct value *a)
{
	return (ir->o == LJ_IR_MOD || ir->o == LJ_IR_BAND) && (ir->t & LJ_IRT_TYPE) == LJ_IRT_INT &&
	       a && a->kind == VAL_REF && lj_is_number_of_int(t, a->ref);
}

static uint32_t find_in(struct sim *l, const struct range *r, wanted_fn wanted, op_set what,
			struct value *a, struct value *b)
{
	const struct lj_trace *t = l->t;
	uint32_t ref;

	if (r->from < r->to)
		l->visits += (r->to - r->from) * (l->index ? SUM_VISITS : 1);
	for (ref = r->from; ref < r->to; ref++) {
		const struct lj_ins *ir = lj_ins_at(t, ref);

		if (!wanted(t, ir, what) ||
		    (r->common && (lj_ir_kind(ir->o) != LJ_IRK_N ||
				   (!b && lj_ir_op2_is_ref(ir->o)) || is_of_integer(t, ir, a))) ||
		    (!r->known && *lj_label_of(l->t, ref) >= 0) ||
		    (r->valid && is_outdated(l, ref, r->to)) ||
		    !has_operands(l, ir, a, b, r->known))
			continue;
		lj_claim_ref(l, ref);
		return ref;
	}
	return 0;
}

uint32_t lj_value_find(struct sim *l, wanted_fn wanted, op_set what, struct value *a,
		       struct value *b)
{
	uint32_t now = l->cur > l->lo ? l->cur : l->lo, ref, i;
	/* CSE: what depends on its operands only is never computed twice */
	const struct range ranges[] = {
		{LJ_REF_BIAS + 1, now < l->hi ? now : l->hi, true, true, true},
		{now, l->hi, false, false, false},
		{LJ_REF_BIAS + 1, now < l->hi ? now : l->hi, true, false, true},
		{LJ_REF_BIAS + 1, now < l->hi ? now : l->hi, true, false, false},
	};

	for (i = 0; i < sizeof(ranges) / sizeof(*ranges); i++) {
		ref = find_in(l, &ranges[i], wanted, what, a, b);
		if (ref)
			return ref;
	}
	return 0;
}
