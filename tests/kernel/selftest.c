// SPDX-License-Identifier: BSD-2-Clause
/*
 * Walks in the kernel against walks in user space, over the same images: each scene of each family
 * of VMs for each of its layouts, again with each page out of reach that the walk reads, and again
 * with all others out of reach. Prints
 * "N passed, N failed"; exits with 0 when all are equal.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <unwind/puc/unwind.h>

#include "lj_scene.h"
#include "puc_scene.h"
#include "selftest.skel.h"
#include "selftest32.skel.h"
#include "selftest_puc.skel.h"
#include "lj_layouts.h"
#include "detect/puc/recognise.h"
#include "walk_host.h"

#define PAGE 4096u

static unsigned int passed, failed;

/* Of each family, what they have in common comes first. */
union walk {
	struct lb_walk common;
	struct lj_walk lj;
	struct puc_walk puc;
};

/* What a family's maker of scenes hands out. */
struct selftest_moment {
	const char *name;
	const struct mem_image *mem;
	const void *in; /* the map's value */
	__u32 *sample;	/* its fields */
	__u64 *epoch;
};

struct selftest_program {
	int prog, samples;	   /* descriptors, for as long as the process runs */
	const union walk *outcome; /* the map's memory */
};

struct family {
	int (*load)(struct selftest_program *p);
	const void *(*layout)(size_t i, const char **name);
	/*
	 * Scene i; -ENOENT: there are no more. -ENOTSUP: not for this layout; it has to be ended.
	 */
	int (*begin)(size_t i, const void *layout, struct selftest_moment *m);
	/* Changes the sample that is taken of it; false: there are no more ways. */
	bool (*vary)(uint32_t i);
	/* In user space. What other epochs have proved does not count, nor what other samples read. */
	void (*walk)(const struct lb_mem *mem, union walk *w);
	bool (*check)(const union walk *w, char *why, size_t size);
	void (*end)(void);
};

static const union walk *map_outcome(const struct bpf_map *outcome)
{
	void *p = mmap(NULL, bpf_map__value_size(outcome), PROT_READ, MAP_SHARED,
		       bpf_map__fd(outcome), 0);

	return p == MAP_FAILED ? NULL : p;
}

/* ---- LuaJIT ---------------------------------------------------------------------------------- */

static struct lj_scene lj;

static int lj_load(struct selftest_program *p)
{
	struct selftest_bpf *skel = selftest_bpf__open();
	int r;

	if (!skel)
		return -errno;
	r = selftest_bpf__load(skel);
	if (r)
		return r;
	p->prog = bpf_program__fd(skel->progs.luabpf_selftest);
	p->samples = bpf_map__fd(skel->maps.samples);
	p->outcome = map_outcome(skel->maps.outcome);
	return p->outcome ? 0 : -errno;
}

static int lj32_load(struct selftest_program *p)
{
	struct selftest32_bpf *skel = selftest32_bpf__open();
	int r;

	if (!skel)
		return -errno;
	r = selftest32_bpf__load(skel);
	if (r)
		return r;
	p->prog = bpf_program__fd(skel->progs.luabpf_selftest);
	p->samples = bpf_map__fd(skel->maps.samples);
	p->outcome = map_outcome(skel->maps.outcome);
	return p->outcome ? 0 : -errno;
}

static const void *lj_layout(size_t i, const char **name)
{
	return i < LJ_LAYOUT_SCENES64 ? lj_layout_scene(i, name) : NULL;
}

/* Those without GC64, which have a program of their own. */
static const void *lj32_layout(size_t i, const char **name)
{
	return lj_layout_scene(LJ_LAYOUT_SCENES64 + i, name);
}

static int lj_begin(size_t i, const void *layout, struct selftest_moment *m)
{
	const struct lj_scene_row *row = lj_scene_at(i);

	if (!row)
		return -ENOENT;
	lj_scene_init(&lj, row, layout);
	*m = (struct selftest_moment){.name = row->name,
				      .mem = &lj.img.mem,
				      .in = &lj.in,
				      .sample = &lj.in.sample,
				      .epoch = &lj.in.epoch};
	return lj.absent ? -ENOTSUP : 0;
}

static bool lj_vary(uint32_t i)
{
	return !i;
}

static void lj_walk_here(const struct lb_mem *mem, union walk *w)
{
	struct lb_selftest in = lj.in;

	in.epoch = 0;
	walk_host_next(mem, &in, &w->lj);
}

static bool lj_check(const union walk *w, char *why, size_t size)
{
	return lj_scene_check(&lj, &w->lj, why, size);
}

static void lj_done(void)
{
	lj_scene_free(&lj);
}

/* ---- PUC Lua --------------------------------------------------------------------------------- */

static struct puc_scene puc;

static int puc_load(struct selftest_program *p)
{
	struct selftest_puc_bpf *skel = selftest_puc_bpf__open();
	int r;

	if (!skel)
		return -errno;
	r = selftest_puc_bpf__load(skel);
	if (r)
		return r;
	p->prog = bpf_program__fd(skel->progs.luabpf_selftest_puc);
	p->samples = bpf_map__fd(skel->maps.samples);
	p->outcome = map_outcome(skel->maps.outcome);
	return p->outcome ? 0 : -errno;
}

static const void *puc_layout(size_t i, const char **name)
{
	return puc_layout_row(i, name);
}

static int puc_begin(size_t i, const void *layout, struct selftest_moment *m)
{
	const struct puc_scene_row *row = puc_scene_at(i);

	if (!row)
		return -ENOENT;
	puc_scene_init(&puc, row, layout);
	*m = (struct selftest_moment){.name = row->name,
				      .mem = &puc.img.mem,
				      .in = &puc.in,
				      .sample = &puc.in.sample,
				      .epoch = &puc.in.epoch};
	return puc.absent ? -ENOTSUP : 0;
}

static bool puc_vary(uint32_t i)
{
	return puc_scene_hint(&puc, i);
}

static void puc_walk_here(const struct lb_mem *mem, union walk *w)
{
	struct puc_selftest in = puc.in;

	in.epoch = 0;
	walk_host_puc_next(mem, &in, &w->puc);
}

static bool puc_check(const union walk *w, char *why, size_t size)
{
	return puc_scene_check(&puc, &w->puc, why, size);
}

static void puc_done(void)
{
	puc_scene_free(&puc);
}

static const struct family families[] = {
	{lj_load, lj_layout, lj_begin, lj_vary, lj_walk_here, lj_check, lj_done},
	{lj32_load, lj32_layout, lj_begin, lj_vary, lj_walk_here, lj_check, lj_done},
	{puc_load, puc_layout, puc_begin, puc_vary, puc_walk_here, puc_check, puc_done},
};

/* ---- the comparison -------------------------------------------------------------------------- */

struct test {
	const struct family *family;
	struct selftest_program program;
	const char *layout;
	struct selftest_moment now;
	union walk host;
};

struct selftest_pages {
	uint64_t at[256];
	size_t n;
};

/* The image with a page out of reach. */
struct here {
	struct lb_mem mem;
	const struct lb_mem *image;
	uint64_t hole;		     /* a page */
	struct selftest_pages *read; /* collects what is read, unless NULL */
};

static void add_pages(struct selftest_pages *pages, uint64_t addr, __u32 size)
{
	uint64_t page;
	size_t i;

	for (page = addr / PAGE * PAGE; page < addr + size; page += PAGE) {
		for (i = 0; i < pages->n && pages->at[i] != page; i++)
			;
		if (i < pages->n)
			continue;
		if (i == sizeof(pages->at) / sizeof(pages->at[0]))
			abort();
		pages->at[pages->n++] = page;
	}
}

static int read_here(const struct lb_mem *mem, void *dst, __u32 size, __u64 addr)
{
	const struct here *h = (const struct here *)mem;

	if (h->hole && addr < h->hole + PAGE && h->hole < addr + size)
		return -EFAULT;
	if (h->read)
		add_pages(h->read, addr, size);
	return mem_read(h->image, dst, size, addr);
}

static int in_kernel(struct test *t)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	__u32 zero = 0;
	int err;

	++*t->now.sample; /* what it remembers of functions and blocks is stale */
	err = bpf_map_update_elem(t->program.samples, &zero, t->now.in, 0);
	if (!err)
		err = bpf_prog_test_run_opts(t->program.prog, &opts);
	return err || opts.retval ? -1 : 0;
}

static bool same(const struct lb_walk *a, const struct lb_walk *b)
{
	if (a->end != b->end)
		return false;
	if (a->end != LB_STATUS_RESOLVED)
		return true;
	return a->state == b->state && a->detail == b->detail && a->vmstate == b->vmstate &&
	       a->g == b->g && a->L == b->L && a->rec.stack.n == b->rec.stack.n &&
	       a->rec.stack.flags == b->rec.stack.flags &&
	       !memcmp(a->rec.stack.frame, b->rec.stack.frame,
		       a->rec.stack.n * sizeof(struct lb_frame));
}

static void count(struct test *t, bool good, const char *what, uint64_t hole)
{
	const struct lb_walk *kernel = &t->program.outcome->common, *host = &t->host.common;

	if (good) {
		passed++;
		return;
	}
	failed++;
	printf("FAILED %s (%s), %s, hole %#lx: kernel end %u, %u frames, L %#lx; "
	       "user space end %u, %u frames, L %#lx\n",
	       t->now.name, t->layout, what, (unsigned long)hole, kernel->end, kernel->rec.stack.n,
	       (unsigned long)kernel->L, host->end, host->rec.stack.n, (unsigned long)host->L);
}

static void compare(struct test *t, uint64_t hole)
{
	struct here here = {.mem.read = read_here, .image = &t->now.mem->mem, .hole = hole};

	if (in_kernel(t)) {
		count(t, false, "not run", hole);
		return;
	}
	t->family->walk(&here.mem, &t->host);
	count(t, same(&t->host.common, &t->program.outcome->common), "differs", hole);
}

static bool in_image(const struct mem_image *mem, uint64_t page)
{
	size_t i;

	for (i = 0; i < mem->n; i++)
		if (page - mem->ranges[i].addr < mem->ranges[i].len)
			return true;
	return false;
}

static void reach(const struct mem_image *mem, int prot)
{
	size_t i;

	for (i = 0; i < mem->n; i++)
		mprotect((void *)mem->ranges[i].addr, mem->ranges[i].len, prot);
}

/* A page that the walk does not read matters to no walk; all of those are one case. */
static void with_holes(struct test *t)
{
	const struct mem_image *mem = t->now.mem;
	struct selftest_pages pages = {};
	struct here here = {.mem.read = read_here, .image = &mem->mem, .read = &pages};
	size_t i;

	++*t->now.sample;
	t->family->walk(&here.mem, &t->host);
	reach(mem, PROT_NONE);
	for (i = 0; i < pages.n; i++)
		if (in_image(mem, pages.at[i]))
			mprotect((void *)pages.at[i], PAGE, PROT_READ | PROT_WRITE);
	compare(t, 0);
	reach(mem, PROT_READ | PROT_WRITE);
	for (i = 0; i < pages.n; i++) {
		if (!in_image(mem, pages.at[i]))
			continue;
		mprotect((void *)pages.at[i], PAGE, PROT_NONE);
		compare(t, pages.at[i]);
		mprotect((void *)pages.at[i], PAGE, PROT_READ | PROT_WRITE);
	}
}

static void place(const struct mem_image *mem)
{
	size_t i;

	for (i = 0; i < mem->n; i++)
		memcpy((void *)mem->ranges[i].addr, mem->ranges[i].bytes, mem->ranges[i].len);
}

static void compare_and_check(struct test *t)
{
	char why[2048];

	compare(t, 0);
	if (t->family->check(t->program.outcome, why, sizeof(why)))
		return;
	count(t, false, "not as expected", 0);
	printf("%s\n", why);
}

/* Twice each, so that what the first has proved counts in the second; and with nothing that counts. */
static void run_scene(struct test *t)
{
	static __u64 epoch;
	uint32_t i;

	place(t->now.mem);
	*t->now.epoch = ++epoch;
	for (i = 0; t->family->vary(i); i++) {
		compare_and_check(t);
		compare_and_check(t);
	}
	*t->now.epoch = 0;
	for (i = 0; t->family->vary(i); i++)
		compare_and_check(t);
	t->family->vary(0);
	with_holes(t);
}

/* -ENOENT: there is no such scene. */
static int scene(struct test *t, size_t i, const void *layout)
{
	int err = t->family->begin(i, layout, &t->now);

	if (err == -ENOENT)
		return err;
	if (!err)
		run_scene(t);
	t->family->end();
	return 0;
}

static int map_at(uint64_t addr, size_t size)
{
	void *p = mmap((void *)addr, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_POPULATE, -1, 0);

	/* both kinds of LuaJIT's images have the same C stack and code */
	if (p == (void *)addr || errno == EEXIST)
		return 0;
	fprintf(stderr, "selftest: mmap at %#lx: %s\n", (unsigned long)addr, strerror(errno));
	return -1;
}

/* The images of a family have the same ranges. */
static int map_ranges(const struct family *family)
{
	struct selftest_moment first;
	const char *layout;
	int err = 0;
	size_t i;

	if (family->begin(0, family->layout(0, &layout), &first))
		return -1;
	for (i = 0; i < first.mem->n && !err; i++)
		err = map_at(first.mem->ranges[i].addr, first.mem->ranges[i].len);
	family->end();
	return err;
}

static int run_family(const struct family *family)
{
	static struct test t;
	const void *layout;
	size_t l, i;
	int err;

	t.family = family;
	err = family->load(&t.program);
	if (err) {
		fprintf(stderr, "selftest: the program does not load: %s\n", strerror(-err));
		return -1;
	}
	for (l = 0; (layout = family->layout(l, &t.layout)); l++)
		for (i = 0; !scene(&t, i, layout); i++)
			;
	return 0;
}

int main(void)
{
	size_t i;

	for (i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		if (map_ranges(&families[i]) || run_family(&families[i]))
			return 1;
	}
	printf("%u passed, %u failed\n", passed, failed);
	return failed || !passed;
}
