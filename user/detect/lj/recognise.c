// SPDX-License-Identifier: BSD-2-Clause
/* Recognises a LuaJIT build: measures the layout in the VM's text (detect/lj/measure.c). */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "ir.h"
#include "measure.h"
#include "recognise.h"
#include "sites.h"
#include "arch/lj_facts.h"
#include "arch/lj_jumps.h"

#define RBP_SITES_MAX 256

static void mark(struct lj_build *build, const uint32_t *offsets, size_t n)
{
	while (n-- > 0)
		if (offsets[n] < LB_VM_TEXT)
			build->rbp_site[offsets[n] >> 3] |= 1 << (offsets[n] & 7);
}

static void mark_rbp_sites(struct elf_file *elf, const struct elf_lj_vm *vm, struct lj_build *build)
{
	struct lj_site *sites __free = calloc(RBP_SITES_MAX, sizeof(*sites));
	size_t n = 0, i;

	if (!sites || elf_lj_rbp_sites(elf, vm, build->lj.gc32, sites, RBP_SITES_MAX, &n))
		return;
	for (i = 0; i < n; i++) {
		mark(build, sites[i].before, sites[i].nbefore);
		mark(build, sites[i].behind, sites[i].nbehind);
	}
}

static void mark_exit_fetch(const uint8_t *text, size_t size, struct lj_build *build)
{
	uint32_t at;

	lj_exit_scan(text, size, &build->exit_lo, &build->exit_hi);
	for (at = build->exit_lo; at < build->exit_hi; at++)
		build->jump_site[at >> 3] |= 1 << (at & 7);
}

/* The numbering of the VM's IR: its table lj_ir_mode, among the constants, shows it. All begin alike, up to RENAME. */
static uint8_t find_ir(struct elf_file *elf)
{
	uint64_t at = 0;

	for (;; at++) {
		uint8_t mode[LJ_IR__MAX], numbers;

		if (elf_find_bytes(elf, at, lj_ir_mode, LJ_IR_RENAME + 1, &at))
			return LJ_IR_UNKNOWN;
		if (elf_read(elf, at, mode, sizeof(mode)))
			continue;
		for (numbers = LJ_IR_2021_07; numbers < LJ_IR__NUMBERS; numbers++)
			if (lj_ir_is_mode(numbers, mode))
				return numbers;
	}
}

/*
 * Other assembler code may have frames like the VM's (libavfilter). LuaJIT's library has its
 * version among its constants, for jit.version: "LuaJIT 2.1.0-beta3", or, since 2023-08,
 * "LuaJIT 2.1.1741557863", where the last number is the time of its commit. Forks have other names.
 */
enum product { MOONJIT, RAPTORJIT, LUAJIT, PRODUCTS };
static const char *const products[PRODUCTS] = {"moonjit ", "RaptorJIT ", "LuaJIT "};

static bool says_luajit(struct elf_file *elf)
{
	uint64_t at;

	for (int i = 0; i < PRODUCTS; i++)
		if (elf_find_bytes(elf, 0, products[i], strlen(products[i]), &at) != -ENOENT)
			return true;
	return false;
}

/* " of 2025-03-09", by the version's last number. */
static void put_date(const char *version, char *buf, size_t size)
{
	const char *dot = strrchr(version, '.');
	time_t when = dot ? (time_t)strtoll(dot + 1, NULL, 10) : 0;
	struct tm tm;

	buf[0] = '\0';
	if (when > 1000000000 && gmtime_r(&when, &tm))
		strftime(buf, size, " of %Y-%m-%d", &tm);
}

#define VERSION_MAX 40

/* Copies "moonjit 2.2.0", if that is in the file: a product's name and a number. */
static bool find_version(struct elf_file *elf, const char *product, char text[VERSION_MAX + 1])
{
	size_t n = strlen(product);
	uint64_t at = 0;

	for (;; at++) {
		if (elf_find_bytes(elf, at, product, n, &at))
			return false;
		if (!elf_read(elf, at, text, VERSION_MAX) && isdigit((unsigned char)text[n]))
			break;
	}
	while (isalnum((unsigned char)text[n]) || text[n] == '.' || text[n] == '-')
		n++;
	text[n] = '\0';
	return true;
}

/* Returns LUAJIT if the file names none. */
static enum product put_name(struct elf_file *elf, char *name, size_t size)
{
	char text[VERSION_MAX + 1] = {}, date[32];
	int i = 0;

	while (i < PRODUCTS && !find_version(elf, products[i], text))
		i++;
	if (i == PRODUCTS)
		memcpy(text, "LuaJIT 2.1", sizeof("LuaJIT 2.1"));
	put_date(text, date, sizeof(date));
	snprintf(name, size, "%s%s", text, date);
	return i < PRODUCTS ? (enum product)i : LUAJIT;
}

static int unknown(struct elf_file *elf, const struct lj_measured *m, const char *wrong,
		   struct error *err)
{
	const uint32_t *f = m->fact;
	char name[80];

	if (put_name(elf, name, sizeof(name)) == LUAJIT)
		memcpy(name, "LuaJIT", sizeof("LuaJIT"));
	return error_set(
		err, -ENOTSUP,
		"unknown %s build%s: %s does not fit: measured GG_G2DISP %d, vmstate %d, "
		"hookmask %d, cur_L %d, jit_base %d, J.trace %d, J.parent %d, gc.total %d (0: not "
		"found, -1: not the same everywhere)",
		name, m->gc32 ? " without GC64" : "", wrong, (int)f[LJ_FACT_G2DISP],
		(int)f[LJ_FACT_VMSTATE], (int)f[LJ_FACT_HOOKMASK], (int)f[LJ_FACT_CUR_L],
		(int)f[LJ_FACT_JIT_BASE], (int)f[LJ_FACT_TRACE], (int)f[LJ_FACT_PARENT],
		(int)f[LJ_FACT_GC_TOTAL]);
}

static void put_evidence(const struct lj_layout *lj, char *buf, size_t size)
{
	snprintf(buf, size,
		 "%s; its code has GG_G2DISP %u, vmstate %u, %s %u, jit_base %u, J.trace %u, "
		 "J.parent %u, gc.total %u, BC_FUNCF %u%s%s%s",
		 lj->gc32 ? "GC32" : "GC64", lj->g2disp, lj->vmstate, lj->v20 ? "jit_L" : "cur_L",
		 lj->cur_L, lj->jit_base, lj->g2trace, lj->g2trace + lj->j_parent, lj->gc_total,
		 lj->bc_funcf, lj->mcofs ? "" : "; snapshots without mcofs",
		 lj->ir ? "" : "; its IR is not known, so that lines in compiled code are coarse",
		 lj->interp_states > 1 ? "; Tarantool's VM states" : "");
}

/* A range that may be the VM. */
struct lj_range {
	struct elf_lj_vm vm;
	uint8_t *text;
	struct lj_measured m;
	struct lj_layout lj;
	enum lj_fact wrong; /* LJ_FACTS: none */
	bool lacks_fdes;    /* the file */
};

static int measure(struct elf_file *elf, const struct elf_lj_vm *vm, struct lj_range *c)
{
	c->vm = *vm;
	free(c->text);
	c->text = malloc(vm->size);
	if (!c->text)
		return -ENOMEM;
	if (elf_read(elf, vm->start, c->text, vm->size))
		return -ENOENT;
	if (!c->vm.cframe_size)
		c->vm.size = lj_measured_size(c->text, vm->size);
	lj_measure(c->text, c->vm.size, &c->m);
	if (!c->vm.cframe_size)
		c->vm.cframe_size = lj_measured_cframe(&c->m);
	c->wrong = lj_layout_of(&c->m, c->vm.cframe_size, &c->lj);
	return 0;
}

/* True if the text addresses a global_State as the VM does. */
static bool is_vm(const struct lj_range *c)
{
	return c->m.fact[LJ_FACT_G2DISP] && c->m.fact[LJ_FACT_VMSTATE];
}

/*
 * Measures the VM that call frame information describes. Without one, measures the gaps of
 * elf_lj_vms() and takes the first VM, if the file contains the name of a LuaJIT. Returns -ENOENT if
 * no VM was found.
 */
static int find_vm(struct elf_file *elf, struct lj_range *c)
{
	struct elf_lj_vm vms[ELF_LJ_VMS];
	int n = elf_lj_vms(elf, LB_VM_TEXT, vms, &c->lacks_fdes), r;

	if (n <= 0 || vms[0].size > LB_VM_TEXT || (!vms[0].cframe_size && !says_luajit(elf)))
		return -ENOENT;
	for (int i = 0; i < n; i++) {
		r = measure(elf, &vms[i], c);
		if (r || vms[0].cframe_size || is_vm(c))
			return r;
	}
	return -ENOENT;
}

static void lj_range_clear(struct lj_range *c)
{
	free(c->text);
}

int lj_recognise(struct elf_file *elf, struct vm_build *out, struct error *err)
{
	struct lj_range c __cleanup(lj_range_clear) = {};
	struct vm_build b = {};
	struct lj_layout *lj = &b.build.lj.lj;
	int r = find_vm(elf, &c);

	if (!r && c.wrong == LJ_FACT_G2DISP && !says_luajit(elf))
		r = -ENOENT;
	if (r == -ENOENT && c.lacks_fdes && find_version(elf, products[LUAJIT], b.name))
		return error_set(err, -ENOTSUP,
				 "%s: the file lacks call frame information (.eh_frame), by which "
				 "its VM is found",
				 b.name);
	if (r)
		return r;
	if (c.wrong != LJ_FACTS)
		return unknown(elf, &c.m, lj_fact_names[c.wrong], err);
	/* RaptorJIT's VM measures as LuaJIT's does, but its traces and frames are others */
	if (put_name(elf, b.name, sizeof(b.name)) == RAPTORJIT)
		return unknown(elf, &c.m, "GCtrace", err);
	*lj = c.lj;
	memcpy(b.release, b.name, sizeof(b.release));
	b.start = c.vm.start;
	b.size = c.vm.size;
	b.build.family = lj->gc32 ? LB_FAMILY_LJ32 : LB_FAMILY_LJ;
	lj->ir = find_ir(elf);
	mark_rbp_sites(elf, &c.vm, &b.build.lj);
	lj_jumps_scan(c.text, c.vm.size, lj->gc32, b.build.lj.jump_site);
	lj_links_scan(c.text, c.vm.size, lj->gc32, b.build.lj.link_site);
	mark_exit_fetch(c.text, c.vm.size, &b.build.lj);
	put_evidence(lj, b.evidence, sizeof(b.evidence));
	*out = b;
	return 0;
}
