// SPDX-License-Identifier: BSD-2-Clause
/*
 * A depth-first search from the first instruction. Each is pushed once. A jump that follows a
 * comparison is part of it: no hook sees it by itself.
 */
#include <string.h>

#include "listing_priv.h"
#include "lua/lj/bc.h"
#include "lua/puc/bc.h"

/* Where control goes from an instruction, as offsets from it; 0: not in use. */
struct successors {
	int64_t to[3];
};

static uint32_t word_at(const struct listing_code *code, size_t i)
{
	uint32_t word;

	memcpy(&word, code->ins + i * sizeof(word), sizeof(word));
	return word;
}

/* lopcodes.h: comparisons are contiguous, from EQ to TESTSET; 5.1: with TFORLOOP, apart from them */
static bool is_comparison_puc(unsigned version, uint32_t ins)
{
	static const uint8_t first[] = {23, 24, 31, 57, 57}, last[] = {27, 28, 35, 67, 67};
	uint32_t op = ins & (version >= 54 ? 0x7f : 0x3f);

	return (op >= first[version - 51] && op <= last[version - 51]) ||
	       (version == 51 && op == 33);
}

/* A comparison goes on behind the jump that follows, or where that goes to. */
static struct successors of_comparison(int64_t jump)
{
	return (struct successors){{2, 1 + jump}};
}

static struct successors successors_puc(const struct listing_code *code, size_t i)
{
	unsigned v = code->version;
	uint32_t word = word_at(code, i);
	struct puc_ins ins = puc_bc_decode(v, word);

	if (is_comparison_puc(v, word) && i + 1 < code->n)
		return of_comparison(1 + puc_bc_decode(v, word_at(code, i + 1)).sj);
	switch (ins.op) {
	case PUC_BC_RETURN:
		return (struct successors){};
	case PUC_BC_JMP:
		return (struct successors){{1 + (int64_t)ins.sj}};
	case PUC_BC_FORPREP: /* to the loop's end or behind it */
		return v < 54 ? (struct successors){{1, 1 + (int64_t)ins.sj}}
			      : (struct successors){{1, 1 + (int64_t)ins.bx, 2 + (int64_t)ins.bx}};
	case PUC_BC_FORLOOP:
		return (struct successors){{1, v < 54 ? 1 + (int64_t)ins.sj : 1 - (int64_t)ins.bx}};
	case PUC_BC_SETLIST: /* 5.1: a word of data follows */
		return (struct successors){{v == 51 && !ins.c ? 2 : 1}};
	}
	return (struct successors){{1}};
}

static struct successors successors_lj(const struct listing_code *code, size_t i)
{
	uint32_t ins = word_at(code, i);
	int64_t jump = 1 + (int64_t)lj_bc_d(ins) - 0x8000;

	if (lj_bc_op(ins) <= LJ_BC_ISF && i + 1 < code->n)
		return of_comparison(1 + (int64_t)lj_bc_d(word_at(code, i + 1)) - 0x8000);
	switch (lj_bc_op(ins)) {
	case LJ_BC_RETM:
	case LJ_BC_RET:
	case LJ_BC_RET0:
	case LJ_BC_RET1:
	case LJ_BC_CALLT:
	case LJ_BC_CALLMT:
		return (struct successors){};
	case LJ_BC_JMP:
	case LJ_BC_UCLO:
	case LJ_BC_ISNEXT:
		return (struct successors){{jump}};
	case LJ_BC_FORI:
	case LJ_BC_FORL:
	case LJ_BC_ITERL:
		return (struct successors){{1, jump}};
	}
	return (struct successors){{1}};
}

void listing_reach(const struct listing_code *code, bool *reached, uint32_t *stack)
{
	size_t n = 0;

	if (!code->n)
		return;
	reached[0] = true;
	stack[n++] = 0;
	while (n) {
		size_t i = stack[--n];
		struct successors next =
			code->version ? successors_puc(code, i) : successors_lj(code, i);

		for (int k = 0; k < 3; k++) {
			int64_t to = (int64_t)i + next.to[k];

			if (!next.to[k] || to < 0 || to >= (int64_t)code->n || reached[to])
				continue;
			reached[to] = true;
			stack[n++] = to;
		}
	}
}
