/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What code shows of the structs that only functions behind the API use. lua_dump writes out the
 * function on top of the stack, and so reads all that a prototype has; lua_getglobal looks into
 * tables:
 *
 *	L -> top[-1] -> LClosure.p -> Proto.source -> TString
 *	L -> l_G -> registry, a Table -> array[1], the Table of globals (from 5.2 on)
 */
#ifndef DETECT_PUC_STRUCTS_H
#define DETECT_PUC_STRUCTS_H

#include <stdbool.h>

#include <unwind/puc/layout.h>

#include "proc/elf.h"

/* An access to one of them. */
struct puc_struct_use {
	const char *function, *name; /* of the struct */
	uint16_t at;
	uint8_t width; /* bytes; 0: the address is computed */
	bool known;    /* this is a field of the layout */
};

/* Calls fn for each use that the layout has to explain; for none where the file does not show where
 * those functions are. */
void puc_structs_used(struct elf_file *elf, const struct puc_layout *puc,
		      void (*fn)(void *arg, const struct puc_struct_use *use), void *arg);

#endif
