/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Classifies the calls out of LuaJIT's assembler VM by how it restores BASE afterwards.
 *
 * Helpers that may touch the Lua stack are called with L->base stored, and BASE is reloaded from it.
 * Helpers that do not (lj_tab_get, libm) are called with BASE kept in RB, rbp of x86-64, and then
 * L->base may be stale: the unwinder has to take BASE from RB of that frame.
 */
#ifndef ARCH_LJ_SITES_H
#define ARCH_LJ_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lj_site_class {
	LJ_SITE_RBP,	 /* BASE is restored from rbp */
	LJ_SITE_LBASE,	 /* BASE is reloaded from a lua_State: L->base is valid during the call */
	LJ_SITE_UNKNOWN, /* neither was found */
};

#define LJ_SITE_AROUND 12 /* instructions decoded before and after a call, at most */

/* Offsets are from the start of the VM. */
struct lj_site {
	uint32_t ret;	 /* return address */
	uint64_t callee; /* address of the file; 0: indirect */
	uint8_t class;	 /* enum lj_site_class */
	/* Instructions at which BASE may be in rbp only: from behind the copy to rbp up to the call;
	 * from behind the call up to the one that restores it. */
	uint8_t nbefore, nbehind;
	uint32_t before[LJ_SITE_AROUND], behind[LJ_SITE_AROUND];
};

/* Finds all call sites of VM code, in order of address. -E2BIG: more than max. */
int lj_sites_scan(const uint8_t *text, size_t size, bool gc32, uint64_t vaddr,
		  struct lj_site *sites, size_t max, size_t *n);

#endif
