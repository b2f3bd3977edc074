/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls out of LuaJIT's assembler VM (x86-64), by how the VM gets BASE back afterwards.
 *
 * Helpers that may touch the Lua stack are called with L->base stored, and BASE (rdx) is reloaded
 * from it. Helpers that do not (lj_tab_get, libm) are called with BASE kept in rbp, and then
 * L->base may be stale: a profiler has to take BASE from rbp of that frame.
 */
#ifndef DETECT_LJ_SITES_H
#define DETECT_LJ_SITES_H

#include <stddef.h>
#include <stdint.h>

#include "proc/elf.h"

enum lj_site_class {
	LJ_SITE_RBP,	 /* BASE comes back from rbp */
	LJ_SITE_LBASE,	 /* BASE is reloaded from a lua_State: L->base is right during the call */
	LJ_SITE_UNKNOWN, /* neither was seen */
};

#define LJ_SITE_AROUND 12 /* instructions that are looked at before and behind a call */

/* Places are counted from the start of the VM. */
struct lj_site {
	uint32_t ret;	 /* return address */
	uint64_t callee; /* address of the file; 0: indirect */
	uint8_t class;	 /* enum lj_site_class */
	/* Where instructions begin at which BASE may be in rbp only: those between the one that
	 * puts it there and the call; those behind it, up to the one that takes it back. */
	uint8_t nbefore, nbehind;
	uint32_t before[LJ_SITE_AROUND], behind[LJ_SITE_AROUND];
};

/* All call sites of VM code, in order of address. `max` bounds them: -E2BIG when there are more. */
int lj_sites_scan(const uint8_t *text, size_t size, uint64_t vaddr, struct lj_site *sites,
		  size_t max, size_t *n);

/* Those of the LJ_SITE_RBP class, of a file's VM. -E2BIG: more than max. */
int elf_lj_rbp_sites(struct elf_file *elf, const struct elf_lj_vm *vm, struct lj_site *sites,
		     size_t max, size_t *n);

#endif
