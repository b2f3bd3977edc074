// SPDX-License-Identifier: BSD-2-Clause
#include "arch/insn_refs.h"

#include <string.h>

#include "insn.h"

static bool is_by_slot(const struct insn *in, ZydisMnemonic mnemonic)
{
	return in->op == mnemonic && in->base == X86_RIP;
}

enum insn_ref insn_ref(const struct insn *in, uint64_t next, uint64_t *addr)
{
	bool flows = insn_is_call(in) || insn_is_branch(in) || in->flow == INSN_JUMP;

	*addr = next + (uint64_t)(in->relative ? in->imm : in->disp);
	if (flows && in->relative)
		return INSN_REF_TARGET;
	if (is_by_slot(in, ZYDIS_MNEMONIC_CALL) || is_by_slot(in, ZYDIS_MNEMONIC_JMP))
		return INSN_REF_SLOT;
	if (is_by_slot(in, ZYDIS_MNEMONIC_LEA))
		return INSN_REF_VALUE;
	if (in->op != ZYDIS_MNEMONIC_MOV || !in->has_imm)
		return INSN_REF_NONE;
	*addr = (uint64_t)in->imm;
	return INSN_REF_VALUE;
}

/* Decodes the first instruction, or that after endbr64. Returns its end; 0: not decodable. */
static size_t first_insn(const uint8_t *text, size_t size, struct insn *in)
{
	size_t at = size > 4 && !memcmp(text, "\xf3\x0f\x1e\xfa", 4) ? 4 : 0;

	return insn_decode(text + at, size - at, in) ? at + in->len : 0;
}

bool insn_plt_slot(const uint8_t text[PLT_ENTRY], uint64_t at, uint64_t *slot)
{
	struct insn in;
	size_t end = first_insn(text, PLT_ENTRY, &in);

	if (!end || !is_by_slot(&in, ZYDIS_MNEMONIC_JMP))
		return false;
	*slot = at + end + (uint64_t)(int64_t)in.disp;
	return true;
}

bool insn_is_plt(const uint8_t *text, size_t size)
{
	struct insn in;

	return first_insn(text, size, &in) &&
	       (is_by_slot(&in, ZYDIS_MNEMONIC_JMP) || is_by_slot(&in, ZYDIS_MNEMONIC_PUSH));
}
