/* SPDX-License-Identifier: BSD-2-Clause */
#include "bc.h"

#include <unwind/lj/layout.h>

_Static_assert((int)LJ_OP_COMPARES == LJ_BC_ISF + 1 && (int)LJ_OP_FORI == LJ_BC_FORI &&
		       (int)LJ_OP_JITERL == LJ_BC_JITERL && (int)LJ_OP_JMP == LJ_BC_JMP,
	       "numbers of bytecode");

const struct lj_bc_row lj_bc_rows[LJ_BC__LISTED] = {
#define LJ_BC(name, a, mm) {LJ_BCM_##a, mm},
#include "bc.def"
#undef LJ_BC
};
