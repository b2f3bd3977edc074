// SPDX-License-Identifier: BSD-2-Clause
/* The budgets of foreign files: work is counted, not timed. */
#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/budget.h"
#include "base/signals.h"
#include "proc/elf.h"

#define LIBZ "/lib/x86_64-linux-gnu/libz.so.1"

TestSuite(elf_bombs, .timeout = 30);

Test(elf_bombs, budgets)
{
	struct budget all = {.remaining = 100, .of_what = "all"},
		      part = {.remaining = 60, .of = &all, .of_what = "part"},
		      other = {.remaining = 60, .of = &all, .of_what = "other"};

	cr_expect(budget_spend(&part, 60));
	cr_expect_null(budget_used_up(&other));
	cr_expect_eq(all.remaining, 40);
	cr_expect(!budget_spend(&part, 1));
	cr_expect_str_eq(budget_used_up(&part), "part");
	cr_expect_eq(all.remaining, 40, "what is refused takes nothing");
	cr_expect(!budget_spend(&other, 41));
	cr_expect_eq(other.remaining, 60);
	cr_expect_str_eq(budget_used_up(&other), "all");
}

Test(elf_bombs, a_signal_ends_work_that_waits_for_one)
{
	struct budget all = {.remaining = 100, .of_what = "all", .until_signal = true},
		      part = {.remaining = 60, .of = &all, .of_what = "part"},
		      names = {.remaining = 60, .of_what = "names"};
	int fd;

	signal(SIGINT, SIG_DFL); /* one that was ignored stays so */
	cr_assert_eq(signals_catch(&fd), 0);
	cr_expect(budget_spend(&part, 1));
	raise(SIGINT);
	cr_expect(!budget_spend(&part, 1));
	cr_expect_eq(part.remaining, 59, "what is left is left");
	cr_expect_null(budget_used_up(&part));
	cr_expect(budget_spend(&names, 1), "of the report, which is still to come");
}

static int count(void *arg, const struct elf_fde *fde)
{
	(void)fde;
	++*(unsigned *)arg;
	return 0;
}

Test(elf_bombs, a_file_takes_its_work_from_the_budget_of_its_process)
{
	struct budget process = {.remaining = 64 << 20, .of_what = "process"},
		      poor = {.remaining = 1000, .of_what = "poor"};
	uint64_t at, left = process.remaining;
	struct elf_file *elf = NULL;
	unsigned fdes = 0, few = 0;

	if (access(LIBZ, R_OK))
		cr_assert(false, "no " LIBZ);
	cr_assert_eq(elf_open(LIBZ, &elf), 0);
	elf_charge(elf, &process);
	cr_expect_eq(elf_fdes(elf, count, &fdes), 0);
	cr_expect_gt(fdes, 50);
	cr_expect_lt(process.remaining, left - fdes);
	left = process.remaining;
	cr_expect_eq(elf_lookup(elf, "lua_ident", &at, NULL), -ENOENT);
	cr_expect_lt(process.remaining, left);
	left = process.remaining;
	cr_expect_eq(elf_lookup(elf, "lua_newstate", &at, NULL), -ENOENT);
	cr_expect_eq(process.remaining, left, "one pass finds all names of Lua");
	cr_expect_null(elf_exceeded(elf));
	elf_charge(elf, &poor);
	cr_expect_eq(elf_fdes(elf, count, &few), -EDQUOT);
	cr_expect_eq(few, 0);
	cr_expect_str_eq(elf_exceeded(elf), "poor");
	elf_close(&elf);
}

#define SEGMENTS 100
#define SIZE (64u << 10)

static int on_pointer(void *arg, const struct elf_pointer *pointer)
{
	(void)arg;
	(void)pointer;
	return 0;
}

/* Each word of each writable segment is compared with the addresses of all segments. */
Test(elf_bombs, words_of_many_segments_are_work)
{
	struct budget process = {.remaining = 1 << 30, .of_what = "process"};
	const uint64_t words = (uint64_t)SEGMENTS * SIZE / 8, before = process.remaining;
	const size_t head = sizeof(Elf64_Ehdr) + SEGMENTS * sizeof(Elf64_Phdr);
	uint8_t *bytes = calloc(1, head + SIZE);
	Elf64_Ehdr *eh = (Elf64_Ehdr *)bytes;
	Elf64_Phdr *ph = (Elf64_Phdr *)(eh + 1);
	struct elf_file *elf = NULL;

	cr_assert_not_null(bytes);
	memcpy(eh->e_ident, ELFMAG "\2\1\1", 7);
	eh->e_phoff = sizeof(*eh);
	eh->e_phentsize = sizeof(*ph);
	eh->e_phnum = SEGMENTS;
	for (size_t i = 0; i < SEGMENTS; i++)
		ph[i] = (Elf64_Phdr){.p_type = PT_LOAD,
				     .p_flags = PF_R | PF_W,
				     .p_vaddr = (i + 1) << 20,
				     .p_offset = head,
				     .p_filesz = SIZE};
	cr_assert_eq(elf_open_bytes(bytes, head + SIZE, &elf), 0);
	elf_charge(elf, &process);
	cr_expect_eq(elf_pointers(elf, on_pointer, NULL), 0);
	cr_expect_geq(before - process.remaining, words * SEGMENTS);
	elf_close(&elf);
	free(bytes);
}
