/* SPDX-License-Identifier: BSD-2-Clause */
/* Strings (TString) of a PUC Lua target. */
#ifndef LUA_PUC_STR_H
#define LUA_PUC_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <unwind/puc/layout.h>
#include <unwind/mem.h>

/*
 * Reads a TString's text into dst: at most max bytes, then a NUL. If only the first part of the
 * text is readable, stores that, and sets *cut. -EBADMSG: it is no string.
 */
int puc_str_read(const struct lb_mem *mem, const struct puc_layout *puc, uint64_t ref, char *dst,
		 size_t max, size_t *len, bool *cut);

#endif
