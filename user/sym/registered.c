// SPDX-License-Identifier: BSD-2-Clause
#include "registered.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "proc/elf_regs.h"

#define MOST 1024 /* functions: all libraries have 200 */

struct registered_entry {
	uint64_t vaddr;
	size_t order; /* a function may be registered twice: its first name is kept */
	char name[2 * ELF_REG_NAME];
};

struct registered {
	struct registered_entry *entry; /* sorted */
	size_t n;
};

static int add(struct registered *all, const char *library, const char *name, uint64_t vaddr)
{
	struct registered_entry *e;

	if (all->n == MOST)
		return -ENOENT;
	if (array_grow(&all->entry, all->n, sizeof(*all->entry)))
		return -ENOMEM;
	e = &all->entry[all->n];
	*e = (struct registered_entry){.vaddr = vaddr, .order = all->n++};
	snprintf(e->name, sizeof(e->name), "%s%s%s", library, *library ? "." : "", name);
	return 0;
}

static int add_library(void *arg, const struct elf_regs *regs)
{
	size_t i;
	int r = 0;

	if (!regs->library)
		return 0;
	for (i = 0; i < regs->n && !r; i++)
		if (regs->function[i])
			r = add(arg, regs->library, regs->name[i], regs->function[i]);
	return r;
}

static int by_address(const void *a, const void *b)
{
	const struct registered_entry *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void drop_repeated(struct registered *all)
{
	size_t i, n = 0;

	for (i = 0; i < all->n; i++)
		if (!n || all->entry[i].vaddr != all->entry[n - 1].vaddr)
			all->entry[n++] = all->entry[i];
	all->n = n;
}

int registered_read(struct elf_file *elf, struct registered **out)
{
	struct registered *all __cleanup(registered_free) = calloc(1, sizeof(*all));
	int r;

	*out = NULL;
	if (!all)
		return -ENOMEM;
	r = elf_regs(elf, add_library, all);
	if (r)
		return r;
	if (all->n)
		qsort(all->entry, all->n, sizeof(*all->entry), by_address);
	drop_repeated(all);
	if (all->n)
		*out = TAKE_PTR(all);
	return 0;
}

void registered_free(struct registered **registered)
{
	if (*registered)
		free((*registered)->entry);
	free(*registered);
	*registered = NULL;
}

size_t registered_bytes(const struct registered *r)
{
	return r ? sizeof(*r) + r->n * sizeof(*r->entry) : 0;
}

static int find(const void *vaddr, const void *entry)
{
	uint64_t a = *(const uint64_t *)vaddr, b = ((const struct registered_entry *)entry)->vaddr;

	return a < b ? -1 : a > b;
}

const char *registered_name(const struct registered *r, uint64_t vaddr)
{
	const struct registered_entry *e;

	if (!r)
		return NULL;
	e = bsearch(&vaddr, r->entry, r->n, sizeof(*r->entry), find);
	return e ? e->name : NULL;
}
