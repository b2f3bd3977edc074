/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Fingerprint of a PUC Lua prototype (Proto, lobject.h): of its head, that is of where its parts
 * lie and how many there are, its lines and its chunk's name; and of its first constants. The
 * address of a collected prototype may be taken by another: user space joins what it reads later
 * with a sample only when this agrees. What changes while a prototype lives is left out: `cache`
 * (5.2, 5.3), gclist and the collector's marks.
 */
#ifndef LUABPF_PUC_PRINT_H
#define LUABPF_PUC_PRINT_H

#include "layout_puc.h"
#include "mem.h"

/* As long as the longest Proto, and as far as the verifier has to see that an offset goes. */
#define PUC_PROTO_HEAD 128

static __always_inline __u64 puc_print_word(const void *head, __u16 offset)
{
	return lb_word(head, offset & (PUC_PROTO_HEAD - 8));
}

static __always_inline __u64 puc_print_halves(const void *head, __u16 low, __u16 high)
{
	return lb_half(head, low & (PUC_PROTO_HEAD - 4)) |
	       (__u64)lb_half(head, high & (PUC_PROTO_HEAD - 4)) << 32;
}

static __always_inline __u64 puc_print_mix(__u64 h, __u64 more)
{
	return (h ^ h >> 29) * 0x9e3779b97f4a7c15ULL ^ more;
}

/*
 * head: PUC_PROTO_HEAD bytes, aligned to 8, of which the first p_size are the Proto; the rest may
 * be anything, it does not count.
 */
static __always_inline __u32 puc_proto_print(const void *head, const struct puc_layout *puc)
{
	__u64 h = puc_print_word(head, puc->p_code);

	h = puc_print_mix(h, puc_print_word(head, puc->p_source));
	h = puc_print_mix(h, puc_print_word(head, puc->p_k));
	h = puc_print_mix(h, puc_print_word(head, puc->p_p));
	h = puc_print_mix(h, puc_print_word(head, puc->p_lineinfo));
	h = puc_print_mix(h, puc_print_word(head, puc->p_locvars));
	h = puc_print_mix(h, puc_print_word(head, puc->p_upvalues));
	h = puc_print_mix(h, puc_print_halves(head, puc->p_linedefined, puc->p_lastlinedefined));
	h = puc_print_mix(h, puc_print_halves(head, puc->p_sizecode, puc->p_sizek));
	h = puc_print_mix(h, puc_print_halves(head, puc->p_sizep, puc->p_sizelineinfo));
	h = puc_print_mix(h, puc_print_halves(head, puc->p_sizelocvars, puc->p_sizeupvalues));
	h = puc_print_mix(h, 0);
	return (__u32)(h >> 32);
}

/*
 * Chunks of one shape, loaded and forgotten one after the other, have heads that are equal to the
 * bit: their parts take each other's addresses, too. Their constants differ. Of a string its hash
 * counts, as its address may be taken by another.
 */
#define PUC_PRINT_KS 4
#define PUC_PRINT_STR                                                                              \
	16 /* bytes of a TString: up to its hash, which lies at 12 in all versions                 \
	    */

/* k: the first n constants, at most PUC_PRINT_KS. *str: the first short string of them, or 0. */
static __always_inline __u32 puc_print_k(__u32 print, const __u8 *k, __u32 n,
					 const struct puc_layout *puc, __u64 *str)
{
	__u64 h = print, first = 0;
	__u32 i;

	for (i = 0; i < PUC_PRINT_KS && i < n; i++) {
		__u64 value = lb_word(k, PUC_TV_SIZE * i + PUC_TV_VALUE);
		__u8 tt = lb_byte(k, PUC_TV_SIZE * i + PUC_TV_TT) & PUC_TT_MASK;

		h = puc_print_mix(h, value ^ (__u64)tt << 56);
		if (!first && tt == puc->tt_shrstr)
			first = value;
	}
	*str = first;
	return (__u32)(puc_print_mix(h, 0) >> 32);
}

static __always_inline __u32 puc_print_str(__u32 print, const __u8 *str)
{
	return (__u32)(puc_print_mix(print, lb_half(str, 12)) * 0x9e3779b97f4a7c15ULL >> 32);
}

#endif
