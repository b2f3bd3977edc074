// SPDX-License-Identifier: BSD-2-Clause
/* What the dynamic linker writes into a file's data: addresses of the file itself. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "target/elf_priv.h"

#ifndef SHT_RELR
#define SHT_RELR 19
#endif
#define MAX_RELOCS (8u << 20)
#define MAX_DATA (16u << 20) /* bytes of a writable segment that are looked through */

struct pointers {
	/* Is it a relocation of this kind? Then the word's value. */
	bool (*value)(Elf_Data *symbols, const GElf_Rela *rela, uint64_t *value);
	int (*fn)(void *arg, const struct elf_pointer *pointer);
	void *arg;
	bool any;
};

static bool relative(Elf_Data *symbols, const GElf_Rela *rela, uint64_t *value)
{
	(void)symbols;
	*value = (uint64_t)rela->r_addend;
	return GELF_R_TYPE(rela->r_info) == R_X86_64_RELATIVE;
}

static bool linked(Elf_Data *symbols, const GElf_Rela *rela, uint64_t *value)
{
	uint64_t type = GELF_R_TYPE(rela->r_info), symbol = GELF_R_SYM(rela->r_info);
	GElf_Sym sym;

	if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) || !symbols ||
	    symbol > INT_MAX || !gelf_getsym(symbols, (int)symbol, &sym) ||
	    sym.st_shndx == SHN_UNDEF)
		return false;
	*value = sym.st_value;
	return true;
}

static int relocs_in(Elf_Data *data, Elf_Data *symbols, struct pointers *p)
{
	size_t n = data->d_size / sizeof(Elf64_Rela), i;
	int stop = 0;

	for (i = 0; i < n && i < MAX_RELOCS && !stop; i++) {
		struct elf_pointer pointer;
		GElf_Rela rela;

		if (!gelf_getrela(data, (int)i, &rela) || !p->value(symbols, &rela, &pointer.value))
			continue;
		p->any = true;
		pointer.slot = rela.r_offset;
		stop = p->fn(p->arg, &pointer);
	}
	return stop;
}

static int each_reloc(struct elf_file *elf, struct pointers *p)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	int stop = 0;

	while (!stop && (scn = elf_nextscn(elf->elf, scn))) {
		Elf_Scn *symbols;
		Elf_Data *data;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_RELA)
			continue;
		symbols = sh.sh_link ? elf_getscn(elf->elf, sh.sh_link) : NULL;
		data = elf_getdata(scn, NULL);
		if (data && data->d_buf)
			stop = relocs_in(data, symbols ? elf_getdata(symbols, NULL) : NULL, p);
	}
	return stop;
}

static bool in_file(const struct elf_file *elf, uint64_t vaddr)
{
	size_t i;

	for (i = 0; i < elf->nloads; i++)
		if (vaddr - elf->loads[i].vaddr < elf->loads[i].filesz)
			return true;
	return false;
}

static int pointers_in(struct elf_file *elf, const struct elf_load *load, struct pointers *p)
{
	uint8_t *bytes __free = NULL;
	size_t len, at;
	int r = elf_read_rest(elf, load->vaddr, MAX_DATA, &bytes, &len);

	if (r)
		return r == -ENOMEM ? r : 0;
	for (at = -load->vaddr & 7; at + 8 <= len && !r; at += 8) {
		struct elf_pointer pointer = {.slot = load->vaddr + at};

		memcpy(&pointer.value, bytes + at, 8);
		if (in_file(elf, pointer.value))
			r = p->fn(p->arg, &pointer);
	}
	return r;
}

/* Packed relocations (DT_RELR) leave the addresses in the data. */
static bool has_packed(struct elf_file *elf)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	while ((scn = elf_nextscn(elf->elf, scn)))
		if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_RELR)
			return true;
	return false;
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
	struct pointers p = {.value = linked, .fn = fn, .arg = arg};

	return each_reloc(elf, &p);
}
