// SPDX-License-Identifier: BSD-2-Clause
/*
 * The functions taken run no lua_State but their caller's, whatever their arguments are: they call back
 * only by lua_call() and its like, and their callee has a CallInfo of its own. Left out: `coroutine`,
 * which runs others; os.exit, which may close the state; warn, which calls the host.
 */
#include "lib.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "proc/elf_regs.h"

static const struct {
	const char *of, *no_resume; /* a library; names, each between blanks */
} plain[] = {
	{"",
	 " assert collectgarbage error getmetatable ipairs next pairs print rawequal rawget rawlen "
	 "rawset select setmetatable tonumber tostring type unpack "},
	{"string",
	 " byte char dump find format gmatch gsub len lower match pack packsize rep reverse sub "
	 "unpack upper "},
	{"table", " concat insert maxn move pack remove sort unpack getn foreach foreachi setn "},
	{"math",
	 " abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp ldexp log log10 max min "
	 "modf pow rad random randomseed sin sinh sqrt tan tanh tointeger type ult "},
	{"utf8", " char codepoint codes len offset "},
	{"bit32",
	 " arshift band bnot bor btest bxor extract lrotate lshift replace rrotate rshift "},
	{"bit", " arshift band bnot bor bxor lshift rshift "},
	{"os", " clock date difftime getenv time "},
};
#define PLAIN (sizeof(plain) / sizeof(plain[0]))

static bool lists(const char *no_resume, const char *name)
{
	char word[ELF_REG_NAME + 2];
	size_t len = strlen(name);

	word[0] = ' ';
	memcpy(word + 1, name, len);
	memcpy(word + 1 + len, " ", 2);
	return strstr(no_resume, word);
}

static void take_plain(const struct elf_regs *regs, const char *no_resume, struct elf_puc_lib *out)
{
	size_t i;

	for (i = 0; i < regs->n && out->n < ELF_PUC_LIB_MAX; i++)
		if (regs->function[i] && lists(no_resume, regs->name[i]))
			out->no_resume[out->n++] = regs->function[i];
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

struct taking {
	const struct call_graph *calls;
	struct elf_puc_lib *out;
};

static int take(void *arg, const struct elf_regs *regs)
{
	const struct taking *t = arg;
	struct elf_puc_lib *out = t->out;
	size_t i;

	if (!regs->library)
		return 0;
	for (i = 0; i < PLAIN; i++)
		if (!strcmp(regs->library, plain[i].of))
			take_plain(regs, plain[i].no_resume, out);
	if (!*regs->library)
		out->collectgarbage = elf_regs_function(regs, "collectgarbage");
	if (!strcmp(regs->library, "coroutine")) {
		out->resume = elf_regs_function(regs, "resume");
		out->wrap = wrapped_by(t->calls, elf_regs_function(regs, "wrap"));
	}
	return 0;
}

int elf_puc_library(const struct call_graph *g, struct elf_puc_lib *out)
{
	struct taking t = {.calls = g, .out = out};
	int r;

	*out = (struct elf_puc_lib){};
	r = elf_regs(g->elf, take, &t);
	if (r)
		return r;
	return out->n || out->resume ? 0 : -ENOENT;
}
