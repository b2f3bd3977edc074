/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What calls and setjmp() leave on the C stack of a process with PUC Lua, x86-64. */
#ifndef MACHINE_PUC_STACK_H
#define MACHINE_PUC_STACK_H

#include <unwind/puc/thread.h>

/*
 * Returns the ModRM bytes with which `ff /2` (indirect call) has a length of `size`, as bits
 * mod * 8 + rm. Displacement and SIB byte are as in the processor's manual, a REX prefix does not
 * count.
 */
static __always_inline __u32 puc_call_modrm(__u32 size)
{
	return size == 2   ? 0xff0000cf /* registers, (%reg) */
	       : size == 3 ? 0x0000ef10 /* 8 bits, (%rsp) and indexed */
	       : size == 4 ? 0x00001000 /* both */
	       : size == 6 ? 0x00ef0020 /* 32 bits, %rip */
	       : size == 7 ? 0x00100000 /* 32 bits, indexed */
			   : 0;
}

/*
 * True if a call instruction ends at addr, so that it may be a return address, no function's. *to:
 * the target of a direct call (e8), else 0. Branch-free: the verifier would follow each branch.
 */
static __always_inline int puc_is_return(const struct lb_mem *mem, struct puc_walk *w, __u64 addr,
					 __u64 *to)
{
	__u64 text, found = 0;
	__u32 i;

	*to = 0;
	if (puc_read(mem, w, &text, sizeof(text), addr - 8))
		return 0;
	if ((text >> 24 & 0xff) == 0xe8) {
		*to = addr + (__s64)(__s32)(text >> 32);
		return 1;
	}
	LB_UNROLLED
	for (i = 2; i < 8; i++) {
		__u64 call = text >> 8 * (8 - i), modrm = call >> 8;
		__u64 is = ((call & 0x38ff) ^ 0x10ff) - 1; /* negative: ff /2 */

		found |= is >> 63 & puc_call_modrm(i) >> ((modrm >> 3 & 0x18) | (modrm & 7));
	}
	return found & 1;
}

/*
 * True if word i is rip in the jmp_buf of a lua_State's outermost lua_longjmp. That struct begins with
 * `previous`, which is NULL (i - 8). glibc mangles rbp (i - 6), rsp (i - 1) and rip, so that they are no
 * addresses; the caller has tested rip.
 */
static __always_inline int puc_is_jmp_buf(const struct puc_walk *w, __u32 i)
{
	const __u64 *word = w->block.word;

	return i >= 8 && !word[(i - 8) & (PUC_BLOCK - 1)] &&
	       word[(i - 1) & (PUC_BLOCK - 1)] >> 47 && word[(i - 6) & (PUC_BLOCK - 1)] >> 47;
}

#endif
