// SPDX-License-Identifier: BSD-2-Clause
/* System V ABI, AMD64 supplement: relocation types, and the table of DWARF register numbers. */
#include "arch/elf_abi.h"

#include <elf.h>

bool elf_abi_is_relative(uint64_t reloc)
{
	return reloc == R_X86_64_RELATIVE;
}

bool elf_abi_is_linked(uint64_t reloc)
{
	return reloc == R_X86_64_JUMP_SLOT || reloc == R_X86_64_GLOB_DAT;
}

enum { REG_RBX = 3, REG_RBP = 6, REG_RSP = 7, REG_R14 = 14, REG_R15 = 15 };

const uint8_t elf_abi_sp = REG_RSP;
const uint32_t elf_abi_vm_saved = 1u << REG_RBX | 1u << REG_RBP | 1u << REG_R14 | 1u << REG_R15;
