/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <string.h>

#include "base/cleanup.h"
#include "record/losses.h"

/*
 * Samples of processes that BPF did not recognise, and that had no VM, move from "unrecognised" to
 * "outside-lua". The profile has each count once.
 */
Test(losses, of_bpf_and_of_user_space)
{
	const uint64_t status_counts[LB_STATUS__MAX] = {
		[LB_STATUS_RESOLVED] = 100,	[LB_STATUS_OUTSIDE] = 10,
		[LB_STATUS_NO_REGS] = 1,	[LB_STATUS_UNRECOGNISED] = 7,
		[LB_STATUS_STACK_CHANGING] = 3,
	};
	struct prof *prof __cleanup(prof_free) = NULL;
	struct losses losses = {};

	cr_assert_eq(prof_new(&prof), 0);
	losses.prof = prof;
	losses.not_lua = 5;
	cr_assert_eq(losses_add(&losses, LOSS_GONE, 2), 0);
	cr_assert_eq(losses_add(&losses, LOSS_GONE, 2), 0);
	losses.bad = 1;
	cr_assert_eq(losses_count(&losses, status_counts), 0);
	cr_expect_eq(prof_lost(prof, LOSS_GONE), 4);
	cr_expect_eq(prof_lost(prof, LOSS_BAD_RECORD), 1);
	cr_expect_eq(prof_lost(prof, "unrecognised"), 2);
	cr_expect_eq(prof_lost(prof, "stack-changing"), 3);
	cr_expect_eq(prof_lost(prof, "outside-lua"), 16, "they ran no Lua, the two of BPF's, too");
	cr_expect_eq(prof_nlosses(prof), 5);
	cr_expect_eq(losses.status_counts[LB_STATUS_OUTSIDE], 15);
	cr_expect_eq(losses.status_counts[LB_STATUS_UNRECOGNISED], 2);
}

/*
 * Counted several times, each count is once in the profile. A process's record may be read before
 * its sample is counted: then it is taken off the next count.
 */
Test(losses, counted_again)
{
	uint64_t status_counts[LB_STATUS__MAX] = {
		[LB_STATUS_FAULT] = 3, [LB_STATUS_UNRECOGNISED] = 1};
	struct prof *first __cleanup(prof_free) = NULL, *next __cleanup(prof_free) = NULL;
	struct losses losses = {.not_lua = 2, .bad = 1};

	cr_assert_eq(prof_new(&first), 0);
	cr_assert_eq(prof_new(&next), 0);
	losses.prof = first;
	cr_assert_eq(losses_count(&losses, status_counts), 0);
	cr_assert_eq(losses_count(&losses, status_counts), 0);
	cr_expect_eq(prof_lost(first, "fault"), 3);
	cr_expect_eq(prof_lost(first, "unrecognised"), 0);
	cr_expect_eq(prof_lost(first, "outside-lua"), 1);
	cr_expect_eq(prof_lost(first, LOSS_BAD_RECORD), 1);
	losses.prof = next;
	status_counts[LB_STATUS_FAULT] = 5;
	status_counts[LB_STATUS_UNRECOGNISED] = 4;
	status_counts[LB_STATUS_RESOLVED] = (uint64_t)-1; /* less than before */
	cr_assert_eq(losses_count(&losses, status_counts), 0);
	cr_expect_eq(prof_lost(next, "fault"), 2);
	cr_expect_eq(prof_lost(next, "unrecognised"), 2);
	cr_expect_eq(prof_lost(next, "outside-lua"), 1);
	cr_expect_eq(prof_lost(next, LOSS_BAD_RECORD), 0);
	cr_expect_eq(prof_nlosses(next), 3);
	cr_expect_eq(losses.status_counts[LB_STATUS_FAULT], 5);
}

Test(losses, of_one_process)
{
	const uint64_t status_counts[LB_STATUS__MAX] = {
		[LB_STATUS_RESOLVED] = 9, [LB_STATUS_FAULT] = 4};
	struct prof *prof __cleanup(prof_free) = NULL;

	cr_assert_eq(losses_of_process(7, status_counts, 6, &prof), 0);
	cr_expect_eq(prof_samples(prof), 6);
	cr_expect_eq(prof_lost(prof, "fault"), 4);
	cr_expect_eq(prof_lost(prof, LOSS_UNNAMED), 3);
	cr_expect_eq(prof_nlosses(prof), 2);
}

Test(losses, sentences)
{
	cr_expect_not_null(strstr(loss_sentence("fault"), "could not be read"));
	cr_expect_str_eq(loss_sentence("of another version"), "of another version");
}
