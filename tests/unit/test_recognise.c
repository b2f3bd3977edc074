// SPDX-License-Identifier: BSD-2-Clause
/* Which LuaJIT build: what instructions measure as, and the libraries that this machine has. */
#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "file_bytes.h"
#include "lj_layouts.h"
#include "arch/lj_facts.h"
#include "detect/lj/measure.h"
#include "detect/lj/recognise.h"

struct recognised_text {
	uint8_t bytes[512];
	size_t n;
};

static void put(struct recognised_text *t, const char *code, size_t len)
{
	memcpy(t->bytes + t->n, code, len);
	t->n += len;
}
#define PUT(t, code) put(t, code, sizeof(code) - 1)

static void put32(struct recognised_text *t, int64_t v)
{
	int32_t imm = (int32_t)v;

	put(t, (const char *)&imm, sizeof(imm));
}

static void put8(struct recognised_text *t, unsigned int v)
{
	t->bytes[t->n++] = (uint8_t)v;
}

/* What the VM of a build with this layout holds, but for what shows fact `without`. */
static void put_globals(struct recognised_text *t, const struct lj_layout *lj,
			unsigned int hookmask, enum lj_fact without)
{
	int64_t disp = lj->g2disp;

	if (without != LJ_FACT_VMSTATE) {
		PUT(t, "\x41\xc7\x86");
		put32(t, lj->vmstate - disp);
		PUT(t, "\xff\xff\xff\xff");
	}
	if (without != LJ_FACT_HOOKMASK) {
		PUT(t, "\x41\x0f\xb6\xae");
		put32(t, hookmask - disp);
	}
	if (without != LJ_FACT_CUR_L) {
		put8(t, lj->gc32 ? 0x41 : 0x49);
		PUT(t, "\x8b\xae");
		put32(t, lj->cur_L - disp);
		put8(t, lj->gc32 ? 0x41 : 0x49);
		PUT(t, "\x8b\x96");
		put32(t, lj->jit_base - disp);
	}
	if (without != LJ_FACT_G2DISP) { /* its place does not matter */
		put8(t, lj->gc32 ? 0x41 : 0x49);
		PUT(t, "\x81\xc6");
		put32(t, disp);
	}
}

static void put_exit(struct recognised_text *t, const struct lj_layout *lj)
{
	int64_t J = lj->g2trace - lj->g2disp;

	PUT(t, "\x41\x8b\x8e");
	put32(t, lj->vmstate - lj->g2disp);
	PUT(t, "\x41\xc7\x86");
	put32(t, lj->vmstate - lj->g2disp);
	put8(t, 0xfdu - lj->interp_states);
	PUT(t, "\xff\xff\xff\x41\x89\x86");
	put32(t, J + lj->j_exitno);
	PUT(t, "\x41\x89\x8e");
	put32(t, J + lj->j_parent);
}

static void put_jloop(struct recognised_text *t, const struct lj_layout *lj)
{
	put8(t, lj->gc32 ? 0x41 : 0x49);
	PUT(t, "\x8b\x8e");
	put32(t, lj->g2trace - lj->g2disp);
	if (lj->gc32)
		PUT(t, "\x8b\x04\x81\x48\x8b\x40\x40\x8b\x6c\x24\x18\x41\x89\x96");
	else
		PUT(t, "\x48\x8b\x04\xc1\x48\x8b\x40\x58\x48\x8b\x6c\x24\x10\x49\x89\x96");
	put32(t, lj->jit_base - lj->g2disp);
}

static void put_tnew(struct recognised_text *t, const struct lj_layout *lj)
{
	int64_t total = lj->gc_total - lj->g2disp;

	put8(t, lj->gc32 ? 0x41 : 0x49);
	PUT(t, "\x8b\x8e");
	put32(t, total);
	put8(t, lj->gc32 ? 0x41 : 0x49);
	PUT(t, "\x3b\x8e");
	put32(t, total + (int64_t)lj_ref_size(lj));
}

static struct recognised_text text_of(const struct lj_layout *lj, unsigned int hookmask,
				      enum lj_fact without)
{
	struct recognised_text t = {};

	put_globals(&t, lj, hookmask, without);
	if (without != LJ_FACT_PARENT)
		put_exit(&t, lj);
	if (without != LJ_FACT_TRACE)
		put_jloop(&t, lj);
	if (without != LJ_FACT_CFRAME_PREV) {
		PUT(&t, "\x4c\x8b\x7d");
		put8(&t, LJ_OFF(lj, L_CFRAME));
		PUT(&t, "\x4c\x89\x7c\x24");
		put8(&t, lj->cframe_prev);
	}
	if (without != LJ_FACT_STR_LEN) {
		if (lj->gc32)
			PUT(&t, "\x8b\x04\xc2");
		else
			PUT(&t, "\x41\x83\xfb\xfb\x75\x20");
		PUT(&t, "\x0f\x57\xc0\xf2\x0f\x2a\x40");
		put8(&t, lj->str_len);
	}
	if (without != LJ_FACT_GC_TOTAL)
		put_tnew(&t, lj);
	if (without != LJ_FACT_FUNCF) {
		PUT(&t, "\x83\xfd");
		put8(&t, lj->bc_funcf);
		if (lj->v20) {
			PUT(&t, "\x72\x04\x8b\x44\x24\x04");
		} else {
			PUT(&t, "\x72\x08\x83\xfd");
			put8(&t, lj->bc_funcf + 8u);
			PUT(&t, "\x73\x07");
		}
	}
	if (!lj->mcofs)
		return t;
	PUT(&t, "\x89\xc6");
	if (!lj->gc32)
		put8(&t, 0x48);
	PUT(&t, "\x89\xef\xf7\xde\xe8");
	return t;
}

static struct lj_measured measure(const struct recognised_text *t)
{
	struct lj_measured m;

	memset(&m, 0xff, sizeof(m));
	lj_measure(t->bytes, t->n, &m);
	return m;
}

static enum lj_fact layout_of(const struct recognised_text *t, const struct lj_layout *like,
			      struct lj_layout *lj)
{
	struct lj_measured m = measure(t);

	return lj_layout_of(&m, like->cframe_size, lj);
}

/* All layouts that there were are measured as they are. */
Test(recognise, layouts)
{
	const struct lj_layout *row;
	struct lj_layout lj;
	const char *name;
	struct recognised_text t;
	size_t i;

	for (i = 0; (row = lj_layout_row(i, &name)); i++) {
		enum lj_fact wrong;

		t = text_of(row, lj_layout_hookmask(i), LJ_FACTS);
		memset(&lj, 0xff, sizeof(lj));
		wrong = layout_of(&t, row, &lj);
		cr_assert_eq(wrong, LJ_FACTS, "%s: %s", name, lj_fact_names[wrong]);
		cr_expect_arr_eq(&lj, row, sizeof(lj), "%s", name);
	}
}

/* Nothing that is used is taken for granted. */
Test(recognise, missing_facts)
{
	static const enum lj_fact facts[] = {
		LJ_FACT_G2DISP,	 LJ_FACT_HOOKMASK, LJ_FACT_CUR_L,
		LJ_FACT_TRACE,	 LJ_FACT_PARENT,   LJ_FACT_CFRAME_PREV,
		LJ_FACT_STR_LEN, LJ_FACT_GC_TOTAL, LJ_FACT_FUNCF,
	};
	const struct lj_layout *row;
	struct lj_layout lj;
	const char *name;
	size_t i;

	row = lj_layout_row(0, &name);
	for (i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		struct recognised_text t = text_of(row, lj_layout_hookmask(0), facts[i]);

		cr_expect_eq(layout_of(&t, row, &lj), facts[i], "%s", lj_fact_names[facts[i]]);
	}
}

/* A second instruction differs; a third that agrees with the first does not count. */
Test(recognise, values_that_differ)
{
	struct lj_layout lj, other;
	const struct lj_layout *row;
	const char *name;
	struct recognised_text t;

	row = lj_layout_row(0, &name);
	t = text_of(row, lj_layout_hookmask(0), LJ_FACTS);
	other = *row;
	other.j_parent += 8;
	put_exit(&t, &other);
	put_exit(&t, row);
	cr_expect_eq(layout_of(&t, row, &lj), LJ_FACT_PARENT);
	PUT(&t, "\x49\x81\xc6");
	put32(&t, row->g2disp + 8);
	cr_expect_eq(layout_of(&t, row, &lj), LJ_FACT_G2DISP);
}

/* Fields that do not fit each other: a layout of which nothing is known. */
Test(recognise, shapes)
{
	struct lj_layout lj, odd;
	const struct lj_layout *row;
	const char *name;
	struct recognised_text t;

	row = lj_layout_row(0, &name);
	t = text_of(row, row->vmstate - 40u, LJ_FACTS);
	cr_expect_eq(layout_of(&t, row, &lj), LJ_FACT_HOOKMASK);
	odd = *row;
	odd.jit_base = odd.cur_L + 24;
	t = text_of(&odd, lj_layout_hookmask(0), LJ_FACTS);
	cr_expect_eq(layout_of(&t, row, &lj), LJ_FACT_JIT_BASE);
	odd = *row;
	odd.j_exitno = odd.j_parent + 8;
	t = text_of(&odd, lj_layout_hookmask(0), LJ_FACTS);
	cr_expect_eq(layout_of(&t, row, &lj), LJ_FACT_EXITNO);
	odd = *row;
	odd.interp_states = 2;
	t = text_of(&odd, lj_layout_hookmask(0), LJ_FACTS);
	cr_expect_eq(layout_of(&t, row, &lj), LJ_FACT_EXIT);
	odd = *row;
	odd.cframe_size = 96; /* LUAJIT_NO_UNWIND saves two registers more */
	t = text_of(row, lj_layout_hookmask(0), LJ_FACTS);
	cr_expect_eq(layout_of(&t, &odd, &lj), LJ_FACT_CFRAME_PREV);
	PUT(&t, "\x41\x57\x41\x56\x41\x55\x41\x54\x48\x83\xec\x28");
	cr_expect_eq(layout_of(&t, &odd, &lj), LJ_FACTS);
	cr_expect_eq(layout_of(&t, row, &lj), LJ_FACT_CFRAME_PREV);
	odd = *row;
	odd.str_len = 24;
	t = text_of(&odd, lj_layout_hookmask(0), LJ_FACTS);
	cr_expect_eq(layout_of(&t, row, &lj), LJ_FACT_STR_LEN);
	t = text_of(row, lj_layout_hookmask(0), LJ_FACT_GC_TOTAL);
	PUT(&t, "\x49\x8b\x8e");
	put32(&t, row->gc_total - row->g2disp);
	PUT(&t, "\x49\x3b\x8e");
	put32(&t, row->gc_total + 16 - row->g2disp);
	cr_expect_eq(layout_of(&t, row, &lj), LJ_FACT_GC_THRESHOLD);
	odd = *row;
	odd.bc_funcf = LJ_OP_JMP;
	t = text_of(&odd, lj_layout_hookmask(0), LJ_FACTS);
	cr_expect_eq(layout_of(&t, row, &lj), LJ_FACT_FUNCF);
}

Test(recognise, without_gc64)
{
	struct recognised_text t = {};
	struct lj_measured m;

	PUT(&t, "\x41\x81\xc6");
	put32(&t, 3208);
	m = measure(&t);
	cr_expect(m.gc32);
	PUT(&t, "\x49\x81\xc6");
	put32(&t, 3968);
	m = measure(&t);
	cr_expect_not(m.gc32);
}

Test(recognise, nonsense)
{
	struct recognised_text t = {};
	struct lj_measured m;

	m = measure(&t);
	cr_expect_eq(m.fact[LJ_FACT_G2DISP], 0);
	PUT(&t, "\x49\x81\xc6");
	put32(&t, -8);
	m = measure(&t);
	cr_expect_eq(m.fact[LJ_FACT_G2DISP], LJ_FACT_DIFFERS);
	t.n = 0;
	PUT(&t, "\x49\x81\xc6");
	put32(&t, 3968);
	PUT(&t, "\x41\x0f\xb6\xae");
	put32(&t, -5000);
	m = measure(&t);
	cr_expect_eq(m.fact[LJ_FACT_HOOKMASK], LJ_FACT_DIFFERS);
}

/* What a VM that is not described has to say of itself. */
Test(recognise, size_and_frame)
{
	const struct lj_layout *row;
	const char *name;
	struct lj_measured m;
	struct recognised_text t;
	size_t n;

	row = lj_layout_row(0, &name);
	t = text_of(row, lj_layout_hookmask(0), LJ_FACTS);
	n = t.n;
	cr_expect_eq(lj_measured_size(t.bytes, n), n);
	PUT(&t, "\x55\x48\x89\xe5\x53\x48\x89\xfb"); /* lj_vm_ffi_call */
	cr_expect_eq(lj_measured_size(t.bytes, t.n - 1), t.n - 1);
	cr_expect_eq(lj_measured_size(t.bytes, t.n), n);
	PUT(&t, "\x53\x41\x57\x41\x56\x48\x83\xec\x28");
	m = measure(&t);
	cr_expect_eq(lj_measured_cframe(&m), 80);
	PUT(&t, "\x41\x57\x41\x56\x41\x55\x41\x54\x48\x83\xec\x28");
	m = measure(&t);
	cr_expect_eq(lj_measured_cframe(&m), 96);
}

/* The text ends within an instruction. */
Test(recognise, cut)
{
	const struct lj_layout *row;
	struct lj_layout lj;
	const char *name;
	struct recognised_text t;
	size_t all;

	row = lj_layout_row(0, &name);
	t = text_of(row, lj_layout_hookmask(0), LJ_FACT_TRACE);
	put_jloop(&t, row);
	for (all = t.n; t.n > 0; t.n--)
		cr_expect((layout_of(&t, row, &lj) == LJ_FACTS) == (t.n == all));
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
		cr_assert(false, "no libluajit-5.1.so.2 is installed");
	cr_assert_eq(lj_recognise(elf, &build, &err), 0, "%s", err.what);
	cr_expect(build.build.lj.lj.g2disp == 3968 || build.build.lj.lj.g2disp == 4008);
	cr_expect_eq(strncmp(build.name, "LuaJIT 2.1.0-beta3", 18), 0, "%s", build.name);
	cr_expect_str_eq(build.release, build.name);
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
		cr_assert(false, "no libluajit-5.1.so.2 is installed");
	overwrite(&lib, "\x49\x81\xc6", "\x49\x81\xc7");
	cr_expect_eq(recognise(&lib, &err), -ENOTSUP);
	cr_expect_eq(strncmp(err.what, "unknown LuaJIT build: GG_G2DISP does not fit", 44), 0, "%s",
		     err.what);
	overwrite(&lib, "LuaJIT ", "Others ");
	cr_expect_eq(recognise(&lib, &err), -ENOENT);
	free(lib.bytes);
}

/* Forks are named as they name themselves: one whose VM is LuaJIT's, and one whose is not. */
Test(recognise, names_forks)
{
	static struct vm_build build;
	struct elf_file *elf;
	struct file_bytes lib;
	struct error err = {};

	if (!file_bytes_read(installed, &lib))
		cr_assert(false, "no libluajit-5.1.so.2 is installed");
	overwrite(&lib, "LuaJIT 2.1.0", "moonjit 2.1.");
	cr_assert_eq(elf_open_bytes(lib.bytes, lib.len, &elf), 0);
	cr_assert_eq(lj_recognise(elf, &build, &err), 0, "%s", err.what);
	elf_close(&elf);
	cr_expect_eq(strncmp(build.release, "moonjit 2.1.", 12), 0, "%s", build.release);
	overwrite(&lib, "moonjit 2.1.", "RaptorJIT 1.");
	overwrite(&lib, "LuaJIT", "Others");
	cr_expect_eq(recognise(&lib, &err), -ENOTSUP);
	cr_expect(strstr(err.what, " build: GCtrace does not fit: measured GG_G2DISP "), "%s",
		  err.what);
	overwrite(&lib, "\x49\x81\xc6", "\x49\x81\xc7");
	cr_expect_eq(recognise(&lib, &err), -ENOTSUP);
	cr_expect_eq(strncmp(err.what, "unknown RaptorJIT 1.", 20), 0, "%s", err.what);
	cr_expect(strstr(err.what, " build: GG_G2DISP does not fit: measured GG_G2DISP 0, "), "%s",
		  err.what);
	free(lib.bytes);
}

/* As LUAJIT_NO_UNWIND does it: nothing describes the VM. Its FDE is for another function, then. */
static void hide_vm(struct file_bytes *lib, const struct elf_lj_vm *vm)
{
	int32_t start, n = 0;
	uint32_t size;

	for (size_t at = 4; at + 4 <= lib->len; at++) {
		memcpy(&start, lib->bytes + at - 4, sizeof(start)); /* relative to its own place */
		memcpy(&size, lib->bytes + at, sizeof(size));
		if (size != vm->size || (uint64_t)start + at - 4 != vm->start)
			continue;
		memset(lib->bytes + at, 0, sizeof(size));
		n++;
	}
	cr_assert_gt(n, 0);
}

Test(recognise, vm_that_is_not_described)
{
	static struct vm_build described, build;
	struct error err = {};
	struct file_bytes lib;
	struct elf_file *elf;
	struct elf_lj_vm vm;

	if (!file_bytes_read(installed, &lib))
		cr_assert(false, "no libluajit-5.1.so.2 is installed");
	cr_assert_eq(elf_open_bytes(lib.bytes, lib.len, &elf), 0);
	cr_assert_eq(elf_find_lj_vm(elf, &vm), 0);
	cr_assert_eq(lj_recognise(elf, &described, &err), 0);
	elf_close(&elf);
	hide_vm(&lib, &vm);
	cr_assert_eq(elf_open_bytes(lib.bytes, lib.len, &elf), 0);
	cr_assert_eq(elf_find_lj_vm(elf, &vm), -ENOENT);
	cr_assert_eq(lj_recognise(elf, &build, &err), 0, "%s", err.what);
	elf_close(&elf);
	cr_expect_leq(build.start, described.start);
	cr_expect_gt(build.start + 16, described.start, "the end of the function before it");
	cr_expect_geq(build.start + build.size, described.start + described.size);
	cr_expect_lt(build.start + build.size, described.start + described.size + 16);
	cr_expect_arr_eq(&build.build.lj.lj, &described.build.lj.lj, sizeof(struct lj_layout));
	overwrite(&lib, "LuaJIT ", "Others ");
	cr_expect_eq(recognise(&lib, &err), -ENOENT);
	free(lib.bytes);
}

/* As a static program without section headers: it is named, as nothing leads to its VM. */
Test(recognise, no_call_frame_information)
{
	struct file_bytes lib;
	struct error err = {};
	uint8_t *type;

	if (!file_bytes_read(installed, &lib))
		cr_assert(false, "no libluajit-5.1.so.2 is installed");
	type = memmem(lib.bytes, 1024, "\x50\xe5\x74\x64", 4); /* PT_GNU_EH_FRAME */
	cr_assert_not_null(type);
	memset(type, 0, 4);
	memset(lib.bytes + offsetof(Elf64_Ehdr, e_shnum), 0, 2);
	cr_expect_eq(recognise(&lib, &err), -ENOTSUP);
	cr_expect(strstr(err.what, "LuaJIT 2.1.0-beta3: the file lacks call frame information"),
		  "%s", err.what);
	overwrite(&lib, "LuaJIT ", "Others ");
	cr_expect_eq(recognise(&lib, &err), -ENOENT);
	free(lib.bytes);
}

/* The additions are those of a build without GC64, but nothing else is. */
Test(recognise, names_gc32)
{
	struct file_bytes lib;
	struct error err = {};

	if (!file_bytes_read(installed, &lib))
		cr_assert(false, "no libluajit-5.1.so.2 is installed");
	overwrite(&lib, "\x49\x81\xc6", "\x41\x81\xc6");
	cr_expect_eq(recognise(&lib, &err), -ENOTSUP);
	cr_expect_eq(strncmp(err.what, "unknown LuaJIT build without GC64: cur_L does not fit", 53),
		     0, "%s", err.what);
	free(lib.bytes);
}
