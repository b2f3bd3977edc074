/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Where does the kernel have physical memory mapped, and do the page tables lead there? Nothing is
 * read by that (pages.h) before it is proved, with a page of the caller's that holds random words.
 * This runs on the caller's behalf, which may be interrupted; then the proof is tried again.
 */
#ifndef LUABPF_PROVE_BPF_H
#define LUABPF_PROVE_BPF_H

#include <luabpf/abi.h>
#include <luabpf/mem.h>

/* Where the kernel is built without CONFIG_RANDOMIZE_MEMORY, with four and five levels of tables
 * (Documentation/arch/x86/x86_64/mm.rst). */
#define PHYSICAL_L4 0xffff888000000000ULL
#define PHYSICAL_L5 0xff11000000000000ULL

/* The variable that holds it, where it is randomized. 0: this kernel does not tell. */
static __always_inline __u64 physical_base(void)
{
	static const char name[] = "page_offset_base";
	__u64 at = 0;

	if (bpf_kallsyms_lookup_name(name, sizeof(name), 0, &at))
		return 0;
	return at ? lb_load(at) : 0;
}

/* By its physical address and by its own, the page is to hold the words. */
static __noinline int proves(const struct lb_prove *p, __u64 map)
{
	__u32 i;

	if (!map)
		return 0;
	LB_UNROLLED
	for (i = 0; i < LB_PROVE_WORDS; i++)
		if (lb_load(map + p->physical + 8 * i) != p->word[i])
			return 0;
	lb_physical = map;
	if (mem_page(0, mem_space(0), p->addr) == map + p->physical)
		return 1;
	lb_physical = 0;
	return 0;
}

/* Returns 1 when it is proved; lb_physical is set then. */
SEC("syscall")
int luabpf_prove(struct lb_prove *p)
{
	if (!mem_is_direct(0))
		return 0;
	return proves(p, physical_base()) || proves(p, PHYSICAL_L4) || proves(p, PHYSICAL_L5);
}

#endif
