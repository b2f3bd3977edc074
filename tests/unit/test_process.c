// SPDX-License-Identifier: BSD-2-Clause
/* Processes from /proc: threads, mappings, and which VMs a process has. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "file_bytes.h"
#include "proc/elf.h"
#include "detect/lj/sites.h"
#include "proc/process.h"
#include "detect/scan.h"

#define NO_PID 0x3ffffffe /* above any pid_max */

struct threads {
	int n, stop_at;
	bool self;
};

static int on_thread(void *arg, pid_t tid)
{
	struct threads *t = arg;

	t->n++;
	t->self |= tid == gettid();
	return t->n == t->stop_at ? 7 : 0;
}

struct sleeper {
	pthread_t thread;
	int ready[2], end[2];
	pid_t tid;
};

static void *sleeps(void *arg)
{
	struct sleeper *s = arg;
	char c;

	s->tid = gettid();
	if (write(s->ready[1], "", 1) == 1 && read(s->end[0], &c, 1) < 0)
		return s;
	return NULL;
}

static void sleeper_start(struct sleeper *s)
{
	char c;

	cr_assert_eq(pipe(s->ready) | pipe(s->end), 0);
	cr_assert_eq(pthread_create(&s->thread, NULL, sleeps, s), 0);
	cr_assert_eq(read(s->ready[0], &c, 1), 1);
}

static void sleeper_end(struct sleeper *s)
{
	cr_expect_eq(write(s->end[1], "", 1), 1);
	pthread_join(s->thread, NULL);
}

Test(process, threads)
{
	struct sleeper a, b;
	struct threads t = {};

	sleeper_start(&a);
	sleeper_start(&b);
	cr_expect_eq(process_threads(getpid(), on_thread, &t), 0);
	cr_expect_geq(t.n, 3);
	cr_expect(t.self);
	t = (struct threads){.stop_at = 2};
	cr_expect_eq(process_threads(getpid(), on_thread, &t), 7);
	cr_expect_eq(t.n, 2);
	cr_expect_eq(process_threads(NO_PID, on_thread, &t), -ESRCH);
	sleeper_end(&a);
	sleeper_end(&b);
}

Test(process, check)
{
	struct sleeper s;
	struct error err = {};

	sleeper_start(&s);
	cr_expect_eq(process_check(getpid(), &err), 0);
	cr_expect_eq(process_check(NO_PID, &err), -ESRCH);
	cr_expect_not_null(strstr(err.what, "no such process"));
	cr_expect_eq(process_check(s.tid, &err), -ENOTUNIQ);
	cr_expect_not_null(strstr(err.what, "a thread of process"));
	cr_expect_not_null(strstr(err.remedy, "luabpf -p "));
	sleeper_end(&s);
}

Test(process, check_of_a_zombie)
{
	struct error err = {};
	siginfo_t info;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	cr_assert_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	cr_expect_eq(process_check(pid, &err), -ESRCH);
	cr_expect_not_null(strstr(err.what, "has ended"));
	waitpid(pid, NULL, 0);
}

struct process_mapped {
	int n;
	uint64_t last, addr; /* addr: the mapping that holds it is kept */
	struct process_mapping at;
	char path[512];
};

static int on_mapping(void *arg, const struct process_mapping *m)
{
	struct process_mapped *all = arg;

	cr_expect_lt(m->start, m->end);
	cr_expect_geq(m->start, all->last);
	cr_expect_eq(m->path[0], '/');
	all->last = m->end;
	all->n++;
	if (all->addr >= m->start && all->addr < m->end) {
		all->at = *m;
		snprintf(all->path, sizeof(all->path), "%s", m->path);
	}
	return 0;
}

Test(process, mappings)
{
	struct process_mapped m = {.addr = (uint64_t)on_mapping};
	struct stat mapped, exe;
	int fd __close = -1;

	cr_assert_eq(process_mappings(getpid(), on_mapping, &m, NULL), 0);
	cr_expect_geq(m.n, 2, "this program and libc");
	m.at.path = m.path;
	fd = process_open_mapping(getpid(), &m.at);
	cr_assert_geq(fd, 0);
	cr_assert_eq(fstat(fd, &mapped) | stat("/proc/self/exe", &exe), 0);
	cr_expect_eq(mapped.st_ino, exe.st_ino);
	cr_expect_eq(process_mappings(NO_PID, on_mapping, &m, NULL), -ESRCH);
}

static int count_mapping(void *arg, const struct process_mapping *m)
{
	(void)m;
	++*(int *)arg;
	return 0;
}

/* A process may have a million: so many are read as the caller allows. */
Test(process, mappings_beyond_a_bound)
{
	int all = 0, some = 0;
	size_t n = SIZE_MAX, first;

	cr_assert_eq(process_code(getpid(), count_mapping, &all, &n), 0);
	first = n / 2;
	n = first;
	cr_assert_eq(process_code(getpid(), count_mapping, &some, &n), 0);
	cr_expect_eq(n, first);
	cr_expect(some < all, "%d of %d", some, all); /* the last is [vsyscall], or [vdso] */
}

static int on_mapping_that_ends_it(void *arg, const struct process_mapping *m)
{
	pid_t *pid = arg;

	(void)m;
	if (*pid) {
		kill(*pid, SIGKILL);
		waitpid(*pid, NULL, 0);
	}
	*pid = 0;
	return 0;
}

/* The rest of its mappings cannot be read: the first ones alone are not what it had. */
Test(process, mappings_of_one_that_ends_meanwhile)
{
	pid_t pid = fork();

	if (!pid) {
		pause();
		_exit(0);
	}
	cr_expect_eq(process_mappings(pid, on_mapping_that_ends_it, &pid, NULL), -ESRCH);
	cr_expect_eq(pid, 0);
}

/* Functions of the program, not of its libraries. */
Test(process, text)
{
	uint64_t start, end, own = (uint64_t)count_mapping, libc = (uint64_t)getpid;

	process_text(getpid(), &start, &end);
	cr_expect(own >= start && own < end);
	cr_expect(libc < start || libc >= end);
	process_text(NO_PID, &start, &end);
	cr_expect_eq(end, 0);
}

Test(process, exe)
{
	char name[8] = "xxxxxxx", path[512], want[512] = "";

	cr_expect_gt(readlink("/proc/self/exe", want, sizeof(want) - 1), 0);
	prctl(PR_SET_NAME, strrchr(want, '/') + 1);
	process_name(getpid(), path, sizeof(path));
	cr_expect_str_eq(path, want);
	prctl(PR_SET_NAME, "other");
	process_name(getpid(), path, sizeof(path));
	cr_expect_eq(strncmp(path, "other (/", 8), 0, "%s", path);
	process_name(getpid(), name, sizeof(name));
	cr_expect_eq(strlen(name), 7, "cut, and terminated");
	process_name(NO_PID, name, sizeof(name));
	cr_expect_str_empty(name);
}

/* Arguments with blanks between; what a program wrote over them, padded; its name if it has none. */
Test(process, command)
{
	char *const argv[] = {"sh", "-c", "read x", "a\033", "", NULL};
	char command[64], small[8];
	int fd[2], status;
	pid_t pid;

	cr_assert_eq(pipe(fd), 0);
	pid = fork();
	if (!pid) {
		dup2(fd[0], 0);
		close(fd[1]);
		execv("/bin/sh", argv);
		_exit(127);
	}
	do
		process_command(pid, command, sizeof(command));
	while (strncmp(command, "sh -", 4) != 0 && !waitpid(pid, &status, WNOHANG));
	cr_expect_str_eq(command, "sh -c read x a\033");
	process_command(pid, small, sizeof(small));
	cr_expect_str_eq(small, "sh -c r");
	close(fd[1]);
	cr_expect_eq(waitpid(pid, &status, 0), pid);
	process_command(pid, command, sizeof(command));
	cr_expect_str_empty(command);
	process_command(2, command, sizeof(command)); /* the kernel's own, or nothing */
	cr_expect(!strchr(command, ' '), "%s", command);
}

Test(scan, no_vm)
{
	struct scan *scan __cleanup(scan_free) = NULL;
	struct lb_proc proc = {.nmodules = 9};
	struct error err = {};

	cr_assert_eq(scan_new(&scan), 0);
	cr_expect_eq(scan_process(scan, getpid(), &proc, &err), 0);
	cr_expect_eq(proc.nmodules, 0);
	cr_expect_null(scan_build(scan, 0));
	cr_expect_eq(scan_process(scan, NO_PID, &proc, &err), -ESRCH);
}

/* With the library in this process its text is found where it is mapped, twice the same. */
Test(scan, this_process)
{
	struct scan *scan __cleanup(scan_free) = NULL;
	void *lib = dlopen("libluajit-5.1.so.2", RTLD_NOW | RTLD_LOCAL), *symbol;
	struct lb_proc proc = {};
	struct error err = {};
	int i;

	if (!lib)
		cr_assert(false, "no libluajit-5.1.so.2 is installed");
	symbol = dlsym(lib, "lua_newstate");
	cr_assert_eq(scan_new(&scan), 0);
	for (i = 0; i < 2; i++) {
		cr_assert_eq(scan_process(scan, getpid(), &proc, &err), 0, "%s", err.what);
		cr_assert_eq(proc.nmodules, 1);
		cr_expect_eq(scan_modules(scan)[0].build, 0);
		cr_expect_lt(scan_modules(scan)[0].vm_start, scan_modules(scan)[0].vm_end);
		cr_expect_geq(scan_modules(scan)[0].vm_start, scan_modules(scan)[0].text_lo);
		cr_expect_leq(scan_modules(scan)[0].vm_end, scan_modules(scan)[0].text_hi);
		cr_expect((uint64_t)symbol >= scan_modules(scan)[0].text_lo &&
			  (uint64_t)symbol < scan_modules(scan)[0].text_hi);
	}
	cr_expect_not_null(scan_build(scan, 0));
	cr_expect_null(scan_build(scan, 1));
	dlclose(lib);
}

#define LUA "/usr/bin/lua5.4"
#define LUAJIT "/usr/bin/luajit"

/* A file that is mapped as a process that executes it would have it mapped. */
struct process_image {
	char path[32];
	struct file_bytes file;
	void *text;
};

static void image_read(struct process_image *f, const char *path)
{
	if (!file_bytes_read(path, &f->file))
		cr_assert(false, "%s is not installed", path);
}

static Elf64_Phdr *image_segment(struct process_image *f, uint32_t type, uint32_t flags)
{
	const Elf64_Ehdr *eh = (const Elf64_Ehdr *)f->file.bytes;
	Elf64_Phdr *ph = (Elf64_Phdr *)(f->file.bytes + eh->e_phoff);
	uint16_t i;

	for (i = 0; i < eh->e_phnum; i++)
		if (ph[i].p_type == type && (ph[i].p_flags & flags) == flags)
			return &ph[i];
	cr_assert_fail("no segment of type %u", type);
	return NULL;
}

static void image_map(struct process_image *f)
{
	const Elf64_Phdr *text = image_segment(f, PT_LOAD, PF_X);
	int fd __close = -1;

	snprintf(f->path, sizeof(f->path), "/tmp/scan-XXXXXX");
	fd = mkostemp(f->path, O_CLOEXEC);
	cr_assert(fd >= 0 && write(fd, f->file.bytes, f->file.len) == (ssize_t)f->file.len);
	f->text = mmap(NULL, text->p_filesz, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
		       (off_t)text->p_offset & ~4095);
	cr_assert_neq(f->text, MAP_FAILED);
}

static void image_unmap(struct process_image *f)
{
	munmap(f->text, image_segment(f, PT_LOAD, PF_X)->p_filesz);
	unlink(f->path);
}

/* Another segment ends in the page of the file in which text begins, as lld has it. */
Test(scan, text_in_a_shared_page)
{
	struct scan *scan __cleanup(scan_free) = NULL;
	const struct vm_build *b;
	struct lb_proc proc = {};
	struct error err = {};
	struct process_image f = {};
	Elf64_Phdr *first, *text;

	image_read(&f, LUA);
	text = image_segment(&f, PT_LOAD, PF_X);
	first = image_segment(&f, PT_PHDR, 0);
	*first = (Elf64_Phdr){.p_type = PT_LOAD,
			      .p_flags = PF_R,
			      .p_offset = text->p_offset,
			      .p_vaddr = text->p_vaddr + (16 << 20),
			      .p_filesz = 16};
	image_map(&f);
	cr_assert_eq(scan_new(&scan), 0);
	cr_assert_eq(scan_process(scan, getpid(), &proc, &err), 0, "%s", err.what);
	cr_assert_eq(proc.nmodules, 1);
	b = scan_build(scan, 0);
	cr_expect_eq(scan_modules(scan)[0].vm_start - (uint64_t)f.text, b->start - text->p_vaddr);
	cr_expect_eq(scan_modules(scan)[0].gc_lo - (uint64_t)f.text, b->gc_lo - text->p_vaddr);
	image_unmap(&f);
	free(f.file.bytes);
}

/* A file that is mapped more often than a process has VMs that are sampled. */
Test(scan, too_many_vms)
{
	struct scan *scan __cleanup(scan_free) = NULL;
	const size_t more = LB_MODULES_MOST + 2;
	const struct lb_module *modules;
	struct lb_proc proc = {};
	struct error err = {};
	struct process_image f = {};
	const Elf64_Phdr *text;
	int fd;

	image_read(&f, LUA);
	text = image_segment(&f, PT_LOAD, PF_X);
	image_map(&f);
	fd = open(f.path, O_RDONLY | O_CLOEXEC);
	for (size_t i = 1; i < more; i++)
		cr_assert_neq(mmap(NULL, text->p_filesz, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
				   (off_t)text->p_offset & ~4095),
			      MAP_FAILED);
	close(fd);
	cr_assert_eq(scan_new(&scan), 0);
	cr_assert_eq(scan_process(scan, getpid(), &proc, &err), 0);
	cr_expect_eq(proc.nmodules, LB_MODULES_MOST);
	cr_expect_eq(proc.unsampled, 1);
	cr_expect_not_null(strstr(err.what, "it is not sampled: 256 other files hold a VM"), "%s",
			   err.what);
	modules = scan_modules(scan);
	for (uint32_t i = 1; i < LB_MODULES_MOST; i++)
		cr_assert(modules[i].id == i && modules[i].text_lo >= modules[i - 1].text_hi);
	image_unmap(&f);
	free(f.file.bytes);
}

/* The file's n-th variant: what follows some calls of its VM is no instruction. */
static void vary(const struct process_image *f, unsigned n)
{
	struct elf_file *elf = NULL;
	struct elf_lj_vm vm;
	struct lj_site sites[96];
	uint64_t at = 0;
	size_t nsites = 0, i;

	cr_assert_eq(elf_open_bytes(f->file.bytes, f->file.len, &elf), 0);
	cr_assert_eq(elf_find_lj_vm(elf, &vm), 0);
	cr_assert_eq(elf_offset(elf, vm.start, &at), 0);
	cr_assert_eq(elf_lj_rbp_sites(elf, &vm, false, sites, 96, &nsites), 0);
	for (i = 0; n; i++, n >>= 1) {
		cr_assert_lt(i, nsites);
		if (n & 1)
			f->file.bytes[at + sites[i].ret] = 0x06;
	}
	elf_close(&elf);
}

/* A program that is built again and again, while it is recorded. */
Test(scan, too_many_builds)
{
	struct scan *scan __cleanup(scan_free) = NULL;
	struct lb_proc proc = {};
	struct error err = {};
	struct process_image f = {};
	unsigned i;

	cr_assert_eq(scan_new(&scan), 0);
	for (i = 0; i < LB_BUILDS; i++) {
		image_read(&f, LUAJIT);
		vary(&f, i);
		image_map(&f);
		cr_assert_eq(scan_process(scan, getpid(), &proc, &err), 0, "%s", err.what);
		cr_assert_eq(proc.nmodules, 1);
		cr_assert_eq(scan_modules(scan)[0].build, i);
		image_unmap(&f);
		free(f.file.bytes);
	}
	image_read(&f, LUAJIT);
	vary(&f, i);
	image_map(&f);
	for (i = 0; i < 2; i++) {
		err = (struct error){};
		cr_expect_eq(scan_process(scan, getpid(), &proc, &err), -ENOTSUP);
		cr_expect_eq(proc.nmodules, 0);
		cr_expect_not_null(strstr(err.what, "64 other builds of VMs are known"), "%s",
				   err.what);
		cr_expect_not_null(strstr(err.what, f.path), "%s", err.what);
	}
	image_unmap(&f);
	free(f.file.bytes);
}

Test(process, exec_pages)
{
	uint32_t before = process_exec_pages(getpid());
	void *code =
		mmap(NULL, 3 * 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_expect_gt(before, 100);
	cr_assert_neq(code, MAP_FAILED);
	cr_expect_eq(process_exec_pages(getpid()), before + 3);
	cr_assert_eq(munmap(code, 3 * 4096), 0);
	cr_expect_eq(process_exec_pages(getpid()), before);
	cr_expect_eq(process_exec_pages(NO_PID), 0);
}

/* Of two children one runs another program. */
Test(process, workers)
{
	pid_t worker = fork(), other, found[2];

	if (!worker) {
		pause();
		_exit(0);
	}
	cr_assert_gt(worker, 0);
	other = fork();
	if (!other) {
		execlp("sleep", "sleep", "600", NULL);
		_exit(1);
	}
	cr_assert_gt(other, 0);
	while (process_workers(getpid(), found, 2) != 1) /* the other has called exec by then */
		usleep(1000);
	cr_expect_eq(found[0], worker);
	cr_expect_eq(process_children(getpid(), found, 2), 2);
	cr_expect(found[0] == worker && found[1] == other);
	kill(worker, SIGKILL);
	kill(other, SIGKILL);
	waitpid(worker, NULL, 0);
	waitpid(other, NULL, 0);
	cr_expect_eq(process_workers(getpid(), found, 2), 0);
	cr_expect_eq(process_children(getpid(), found, 2), 0);
	cr_expect_eq(process_workers(NO_PID, found, 2), 0);
}
