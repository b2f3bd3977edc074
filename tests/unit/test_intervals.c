/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of an interval's files. */
#include <criterion/criterion.h>

#include "cmds/intervals.h"

static void expect_name(const char *pattern, const char *name)
{
	__text struct text out = {0};

	interval_name(pattern, "20261126T052311Z", &out);
	cr_assert_eq(text_err(&out), 0);
	cr_expect_str_eq(text_str(&out), name);
}

Test(intervals, names)
{
	expect_name("out-%t.pb.gz", "out-20261126T052311Z.pb.gz");
	expect_name("%t", "20261126T052311Z");
	expect_name("%t/%t", "20261126T052311Z/20261126T052311Z");
	expect_name("out.pb.gz", "out.pb.gz");
	expect_name("100%", "100%");
	expect_name("%%t%d", "%20261126T052311Z%d");
	expect_name("-", "-");
}

Test(intervals, stamps)
{
	char stamp[INTERVAL_STAMP];

	interval_stamp(1795670591999999999, 1, stamp);
	cr_expect_str_eq(stamp, "20261126T052311Z", "UTC, and no rounding");
	interval_stamp(1795670591999999999, 2, stamp);
	cr_expect_str_eq(stamp, "20261126T052311Z_2");
	interval_stamp(0, 4294967295, stamp);
	cr_expect_str_eq(stamp, "19700101T000000Z_4294967295");
}
