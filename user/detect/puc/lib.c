// SPDX-License-Identifier: BSD-2-Clause
/*
 * Each library of PUC Lua is an array of luaL_Reg, {name, function}, that ends with {NULL, NULL}.
 * It is identified by a set of names that no other library has. The functions taken run no
 * lua_State but their caller's, whatever their arguments are: they call back only by lua_call() and
 * its like, and their callee has a CallInfo of its own. Left out: `coroutine`, which runs others;
 * os.exit, which may close the state; warn, which calls the host.
 */
#include "lib.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"

#define MAX_POINTERS (64u << 10)
#define MAX_NAME 16
#define MAX_ENTRIES 64

struct library {
	const char *marks[6];  /* names that identify it */
	const char *no_resume; /* each between blanks */
};

static const struct library libraries[] = {
	{{"rawequal", "rawget", "setmetatable", "tostring", "type"},
	 " assert collectgarbage error getmetatable ipairs next pairs print rawequal rawget rawlen "
	 "rawset select setmetatable tonumber tostring type unpack "},
	{{"byte", "find", "format", "gsub", "rep", "sub"},
	 " byte char dump find format gmatch gsub len lower match pack packsize rep reverse sub "
	 "unpack upper "},
	{{"concat", "insert", "remove", "sort"},
	 " concat insert maxn move pack remove sort unpack getn foreach foreachi setn "},
	{{"abs", "ceil", "floor", "max", "sqrt"},
	 " abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp ldexp log log10 max min "
	 "modf pow rad random randomseed sin sinh sqrt tan tanh tointeger type ult "},
	{{"char", "codepoint", "codes", "offset"}, " char codepoint codes len offset "},
	{{"band", "bnot", "bor", "bxor"},
	 " arshift band bnot bor btest bxor extract lrotate lshift replace rrotate rshift "},
	{{"clock", "date", "getenv", "time"}, " clock date difftime getenv time "},
};
#define LIBRARIES (sizeof(libraries) / sizeof(libraries[0]))

static const struct library coroutines = {{"create", "resume", "status", "wrap", "yield"}, ""};

struct lib_table {
	struct elf_file *elf;
	struct elf_pointer *all; /* sorted by slot */
	size_t n;
};

static void table_free(struct lib_table *t)
{
	free(t->all);
}

static int add_pointer(void *arg, const struct elf_pointer *p)
{
	struct lib_table *t = arg;

	if (t->n == MAX_POINTERS)
		return -ENOENT; /* too many to search */
	if (array_grow(&t->all, t->n, sizeof(*t->all)))
		return -ENOMEM;
	t->all[t->n++] = *p;
	return 0;
}

static int by_slot(const void *a, const void *b)
{
	const struct elf_pointer *x = a, *y = b;

	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* Returns the pointer in the word at slot; 0 if the word is no pointer. */
static uint64_t value_at(const struct lib_table *t, uint64_t slot)
{
	const struct elf_pointer key = {.slot = slot};
	const struct elf_pointer *p = bsearch(&key, t->all, t->n, sizeof(key), by_slot);

	return p ? p->value : 0;
}

static bool read_name(const struct lib_table *t, uint64_t slot, char name[MAX_NAME])
{
	uint64_t at = value_at(t, slot);
	size_t i;

	if (!at || elf_read(t->elf, at, name, MAX_NAME) || !memchr(name, 0, MAX_NAME))
		return false;
	for (i = 0; name[i]; i++)
		if ((name[i] < 'a' || name[i] > 'z') && (name[i] < '0' || name[i] > '9') &&
		    name[i] != '_')
			return false;
	return i > 0;
}

/* An array of luaL_Reg. */
struct entries {
	char name[MAX_ENTRIES][MAX_NAME];
	uint64_t function[MAX_ENTRIES]; /* 0: filled in at run time */
	size_t n;
};

static void read_entries(const struct lib_table *t, uint64_t slot, struct entries *e)
{
	for (e->n = 0; e->n < MAX_ENTRIES; e->n++) {
		if (!read_name(t, slot + 16 * e->n, e->name[e->n]))
			return;
		e->function[e->n] = value_at(t, slot + 16 * e->n + 8);
	}
}

static uint64_t function_of(const struct entries *e, const char *name)
{
	size_t i;

	for (i = 0; i < e->n; i++)
		if (!strcmp(e->name[i], name))
			return e->function[i];
	return 0;
}

static bool is_library(const struct entries *e, const struct library *l)
{
	size_t i;

	for (i = 0; i < sizeof(l->marks) / sizeof(l->marks[0]) && l->marks[i]; i++)
		if (!function_of(e, l->marks[i]))
			return false;
	return true;
}

static bool lists(const char *no_resume, const char *name)
{
	char word[MAX_NAME + 2];
	size_t len = strlen(name);

	word[0] = ' ';
	memcpy(word + 1, name, len);
	memcpy(word + 1 + len, " ", 2);
	return strstr(no_resume, word);
}

static void take_plain(const struct entries *e, const struct library *l, struct elf_puc_lib *out)
{
	size_t i;

	for (i = 0; i < e->n && out->n < ELF_PUC_LIB_MAX; i++)
		if (e->function[i] && lists(l->no_resume, e->name[i]))
			out->no_resume[out->n++] = e->function[i];
}

/* Returns the only function whose address coroutine.wrap takes: it makes a closure of it. */
static uint64_t wrapped_by(const struct call_graph *g, uint64_t wrap)
{
	uint32_t fn = call_graph_find(g, wrap), i;
	uint64_t found = 0;

	for (i = 0; i < g->nedges; i++) {
		const struct call_edge *e = &g->edge[i];

		if (e->from != fn || e->kind != CALL_REFERENCE)
			continue;
		if (found && found != g->fn[e->to].start)
			return 0;
		found = g->fn[e->to].start;
	}
	return found;
}

static void take(const struct call_graph *g, const struct entries *e, struct elf_puc_lib *out)
{
	size_t i;

	for (i = 0; i < LIBRARIES; i++)
		if (is_library(e, &libraries[i]))
			take_plain(e, &libraries[i], out);
	if (is_library(e, &libraries[0]))
		out->collectgarbage = function_of(e, "collectgarbage");
	if (is_library(e, &coroutines)) {
		out->resume = function_of(e, "resume");
		out->wrap = wrapped_by(g, function_of(e, "wrap"));
	}
}

int elf_puc_library(const struct call_graph *g, struct elf_puc_lib *out)
{
	struct lib_table t __cleanup(table_free) = {.elf = g->elf};
	struct entries *e __free = malloc(sizeof(*e));
	size_t i;
	int r;

	*out = (struct elf_puc_lib){};
	if (!e)
		return -ENOMEM;
	r = elf_pointers(g->elf, add_pointer, &t);
	if (r)
		return r;
	if (t.n)
		qsort(t.all, t.n, sizeof(*t.all), by_slot);
	for (i = 0; i < t.n; i++) {
		uint64_t slot = t.all[i].slot;
		char name[MAX_NAME];

		/* the first entry of two at least; names are read last, as that is slower */
		if (!value_at(&t, slot + 8) || !value_at(&t, slot + 16) ||
		    read_name(&t, slot - 16, name))
			continue;
		read_entries(&t, slot, e);
		if (e->n > 2)
			take(g, e, out);
	}
	return out->n || out->resume ? 0 : -ENOENT;
}
