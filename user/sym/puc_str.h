/* SPDX-License-Identifier: BSD-2-Clause */
/* Strings (TString) of a PUC Lua target, and what else lies in parts in its memory. */
#ifndef SYM_PUC_STR_H
#define SYM_PUC_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <luabpf/layout_puc.h>
#include <luabpf/mem.h>

static inline bool puc_plausible(uint64_t ptr)
{
	return ptr && !(ptr & 7) && !(ptr >> 47);
}

/* How much of [addr, addr + size) can be read, from its start on. */
uint32_t puc_read_prefix(const struct lb_mem *mem, void *dst, uint64_t addr, uint32_t size);

/*
 * Reads a TString's text into dst: at most max bytes, then a NUL. When only the first part of the
 * text can be read, that is taken, and *cut set. -EBADMSG: there is no string.
 */
int puc_str_read(const struct lb_mem *mem, const struct puc_layout *puc, uint64_t ref, char *dst,
		 size_t max, size_t *len, bool *cut);

#endif
