/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of PUC Lua's own functions out of the file that has them, "table.sort": the same in each VM, also in one that was
 * closed before its tables could be read.
 */
#ifndef SYM_REGISTERED_H
#define SYM_REGISTERED_H

#include <stddef.h>
#include <stdint.h>

#include "proc/elf.h"

struct registered; /* NULL: no names */

/* -errno: they cannot be read; *out is NULL then. */
int registered_read(struct elf_file *elf, struct registered **out);
void registered_free(struct registered **registered);
size_t registered_bytes(const struct registered *registered);

/* Returns the name of the function that begins at this address of the file; NULL: it has none. */
const char *registered_name(const struct registered *registered, uint64_t vaddr);

#endif
