// SPDX-License-Identifier: BSD-2-Clause
#include "family.h"

const struct sym_family *sym_family(uint32_t family)
{
	switch (family) {
	case LB_FAMILY_LJ:
	case LB_FAMILY_LJ32:
		return &lj_family;
	case LB_FAMILY_PUC:
		return &puc_family;
	}
	return NULL;
}
