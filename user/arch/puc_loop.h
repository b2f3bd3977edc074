/* SPDX-License-Identifier: BSD-2-Clause */
/* The instructions of luaV_execute's loop: detect/puc/vm.c shows how compilers arrange them. */
#ifndef ARCH_PUC_LOOP_H
#define ARCH_PUC_LOOP_H

#include "insn.h"

/* True for a load of an instruction of bytecode. */
bool puc_is_fetch(const struct insn *in);

/* Returns the register that is set to the address of the instruction of bytecode after the one at
 * `from`; INSN_NO_REG. */
uint8_t puc_stepped(const struct insn *in, uint8_t from);

/* True for a load of the register from a variable on the C stack (operand 0), or for a store to one
 * (operand 1). */
bool puc_moves_local(const struct insn *in, unsigned operand, uint8_t reg);

/* True if it masks the opcode out of an instruction of bytecode. */
bool puc_is_opcode(const struct insn *in, uint8_t mask);

/* True if the text may have an instruction that masks so. */
bool puc_has_opcode(const uint8_t *text, size_t size, uint8_t mask);

/* True for a `switch`'s comparison with a number of cases that is not the version's. */
bool puc_refutes(const struct insn *in, uint8_t opcode, uint8_t limit);

/* True for a load from a table by an index. */
bool puc_loads_by_index(const struct insn *in);

/* True for a store of a register to a field, base + disp. */
bool puc_is_save(const struct insn *in);

/* True if it computes the address of the field at this offset. */
bool puc_takes_address(const struct insn *in, uint16_t field);

/* True for a jump of bytecode: pc is set to one before the target. */
bool puc_jumps_pc(const struct insn *in, uint8_t pc_reg);

#endif
