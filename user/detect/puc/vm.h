/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds luaV_execute (lvm.c) in a file without a symbol of it, by its shape: see detect/puc/vm.c.
 */
#ifndef DETECT_PUC_VM_H
#define DETECT_PUC_VM_H

#include <stdint.h>

#include <unwind/puc/layout.h>

#include "proc/elf.h"

/* The version's constants in the shape. */
struct puc_vm_wanted {
	uint8_t opcode_mask;  /* 0x3f or 0x7f: an instruction's opcode bits */
	uint8_t opcode_limit; /* NUM_OPCODES */
	uint16_t savedpc;     /* offset of the field that pc is saved to */
};

struct elf_puc_vm {
	uint64_t start, size;
	uint8_t pc_reg;	   /* holds pc, the next instruction's address; PUC_NO_REG: none does */
	uint16_t fetches;  /* loads of an instruction with the step to the next */
	uint16_t local;	   /* those by a variable on the C stack: built without -O */
	uint16_t jumps;	   /* indirect jumps by opcode */
	uint16_t saves;	   /* stores of pc at `savedpc` of some struct */
	uint8_t fetch_reg; /* this and the next as in struct puc_build */
	struct puc_text fetch[PUC_FETCHES];
	uint16_t elsewhere; /* the offset of most stores of pc; 0xffff: none */
};

/* -ENOENT: no function has the shape. vm->saves == 0: one has, but saves pc at another offset. */
int elf_find_puc_vm(struct elf_file *elf, const struct puc_vm_wanted *wanted,
		    struct elf_puc_vm *vm);

#endif
