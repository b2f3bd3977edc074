// SPDX-License-Identifier: BSD-2-Clause
#include "sites.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

#define MAX_VM (1u << 20)
#define MAX_SITES 4096

int elf_lj_rbp_sites(struct elf_file *elf, const struct elf_lj_vm *vm, bool gc32,
		     struct lj_site *sites, size_t max, size_t *n)
{
	struct lj_site *all __free = calloc(MAX_SITES, sizeof(*all));
	uint8_t *text __free = NULL;
	size_t nall, i, kept = 0;
	int err;

	if (vm->size > MAX_VM)
		return -E2BIG;
	text = malloc(vm->size + 1);
	if (!all || !text)
		return -ENOMEM;
	err = elf_read(elf, vm->start, text, vm->size);
	if (!err)
		err = lj_sites_scan(text, vm->size, gc32, vm->start, all, MAX_SITES, &nall);
	if (err)
		return err;
	for (i = 0; i < nall; i++) {
		if (all[i].class != LJ_SITE_RBP)
			continue;
		if (kept == max)
			return -E2BIG;
		sites[kept++] = all[i];
	}
	*n = kept;
	return 0;
}
