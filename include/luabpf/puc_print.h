/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Fingerprint of a PUC Lua prototype (Proto, lobject.h): of its head, that is of where its parts
 * lie and how many there are, and its lines; of its chunk's name; and of its first constants. The
 * address of a collected prototype may be taken by another: user space joins what it reads later
 * with a sample only when this agrees. What changes while a prototype lives is left out: `cache`
 * (5.2, 5.3), gclist and the collector's marks.
 */
#ifndef LUABPF_PUC_PRINT_H
#define LUABPF_PUC_PRINT_H

#include "layout_puc.h"
#include "print.h"

static __always_inline __u64 puc_print_word(const void *head, __u16 offset)
{
	return lb_word(head, offset & (PUC_PROTO_HEAD - 8));
}

/*
 * What each word of a Proto counts for. 0: not at all, as it changes while the prototype lives, or
 * lies beyond the Proto.
 */
static inline void puc_print_factors(struct puc_print *p, const struct puc_layout *puc)
{
	const __u16 fields[] = {
		puc->p_code,
		puc->p_source,
		puc->p_k,
		puc->p_p,
		puc->p_lineinfo,
		puc->p_locvars,
		puc->p_upvalues,
		puc->p_linedefined,
		puc->p_lastlinedefined,
		puc->p_sizecode,
		puc->p_sizek,
		puc->p_sizep,
		puc->p_sizelineinfo,
		puc->p_sizelocvars,
		puc->p_sizeupvalues,
	};
	__u32 i;

	for (i = 0; i < PUC_PROTO_HEAD / 8; i++)
		p->factor[i] = 0;
	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		p->factor[fields[i] / 8 % (PUC_PROTO_HEAD / 8)] =
			lb_print_factor[fields[i] / 8 % (PUC_PROTO_HEAD / 8)];
}

/*
 * head: PUC_PROTO_HEAD bytes, aligned to 8, of which the first p_size are the Proto; the rest may
 * be anything, it does not count.
 */
static __always_inline __u64 puc_print_head(const void *head, const struct puc_print *p)
{
	__u64 sum = 0;
	__u32 i;

	LB_UNROLLED
	for (i = PUC_GC_TT / 8 + 1; i < PUC_PROTO_HEAD / 8; i++)
		sum += lb_word(head, 8 * i) * p->factor[i];
	return sum;
}

/*
 * Chunks of one shape, loaded and forgotten one after the other, have heads that are equal to the
 * bit: their parts take each other's addresses, too. Their constants differ. Of a string its hash
 * counts, as its address may be taken by another.
 */
#define PUC_PRINT_KS 4
#define PUC_PRINT_FACTOR_K (PUC_PROTO_HEAD / 8)
#define PUC_PRINT_FACTOR_STR (PUC_PRINT_FACTOR_K + PUC_PRINT_KS)
#define PUC_PRINT_FACTOR_NAME (PUC_PRINT_FACTOR_STR + 1)
_Static_assert(PUC_PRINT_FACTOR_NAME < LB_PRINT_FACTORS, "factors");
/* Bytes of a TString: up to the hash of a short one, and the length of a long one. */
#define PUC_PRINT_STR 16
#define PUC_PRINT_NAME 24

/* k: the first n constants, at most PUC_PRINT_KS. *str: the first short string of them, or 0. */
static __always_inline __u64 puc_print_k(__u64 sum, const __u8 *k, __u32 n,
					 const struct puc_layout *puc, __u64 *str)
{
	__u64 first = 0;
	__u32 i;

	LB_UNROLLED
	for (i = 0; i < PUC_PRINT_KS; i++) {
		__u64 value, tt;

		if (i >= n)
			continue;
		value = lb_word(k, PUC_TV_SIZE * i + PUC_TV_VALUE);
		tt = lb_byte(k, PUC_TV_SIZE * i + PUC_TV_TT) & PUC_TT_MASK;
		sum = lb_print_word(sum, PUC_PRINT_FACTOR_K + i, value ^ tt << 56);
		if (!first && tt == puc->tt_shrstr)
			first = value;
	}
	*str = first;
	return sum;
}

static __always_inline __u64 puc_print_str(__u64 sum, const __u8 *str)
{
	return lb_print_word(sum, PUC_PRINT_FACTOR_STR, lb_half(str, 12));
}

/*
 * str: PUC_PRINT_NAME bytes of the TString that is a chunk's name. It is short, and has a hash at
 * once, or it has its length behind that. (A long one's hash may be made later.)
 */
static __always_inline __u64 puc_print_name(const __u8 *str, const struct puc_layout *puc)
{
	if ((lb_byte(str, PUC_GC_TT) & PUC_TT_MASK) == puc->tt_shrstr)
		return lb_half(str, 12) | 1ULL << 32;
	return lb_word(str, 16);
}

#endif
