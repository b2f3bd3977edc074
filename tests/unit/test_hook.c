// SPDX-License-Identifier: BSD-2-Clause
/* The file of a Lua state, as it grows, and as a hostile program writes it. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hook/state.h"

static int fd;
static struct hook_state *st;
static struct hook_header header;
static uint64_t budget, handed_on, next_time;

static void put(const void *data, size_t len, uint64_t at)
{
	cr_assert_eq(pwrite(fd, data, len, at), (ssize_t)len);
}

static void put_header(void)
{
	put(&header, offsetof(struct hook_header, tail), 0);
}

static void put_event(uint64_t n)
{
	struct hook_event ev = {.time = n};

	put(&ev, sizeof(ev), HOOK_EVENTS_AT + n % HOOK_EVENTS * sizeof(ev));
}

static void setup(void)
{
	fd = memfd_create("state", MFD_CLOEXEC);
	cr_assert(fd >= 0 && !ftruncate(fd, HOOK_TRACE_SIZE));
	st = calloc(1, sizeof(*st));
	header = (struct hook_header){.magic = HOOK_MAGIC, .mode = HOOK_TRACE, .nfuncs = 1};
	budget = 1 << 20;
	handed_on = next_time = 0;
}

static void teardown(void)
{
	hook_state_free(st);
	close(fd);
}

TestSuite(hook, .init = setup, .fini = teardown);

static int take(void *arg, struct hook_state *state, const struct hook_event *events, size_t n)
{
	(void)arg, (void)state;
	for (size_t i = 0; i < n; i++)
		cr_assert_eq(events[i].time, next_time++);
	handed_on += n;
	return 0;
}

static void read_state(void)
{
	cr_assert_eq(hook_state_read(st, fd, take, NULL, &budget), 0);
}

static uint64_t tail(void)
{
	uint64_t value;

	cr_assert_eq(pread(fd, &value, sizeof(value), offsetof(struct hook_header, tail)),
		     (ssize_t)sizeof(value));
	return value;
}

Test(hook, a_file_that_is_being_made_is_not_broken)
{
	read_state();
	cr_assert(!st->broken && !st->nfuncs);
}

Test(hook, functions_and_their_names)
{
	struct hook_func func = {
		.calls = 7, .kind = HOOK_LUA, .name = {1, 3}, .source = {UINT32_MAX, 2}};
	size_t len;

	put(&func, sizeof(func), HOOK_FUNCS_AT + sizeof(func));
	put("xfibx", 5, HOOK_BYTES_AT);
	header.nfuncs = 2;
	header.nbytes = 5;
	put_header();
	read_state();
	cr_assert_eq(hook_state_nfuncs(st), 2);
	cr_assert_null(hook_state_func(st, 2));
	cr_assert(!memcmp(hook_state_bytes(st, hook_state_func(st, 1)->name, &len), "fib", 3));
	cr_assert_eq(len, 3);
	hook_state_bytes(st, hook_state_func(st, 1)->source, &len);
	cr_assert_eq(len, 0);
	hook_state_bytes(st, (struct hook_bytes){4, 2}, &len);
	cr_assert_eq(len, 0);
}

Test(hook, events_come_once_in_their_order_around_the_ring)
{
	const uint64_t steps[] = {1, 4096, 5000, HOOK_EVENTS, HOOK_EVENTS - 1, 12345};

	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		for (uint64_t n = 0; n < steps[i]; n++)
			put_event(header.head++);
		put_header();
		read_state();
		read_state();
		cr_assert_eq(handed_on, header.head);
		cr_assert_eq(tail(), header.head);
		cr_assert(!st->broken);
	}
}

/* Each breaks the state, and what was read before stays. */
Test(hook, a_header_that_contradicts_itself)
{
	struct hook_header good, bad[7];

	header.nfuncs = 3;
	header.nbytes = 10;
	header.head = 2;
	put_event(0);
	put_event(1);
	good = header;
	for (size_t i = 0; i < 7; i++)
		bad[i] = good;
	bad[0].magic++;
	bad[1].mode = 3;
	bad[2].nfuncs = HOOK_FUNCS_MAX + 1;
	bad[3].nbytes = HOOK_BYTES_MAX + 1;
	bad[4].nfuncs = 2;
	bad[5].head = 3 + HOOK_EVENTS;
	bad[6].head = 1;
	for (size_t i = 0; i < 7; i++) {
		header = good;
		put_header();
		st->broken = false;
		read_state();
		cr_assert(!st->broken, "%zu", i);
		header = bad[i];
		put_header();
		read_state();
		cr_assert(st->broken, "%zu", i);
		cr_assert_eq(st->nfuncs, 3);
		cr_assert_eq(handed_on, 2);
	}
}

Test(hook, a_file_that_is_cut_short)
{
	header.nfuncs = 100;
	put_header();
	cr_assert(!ftruncate(fd, HOOK_FUNCS_AT + 64));
	read_state();
	cr_assert(st->broken);
}

/* Sparse files take no space of a program, but memory of luabpf. */
Test(hook, memory_is_bounded)
{
	header.nfuncs = 1000;
	put_header();
	budget = 1000 * sizeof(struct hook_func) - 1;
	read_state();
	cr_assert(st->broken && !st->nfuncs);
	st->broken = false;
	budget++;
	read_state();
	cr_assert(!st->broken && st->nfuncs == 1000 && !budget);
	read_state();
	cr_assert(!st->broken);
}
