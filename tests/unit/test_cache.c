/* SPDX-License-Identifier: BSD-2-Clause */
/* What cache.h keeps of the target's memory, and for how long. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <unwind/cache.h>

#define BASE 0x200000000000ULL
#define PAGES 2 /* after which there is nothing */

static struct {
	struct lb_mem mem;
	uint8_t bytes[PAGES * LB_PAGE];
	unsigned reads, failed;
	uint32_t last; /* bytes that were read last */
} target;
static struct lb_cache cache;

static int target_read(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr)
{
	(void)mem;
	target.reads++;
	if (addr < BASE || addr - BASE > sizeof(target.bytes) - size) {
		target.failed++;
		return -EFAULT;
	}
	memcpy(dst, target.bytes + (addr - BASE), size);
	target.last = size;
	return 0;
}

static void start(void)
{
	size_t i;

	target.mem.read = target_read;
	for (i = 0; i < sizeof(target.bytes); i++)
		target.bytes[i] = (uint8_t)(i * 7 + (i >> 8));
	lb_begin(&cache, 1);
}

/* Reads a word; returns how many reads of the target that took. */
static unsigned word(uint64_t offset)
{
	unsigned before = target.reads;
	uint64_t got;

	cr_assert_eq(lb_read(&target.mem, &cache, &got, sizeof(got), BASE + offset), 0);
	cr_assert_arr_eq(&got, target.bytes + offset, sizeof(got));
	return target.reads - before;
}

/* On to a sample in which nothing is forgotten. */
static void next_sample(void)
{
	do
		lb_begin(&cache, cache.sample + 1);
	while (!((cache.sample ^ lb_page_index(BASE)) & (LB_FORGET - 1)));
}

Test(cache, reads_once_in_a_sample, .init = start)
{
	cr_expect_eq(word(1024), 1);
	cr_expect_eq(word(1032), 0);
	cr_expect_eq(word(1024), 0);
	next_sample();
	target.bytes[1024] ^= 0xff; /* word() compares with what is there now */
	cr_expect_eq(word(1024), 1);
}

Test(cache, learns_how_wide_a_window_has_to_be, .init = start)
{
	cr_expect_eq(word(8), 1);
	cr_expect_eq(word(3000), 1);
	cr_expect_eq(word(1500), 0); /* it lies between them */
	next_sample();
	cr_expect_eq(word(3000), 1);
	cr_expect_eq(word(8), 0);
	cr_expect_lt(target.last, LB_PAGE);
	while ((cache.sample ^ lb_page_index(BASE)) & (LB_FORGET - 1))
		lb_begin(&cache, cache.sample + 1);
	cr_expect_eq(word(3000), 1);
	cr_expect_eq(target.last, LB_LINE);
}

Test(cache, pages_are_apart, .init = start)
{
	cr_expect_eq(word(LB_PAGE - 8), 1);
	cr_expect_eq(word(LB_PAGE), 1);
	cr_expect_eq(word(LB_PAGE - 8), 0);
	/* in both: by itself, each time */
	cr_expect_eq(word(LB_PAGE - 4), 1);
	cr_expect_eq(target.last, 8);
	cr_expect_eq(word(LB_PAGE - 4), 1);
	/* two that share a place push each other out */
	cr_assert_neq(lb_page_index(BASE), lb_page_index(BASE + LB_PAGE));
	cache.tag[lb_page_index(BASE)].addr = BASE + LB_PAGES * LB_PAGE;
	cr_expect_eq(word(LB_PAGE - 8), 1);
}

Test(cache, what_cannot_be_read_is_tried_once_and_told, .init = start)
{
	uint64_t got, nothing = BASE + sizeof(target.bytes);

	cr_expect_lt(lb_read(&target.mem, &cache, &got, sizeof(got), nothing), 0);
	cr_expect_eq(target.failed, 2); /* a window, and by itself */
	cr_expect_not(lb_ready(&target.mem, &cache, nothing + 8, 8));
	cr_expect_eq(target.failed, 2);
	next_sample();
	cr_expect_not(lb_ready(&target.mem, &cache, nothing + 8, 8));
	cr_expect_eq(target.failed, 3);
	/* what it held before is not taken for what is there */
	cr_expect_eq(word(0), 1);
	next_sample();
	target.mem.uncached = 1;
	cr_expect_not(lb_ready(&target.mem, &cache, BASE, 8));
	cr_expect_eq(word(0), 1);
	cr_expect_eq(word(0), 1);
	cr_expect_eq(target.last, 8);
}

/* Whatever is asked for, what comes is what is there. */
Test(cache, any_order, .init = start)
{
	uint32_t seed = 1, i;

	for (i = 0; i < 20000; i++) {
		seed = seed * 1664525 + 1013904223;
		if (!(seed >> 28))
			lb_begin(&cache, cache.sample + 1);
		target.bytes[seed >> 8 & 1 ? 0 : 5000] ^= seed >> 28 ? 0 : 1;
		word((seed >> 9) % (sizeof(target.bytes) - 8));
	}
	cr_expect_lt(target.reads, i);
}
