/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * BPF only: the target's pages in place. bpf_probe_read_user() costs 30 to 130 ns a call, and a
 * sample needs ten and more of them. So the door to memory (mem.h) can do what the processor does
 * for such a read, once for each page: go through the target's page tables. They and the page lie
 * in the kernel's map of all physical memory, from which a program may load words at no more cost
 * than from its own maps (bpf_rdonly_cast(), Linux 6.2).
 *
 * In the timer's interrupt nothing frees a page table: for that all CPUs that use the address space
 * have to answer first, or RCU has to pass. A page itself may be moved meanwhile, where flushes do
 * not wait for this CPU (a hypervisor's, INVLPGB): mm_context_t.tlb_gen tells, which is raised
 * after the entry was changed and before the page is given away (cache.h, lb_unmoved()).
 *
 * A page that is not present, or not the process's, is none: that is known without the page fault
 * that a read in vain costs. Where physical memory is mapped is proved before the first sample
 * (bpf/prove.bpf.h); where it is not, and on older kernels, programs are loaded that copy.
 */
#ifndef LUABPF_PAGES_H
#define LUABPF_PAGES_H

#include "abi.h"

#ifndef __TARGET_ARCH_x86
#error "no page tables for this architecture"
#endif

/*
 * 1: pages are read in place; 0: in copies. Each object is compiled both ways (Makefile): of what a
 * program never comes to the verifier drops each piece by itself, which takes it a tenth of its
 * time.
 */
#ifndef LB_DIRECT
#error "LB_DIRECT is 0 or 1"
#endif
/* Where the kernel has physical memory mapped; 0: not known. luabpf_prove sets it. */
__u64 lb_physical;

/*
 * bpf_rdonly_cast(address, type), by numbers that user space replaces with the kernel's before the
 * program is loaded (user/bpf/direct.h). libbpf can do it, too, but loads all BTF of the kernel for
 * that, which takes it longer than the verifier.
 */
static const __u8 *(*const lb_rdonly_cast)(__u64, __u32) = (void *)LB_CAST_CALL;

/* The words at an address of the kernel's, to load from. */
static __always_inline const __u8 *lb_place(__u64 addr)
{
	return lb_rdonly_cast(addr, LB_CAST_TYPE);
}

static __always_inline __u64 lb_load(__u64 addr)
{
	return *(const __u64 *)lb_place(addr);
}

/* An entry of a page table (Intel SDM 3A, 4.5). */
#define LB_PTE_PRESENT (1ULL << 0)
#define LB_PTE_USER (1ULL << 2)
#define LB_PTE_LARGE (1ULL << 7)
#define LB_PTE_SPECIAL (1ULL << 9) /* Linux: no ordinary page: of zeros, a device's */
#define LB_PTE_ADDR 0x000ffffffffff000ULL
#define LB_PTE_READABLE (LB_PTE_PRESENT | LB_PTE_USER)
#define LB_USER_BITS 47	       /* of addresses, with four levels */
#define LB_KERNEL_HALF 0x1ffff /* what is above these bits, in an address of the kernel's */
#define LB_LEVEL_BITS 9

/* The entry for addr in a table, of which level l (3: the highest) is the place. */
static __always_inline __u64 lb_entry(__u64 table, __u64 addr, __u32 l)
{
	return lb_load(table + ((addr >> (12 + LB_LEVEL_BITS * l) & 511) << 3));
}

/* A page's place, by the entry that leads to it; size: of the page. */
static __always_inline __u64 lb_leaf(__u64 entry, __u64 addr, __u64 size)
{
	if (entry & LB_PTE_SPECIAL)
		return LB_PLACE_ASK;
	return lb_physical + (entry & LB_PTE_ADDR & ~(size - 1)) + (addr & (size - 1) & ~0xfffULL);
}

/*
 * Where the kernel has the page that holds addr, by the tables at `tables` (mm_struct.pgd);
 * LB_PLACE_ASK; or 0: it cannot be read. Addresses that only five levels reach are not.
 */
static __always_inline __u64 lb_page_place(__u64 tables, __u64 addr)
{
	__u64 map = lb_physical, entry, all;

	if (!map || !tables || addr >> LB_USER_BITS)
		return 0;
	if (map >> LB_USER_BITS != LB_KERNEL_HALF) { /* out of four levels' reach: there are five */
		entry = lb_load(tables);
		if ((entry & LB_PTE_READABLE) != LB_PTE_READABLE)
			return 0;
		tables = map + (entry & LB_PTE_ADDR);
	}
	all = entry = lb_entry(tables, addr, 3);
	if (!(entry & LB_PTE_PRESENT))
		return 0;
	all &= entry = lb_entry(map + (entry & LB_PTE_ADDR), addr, 2);
	if ((all & LB_PTE_READABLE) != LB_PTE_READABLE)
		return 0;
	if (entry & LB_PTE_LARGE)
		return lb_leaf(entry, addr, 1 << 30);
	entry = lb_entry(map + (entry & LB_PTE_ADDR), addr, 1);
	if ((entry & LB_PTE_READABLE) != LB_PTE_READABLE)
		return 0;
	if (entry & LB_PTE_LARGE)
		return lb_leaf(entry, addr, 1 << 21);
	entry = lb_entry(map + (entry & LB_PTE_ADDR), addr, 0);
	if ((entry & LB_PTE_READABLE) != LB_PTE_READABLE)
		return 0;
	return lb_leaf(entry, addr, 1 << 12);
}

#endif
