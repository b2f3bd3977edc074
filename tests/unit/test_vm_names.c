// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>

#include <criterion/criterion.h>

#include "base/cleanup.h"
#include "sym/kept.h"
#include "sym/vm_names.h"

TestSuite(vm_names);

static unsigned int reads;

static int count_read(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr)
{
	(void)mem, (void)dst, (void)size, (void)addr;
	reads++;
	return -EFAULT;
}

/* The rounds of `rounds` in which the names were read, for one of n functions by turns. */
static unsigned int attempts(uint64_t n, uint32_t rounds)
{
	static const struct lb_mem mem = {.read = count_read, .uncached = 1};
	static const struct lb_build build = {.family = LB_FAMILY_LJ};
	struct vm_names *vms = NULL;
	unsigned int found = 0;

	for (uint32_t round = 1; round <= rounds; round++) {
		reads = 0;
		vm_names_get(&vms, &mem, &build, 0x7f0000001000, 1 + round % n, round);
		found += reads != 0;
	}
	vm_names_free(&vms);
	return found;
}

/* It waits twice as long each time, but for a new function: that may be of a module that came. */
Test(vm_names, a_function_that_never_has_a_name)
{
	cr_expect_leq(attempts(1, 1000), 11);
	cr_expect_geq(attempts(1, 1000), 9);
	cr_expect_geq(attempts(1000, 1000), 45, "each function is another one");
	cr_expect_leq(attempts(1000, 1000), 70);
}

/* The rounds of `rounds` in which a VM's kept functions were read, when each of them asks twice. */
static unsigned int kept_reads(uint32_t rounds)
{
	static const struct lb_mem mem = {.read = count_read, .uncached = 1};
	static const struct lb_build build = {.family = LB_FAMILY_LJ};
	struct kept_functions *kept = NULL;
	unsigned int found = 0;

	for (uint32_t round = 1; round <= rounds; round++) {
		reads = 0;
		cr_expect_lt(kept_read(&kept, &mem, &build, 0x7f0000001000, round), 0);
		cr_expect_lt(kept_read(&kept, &mem, &build, 0x7f0000001000, round), 0);
		cr_expect_leq(reads, 1);
		cr_expect_null(kept_name(kept, 0x7f0000002000));
		found += reads;
	}
	kept_free(&kept);
	return found;
}

/* Some at once, then one in four rounds. */
Test(vm_names, kept_functions_cost_little)
{
	cr_expect_eq(kept_reads(8), 8);
	cr_expect_geq(kept_reads(1000), 250);
	cr_expect_leq(kept_reads(1000), 262);
}
