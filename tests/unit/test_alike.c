/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "sym/alike.h"

static const struct alike_stack snapshot = {.n = 2, .ids = {7, 8}};
static const struct alike_place place = {.traceno = 1, .mcofs = 40, .snapshot = &snapshot};

/* Frames whose numbers differ in the units only are one place of the source. */
static bool same(const void *arg, uint32_t a, uint32_t b)
{
	(void)arg;
	return a / 10 == b / 10;
}

static void learn(struct alike **alike, uint32_t trace_fp, uint32_t top)
{
	const struct alike_stack exact = {.n = 2, .ids = {top, 8}};

	alike_learn(alike, &place, trace_fp, &exact, same, NULL);
}

Test(alike, two_traces_have_to_agree)
{
	struct alike *alike __cleanup(alike_free) = NULL;
	const struct alike_stack other = {.n = 2, .ids = {7, 9}};

	cr_expect_null(alike_find(alike, &place));
	learn(&alike, 1, 50);
	cr_expect_null(alike_find(alike, &place));
	learn(&alike, 1, 50);
	cr_expect_null(alike_find(alike, &place), "it is the same trace");
	learn(&alike, 2, 51);
	cr_assert_not_null(alike_find(alike, &place));
	cr_expect_eq(alike_find(alike, &place)->ids[0], 51, "the last one");
	cr_expect_null(alike_find(alike, &(struct alike_place){1, 41, &snapshot}));
	cr_expect_null(alike_find(alike, &(struct alike_place){2, 40, &snapshot}));
	cr_expect_null(alike_find(alike, &(struct alike_place){1, 40, &other}));
}

/* A place needs four more traces for each one that differs. Where half of them differ, it has no known stack. */
Test(alike, some_differ)
{
	struct alike *alike __cleanup(alike_free) = NULL;
	uint32_t i;

	for (i = 1; i <= 2; i++)
		learn(&alike, i, 50);
	learn(&alike, 3, 60);
	for (i = 4; i <= 7; i++) {
		cr_expect_null(alike_find(alike, &place), "%u", i);
		learn(&alike, i, 50);
	}
	cr_expect_not_null(alike_find(alike, &place));
	alike_free(&alike);
	for (i = 1; i <= 1000; i++) {
		learn(&alike, i, 50 + i % 2 * 10);
		cr_expect_null(alike_find(alike, &place), "%u", i);
	}
}

/* The first that was read may be the exception. */
Test(alike, the_first_differs)
{
	struct alike *alike __cleanup(alike_free) = NULL;
	uint32_t i;

	learn(&alike, 1, 60);
	for (i = 2; i <= 9; i++)
		learn(&alike, i, 50);
	cr_assert_not_null(alike_find(alike, &place));
	cr_expect_eq(alike_find(alike, &place)->ids[0], 50);
}

Test(alike, samples_wait)
{
	struct alike *alike __cleanup(alike_free) = NULL;
	struct alike_waiting *waiting __free = NULL;
	uint32_t mcofs[4], i;

	cr_expect_eq(alike_take_waiting(alike, &place, &waiting), 0);
	alike_wait(&alike, &place, 3, 1);
	alike_wait(&alike, &place, 4, 2);
	alike_wait(&alike, &place, 3, 5);
	cr_expect(alike_waits(alike));
	cr_assert_eq(alike_waiting_at(alike, 1, mcofs, 4), 1);
	cr_expect_eq(mcofs[0], 40);
	cr_expect_eq(alike_waiting_at(alike, 2, mcofs, 4), 0);
	cr_expect_eq(alike_waiting_at(alike, 1, mcofs, 0), 0);
	cr_assert_eq(alike_take_waiting(alike, &place, &waiting), 2);
	cr_expect_eq(waiting[0].row, 3);
	cr_expect_eq(waiting[0].count, 6);
	cr_expect_eq(waiting[1].count, 2);
	cr_expect_eq(alike_waiting_at(alike, 1, mcofs, 4), 0, "none waits any more");
	cr_expect_not(alike_waits(alike));
	for (i = 0; i < 1000; i++)
		alike_wait(&alike, &place, i, 1);
	free(waiting);
	cr_expect_eq(alike_take_waiting(alike, &place, &waiting), 64, "of so many rows at most");
}

/* A place whose traces stand on other frames is not looked at without end. */
Test(alike, given_eight_times)
{
	struct alike *alike __cleanup(alike_free) = NULL;
	uint32_t mcofs[4], i, n = 0;

	alike_wait(&alike, &place, 3, 1);
	for (i = 0; i < 100; i++)
		n += alike_waiting_at(alike, 1, mcofs, 4);
	cr_expect_eq(n, 8);
}

Test(alike, places_are_bounded)
{
	struct alike *alike __cleanup(alike_free) = NULL;
	uint32_t mcofs[4096], i;

	for (i = 0; i < 3 * 4096; i++)
		alike_wait(&alike, &(struct alike_place){1, i, &snapshot}, 3, 1);
	cr_expect_leq(alike_waiting_at(alike, 1, mcofs, 4096), 2048);
}
