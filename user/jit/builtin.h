/* SPDX-License-Identifier: BSD-2-Clause */
/* The built-in functions that the recorder compiles (layer 1, for jit/ only). */
#ifndef JIT_BUILTIN_H
#define JIT_BUILTIN_H

#include "ops.h"

/* Returns the number of a built-in function, which fits 7 bits; 0: it is not listed, or unknown (NULL). */
uint32_t lj_builtin(const char *name);

/* Returns the operations that the function may become, without the checks of its arguments. For 0: those of any. */
op_set lj_builtin_ops(uint32_t builtin);

/* True if the function may become this operation with this literal as its second operand. */
bool lj_builtin_is(uint32_t builtin, uint8_t op, uint32_t literal);

/* True if a string that the function returns is made in the VM's string buffer. */
bool lj_builtin_in_buffer(uint32_t builtin);

#endif
