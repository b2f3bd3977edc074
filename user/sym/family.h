/* SPDX-License-Identifier: BSD-2-Clause */
/* The families of VMs, by number: their tables are in sym/lj.c and sym/puc.c. */
#ifndef SYM_FAMILY_H
#define SYM_FAMILY_H

#include "lua/family.h"

extern const struct sym_family lj_family, puc_family;

/* NULL: no such family (enum lb_family). */
const struct sym_family *sym_family(uint32_t family);

#endif
