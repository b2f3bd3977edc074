// SPDX-License-Identifier: BSD-2-Clause
/* proc/source.c; what needs root to change users is skipped without. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <criterion/criterion.h>

#include "base/cleanup.h"
#include "proc/creds.h"
#include "proc/process.h"
#include "proc/source.h"

TestSuite(source);

static char dir[64];

static void write_file(const char *name, const char *text, mode_t mode)
{
	__fclose FILE *file = fopen(name, "w");

	cr_assert_not_null(file);
	fputs(text, file);
	cr_assert_eq(chmod(name, mode), 0);
}

/* A directory with files for all and for root only, and a root directory inside of it. */
static void setup(void)
{
	strcpy(dir, "/tmp/luabpf-source-XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chmod(dir, 0755), 0);
	cr_assert_eq(chdir(dir), 0);
	cr_assert_eq(mkdir("sub", 0755), 0);
	write_file("all.lua", "for all\n", 0644);
	write_file("root.lua", "secret\n", 0600);
	write_file("sub/all.lua", "in sub\n", 0644);
	cr_assert_eq(symlink("/all.lua", "sub/link.lua"), 0);
	cr_assert_eq(mkfifo("fifo", 0644), 0);
	cr_assert_eq(symlink("loop", "loop"), 0);
}

static void teardown(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_expect_eq(system(command), 0);
}

struct role {
	uid_t uid;
	const char *cwd;
	const char *root;
};

/* A process that does nothing but be someone, somewhere. */
static pid_t play(const struct role *role)
{
	int ready[2];
	char c;
	pid_t pid;

	cr_assert_eq(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		if ((role->root && chroot(role->root)) || (role->cwd && chdir(role->cwd)) ||
		    (role->uid && (setgroups(0, NULL) || setgid(role->uid) || setuid(role->uid))))
			_exit(1);
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(0);
	}
	cr_assert_gt(pid, 0);
	close(ready[1]);
	cr_assert_eq(read(ready[0], &c, 1), 1);
	close(ready[0]);
	return pid;
}

static struct target_source *hold(pid_t pid)
{
	struct target_source *source = NULL;

	cr_assert_eq(target_source_new(pid, process_image(pid), &source), 0);
	return source;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static int first_line(struct target_source *source, const char *path, char line[64])
{
	__fclose FILE *file = NULL;
	int err = target_source_open(source, path, &file);

	if (!err && !fgets(line, 64, file))
		line[0] = '\0';
	return err;
}

static void expect_line(struct target_source *source, const char *path, const char *text)
{
	char line[64] = "";

	cr_expect_eq(first_line(source, path, line), 0, "%s", path);
	cr_expect_str_eq(line, text);
}

Test(source, reads_as_a_process_of_our_own, .init = setup, .fini = teardown)
{
	struct target_source *source;
	char path[128], line[64];
	struct role role = {.cwd = "sub"};
	pid_t pid = play(&role);

	source = hold(pid);
	snprintf(path, sizeof(path), "%s/all.lua", dir);
	expect_line(source, path, "for all\n");
	expect_line(source, "all.lua", "in sub\n");
	if (!geteuid())
		expect_line(source, "../all.lua", "for all\n");
	cr_expect_eq(first_line(source, "/dev/zero", line), -EINVAL);
	cr_expect_eq(first_line(source, "/proc/self/environ", line), -EINVAL);
	cr_expect_eq(first_line(source, "/no/such", line), -ENOENT);
	cr_expect_eq(first_line(source, "", line), -ENOENT);
	cr_expect_eq(first_line(source, "/", line), -EISDIR);
	if (!geteuid()) {
		cr_expect_eq(first_line(source, "../fifo", line), -EINVAL);
		cr_expect_eq(first_line(source, "../loop", line), -ELOOP);
	}
	end(pid);
	expect_line(source, path, "for all\n"); /* its end changes nothing */
	target_source_free(&source);
}

Test(source, shows_nothing_that_the_target_could_not_read, .init = setup, .fini = teardown)
{
	struct target_source *source;
	struct role role = {.uid = 65534, .cwd = "."};
	char line[64];
	pid_t pid;

	if (geteuid())
		cr_skip_test("needs root");
	pid = play(&role);
	source = hold(pid);
	expect_line(source, "all.lua", "for all\n");
	cr_expect_eq(first_line(source, "root.lua", line), -EACCES);
	cr_expect_eq(first_line(source, "/etc/shadow", line), -EACCES);
	end(pid);
	cr_expect_eq(first_line(source, "root.lua", line), -EACCES);
	target_source_free(&source);
}

Test(source, a_target_stays_in_its_root, .init = setup, .fini = teardown)
{
	struct target_source *source;
	struct role role = {.root = ".", .cwd = "/sub"};
	char line[64];
	pid_t pid;

	if (geteuid())
		cr_skip_test("needs root");
	pid = play(&role);
	source = hold(pid);
	expect_line(source, "/all.lua", "for all\n");
	expect_line(source, "link.lua", "for all\n");
	expect_line(source, "../../../all.lua", "for all\n");
	cr_expect_eq(first_line(source, "/etc/passwd", line), -ENOENT);
	cr_expect_eq(first_line(source, "../../../etc/passwd", line), -ENOENT);
	end(pid);
	target_source_free(&source);
}

/* Plays a target whose rights change: each byte that it is sent makes it the next of these users. */
struct changing_file {
	pid_t pid;
	int step, done;
};

static void change(const struct changing_file *c)
{
	char byte;

	cr_assert_eq(write(c->step, "x", 1), 1);
	cr_assert_eq(read(c->done, &byte, 1), 1);
}

static struct changing_file play_changing(const uid_t *uids, size_t n)
{
	int step[2], done[2];
	struct changing_file c;
	char byte;

	cr_assert_eq(pipe(step), 0);
	cr_assert_eq(pipe(done), 0);
	c = (struct changing_file){.pid = fork(), .step = step[1], .done = done[0]};
	if (!c.pid) {
		close(step[1]);
		for (size_t i = 0; i < n && read(step[0], &byte, 1) == 1; i++)
			if (setresuid(-1, 0, -1) || setresuid(-1, uids[i], -1) ||
			    write(done[1], "x", 1) != 1)
				_exit(1);
		_exit(read(step[0], &byte, 1) != 0);
	}
	cr_assert_gt(c.pid, 0);
	close(step[0]);
	close(done[1]);
	return c;
}

/* Rights that it gave up, it has no more; nor has it those that it took meanwhile. */
Test(source, rights_only_shrink, .init = setup, .fini = teardown)
{
	struct target_source *source;
	struct changing_file c;
	char line[64];

	if (geteuid())
		cr_skip_test("needs root");
	write_file("one.lua", "of one\n", 0600);
	write_file("two.lua", "of two\n", 0600);
	cr_assert_eq(chown("one.lua", 4711, 4711) || chown("two.lua", 4712, 4712), 0);
	c = play_changing((uid_t[]){4711, 0, 4712, 4711, 4713, 0}, 6);
	change(&c);
	source = hold(c.pid);
	expect_line(source, "one.lua", "of one\n");
	change(&c); /* root, as a setuid program is */
	cr_expect_eq(first_line(source, "root.lua", line), -EACCES);
	expect_line(source, "one.lua", "of one\n");
	change(&c);
	target_source_look(source);
	change(&c);
	cr_expect_eq(first_line(source, "one.lua", line), -EACCES);
	cr_expect_eq(first_line(source, "two.lua", line), -EACCES);
	expect_line(source, "all.lua", "for all\n");
	change(&c);
	expect_line(source, "all.lua", "for all\n"); /* a user too many */
	change(&c);
	cr_expect_eq(first_line(source, "root.lua", line), -EACCES);
	end(c.pid);
	expect_line(source, "all.lua", "for all\n");
	cr_expect_eq(first_line(source, "one.lua", line), -EACCES);
	target_source_free(&source);
}

/* What was sampled is not what runs: whose rights it had is not known. */
Test(source, another_image)
{
	struct role role = {.cwd = "/"};
	struct target_source *source = NULL;
	pid_t pid = play(&role);
	uint64_t image = process_image(pid);

	cr_expect_neq(image, 0);
	cr_expect_eq(process_image(pid), image);
	while (image == process_image(getpid())) { /* started in the same hundredth of a second */
		end(pid);
		pid = play(&role);
		image = process_image(pid);
	}
	cr_expect_eq(target_source_new(pid, image ^ 1, &source), -ESTALE);
	cr_expect_eq(target_source_new(pid, 0, &source), -ESTALE);
	end(pid);
	cr_expect_eq(process_image(pid), 0);
	cr_expect_null(source);
}

Test(source, no_such_process)
{
	struct target_source *source = NULL;

	cr_expect_eq(target_source_new(0x7ffffff0, 1, &source), -ESRCH);
	cr_expect_null(source);
}

/* A process that is reaped between two files of its directory: status is read, ns/user is gone. */
Test(source, of_a_process_that_ends_while_it_is_read, .init = setup, .fini = teardown)
{
	int own = open("/proc/self", O_RDONLY | O_DIRECTORY),
	    gone = open(dir, O_RDONLY | O_DIRECTORY);
	struct creds creds = {0};

	write_file("status", "Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nGroups:\t0 \nCapEff:\t01\n",
		   0644);
	cr_expect_eq(creds_read(gone, &creds), -ESRCH);
	cr_expect_eq(creds_read(own, &creds), 0);
	creds_free(&creds);
	close(own);
	close(gone);
}

/* ---- users of this machine ------------------------------------------------------------------- */

static struct target_source *of_users(size_t n, uid_t first, uid_t second)
{
	const uid_t uids[SOURCE_USERS] = {first, second};
	struct target_source *source = NULL;

	cr_assert_eq(target_source_of_users(uids, n, &source), 0);
	return source;
}

Test(source, shows_what_all_users_can_read, .init = setup, .fini = teardown)
{
	struct target_source *source;
	char line[64];

	if (geteuid())
		cr_skip_test("needs root");
	write_file("one.lua", "of one\n", 0600);
	write_file("group.lua", "of root's group\n", 0640);
	cr_assert_eq(chown("one.lua", 4711, 4711), 0);
	cr_assert_eq(mkdir("private", 0700), 0);
	write_file("private/all.lua", "for all, in a directory of root's\n", 0644);
	cr_assert_eq(target_source_of_all(&source), 0);
	expect_line(source, "all.lua", "for all\n");
	cr_expect_eq(first_line(source, "private/all.lua", line), -EACCES);
	cr_expect_eq(first_line(source, "one.lua", line), -EACCES);
	cr_expect_eq(first_line(source, "root.lua", line), -EACCES);
	cr_expect_eq(first_line(source, "group.lua", line), -EACCES);
	cr_expect_eq(first_line(source, "/etc/shadow", line), -EACCES);
	cr_expect_eq(first_line(source, "/proc/self/environ", line), -EACCES);
	cr_expect_eq(first_line(source, "/proc/self/status", line), -EINVAL);
	cr_expect_eq(first_line(source, "/sys/kernel/mm/transparent_hugepage/enabled", line),
		     -EINVAL);
	cr_expect_eq(first_line(source, "/dev/null", line), -EINVAL);
	cr_expect_eq(first_line(source, "fifo", line), -EINVAL);
	target_source_free(&source);
	source = of_users(1, 4711, 0);
	expect_line(source, "one.lua", "of one\n");
	cr_expect_eq(first_line(source, "group.lua", line), -EACCES);
	cr_expect_eq(first_line(source, "private/all.lua", line), -EACCES);
	target_source_free(&source);
	source = of_users(2, 4711, 4712);
	expect_line(source, "all.lua", "for all\n");
	cr_expect_eq(first_line(source, "one.lua", line), -EACCES);
	target_source_free(&source);
	source = of_users(2, 4712, 4711);
	cr_expect_eq(first_line(source, "one.lua", line), -EACCES);
	cr_expect_eq(first_line(source, "/etc/shadow", line), -EACCES);
	target_source_free(&source);
}

/* Root is a user like others: without capabilities. */
Test(source, root_where_it_is_asked_for, .init = setup, .fini = teardown)
{
	struct target_source *source;
	char line[64];

	if (geteuid())
		cr_skip_test("needs root");
	write_file("one.lua", "of one\n", 0600);
	cr_assert_eq(chown("one.lua", 4711, 4711), 0);
	source = of_users(1, 0, 0);
	expect_line(source, "root.lua", "secret\n");
	cr_expect_eq(first_line(source, "one.lua", line), -EACCES);
	target_source_free(&source);
	source = of_users(2, 0, 4711);
	cr_expect_eq(first_line(source, "root.lua", line), -EACCES);
	target_source_free(&source);
}

/* Who could not go to the directory that luabpf was started in has no relative paths there. */
Test(source, a_directory_of_roots, .init = setup, .fini = teardown)
{
	struct target_source *source;
	char line[64];

	if (geteuid())
		cr_skip_test("needs root");
	cr_assert_eq(chmod(dir, 0700), 0);
	cr_assert_eq(chdir("sub"), 0);
	cr_assert_eq(target_source_of_all(&source), 0);
	cr_expect_eq(first_line(source, "all.lua", line), -EACCES);
	target_source_free(&source);
	source = of_users(1, 4711, 0);
	cr_expect_eq(first_line(source, "all.lua", line), -EACCES);
	target_source_free(&source);
	source = of_users(1, 0, 0);
	expect_line(source, "all.lua", "in sub\n");
	target_source_free(&source);
}

Test(source, how_many_users)
{
	struct target_source *source = NULL;

	cr_expect_eq(target_source_of_users(NULL, 0, &source), -EINVAL);
	cr_expect_eq(target_source_of_users((uid_t[]){1, 2, 3, 4}, 4, &source), -EINVAL);
	cr_expect_eq(target_source_of_users((uid_t[]){(uid_t)-1}, 1, &source), -EINVAL);
	cr_expect_null(source);
}

/* 0 when all is as it should be: an exit code. */
static int read_unprivileged(void)
{
	struct target_source *source;
	char line[64] = "";
	int bad = 0;

	if (!geteuid() && (setgroups(0, NULL) || setgid(4711) || setuid(4711)))
		return 1;
	if (target_source_of_caller(&source))
		return 1;
	bad |= (first_line(source, "all.lua", line) || strcmp(line, "for all\n")) << 1;
	bad |= (first_line(source, "/etc/shadow", line) != -EACCES) << 2;
	bad |= (first_line(source, "/proc/self/status", line) != -EINVAL) << 3;
	target_source_free(&source);
	return bad;
}

Test(source, who_is_not_root_reads_as_they_are, .init = setup, .fini = teardown)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(read_unprivileged());
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0);
}
