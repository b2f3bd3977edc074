/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recognises the PUC Lua build in an ELF file, and its layout. lua_ident has the release; the
 * offsets in the code of API functions have to agree with that release's layout. Needs no symbols
 * beyond the exported ones; without those the version's string and the shape of luaV_execute
 * suffice.
 */
#ifndef DETECT_PUC_RECOGNISE_H
#define DETECT_PUC_RECOGNISE_H

#include <stddef.h>

#include "base/error.h"
#include "detect/build.h"
#include "proc/elf.h"

/* Bytes on each side of luaV_execute that are examined: PUC Lua has about 250 KiB. */
#define PUC_WINDOW (320u << 10)

/*
 * 0; -ENOENT: this file has no PUC Lua; -ENOTSUP: it has one, but no row fits: err has the
 * measurements.
 */
int puc_recognise(struct elf_file *elf, struct vm_build *out, struct error *err);

/* Returns the layout of row i of detect/puc/layouts.def; NULL beyond the last. */
const struct puc_layout *puc_layout_row(size_t i, const char **name);

/* Returns the layout of a release: "5.4.4"; NULL: unknown. "5.1" is 5.1.0, as Lua wrote it. */
const struct puc_layout *puc_layout_of(const char *release, const char **name);

#endif
