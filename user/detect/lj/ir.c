// SPDX-License-Identifier: BSD-2-Clause
#include "ir.h"

const uint8_t lj_ir_mode[LJ_IR__MAX] = {
#define LJ_IR(name, kind, op1, op2)                                                                \
	(uint8_t)((LJ_IRM_##op1 | LJ_IRM_##op2 << 2 | LJ_IRK_##kind) ^ LJ_IRK_W),
#include "ir.def"
#undef LJ_IR
};
