/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * luaV_execute (lvm.c) in a file that has no symbol for it: known by its shape, see detect/puc/vm.c.
 */
#ifndef DETECT_PUC_VM_H
#define DETECT_PUC_VM_H

#include <stdint.h>

#include <unwind/puc/layout.h>

#include "proc/elf.h"

/* What the shape depends on. */
struct puc_vm_wanted {
	uint8_t opcode_mask;  /* 0x3f or 0x7f: of 32 bits of an instruction, those of the opcode */
	uint8_t opcode_limit; /* NUM_OPCODES */
	uint16_t savedpc;     /* offset of the field that pc is saved to */
};

struct elf_puc_vm {
	uint64_t start, size;
	uint8_t pc_reg;	   /* holds pc, the next instruction's address; PUC_NO_REG: none does */
	uint16_t fetches;  /* loads of an instruction with the step to the next */
	uint16_t local;	   /* of these, those of a variable on the C stack: built without -O */
	uint16_t jumps;	   /* indirect jumps by opcode */
	uint16_t saves;	   /* stores of pc at `savedpc` of some struct */
	uint8_t fetch_reg; /* as in struct puc_build, as the next */
	struct puc_text fetch[PUC_FETCHES];
	uint16_t elsewhere; /* the offset that has most stores of pc; 0xffff: none */
};

/* -ENOENT: no function has the shape. vm->saves == 0: it has, but for the offset. */
int elf_find_puc_vm(struct elf_file *elf, const struct puc_vm_wanted *wanted,
		    struct elf_puc_vm *vm);

#endif
