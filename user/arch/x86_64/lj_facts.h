/* SPDX-License-Identifier: BSD-2-Clause */
/* Measures LuaJIT's numbers in the text of its assembler VM. */
#ifndef ARCH_X86_64_LJ_FACTS_H
#define ARCH_X86_64_LJ_FACTS_H

#include <stddef.h>
#include <stdint.h>

#include "arch/lj_facts.h"

/* Sets the facts that the text has. */
void lj_measure(const uint8_t *text, size_t size, struct lj_measured *out);

/* The size of the VM's frame on the C stack, with its return address. */
uint32_t lj_measured_cframe(const struct lj_measured *m);

/* Returns the size of the VM in this text without lj_vm_ffi_call, which is at its end. */
size_t lj_measured_size(const uint8_t *text, size_t size);

#endif
