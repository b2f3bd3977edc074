/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem_gather.h"
#include "base/mem_image.h"
#include "base/mem_limited.h"
#include "base/mem_pages.h"
#include "base/mem_remote.h"
#include "base/mem_vec.h"

Test(mem, image_reads_whole_or_not)
{
	struct mem_image img;
	char buf[8] = "";

	mem_image_init(&img);
	cr_assert_eq(mem_read(&img.mem, buf, 1, 0x1000), -EFAULT);
	cr_assert_eq(mem_image_add(&img, 0x1000, "abcdef", 6), 0);
	cr_assert_eq(mem_read(&img.mem, buf, 6, 0x1000), 0);
	cr_assert_str_eq(buf, "abcdef");
	cr_assert_eq(mem_read(&img.mem, buf, 1, 0xfff), -EFAULT);
	cr_assert_eq(mem_read(&img.mem, buf, 2, 0x1005), -EFAULT);
	cr_assert_eq(mem_read(&img.mem, buf, 0, 0x5000), 0);
	mem_image_clear(&img);
	cr_assert_eq(mem_read(&img.mem, buf, 1, 0x1000), -EFAULT);
}

Test(mem, image_spans_ranges_and_first_added_wins)
{
	struct mem_image img;
	char buf[9] = "";

	mem_image_init(&img);
	mem_image_add(&img, 0x1002, "XY", 2);
	mem_image_add(&img, 0x1000, "abcd", 4);
	mem_image_add(&img, 0x1003, "_efgh", 5);
	cr_assert_eq(mem_read(&img.mem, buf, 8, 0x1000), 0);
	cr_assert_str_eq(buf, "abXYefgh");
	mem_image_clear(&img);
}

Test(mem, image_at_the_end_of_the_address_space)
{
	struct mem_image img;
	char buf[16];

	mem_image_init(&img);
	cr_assert_eq(mem_image_add(&img, UINT64_MAX - 1, "abcd", 4), -EINVAL);
	cr_assert_eq(mem_image_add(&img, UINT64_MAX - 4, "abcd", 4), 0);
	cr_assert_eq(mem_read(&img.mem, buf, 4, UINT64_MAX - 4), 0);
	cr_assert_eq(mem_read(&img.mem, buf, 8, UINT64_MAX - 4), -EFAULT);
	mem_image_clear(&img);
}

Test(mem, layers)
{
	struct mem_image up, low;
	struct mem_layers l;
	char buf[5] = "";

	mem_image_init(&up);
	mem_image_init(&low);
	mem_layers_init(&l, &up.mem, &low.mem);
	mem_image_add(&up, 0x1000, "UP", 2);
	mem_image_add(&low, 0x1000, "lower", 5);
	cr_assert_eq(mem_read(&l.mem, buf, 2, 0x1000), 0);
	cr_assert_arr_eq(buf, "UP", 2);
	cr_assert_eq(mem_read(&l.mem, buf, 4, 0x1000), 0);
	cr_assert_arr_eq(buf, "lowe", 4, "never a mixture");
	mem_layers_init(&l, &up.mem, NULL);
	cr_assert_eq(mem_read(&l.mem, buf, 4, 0x1000), -EFAULT);
	mem_image_clear(&up);
	mem_image_clear(&low);
}

Test(mem, remote_reads_another_process)
{
	static char text[] = "in both";
	struct mem_remote r;
	char buf[8];
	pid_t pid = fork();

	if (!pid) {
		pause();
		_exit(0);
	}
	mem_remote_init(&r, pid);
	cr_assert_eq(mem_read(&r.mem, buf, 8, (uintptr_t)text), 0);
	cr_assert_str_eq(buf, text);
	cr_assert_eq(mem_read(&r.mem, buf, 8, 8), -EFAULT);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	cr_assert_eq(mem_read(&r.mem, buf, 8, (uintptr_t)text), -ESRCH);
}

Test(mem, remote_batch_goes_on_after_a_fault)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *map =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct mem_vec vec[200];
	struct mem_remote r;
	char buf[200][8];
	size_t i;

	munmap(map + page, page);
	memset(map, 'x', page);
	for (i = 0; i < 200; i++) {
		vec[i] = (struct mem_vec){
			.dst = buf[i], .size = 8, .addr = (uintptr_t)map + i, .err = 1};
		if (i % 7 == 3)
			vec[i].addr = 16;
		if (i % 7 == 5)
			vec[i].addr = (uintptr_t)map + page - 4; /* half of it can be read */
	}
	mem_remote_init(&r, getpid());
	cr_assert_eq(mem_readv(&r.mem, vec, 200), 200 - 29 - 28);
	for (i = 0; i < 200; i++) {
		bool bad = i % 7 == 3 || i % 7 == 5;

		cr_assert_eq(vec[i].err, bad ? -EFAULT : 0, "piece %zu", i);
		cr_assert(bad || !memcmp(buf[i], "xxxxxxxx", 8), "piece %zu", i);
	}
	r.pid = 0x7ffffff0;
	cr_assert_eq(mem_readv(&r.mem, vec, 200), -ESRCH);
}

static struct {
	struct lb_mem mem;
	const struct lb_mem *under;
	unsigned reads;
} counted;

static int counted_read(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr)
{
	(void)mem;
	counted.reads++;
	return mem_read(counted.under, dst, size, addr);
}

/* Objects at these addresses of [0x10000, 0x18000), less the page at 0x14000, come in one read each
 * when they are far from each other. */
Test(mem, gather)
{
	static const struct {
		uint64_t want[4];
		unsigned pieces;
		unsigned later; /* reads of memory that was not gathered */
	} cases[] = {
		{{0x10000, 0x10100, 0x10400, 0x10400}, 1, 0},
		{{0x12000, 0x10000, 0x11000, 0x17000}, 4, 0},
		{{0x10fc0, 0x10fe0, 0x10ff0, 0x11000}, 1, 0}, /* across pages */
		{{0x13fe0, 0x13fc8, 0x13fe8, 0x13ff0}, 1, 0}, /* nothing lies behind them */
		{{0x13f00, 0x14010, 0x13e00, 0x13f80}, 1, 4}, /* one of them is not there */
		{{0x14010, 0x10000, 0x20000, 0x8}, 4, 3},
	};
	static uint8_t bytes[0x8000];
	struct mem_image img;
	struct mem_gather g;
	size_t i, j;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + (i >> 8));
	mem_image_init(&img);
	mem_image_add(&img, 0x10000, bytes, 0x4000);
	mem_image_add(&img, 0x15000, bytes + 0x5000, 0x3000);
	counted.mem.read = counted_read;
	counted.under = &img.mem;
	mem_gather_init(&g, &counted.mem);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (j = 0; j < 4; j++)
			mem_gather_want(&g, cases[i].want[j]);
		counted.reads = 0;
		cr_assert_eq(mem_gather_read(&g), 0);
		cr_expect_eq(counted.reads, cases[i].pieces, "case %zu: %u", i, counted.reads);
		counted.reads = 0;
		for (j = 0; j < 4; j++) {
			uint64_t addr = cases[i].want[j];
			bool there = addr >= 0x10000 && addr < 0x18000 && addr >> 12 != 0x14;
			uint8_t got[16];
			int err = mem_read(&g.mem, got, sizeof(got), addr);

			cr_expect_eq(!err, there, "case %zu, object %zu", i, j);
			if (!err)
				cr_expect_arr_eq(got, bytes + (addr - 0x10000), sizeof(got));
		}
		cr_expect_eq(counted.reads, cases[i].later, "case %zu: %u", i, counted.reads);
	}
	cr_assert_eq(mem_gather_read(&g), 0, "nothing is wanted any more");
	counted.reads = 0;
	cr_expect_eq(mem_read(&g.mem, bytes, 1, 0x10000), 0);
	cr_expect_eq(counted.reads, 1);
	mem_gather_clear(&g);
	mem_image_clear(&img);
}

Test(mem, gather_has_bounds)
{
	struct mem_gather g;
	struct mem_image img;
	uint64_t i;

	mem_image_init(&img);
	mem_gather_init(&g, &img.mem);
	for (i = 0; i <= MEM_GATHER_MAX; i++)
		mem_gather_want(&g, UINT64_MAX - 7 - i * 4096);
	cr_assert_eq(mem_gather_read(&g), 0);
	cr_expect_leq(g.npieces, MEM_GATHER_MAX);
	mem_gather_clear(&g);
}

Test(mem, limited)
{
	struct mem_limited limited;
	struct mem_image img;
	char c = 0;

	mem_image_init(&img);
	cr_assert_eq(mem_image_add(&img, 0x1000, "ab", 2), 0);
	mem_limited_init(&limited, &img.mem, 2);
	cr_expect_eq(mem_read(&limited.mem, &c, 1, 0x1001), 0);
	cr_expect_eq(c, 'b');
	cr_expect_eq(mem_read(&limited.mem, &c, 1, 0x2000), -EFAULT, "counts, too");
	cr_expect_eq(limited.remaining, 0);
	cr_expect_eq(mem_read(&limited.mem, &c, 1, 0x1000), -EFAULT);
	mem_image_clear(&img);
}

Test(mem, pages_are_read_once)
{
	struct mem_pages *pages;
	struct mem_image img;
	static uint8_t page[3 * MEM_PAGES_BYTES];
	uint8_t bytes[16];

	for (size_t i = 0; i < sizeof(page); i++)
		page[i] = (uint8_t)(i % 251);
	mem_image_init(&img);
	cr_assert_eq(mem_image_add(&img, 0x10000, page, sizeof(page) - 1), 0);
	counted.mem.read = counted_read;
	counted.under = &img.mem;
	counted.reads = 0;
	pages = mem_pages_new(&counted.mem);
	cr_assert_not_null(pages);
	for (uint64_t i = 0; i + sizeof(bytes) < 2 * MEM_PAGES_BYTES; i++) { /* across pages, too */
		cr_assert_eq(mem_read(&pages->mem, bytes, sizeof(bytes), 0x10000 + i), 0);
		cr_assert_arr_eq(bytes, page + i, sizeof(bytes));
	}
	cr_expect_eq(counted.reads, 2);
	/* the last page is not whole: its bytes are read by themselves */
	cr_expect_eq(mem_read(&pages->mem, bytes, 8, 0x12000), 0);
	cr_expect_arr_eq(bytes, page + 0x2000, 8);
	cr_expect_eq(mem_read(&pages->mem, bytes, 2, 0x12ffe), -EFAULT);
	cr_expect_eq(mem_read(&pages->mem, bytes, 2, UINT64_MAX), -EFAULT);
	mem_pages_free(&pages);
	mem_image_clear(&img);
}
