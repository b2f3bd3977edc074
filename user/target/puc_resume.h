/* SPDX-License-Identifier: BSD-2-Clause */
/* Which functions of PUC Lua's libraries can run another lua_State: see puc_resume.c. */
#ifndef TARGET_PUC_RESUME_H
#define TARGET_PUC_RESUME_H

#include <stdint.h>

#include "target/call_graph.h"

#define ELF_PUC_RESUMERS 8

struct elf_puc_resume {
	uint64_t lo, hi; /* text of PUC Lua itself: what it exports, and all between */
	uint64_t resumer[ELF_PUC_RESUMERS]; /* where those in it begin that can */
	uint32_t n;
};

/* -ENOENT: it cannot be told. */
int elf_puc_resumers(const struct call_graph *calls, struct elf_puc_resume *out);

#endif
