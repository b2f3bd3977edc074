/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text that Lua's core never calls: the functions of its C API, and those that call them. If one of
 * these is on the C stack, the collector did not call it.
 */
#ifndef DETECT_PUC_API_CALLERS_H
#define DETECT_PUC_API_CALLERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "detect/call_graph.h"

/* True if a symbol lua_* or luaL_* begins at this address. */
bool puc_is_api(struct elf_file *elf, uint64_t start);

struct elf_text {
	uint64_t start, size;
};

/*
 * Stores the ranges in order of address: the `max` largest. *n is 0 in a file that does not export
 * the API. 0 or -ENOMEM.
 */
int elf_puc_api_callers(const struct call_graph *calls, struct elf_text *out, size_t max,
			size_t *n);

#endif
