// SPDX-License-Identifier: BSD-2-Clause
#include "ir.h"

const uint8_t lj_ir_mode[LJ_IR__MAX] = {
#define LJ_IR(name, kind, op1, op2)                                                                \
	(uint8_t)((LJ_IRM_##op1 | LJ_IRM_##op2 << 2 | LJ_IRK_##kind) ^ LJ_IRK_W),
#include "ir.def"
#undef LJ_IR
};

/* Operations that a numbering and all later ones of enum lj_ir_numbers lack, in ascending order. Each shifts those after it by one. */
static const struct {
	uint8_t o, numbers;
} missing[] = {
	{LJ_IR_PROF, LJ_IR_20},	       {LJ_IR_TMPREF, LJ_IR_2020_05}, {LJ_IR_LREF, LJ_IR_20},
	{LJ_IR_ALEN, LJ_IR_TARANTOOL}, {LJ_IR_BUFHDR, LJ_IR_20},      {LJ_IR_BUFPUT, LJ_IR_20},
	{LJ_IR_BUFSTR, LJ_IR_20},      {LJ_IR_CALLA, LJ_IR_20},
};

uint8_t lj_ir_of(uint8_t numbers, uint8_t o)
{
	bool atan2 = numbers >= LJ_IR_2017;
	uint32_t of = o, i;

	for (i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
		/* ATAN2 was before LDEXP. It is taken for that: both are functions of two numbers. */
		if (atan2 && missing[i].o > LJ_IR_LDEXP) {
			of -= of > LJ_IR_LDEXP;
			atan2 = false;
		}
		of += numbers >= missing[i].numbers && of >= missing[i].o;
	}
	return of < LJ_IR__MAX ? (uint8_t)of : LJ_IR__MAX;
}

/* The bits of an operation's mode that all builds of a numbering have in common. */
static uint8_t common(uint8_t numbers, uint8_t o)
{
	uint8_t mask = 0xff;

	if (o == LJ_IR_MIN || o == LJ_IR_MAX) /* not always commutative */
		mask = (uint8_t)~LJ_IRK_C;
	if (numbers >= LJ_IR_2020_05) /* calls, conversions and buffers have other flags */
		mask &= (uint8_t)~LJ_IRK_W;
	if (numbers >= LJ_IR_2020_05 && o == LJ_IR_VLOAD) /* has one operand */
		mask &= (uint8_t) ~(3 << 2);
	if (numbers >= LJ_IR_20 && o == LJ_IR_TOSTR) /* likewise */
		mask &= (uint8_t) ~(3 << 2);
	return mask;
}

bool lj_ir_is_mode(uint8_t numbers, const uint8_t mode[LJ_IR__MAX])
{
	uint8_t n, o;

	for (n = 0; (o = lj_ir_of(numbers, n)) < LJ_IR__MAX; n++)
		if ((mode[n] ^ lj_ir_mode[o]) & common(numbers, o))
			return false;
	return true;
}
