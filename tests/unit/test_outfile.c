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

	umask(022);
	cr_assert_eq(outfile_open(path, &f, NULL), 0);
	fputs("hello\n", outfile_stream(f));
	fflush(outfile_stream(f));
	cr_assert_eq(entries(), 0);
	cr_assert_eq(outfile_commit(&f, NULL), 0);
	cr_assert_null(f);
	cr_assert_str_eq(content(path), "hello\n");
	cr_assert_eq(entries(), 1);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0644);
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
	chmod(path, 0600);
	cr_assert_eq(write_out(path, "new"), 0);
	cr_assert_str_eq(content(path), "new");
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0600);
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
	cr_assert_eq(write_out(path, "x"), 0);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_uid, 1234);
	cr_assert_eq(st.st_gid, 4321);
	/* An existing file keeps its owner. */
	setenv("SUDO_UID", "77", 1);
	cr_assert_eq(write_out(path, "y"), 0);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_uid, 1234);
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
