/* SPDX-License-Identifier: BSD-2-Clause */
/* The instructions with which LuaJIT's handlers of calls begin (detect/lj/calls.c). */
#ifndef ARCH_LJ_HANDLERS_H
#define ARCH_LJ_HANDLERS_H

#include "insn.h"

/* True if the handler of IFUNCF or JFUNCF begins so. */
bool lj_is_header(const uint8_t *p, size_t size);

/* True for the jump that is taken if the Lua stack has to grow. */
bool lj_is_stack_check(const struct insn *in);

/* True if it may set BASE or PC, in whose registers the probe expects them. */
bool lj_sets_base_or_pc(const struct insn *in);

#endif
