// SPDX-License-Identifier: BSD-2-Clause
#include "builtin.h"

#include <string.h>

#define BUFFER (OPS(BUFHDR) | OPS(BUFPUT) | OPS(BUFSTR) | OPS(TOSTR) | CALLS)
#define ANY                                                                                        \
	(CALLS | STORES | LOADS | OPS(FPMATH) | OPS(ABS) | OPS(MIN) | OPS(MAX) | OPS(POW) |        \
	 OPS(LDEXP) | OPS(BNOT) | OPS(BSWAP) | OPS(BAND) | OPS(BOR) | OPS(BXOR) | OPS(BSHL) |      \
	 OPS(BSHR) | OPS(BSAR) | OPS(BROL) | OPS(BROR) | OPS(TOSTR) | OPS(STRTO) | OPS(SNEW) |     \
	 OPS(STRREF) | OPS(ALEN))
#define FPM_OTHER 0xff
#define FUNCTION (OPS(FPMATH) | CALLS) /* a function of the C library */

/* Source: lj_ffrecord.c, lj_opt_fold.c. */
static const struct {
	const char *name;
	op_set ops;
	uint8_t fpm; /* of FPMATH, if it is the only one */
} builtins[] = {
	{"assert", 0, FPM_OTHER},
	{"type", 0, FPM_OTHER},
	{"select", 0, FPM_OTHER},
	{"ipairs", 0, FPM_OTHER},
	{"rawequal", 0, FPM_OTHER},
	{"getmetatable", LOADS, FPM_OTHER},
	{"setmetatable", LOADS | STORES, FPM_OTHER},
	{"rawget", LOADS, FPM_OTHER},
	{"rawset", LOADS | STORES | OPS(NEWREF), FPM_OTHER},
	{"rawlen", LOADS | OPS(ALEN), FPM_OTHER},
	{"next", CALLS | LOADS, FPM_OTHER},
	{"tonumber", OPS(STRTO), FPM_OTHER},
	{"tostring", OPS(TOSTR), FPM_OTHER},
	{"math.abs", OPS(ABS), FPM_OTHER},
	{"math.floor", OPS(FPMATH), LJ_IRFPM_FLOOR},
	{"math.ceil", OPS(FPMATH), LJ_IRFPM_CEIL},
	{"math.sqrt", OPS(FPMATH), LJ_IRFPM_SQRT},
	{"math.log10", FUNCTION, FPM_OTHER},
	{"math.exp", FUNCTION, FPM_OTHER},
	{"math.sin", FUNCTION, FPM_OTHER},
	{"math.cos", FUNCTION, FPM_OTHER},
	{"math.tan", FUNCTION, FPM_OTHER},
	{"math.asin", FUNCTION, FPM_OTHER},
	{"math.acos", FUNCTION, FPM_OTHER},
	{"math.atan", FUNCTION, FPM_OTHER},
	{"math.sinh", FUNCTION, FPM_OTHER},
	{"math.cosh", FUNCTION, FPM_OTHER},
	{"math.tanh", FUNCTION, FPM_OTHER},
	{"math.log", FUNCTION | OPS(MUL) | OPS(DIV), FPM_OTHER},
	{"math.pow", FUNCTION | OPS(POW) | OPS(MUL), FPM_OTHER},
	{"math.ldexp", CALLS | OPS(LDEXP), FPM_OTHER},
	{"math.min", OPS(MIN), FPM_OTHER},
	{"math.max", OPS(MAX), FPM_OTHER},
	{"bit.tobit", OPS(TOBIT), FPM_OTHER},
	{"bit.bnot", OPS(BNOT) | OPS(BXOR), FPM_OTHER},
	{"bit.bswap", OPS(BSWAP), FPM_OTHER},
	{"bit.lshift", OPS(BSHL), FPM_OTHER},
	{"bit.rshift", OPS(BSHR), FPM_OTHER},
	{"bit.arshift", OPS(BSAR), FPM_OTHER},
	{"bit.rol", OPS(BROL) | OPS(BROR), FPM_OTHER},
	{"bit.ror", OPS(BROL) | OPS(BROR), FPM_OTHER},
	{"bit.band", OPS(BAND), FPM_OTHER},
	{"bit.bor", OPS(BOR), FPM_OTHER},
	{"bit.bxor", OPS(BXOR), FPM_OTHER},
	{"bit.tohex", BUFFER, FPM_OTHER},
	{"string.len", OPS(FLOAD), FPM_OTHER},
	{"string.byte", OPS(STRREF) | OPS(XLOAD), FPM_OTHER},
	{"string.sub", OPS(STRREF) | OPS(SNEW), FPM_OTHER},
	{"string.char", BUFFER, FPM_OTHER},
	{"string.rep", BUFFER, FPM_OTHER},
	{"string.upper", BUFFER, FPM_OTHER},
	{"string.lower", BUFFER, FPM_OTHER},
	{"string.reverse", BUFFER, FPM_OTHER},
	{"string.format", BUFFER, FPM_OTHER},
	{"table.concat", BUFFER, FPM_OTHER},
	{"table.insert", LOADS | STORES | CALLS | OPS(ALEN) | OPS(ADD) | OPS(NEWREF), FPM_OTHER},
	{"ffi.cast", OPS(CNEW) | OPS(CNEWI), FPM_OTHER},
	{"ffi.new", OPS(CNEW) | OPS(CNEWI) | OPS(XSTORE) | CALLS, FPM_OTHER},
	{"ffi.typeof", 0, FPM_OTHER},
	{"ffi.istype", 0, FPM_OTHER},
	{"ffi.sizeof", 0, FPM_OTHER},
	{"ffi.alignof", 0, FPM_OTHER},
	{"ffi.offsetof", 0, FPM_OTHER},
	{"ffi.abi", 0, FPM_OTHER},
	{"ffi.string", CALLS | OPS(XSNEW) | OPS(SNEW), FPM_OTHER},
	{"ffi.copy", CALLS | OPS(XLOAD) | OPS(XSTORE), FPM_OTHER},
	{"ffi.fill", CALLS | OPS(XSTORE), FPM_OTHER},
};
_Static_assert(sizeof(builtins) / sizeof(builtins[0]) < 1 << 7, "numbers of 7 bits");

uint32_t lj_builtin(const char *name)
{
	uint32_t i;

	for (i = 0; name && i < sizeof(builtins) / sizeof(builtins[0]); i++)
		if (!strcmp(name, builtins[i].name))
			return i + 1;
	return 0;
}

op_set lj_builtin_ops(uint32_t builtin)
{
	return builtin ? builtins[builtin - 1].ops : ANY;
}

bool lj_builtin_is(uint32_t builtin, uint8_t op, uint32_t literal)
{
	uint8_t fpm = builtin ? builtins[builtin - 1].fpm : FPM_OTHER;

	if (op >= LJ_IR__MAX || !(lj_builtin_ops(builtin) >> op & 1))
		return false;
	return op != LJ_IR_FPMATH ||
	       (fpm == FPM_OTHER ? literal > LJ_IRFPM_SQRT || !builtin : literal == fpm);
}

bool lj_builtin_in_buffer(uint32_t builtin)
{
	return builtin && builtins[builtin - 1].ops == BUFFER;
}
