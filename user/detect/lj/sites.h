/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls of a file's LuaJIT during which BASE is in a register only. */
#ifndef DETECT_LJ_SITES_H
#define DETECT_LJ_SITES_H

#include <stdbool.h>
#include <stddef.h>

#include "arch/lj_sites.h"
#include "proc/elf.h"

/* Finds the call sites of class LJ_SITE_RBP in a file's VM. -E2BIG: more than max. */
int elf_lj_rbp_sites(struct elf_file *elf, const struct elf_lj_vm *vm, bool gc32,
		     struct lj_site *sites, size_t max, size_t *n);

#endif
