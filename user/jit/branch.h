/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides where an instruction branches, from values and guards (layer 2, for jit/ only). */
#ifndef JIT_BRANCH_H
#define JIT_BRANCH_H

#include "value.h"

enum branch_to { BRANCH_UNKNOWN, BRANCH_NEXT, BRANCH_JUMP };

/* Decides a branch from the types of its operands and from earlier guards. */
enum branch_to lj_branches(struct sim *l, const struct lj_tframe *f, uint32_t ins);

/* True if a comparison may have left this guard. False if it compares other numbers. */
bool lj_branch_may_guard(struct sim *l, const struct lj_tframe *f, uint32_t ins,
			 const struct lj_ins *guard);

/* True if it must have left a guard that the trace lacks before its next snapshot: it compares
 * numbers that are not both constant. */
bool lj_branch_needs_guard(struct sim *l, const struct lj_tframe *f, uint32_t ins);

#endif
