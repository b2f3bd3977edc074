/* SPDX-License-Identifier: BSD-2-Clause */
#include "vm/lj_bc.h"

const struct lj_bc_row lj_bc_rows[LJ_BC__LISTED] = {
#define LJ_BC(name, a, mm) {LJ_BCM_##a, mm},
#include "lj_bc.def"
#undef LJ_BC
};
