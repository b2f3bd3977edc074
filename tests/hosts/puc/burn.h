// SPDX-License-Identifier: BSD-2-Clause
/* What a C function does that needs room on the C stack, and writes to little of it. */
#ifndef LUABPF_TESTS_BURN_H
#define LUABPF_TESTS_BURN_H

/*
 * Counts to n above `size` bytes which it does not write: the frames of what was called before show
 * through. No register that a caller has saved keeps a lua_State.
 */
static __attribute__((noinline)) double burn(int n, int size)
{
	volatile char buf[size];
	volatile double x = 1;
	int i;

	buf[0] = buf[size - 1] = (char)n;
	for (i = 0; i < n; i++) {
		x = x * 1.0000001 + 0.5;
		__asm__ volatile("xor %%ebx, %%ebx; xor %%r12d, %%r12d; xor %%r13d, %%r13d;"
				 "xor %%r14d, %%r14d; xor %%r15d, %%r15d" ::
					 : "rbx", "r12", "r13", "r14", "r15");
	}
	return x + buf[0];
}

#endif
