/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/pager.h"
#include "base/reader.h"
#include "sym/native.h"
#include "proc/elf.h"

#define LIBZ "/lib/x86_64-linux-gnu/libz.so.1"

__attribute__((noinline)) int native_test_function(int x)
{
	return x * 5;
}

Test(native, own_functions)
{
	struct native_maps *maps = NULL;
	struct native *n = NULL;
	const char *name = NULL;
	void *qsort_addr = dlsym(RTLD_DEFAULT, "qsort");

	cr_assert_eq(native_new(&n), 0);
	cr_assert_eq(native_maps_new(n, getpid(), &maps), 0);
	cr_assert_eq(native_symbol(maps, (uintptr_t)native_test_function, &name), 0);
	cr_assert_str_eq(name, "native_test_function");
	cr_assert_eq(native_symbol(maps, (uintptr_t)native_test_function + 1, &name), 0);
	cr_assert_str_eq(name, "native_test_function");
	cr_assert_eq(native_symbol(maps, (uintptr_t)qsort_addr, &name), 0);
	cr_assert_str_eq(name, "qsort", "of a library that has .dynsym only");
	cr_assert_eq(native_symbol(maps, 16, &name), -ENOENT);
	native_maps_free(&maps);
	native_free(&n);
	cr_assert_null(n);
	native_free(&n);
}

/* A file that is refused has no symbols; its name and offsets are known all the same. */
Test(native, sparse_file)
{
	const off_t size = 64 << 20;
	int fd __close = memfd_create("sparse", MFD_CLOEXEC);
	struct native_maps *maps = NULL;
	struct native *n = NULL;
	const char *module, *name;
	struct elf_file *elf = NULL;
	uint64_t offset;
	char head[4096];
	int exe __close = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	void *at;

	cr_assert_eq(read(exe, head, sizeof(head)), (ssize_t)sizeof(head));
	cr_assert_eq(write(fd, head, sizeof(head)), (ssize_t)sizeof(head));
	cr_assert_eq(ftruncate(fd, size), 0);
	cr_assert_eq(elf_open_fd(fd, &elf), -EFBIG);
	at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	cr_assert_neq(at, MAP_FAILED);
	cr_assert_eq(native_new(&n), 0);
	cr_assert_eq(native_maps_new(n, getpid(), &maps), 0);
	native_offset(maps, (uintptr_t)at + 64, &module, &offset);
	cr_expect_str_eq(module, "memfd:sparse");
	cr_expect_eq(offset, 64);
	cr_expect_eq(native_symbol(maps, (uintptr_t)at + 64, &name), -ENOENT);
	munmap(at, 4096);
	native_maps_free(&maps);
	native_free(&n);
}

/* A library that was mapped after the mappings were read is known by its first function. */
Test(native, library_that_was_just_loaded)
{
	struct native_maps *maps = NULL;
	struct native *n = NULL;
	const char *module;
	uint64_t offset;
	int fd __close = open(LIBZ, O_RDONLY | O_CLOEXEC);
	void *lib;

	cr_assert_eq(native_new(&n), 0);
	cr_assert_eq(native_maps_new(n, getpid(), &maps), 0);
	cr_assert_eq(native_learn(maps), 0);
	cr_expect_not(native_is_code(maps, 4096 * 7));
	cr_assert_geq(fd, 0);
	lib = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	cr_assert_neq(lib, MAP_FAILED);
	native_offset(maps, (uintptr_t)lib + 64, &module, &offset);
	cr_expect_eq(strncmp(module, "libz.so", 7), 0, "%s", module);
	munmap(lib, 4096);
	native_maps_free(&maps);
	native_free(&n);
}

Test(native, vdso)
{
	uint64_t base = getauxval(AT_SYSINFO_EHDR), addr;
	struct elf_file *elf = NULL;
	struct native_maps *maps = NULL;
	struct native *n = NULL;
	const char *name = NULL;

	if (!base)
		cr_skip_test("no vdso");
	cr_assert_eq(native_new(&n), 0);
	cr_assert_eq(native_maps_new(n, getpid(), &maps), 0);
	if (elf_open_bytes((void *)base, 8192, &elf) ||
	    elf_lookup(elf, "__vdso_clock_gettime", &addr, NULL))
		cr_skip_test("a vdso without clock_gettime");
	cr_assert_eq(native_symbol(maps, base + addr, &name), 0);
	cr_assert(strstr(name, "clock_gettime"), "%s", name);
	elf_close(&elf);
	native_maps_free(&maps);
	native_free(&n);
}

static void copy_file(const char *from, const char *to)
{
	char cmd[512];

	snprintf(cmd, sizeof(cmd), "cp %s %s", from, to);
	cr_assert_eq(system(cmd), 0);
}

/* Has pid, which was forked to run exe, got as far as to sleep? */
static bool sleeps(pid_t pid, const char *exe)
{
	char path[64], was[256] = "", state = 0;
	FILE *f __fclose = NULL;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	if (readlink(path, was, sizeof(was) - 1) < 0 || !strstr(was, exe))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	return f && fscanf(f, "%*d (%*[^)]) %c", &state) == 1 && state == 'S';
}

/* A process that sleeps, with a library preloaded. */
static pid_t start(const char *exe, const char *lib)
{
	pid_t pid = fork();

	if (!pid) {
		if (lib)
			setenv("LD_PRELOAD", lib, 1);
		execl(exe, exe, "600", (char *)NULL);
		_exit(127);
	}
	while (!sleeps(pid, exe))
		usleep(1000);
	return pid;
}

/* What native_symbol() says of a function of the deleted gone.so in pid. */
static int gone_symbol(struct native_maps *maps, pid_t pid, const char *symbol, const char **name)
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
			err = native_symbol(maps, vaddr + bias, name);
		elf_close(&elf);
		break;
	}
	return err;
}

Test(native, deleted_library_and_process_that_ended)
{
	char lib[] = "/tmp/native-XXXXXX", path[64];
	const char *name = NULL;
	struct native_maps *maps = NULL;
	struct native *n = NULL;
	pid_t pid;
	int err;

	if (geteuid())
		cr_skip_test("deleted files need map_files, which needs root");
	cr_assert(mkdtemp(lib));
	snprintf(path, sizeof(path), "%s/gone.so", lib);
	copy_file(LIBZ, path);
	pid = start("/bin/sleep", path);
	unlink(path);
	rmdir(lib);
	cr_assert_eq(native_new(&n), 0);
	cr_assert_eq(native_maps_new(n, pid, &maps), 0);
	err = gone_symbol(maps, pid, "deflateInit_", &name);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	cr_assert_eq(err, 0, "%d", err);
	cr_assert_str_eq(name, "deflateInit_");
	/* what was learnt stays */
	cr_assert_eq(native_symbol(maps, 16, &name), -ENOENT);
	native_maps_free(&maps);
	cr_assert_eq(native_maps_new(n, pid, &maps), 0);
	cr_assert_eq(native_symbol(maps, 16, &name), -ESRCH);
	native_maps_free(&maps);
	native_free(&n);
}

/* A library of ours, mapped into this process; a function in it that has a name. */
struct mapped {
	char dir[32], path[64];
	int fd;
	uint8_t *text;
	size_t size;
	uint64_t function;
};

static void mapped_new(struct mapped *m)
{
	struct elf_file *elf = NULL;
	uint64_t vaddr, size;
	struct stat st;

	snprintf(m->dir, sizeof(m->dir), "/tmp/native-XXXXXX");
	cr_assert(mkdtemp(m->dir));
	snprintf(m->path, sizeof(m->path), "%s/mapped.so", m->dir);
	copy_file(LIBZ, m->path);
	m->fd = open(m->path, O_RDWR | O_CLOEXEC);
	cr_assert(m->fd >= 0 && !fstat(m->fd, &st));
	m->size = (size_t)st.st_size;
	m->text = mmap(NULL, m->size, PROT_READ | PROT_EXEC, MAP_PRIVATE, m->fd, 0);
	cr_assert_neq(m->text, MAP_FAILED);
	cr_assert_eq(elf_open(m->path, &elf), 0);
	cr_assert_eq(elf_lookup(elf, "deflateInit_", &vaddr, &size), 0);
	m->function = (uint64_t)m->text + vaddr;
	elf_close(&elf);
}

static void mapped_free(struct mapped *m)
{
	munmap(m->text, m->size);
	close(m->fd);
	unlink(m->path);
	rmdir(m->dir);
}

Test(native, library_that_is_overwritten)
{
	struct timespec later = {.tv_sec = 2000000000};
	struct native_maps *maps = NULL;
	struct native *n = NULL;
	const char *name = NULL;
	struct mapped m;
	uint8_t *at;

	mapped_new(&m);
	cr_assert_eq(native_new(&n), 0);
	cr_assert_eq(native_maps_new(n, getpid(), &maps), 0);
	cr_assert_eq(native_symbol(maps, m.function, &name), 0);
	cr_assert_str_eq(name, "deflateInit_");
	at = memmem(m.text, m.size, "\0deflateInit_", 14);
	cr_assert_not_null(at);
	cr_assert_eq(pwrite(m.fd, "m", 1, at + 1 - m.text), 1);
	cr_assert_eq(futimens(m.fd, (struct timespec[]){later, later}), 0);
	cr_assert_eq(native_learn(maps), 0);
	cr_assert_eq(native_symbol(maps, m.function, &name), 0);
	cr_assert_str_eq(name, "meflateInit_");
	native_maps_free(&maps);
	native_free(&n);
	mapped_free(&m);
}

/* A process may map thousands of files: those of which no sample showed anything cost nothing. */
Test(native, only_what_was_shown_is_asked_for_changes)
{
	struct timespec times[] = {{.tv_sec = 2000000000}, {.tv_sec = 2000000000}};
	struct native_maps *maps = NULL;
	struct native *n = NULL;
	const char *name = NULL;
	struct mapped m;
	uint64_t id;

	mapped_new(&m);
	cr_assert_eq(native_new(&n), 0);
	cr_assert_eq(native_maps_new(n, getpid(), &maps), 0);
	cr_assert_eq(native_learn(maps), 0);
	id = native_maps_id(maps);
	cr_assert_eq(futimens(m.fd, times), 0);
	cr_assert_eq(native_learn(maps), 0);
	cr_expect_eq(native_maps_id(maps), id, "it was not asked");
	cr_assert_eq(native_symbol(maps, m.function, &name), 0);
	cr_assert_eq(native_learn(maps), 0);
	cr_expect_neq(native_maps_id(maps), id, "it was written to");
	id = native_maps_id(maps);
	cr_assert_eq(native_learn(maps), 0);
	cr_expect_eq(native_maps_id(maps), id, "and was not since");
	native_maps_free(&maps);
	native_free(&n);
	mapped_free(&m);
}

static size_t open_files(void)
{
	DIR *dir __closedir = opendir("/proc/self/fd");
	size_t n = 0;

	cr_assert(dir);
	/* opened while another test has a FUSE file system mounted */
	reader_close();
	pager_close();
	while (readdir(dir))
		n++;
	return n;
}

/* Programs that come and go, each of a file of its own. */
Test(native, files_that_are_mapped_no_more)
{
	struct native_maps *maps = NULL;
	struct native *n = NULL;
	size_t before = open_files(), i;
	const char *name = NULL;
	struct mapped stays;

	mapped_new(&stays);
	cr_assert_eq(native_new(&n), 0);
	cr_assert_eq(native_maps_new(n, getpid(), &maps), 0);
	for (i = 0; i < 200; i++) {
		struct mapped m;

		mapped_new(&m);
		cr_assert_eq(native_learn(maps), 0);
		mapped_free(&m);
	}
	cr_expect_lt(open_files(), before + 150, "%zu, then %zu", before, open_files());
	cr_assert_eq(native_symbol(maps, stays.function, &name), 0);
	cr_expect_str_eq(name, "deflateInit_");
	native_maps_free(&maps);
	native_free(&n);
	mapped_free(&stays);
	cr_expect_eq(open_files(), before);
}

/* It is not taken for a file without symbols. */
Test(native, no_descriptor_is_left)
{
	int left = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct rlimit before, tight;
	struct native_maps *maps = NULL;
	struct native *n = NULL;
	const char *name = NULL;
	struct mapped m;

	mapped_new(&m);
	cr_assert_eq(native_new(&n), 0);
	cr_assert_eq(native_maps_new(n, getpid(), &maps), 0);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	tight = before;
	tight.rlim_cur = (rlim_t)left + 1; /* for /proc/PID/maps, and no other */
	close(left);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &tight), 0);
	cr_expect_neq(native_symbol(maps, m.function, &name), 0);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	cr_assert_eq(native_learn(maps), 0);
	cr_assert_eq(native_symbol(maps, m.function, &name), 0);
	cr_expect_str_eq(name, "deflateInit_");
	native_maps_free(&maps);
	native_free(&n);
	mapped_free(&m);
}

/* A JIT's, or text that was moved into huge pages. */
Test(native, code_of_no_file)
{
	const size_t page = 4096, n = 3;
	struct native_maps *maps = NULL;
	struct native *native = NULL;
	const char *name = NULL;
	uint64_t id, data, code;

	data = (uint64_t)mmap(NULL, n * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			      -1, 0);
	cr_assert_neq((void *)data, MAP_FAILED);
	code = data + page;
	cr_assert_eq(native_new(&native), 0);
	cr_assert_eq(native_maps_new(native, getpid(), &maps), 0);
	cr_assert_eq(native_learn(maps), 0);
	cr_expect(!native_is_code(maps, code));
	id = native_maps_id(maps);
	cr_assert_eq(mprotect((void *)code, page, PROT_READ | PROT_EXEC), 0);
	cr_assert_eq(native_learn(maps), 0);
	cr_expect(!native_is_code(maps, code - 1));
	cr_expect(native_is_code(maps, code));
	cr_expect(native_is_code(maps, code + page - 1));
	cr_expect(!native_is_code(maps, code + page));
	cr_expect(native_is_code(maps, (uint64_t)native_test_function));
	cr_expect_eq(native_symbol(maps, code, &name), -ENOENT);
	cr_expect_eq(native_maps_id(maps), id, "no file's mapping has changed");
	native_maps_free(&maps);
	native_free(&native);
	munmap((void *)data, n * page);
}

/* What a process has forked has the same mappings, though it may have ended already. */
Test(native, fork)
{
	const uint64_t addr = (uintptr_t)native_test_function;
	struct native_maps *of_child = NULL, *of_parent = NULL;
	struct native *n = NULL;
	const char *name = NULL;
	pid_t child = fork();

	if (!child)
		_exit(0);
	cr_assert_gt(child, 0);
	cr_assert_eq(waitpid(child, NULL, 0), child);
	cr_assert_eq(native_new(&n), 0);
	cr_assert_eq(native_maps_new(n, child, &of_child), 0);
	cr_assert_eq(native_maps_new(n, getpid(), &of_parent), 0);
	cr_expect_eq(native_fork(of_child, of_parent), -ESRCH, "nothing is known of either");
	cr_expect_eq(native_symbol(of_child, addr, &name), -ESRCH);
	cr_assert_eq(native_learn(of_parent), 0);
	cr_assert_eq(native_fork(of_child, of_parent), 0);
	cr_assert_eq(native_fork(of_child, of_parent), 0, "again");
	cr_expect_eq(native_maps_id(of_child), native_maps_id(of_parent));
	native_maps_free(&of_parent);
	cr_assert_eq(native_symbol(of_child, addr, &name), 0);
	cr_assert_str_eq(name, "native_test_function");
	native_maps_free(&of_child);
	native_free(&n);
}

/* A process may map thousands of small files to run them. */
Test(native, many_mapped_files)
{
	size_t before = open_files(), n = 1100, i;
	void **at = calloc(n, sizeof(*at));
	struct native_maps *maps = NULL;
	struct native *native = NULL;

	for (i = 0; i < n; i++) {
		int fd = memfd_create("small", MFD_CLOEXEC);

		cr_assert(fd >= 0 && !ftruncate(fd, 4096));
		cr_assert_eq(pwrite(fd, "\177ELF\2\1\1", 7, 0), 7);
		at[i] = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		cr_assert_neq(at[i], MAP_FAILED);
		close(fd);
	}
	cr_assert_eq(native_new(&native), 0);
	cr_assert_eq(native_maps_new(native, getpid(), &maps), 0);
	cr_assert_eq(native_learn(maps), 0);
	cr_expect_leq(open_files(), before + 1024, "%zu, then %zu", before, open_files());
	native_maps_free(&maps);
	native_free(&native);
	for (i = 0; i < n; i++)
		munmap(at[i], 4096);
	free(at);
}
