// SPDX-License-Identifier: BSD-2-Clause
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/sudo.h"

static void set(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

/* Neither is set: nobody called sudo. Both are IDs: who did. Else an error that names the variable. */
static const struct sudo_row {
	const char *uid, *gid;
	struct sudo_caller want;
	int ret;
	const char *what; /* in the message */
} rows[] = {
	{NULL, NULL, {77, 78}, 0, ""},
	{"1000", "100", {1000, 100}, 1, ""},
	{"0", "0", {0, 0}, 1, ""},
	{"4294967294", "4294967294", {4294967294, 4294967294}, 1, ""},
	/* -1 leaves an ID as it is (setresuid(2), chown(2)): as root's */
	{"-1", "-1", {77, 78}, -EINVAL, "SUDO_UID: \"-1\""},
	{"4294967295", "100", {77, 78}, -EINVAL, "SUDO_UID: \"4294967295\""},
	{"1000", "4294967295", {77, 78}, -EINVAL, "SUDO_GID: \"4294967295\""},
	/* what strtoul(3) takes for 0 or for less than it is, or a cast does */
	{"", "100", {77, 78}, -EINVAL, "SUDO_UID: \"\""},
	{"root", "0", {77, 78}, -EINVAL, "SUDO_UID: \"root\""},
	{"4294967296", "100", {77, 78}, -EINVAL, "SUDO_UID: \"4294967296\""},
	{"18446744073709551617", "100", {77, 78}, -EINVAL, "SUDO_UID: \"18446744073709551617\""},
	{"1000", "100x", {77, 78}, -EINVAL, "SUDO_GID: \"100x\""},
	{" 1000", "100", {77, 78}, -EINVAL, "SUDO_UID: \" 1000\""},
	{"+1000", "100", {77, 78}, -EINVAL, "SUDO_UID: \"+1000\""},
	{"0x10", "100", {77, 78}, -EINVAL, "SUDO_UID: \"0x10\""},
	{"1000", NULL, {77, 78}, -EINVAL, "SUDO_GID: not set"},
	{NULL, "100", {77, 78}, -EINVAL, "SUDO_UID: not set"},
};

Test(sudo, no_caller_a_caller_or_an_error)
{
	if (geteuid())
		cr_skip("needs root");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct sudo_row *row = &rows[i];
		struct sudo_caller caller = {77, 78};
		struct error err = {};

		set("SUDO_UID", row->uid);
		set("SUDO_GID", row->gid);
		cr_expect_eq(sudo_caller(&caller, &err), row->ret, "row %zu", i);
		cr_expect(caller.uid == row->want.uid && caller.gid == row->want.gid, "row %zu", i);
		cr_expect(strstr(err.what, row->what), "row %zu: %s", i, err.what);
		cr_expect_eq(!*err.remedy, row->ret >= 0, "row %zu", i);
	}
}

/* Whoever is not root can become nobody else, and needs no permission to stay. */
Test(sudo, of_no_matter_to_others)
{
	struct sudo_caller caller;

	if (!geteuid() && seteuid(65534))
		cr_assert_fail("seteuid");
	set("SUDO_UID", "-1");
	set("SUDO_GID", "-1");
	cr_expect_eq(sudo_caller(&caller, NULL), 0);
	/* or the sanitizer may not look for leaks */
	cr_expect_eq(seteuid(getuid()) | prctl(PR_SET_DUMPABLE, 1), 0);
}
