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
#include "jumps.h"
#include "sites.h"

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

/*
 * True if the VM's IR is the known one: then its table lj_ir_mode is among the constants. Since
 * 2023 MIN and MAX are commutative in it.
 */
static bool has_ir(struct elf_file *elf)
{
	uint64_t at = 0;

	for (;; at++) {
		uint8_t mode[LJ_IR__MAX];

		if (elf_find_bytes(elf, at, lj_ir_mode, LJ_IR_MIN, &at))
			return false;
		if (elf_read(elf, at, mode, sizeof(mode)))
			continue;
		mode[LJ_IR_MIN] |= LJ_IRK_C;
		mode[LJ_IR_MAX] |= LJ_IRK_C;
		if (!memcmp(mode, lj_ir_mode, sizeof(mode)))
			return true;
	}
}

/*
 * Other assembler code may have frames like the VM's (libavfilter). LuaJIT's library has its
 * version among its constants, for jit.version: "LuaJIT 2.1.0-beta3", or, since 2023-08,
 * "LuaJIT 2.1.1741557863", where the last number is the time of its commit.
 */
static const char luajit[] = "LuaJIT ";

static bool says_luajit(struct elf_file *elf)
{
	uint64_t at;

	return elf_find_bytes(elf, 0, luajit, sizeof(luajit) - 1, &at) != -ENOENT;
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

static void put_name(struct elf_file *elf, char *name, size_t size)
{
	static const char version[] = "LuaJIT 2";
	char text[VERSION_MAX + 1] = "LuaJIT 2.1", date[32];
	uint64_t at;
	size_t n;

	if (!elf_find_bytes(elf, 0, version, sizeof(version) - 1, &at) &&
	    !elf_read(elf, at, text, VERSION_MAX)) {
		n = sizeof(luajit) - 1;
		while (isalnum((unsigned char)text[n]) || text[n] == '.' || text[n] == '-')
			n++;
		text[n] = '\0';
	}
	put_date(text, date, sizeof(date));
	snprintf(name, size, "%s%s", text, date);
}

static int unknown(const struct lj_measured *m, enum lj_fact wrong, struct error *err)
{
	const uint32_t *f = m->fact;

	return error_set(
		err, -ENOTSUP,
		"unknown LuaJIT build%s: %s does not fit: measured GG_G2DISP %d, vmstate %d, "
		"hookmask %d, cur_L %d, jit_base %d, J.trace %d, J.parent %d (0: not found, "
		"-1: not the same everywhere)",
		m->gc32 ? " without GC64" : "", lj_fact_names[wrong], (int)f[LJ_FACT_G2DISP],
		(int)f[LJ_FACT_VMSTATE], (int)f[LJ_FACT_HOOKMASK], (int)f[LJ_FACT_CUR_L],
		(int)f[LJ_FACT_JIT_BASE], (int)f[LJ_FACT_TRACE], (int)f[LJ_FACT_PARENT]);
}

static void put_evidence(const struct lj_layout *lj, char *buf, size_t size)
{
	snprintf(buf, size,
		 "%s; its code has GG_G2DISP %u, vmstate %u, %s %u, jit_base %u, J.trace %u, "
		 "J.parent %u, gc.total %u, BC_FUNCF %u%s%s",
		 lj->gc32 ? "GC32" : "GC64", lj->g2disp, lj->vmstate, lj->v20 ? "jit_L" : "cur_L",
		 lj->cur_L, lj->jit_base, lj->g2trace, lj->g2trace + lj->j_parent, lj->gc_total,
		 lj->bc_funcf,
		 lj->mcofs ? ""
			   : "; snapshots without mcofs, so that lines in compiled code are coarse",
		 lj->interp_states > 1 ? "; Tarantool's VM states" : "");
}

int lj_recognise(struct elf_file *elf, struct vm_build *out, struct error *err)
{
	struct lj_measured m;
	struct vm_build b = {};
	struct lj_layout *lj = &b.build.lj.lj;
	struct elf_lj_vm vm;
	uint8_t *text __free = NULL;
	enum lj_fact wrong;

	if (elf_find_lj_vm(elf, &vm) || vm.size > LB_VM_TEXT)
		return -ENOENT;
	text = malloc(vm.size);
	if (!text)
		return -ENOMEM;
	if (elf_read(elf, vm.start, text, vm.size))
		return -ENOENT;
	lj_measure(text, vm.size, &m);
	wrong = lj_layout_of(&m, vm.cframe_size, lj);
	if (wrong == LJ_FACT_G2DISP && !says_luajit(elf))
		return -ENOENT;
	if (wrong != LJ_FACTS)
		return unknown(&m, wrong, err);
	put_name(elf, b.name, sizeof(b.name));
	memcpy(b.release, b.name, sizeof(b.release));
	b.start = vm.start;
	b.size = vm.size;
	b.build.family = lj->gc32 ? LB_FAMILY_LJ32 : LB_FAMILY_LJ;
	lj->ir = !lj->gc32 && lj->mcofs && lj->str_len == LJ_STR_LEN && has_ir(elf);
	mark_rbp_sites(elf, &vm, &b.build.lj);
	lj_jumps_scan(text, vm.size, lj->gc32, b.build.lj.jump_site);
	lj_links_scan(text, vm.size, lj->gc32, b.build.lj.link_site);
	mark_exit_fetch(text, vm.size, &b.build.lj);
	put_evidence(lj, b.evidence, sizeof(b.evidence));
	*out = b;
	return 0;
}
