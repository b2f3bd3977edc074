// SPDX-License-Identifier: BSD-2-Clause
#include "arch/lj_handlers.h"

#include <string.h>

#include "insn.h"

/* mov r15, [rbx+k]; mov rbp, [rsp+16]; lea rcx, [rdx+rcx*8]; cmp rcx, [rbp+48]; ja */
bool lj_is_header(const uint8_t *p, size_t size)
{
	static const uint8_t first[] = {0x4c, 0x8b, 0x7b};
	static const uint8_t rest[] = {0x48, 0x8b, 0x6c, 0x24, 0x10, 0x48, 0x8d, 0x0c,
				       0xca, 0x48, 0x3b, 0x4d, 0x30, 0x0f, 0x87};

	return size >= sizeof(first) + 1 + sizeof(rest) && !memcmp(p, first, sizeof(first)) &&
	       !memcmp(p + sizeof(first) + 1, rest, sizeof(rest));
}

bool lj_is_stack_check(const struct insn *in)
{
	return in->op == ZYDIS_MNEMONIC_JNBE;
}

bool lj_sets_base_or_pc(const struct insn *in)
{
	return insn_writes(in, X86_RDX) || insn_writes(in, X86_RBX);
}
