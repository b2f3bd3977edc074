/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* LuaJIT's frame on the C stack, x86-64. */
#ifndef MACHINE_LJ_CFRAME_H
#define MACHINE_LJ_CFRAME_H

/* GC64 with external unwinding (lj_frame.h CFRAME_*): PREV, whose offset varies, then r14, r15, rbx,
 * rbp, return address */
enum {
	LJ_CFRAME_NRES = 8,
	LJ_CFRAME_L = 16,
	LJ_CFRAME_PC = 24,
	LJ_CFRAME_PREV = 32,
	LJ_CFRAME_SIZE = 80,
	/* Tarantool's, since 2020-12 */
	LJ_CFRAME_PREV_MOST = 48,
	LJ_CFRAME_SIZE_MOST = 96,

	/* GC32: L, PC and NRES have 32 bits; what is above them is the same */
	LJ32_CFRAME_NRES = 16,
	LJ32_CFRAME_L = 24,
	LJ32_CFRAME_PC = 28,
};

#endif
