// SPDX-License-Identifier: BSD-2-Clause
/* The rows of detect/puc/layouts.def: are they possible, do they differ, and what is known of some. */
#include <criterion/criterion.h>
#include <string.h>

#include "puc_code.h"
#include "detect/puc/recognise.h"

/* Offsets of 64-bit builds, each found in a running interpreter of that release. */
struct known {
	const char *release;
	uint16_t status, l_G, stack_last, base_ci, nCcalls, mainthread, savedpc, callstatus, code,
		lineinfo;
};

static const struct known known[] = {
	{"5.1", 10, 32, 56, 80, 96, 176, 24, 36, 24, 40},
	{"5.1.5", 10, 32, 56, 80, 96, 176, 24, 36, 24, 40},
	{"5.2.0", 10, 24, 48, 128, 70, 240, 48, 34, 24, 40},
	{"5.2.3", 10, 24, 48, 128, 70, 264, 56, 34, 24, 40},
	{"5.2.4", 10, 24, 48, 128, 70, 264, 56, 34, 24, 40},
	{"5.3.0", 10, 24, 48, 96, 198, 224, 40, 66, 56, 72},
	{"5.3.1", 10, 24, 48, 96, 198, 224, 40, 66, 56, 72},
	{"5.3.2", 12, 24, 48, 96, 198, 200, 40, 66, 56, 72},
	{"5.3.6", 12, 24, 48, 96, 198, 200, 40, 66, 56, 72},
	{"5.4.0", 10, 24, 48, 96, 176, 256, 32, 62, 64, 88},
	{"5.4.1", 10, 24, 40, 88, 168, 264, 32, 62, 64, 88},
	{"5.4.2", 10, 24, 40, 88, 168, 264, 32, 62, 64, 88},
	{"5.4.3", 10, 24, 40, 96, 176, 264, 32, 62, 64, 88},
	{"5.4.8", 10, 24, 40, 96, 176, 264, 32, 62, 64, 88},
	{"5.5.0", 11, 24, 40, 96, 176, 1416, 32, 60, 64, 88},
};

Test(puc_layouts, known)
{
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const struct known *k = &known[i];
		const char *name = NULL;
		const struct puc_layout *p = puc_layout_of(k->release, &name);

		cr_assert_not_null(p, "%s", k->release);
		cr_expect_eq(p->L_status, k->status, "%s", k->release);
		cr_expect_eq(p->L_l_G, k->l_G, "%s", k->release);
		cr_expect_eq(p->L_stack_last, k->stack_last, "%s", k->release);
		cr_expect_eq(p->L_stack, k->stack_last + 8, "%s", k->release);
		cr_expect_eq(p->L_base_ci, k->base_ci, "%s", k->release);
		cr_expect_eq(p->L_nCcalls, k->nCcalls, "%s", k->release);
		cr_expect_eq(p->g_mainthread, k->mainthread, "%s", k->release);
		cr_expect_eq(p->ci_savedpc, k->savedpc, "%s", k->release);
		cr_expect_eq(p->ci_callstatus, k->callstatus, "%s", k->release);
		cr_expect_eq(p->p_code, k->code, "%s", k->release);
		cr_expect_eq(p->p_lineinfo, k->lineinfo, "%s", k->release);
	}
}

/* What unwind/puc/fingerprint.h takes for granted. */
Test(puc_layouts, numbers_of_a_prototype)
{
	const struct puc_layout *puc;
	const char *row;
	size_t i;

	EACH_PUC_LAYOUT(puc, row, i)
	{
		cr_expect_eq(puc->p_sizeupvalues % 8, 0, "%s", row);
		cr_expect_eq(puc->p_sizek, puc->p_sizeupvalues + 4, "%s", row);
		cr_expect_eq(puc->p_sizecode, puc->p_sizeupvalues + 8, "%s", row);
		cr_expect_geq(puc->p_linedefined, puc->p_sizeupvalues, "%s", row);
		cr_expect_leq(puc->p_linedefined, puc->p_sizeupvalues + 28, "%s", row);
	}
}

Test(puc_layouts, releases)
{
	static const char *const none[] = {"",	     "5",     "5.",    "5.4.9", "5.2.5",
					   "5.0.2",  "6.4.4", "5.4.",  "5.4.x", "5.44",
					   "5.4.4 ", "5.1.6", "5.4.-1"};
	const char *name = NULL;
	size_t i;

	for (i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		cr_expect_null(puc_layout_of(none[i], &name), "\"%s\"", none[i]);
		cr_expect_null(name);
	}
	cr_assert_not_null(puc_layout_of("5.4.4", &name));
	cr_expect_str_eq(name, "PUC Lua 5.4.3 to 5.4.8");
	cr_assert_not_null(puc_layout_of("5.3.3", &name));
	cr_expect_str_eq(name, "PUC Lua 5.3.2 and 5.3.3");
	cr_assert_not_null(puc_layout_of("5.1", &name));
	cr_expect_str_eq(name, "PUC Lua 5.1.0 to 5.1.2");
	cr_assert_not_null(puc_layout_of("5.1.5", &name));
	cr_expect_str_eq(name, "PUC Lua 5.1.3 to 5.1.5");
}

/* A field of `size` bytes at `at` lies in a struct of `end`, aligned. */
static int fits(uint16_t at, unsigned size, unsigned end)
{
	return at % size == 0 && at + size <= end;
}

static void check_state(const struct puc_layout *p, const char *name)
{
	const uint16_t words[] = {p->L_top,	   p->L_l_G,	 p->L_ci,      p->L_stack,
				  p->L_stack_last, p->L_base_ci, p->L_errorJmp};
	size_t i, j;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		cr_expect(fits(words[i], 8, p->L_size) && words[i] >= 16, "%s, word %zu", name, i);
		for (j = 0; j < i; j++)
			cr_expect_neq(words[i], words[j], "%s, words %zu and %zu", name, i, j);
	}
	cr_expect(fits(p->L_status, 1, p->L_size), "%s", name);
	cr_expect(fits(p->L_nCcalls, p->version < 54 ? 2 : 4, p->L_size), "%s", name);
	cr_expect(fits(p->g_mainthread, 8, 4096) && fits(p->g_registry, 8, 4096), "%s", name);
	cr_expect_eq(p->L_savedpc == PUC_NONE, p->version != 51, "%s", name);
}

static void check_ci(const struct puc_layout *p, const char *name)
{
	unsigned status = p->cist_mask == 0xff ? 1 : p->cist_mask == 0xffff ? 2 : 4;

	cr_expect(fits(p->ci_func, 8, p->ci_size) && fits(p->ci_savedpc, 8, p->ci_size), "%s",
		  name);
	cr_expect(fits(p->ci_callstatus, status, p->ci_size), "%s", name);
	cr_expect_eq(p->cist_mask >> (8 * status - 1), 1, "%s", name);
	cr_expect_eq(p->cist_tail & ~p->cist_mask, 0, "%s", name);
	cr_expect_eq(p->cist_hooked & ~p->cist_mask, 0, "%s", name);
	cr_expect_eq(p->cist_fin & ~p->cist_mask, 0, "%s", name);
	cr_expect_neq(p->cist_tail, 0, "%s", name);
	cr_expect_eq(p->ci_previous == PUC_NONE, p->version == 51, "%s", name);
	if (p->version > 51)
		cr_expect(fits(p->ci_previous, 8, p->ci_size), "%s", name);
	cr_expect_eq(!!(p->flags & PUC_CI_ARRAY), p->version == 51, "%s", name);
	cr_expect_eq(!!(p->flags & PUC_SAVEDPC_EXACT), p->version == 52 || p->version == 53, "%s",
		     name);
	cr_expect_eq(!!(p->flags & PUC_MAIN_EMBEDDED), p->version == 55, "%s", name);
}

static void check_proto(const struct puc_layout *p, const char *name)
{
	const uint16_t words[] = {p->p_code, p->p_lineinfo, p->p_source,   p->p_k,
				  p->p_p,    p->p_locvars,  p->p_upvalues, p->p_abslineinfo};
	const uint16_t ints[] = {p->p_sizecode,	       p->p_sizelineinfo, p->p_linedefined,
				 p->p_lastlinedefined, p->p_sizek,	  p->p_sizep,
				 p->p_sizelocvars,     p->p_sizeupvalues, p->p_sizeabslineinfo};
	uint8_t used[256] = {};
	size_t i, j;

	for (i = 0; i < sizeof(words) / sizeof(words[0]) - (p->version < 54); i++) {
		cr_assert(fits(words[i], 8, p->p_size), "%s, word %zu", name, i);
		for (j = 0; j < 8; j++)
			cr_expect_eq(used[words[i] + j]++, 0, "%s, word %zu", name, i);
	}
	for (i = 0; i < sizeof(ints) / sizeof(ints[0]) - (p->version < 54); i++) {
		cr_assert(fits(ints[i], 4, p->p_size), "%s, int %zu", name, i);
		for (j = 0; j < 4; j++)
			cr_expect_eq(used[ints[i] + j]++, 0, "%s, int %zu", name, i);
	}
	cr_expect_eq(used[p->p_numparams] + used[p->p_is_vararg], 0, "%s", name);
	cr_expect_eq(p->p_abslineinfo == PUC_NONE, p->version < 54, "%s", name);
	cr_expect_eq(p->upvaldesc_size, p->version == 51 ? 8 : 16, "%s", name);
	cr_expect_eq(p->closure_isC == PUC_NONE,
		     p->version != 51 && !!strcmp(name, "PUC Lua 5.2.0"), "%s", name);
}

static void check_table(const struct puc_layout *p, const char *name)
{
	cr_expect(fits(p->t_array, 8, 80) && fits(p->t_node, 8, 80) && fits(p->t_metatable, 8, 80),
		  "%s", name);
	cr_expect(fits(p->t_sizearray, 4, 80), "%s", name);
	cr_expect(fits(p->node_key, 8, p->node_size) && fits(p->node_val, 8, p->node_size), "%s",
		  name);
	cr_expect(p->node_key_tt < p->node_size && p->node_next < p->node_size, "%s", name);
	cr_expect_eq(p->tt_nkeys, p->version >= 54, "%s", name);
	cr_expect(fits(p->s_len, 8, 24) && p->s_text >= 24, "%s", name);
}

Test(puc_layouts, possible)
{
	const struct puc_layout *p;
	const char *name = NULL;
	size_t i;

	for (i = 0; (p = puc_layout_row(i, &name)); i++) {
		cr_assert(p->version >= 51 && p->version <= 55, "%s", name);
		check_state(p, name);
		check_ci(p, name);
		check_proto(p, name);
		check_table(p, name);
	}
	cr_expect_eq(i, 15);
	cr_expect_null(puc_layout_row(i, &name));
	cr_expect_null(puc_layout_row(SIZE_MAX, &name));
}

Test(puc_layouts, differ)
{
	const struct puc_layout *a, *b;
	const char *name, *other;
	size_t i, j;

	for (i = 0; (a = puc_layout_row(i, &name)); i++)
		for (j = 0; j < i; j++) {
			b = puc_layout_row(j, &other);
			cr_expect(memcmp(a, b, sizeof(*a)), "%s and %s", name, other);
			cr_expect_str_neq(name, other);
		}
}
