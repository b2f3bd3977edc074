// SPDX-License-Identifier: BSD-2-Clause
/* Data words that hold addresses of the file itself, by its relocations: one pass over them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/elf_abi.h"
#include "base/cleanup.h"
#include "elf_priv.h"

#ifndef SHT_RELR
#define SHT_RELR 19
#endif
#define MAX_SYMBOLS (32u << 20) /* bytes of a symbol table */
#define MAX_DATA (16u << 20)	/* bytes of a writable segment that are scanned */

struct symbols {
	const char *bytes;
	size_t size;
};

struct pointers {
	/* True if the relocation is of this kind; then sets the word's value. */
	bool (*value)(const struct symbols *symbols, const Elf64_Rela *rela, uint64_t *value);
	bool by_symbol;
	struct symbols symbols;
	int (*fn)(void *arg, const struct elf_pointer *pointer);
	void *arg;
	bool any;
};

static bool relative(const struct symbols *symbols, const Elf64_Rela *rela, uint64_t *value)
{
	(void)symbols;
	*value = (uint64_t)rela->r_addend;
	return elf_abi_is_relative(ELF64_R_TYPE(rela->r_info));
}

static bool linked(const struct symbols *symbols, const Elf64_Rela *rela, uint64_t *value)
{
	uint64_t symbol = ELF64_R_SYM(rela->r_info);
	Elf64_Sym sym;

	if (!elf_abi_is_linked(ELF64_R_TYPE(rela->r_info)) || symbol >= symbols->size / sizeof(sym))
		return false;
	memcpy(&sym, symbols->bytes + symbol * sizeof(sym), sizeof(sym));
	*value = sym.st_value;
	return sym.st_shndx != SHN_UNDEF;
}

static int on_reloc(void *arg, const void *entry)
{
	const Elf64_Rela *rela = entry;
	struct pointers *p = arg;
	struct elf_pointer pointer = {.slot = rela->r_offset};

	if (!p->value(&p->symbols, rela, &pointer.value))
		return 0;
	p->any = true;
	return p->fn(p->arg, &pointer);
}

static int relocs_in(struct elf_file *elf, const Elf64_Shdr *sh, struct pointers *p)
{
	char *bytes __free = NULL;

	p->symbols = (struct symbols){0};
	if (p->by_symbol && sh->sh_link && sh->sh_link < elf->nsections &&
	    !elf_read_section(elf, &elf->sections[sh->sh_link], MAX_SYMBOLS, &bytes,
			      &p->symbols.size))
		p->symbols.bytes = bytes;
	return elf_each_entry(elf, sh, sizeof(Elf64_Rela), on_reloc, p);
}

static int each_reloc(struct elf_file *elf, struct pointers *p)
{
	const Elf64_Shdr *sh = NULL;
	int stop = 0;

	while (!stop && (sh = elf_section(elf, SHT_RELA, sh))) {
		stop = relocs_in(elf, sh, p);
		sh++;
	}
	return stop;
}

static int pointers_in(struct elf_file *elf, const struct elf_load *load, struct pointers *p)
{
	uint8_t *bytes __free = NULL;
	size_t len, at;
	int r = elf_read_rest(elf, load->vaddr, MAX_DATA, &bytes, &len);

	if (r)
		return r == -ENOMEM ? r : 0;
	if (!elf_spend(elf, len / 8 * elf->nloads)) /* segments may overlap */
		return -EDQUOT;
	for (at = -load->vaddr & 7; at + 8 <= len && !r; at += 8) {
		struct elf_pointer pointer = {.slot = load->vaddr + at};

		memcpy(&pointer.value, bytes + at, 8);
		if (elf_load_at(elf, pointer.value))
			r = p->fn(p->arg, &pointer);
	}
	return r;
}

/* Packed relocations (DT_RELR) have their addends in the data: a scan of it finds them. */
static bool has_packed(const struct elf_file *elf)
{
	return elf_section(elf, SHT_RELR, NULL);
}

int elf_pointers(struct elf_file *elf, int (*fn)(void *arg, const struct elf_pointer *pointer),
		 void *arg)
{
	struct pointers p = {.value = relative, .fn = fn, .arg = arg};
	int r = has_packed(elf) ? 0 : each_reloc(elf, &p);
	size_t i;

	for (i = 0; i < elf->nloads && !r && !p.any; i++)
		if (elf->loads[i].write)
			r = pointers_in(elf, &elf->loads[i], &p);
	return r;
}

int elf_linked(struct elf_file *elf, int (*fn)(void *arg, const struct elf_pointer *pointer),
	       void *arg)
{
	struct pointers p = {.value = linked, .by_symbol = true, .fn = fn, .arg = arg};

	return each_reloc(elf, &p);
}
