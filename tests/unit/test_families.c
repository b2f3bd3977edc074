// SPDX-License-Identifier: BSD-2-Clause
/* The children that load the programs of VM families, with a load of the test's. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf/families.h"

static int pipe_to_us[2];

static void begin(int (*load)(void *arg, uint32_t family), struct families **out)
{
	struct families_options o = {
		.load = load, .keep = &pipe_to_us[1], .nkeep = 1, .families = 6};

	cr_assert_eq(pipe(pipe_to_us), 0);
	o.arg = &pipe_to_us[1];
	cr_assert_eq(families_start(&o, out), 0);
	close(pipe_to_us[1]);
}

static int note(void *arg, uint32_t family)
{
	char digit = (char)('0' + family);

	return write(*(int *)arg, &digit, 1) == 1 ? 0 : -EIO;
}

/* What the child has written until it ended. */
static const char *noted(void)
{
	static char text[64];
	ssize_t n, used = 0;

	while ((n = read(pipe_to_us[0], text + used, sizeof(text) - 1 - (size_t)used)) > 0)
		used += n;
	text[used] = '\0';
	close(pipe_to_us[0]);
	return text;
}

Test(families, each_is_loaded_once)
{
	struct families *f;

	begin(note, &f);
	cr_expect_eq(families_wait(f), 0); /* for none */
	families_request(f, 4);
	families_request(f, 4);
	cr_expect_eq(families_wait(f), 0);
	families_request(f, 6);
	cr_expect_eq(families_wait(f), 0);
	cr_expect_eq(families_wait(f), 0);
	cr_expect_str_eq(noted(), "21"); /* the children have ended: they have no more to load */
	cr_expect_eq(waitpid(-1, NULL, WNOHANG), -1);
	families_free(&f);
	cr_expect_null(f);
}

/* Family 2 waits for a line, so that its child ends when the test says so. */
static int waits(void *arg, uint32_t family)
{
	char c;

	if (family == 2 && read(*(int *)arg, &c, 1) != 1)
		return -EIO;
	return 0;
}

static size_t children(void)
{
	char path[64], line[256] = "";
	size_t n = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	file = fopen(path, "re");
	cr_assert_not_null(file);
	if (fgets(line, sizeof(line), file))
		for (const char *p = line; (p = strchr(p, ' ')); p++)
			n++;
	fclose(file);
	return n;
}

Test(families, those_that_may_be_needed_are_not_waited_for)
{
	int to_child[2];
	struct families_options o = {
		.load = waits, .arg = &to_child[0], .keep = to_child, .nkeep = 1, .families = 6};
	struct families *f;

	cr_assert_eq(pipe(to_child), 0);
	cr_assert_eq(families_start(&o, &f), 0);
	families_prepare(f, 6);
	families_request(f, 2);
	cr_expect_eq(families_wait(f), 0); /* for family 1 */
	families_reap(f);
	cr_expect_eq(children(), 1); /* family 2's waits still */
	cr_expect_eq(write(to_child[1], "x", 1), 1);
	while (children())
		families_reap(f);
	families_request(f, 4);
	cr_expect_eq(families_wait(f), 0);
	families_free(&f);
}

static int fails(void *arg, uint32_t family)
{
	(void)arg;
	return family == 2 ? -EACCES : 0;
}

Test(families, the_first_error_stays)
{
	struct families *f;

	begin(fails, &f);
	families_request(f, 2);
	cr_expect_eq(families_wait(f), 0);
	families_prepare(f, 4);
	cr_expect_eq(families_wait(f), 0); /* it is not needed */
	families_request(f, 4);
	cr_expect_eq(families_wait(f), -EACCES);
	families_request(f, 6);
	cr_expect_eq(families_wait(f), -EACCES);
	families_free(&f);
	noted();
}

static int ends(void *arg, uint32_t family)
{
	(void)arg;
	(void)family;
	_exit(1);
}

Test(families, a_child_that_was_killed)
{
	struct families *f;

	begin(ends, &f);
	families_request(f, 6);
	cr_expect_eq(families_wait(f), -EIO);
	families_free(&f);
	noted();
}

static struct stat ours;

/* 1 if it has standard error, and not a file of ours. */
static int lists(void *arg, uint32_t family)
{
	struct stat st;
	int n = 0;

	(void)family;
	for (int fd = 0; fd < 64; fd++)
		n += !fstat(fd, &st) && st.st_dev == ours.st_dev && st.st_ino == ours.st_ino;
	return note(arg, (uint32_t)(!n && fcntl(STDERR_FILENO, F_GETFD) >= 0));
}

Test(families, nothing_else_stays_open)
{
	int fd = memfd_create("ours", MFD_CLOEXEC);
	struct families *f;

	cr_assert_eq(fstat(fd, &ours), 0);
	begin(lists, &f);
	families_request(f, 2);
	cr_expect_eq(families_wait(f), 0);
	families_free(&f);
	cr_expect_str_eq(noted(), "1");
	close(fd);
}

Test(families, signals_of_the_terminal_are_not_for_them)
{
	struct families *f;
	char path[64], line[64] = "", *pids = line;
	FILE *file;

	begin(note, &f);
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	file = fopen(path, "re");
	cr_assert(file && fgets(line, sizeof(line), file));
	fclose(file);
	for (int i = 0; i < 2; i++) {
		pid_t pid = (pid_t)strtol(pids, &pids, 10);

		cr_assert_gt(pid, 0);
		kill(pid, SIGINT);
		kill(pid, SIGTERM);
	}
	families_request(f, 6);
	cr_expect_eq(families_wait(f), 0);
	families_free(&f);
	noted();
}
