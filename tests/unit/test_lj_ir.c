// SPDX-License-Identifier: BSD-2-Clause
/* The numberings of LuaJIT's intermediate code. References: LuaJIT lj_ir.h, IRDEF, at 2021-09, 2020-06, 2017-06; Tarantool's
 * of 2024-10. */
#include <string.h>

#include <criterion/criterion.h>

#include "detect/lj/ir.h"

#define CARG (LJ_IR__MAX - 1) /* the last one in all */

static const struct {
	uint8_t numbers, last, ldexp, strref, aload, astore;
} rows[] = {
	{LJ_IR_2021_07, 100, 49, 64, 66, 74},  {LJ_IR_2020_05, 99, 49, 63, 65, 73},
	{LJ_IR_TARANTOOL, 98, 49, 63, 65, 72}, {LJ_IR_2017, 99, 50, 64, 66, 73},
	{LJ_IR_20, 93, 49, 63, 64, 71},
};

Test(lj_ir, numbers)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t n = rows[i].numbers;

		cr_expect_eq(lj_ir_of(n, 0), LJ_IR_LT, "%zu", i);
		cr_expect_eq(lj_ir_of(n, rows[i].ldexp), LJ_IR_LDEXP, "%zu", i);
		cr_expect_eq(lj_ir_of(n, rows[i].ldexp + 1), LJ_IR_MIN, "%zu", i);
		cr_expect_eq(lj_ir_of(n, rows[i].strref), LJ_IR_STRREF, "%zu", i);
		cr_expect_eq(lj_ir_of(n, rows[i].aload), LJ_IR_ALOAD, "%zu", i);
		cr_expect_eq(lj_ir_of(n, rows[i].astore), LJ_IR_ASTORE, "%zu", i);
		cr_expect_eq(lj_ir_of(n, rows[i].last), CARG, "%zu", i);
		cr_expect_eq(lj_ir_of(n, rows[i].last + 1), LJ_IR__MAX, "%zu", i);
		cr_expect_eq(lj_ir_of(n, 255), LJ_IR__MAX, "%zu", i);
	}
}

/* The table of a build of row i: lj_ir_mode but for what differs there. */
static void table(size_t i, uint8_t mode[LJ_IR__MAX])
{
	memset(mode, 0xee, LJ_IR__MAX);
	for (uint8_t n = 0; n <= rows[i].last; n++)
		mode[n] = lj_ir_mode[lj_ir_of(rows[i].numbers, n)];
	if (rows[i].numbers >= LJ_IR_TARANTOOL) {
		mode[rows[i].astore - 1] |= LJ_IRM_none << 2; /* VLOAD */
		mode[rows[i].last - 5] ^= LJ_IRK_W;	      /* CALLN */
	}
}

Test(lj_ir, a_table_has_one_numbering)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint8_t mode[LJ_IR__MAX];

		table(i, mode);
		mode[rows[i].ldexp + 1] ^= LJ_IRK_C; /* MIN: not always commutative */
		for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++)
			cr_expect_eq(lj_ir_is_mode(rows[k].numbers, mode), i == k, "%zu %zu", i, k);
		mode[rows[i].last] ^= LJ_IRK_S;
		cr_expect_not(lj_ir_is_mode(rows[i].numbers, mode), "%zu", i);
	}
}
