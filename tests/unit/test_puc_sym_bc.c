/* SPDX-License-Identifier: BSD-2-Clause */
/* Instructions of PUC Lua, as each version encodes them. */
#include <criterion/criterion.h>

#include "puc_code.h"
#include "lua/puc/bc.h"

Test(puc_sym, decoding)
{
	struct puc_ins i;
	unsigned v;

	for (v = 51; v <= 55; v++) {
		i = puc_bc_decode(v, puc_code_jump(v, -5));
		cr_assert_eq(i.op, PUC_BC_JMP);
		cr_assert_eq(i.sj, -5);
		i = puc_bc_decode(v, puc_code_jump(v, 70000));
		cr_assert_eq(i.sj, 70000);
		i = puc_bc_decode(v, puc_code_abc(v, puc_code_op(v, I_CALL), 201, 77, 33, 1));
		cr_assert(i.op == PUC_BC_CALL && i.a == 201 && i.b == 77 && i.c == 33);
		i = puc_bc_decode(v, puc_code_abx(v, puc_code_op(v, I_LOADK), 3, 99999));
		cr_assert(i.op == PUC_BC_LOADK && i.a == 3 && i.bx == 99999 && i.writes_a);
		i = puc_bc_decode(v, 0xffffffff); /* no such instruction */
		cr_assert(i.op == PUC_BC_OTHER && !i.writes_a && !*i.mm);
	}
	i = puc_bc_decode(50, 0);
	cr_assert_eq(i.op, PUC_BC_OTHER);
	cr_assert_str_eq(puc_bc_event(24), "__close");
	cr_assert_str_eq(puc_bc_event(25), "");
	cr_assert_str_eq(puc_bc_event(255), "");
}
