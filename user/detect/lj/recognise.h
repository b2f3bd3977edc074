/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which LuaJIT build is in an ELF file, and what is its layout? No symbols are needed: the
 * assembler VM is found by its frame description, and its own instructions hold the offsets of the
 * fields it uses.
 */
#ifndef DETECT_LJ_RECOGNISE_H
#define DETECT_LJ_RECOGNISE_H

#include "base/error.h"
#include "detect/build.h"
#include "proc/elf.h"

/*
 * 0; -ENOENT: there is no LuaJIT VM in this file; -ENOTSUP: there is one, but its layout
 * was not found: err says what was measured.
 */
int lj_recognise(struct elf_file *elf, struct vm_build *out, struct error *err);

#endif
