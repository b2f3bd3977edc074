/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the offsets that code uses in structs which only internal functions access. lua_dump writes
 * the function on top of the stack, and so reads all of a prototype; lua_getglobal reads tables:
 *
 *	L -> top[-1] -> LClosure.p -> Proto.source -> TString
 *	L -> l_G -> registry, a Table -> array[1], the Table of globals (from 5.2 on)
 */
#ifndef DETECT_PUC_STRUCTS_H
#define DETECT_PUC_STRUCTS_H

#include <stdbool.h>

#include <unwind/puc/layout.h>

#include "proc/elf.h"

/* An access to such a struct. */
struct puc_struct_use {
	const char *function, *name; /* of the struct */
	uint16_t at;
	uint8_t width; /* bytes; 0: the address is computed */
	bool known;    /* the layout has this field */
};

/* Calls fn for each access that the layout has to explain; for none if the file has no symbols of
 * those functions. */
void puc_structs_used(struct elf_file *elf, const struct puc_layout *puc,
		      void (*fn)(void *arg, const struct puc_struct_use *use), void *arg);

#endif
