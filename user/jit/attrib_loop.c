// SPDX-License-Identifier: BSD-2-Clause
/*
 * Labels of a loop's body: a copy of the recorded IR, one turn later (lj_opt_loop.c). Matches both
 * in order, substituting references; O(instructions^2), as CSE and forwarding may refer to any
 * earlier instruction.
 */
#include <errno.h>
#include <stdlib.h>

#include "attrib_gaps.h"
#include "attrib_loop.h"
#include "func.h"
#include "base/cleanup.h"
#include "lua/lj/bc.h"

#define NOT_KNOWN 0xffffu
#define COPY_AHEAD 64 /* distance, at most, of a copy from the one before */

/* Returns how well instruction ref matches the operation and operands of `want`; 0: not at all. */
static int pair_score(const struct lj_trace *t, uint32_t ref, const struct lj_ins *want)
{
	const struct lj_ins *ir = lj_ins_at(t, ref);
	bool swapped = false;
	int n;

	if (ir->o != want->o) {
		swapped = ir->o <= LJ_IR_UGT && ir->o == (want->o ^ 3); /* a > b is b < a */
		if (!swapped)
			return 0;
	}
	/* the length hint differs each turn (lj_opt_loop.c) */
	if (ir->o == LJ_IR_ALEN)
		return ir->op1 == want->op1 ? 3 : 0;
	/* a string that extends the previous turn's is appended in the same buffer */
	if (ir->o == LJ_IR_BUFSTR && ir->op1 == want->op1)
		return 3;
	/* a literal says little */
	n = (ir->op1 == want->op1 && lj_ir_op1_is_ref(ir->o)) +
	    (ir->op2 == want->op2 && lj_ir_op2_is_ref(ir->o));
	if (!swapped && (ir->op1 == want->op1 || want->op1 == NOT_KNOWN) &&
	    (ir->op2 == want->op2 || want->op2 == NOT_KNOWN))
		return 1 + n;
	n = (ir->op1 == want->op2) + (ir->op2 == want->op1);
	if ((swapped || lj_ir_mode[ir->o] & LJ_IRK_C) &&
	    (ir->op1 == want->op2 || want->op2 == NOT_KNOWN) &&
	    (ir->op2 == want->op1 || want->op1 == NOT_KNOWN))
		return 1 + n;
	return 0;
}

/* Returns the best match in [from, to) of at least `least`, the first of equals. 0: none. */
static uint32_t find_like(const struct lj_trace *t, uint32_t from, uint32_t to,
			  const struct lj_ins *want, int least)
{
	uint32_t best = 0, ref;

	for (ref = from; ref < to && ref < t->nins && lj_ins_at(t, ref)->o != LJ_IR_PHI; ref++) {
		int n = pair_score(t, ref, want);

		if (n >= least) {
			best = ref;
			least = n + 1;
		}
	}
	return best;
}

/* Stores, allocations and their like are copied one by one. */
static bool has_effect(const struct lj_ins *ir)
{
	return lj_ir_kind(ir->o) == LJ_IRK_S || lj_ir_kind(ir->o) == LJ_IRK_A;
}

/* Returns the copy of an instruction, at or after `next`; 0: it has none. Between the two may be
 * results of folding, but no instruction with an effect, which would be the copy of an earlier
 * one. */
static uint32_t find_copy(const struct lj_trace *t, uint32_t next, const struct lj_ins *want)
{
	uint32_t end = next, ahead = next + COPY_AHEAD, to;

	while (end < ahead && end < t->nins && !has_effect(lj_ins_at(t, end)))
		end++;
	to = find_like(t, next, end + 1, want, 2);
	if (!to && has_effect(want))
		to = find_like(t, end, ahead, want, 2);
	return to ? to : find_like(t, next, next + 2, want, 1);
}

/* True if it stores the value that the load would return. */
static bool is_store_of(const struct lj_ins *ir, const struct lj_ins *load)
{
	return load->o >= LJ_IR_ALOAD && load->o <= LJ_IR_XLOAD &&
	       ir->o == load->o + (LJ_IR_ASTORE - LJ_IR_ALOAD) && ir->op1 == load->op1;
}

/* Store-to-load forwarding: returns the value of the last store to the load's address. 0: there is
 * none. */
static uint32_t stored_last(const struct lj_trace *t, uint32_t before, const struct lj_ins *load)
{
	uint32_t ref;

	for (ref = before; ref-- > LJ_REF_BIAS + 1;)
		if (is_store_of(lj_ins_at(t, ref), load))
			return lj_ins_at(t, ref)->op2;
	return 0;
}

/* Returns the last load equal to load `ref` and recorded after it; 0: none, or a store to its
 * address follows. */
static uint32_t loaded_again(const struct lj_trace *t, uint32_t ref)
{
	const struct lj_ins *load = lj_ins_at(t, ref);
	uint32_t i;

	for (i = t->loopref; i-- > ref + 1;) {
		const struct lj_ins *ir = lj_ins_at(t, i);

		if (ir->o == load->o && ir->op1 == load->op1 && ir->op2 == load->op2)
			return i;
		if (is_store_of(ir, load))
			return 0;
	}
	return 0;
}

/* Counts the instructions of [from, to) with the same operation and operands. */
static uint32_t count_same(const struct lj_trace *t, uint32_t from, uint32_t to,
			   const struct lj_ins *ir)
{
	uint32_t n = 0, ref;

	for (ref = from; ref < to && lj_ins_at(t, ref)->o != LJ_IR_PHI; ref++) {
		const struct lj_ins *other = lj_ins_at(t, ref);

		n += other->o == ir->o && other->op1 == ir->op1 && other->op2 == ir->op2;
	}
	return n;
}

/* True if the loop has no copy of a load or store. Dead store elimination removed all but the last
 * of equal stores (lj_opt_dse). The first of equal loads gets the value stored in the previous
 * turn. */
static bool is_eliminated(const struct lj_trace *t, uint32_t ref, uint32_t next)
{
	const struct lj_ins *ir = lj_ins_at(t, ref);
	bool stores = ir->o >= LJ_IR_ASTORE && ir->o <= LJ_IR_XSTORE;

	return (stores || stored_last(t, next, ir)) &&
	       count_same(t, ref, t->loopref, ir) > count_same(t, next, t->nins, ir);
}

/* Returns the content of slot `sload` one turn later. An integer that was a number is converted
 * back: the loop alone has the conversion, labelled as the load. */
static uint32_t loaded_next(struct lj_trace *t, uint32_t sload, const struct lj_tsnap *last,
			    uint32_t *next)
{
	const struct lj_ins *ir = lj_ins_at(t, sload);
	uint32_t to = lj_snap_entry(last, ir->op1) & 0xffff;

	if (!to || (ir->t & LJ_IRT_TYPE) != LJ_IRT_NUM || !lj_ref_ok(t, to) ||
	    (lj_ins_at(t, to)->t & LJ_IRT_TYPE) != LJ_IRT_INT || *next >= t->nins ||
	    lj_ins_at(t, *next)->o != LJ_IR_CONV || lj_ins_at(t, *next)->op1 != to)
		return to;
	*lj_label_of(t, *next) = *lj_label_of(t, sload);
	return (*next)++;
}

/* Returns the step of the loop instruction: the last one, or the one at which the trace began. */
static int32_t turn_of(const struct lj_trace *t)
{
	uint32_t i = t->nhistory, pos = 0;
	int code = lj_trace_code(t, t->startpc, &pos);
	uint8_t last = i ? lj_bc_op(lj_step_ins(t, i - 1)) : 0;

	while (i-- > 0 && (last < LJ_BC_FORL || last > LJ_BC_JMP))
		if (t->history[i].pc == pos && (int)t->frames[t->history[i].frame].code == code)
			return (int32_t)i;
	return (int32_t)t->nhistory - 1;
}

/* True if a load's upvalue has another reference in the loop, where its guard is repeated, but is the same one: the load is
 * not repeated (lj_opt_fwd_uload). */
static bool is_same_upvalue(const struct lj_trace *t, const struct lj_ins *load, uint32_t uref)
{
	const struct lj_ins *a, *b;

	if (load->o != LJ_IR_ULOAD || !lj_ref_ok(t, load->op1) || !lj_ref_ok(t, uref))
		return false;
	a = lj_ins_at(t, load->op1);
	b = lj_ins_at(t, uref);
	return lj_is_uref(a) && a->o == b->o && a->op1 == b->op1 && a->op2 == b->op2;
}

/* Returns the reference in the loop, before `next`, of the upvalue that `ref` is the address of by another function that
 * shares it: CSE leaves one for both. 0: the loop has no such reference. */
static uint32_t shared_upvalue(const struct lj_trace *t, const struct lb_mem *mem, uint32_t ref,
			       uint32_t next)
{
	const struct lj_ins *ir = lj_ins_at(t, ref);

	if (!lj_is_uref(ir) || ir->op1 >= LJ_REF_BIAS)
		return 0;
	return lj_func_uref(t, mem, lj_func_uv(t, mem, lj_trace_const(t, ir->op1), ir->op2 >> 8),
			    t->loopref + 1, next);
}

/* subst[] maps each recorded reference to the one of the next turn, as in lj_opt_loop.c. */
int lj_trace_label_loop(struct lj_trace *t, const struct lb_mem *mem)
{
	uint32_t n = t->loopref - LJ_REF_BIAS, ref, next = t->loopref + 1;
	uint16_t *subst __cleanup(cleanup_free) = calloc(n + 1, sizeof(*subst));
	const struct lj_tsnap *last = &t->snap[t->npre - 1];
	int32_t turn = turn_of(t);

	if (!subst)
		return -ENOMEM;
	subst[0] = LJ_REF_BIAS;
	for (ref = LJ_REF_BIAS + 1; ref < t->loopref; ref++) {
		const struct lj_ins *ir = lj_ins_at(t, ref);
		struct lj_ins want = *ir;
		bool same, normal = lj_ir_kind(ir->o) == LJ_IRK_N;
		uint32_t to = 0;
		int all;

		if (lj_ir_op1_is_ref(ir->o) && want.op1 >= LJ_REF_BIAS && want.op1 < ref)
			want.op1 = subst[want.op1 - LJ_REF_BIAS];
		if (lj_ir_op2_is_ref(ir->o) && want.op2 >= LJ_REF_BIAS && want.op2 < ref)
			want.op2 = subst[want.op2 - LJ_REF_BIAS];
		same = want.op1 == ir->op1 && want.op2 == ir->op2;
		if (ir->o == LJ_IR_NOP || (normal && same)) {
			subst[ref - LJ_REF_BIAS] = (uint16_t)ref;
			continue;
		}
		/* CSE: what does not depend on memory is not computed twice */
		all = 1 + lj_ir_op1_is_ref(ir->o) + lj_ir_op2_is_ref(ir->o);
		if (normal)
			to = find_like(t, LJ_REF_BIAS + 1, next, &want, all);
		if (same && is_eliminated(t, ref, next)) {
			to = stored_last(t, next, &want);
			subst[ref - LJ_REF_BIAS] = (uint16_t)(to ? to : NOT_KNOWN);
			continue;
		}
		if (!to && same && lj_ir_kind(ir->o) == LJ_IRK_L &&
		    (next >= t->nins || !pair_score(t, next, &want)))
			to = loaded_again(t, ref);
		if (!to) {
			to = find_copy(t, next, &want);
			if (to) {
				*lj_label_of(t, to) = *lj_label_of(t, ref);
				next = to + 1;
			}
		}
		if (!to)
			to = stored_last(t, next, &want);
		if (!to && ir->o == LJ_IR_SLOAD) {
			to = loaded_next(t, ref, last, &next);
			if (!to)
				to = ref;
		}
		if (!to)
			to = shared_upvalue(t, mem, ref, next);
		if (!to &&
		    (is_same_upvalue(t, ir, want.op1) || (same && lj_ir_kind(ir->o) != LJ_IRK_S)))
			to = ref;
		if (!to)
			to = find_like(t, LJ_REF_BIAS + 1, next, &want, all);
		subst[ref - LJ_REF_BIAS] = (uint16_t)(to ? to : NOT_KNOWN);
	}
	lj_trace_fill(t, t->loopref + 1, t->nins);
	/* the loop's turn */
	for (ref = t->loopref; ref < t->nins; ref++)
		if (ref == t->loopref || lj_ins_at(t, ref)->o == LJ_IR_PHI)
			*lj_label_of(t, ref) = turn;
	return 0;
}
