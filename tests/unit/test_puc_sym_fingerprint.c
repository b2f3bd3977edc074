/* SPDX-License-Identifier: BSD-2-Clause */
/* What the fingerprint that BPF stamps on a frame of PUC Lua depends on, and what it spares. */
#include <criterion/criterion.h>
#include <string.h>

#include <unwind/puc/fingerprint.h>

#include "puc_code.h"

/* `cache` and gclist change while a prototype lives: they are no part of the fingerprint. */
Test(puc_sym, fingerprint_spares_what_changes)
{
	static const struct {
		const char *release;
		unsigned offset; /* lobject.h */
	} changing[] = {
		{"5.1.5", 104},			/* gclist */
		{"5.2.4", 64},	{"5.2.4", 112}, /* cache, gclist */
		{"5.3.6", 96},	{"5.3.6", 112}, {"5.4.4", 120}, {"5.5.0", 120},
	};
	uint8_t head[PUC_PROTO_HEAD] __attribute__((aligned(8))) = {0};
	const char *row;
	size_t i;

	for (i = 0; i < LENGTH(changing); i++) {
		const struct puc_layout *puc = puc_layout_of(changing[i].release, &row);
		uint64_t sum;

		cr_assert_not_null(puc);
		sum = puc_code_print(head, puc);
		memset(head + changing[i].offset, 0x5a, 8);
		cr_assert_eq(puc_code_print(head, puc), sum, "%s", changing[i].release);
		memset(head, 0, sizeof(head));
	}
}

/* Each of the first constants counts, and of a string its hash; none beyond them does. */
Test(puc_sym, fingerprint_of_constants)
{
	const char *row;
	const struct puc_layout *puc = puc_layout_of("5.4.4", &row);
	uint8_t k[PUC_TV_SIZE * (PUC_FP_KS + 1)] __attribute__((aligned(8))) = {0};
	uint8_t str[PUC_FP_STR] __attribute__((aligned(8))) = {0};
	__u64 first, string = ARENA_BASE + 0x1000;
	uint64_t fp;
	uint32_t i;

	cr_assert_not_null(puc);
	memcpy(k + 2 * PUC_TV_SIZE, &string, sizeof(string));
	k[2 * PUC_TV_SIZE + PUC_TV_TT] = puc->tt_shrstr | 0x40;
	fp = puc_fp_k(7, k, PUC_FP_KS + 1, puc, &first);
	cr_expect_eq(first, string);
	cr_expect_neq(puc_fp_k(8, k, PUC_FP_KS, puc, &first), fp);
	for (i = 0; i <= PUC_FP_KS; i++) {
		k[i * PUC_TV_SIZE] ^= 0x10;
		cr_expect_eq(puc_fp_k(7, k, PUC_FP_KS + 1, puc, &first) == fp, i == PUC_FP_KS,
			     "constant %u", i);
		k[i * PUC_TV_SIZE] ^= 0x10;
	}
	cr_expect_neq(puc_fp_k(7, k, 1, puc, &first), fp);
	cr_expect_eq(first, 0, "no string among them");
	fp = puc_fp_str(7, str);
	str[9] ^= 1; /* marked */
	cr_expect_eq(puc_fp_str(7, str), fp);
	str[13] ^= 1;
	cr_expect_neq(puc_fp_str(7, str), fp);
}

/* Each of the first children counts; none beyond them does. */
Test(puc_sym, fingerprint_of_children)
{
	uint64_t p[PUC_FP_PS + 1] = {1, 2, 3, 4, 5}, fp = puc_fp_p(7, (uint8_t *)p, PUC_FP_PS + 1);
	uint32_t i;

	for (i = 0; i <= PUC_FP_PS; i++) {
		p[i] ^= 0x100;
		cr_expect_eq(puc_fp_p(7, (uint8_t *)p, PUC_FP_PS + 1) == fp, i == PUC_FP_PS,
			     "child %u", i);
		p[i] ^= 0x100;
	}
	cr_expect_neq(puc_fp_p(7, (uint8_t *)p, 1), fp);
}
