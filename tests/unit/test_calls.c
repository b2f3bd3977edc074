// SPDX-License-Identifier: BSD-2-Clause
/* Where probes go: in the libraries that this machine has, and not in damaged ones. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/x86_64/insn.h"
#include "base/cleanup.h"
#include "detect/calls.h"
#include "detect/lj/recognise.h"
#include "detect/puc/recognise.h"
#include "file_bytes.h"

#define LIB "/usr/lib/x86_64-linux-gnu/"

static struct call_probes probes;
static struct vm_build build;

static int find(struct elf_file *elf, struct error *err)
{
	int r = lj_recognise(elf, &build, err);

	if (!r)
		return lj_call_probes(elf, &build, &probes, err);
	r = puc_recognise(elf, &build, err);
	return r ? r : puc_call_probes(elf, &build, &probes, err);
}

static uint32_t count(enum lb_call_site site)
{
	uint32_t i, n = 0;

	for (i = 0; i < probes.n; i++)
		n += probes.at[i].site == site;
	return n;
}

/* Each is where an instruction begins that the kernel emulates, unless it is marked. */
static void check_instructions(struct elf_file *elf)
{
	uint32_t i;

	for (i = 0; i < probes.n; i++) {
		uint8_t bytes[INSN_BYTES];
		struct insn in;

		cr_assert_eq(elf_read(elf, probes.at[i].addr, bytes, sizeof(bytes)), 0);
		cr_assert(insn_decode(bytes, sizeof(bytes), &in));
		if (probes.at[i].site == LB_CALL_LJ_CHECK)
			cr_assert_eq(in.op, ZYDIS_MNEMONIC_JNBE);
		else if (!probes.at[i].stepped)
			cr_assert(insn_is_branch(&in) || in.op == ZYDIS_MNEMONIC_PUSH);
	}
}

/* The entries of 5.4 are luaD_precall and luaD_pretailcall. */
static void puc_file(const char *path, uint32_t entries)
{
	struct elf_file *elf __cleanup(elf_close) = NULL;
	struct error err = {};

	cr_assert_eq(elf_open(path, &elf), 0, "%s", path);
	cr_assert_eq(find(elf, &err), 0, "%s: %s", path, err.what);
	cr_assert_eq(count(LB_CALL_PUC_ENTRY), entries, "%s", path);
	cr_assert_eq(count(LB_CALL_PUC_META), 1, "%s", path);
	cr_assert_eq(probes.n, entries + 1);
	check_instructions(elf);
}

Test(calls, puc)
{
	puc_file("/usr/bin/lua5.1", 1);
	puc_file("/usr/bin/lua5.2", 1);
	puc_file("/usr/bin/lua5.3", 1);
	puc_file("/usr/bin/lua5.4", 2);
	puc_file(LIB "liblua5.1.so.0", 1);
	puc_file(LIB "liblua5.2.so.0", 1);
	puc_file(LIB "liblua5.3.so.0", 1);
	puc_file(LIB "liblua5.4.so.0", 2);
}

Test(calls, luajit)
{
	struct elf_file *elf __cleanup(elf_close) = NULL;
	struct error err = {};
	uint32_t i, stepped = 0;

	cr_assert_eq(elf_open(LIB "libluajit-5.1.so.2", &elf), 0);
	cr_assert_eq(find(elf, &err), 0, "%s", err.what);
	cr_assert_eq(count(LB_CALL_LJ_CHECK), 5);
	cr_assert_geq(count(LB_CALL_LJ_FAST), 50);
	for (i = 0; i < probes.n; i++)
		stepped += probes.at[i].stepped;
	cr_assert_leq(stepped, 3);
	check_instructions(elf);
}

/* Damages the file's text, one byte at a time: probes are refused, or at instructions as before. */
Test(calls, damaged_text_is_refused_or_still_decodes)
{
	static const char *const paths[] = {"/usr/bin/lua5.4", LIB "libluajit-5.1.so.2"};

	for (size_t p = 0; p < sizeof(paths) / sizeof(paths[0]); p++) {
		struct file_bytes file = {};
		uint8_t *bytes __free = NULL;
		struct elf_file *whole __cleanup(elf_close) = NULL;
		struct error err = {};
		uint64_t offset;

		cr_assert(file_bytes_read(paths[p], &file));
		bytes = file.bytes;
		cr_assert_eq(elf_open_bytes(bytes, file.len, &whole), 0);
		cr_assert_eq(find(whole, &err), 0);
		cr_assert_eq(elf_offset(whole, build.start, &offset), 0);
		for (size_t i = 0; i < 32; i++) {
			size_t at = offset + i * (build.size / 32) + i % 7;
			struct elf_file *elf __cleanup(elf_close) = NULL;
			uint8_t was = bytes[at];

			bytes[at] ^= 0x55;
			cr_assert_eq(elf_open_bytes(bytes, file.len, &elf), 0);
			if (!find(elf, &err))
				check_instructions(elf);
			bytes[at] = was;
		}
	}
}
