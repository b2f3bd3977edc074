/* SPDX-License-Identifier: BSD-2-Clause */
#include "bc.h"

#include <string.h>

#include <unwind/lj/layout.h>

_Static_assert((int)LJ_OP_COMPARES == LJ_BC_ISF + 1 && (int)LJ_OP_FORI == LJ_BC_FORI &&
		       (int)LJ_OP_JITERL == LJ_BC_JITERL && (int)LJ_OP_JMP == LJ_BC_JMP,
	       "numbers of bytecode");

const struct lj_bc_row lj_bc_rows[LJ_BC__LISTED] = {
#define LJ_BC(name, a, b, c, mm) {#name, LJ_BCM_##a, LJ_BCM_##b, LJ_BCM_##c, LJ_MM_##mm},
#include "bc.def"
#undef LJ_BC
};

static const char *const mm_names[LJ_MM__MAX] = {
	[LJ_MM_NONE] = "",
	[LJ_MM_OTHER] = "",
	[LJ_MM_CALL] = "__call",
	[LJ_MM_INDEX] = "__index",
	[LJ_MM_NEWINDEX] = "__newindex",
	[LJ_MM_GC] = "__gc",
	[LJ_MM_EQ] = "__eq",
	[LJ_MM_LEN] = "__len",
	[LJ_MM_LT] = "__lt",
	[LJ_MM_LE] = "__le",
	[LJ_MM_CONCAT] = "__concat",
	[LJ_MM_ADD] = "__add",
	[LJ_MM_SUB] = "__sub",
	[LJ_MM_MUL] = "__mul",
	[LJ_MM_DIV] = "__div",
	[LJ_MM_MOD] = "__mod",
	[LJ_MM_POW] = "__pow",
	[LJ_MM_UNM] = "__unm",
};

const char *lj_mm_name(enum lj_mm mm)
{
	return mm_names[mm];
}

enum lj_mm lj_mm_named(const char *name)
{
	for (int mm = LJ_MM_CALL; mm < LJ_MM__MAX; mm++)
		if (!strcmp(mm_names[mm], name))
			return (enum lj_mm)mm;
	return LJ_MM_OTHER;
}
