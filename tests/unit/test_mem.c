/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem_image.h"
#include "base/mem_remote.h"

TestSuite(mem, .timeout = 10);

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
	cr_assert_eq(mem_remote_readv(&r, vec, 200), 200 - 29 - 28);
	for (i = 0; i < 200; i++) {
		bool bad = i % 7 == 3 || i % 7 == 5;

		cr_assert_eq(vec[i].err, bad ? -EFAULT : 0, "piece %zu", i);
		cr_assert(bad || !memcmp(buf[i], "xxxxxxxx", 8), "piece %zu", i);
	}
	r.pid = 0x7ffffff0;
	cr_assert_eq(mem_remote_readv(&r, vec, 200), -ESRCH);
}
