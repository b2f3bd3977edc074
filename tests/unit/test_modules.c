// SPDX-License-Identifier: BSD-2-Clause
/* The VMs of a process, and their places in BPF's map. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "bpf/module_pool.h"
#include "record/vm_modules.h"

/* Modules at these addresses, in steps of a MiB. */
static void at(struct lb_module *modules, const uint32_t *mib, uint32_t n)
{
	memset(modules, 0, n * sizeof(*modules));
	for (uint32_t i = 0; i < n; i++) {
		modules[i].text_lo = (uint64_t)mib[i] << 20;
		modules[i].text_hi = modules[i].text_lo + (1 << 20);
		modules[i].family = LB_FAMILY_PUC;
		modules[i].id = (uint8_t)i;
	}
}

Test(module_pool, order_is_that_of_addresses)
{
	static const uint32_t mib[] = {50, 10, 40, 20, 30}, order[] = {1, 3, 4, 2, 0};
	const struct module_block *b;
	struct module_pool pool = {};
	struct lb_module modules[5];
	bool is_new;

	at(modules, mib, 5);
	cr_assert_eq(module_pool_hold(&pool, modules, 5, &b, &is_new), 0);
	cr_expect(is_new);
	cr_expect_eq(b->first, 0);
	for (uint32_t i = 0; i < 5; i++) {
		cr_expect_eq(b->modules[i].id, i);
		cr_expect_eq(b->modules[i].text_lo, (uint64_t)mib[i] << 20);
		cr_expect_eq(b->modules[i].order, order[i]);
	}
	module_pool_free(&pool);
	cr_expect_null(pool.blocks);
}

Test(module_pool, equal_ones_share_a_block)
{
	static const uint32_t mib[] = {1, 2, 3, 4, 5}, other[] = {1, 2, 3, 4, 6};
	const struct module_block *a, *b, *c;
	struct module_pool pool = {};
	struct lb_module modules[5];
	bool is_new;

	at(modules, mib, 5);
	cr_assert_eq(module_pool_hold(&pool, modules, 5, &a, &is_new), 0);
	cr_assert_eq(module_pool_hold(&pool, modules, 5, &b, &is_new), 0);
	cr_expect(a == b && !is_new);
	cr_expect(module_pool_share(&pool, a->first));
	cr_expect(!module_pool_share(&pool, 1));
	at(modules, other, 5);
	cr_assert_eq(module_pool_hold(&pool, modules, 5, &c, &is_new), 0);
	cr_expect(is_new && c->first == 5);
	for (uint32_t i = 0; i < 3; i++) {
		cr_expect_eq(a->users, 3 - i);
		module_pool_drop(&pool, 0);
	}
	cr_expect(pool.blocks == c && !c->next);
	module_pool_free(&pool);
}

/* The first place that is large enough, of those that became free. */
Test(module_pool, places_are_used_again)
{
	static const uint32_t mib[] = {1, 2, 3, 4, 5, 6, 7, 8};
	const struct module_block *b;
	struct module_pool pool = {};
	struct lb_module modules[8];
	uint32_t build;
	bool is_new;

	at(modules, mib, 8);
	for (build = 0; build < LB_MODULES_POOL / 8; build++) {
		modules[0].build = build;
		cr_assert_eq(module_pool_hold(&pool, modules, 8, &b, &is_new), 0);
		cr_assert_eq(b->first, 8 * build);
	}
	modules[0].build = build;
	cr_expect_eq(module_pool_hold(&pool, modules, 8, &b, &is_new), -ENOSPC);
	module_pool_drop(&pool, 80);
	module_pool_drop(&pool, 160);
	cr_assert_eq(module_pool_hold(&pool, modules, 5, &b, &is_new), 0);
	cr_expect_eq(b->first, 80);
	cr_assert_eq(module_pool_hold(&pool, modules, 8, &b, &is_new), 0);
	cr_expect_eq(b->first, 160);
	cr_expect_eq(module_pool_hold(&pool, modules, 4, &b, &is_new), -ENOSPC);
	modules[0].build++;
	cr_assert_eq(module_pool_hold(&pool, modules, 3, &b, &is_new), 0);
	cr_expect_eq(b->first, 85);
	module_pool_free(&pool);
}

Test(vm_modules, ids_stay)
{
	static const uint32_t mib[] = {10, 20, 30, 25};
	struct vm_modules ms = {};
	struct lb_module m[4], other;

	at(m, mib, 4);
	cr_assert_eq(vm_modules_set(&ms, m, 2), 0);
	cr_expect_eq(vm_modules_add(&ms, &m[0]), 0);
	cr_expect_eq(vm_modules_add(&ms, &m[2]), 1);
	cr_expect_eq(ms.at[2].id, 2);
	m[1].id = 7; /* it is found again, in another place */
	cr_expect(vm_modules_has(&ms, &m[1]));
	cr_expect_eq(vm_modules_add(&ms, &m[1]), 0);
	other = m[1]; /* another library is where that one was */
	other.build = 3;
	cr_expect(!vm_modules_has(&ms, &other));
	cr_expect_eq(vm_modules_add(&ms, &other), 1);
	cr_expect(ms.n == 3 && ms.at[1].build == 3 && ms.at[1].id == 1);
	cr_expect_eq(vm_modules_add(&ms, &m[3]), 1);
	cr_expect(ms.n == 4 && ms.at[3].id == 3);
	vm_modules_free(&ms);
}

Test(vm_modules, as_many_as_have_an_id)
{
	struct vm_modules ms = {};
	struct lb_module m;

	for (uint32_t i = 0; i < LB_MODULES_MOST; i++) {
		at(&m, (const uint32_t[]){i + 1}, 1);
		cr_assert_eq(vm_modules_add(&ms, &m), 1);
		cr_assert_eq(ms.at[i].id, i);
	}
	cr_expect_eq(vm_modules_add(&ms, &m), 0);
	at(&m, (const uint32_t[]){LB_MODULES_MOST + 1}, 1);
	cr_expect_eq(vm_modules_add(&ms, &m), -ENOSPC);
	cr_expect_eq(ms.n, LB_MODULES_MOST);
	vm_modules_free(&ms);
}
