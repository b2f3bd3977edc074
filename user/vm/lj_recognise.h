/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which LuaJIT build is in an ELF file, and what is its layout? No symbols are needed: the
 * assembler VM is found by its frame description, and its own instructions hold the offsets of the
 * fields it uses.
 */
#ifndef VM_LJ_RECOGNISE_H
#define VM_LJ_RECOGNISE_H

#include <stddef.h>
#include <stdint.h>

#include <luabpf/abi.h>

#include "base/error.h"
#include "build.h"
#include "target/elf.h"

/*
 * 0; -ENOENT: there is no LuaJIT VM in this file; -ENOTSUP: there is one, but no row fits: err
 * tells what was measured.
 */
int lj_recognise(struct elf_file *elf, struct vm_build *out, struct error *err);

/* The layout of row i of lj_layouts.def; NULL beyond the last. */
const struct lj_layout *lj_layout_row(size_t i, const char **name);

/* What the instructions of a VM's text say. Exposed for its tests. */
#define LJ_MEASURED_MAX 16
struct lj_measured {
	uint32_t g2disp, vmstate;	    /* 0: not found, or found to differ */
	uint32_t stores_L[LJ_MEASURED_MAX]; /* candidates of cur_L */
	uint32_t stores_base[LJ_MEASURED_MAX];
	uint32_t loads[LJ_MEASURED_MAX]; /* candidates of J.trace */
	uint32_t nstores_L, nstores_base, nloads;
};
void lj_measure(const uint8_t *text, size_t size, struct lj_measured *out);

#endif
