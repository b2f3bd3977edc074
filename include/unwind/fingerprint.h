/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Fingerprints, by multilinear hashing: the upper half of the sum of all words, each times a factor
 * of its own. Two inputs collide with probability 2^-32, whichever words differ. The products are
 * independent, for speed: a sample hashes each function on its stack.
 */
#ifndef LUABPF_UNWIND_FINGERPRINT_H
#define LUABPF_UNWIND_FINGERPRINT_H

#include <unwind/mem.h>

/* Random, odd. The index is a constant where BPF uses one: then the factor is, too. */
static const __u64 lb_fp_factor[] = {
	0x3d7a5ffb95cb06cfULL, 0x88ccb0ca9d167a3fULL, 0xcfdcfcbf738da0a3ULL, 0xbe725386e5ea3921ULL,
	0x9037dba3709f8babULL, 0xc7e65f82f5ca0109ULL, 0xf206eb16f7fe2903ULL, 0x67a2f38da0a1733dULL,
	0xef97fcc263a2ea85ULL, 0xfccc25b712c11d95ULL, 0xf5bcc5e16de586dbULL, 0xd642ba8086828a55ULL,
	0x68ec450652d69afdULL, 0x239375b23d0cb307ULL, 0xd3bc5cca95313733ULL, 0x41537b79657f7729ULL,
	0x75b72b84a08f61dfULL, 0xe91e240e52764305ULL, 0x93f858957aa9244fULL, 0xb6ebda8b7e8fb9d5ULL,
	0xf34a73ed280a4fe9ULL, 0xd5f40854ee0814a9ULL,
};
#define LB_FP_FACTORS (sizeof(lb_fp_factor) / sizeof(lb_fp_factor[0]))

static __always_inline __u64 lb_fp_word(__u64 hash, __u32 i, __u64 word)
{
	return hash + word * lb_fp_factor[i];
}

/* Adds the first n of `most` words, which have the factors from i on. i, most: constants. */
static __always_inline __u64 lb_fp_words(__u64 hash, __u32 i, const void *words, __u32 n,
					 __u32 most)
{
	__u32 at;

	LB_UNROLLED
	for (at = 0; at < most; at++)
		if (at < n)
			hash = lb_fp_word(hash, i + at, lb_word(words, 8 * at));
	return hash;
}

static __always_inline __u32 lb_fp_end(__u64 hash)
{
	return (__u32)(hash >> 32);
}

#endif
