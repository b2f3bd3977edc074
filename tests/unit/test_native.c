/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sym/native.h"
#include "target/elf.h"

TestSuite(native, .timeout = 20);

__attribute__((noinline)) int native_test_function(int x)
{
	return x * 5;
}

Test(native, own_functions)
{
	struct native *n = NULL;
	const char *name = NULL;
	void *qsort_addr = dlsym(RTLD_DEFAULT, "qsort");

	cr_assert_eq(native_new(&n), 0);
	cr_assert_eq(native_symbol(n, getpid(), (uintptr_t)native_test_function, &name), 0);
	cr_assert_str_eq(name, "native_test_function");
	cr_assert_eq(native_symbol(n, getpid(), (uintptr_t)native_test_function + 1, &name), 0);
	cr_assert_str_eq(name, "native_test_function");
	cr_assert_eq(native_symbol(n, getpid(), (uintptr_t)qsort_addr, &name), 0);
	cr_assert_str_eq(name, "qsort", "of a library that has .dynsym only");
	cr_assert_eq(native_symbol(n, getpid(), 16, &name), -ENOENT);
	native_free(&n);
	cr_assert_null(n);
	native_free(&n);
}

Test(native, vdso)
{
	uint64_t base = getauxval(AT_SYSINFO_EHDR), addr;
	struct elf_file *elf = NULL;
	struct native *n = NULL;
	const char *name = NULL;

	if (!base)
		cr_skip_test("no vdso");
	cr_assert_eq(native_new(&n), 0);
	if (elf_open_bytes((void *)base, 8192, &elf) ||
	    elf_lookup(elf, "__vdso_clock_gettime", &addr, NULL))
		cr_skip_test("a vdso without clock_gettime");
	cr_assert_eq(native_symbol(n, getpid(), base + addr, &name), 0);
	cr_assert(strstr(name, "clock_gettime"), "%s", name);
	elf_close(&elf);
	native_free(&n);
}

static void copy_file(const char *from, const char *to)
{
	char cmd[512];

	snprintf(cmd, sizeof(cmd), "cp %s %s", from, to);
	cr_assert_eq(system(cmd), 0);
}

/* A process that sleeps, with a library preloaded. */
static pid_t start(const char *exe, const char *lib)
{
	pid_t pid = fork();

	if (!pid) {
		if (lib)
			setenv("LD_PRELOAD", lib, 1);
		execl(exe, exe, "60", (char *)NULL);
		_exit(127);
	}
	usleep(300000);
	return pid;
}

/* What native_symbol() says of a function of the deleted gone.so in pid. */
static int gone_symbol(struct native *n, pid_t pid, const char *symbol, const char **name)
{
	char path[64], *line __free = NULL;
	unsigned long start_addr, offset;
	struct elf_file *elf = NULL;
	uint64_t vaddr, bias;
	FILE *f __fclose = NULL;
	size_t size = 0;
	int err = -ENOENT;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "r");
	while (f && getline(&line, &size, f) > 0) {
		if (!strstr(line, "gone.so") ||
		    sscanf(line, "%lx-%*x r-xp %lx", &start_addr, &offset) != 2)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/map_files/%.*s", pid,
			 (int)strcspn(line, " "), line);
		if (elf_open(path, &elf))
			return -EPERM;
		if (!elf_lookup(elf, symbol, &vaddr, NULL) &&
		    !elf_bias(elf, start_addr, offset, &bias))
			err = native_symbol(n, pid, vaddr + bias, name);
		elf_close(&elf);
		break;
	}
	return err;
}

Test(native, deleted_library_and_process_that_ended)
{
	char lib[] = "/tmp/native-XXXXXX", path[64];
	const char *name = NULL;
	struct native *n = NULL;
	pid_t pid;
	int err;

	if (geteuid())
		cr_skip_test("deleted files need map_files, which needs root");
	cr_assert(mkdtemp(lib));
	snprintf(path, sizeof(path), "%s/gone.so", lib);
	copy_file("/lib/x86_64-linux-gnu/libz.so.1", path);
	pid = start("/bin/sleep", path);
	unlink(path);
	rmdir(lib);
	cr_assert_eq(native_new(&n), 0);
	err = gone_symbol(n, pid, "deflateInit_", &name);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	cr_assert_eq(err, 0, "%d", err);
	cr_assert_str_eq(name, "deflateInit_");
	/* what was learnt stays */
	cr_assert_eq(native_symbol(n, pid, 16, &name), -ENOENT);
	native_forget(n, pid);
	cr_assert_eq(native_symbol(n, pid, 16, &name), -ESRCH);
	native_free(&n);
}
