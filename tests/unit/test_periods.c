/* SPDX-License-Identifier: BSD-2-Clause */
/* The periods of sampling events. */
#include <criterion/criterion.h>
#include <unistd.h>

#include "bpf/periods.h"

#define MEAN 1000000ULL
#define HOLD (PERIOD_SAMPLES * MEAN)

Test(periods, held)
{
	struct period p = {.ns = MEAN, .since_ns = 7};

	cr_expect_eq(period_next(&p, MEAN, 7 + HOLD - 1, 1), 0, "a sample is missing");
	cr_expect_eq(p.ns, MEAN);
	cr_expect_eq(p.since_ns, 7);
	cr_expect_eq(p.behind_ns, 0);
	cr_expect_eq(period_next(&p, MEAN, 0, 1), 0, "another thread's time");
	cr_expect_eq(period_next(&p, MEAN, 7 + HOLD, 0), MEAN);
	cr_expect_eq(p.since_ns, 7 + HOLD);
}

/* A change loses what has passed of the interval: the next periods are shorter, until that is made up for. */
Test(periods, even)
{
	struct period p = {.ns = MEAN};
	uint64_t now = HOLD + MEAN / 2;

	cr_expect_eq(period_next(&p, MEAN, now, 1U << 31), MEAN - MEAN / 20);
	cr_expect_eq(p.behind_ns, MEAN / 2);
	now += PERIOD_SAMPLES * p.ns;
	cr_expect_eq(period_next(&p, MEAN, now, 1U << 30), MEAN + MEAN / 40);
	cr_expect_eq(p.behind_ns, (int64_t)(MEAN / 2) - (int64_t)(HOLD / 20));
}

Test(periods, range)
{
	struct period p = {.ns = MEAN};

	cr_expect_eq(period_next(&p, MEAN, HOLD, UINT32_MAX), MEAN + MEAN / 10 - 1);
	p.behind_ns = 2 * HOLD;
	cr_expect_eq(period_next(&p, MEAN, p.since_ns + PERIOD_SAMPLES * p.ns, UINT32_MAX),
		     MEAN - MEAN / 10 + 1);
	p = (struct period){.ns = 10 * 1000 * MEAN}; /* a sample in ten seconds */
	cr_expect_eq(period_next(&p, p.ns, PERIOD_SAMPLES * p.ns, UINT32_MAX), 11000 * MEAN - 1);
}

/* Of a thread that runs for 100 s, looked at each 50 ms: the samples stand for its CPU time. */
Test(periods, samples_of_a_second)
{
	struct period p = {.ns = MEAN};
	uint64_t now, samples = 0, changes = 0, drawn = 1;

	for (now = 50 * MEAN; now <= 100000 * MEAN; now += 50 * MEAN) {
		struct period was = p;

		drawn = drawn * 16807 % 2147483647;
		if (!period_next(&p, MEAN, now, (uint32_t)drawn << 1))
			continue;
		samples += (now - was.since_ns) / was.ns;
		changes++;
	}
	cr_expect_eq(changes, 2000);
	cr_expect(samples >= 99990 && samples <= 100010, "%lu", (unsigned long)samples);
}

Test(periods, time_of_a_thread)
{
	cr_expect_gt(period_thread_ns(getpid()), 0);
	cr_expect_eq(period_thread_ns(0), 0);
}
