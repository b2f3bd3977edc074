/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which PUC Lua build is in an ELF file, and what is its layout? The file says its version
 * (lua_ident); what the code of its API functions shows has to agree with the layout of that
 * version. No symbols beyond the exported ones are needed, and without those the version's string
 * and the shape of luaV_execute will do.
 */
#ifndef DETECT_PUC_RECOGNISE_H
#define DETECT_PUC_RECOGNISE_H

#include <stddef.h>

#include "base/error.h"
#include "detect/build.h"
#include "proc/elf.h"

/*
 * 0; -ENOENT: there is no PUC Lua in this file; -ENOTSUP: there is one, but no row fits: err says
 * what was measured.
 */
int puc_recognise(struct elf_file *elf, struct vm_build *out, struct error *err);

/* The layout of row i of detect/puc/layouts.def; NULL beyond the last. */
const struct puc_layout *puc_layout_row(size_t i, const char **name);

/* The layout of a release: "5.4.4"; NULL: not known. "5.1" is 5.1.0, as Lua wrote it. */
const struct puc_layout *puc_layout_of(const char *release, const char **name);

#endif
