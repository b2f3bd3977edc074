/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text that Lua's core never calls: the functions of its C API, and those that call them. Where one
 * of these is on the C stack, the frames above it were there before it was called.
 */
#ifndef DETECT_PUC_API_CALLERS_H
#define DETECT_PUC_API_CALLERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "detect/call_graph.h"

/* Is this the address of an exported lua_ or luaL_ function? */
bool puc_is_api(struct elf_file *elf, uint64_t start);

struct elf_text {
	uint64_t start, size;
};

/*
 * In order of address, at most `max`: the largest, when there are more. *n is 0 in a file that does
 * not export the API. 0 or -ENOMEM.
 */
int elf_puc_clients(const struct call_graph *calls, struct elf_text *out, size_t max, size_t *n);

#endif
