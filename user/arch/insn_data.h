/* SPDX-License-Identifier: BSD-2-Clause */
/* The flow of data through an instruction and through a call, by the C ABI. */
#ifndef ARCH_INSN_DATA_H
#define ARCH_INSN_DATA_H

#include "insn.h"

/* A general register gets the sum from + by, or the word in memory at this address. */
struct insn_def {
	uint8_t reg, from;
	bool load;
	int64_t by;
};

/* False if the instruction does neither with all 64 bits of a register. */
bool insn_def(const struct insn *in, struct insn_def *def);

/* True if it accesses a single field, at base + disp. Vector moves access whole values, or adjacent
 * fields. */
bool insn_accesses_field(const struct insn *in);

/* True if it sets the register to a constant. */
bool insn_sets_constant(const struct insn *in, uint8_t reg, int64_t *value);

/* True if it sets the register to an address in the file. */
bool insn_sets_address(const struct insn *in, uint8_t reg);

/* True if it sets bits of the field at this offset of a struct. */
bool insn_sets_bits(const struct insn *in, int32_t offset, int64_t bits);

/* True if it shifts to the right by a constant. */
bool insn_shifts_right(const struct insn *in, int64_t by);

/* True if it masks by a constant, or sets a register to it, by which another instruction masks. */
bool insn_has_mask(const struct insn *in, int64_t mask);

/* The registers of a call's integer arguments, in order. */
#define INSN_ARGS 6
extern const uint8_t insn_arg[INSN_ARGS];

/* True for a register that a called function need not preserve. */
bool insn_is_caller_saved(uint8_t reg);

#endif
