/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of PUC Lua's standard libraries, by the tables that register them: see lib.c. */
#ifndef DETECT_PUC_LIB_H
#define DETECT_PUC_LIB_H

#include <stdint.h>

#include "detect/call_graph.h"

#define ELF_PUC_LIB_MAX 192

struct elf_puc_lib {
	uint64_t no_resume[ELF_PUC_LIB_MAX]; /* they run no lua_State but their caller's */
	uint32_t n;
	uint64_t resume;	 /* coroutine.resume; 0: not found */
	uint64_t wrap;		 /* the function of coroutine.wrap's closures; 0: not found */
	uint64_t collectgarbage; /* 0: not found */
};

/* calls: of the text around luaV_execute. -ENOENT: the file has no library; -ENOMEM. */
int elf_puc_library(const struct call_graph *calls, struct elf_puc_lib *out);

#endif
