/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ARCH_X86_64_INSN_WORK_H
#define ARCH_X86_64_INSN_WORK_H

#include "arch/work.h"
#include "insn.h"

/* Returns the class of a machine instruction. reg: the register that it writes, XMM registers from
 * 16 on; 0xff: not known. */
enum work x86_work_of(const struct x86_insn *in, uint8_t *reg);

/* Returns the register that it copies to another; 0xff: it is no such move. */
uint8_t x86_moved(const struct x86_insn *in);

#endif
