// SPDX-License-Identifier: BSD-2-Clause
/*
 * The gaps of simulation: labels recorded instructions by order and operation alone. Between two
 * labelled instructions, steps and instructions are in the same order. Algorithm: weighted longest
 * common subsequence by dynamic programming, O(steps * instructions) for each gap, up to GAP_MAX of
 * either.
 */
#include <errno.h>
#include <stdlib.h>

#include "attrib_gaps.h"
#include "base/cleanup.h"
#include "builtin.h"
#include "exec.h"
#include "lua/lj/bc.h"

/* Returns the operations that a step may have made, whatever its operands. */
static op_set made_by(const struct lj_trace *t, int32_t step)
{
	uint32_t ins = lj_step_ins(t, (uint32_t)step);
	uint8_t op = lj_bc_op(ins);

	if (t->history[step].folded || (lj_bc_is_arith(ins) && lj_step_enters(t, (uint32_t)step)))
		return 0;
	switch (op) {
	case LJ_BC_ISLT ... LJ_BC_ISNEP:
		return ((op_set)1 << (LJ_IR_NE + 1)) - 1;
	case LJ_BC_UNM:
		return OPS(NEG) | OPS(BXOR);
	case LJ_BC_LEN:
		return OPS(ALEN);
	case LJ_BC_ADDVN ... LJ_BC_MODVV:
		return lj_trace_arith[(op - LJ_BC_ADDVN) % 5];
	case LJ_BC_POW:
		return OPS(POW) | OPS(MUL) | OPS(FPMATH) | CALLS;
	case LJ_BC_CAT:
		return OPS(BUFHDR) | OPS(BUFPUT) | OPS(BUFSTR) | OPS(TOSTR) | CALLS;
	case LJ_BC_GGET:
	case LJ_BC_TGETV ... LJ_BC_TGETR:
		return LOADS;
	case LJ_BC_GSET:
	case LJ_BC_TSETV ... LJ_BC_TSETB:
	case LJ_BC_TSETR:
	case LJ_BC_USETV ... LJ_BC_USETP:
		return STORES;
	case LJ_BC_FNEW:
	case LJ_BC_TNEW:
	case LJ_BC_TDUP:
		return OPS(TNEW) | OPS(TDUP) | CALLS;
	case LJ_BC_CALL:
	case LJ_BC_CALLM:
	case LJ_BC_CALLT:
	case LJ_BC_CALLMT:
		return lj_step_enters(t, (uint32_t)step) ? 0
							 : lj_builtin_ops(t->history[step].builtin);
	case LJ_BC_FORL:
	case LJ_BC_IFORL:
		return OPS(ADD) | OPS(ADDOV);
	default:
		return 0;
	}
}

#define GAP_MAX 400 /* longest side of a gap that is aligned */

/* Returns the score of pairing step and instruction: 0 if the step cannot have made it. */
static uint16_t match_score(const struct lj_trace *t, int32_t step, uint32_t ref, bool *many)
{
	uint32_t ins = lj_step_ins(t, (uint32_t)step);

	/* a built-in function may become anything */
	*many = lj_bc_is_call(ins);
	if (lj_bc_is_arith(ins) && lj_is_narrowed(lj_ins_at(t, ref)))
		return 0;
	return made_by(t, step) >> lj_ins_at(t, ref)->o & 1 ? *many ? 1 : 2 : 0;
}

/* Aligns the unlabelled instructions [from, to) with the steps [first, last): an alignment of
 * maximum score, both in order. */
static int match_gap(struct lj_trace *t, uint32_t from, uint32_t to, int32_t first, int32_t last)
{
	uint32_t n = to - from, m = (uint32_t)(last - first), i, j;
	uint16_t *best __cleanup(cleanup_free) = NULL, w;
	bool many;

	if (from >= to || first >= last || n > GAP_MAX || m > GAP_MAX)
		return 0;
	best = calloc(((size_t)n + 1) * (m + 1), sizeof(*best));
	if (!best)
		return -ENOMEM;
#define BEST(i, j) best[(size_t)(i) * (m + 1) + (j)]
	for (i = n; i-- > 0;)
		for (j = m; j-- > 0;) {
			uint16_t b = BEST(i + 1, j);

			if (BEST(i, j + 1) > b)
				b = BEST(i, j + 1);
			w = match_score(t, first + (int32_t)j, from + i, &many);
			if (w && BEST(i + 1, j + !many) + w > b)
				b = BEST(i + 1, j + !many) + w;
			BEST(i, j) = b;
		}
	for (i = j = 0; i < n && j < m;) {
		w = match_score(t, first + (int32_t)j, from + i, &many);
		if (w && BEST(i, j) == BEST(i + 1, j + !many) + w) {
			*lj_label_of(t, from + i++) = first + (int32_t)j;
			j += !many;
		} else if (BEST(i, j) == BEST(i + 1, j)) {
			i++;
		} else {
			j++;
		}
	}
#undef BEST
	return 0;
}

/* Gaps end at labelled instructions and at snapshots. */
int lj_trace_match_gaps(struct lj_trace *t)
{
	uint32_t from = LJ_REF_BIAS + 1, end = lj_recorded_end(t), ref, k = 0;
	int32_t step = 0;
	int r = 0;

	for (ref = from; ref <= end && !r; ref++) {
		int32_t at = ref < end ? *lj_label_of(t, ref) : (int32_t)t->nhistory;

		while (k < t->npre && t->snap[k].ref <= ref) {
			if (!t->snap[k].inside && t->snap[k].step >= step) {
				r = match_gap(t, from, ref, step, t->snap[k].step);
				from = ref;
				step = t->snap[k].step;
			}
			k++;
		}
		if (at < 0 || r)
			continue;
		if (at >= step) {
			r = match_gap(t, from, ref, step, at);
			/* a built-in function may have made more behind it: its guard comes first */
			step = lj_bc_is_call(lj_step_ins(t, (uint32_t)at)) &&
					       !lj_step_enters(t, (uint32_t)at)
				       ? at
				       : at + 1;
		}
		from = ref + 1;
	}
	return r;
}

void lj_trace_fill(struct lj_trace *t, uint32_t from, uint32_t to)
{
	uint32_t ref = to;
	int32_t next = -1;

	while (ref-- > from) {
		uint8_t o = lj_ins_at(t, ref)->o;
		int32_t *label = lj_label_of(t, ref);

		if (*label >= 0)
			next = *label;
		else if (next >= 0 && (o < LJ_IR_TBAR || o > LJ_IR_XBAR)) /* barriers come after */
			*label = next;
	}
	for (ref = from + 1; ref < to; ref++)
		if (*lj_label_of(t, ref) < 0)
			*lj_label_of(t, ref) = *lj_label_of(t, ref - 1);
}

/* No label is copied across a snapshot. */
void lj_trace_fill_recorded(struct lj_trace *t)
{
	uint32_t from = LJ_REF_BIAS + 1, end = lj_recorded_end(t), i;
	int32_t first = 0;

	for (i = 0; i <= t->npre; i++) {
		uint32_t to = i < t->npre && !t->snap[i].inside ? t->snap[i].ref
			      : i == t->npre			? end
								: 0;

		if (to > end)
			to = end;
		if (to <= from) {
			if (i < t->npre && !t->snap[i].inside)
				first = t->snap[i].step;
			continue;
		}
		lj_trace_fill(t, from, to);
		if (*lj_label_of(t, from) < 0 && first < (int32_t)t->nhistory)
			for (; from < to; from++)
				if (*lj_label_of(t, from) < 0)
					*lj_label_of(t, from) = first;
		from = to;
		if (i < t->npre)
			first = t->snap[i].step;
	}
}
