/* SPDX-License-Identifier: BSD-2-Clause */
/* The numbers of ELF and DWARF that the processor's ABI assigns. */
#ifndef ARCH_ELF_ABI_H
#define ARCH_ELF_ABI_H

#include <stdbool.h>
#include <stdint.h>

/* True if the relocated word is the file's load address + the addend. */
bool elf_abi_is_relative(uint64_t reloc);

/* True if the relocated word is the address of a symbol, for calls and loads. */
bool elf_abi_is_linked(uint64_t reloc);

/* DWARF's numbers of registers. */
#define ELF_ABI_REGS 17 /* general registers, and the return address */
extern const uint8_t elf_abi_sp;

/* Registers that LuaJIT's assembler VM saves in its frame, as bits 1 << number. */
extern const uint32_t elf_abi_vm_saved;

#endif
