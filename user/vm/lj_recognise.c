// SPDX-License-Identifier: BSD-2-Clause
/*
 * Measuring a LuaJIT build. The VM's text (vm_x64.dasc) addresses global_State relative to r14,
 * which is g + GG_G2DISP, in a handful of forms:
 *
 *	49 81 c6 imm32			add r14, GG_G2DISP		entries: vm_call, ...
 *	41 c7 86 disp32 ff ff ff ff	mov dword [r14+d], ~INTERP	set_vmstate
 *	49 89 ae disp32			mov [r14+d], rbp		cur_L, and tmpbuf.L
 *	49 89 96 disp32			mov [r14+d], rdx		jit_base
 *	49 8b 8e disp32			mov rcx, [r14+d]		J.trace, and gc fields
 *
 * Only a row of lj_layouts.def that agrees with all of them is taken.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "lj_ir.h"
#include "lj_recognise.h"
#include "target/lj_jumps.h"
#include "target/lj_sites.h"

struct lj_row {
	const char *name;
	struct lj_layout lj;
};

static const struct lj_row rows[] = {
#define LJ_LAYOUT(name_, g2disp_, vmstate_, cur_L_, jit_base_, g2trace_, sizeof_L_, mainthref_,    \
		  registrytv_, j_parent_, j_exitno_, call_, jloop_, funcf_, funcc_)                \
	{                                                                                          \
		.name = name_,                                                                     \
		.lj =                                                                              \
			{                                                                          \
				.g2disp = g2disp_,                                                 \
				.g2trace = g2trace_,                                               \
				.sizeof_L = sizeof_L_,                                             \
				.vmstate = vmstate_,                                               \
				.mainthref = mainthref_,                                           \
				.cur_L = cur_L_,                                                   \
				.jit_base = jit_base_,                                             \
				.registrytv = registrytv_,                                         \
				.j_parent = j_parent_,                                             \
				.j_exitno = j_exitno_,                                             \
				.bc_jloop = jloop_,                                                \
				.bc_funcf = funcf_,                                                \
				.bc_funcc = funcc_,                                                \
				.bc_call = call_,                                                  \
			},                                                                         \
	},
#include "lj_layouts.def"
#undef LJ_LAYOUT
};

const struct lj_layout *lj_layout_row(size_t i, const char **name)
{
	if (i >= sizeof(rows) / sizeof(rows[0]))
		return NULL;
	*name = rows[i].name;
	return &rows[i].lj;
}

static int32_t imm32(const uint8_t *p)
{
	int32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* A value that must be the same wherever it appears: 0 until seen, UINT32_MAX once it differed. */
static void agree(uint32_t *field, uint32_t value)
{
	*field = !*field || *field == value ? value : UINT32_MAX;
}

static void collect(uint32_t *set, uint32_t *n, int64_t value)
{
	uint32_t i;

	if (value <= 0 || value > UINT16_MAX)
		return;
	for (i = 0; i < *n; i++)
		if (set[i] == value)
			return;
	if (*n < LJ_MEASURED_MAX)
		set[(*n)++] = (uint32_t)value;
}

static void measure_field(const uint8_t *p, struct lj_measured *out)
{
	int64_t offset = (int64_t)out->g2disp + imm32(p + 3);

	if (p[0] == 0x41 && p[1] == 0xc7 && p[2] == 0x86 && imm32(p + 7) == -1)
		agree(&out->vmstate, (uint32_t)offset);
	if (p[0] != 0x49)
		return;
	if (p[1] == 0x89 && p[2] == 0xae)
		collect(out->stores_L, &out->nstores_L, offset);
	else if (p[1] == 0x89 && p[2] == 0x96)
		collect(out->stores_base, &out->nstores_base, offset);
	else if (p[1] == 0x8b && p[2] == 0x8e)
		collect(out->loads, &out->nloads, offset);
}

void lj_measure(const uint8_t *text, size_t size, struct lj_measured *out)
{
	size_t i;

	memset(out, 0, sizeof(*out));
	for (i = 0; i + 11 <= size; i++)
		if (text[i] == 0x49 && text[i + 1] == 0x81 && text[i + 2] == 0xc6)
			agree(&out->g2disp, (uint32_t)imm32(text + i + 3));
	if (!out->g2disp || out->g2disp > UINT16_MAX) {
		out->g2disp = 0;
		return;
	}
	for (i = 0; i + 11 <= size; i++)
		measure_field(text + i, out);
	if (out->vmstate > UINT16_MAX)
		out->vmstate = 0;
}

static int has(const uint32_t *set, uint32_t n, uint32_t value)
{
	while (n)
		if (set[--n] == value)
			return 1;
	return 0;
}

static const struct lj_row *row_for(const struct lj_measured *m)
{
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct lj_layout *lj = &rows[i].lj;

		if (lj->g2disp == m->g2disp && lj->vmstate == m->vmstate &&
		    has(m->stores_L, m->nstores_L, lj->cur_L) &&
		    has(m->stores_base, m->nstores_base, lj->jit_base) &&
		    has(m->loads, m->nloads, lj->g2trace))
			return &rows[i];
	}
	return NULL;
}

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

	if (!sites || elf_lj_rbp_sites(elf, vm, sites, RBP_SITES_MAX, &n))
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
 * Is the VM's intermediate code the one that we know? Its table lj_ir_mode is among the constants.
 * That MIN and MAX are commutative was put right in 2023.
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
 * Frames as the VM's are described by hand in other assembler code, too (libavfilter). LuaJIT's
 * library has the name of its version among its constants, for jit.version.
 */
static bool says_luajit(struct elf_file *elf)
{
	static const char name[] = "LuaJIT ";
	uint64_t at;

	return elf_find_bytes(elf, 0, name, sizeof(name) - 1, &at) != -ENOENT;
}

int lj_recognise(struct elf_file *elf, struct vm_build *out, struct error *err)
{
	const struct lj_row *row;
	struct lj_measured m;
	struct vm_build b = {};
	struct elf_lj_vm vm;
	uint8_t *text __free = NULL;

	if (elf_find_lj_vm(elf, &vm) || vm.size > LB_VM_TEXT)
		return -ENOENT;
	text = malloc(vm.size);
	if (!text)
		return -ENOMEM;
	if (elf_read(elf, vm.start, text, vm.size))
		return -ENOENT;
	lj_measure(text, vm.size, &m);
	row = row_for(&m);
	if (!row && !m.g2disp && !says_luajit(elf))
		return -ENOENT;
	if (!row)
		return error_set(
			err, -ENOTSUP,
			"unknown LuaJIT build: measured GG_G2DISP %u, vmstate %u, cur_L %u "
			"(of %u), jit_base %u (of %u)",
			m.g2disp, m.vmstate, m.stores_L[0], m.nstores_L, m.stores_base[0],
			m.nstores_base);
	b.name = row->name;
	b.start = vm.start;
	b.size = vm.size;
	b.build.family = LB_FAMILY_LJ;
	b.build.lj.lj = row->lj;
	b.build.lj.lj.ir = has_ir(elf);
	mark_rbp_sites(elf, &vm, &b.build.lj);
	lj_jumps_scan(text, vm.size, b.build.lj.jump_site);
	lj_links_scan(text, vm.size, b.build.lj.link_site);
	mark_exit_fetch(text, vm.size, &b.build.lj);
	snprintf(b.evidence, sizeof(b.evidence),
		 "its code has GG_G2DISP %u, vmstate %u, cur_L %u, jit_base %u, J.trace %u",
		 m.g2disp, m.vmstate, row->lj.cur_L, row->lj.jit_base, row->lj.g2trace);
	*out = b;
	return 0;
}
