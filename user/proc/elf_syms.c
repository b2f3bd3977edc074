/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Symbols of an ELF file: functions by address, by binary search in a sorted array, and the Lua
 * symbols that it defines or imports, read in one pass.
 */
#include "elf_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

#define MAX_SYMBOLS (4u << 20)
#define MAX_NAMES (128u << 20) /* bytes of a string table */
#define MAX_LUA_SYMS 4096
#define NESTED 32   /* symbols below an address, searched for one that covers it */
#define ALIASES 512 /* further ones, searched for others of the same address */

/* Called for each symbol that has a name; a nonzero return ends it. */
typedef int (*sym_fn)(void *arg, const Elf64_Sym *sym, const char *name);

/* Each name is terminated, also the last. */
struct elf_strings {
	char *text;
	size_t size;
};

static int read_strings(struct elf_file *elf, const Elf64_Shdr *table, struct elf_strings *s)
{
	if (table->sh_link >= elf->nsections || elf->sections[table->sh_link].sh_type != SHT_STRTAB)
		return -ENOENT;
	return elf_read_section(elf, &elf->sections[table->sh_link], MAX_NAMES, &s->text, &s->size);
}

struct each {
	const struct elf_strings *names;
	sym_fn fn;
	void *arg;
};

static int with_name(void *arg, const void *entry)
{
	const struct each *e = arg;
	const Elf64_Sym *sym = entry;

	if (sym->st_name >= e->names->size || !e->names->text[sym->st_name])
		return 0;
	return e->fn(e->arg, sym, e->names->text + sym->st_name);
}

/*
 * Calls fn for each symbol of the table of this type: gABI, "an object file may have only one
 * section of each type". Caller frees the names.
 */
static int each_in(struct elf_file *elf, uint32_t type, struct elf_strings *names, sym_fn fn,
		   void *arg)
{
	const Elf64_Shdr *sh = elf_section(elf, type, NULL);
	struct each e = {names, fn, arg};
	int err;

	if (!sh || sh->sh_size / sizeof(Elf64_Sym) > MAX_SYMBOLS)
		return 0;
	err = read_strings(elf, sh, names);
	if (err)
		return err == -ENOMEM ? err : 0;
	return elf_each_entry(elf, sh, sizeof(Elf64_Sym), with_name, &e);
}

/* Returns fn's result, or 0: a table that cannot be read counts as empty. */
static int each_symbol(struct elf_file *elf, uint32_t type, sym_fn fn, void *arg)
{
	struct elf_strings names = {0};
	char *text __free = NULL;
	int r = each_in(elf, type, &names, fn, arg);

	text = names.text;
	return r < 0 ? 0 : r;
}

static int collect(void *arg, const Elf64_Sym *sym, const char *name)
{
	struct elf_file *elf = arg;
	unsigned type = ELF64_ST_TYPE(sym->st_info);

	(void)name;
	if (sym->st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC))
		return 0;
	if (array_grow(&elf->syms, elf->nsyms, sizeof(*elf->syms)))
		return -ENOMEM;
	elf->syms[elf->nsyms++] = (struct elf_sym){
		.start = sym->st_value,
		.size = sym->st_size,
		.name = sym->st_name,
		.global = ELF64_ST_BIND(sym->st_info) != STB_LOCAL,
	};
	return 0;
}

/* Orders by address, global ones last. Compares no names: there may be millions of long ones. */
static int compare(const void *a, const void *b)
{
	const struct elf_sym *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->global != y->global)
		return x->global ? 1 : -1;
	return x->name < y->name ? -1 : x->name > y->name;
}

static int load_from(struct elf_file *elf, uint32_t type)
{
	struct elf_strings names = {0};
	int err = each_in(elf, type, &names, collect, elf);

	if (err || !elf->nsyms) {
		free(names.text);
		return err == -ENOMEM ? err : 0;
	}
	elf->names = names.text;
	elf->names_size = names.size;
	return 0;
}

int elf_load_symbols(struct elf_file *elf)
{
	int err;

	if (elf->have_syms)
		return 0;
	err = load_from(elf, SHT_SYMTAB);
	if (!err && !elf->nsyms)
		err = load_from(elf, SHT_DYNSYM);
	if (!elf->names)
		elf->nsyms = 0; /* after an error the symbols have no names */
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

/* True if a is preferred to b, which has the same address. */
static bool better(const struct elf_file *elf, const struct elf_sym *a, const struct elf_sym *b)
{
	const char *x = elf->names + a->name, *y = elf->names + b->name;
	size_t nx = strnlen(x, ELF_NAME_MAX), ny = strnlen(y, ELF_NAME_MAX);

	if (a->global != b->global)
		return a->global;
	return nx != ny ? nx < ny : memcmp(x, y, nx) < 0;
}

int elf_symbol(struct elf_file *elf, uint64_t vaddr, const char **name, uint64_t *start)
{
	const struct elf_sym *best = NULL;
	size_t lo = 0, hi, back;
	int err = elf_load_symbols(elf);

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
	for (back = 0; back < (best ? ALIASES : NESTED) && lo--; back++) {
		const struct elf_sym *s = &elf->syms[lo];

		if (best && s->start != best->start)
			break;
		if (covers(s, vaddr) && (!best || better(elf, s, best)))
			best = s;
	}
	if (!best)
		return -ENOENT;
	snprintf(elf->name, sizeof(elf->name), "%.*s", ELF_NAME_MAX - 1, elf->names + best->name);
	*name = elf->name;
	if (start)
		*start = best->start;
	return 0;
}

static bool starts(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

/*
 * Detection looks up dozens of names in a file, all of which begin with "lua": one pass collects
 * them. Lua 5.1 has 120 such symbols, a host a few thousand at most.
 */
static int collect_lua(void *arg, const Elf64_Sym *sym, const char *name)
{
	struct elf_file *elf = arg;
	size_t n = elf->nlua_syms, len = strnlen(name, sizeof(elf->lua_sym->name));

	if (!starts(name, "lua") || len == sizeof(elf->lua_sym->name))
		return 0;
	if (n == MAX_LUA_SYMS) {
		elf->many_lua_syms = true;
		return 0;
	}
	if (array_grow(&elf->lua_sym, n, sizeof(*elf->lua_sym)))
		return -ENOMEM;
	elf->lua_sym[n] = (struct elf_lua_sym){
		.value = sym->st_value,
		.size = sym->st_size,
		.defined = sym->st_shndx != SHN_UNDEF,
	};
	memcpy(elf->lua_sym[n].name, name, len + 1);
	elf->nlua_syms++;
	return 0;
}

static void load_lua_syms(struct elf_file *elf)
{
	if (elf->have_lua_syms)
		return;
	elf->have_lua_syms = true;
	each_symbol(elf, SHT_DYNSYM, collect_lua, elf);
	each_symbol(elf, SHT_SYMTAB, collect_lua, elf);
}

struct lookup {
	const char *name;
	uint64_t vaddr, size;
};

static int match(void *arg, const Elf64_Sym *sym, const char *name)
{
	struct lookup *l = arg;

	if (sym->st_shndx == SHN_UNDEF || strcmp(name, l->name) != 0)
		return 0;
	l->vaddr = sym->st_value;
	l->size = sym->st_size;
	return 1;
}

static bool look_up_lua(struct elf_file *elf, struct lookup *l)
{
	size_t i;

	for (i = 0; i < elf->nlua_syms; i++) {
		const struct elf_lua_sym *s = &elf->lua_sym[i];

		if (!s->defined || strcmp(s->name, l->name) != 0)
			continue;
		l->vaddr = s->value;
		l->size = s->size;
		return true;
	}
	return false;
}

static bool look_up(struct elf_file *elf, struct lookup *l)
{
	if (starts(l->name, "lua") && strlen(l->name) < sizeof(elf->lua_sym->name)) {
		load_lua_syms(elf);
		if (look_up_lua(elf, l))
			return true;
		if (!elf->many_lua_syms)
			return false;
	}
	return each_symbol(elf, SHT_DYNSYM, match, l) || each_symbol(elf, SHT_SYMTAB, match, l);
}

int elf_lookup(struct elf_file *elf, const char *name, uint64_t *vaddr, uint64_t *size)
{
	struct lookup l = {.name = name};

	if (!look_up(elf, &l))
		return -ENOENT;
	*vaddr = l.vaddr;
	if (size)
		*size = l.size;
	return 0;
}

static int match_wanted(void *arg, const Elf64_Sym *sym, const char *name)
{
	return sym->st_shndx == SHN_UNDEF && !strcmp(name, arg);
}

bool elf_wants(struct elf_file *elf, const char *name)
{
	return each_symbol(elf, SHT_DYNSYM, match_wanted, (void *)name);
}
