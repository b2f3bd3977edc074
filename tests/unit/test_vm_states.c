// SPDX-License-Identifier: BSD-2-Clause
/* VMs in a process's memory: this process writes what those of each layout have, and is searched. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lj_layouts.h"
#include "puc_code.h"
#include "detect/puc/recognise.h"
#include "doctor/vm_states.h"
#include "proc/memory.h"

static void map_memory(void);
TestSuite(vm_states, .init = map_memory);

#define BYTES (4 * MEMORY_PAGE)
#define TEXT 0x100000
#define TEXT_SIZE 0x1000
#define MEMORY 123456

/* Across a border of pages, and where references of 32 bits reach. */
static uint8_t *memory;
static struct lb_build build;
static const struct lb_module module = {.vm_start = TEXT, .vm_end = TEXT + TEXT_SIZE};
static struct vm_states found;

static void map_memory(void)
{
	void *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT,
		       -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	memory = p;
}

static uint64_t base(void)
{
	return (uint64_t)(uintptr_t)memory + MEMORY_PAGE - 8;
}

static void put(uint64_t addr, uint64_t word)
{
	memcpy((void *)(uintptr_t)addr, &word, sizeof(word));
}

/* In GC32 another object's word is beside it. */
static void put_ref(const struct lj_layout *lj, uint64_t addr, uint64_t ref)
{
	put(addr, lj->gc32 ? ref | 0xabcdef00ULL << 32 : ref);
}

static void put_byte(uint64_t addr, uint8_t byte)
{
	*(uint8_t *)(uintptr_t)addr = byte;
}

/* NULL: it is not found. Other copies are in this process's memory, perhaps. */
static const struct vm_state *find_by(uint64_t g, uint64_t bytes)
{
	struct budget work = {.remaining = bytes};
	const struct vm_file file = {&build, &module};

	cr_assert_eq(vm_states_find(getpid(), &file, 1, &work, &found), 0);
	for (size_t i = 0; i < found.n && i < VM_STATES; i++)
		if (found.at[i].g == g)
			return &found.at[i];
	return NULL;
}

static const struct vm_state *find(uint64_t g)
{
	return find_by(g, UINT64_MAX);
}

/* A main thread of `size` bytes and its global_State: jit.flags by the offsets of the headers. */
static uint64_t make_lj(const struct lj_layout *lj, unsigned int hookmask, uint64_t size)
{
	bool old = lj->str_len == LJ_OFF(lj, STR_LEN_2017);
	uint64_t L = base(), g = L + size;
	bool tarantool = lj->vmstate > lj->registrytv && !lj->v20; /* hookcount is before it */
	uint32_t mainthref = lj->gc32 ? (old ? hookmask + (tarantool ? 7 : 3) : lj->vmstate + 4u)
			     : old    ? hookmask + 7
				      : lj->vmstate + 8u;

	memset(memory, 0, BYTES);
	build = (struct lb_build){.family = lj->gc32 ? LB_FAMILY_LJ32 : LB_FAMILY_LJ, .lj.lj = *lj};
	put_byte(L + (lj->gc32 ? 5 : 9), 6); /* gct: ~LJ_TTHREAD */
	put_ref(lj, L + (lj->gc32 ? 8 : 16), g);
	put_ref(lj, g + lj->gc_total, MEMORY);
	put_ref(lj, g + mainthref, L);
	put_byte(g + hookmask + 1, 0x10); /* dispatchmode */
	put(g + lj->g2disp, TEXT + 16);
	return g;
}

Test(vm_states, luajit)
{
	const struct lj_layout *lj;
	const char *name;

	for (size_t i = 0; (lj = lj_layout_row(i, &name)); i++) {
		uint64_t g = make_lj(lj, lj_layout_hookmask(i), lj->gc32 ? 64 : i % 2 ? 96 : 112);
		const struct vm_state *s = find(g);

		cr_assert_not_null(s, "%s", name);
		cr_expect(s->jit, "%s", name);
		cr_expect_eq(s->memory, MEMORY, "%s", name);
		put_byte(g + lj_layout_hookmask(i) + 1, 0);
		s = find(g);
		cr_expect(s && !s->jit, "%s", name);
	}
}

/* Of each of its marks. */
Test(vm_states, what_only_looks_like_luajit)
{
	const char *name;
	const struct lj_layout *lj = lj_layout_row(0, &name);
	uint64_t g = make_lj(lj, lj_layout_hookmask(0), 96);

	cr_expect(find(g));
	put(g + lj->g2disp, TEXT + TEXT_SIZE); /* another file's VM */
	cr_expect_not(find(g));
	g = make_lj(lj, lj_layout_hookmask(0), 96);
	put(g + lj->vmstate + 8, g);
	cr_expect_not(find(g));
	g = make_lj(lj, lj_layout_hookmask(0), 96);
	put_byte(g - 96 + 9, 5);
	cr_expect_not(find(g));
	g = make_lj(lj, lj_layout_hookmask(0), 96);
	put(g + 16, 6268); /* it was closed: GG_State alone is left */
	cr_expect_not(find(g));
	cr_expect_not(find(make_lj(lj, lj_layout_hookmask(0), 200)));
}

static uint64_t make_puc(const struct puc_layout *puc)
{
	bool embedded = puc->flags & PUC_MAIN_EMBEDDED;
	uint64_t L = embedded ? base() + puc->g_mainthread : base();
	uint64_t g = embedded ? base() : L + puc->L_size;

	memset(memory, 0, BYTES);
	build = (struct lb_build){.family = LB_FAMILY_PUC, .puc.puc = *puc};
	put_byte(L + 8, 8 | 0x40); /* tt */
	put(L + puc->L_l_G, g);
	put(L + puc->L_stack, 0x10000);
	put(L + puc->L_stack_last, 0x10200);
	if (!embedded)
		put(g + puc->g_mainthread, L);
	if (puc->version == 51) {
		put(g + 120, MEMORY); /* totalbytes */
		return g;
	}
	put(g + 16, MEMORY + 1000); /* totalbytes, GCdebt */
	put(g + 24, puc->version < 55 ? -1000ULL : 1000);
	return g;
}

Test(vm_states, puc)
{
	const struct puc_layout *puc;
	const char *name;
	size_t i;

	EACH_PUC_LAYOUT(puc, name, i)
	{
		uint64_t g = make_puc(puc);
		const struct vm_state *s = find(g);

		cr_assert_not_null(s, "%s", name);
		cr_expect_eq(s->memory, MEMORY, "%s", name);
	}
}

Test(vm_states, what_only_looks_like_puc)
{
	const struct puc_layout *puc;
	const char *name;
	size_t i;

	EACH_PUC_LAYOUT(puc, name, i)
	{
		uint64_t g = make_puc(puc), size = puc->L_size;
		uint64_t L = puc->flags & PUC_MAIN_EMBEDDED ? g + puc->g_mainthread : g - size;

		put_byte(L + 8, 5);
		cr_expect_not(find(g), "%s", name);
		g = make_puc(puc);
		put(L + puc->L_stack, 0x10300);
		cr_expect_not(find(g), "%s", name);
		g = make_puc(puc);
		put(g + (puc->version == 51 ? 120 : 16), 1600); /* LG alone is left */
		put(g + 24, 0);
		cr_expect_not(find(g), "%s", name);
	}
}

/* A page that was swapped out is not searched. */
static bool has_swapped(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	unsigned long kib = 0;
	char line[256];

	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "VmSwap: %lu", &kib) == 1)
			break;
	fclose(f);
	return kib;
}

/* Nor are 64 GiB of reserved addresses. */
static bool has_unsearched(void)
{
#ifdef __SANITIZE_ADDRESS__
	return true; /* its shadow */
#else
	return has_swapped();
#endif
}

Test(vm_states, what_was_not_searched_is_not_known)
{
	const char *name;
	uint64_t g = make_lj(lj_layout_row(0, &name), lj_layout_hookmask(0), 96);

	cr_expect(find(g));
	cr_expect(found.complete || has_unsearched());
	find_by(g, 8 * MEMORY_PAGE);
	cr_expect_not(found.complete);
}

/* A process that fills its memory with what looks like main threads uses the budget up. */
Test(vm_states, candidates_are_bounded)
{
	const char *name;
	struct budget work = {.remaining = UINT64_MAX};
	const struct vm_file file = {&build, &module};
	uint64_t before, words = BYTES / 8;

	make_lj(lj_layout_row(0, &name), lj_layout_hookmask(0), 96);
	cr_assert_eq(vm_states_find(getpid(), &file, 1, &work, &found), 0);
	before = UINT64_MAX - work.remaining;
	for (uint64_t i = 0; i < words; i++)
		put((uint64_t)(uintptr_t)memory + 8 * i,
		    (uint64_t)(uintptr_t)memory + 8 * i - 16 + 96);
	work.remaining = UINT64_MAX;
	cr_assert_eq(vm_states_find(getpid(), &file, 1, &work, &found), 0);
	cr_expect_geq(UINT64_MAX - work.remaining, before + (words - 1) * 4096);
	work.remaining = before + 10 * 4096;
	cr_assert_eq(vm_states_find(getpid(), &file, 1, &work, &found), 0);
	cr_expect_not(found.complete);
	cr_expect_eq(work.remaining, 0);
}

Test(vm_states, a_process_that_has_ended)
{
	struct budget work = {.remaining = UINT64_MAX};

	cr_expect_eq(vm_states_find(0x7ffffffe, NULL, 0, &work, &found), -ESRCH);
	cr_expect_not(found.complete);
}

static int note_run(void *arg, uint64_t start, uint64_t end)
{
	uint64_t *sum = arg, lo = sum[0], hi = sum[1];

	cr_expect_leq(end - start, MEMORY_RUN);
	if (start < hi && end > lo)
		sum[2] += (end < hi ? end : hi) - (start > lo ? start : lo);
	return 0;
}

/* What is only reserved is not read, nor its part of /proc/PID/pagemap: here 1 MiB of that. */
Test(vm_states, reserved_addresses)
{
	const size_t reserved = (64ULL << 30) + MEMORY_PAGE, least = 512ULL << 20;
	struct budget work = {.remaining = UINT64_MAX};
	uint64_t sum[3] = {}, first;
	bool complete;
	void *map;

	cr_assert_eq(memory_each(getpid(), &work, note_run, sum, &complete), 0);
	first = UINT64_MAX - work.remaining;
	map = mmap(NULL, reserved, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	cr_assert_neq(map, MAP_FAILED);
	work.remaining = UINT64_MAX;
	cr_assert_eq(memory_each(getpid(), &work, note_run, sum, &complete), 0);
	cr_expect_not(complete);
	cr_expect_lt(UINT64_MAX - work.remaining, first + (1 << 20));
	munmap(map, reserved - least);
	work.remaining = UINT64_MAX;
	cr_assert_eq(memory_each(getpid(), &work, note_run, sum, &complete), 0);
	cr_expect_geq(UINT64_MAX - work.remaining, least / MEMORY_PAGE * 8, "its entries count");
	munmap((char *)map + reserved - least, least);
}

/* No page is made by the search. */
Test(vm_states, only_pages_that_are_there)
{
	const size_t pages = 100;
	struct budget work = {.remaining = UINT64_MAX};
	uint8_t *map = mmap(NULL, pages * MEMORY_PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t sum[3] = {(uint64_t)(uintptr_t)map};
	bool complete;

	cr_assert_neq(map, MAP_FAILED);
	madvise(map, pages * MEMORY_PAGE, MADV_NOHUGEPAGE);
	sum[1] = sum[0] + pages * MEMORY_PAGE;
	for (size_t i = 0; i < 70; i++)
		map[i * MEMORY_PAGE] = 1;
	map[99 * MEMORY_PAGE] = 1;
	cr_assert_eq(memory_each(getpid(), &work, note_run, sum, &complete), 0);
	cr_expect(sum[2] == 71 * MEMORY_PAGE || has_swapped(), "%zu", (size_t)sum[2]);
	cr_expect(complete || has_unsearched());
	munmap(map, pages * MEMORY_PAGE);
}
