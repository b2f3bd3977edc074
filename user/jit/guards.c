// SPDX-License-Identifier: BSD-2-Clause
#include "guards.h"

#include <machine/lj_exit.h>

#include "arch/insn.h"
#include "base/mem_limited.h"

#define STUB_READS 4000 /* for one trace */

/* Decodes the exit stub at an address. Copies its exit number, or LJ_NO_EXIT if the code is no stub. Returns 0, or the
 * error of mem_read(). */
static int exit_of_stub(const struct lb_mem *mem, uint64_t at, uint32_t *exit)
{
	uint8_t lower[4], upper[2];
	int r;

	*exit = LJ_NO_EXIT;
	r = mem_read(mem, lower, sizeof(lower), at);
	if (r || lower[0] != LJ_X86_PUSH)
		return r;
	if (lower[2] == LJ_X86_PUSH) { /* the last stub of its group */
		*exit = lower[1] | (uint32_t)lower[3] << 8;
		return 0;
	}
	if (lower[2] != LJ_X86_JMP)
		return 0;
	r = mem_read(mem, upper, sizeof(upper), at + 4 + lower[3]);
	if (!r && upper[0] == LJ_X86_PUSH)
		*exit = lower[1] | (uint32_t)upper[1] << 8;
	return r;
}

int lj_trace_guards(struct lj_trace *t, const struct lb_mem *mem, uint64_t mcode)
{
	struct mem_limited limited;
	uint32_t at, exit, i;
	struct insn in;
	uint64_t to;
	int r;

	mem_limited_init(&limited, mem, STUB_READS);
	for (at = 0; insn_decode(t->code_bytes + at, t->szmcode - at, &in);) {
		const uint8_t *code = t->code_bytes + at;

		at += in.len;
		if (in.len < 2 || !lj_is_jump(code) || in.len != lj_jump_size(code))
			continue;
		to = at + lj_jump_target(code, in.len);
		if (to < t->szmcode || to + LJ_STUB_REACH >= 2 * LJ_STUB_REACH)
			continue;
		r = exit_of_stub(&limited.mem, mcode + to, &exit);
		if (r)
			return r;
		if (exit >= t->nsnap)
			continue;
		t->snap[exit].branches++;
		if (exit + 1 < t->nsnap)
			t->snap[exit + 1].mcofs = (uint16_t)at;
	}
	for (i = 1; i < t->nsnap; i++)
		if (t->snap[i].mcofs < t->snap[i - 1].mcofs)
			t->snap[i].mcofs = t->snap[i - 1].mcofs;
	return 0;
}
