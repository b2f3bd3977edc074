/* SPDX-License-Identifier: BSD-2-Clause */
/* Symbols of an ELF file: functions by address, and what a Lua host defines or wants. */
#include "target/elf_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define MAX_SYMBOLS (8u << 20)
#define MAX_STRTAB (256u << 20)
#define NESTED 32 /* symbols to look back for one that covers an address */

/* Called for each symbol; a nonzero return ends it. */
typedef int (*sym_fn)(void *arg, const GElf_Sym *sym, const char *name);

struct strtab {
	const char *text;
	size_t size;
};

static int get_strtab(Elf *elf, size_t index, struct strtab *s)
{
	Elf_Scn *scn = elf_getscn(elf, index);
	Elf_Data *data;
	GElf_Shdr sh;

	if (!scn || !gelf_getshdr(scn, &sh) || sh.sh_type != SHT_STRTAB || sh.sh_size > MAX_STRTAB)
		return -ENOENT;
	data = elf_rawdata(scn, NULL);
	if (!data || !data->d_buf || !data->d_size)
		return -ENOENT;
	*s = (struct strtab){data->d_buf, data->d_size};
	return 0;
}

static const char *name_at(const struct strtab *s, size_t offset)
{
	if (offset >= s->size || !memchr(s->text + offset, 0, s->size - offset))
		return NULL;
	return s->text + offset;
}

static int each_in(Elf *elf, Elf_Scn *scn, const GElf_Shdr *sh, sym_fn fn, void *arg)
{
	struct strtab strings;
	Elf_Data *data;
	size_t n, i;

	if (sh->sh_size / sizeof(Elf64_Sym) > MAX_SYMBOLS || get_strtab(elf, sh->sh_link, &strings))
		return 0;
	data = elf_getdata(scn, NULL);
	if (!data || !data->d_buf)
		return 0;
	n = data->d_size / sizeof(Elf64_Sym);
	for (i = 0; i < n; i++) {
		const char *name;
		GElf_Sym sym;
		int stop;

		if (!gelf_getsym(data, (int)i, &sym))
			continue;
		name = name_at(&strings, sym.st_name);
		if (!name || !*name)
			continue;
		stop = fn(arg, &sym, name);
		if (stop)
			return stop;
	}
	return 0;
}

/* All symbols of all tables of this type. */
static int each_symbol(struct elf_file *elf, uint32_t type, sym_fn fn, void *arg)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	int stop;

	while ((scn = elf_nextscn(elf->elf, scn))) {
		if (!gelf_getshdr(scn, &sh) || sh.sh_type != type)
			continue;
		stop = each_in(elf->elf, scn, &sh, fn, arg);
		if (stop)
			return stop;
	}
	return 0;
}

static int collect(void *arg, const GElf_Sym *sym, const char *name)
{
	struct elf_file *elf = arg;
	unsigned type = GELF_ST_TYPE(sym->st_info);
	size_t n = elf->nsyms;

	if (sym->st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC))
		return 0;
	if (n >= MAX_SYMBOLS)
		return 0;
	if (!(n & (n - 1))) { /* grows at each power of two */
		struct elf_sym *grown = reallocarray(elf->syms, n ? 2 * n : 1, sizeof(*elf->syms));

		if (!grown)
			return -ENOMEM;
		elf->syms = grown;
	}
	elf->syms[elf->nsyms++] = (struct elf_sym){
		.start = sym->st_value,
		.size = sym->st_size,
		.name = name,
		.global = GELF_ST_BIND(sym->st_info) != STB_LOCAL,
	};
	return 0;
}

/* By address; what is to be preferred comes last. */
static int compare(const void *a, const void *b)
{
	const struct elf_sym *x = a, *y = b;
	size_t lx, ly;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->global != y->global)
		return x->global ? 1 : -1;
	lx = strlen(x->name);
	ly = strlen(y->name);
	if (lx != ly)
		return lx < ly ? 1 : -1;
	return strcmp(y->name, x->name);
}

static int load_symbols(struct elf_file *elf)
{
	int err;

	if (elf->have_syms)
		return 0;
	err = each_symbol(elf, SHT_SYMTAB, collect, elf);
	if (!err && !elf->nsyms)
		err = each_symbol(elf, SHT_DYNSYM, collect, elf);
	if (err)
		return err;
	if (elf->nsyms)
		qsort(elf->syms, elf->nsyms, sizeof(*elf->syms), compare);
	elf->have_syms = true;
	return 0;
}

static bool covers(const struct elf_sym *s, uint64_t vaddr)
{
	return vaddr == s->start || vaddr - s->start < s->size;
}

int elf_symbol(struct elf_file *elf, uint64_t vaddr, const char **name, uint64_t *start)
{
	size_t lo = 0, hi, back;
	int err = load_symbols(elf);

	if (err)
		return err;
	hi = elf->nsyms;
	while (lo < hi) { /* first symbol beyond vaddr */
		size_t mid = lo + (hi - lo) / 2;

		if (elf->syms[mid].start <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (back = 0; back < NESTED && lo--; back++) {
		const struct elf_sym *s = &elf->syms[lo];

		if (covers(s, vaddr)) {
			*name = s->name;
			if (start)
				*start = s->start;
			return 0;
		}
	}
	return -ENOENT;
}

struct lookup {
	const char *name;
	GElf_Sym sym;
};

static int match(void *arg, const GElf_Sym *sym, const char *name)
{
	struct lookup *l = arg;

	if (sym->st_shndx == SHN_UNDEF || strcmp(name, l->name) != 0)
		return 0;
	l->sym = *sym;
	return 1;
}

int elf_lookup(struct elf_file *elf, const char *name, uint64_t *vaddr, uint64_t *size)
{
	struct lookup l = {.name = name};

	if (!each_symbol(elf, SHT_DYNSYM, match, &l) && !each_symbol(elf, SHT_SYMTAB, match, &l))
		return -ENOENT;
	*vaddr = l.sym.st_value;
	if (size)
		*size = l.sym.st_size;
	return 0;
}

static int match_wanted(void *arg, const GElf_Sym *sym, const char *name)
{
	return sym->st_shndx == SHN_UNDEF && !strcmp(name, arg);
}

bool elf_wants(struct elf_file *elf, const char *name)
{
	return each_symbol(elf, SHT_DYNSYM, match_wanted, (void *)name);
}

static bool starts(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

static int classify(void *arg, const GElf_Sym *sym, const char *name)
{
	bool defined = sym->st_shndx != SHN_UNDEF;
	unsigned *flags = arg;

	if (!defined && (starts(name, "lua_") || starts(name, "luaL_")))
		*flags |= ELF_LUA_WANTS;
	if (!defined)
		return 0;
	if (!strcmp(name, "lua_newstate"))
		*flags |= ELF_LUA_DEFINES;
	if (!strcmp(name, "lua_ident"))
		*flags |= ELF_LUA_IDENT;
	if (starts(name, "luaJIT_version_") || !strcmp(name, "luaJIT_setmode"))
		*flags |= ELF_LUA_JIT;
	return 0;
}

int elf_is_lua(struct elf_file *elf, unsigned *flags)
{
	struct elf_lj_vm vm;
	unsigned f = 0;

	each_symbol(elf, SHT_DYNSYM, classify, &f);
	each_symbol(elf, SHT_SYMTAB, classify, &f);
	if (!elf_find_lj_vm(elf, &vm))
		f |= ELF_LUA_VM;
	*flags = f;
	return 0;
}

static int match_version(void *arg, const GElf_Sym *sym, const char *name)
{
	if (sym->st_shndx == SHN_UNDEF || !starts(name, "luaJIT_version_"))
		return 0;
	*(const char **)arg = name;
	return 1;
}

int elf_lj_version(struct elf_file *elf, const char **symbol)
{
	return each_symbol(elf, SHT_DYNSYM, match_version, symbol) ||
			       each_symbol(elf, SHT_SYMTAB, match_version, symbol)
		       ? 0
		       : -ENOENT;
}
