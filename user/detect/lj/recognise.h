/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recognises the LuaJIT build in an ELF file, and its layout. Needs no symbols: the assembler VM is
 * found by its call frame information, and its instructions hold the offsets of the fields that it
 * uses.
 */
#ifndef DETECT_LJ_RECOGNISE_H
#define DETECT_LJ_RECOGNISE_H

#include "base/error.h"
#include "detect/build.h"
#include "proc/elf.h"

/*
 * 0; -ENOENT: this file has no LuaJIT VM; -ENOTSUP: it has one, of an unknown layout: err has the
 * measurements.
 */
int lj_recognise(struct elf_file *elf, struct vm_build *out, struct error *err);

#endif
