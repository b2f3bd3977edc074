// SPDX-License-Identifier: BSD-2-Clause
/* ELF files of hostile targets. */
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proc/elf.h"
#include "detect/lj/sites.h"

static int on_fde(void *arg, const struct elf_fde *fde)
{
	*(uint64_t *)arg ^= fde->start + fde->size;
	return 0;
}

static int on_pointer(void *arg, const struct elf_pointer *pointer)
{
	*(uint64_t *)arg += pointer->slot ^ pointer->value;
	return 0;
}

/* scan: look through the VM's code, too, which takes longer than all else (lj_scan.c) */
static void ask(struct elf_file *elf, bool scan)
{
	uint64_t addr = 0, size, start = 0, sum = 0;
	const char *name = NULL;
	struct elf_lj_vm vm;
	struct lj_site sites[96];
	size_t n;

	elf_fdes(elf, on_fde, &sum);
	elf_pointers(elf, on_pointer, &sum);
	if (!elf_lookup(elf, "lua_newstate", &addr, &size) && !elf_symbol(elf, addr, &name, &start))
		if (!name || start > addr)
			abort();
	elf_wants(elf, "lua_newstate");
	elf_bias(elf, 0x7f0000001000, 0x1000, &addr);
	elf_offset(elf, 0x1000, &addr);
	if (!elf_find_lj_vm(elf, &vm) && scan)
		elf_lj_rbp_sites(elf, &vm, false, sites, 96, &n);
	elf_close(&elf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_file *elf = NULL;

	if (!elf_open_bytes(data, size, &elf))
		ask(elf, data[EI_NIDENT - 1] & 1); /* a byte without a meaning in ELF */
	return 0;
}
