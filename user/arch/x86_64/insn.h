/* SPDX-License-Identifier: BSD-2-Clause */
/* An x86-64 instruction as Zydis decodes it: struct insn's `op` is a ZydisMnemonic. */
#ifndef ARCH_X86_64_INSN_H
#define ARCH_X86_64_INSN_H

#include <Zydis/Zydis.h>

#include "arch/insn.h"

enum {
	X86_RAX = 0,
	X86_RCX = 1,
	X86_RDX = 2,
	X86_RBX = 3,
	X86_RSP = 4,
	X86_RBP = 5,
	X86_RSI = 6,
	X86_RDI = 7,
	X86_R8 = 8,
	X86_R9 = 9,
	X86_R11 = 11,
	X86_R14 = 14,
	X86_RIP = 16, /* as a base */
	X86_XMM = 16, /* as an operand: XMM0 and those behind it */
};

/* An operand that is [register + disp]; not on the C stack. */
static inline bool x86_is_field(const struct insn *in)
{
	return in->has_mem && in->index == INSN_NO_REG && in->base < INSN_REGS &&
	       in->base != X86_RSP;
}

#endif
