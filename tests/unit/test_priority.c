/* SPDX-License-Identifier: BSD-2-Clause */
/* The nice value of a recording that opens. */
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/priority.h"

/* Where it may not be raised, nothing changes. */
Test(priority, is_given_back)
{
	bool may = !setpriority(PRIO_PROCESS, 0, -10);
	int nice = 15, before;
	pid_t child;

	cr_assert_eq(setpriority(PRIO_PROCESS, 0, nice), 0);
	before = priority_raise();
	cr_expect_eq(before, may ? nice : PRIORITY_KEPT);
	cr_expect_eq(getpriority(PRIO_PROCESS, 0), may ? -10 : nice);
	child = fork();
	if (!child)
		for (;;)
			pause();
	cr_expect_eq(getpriority(PRIO_PROCESS, (id_t)child), getpriority(PRIO_PROCESS, 0));
	priority_restore(before);
	cr_expect_eq(getpriority(PRIO_PROCESS, 0), nice);
	cr_expect_eq(getpriority(PRIO_PROCESS, (id_t)child), nice);
	kill(child, SIGKILL);
	cr_expect_eq(waitpid(child, NULL, 0), child);
}

/* One that was given a higher priority still keeps it. */
Test(priority, is_not_lowered)
{
	int before;

	if (setpriority(PRIO_PROCESS, 0, -15))
		cr_skip_test("needs CAP_SYS_NICE");
	before = priority_raise();
	cr_expect_eq(getpriority(PRIO_PROCESS, 0), -15);
	priority_restore(before);
	cr_expect_eq(getpriority(PRIO_PROCESS, 0), -15);
}
