/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vm_x64.dasc, branchPC and ins_NEXT:
 *
 *     lea PC, [PC + RD*4 - BCBIAS_J*4]
 *     mov RCd, [PC]
 *     movzx RAd, RCH
 *     movzx OP, RCL
 *     add PC, 4
 *
 * PC is rbx, in GC32 ebx. Some jumps have other instructions between the two. vm_exit_interp has no jump:
 *
 *     mov dword [DISPATCH + vmstate], ~INTERP
 *     mov RCd, [PC]
 *     ...
 */
#include "arch/lj_jumps.h"

#include <string.h>

#include "insn.h"

#define JUMP_BIAS (-0x8000 * 4) /* BCBIAS_J, of instructions */
#define JUMP_AROUND 12		/* instructions decoded after the jump, at most */

static bool is_branch_pc(const struct insn *in, bool gc32)
{
	return in->op == ZYDIS_MNEMONIC_LEA && in->size == (gc32 ? 4 : 8) &&
	       in->reg[0] == X86_RBX && in->base == X86_RBX && in->index != INSN_NO_REG &&
	       in->disp == JUMP_BIAS;
}

/* Marks the instructions after a jump, up to the one that ends the fetch. */
static void mark_fetch(const uint8_t *text, size_t size, size_t at, uint8_t *sites)
{
	unsigned int i;

	for (i = 0; i < JUMP_AROUND; i++) {
		struct insn in;

		if (at >= size || !insn_decode(text + at, size - at, &in))
			return;
		sites[at >> 3] |= (uint8_t)(1 << (at & 7));
		at += in.len;
		if (insn_writes(&in, X86_RBX) || insn_is_call(&in) || insn_ends(&in) ||
		    insn_is_jump(&in))
			return;
	}
}

void lj_jumps_scan(const uint8_t *text, size_t size, bool gc32, uint8_t *sites)
{
	size_t at = 0;

	while (at < size) {
		struct insn in;

		if (!insn_decode(text + at, size - at, &in)) {
			at++; /* data, or an unknown instruction: resynchronises */
			continue;
		}
		at += in.len;
		if (is_branch_pc(&in, gc32))
			mark_fetch(text, size, at, sites);
	}
}

void lj_links_scan(const uint8_t *text, size_t size, bool gc32, uint8_t *sites)
{
	static const uint8_t gc64_store[] = {0x48, 0x89, 0x5a, 0xf8}; /* mov [rdx-8], rbx */
	static const uint8_t gc32_store[] = {0x89, 0x5a, 0xfc};	      /* mov [rdx-4], ebx */
	const uint8_t *store = gc32 ? gc32_store : gc64_store;
	size_t len = gc32 ? sizeof(gc32_store) : sizeof(gc64_store), at;

	for (at = 0; at + len <= size; at++)
		if (!memcmp(text + at, store, len))
			sites[at >> 3] |= (uint8_t)(1 << (at & 7));
}

/* mov dword [r14 + disp32], -1; mov eax, [rbx] */
#define EXIT_SET 11
#define EXIT_FETCH 2

static bool is_exit(const uint8_t *p)
{
	static const uint8_t set[] = {0x41, 0xc7, 0x86}, interp[] = {0xff, 0xff, 0xff, 0xff};
	static const uint8_t fetch[EXIT_FETCH] = {0x8b, 0x03};

	return !memcmp(p, set, sizeof(set)) &&
	       !memcmp(p + EXIT_SET - sizeof(interp), interp, sizeof(interp)) &&
	       !memcmp(p + EXIT_SET, fetch, sizeof(fetch));
}

void lj_exit_scan(const uint8_t *text, size_t size, uint32_t *lo, uint32_t *hi)
{
	struct insn in;
	size_t begin = 0, at;
	unsigned int i;

	*lo = 0;
	*hi = 0;
	while (begin + EXIT_SET + EXIT_FETCH <= size && !is_exit(text + begin))
		begin++;
	begin += EXIT_SET;
	for (at = begin, i = 0; i < JUMP_AROUND; i++) {
		if (at >= size || !insn_decode(text + at, size - at, &in))
			return;
		at += in.len;
		if (!insn_writes(&in, X86_RBX))
			continue;
		*lo = (uint32_t)begin;
		*hi = (uint32_t)at;
		return;
	}
}
