// SPDX-License-Identifier: BSD-2-Clause
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <sys/fsuid.h>

#include "base/fsids.h"

Test(fsids, none_changes_nothing)
{
	__fsids struct fsids *own = NULL;

	cr_assert_eq(fsids_enter(NULL, &own), 0);
	cr_assert_null(own);
}

Test(fsids, entered_and_left)
{
	const gid_t ours[] = {7, 8, 9};
	struct fsids *them = NULL, *own = NULL;
	gid_t groups[8];

	if (geteuid() != 0)
		cr_skip("needs root");
	cr_assert_eq(setgroups(3, ours), 0);
	cr_assert_eq(fsids_of_user(424242, 4321, &them), 0);
	cr_assert_eq(them->ngroups, 1, "no user of this machine: its group only");
	cr_assert_eq(fsids_enter(them, &own), 0);
	cr_assert_eq(setfsuid(-1), 424242);
	cr_assert_eq(setfsgid(-1), 4321);
	cr_assert(getgroups(8, groups) == 1 && groups[0] == 4321);
	cr_assert(open("/etc/shadow", O_RDONLY) < 0 && errno == EACCES);
	cr_assert_eq(geteuid(), 0);
	fsids_leave(&own);
	cr_assert_null(own);
	cr_assert_eq(setfsuid(-1), 0);
	cr_assert_eq(setfsgid(-1), (int)getegid());
	cr_assert(getgroups(8, groups) == 3 && !memcmp(groups, ours, sizeof(ours)));
	cr_assert_eq(close(open("/etc/shadow", O_RDONLY)), 0);
	free(them);
}

Test(fsids, refused)
{
	struct fsids *them = NULL, *own = NULL;

	if (geteuid() == 0)
		cr_assert_eq(setreuid(65534, 65534), 0);
	cr_assert_eq(fsids_of_user(getuid() + 1, 4321, &them), 0);
	cr_assert_eq(fsids_enter(them, &own), -EPERM);
	cr_assert_null(own);
	cr_assert_eq(setfsuid(-1), (int)getuid());
	free(them);
}
