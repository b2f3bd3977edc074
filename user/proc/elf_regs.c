// SPDX-License-Identifier: BSD-2-Clause
/* A library of PUC Lua is identified by a set of names that no other library has. */
#include "elf_regs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

#define MAX_POINTERS (64u << 10)
#define LEAST 3 /* functions: two words that happen to look like an entry are none */

static const struct {
	const char *name, *marks[6];
} libraries[] = {
	{"", {"rawequal", "rawget", "setmetatable", "tostring", "type"}},
	{"string", {"byte", "find", "format", "gsub", "rep", "sub"}},
	{"table", {"concat", "insert", "remove", "sort"}},
	{"math", {"abs", "ceil", "floor", "max", "sqrt"}},
	{"utf8", {"char", "codepoint", "codes", "offset"}},
	{"bit32", {"band", "bnot", "bor", "bxor", "extract"}},
	{"bit", {"band", "bnot", "bor", "bxor", "tobit"}}, /* LuaBitOp */
	{"os", {"clock", "date", "getenv", "time"}},
	{"coroutine", {"create", "resume", "status", "wrap", "yield"}},
	{"io", {"close", "input", "lines", "open", "output", "popen"}},
	{"io.method", {"flush", "lines", "read", "seek", "setvbuf", "write"}},
	{"io.method", {"__close", "__gc", "__tostring"}}, /* 5.4 */
	{"debug", {"getinfo", "getlocal", "sethook", "traceback"}},
};
#define LIBRARIES (sizeof(libraries) / sizeof(libraries[0]))

struct reg_pointers {
	struct elf_file *elf;
	struct elf_pointer *all; /* sorted by slot */
	size_t n;
};

static void pointers_free(struct reg_pointers *p)
{
	free(p->all);
}

static int add_pointer(void *arg, const struct elf_pointer *pointer)
{
	struct reg_pointers *p = arg;

	if (p->n == MAX_POINTERS)
		return -ENOENT; /* too many to search */
	if (array_grow(&p->all, p->n, sizeof(*p->all)))
		return -ENOMEM;
	p->all[p->n++] = *pointer;
	return 0;
}

static int by_slot(const void *a, const void *b)
{
	const struct elf_pointer *x = a, *y = b;

	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* Returns the pointer in the word at slot; 0 if the word is no pointer. */
static uint64_t value_at(const struct reg_pointers *p, uint64_t slot)
{
	const struct elf_pointer key = {.slot = slot};
	const struct elf_pointer *found = bsearch(&key, p->all, p->n, sizeof(key), by_slot);

	return found ? found->value : 0;
}

static bool read_name(const struct reg_pointers *p, uint64_t slot, char name[ELF_REG_NAME])
{
	uint64_t at = value_at(p, slot);
	size_t i;

	if (!at || elf_read(p->elf, at, name, ELF_REG_NAME) || !memchr(name, 0, ELF_REG_NAME))
		return false;
	for (i = 0; name[i]; i++)
		if ((name[i] < 'a' || name[i] > 'z') && (name[i] < '0' || name[i] > '9') &&
		    name[i] != '_')
			return false;
	return i > 0;
}

uint64_t elf_regs_function(const struct elf_regs *r, const char *name)
{
	size_t i;

	for (i = 0; i < r->n; i++)
		if (!strcmp(r->name[i], name))
			return r->function[i];
	return 0;
}

static bool has_all(const struct elf_regs *r, const char *const marks[6])
{
	size_t i;

	for (i = 0; i < 6 && marks[i]; i++)
		if (!elf_regs_function(r, marks[i]))
			return false;
	return true;
}

static void read_array(const struct reg_pointers *p, uint64_t slot, struct elf_regs *r)
{
	size_t i;

	for (r->n = 0; r->n < ELF_REGS_MOST; r->n++) {
		if (!read_name(p, slot + 16 * r->n, r->name[r->n]))
			break;
		r->function[r->n] = value_at(p, slot + 16 * r->n + 8);
	}
	r->library = NULL;
	for (i = 0; i < LIBRARIES && !r->library; i++)
		if (has_all(r, libraries[i].marks))
			r->library = libraries[i].name;
}

int elf_regs(struct elf_file *elf, int (*fn)(void *arg, const struct elf_regs *regs), void *arg)
{
	struct reg_pointers p __cleanup(pointers_free) = {.elf = elf};
	struct elf_regs *regs __free = malloc(sizeof(*regs));
	size_t i;
	int r;

	if (!regs)
		return -ENOMEM;
	r = elf_pointers(elf, add_pointer, &p);
	if (p.n)
		qsort(p.all, p.n, sizeof(*p.all), by_slot);
	for (i = 0; i < p.n && !r; i++) {
		uint64_t slot = p.all[i].slot;
		char name[ELF_REG_NAME];

		/* the first entry of two at least; names are read last, as that is slower */
		if (!value_at(&p, slot + 8) || !value_at(&p, slot + 16) ||
		    read_name(&p, slot - 16, name))
			continue;
		read_array(&p, slot, regs);
		if (regs->n >= LEAST)
			r = fn(arg, regs);
	}
	return r;
}
