// SPDX-License-Identifier: BSD-2-Clause
/* Which processes match --exe, --comm, --cgroup and --user. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proc/narrow.h"
#include "proc/process.h"

#define WORDS(...)                                                                                 \
	(&(struct words){(char *[]){__VA_ARGS__}, sizeof((char *[]){__VA_ARGS__}) / sizeof(char *)})

static const struct words none;

static struct narrow narrow_to(const struct words *exes, const struct words *comms)
{
	return (struct narrow){.exes = exes, .comms = comms};
}

Test(narrow, nothing_is_asked_for)
{
	struct narrow n = narrow_to(&none, &none);

	cr_expect(narrow_exe(&n, "/usr/bin/luajit"));
	cr_expect(narrow_exe(&n, ""));
	cr_expect(narrow_comm(&n, "x"));
	cr_expect(narrow_uid(&n, 0));
	cr_expect(narrow_cgroup(&n, ""));
	cr_expect(narrow_process(&n, getpid()));
}

Test(narrow, exe)
{
	struct narrow n = narrow_to(WORDS("/opt/*/luajit", "lua5.?", "/a (deleted)"), &none);

	cr_expect(narrow_exe(&n, "/opt/a/luajit"));
	cr_expect(narrow_exe(&n, "/opt/a/b/luajit"));
	cr_expect_not(narrow_exe(&n, "/srv/opt/a/luajit"));
	cr_expect_not(narrow_exe(&n, "/opt/a/luajit2"));
	/* without a slash it is the file's name */
	cr_expect(narrow_exe(&n, "/usr/bin/lua5.4"));
	cr_expect_not(narrow_exe(&n, "/usr/lua5.4/bin"));
	cr_expect_not(narrow_exe(&n, "/usr/bin/lua5.10"));
	/* replaced while it runs */
	cr_expect(narrow_exe(&n, "/usr/bin/lua5.4 (deleted)"));
	cr_expect(narrow_exe(&n, "/opt/a/luajit (deleted)"));
	cr_expect_not(narrow_exe(&n, "/opt/a/luajit (deleted) (deleted)"));
	cr_expect(narrow_exe(&n, "/a (deleted)"));
	cr_expect_not(narrow_exe(&n, "/a"));
	cr_expect_not(narrow_exe(&n, ""));
}

Test(narrow, comm)
{
	struct narrow n = narrow_to(&none, WORDS("redis-server", "a-name-that-is-too-long", "a*"));

	cr_expect(narrow_comm(&n, "redis-server"));
	cr_expect_not(narrow_comm(&n, "redis-serve"));
	cr_expect_not(narrow_comm(&n, "redis-server2"));
	/* the kernel keeps 15 bytes */
	cr_expect(narrow_comm(&n, "a-name-that-is-"));
	cr_expect_not(narrow_comm(&n, "a-name-that-is"));
	/* no pattern */
	cr_expect(narrow_comm(&n, "a*"));
	cr_expect_not(narrow_comm(&n, "ab"));
	cr_expect_not(narrow_comm(&n, ""));
}

Test(narrow, uid)
{
	struct narrow n = narrow_to(&none, &none);

	n.uids = (uid_t[]){33, 65534};
	n.nuids = 2;
	cr_expect(narrow_uid(&n, 33));
	cr_expect(narrow_uid(&n, 65534));
	cr_expect_not(narrow_uid(&n, 0));
}

Test(narrow, cgroup)
{
	struct narrow n = narrow_to(&none, &none);

	n.cgroups = *WORDS("/system.slice/a.service", "/b");
	cr_expect(narrow_cgroup(&n, "/system.slice/a.service"));
	cr_expect(narrow_cgroup(&n, "/system.slice/a.service/below/it"));
	cr_expect(narrow_cgroup(&n, "/b"));
	cr_expect_not(narrow_cgroup(&n, "/system.slice/a.service2"));
	cr_expect_not(narrow_cgroup(&n, "/system.slice"));
	cr_expect_not(narrow_cgroup(&n, "/"));
	cr_expect_not(narrow_cgroup(&n, ""));
	n.cgroups = *WORDS("/");
	cr_expect(narrow_cgroup(&n, "/"));
	cr_expect(narrow_cgroup(&n, "/system.slice"));
	/* of no cgroup of version 2, and beyond the cgroup namespace of this process */
	cr_expect_not(narrow_cgroup(&n, ""));
	cr_expect_not(narrow_cgroup(&n, "/../other"));
}

/* One of each kind has to match. */
Test(narrow, process)
{
	char exe[PROCESS_NAME];
	struct narrow n;

	process_exe(getpid(), exe, sizeof(exe));
	cr_assert_eq(prctl(PR_SET_NAME, "narrow-test"), 0);
	n = narrow_to(WORDS("/none", exe), WORDS("narrow-test"));
	n.uids = (uid_t[]){geteuid() + 1, geteuid()};
	n.nuids = 2;
	cr_expect(narrow_process(&n, getpid()));
	n.exes = WORDS("/none");
	cr_expect_not(narrow_process(&n, getpid()));
	n.exes = WORDS(exe);
	n.comms = WORDS("narrow");
	cr_expect_not(narrow_process(&n, getpid()));
	n.comms = &none;
	n.nuids = 1;
	cr_expect_not(narrow_process(&n, getpid()));
	n.nuids = 0;
	n.cgroups = *WORDS("/a-cgroup-that-is-not-there");
	cr_expect_not(narrow_process(&n, getpid()));
}

Test(narrow, cgroups_that_are_none)
{
	char mount[CGROUP2_PATH], file[CGROUP2_PATH + 16];
	struct narrow n = narrow_to(&none, &none);
	struct error err = {};

	cr_expect_eq(narrow_set_cgroups(&n, &none, &err), 0);
	if (cgroup2_mount(mount, &err)) { /* then each is an error */
		cr_expect_eq(narrow_set_cgroups(&n, WORDS("/"), &err), -ENOENT);
		cr_expect(strstr(err.what, "version 2"), "%s", err.what);
		return;
	}
	cr_expect_eq(narrow_set_cgroups(&n, WORDS("/none/of/it"), &err), -ENOENT);
	cr_expect_str_eq(err.what, "--cgroup /none/of/it: no such cgroup");
	cr_expect_eq(narrow_set_cgroups(&n, WORDS("/tmp"), &err), -ENOTDIR);
	snprintf(file, sizeof(file), "%s/cgroup.procs", mount);
	cr_expect_eq(narrow_set_cgroups(&n, WORDS(file), &err), -ENOTDIR);
	cr_expect_eq(narrow_set_cgroups(&n, WORDS(mount, "/", ""), &err), 0, "%s", err.what);
	cr_assert_eq(n.cgroups.n, 3);
	for (size_t i = 0; i < 3; i++)
		cr_expect_str_eq(n.cgroups.word[i], "/");
	cr_expect_neq(cgroup2_id(mount, "/"), 0);
	cr_expect_eq(cgroup2_id(mount, "/none/of/it"), 0);
	narrow_free(&n);
}

Test(narrow, a_process_that_has_ended)
{
	char path[CGROUP2_PATH];

	cr_expect_eq(cgroup2_of(0x3ffffffe, path), -ESRCH);
	cr_expect_eq(process_start_stack(0x3ffffffe), 0);
	cr_expect_neq(process_start_stack(getpid()), 0);
}
