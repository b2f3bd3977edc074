// SPDX-License-Identifier: BSD-2-Clause
/*
 * The door to memory in the kernel (luabpf/mem.h) reads what the kernel's own helper reads, and
 * fails where that fails: over all kinds of pages that a process can have. Once with copies, and
 * once more in place where the kernel can. Prints "N passed, N failed"; exits with 0 when all are
 * equal.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <luabpf/selftest.h>

#include "bpf/direct.h"
#include "selftest.direct.skel.h"
#include "selftest.skel.h"

#define PAGE 4096u
#define HUGE (2u << 20)
#define WORD UINT64_C(0x1122334455667788)

static unsigned int passed, failed;

struct door {
	int prog, reads;
	bool direct;
};

static void expect(const struct door *door, const char *what, uint64_t addr)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	struct lb_selftest_read r = {.addr = addr};
	__u32 zero = 0;
	bool same;

	if (bpf_map_update_elem(door->reads, &zero, &r, 0) ||
	    bpf_prog_test_run_opts(door->prog, &opts) || opts.retval ||
	    bpf_map_lookup_elem(door->reads, &zero, &r)) {
		printf("FAILED %s: not run\n", what);
		failed++;
		return;
	}
	same = !r.error[0] == !r.error[1] && (r.error[1] || r.word[0] == r.word[1]);
	passed += same;
	failed += !same;
	if (!same)
		printf("FAILED %s, %s: %d %#llx, the kernel: %d %#llx\n", what,
		       door->direct ? "in place" : "copies", r.error[0], r.word[0], r.error[1],
		       r.word[1]);
}

/* Three pages, as mmap() makes them; the first word of each is written when prot allows. */
static char *map(int prot, int flags, int fd)
{
	char *p = mmap(NULL, 3 * PAGE, prot, flags, fd, 0);

	if (p == MAP_FAILED)
		return NULL;
	for (size_t i = 0; i < 3 && prot & PROT_WRITE; i++)
		memcpy(p + i * PAGE, &(uint64_t){WORD + i}, 8);
	return p;
}

static void anonymous(const struct door *door)
{
	char *p = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	char *untouched = map(PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	if (!p || !untouched)
		exit(1);
	expect(door, "written", (uintptr_t)p);
	expect(door, "at the end of a page", (uintptr_t)p + PAGE - 8);
	expect(door, "across pages", (uintptr_t)p + PAGE - 4);
	mprotect(p + PAGE, PAGE, PROT_READ);
	expect(door, "read only", (uintptr_t)p + PAGE);
	mprotect(p + PAGE, PAGE, PROT_NONE);
	expect(door, "PROT_NONE", (uintptr_t)p + PAGE);
	expect(door, "across into PROT_NONE", (uintptr_t)p + PAGE - 4);
	munmap(p + PAGE, PAGE);
	expect(door, "unmapped", (uintptr_t)p + PAGE);
	madvise(p, PAGE, MADV_DONTNEED);
	expect(door, "given back", (uintptr_t)p);
	memcpy(p, &(uint64_t){WORD + 7}, 8);
	expect(door, "another in its place", (uintptr_t)p);
	expect(door, "untouched", (uintptr_t)untouched);
	(void)*(volatile char *)untouched;
	expect(door, "page of zeros", (uintptr_t)untouched);
}

/* A child with a page of its own at addr, of the parent's age, which stops with it in hand. */
static pid_t child_with(const struct door *door, char *p, uint64_t word)
{
	pid_t child = fork();

	if (child)
		return child;
	memcpy(p, &word, 8);
	failed = passed = 0;
	expect(door, "a child's own", (uintptr_t)p);
	raise(SIGSTOP);
	_exit(failed || !passed);
}

/* What was read before may be elsewhere now, or another's. */
static void moved(const struct door *door)
{
	char *p = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1), *other;
	uint64_t addr = (uintptr_t)p;
	pid_t child[3];

	if (!p)
		exit(1);
	expect(door, "before", addr);
	for (size_t i = 0; i < 3; i++) { /* the same addresses, and as many flushes */
		child[i] = child_with(door, p, WORD + 21 + i);
		if (child[i] < 0 || waitpid(child[i], NULL, WUNTRACED) != child[i])
			exit(1);
	}
	memcpy(p, &(uint64_t){WORD + 11}, 8);
	expect(door, "written after a fork", addr);
	for (size_t i = 0; i < 3; i++) {
		int status;

		if (kill(child[i], SIGCONT) || waitpid(child[i], &status, 0) != child[i])
			exit(1);
		passed += !status;
		failed += !!status;
	}
	memcpy(p, &(uint64_t){WORD + 12}, 8);
	expect(door, "alone again", addr);
	other = map(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	if (!other || mremap(other + PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, p) != p)
		exit(1);
	expect(door, "moved here", addr);
	expect(door, "moved away", (uintptr_t)other + PAGE);
}

static void huge(const struct door *door)
{
	char *p = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *at = p + HUGE - (uintptr_t)p % HUGE;

	if (p == MAP_FAILED)
		exit(1);
	madvise(at, HUGE, MADV_HUGEPAGE);
	(void)*(volatile char *)at;
	expect(door, "huge page of zeros", (uintptr_t)at + 5 * PAGE);
	for (size_t i = 0; i < HUGE; i += 8)
		memcpy(at + i, &(uint64_t){WORD + i}, 8);
	expect(door, "huge page", (uintptr_t)at + 300 * PAGE + 80);
	madvise(at + 300 * PAGE, PAGE, MADV_DONTNEED);
	expect(door, "a hole in it", (uintptr_t)at + 300 * PAGE + 80);
	memcpy(at + 300 * PAGE + 80, &(uint64_t){WORD + 9}, 8);
	expect(door, "filled", (uintptr_t)at + 300 * PAGE + 80);
	expect(door, "beside it", (uintptr_t)at + 301 * PAGE + 80);
	munmap(p, 2 * HUGE);
}

static void files(const struct door *door)
{
	int exe = open("/proc/self/exe", O_RDONLY), secret = (int)syscall(SYS_memfd_secret, 0);
	int shared = memfd_create("pages", 0);
	char *p;

	p = map(PROT_READ, MAP_PRIVATE | MAP_POPULATE, exe);
	if (!p || shared < 0 || ftruncate(shared, 3 * PAGE))
		exit(1);
	expect(door, "of a file", (uintptr_t)p);
	expect(door, "text", (uintptr_t)expect & ~7ul);
	p = map(PROT_READ | PROT_WRITE, MAP_SHARED, shared);
	expect(door, "shared", (uintptr_t)p + PAGE);
	/* the kernel has it not mapped: in place, it would be zeros */
	if (secret >= 0 && !ftruncate(secret, 3 * PAGE) &&
	    (p = map(PROT_READ | PROT_WRITE, MAP_SHARED, secret))) {
		expect(door, "secret", (uintptr_t)p + PAGE);
		memcpy(p + PAGE, &(uint64_t){WORD + 5}, 8);
		expect(door, "secret, written again", (uintptr_t)p + PAGE);
	}
}

static void nowhere(const struct door *door)
{
	static const uint64_t addrs[] = {
		0,
		8,
		0x7fffffffeff8,
		0x7ffffffff000,
		0x800000000000,
		0xffff800000000000,
		0xffff888000000000,
		0xffffffff81000000,
		0xffffffffff600000,
		~UINT64_C(7),
	};
	unsigned long vdso = getauxval(AT_SYSINFO_EHDR);

	for (size_t i = 0; i < sizeof(addrs) / sizeof(addrs[0]); i++)
		expect(door, "no address of a process's", addrs[i]);
	expect(door, "vdso", vdso);
	for (unsigned long i = 1; i <= 8;
	     i++) /* [vvar]: a clock, its pages come and go by version */
		expect(door, "below vdso", vdso - i * PAGE + 0xff8);
}

static int run(bool direct)
{
	struct selftest_bpf *skel = DIRECT_OPEN(selftest, direct, NULL);
	struct door door = {.direct = direct};

	if (!skel)
		return -1;
	if (selftest_bpf__load(skel) ||
	    (direct && !direct_prove(bpf_program__fd(skel->progs.luabpf_prove)))) {
		fprintf(stderr, "pages: the program does not load, or is not proved\n");
		return -1;
	}
	door.prog = bpf_program__fd(skel->progs.luabpf_selftest_read);
	door.reads = bpf_map__fd(skel->maps.reads);
	anonymous(&door);
	moved(&door);
	huge(&door);
	files(&door);
	nowhere(&door);
	selftest_bpf__destroy(skel);
	return 0;
}

int main(void)
{
	struct kernel_cast cast;

	setvbuf(stdout, NULL, _IOLBF, 0); /* children print, too */
	kernel_btf_open(NULL, 0, NULL, &cast);
	if (direct_set_cast(&cast) || run(false) || (cast.function && run(true)))
		return 1;
	printf("%u passed, %u failed\n", passed, failed);
	return failed || !passed;
}
