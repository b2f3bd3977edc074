// SPDX-License-Identifier: BSD-2-Clause
#include "guards.h"

#include <machine/lj_exit.h>

#include "arch/insn.h"
#include "base/mem_limited.h"

#define STUB_READS 4000 /* for one trace: the branches behind these are passed over */

/* Returns the number of the exit whose stub is at this address; LJ_NO_EXIT if no stub can be read there. */
static uint32_t exit_of_stub(const struct lb_mem *mem, uint64_t at)
{
	uint8_t lower[4], upper[2];

	if (mem_read(mem, lower, sizeof(lower), at) || lower[0] != LJ_X86_PUSH)
		return LJ_NO_EXIT;
	if (lower[2] == LJ_X86_PUSH) /* the last stub of its group */
		return lower[1] | (uint32_t)lower[3] << 8;
	if (lower[2] != LJ_X86_JMP || mem_read(mem, upper, sizeof(upper), at + 4 + lower[3]) ||
	    upper[0] != LJ_X86_PUSH)
		return LJ_NO_EXIT;
	return lower[1] | (uint32_t)upper[1] << 8;
}

void lj_trace_guards(struct lj_trace *t, const struct lb_mem *mem, uint64_t mcode)
{
	struct mem_limited limited;
	uint32_t at, exit, i;
	struct insn in;

	mem_limited_init(&limited, mem, STUB_READS);
	for (at = 0; insn_decode(t->code_bytes + at, t->szmcode - at, &in);) {
		const uint8_t *code = t->code_bytes + at;

		at += in.len;
		if (in.len < 2 || !lj_is_jump(code) || in.len != lj_jump_size(code))
			continue;
		exit = exit_of_stub(&limited.mem, mcode + at + lj_jump_target(code, in.len));
		if (exit >= t->nsnap)
			continue;
		t->snap[exit].branches++;
		if (exit + 1 < t->nsnap)
			t->snap[exit + 1].mcofs = (uint16_t)at;
	}
	for (i = 1; i < t->nsnap; i++)
		if (t->snap[i].mcofs < t->snap[i - 1].mcofs)
			t->snap[i].mcofs = t->snap[i - 1].mcofs;
}
