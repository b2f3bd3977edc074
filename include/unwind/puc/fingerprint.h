/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Fingerprint of a PUC Lua prototype (Proto, lobject.h): a hash of its head, its chunk's name, its
 * first constants, and the addresses of its first children. The head's part is the addresses of some
 * arrays, the sizes of all, and the first line. The address of a collected prototype may be reused: user space joins what it reads
 * later with a sample only when the fingerprints match. Fields that change while a prototype lives
 * are left out: `cache` (5.2, 5.3), gclist and the collector's marks. So are the addresses of the
 * other arrays: where functions from one template in 5.4 reuse each other's addresses, 0.1 % of
 * samples are ambiguous, as with all arrays; 0.5 % without the upvalues, 13 % without the lines.
 */
#ifndef LUABPF_UNWIND_PUC_FINGERPRINT_H
#define LUABPF_UNWIND_PUC_FINGERPRINT_H

#include <unwind/cache.h>
#include <unwind/puc/layout.h>
#include <unwind/fingerprint.h>

/* Returns the word at a layout's offset, in a head of at most 128 bytes. */
static __always_inline __u64 puc_word(const __u8 *bytes, __u16 offset)
{
	return lb_word(bytes + (offset & 0x78), 0);
}

/*
 * The numbers in a Proto are words from p_sizeupvalues on, in all versions: sizeupvalues and sizek,
 * sizecode and sizelineinfo, sizep and sizelocvars; then linedefined and lastlinedefined, but from
 * 5.4 on sizeabslineinfo and linedefined.
 */
#define PUC_FP_NUMBERS 4

/* Factors of lb_fp_factor[]: the head's numbers come first. */
enum {
	PUC_FP_FACTOR_CODE = PUC_FP_NUMBERS,
	PUC_FP_FACTOR_K_AT,
	PUC_FP_FACTOR_SOURCE,
	PUC_FP_FACTOR_LINEINFO,
	PUC_FP_FACTOR_UPVALUES,
	PUC_FP_FACTOR_K,
};

/* The fields of a head that are used beside its hash. */
struct puc_fp_head {
	__u64 code, k, p, source; /* addresses */
	__u32 sizecode, sizek, sizep;
};

/* Returns the hash of a head of p_size bytes. Loads each word once: see lj_fp_head(). */
static __always_inline __u64 puc_fp_head(const __u8 *head, const struct puc_layout *puc,
					 struct puc_fp_head *h)
{
	const __u8 *numbers = head + (puc->p_sizeupvalues & 0x78);
	__u64 number, hash = 0;
	__u32 i;

	LB_UNROLLED
	for (i = 0; i < PUC_FP_NUMBERS; i++) {
		number = lb_word(numbers, 8 * i);
		hash = lb_fp_word(hash, i, number);
		if (i == 0)
			h->sizek = (__u32)(number >> 32);
		if (i == 1)
			h->sizecode = (__u32)number;
		if (i == 2)
			h->sizep = (__u32)number;
	}
	h->code = puc_word(head, puc->p_code);
	h->k = puc_word(head, puc->p_k);
	h->p = puc_word(head, puc->p_p);
	h->source = puc_word(head, puc->p_source);
	hash = lb_fp_word(hash, PUC_FP_FACTOR_CODE, h->code);
	hash = lb_fp_word(hash, PUC_FP_FACTOR_K_AT, h->k);
	hash = lb_fp_word(hash, PUC_FP_FACTOR_SOURCE, h->source);
	hash = lb_fp_word(hash, PUC_FP_FACTOR_LINEINFO, puc_word(head, puc->p_lineinfo));
	return lb_fp_word(hash, PUC_FP_FACTOR_UPVALUES, puc_word(head, puc->p_upvalues));
}

/*
 * Chunks of one shape, loaded and collected one after the other, have heads that are equal to the
 * bit: their arrays reuse each other's addresses, too. Their constants differ. A string counts by
 * its hash, as its address may be reused.
 */
#define PUC_FP_KS 4
#define PUC_FP_FACTOR_STR (PUC_FP_FACTOR_K + PUC_FP_KS)
#define PUC_FP_FACTOR_NAME (PUC_FP_FACTOR_STR + 1)
#define PUC_FP_PS 4 /* children that count */
#define PUC_FP_FACTOR_P (PUC_FP_FACTOR_NAME + 1)
_Static_assert(PUC_FP_FACTOR_P + PUC_FP_PS <= LB_FP_FACTORS, "factors");
/* Bytes of a TString: up to the hash of a short one, and the length of a long one. */
#define PUC_FP_STR 16
#define PUC_FP_NAME 24

/* Adds the first n constants, at most PUC_FP_KS. *str: the first short string of them, or 0. */
static __always_inline __u64 puc_fp_k(__u64 hash, const __u8 *k, __u32 n,
				      const struct puc_layout *puc, __u64 *str)
{
	__u64 first = 0;
	__u32 i;

	LB_UNROLLED
	for (i = 0; i < PUC_FP_KS; i++) {
		__u64 value, tt;

		if (i >= n)
			continue;
		value = lb_word(k, PUC_TV_SIZE * i + PUC_TV_VALUE);
		tt = lb_byte(k, PUC_TV_SIZE * i + PUC_TV_TT) & PUC_TT_MASK;
		hash = lb_fp_word(hash, PUC_FP_FACTOR_K + i, value ^ tt << 56);
		if (!first && tt == puc->tt_shrstr)
			first = value;
	}
	*str = first;
	return hash;
}

/*
 * Adds the first n children, at most PUC_FP_PS. A main function of 5.1, where hashes of strings have no seed, is else equal
 * to that of the VM before it, whose children are gone.
 */
static __always_inline __u64 puc_fp_p(__u64 hash, const __u8 *p, __u32 n)
{
	return lb_fp_words(hash, PUC_FP_FACTOR_P, p, n, PUC_FP_PS);
}

static __always_inline __u64 puc_fp_str(__u64 hash, const __u8 *str)
{
	return lb_fp_word(hash, PUC_FP_FACTOR_STR, lb_half(str, 12));
}

/*
 * Returns a hash of a chunk's name. str: PUC_FP_NAME bytes of its TString. A short string counts
 * by its hash, a long one by its length. (A long one's hash may be computed later.)
 */
static __always_inline __u64 puc_fp_name(const __u8 *str, const struct puc_layout *puc)
{
	if ((lb_byte(str, PUC_GC_TT) & PUC_TT_MASK) == puc->tt_shrstr)
		return lb_half(str, 12) | 1ULL << 32;
	return lb_word(str, 16);
}

#endif
