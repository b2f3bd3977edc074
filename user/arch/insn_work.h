/* SPDX-License-Identifier: BSD-2-Clause */
/* What LuaJIT's instructions of compiled code are for. */
#ifndef ARCH_INSN_WORK_H
#define ARCH_INSN_WORK_H

#include "arch/insn.h"
#include "arch/work.h"

/* Returns the class of a machine instruction. reg: the register that it writes, XMM registers from
 * 16 on; 0xff: not known. */
enum work insn_work_of(const struct insn *in, uint8_t *reg);

/* Returns the register that it copies to another; 0xff: it is no such move. */
uint8_t insn_moved(const struct insn *in);

/* True if its operand in memory is the VM's own: a field of the global_State, or a constant. */
bool insn_is_of_vm(const struct insn *in);

/* True for the instructions of a trace's head: it stores the trace's number in the VM, and loads
 * the base (asm_head_root, asm_head_side). */
bool insn_is_trace_head(const struct insn *in);

#endif
