// SPDX-License-Identifier: BSD-2-Clause
/* Which LuaJIT build: what instructions measure as, and the libraries that this machine has. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "file_bytes.h"
#include "vm/lj_recognise.h"

struct text {
	uint8_t bytes[512];
	size_t n;
};

static void put(struct text *t, const char *op, size_t len, int32_t imm, const char *tail,
		size_t tail_len)
{
	memcpy(t->bytes + t->n, op, len);
	memcpy(t->bytes + t->n + len, &imm, 4);
	memcpy(t->bytes + t->n + len + 4, tail, tail_len);
	t->n += len + 4 + tail_len;
}

static void put_g2disp(struct text *t, int32_t imm)
{
	put(t, "\x49\x81\xc6", 3, imm, "", 0);
}

static void put_vmstate(struct text *t, int32_t disp)
{
	put(t, "\x41\xc7\x86", 3, disp, "\xff\xff\xff\xff", 4);
}

static void put_store_L(struct text *t, int32_t disp)
{
	put(t, "\x49\x89\xae", 3, disp, "", 0);
}

static struct lj_measured measure(struct text *t)
{
	struct lj_measured m;

	memset(&m, 0xff, sizeof(m));
	lj_measure(t->bytes, t->n + 16, &m); /* what follows in the text */
	return m;
}

Test(recognise, fields)
{
	struct text t = {};
	struct lj_measured m;

	put_store_L(&t, 368 - 3968); /* before g2disp is known: its order does not matter */
	put_g2disp(&t, 3968);
	put_vmstate(&t, 184 - 3968);
	put_vmstate(&t, 184 - 3968);
	put(&t, "\x49\x89\x96", 3, 376 - 3968, "", 0);
	put(&t, "\x49\x8b\x8e", 3, 1112 - 3968, "", 0);
	m = measure(&t);
	cr_expect_eq(m.g2disp, 3968);
	cr_expect_eq(m.vmstate, 184);
	cr_expect_eq(m.nstores_L, 1);
	cr_expect_eq(m.stores_L[0], 368);
	cr_expect_eq(m.nstores_base, 1);
	cr_expect_eq(m.stores_base[0], 376);
	cr_expect_eq(m.nloads, 1);
	cr_expect_eq(m.loads[0], 1112);
}

Test(recognise, values_that_differ)
{
	struct text t = {};
	struct lj_measured m;

	put_g2disp(&t, 3968);
	put_vmstate(&t, 184 - 3968);
	put_vmstate(&t, 188 - 3968);
	m = measure(&t);
	cr_expect_eq(m.g2disp, 3968);
	cr_expect_eq(m.vmstate, 0);
	put_g2disp(&t, 4008);
	m = measure(&t);
	cr_expect_eq(m.g2disp, 0);
}

/* A third value does not make a field that differed agree again. */
Test(recognise, a_value_that_returns)
{
	struct text t = {};

	put_g2disp(&t, 3968);
	put_g2disp(&t, 4008);
	put_g2disp(&t, 4008);
	cr_expect_eq(measure(&t).g2disp, 0);
}

Test(recognise, nonsense)
{
	struct text t = {};
	struct lj_measured m;

	cr_expect_eq(measure(&t).g2disp, 0);
	put_g2disp(&t, -8);
	cr_expect_eq(measure(&t).g2disp, 0);
	t.n = 0;
	put_g2disp(&t, 3968);
	put_vmstate(&t, -5000);
	put_store_L(&t, 70000);
	put_store_L(&t, -3968);
	m = measure(&t);
	cr_expect_eq(m.vmstate, 0);
	cr_expect_eq(m.nstores_L, 0);
}

Test(recognise, more_candidates_than_room)
{
	struct text t = {};
	struct lj_measured m;
	int i;

	put_g2disp(&t, 3968);
	for (i = 0; i < 40; i++)
		put_store_L(&t, 8 * i / 2 - 3000);
	m = measure(&t);
	cr_expect_eq(m.nstores_L, LJ_MEASURED_MAX);
}

Test(recognise, no_bytes)
{
	struct lj_measured m;
	size_t n;

	for (n = 0; n < 11; n++) {
		lj_measure((const uint8_t *)"\x49\x81\xc6\x80\x0f\x00\x00\x00\x00\x00", n, &m);
		cr_expect_eq(m.g2disp, 0);
	}
}

/* Rows must be told apart by what is measured. */
Test(recognise, rows_differ)
{
	const struct lj_layout *a, *b;
	const char *name, *other;
	size_t i, j;

	for (i = 0; (a = lj_layout_row(i, &name)); i++)
		for (j = 0; j < i; j++) {
			b = lj_layout_row(j, &other);
			cr_expect(a->g2disp != b->g2disp || a->vmstate != b->vmstate ||
					  a->cur_L != b->cur_L || a->jit_base != b->jit_base ||
					  a->g2trace != b->g2trace,
				  "%s and %s", name, other);
		}
}

/* They are read at once. */
Test(recognise, jit_base_follows_cur_L)
{
	const struct lj_layout *lj;
	const char *name;
	size_t i;

	for (i = 0; (lj = lj_layout_row(i, &name)); i++)
		cr_expect_eq(lj->jit_base, lj->cur_L + 8, "%s", name);
}

static const char installed[] = "/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2";

/* The library that this machine has, whichever it is. */
Test(recognise, installed)
{
	static struct vm_build build;
	struct elf_file *elf;
	struct error err = {};
	unsigned int sites = 0, jumps = 0, links = 0;
	size_t i;

	if (elf_open(installed, &elf))
		cr_skip_test("no libluajit-5.1.so.2 is installed");
	cr_assert_eq(lj_recognise(elf, &build, &err), 0, "%s", err.what);
	cr_expect(build.build.lj.lj.g2disp == 3968 || build.build.lj.lj.g2disp == 4008);
	cr_expect_not_null(build.name);
	for (i = 0; i < sizeof(build.build.lj.rbp_site); i++) {
		sites += (unsigned int)__builtin_popcount(build.build.lj.rbp_site[i]);
		jumps += (unsigned int)__builtin_popcount(build.build.lj.jump_site[i]);
		links += (unsigned int)__builtin_popcount(build.build.lj.link_site[i]);
	}
	cr_expect_gt(sites, 8, "%u sites", sites);
	cr_expect_gt(jumps, 80, "%u instructions behind jumps", jumps);
	cr_expect_gt(links, 2, "%u instructions that store links", links);
	cr_expect_gt(build.build.lj.exit_lo, 0);
	cr_expect_eq(build.build.lj.exit_hi - build.build.lj.exit_lo, 12);
	elf_close(&elf);
}

/* A library without a VM, and one that is this program. */
Test(recognise, no_luajit)
{
	static struct vm_build build;
	struct elf_file *elf;
	struct error err = {};

	cr_assert_eq(elf_open("/proc/self/exe", &elf), 0);
	cr_expect_eq(lj_recognise(elf, &build, &err), -ENOENT);
	elf_close(&elf);
}

static void overwrite(struct file_bytes *f, const char *old, const char *new)
{
	size_t len = strlen(old);
	uint8_t *at = f->bytes;

	while ((at = memmem(at, (size_t)(f->bytes + f->len - at), old, len)))
		memcpy(at, new, len);
}

static int recognise(const struct file_bytes *f, struct error *err)
{
	static struct vm_build build;
	struct elf_file *elf;
	int r;

	cr_assert_eq(elf_open_bytes(f->bytes, f->len, &elf), 0);
	r = lj_recognise(elf, &build, err);
	elf_close(&elf);
	return r;
}

/* A fork whose VM does other things; and a library of something else, with such a frame. */
Test(recognise, vm_of_others)
{
	struct file_bytes lib;
	struct error err = {};

	if (!file_bytes_read(installed, &lib))
		cr_skip_test("no libluajit-5.1.so.2 is installed");
	overwrite(&lib, "\x49\x81\xc6", "\x49\x81\xc7");
	cr_expect_eq(recognise(&lib, &err), -ENOTSUP);
	cr_expect_str_eq(err.what,
			 "unknown LuaJIT build: measured GG_G2DISP 0, vmstate 0, cur_L 0 (of 0), "
			 "jit_base 0 (of 0)");
	overwrite(&lib, "LuaJIT ", "Others ");
	cr_expect_eq(recognise(&lib, &err), -ENOENT);
	free(lib.bytes);
}
