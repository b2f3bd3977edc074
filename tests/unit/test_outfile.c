// SPDX-License-Identifier: BSD-2-Clause
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/outfile.h"

static char dir[] = "/tmp/luabpf-outfile-XXXXXX";
static char path[PATH_MAX];

static void setup(void)
{
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/out", dir);
}

static int entries(void)
{
	__closedir DIR *d = opendir(dir);
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d)))
		n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	return n;
}

static void teardown(void)
{
	char cmd[PATH_MAX];

	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	cr_assert_eq(system(cmd), 0);
}

static const char *content(const char *name)
{
	static char buf[256];
	__fclose FILE *f = fopen(name, "r");

	if (!f)
		return NULL;
	buf[fread(buf, 1, sizeof(buf) - 1, f)] = '\0';
	return buf;
}

static void put(const char *name, const char *text)
{
	__fclose FILE *f = fopen(name, "w");

	cr_assert(f);
	fputs(text, f);
}

/* Writes `text` to `name` through an outfile. */
static int write_out(const char *name, const char *text)
{
	__outfile struct outfile *f = NULL;
	struct error err;
	int ret = outfile_open(name, &f, &err);

	if (ret)
		return ret;
	fputs(text, outfile_stream(f));
	return outfile_commit(&f, &err);
}

TestSuite(outfile, .init = setup, .fini = teardown);

Test(outfile, appears_only_at_commit)
{
	__outfile struct outfile *f = NULL;
	struct stat st;

	umask(0);
	cr_assert_eq(outfile_open(path, &f, NULL), 0);
	fputs("hello\n", outfile_stream(f));
	fflush(outfile_stream(f));
	cr_assert_eq(entries(), 0);
	cr_assert_eq(outfile_commit(&f, NULL), 0);
	cr_assert_null(f);
	cr_assert_str_eq(content(path), "hello\n");
	cr_assert_eq(entries(), 1);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0600);
}

Test(outfile, abort_keeps_the_old)
{
	struct outfile *f = NULL;

	put(path, "old");
	cr_assert_eq(outfile_open(path, &f, NULL), 0);
	fputs("new", outfile_stream(f));
	outfile_abort(&f);
	cr_assert_null(f);
	outfile_abort(&f);
	cr_assert_str_eq(content(path), "old");
	cr_assert_eq(entries(), 1);
}

Test(outfile, replaces_and_keeps_mode)
{
	struct stat st;

	put(path, "something longer");
	chmod(path, 0640);
	cr_assert_eq(write_out(path, "new"), 0);
	cr_assert_str_eq(content(path), "new");
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0640);
	cr_assert_eq(entries(), 1);
}

Test(outfile, a_link_stays_a_link)
{
	char link[PATH_MAX + 8];
	struct stat st;

	put(path, "old");
	snprintf(link, sizeof(link), "%s.link", path);
	cr_assert_eq(symlink("out", link), 0);
	cr_assert_eq(write_out(link, "new"), 0);
	cr_assert_str_eq(content(path), "new");
	cr_assert_eq(lstat(link, &st), 0);
	cr_assert(S_ISLNK(st.st_mode));
}

Test(outfile, a_link_to_no_file_yet_stays_a_link)
{
	char link[PATH_MAX + 8], next[PATH_MAX + 8];
	struct outfile *f = NULL;
	struct error err;
	struct stat st;

	snprintf(link, sizeof(link), "%s.link", path);
	snprintf(next, sizeof(next), "%s.next", path);
	cr_assert_eq(symlink("out.next", link), 0);
	cr_assert_eq(symlink(path, next), 0);
	cr_assert_eq(outfile_open(link, &f, &err), 0);
	outfile_abort(&f);
	cr_assert_eq(lstat(path, &st), -1);
	cr_assert_eq(write_out(link, "new"), 0);
	cr_assert_str_eq(content(path), "new");
	cr_assert(!lstat(link, &st) && S_ISLNK(st.st_mode));
	cr_assert(!lstat(next, &st) && S_ISLNK(st.st_mode));
	cr_assert_eq(entries(), 3);
	unlink(path);
	unlink(next);
	cr_assert_eq(symlink("no/such/directory", next), 0);
	cr_assert_eq(outfile_open(link, &f, &err), -ENOENT);
	unlink(next);
	cr_assert_eq(symlink("out.link", next), 0);
	cr_assert_eq(outfile_open(link, &f, &err), -ELOOP);
}

Test(outfile, unwritable_is_told_when_opened)
{
	struct outfile *f = (struct outfile *)1;
	struct error err;
	char name[PATH_MAX + 16];

	snprintf(name, sizeof(name), "%s/none/out", dir);
	cr_assert_eq(outfile_open(name, &f, &err), -ENOENT);
	cr_assert(strstr(err.what, "none/out: No such file"));
	cr_assert(*err.remedy);
	cr_assert_eq(outfile_open(dir, &f, &err), -EISDIR);
	cr_assert_eq(outfile_open("", &f, &err), -ENOENT);
	snprintf(name, sizeof(name), "%s/", path);
	cr_assert_eq(outfile_open(name, &f, &err), -EISDIR);
	put(path, "");
	snprintf(name, sizeof(name), "%s/out", path);
	cr_assert_eq(outfile_open(name, &f, &err), -ENOTDIR);
	cr_assert_eq(f, (struct outfile *)1, "untouched on failure");
}

Test(outfile, full_disk)
{
	__outfile struct outfile *f = NULL;
	struct error err;

	cr_assert_eq(outfile_open("/dev/full", &f, &err), 0);
	for (int i = 0; i < 100000; i++)
		fputs("0123456789", outfile_stream(f));
	cr_assert_eq(outfile_commit(&f, &err), -ENOSPC);
	cr_assert_str_eq(err.what, "/dev/full: No space left on device");
	cr_assert_eq(write_out("/dev/full", "x"), -ENOSPC);
	cr_assert_eq(write_out("/dev/null", "x"), 0);
}

Test(outfile, closed_pipe)
{
	__outfile struct outfile *f = NULL;
	char name[64];
	int fds[2];

	signal(SIGPIPE, SIG_IGN);
	cr_assert_eq(pipe(fds), 0);
	snprintf(name, sizeof(name), "/dev/fd/%d", fds[1]);
	cr_assert_eq(outfile_open(name, &f, NULL), 0);
	close(fds[0]);
	fputs("x", outfile_stream(f));
	cr_assert_eq(outfile_commit(&f, NULL), -EPIPE);
	close(fds[1]);
}

/* Opening a FIFO waits for its reader: not in a recording that goes on. */
Test(outfile, ready)
{
	__outfile struct outfile *f = NULL;
	struct error err;

	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_assert_eq(outfile_open_ready(path, &f, &err), -EINVAL);
	cr_expect(strstr(err.what, "is a FIFO"), "%s", err.what);
	cr_assert_eq(unlink(path), 0);
	put(path, "old");
	cr_assert_eq(outfile_open_ready(path, &f, &err), 0);
	fputs("new", outfile_stream(f));
	cr_expect_str_eq(content(path), "old");
	cr_assert_eq(outfile_commit(&f, &err), 0);
	cr_expect_str_eq(content(path), "new");
}

Test(outfile, standard_output_stays_open)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	cr_assert_eq(write_out("-", "one "), 0);
	cr_assert_eq(write_out("-", "two"), 0);
	cr_assert_str_eq(content(path), "one two");
	close(STDOUT_FILENO);
	cr_assert_eq(write_out("-", "three"), -EBADF);
}

Test(outfile, belongs_to_who_called_sudo)
{
	struct stat st;

	if (geteuid() != 0)
		cr_skip("needs root");
	setenv("SUDO_UID", "1234", 1);
	setenv("SUDO_GID", "4321", 1);
	cr_assert_eq(write_out(path, "x"), -EACCES, "root's directory");
	cr_assert_eq(chown(dir, 1234, 4321), 0);
	cr_assert_eq(write_out(path, "x"), 0);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_uid, 1234);
	cr_assert_eq(st.st_gid, 4321);
	setenv("SUDO_UID", "77", 1);
	chmod(dir, 01777);
	chmod(path, 0666);
	cr_assert_eq(write_out(path, "y"), -EPERM, "another user's file");
	cr_assert_str_eq(content(path), "x");
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	cr_assert_eq(write_out(path, "y"), -EPERM, "another user's file");
	setenv("SUDO_GID", "4321", 1);
	unlink(path);
	setenv("SUDO_UID", "-1", 1);
	cr_assert_eq(write_out(path, "y"), -EINVAL);
	cr_assert_eq(stat(path, &st), -1);
}

/* As the user "nobody", for whom permissions count. */
static int in_place(void)
{
	struct outfile *f = NULL;

	if (setreuid(65534, 65534) || outfile_open(path, &f, NULL))
		return 1;
	outfile_abort(&f);
	if (strcmp(content(path), "old and long"))
		return 2;
	return write_out(path, "new") ? 3 : 0;
}

Test(outfile, directory_that_takes_no_new_file)
{
	int status;
	pid_t child;

	if (geteuid() != 0)
		cr_skip("needs root");
	put(path, "old and long");
	chmod(path, 0666);
	chmod(dir, 0755);
	child = fork();
	if (!child)
		_exit(in_place());
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	cr_assert_str_eq(content(path), "new");
	cr_assert_eq(entries(), 1);
}

Test(outfile, place_that_cannot_be_renamed_to)
{
	char other[PATH_MAX + 8];

	snprintf(other, sizeof(other), "%s.other", path);
	put(path, "old and long");
	put(other, "");
	if (mount(path, other, NULL, MS_BIND, NULL))
		cr_skip("needs root");

	int ret = write_out(other, "new");

	umount(other);
	cr_assert_eq(ret, 0);
	cr_assert_str_eq(content(path), "new");
	cr_assert_eq(entries(), 2);
}

/* Whoever else may make names in a directory may choose which file of ours is there. */
Test(outfile, mode_of_a_file_that_others_chose)
{
	char other[PATH_MAX + 8];
	struct stat st;

	put(path, "old");
	chmod(path, 0644);
	chmod(dir, 01777);
	cr_assert_eq(write_out(path, "new"), 0);
	cr_assert(!stat(path, &st) && (st.st_mode & 0777) == 0600);
	chmod(dir, 0700);
	chmod(path, 0644);
	snprintf(other, sizeof(other), "%s.other", path);
	cr_assert_eq(link(path, other), 0);
	cr_assert_eq(write_out(other, "newer"), 0);
	cr_assert(!stat(other, &st) && (st.st_mode & 0777) == 0600);
	cr_assert_str_eq(content(path), "new", "the other name keeps its file");
}

Test(outfile, name_that_was_taken_keeps_what_was_written)
{
	char kept[PATH_MAX + 64];
	struct outfile *f = NULL;
	struct error err = {};
	const char *name;

	cr_assert_eq(outfile_open(path, &f, &err), 0);
	fputs("text", outfile_stream(f));
	cr_assert_eq(mkdir(path, 0700), 0);
	cr_assert_eq(outfile_commit(&f, &err), -EISDIR);
	name = strstr(err.remedy, ".luabpf-");
	cr_assert(name);
	snprintf(kept, sizeof(kept), "%s/%.*s", dir, (int)strcspn(name, " "), name);
	cr_assert_str_eq(content(kept), "text");
	cr_assert_eq(entries(), 2);
}

/* The directory is another one by the time that the file is put there. */
Test(outfile, directory_is_looked_up_once)
{
	char old[PATH_MAX + 8], moved[PATH_MAX + 16];
	struct outfile *f = NULL;

	cr_assert_eq(mkdir(path, 0700), 0);
	snprintf(old, sizeof(old), "%s/file", path);
	snprintf(moved, sizeof(moved), "%s.moved", path);
	cr_assert_eq(outfile_open(old, &f, NULL), 0);
	cr_assert_eq(rename(path, moved), 0);
	cr_assert_eq(mkdir(path, 0700), 0);
	fputs("text", outfile_stream(f));
	cr_assert_eq(outfile_commit(&f, NULL), 0);
	cr_assert_null(content(old));
	strcat(moved, "/file");
	cr_assert_str_eq(content(moved), "text");
}

Test(outfile, same_file_by_two_names)
{
	__outfile struct outfile *a = NULL, *b = NULL, *c = NULL, *d = NULL;
	char other[PATH_MAX + 8];

	snprintf(other, sizeof(other), "%s/./out", dir);
	cr_assert_eq(outfile_open(path, &a, NULL), 0);
	cr_assert_eq(outfile_open(other, &b, NULL), 0);
	cr_assert(outfile_same(a, b));
	strcat(other, "2");
	cr_assert_eq(outfile_open(other, &c, NULL), 0);
	cr_assert(!outfile_same(a, c));
	cr_assert_eq(outfile_open("/dev/null", &d, NULL), 0);
	cr_assert(!outfile_same(d, d) && !outfile_same(a, d));
}
