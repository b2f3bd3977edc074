// SPDX-License-Identifier: BSD-2-Clause
/*
 * References: LuaJIT 2.1, lj_debug.c (lj_debug_dumpstack), lj_strfmt.c (lj_strfmt_wptr), jit/p.lua.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "name.h"

#define SHOWN_SOURCE 40 /* bytes of a chunk's text */

static const struct {
	char letter;
	const char *word;
} vmstates[] = {
	{'N', "Compiled"},	    {'I', "Interpreted"},  {'C', "C code"},
	{'G', "Garbage Collector"}, {'J', "JIT Compiler"},
};

const char *name_vmstate(char letter)
{
	for (size_t i = 0; i < sizeof(vmstates) / sizeof(vmstates[0]); i++) {
		if (vmstates[i].letter == letter)
			return vmstates[i].word;
	}
	return NULL;
}

char name_vmstate_letter(const char *word)
{
	for (size_t i = 0; i < sizeof(vmstates) / sizeof(vmstates[0]); i++) {
		if (!strcmp(vmstates[i].word, word))
			return vmstates[i].letter;
	}
	return '\0';
}

static const char *const causes[PROF_CAUSES] = {
	[PROF_CAUSE_NONE] = "",	  [PROF_IN_LOOP] = "loop",	[PROF_EXIT] = "exit",
	[PROF_RECORD] = "record", [PROF_OPTIMISE] = "optimise", [PROF_ASSEMBLE] = "assemble",
	[PROF_MARK] = "mark",	  [PROF_SWEEP] = "sweep",	[PROF_FINALISE] = "finalise",
};

const char *name_cause(enum prof_cause cause)
{
	return causes[cause < PROF_CAUSES ? cause : PROF_CAUSE_NONE];
}

enum prof_cause name_cause_of(const char *word)
{
	for (int i = 0; i < PROF_CAUSES; i++)
		if (!strcmp(causes[i], word))
			return (enum prof_cause)i;
	return PROF_CAUSE_NONE;
}

#define MAIN "main:"

void name_coroutine(uint64_t coroutine, char *buf, size_t size)
{
	snprintf(buf, size, "%s0x%" PRIx64, coroutine & PROF_MAIN ? MAIN : "",
		 coroutine & ~PROF_MAIN);
}

uint64_t name_coroutine_of(const char *id)
{
	bool is_main = !strncmp(id, MAIN, strlen(MAIN));
	const char *hex = id + (is_main ? strlen(MAIN) : 0);
	unsigned long long address;
	char *end;

	if (strncmp(hex, "0x", 2) != 0 || strnlen(hex, 20) > 18)
		return 0;
	address = strtoull(hex, &end, 16);
	return *end || !address || address & PROF_MAIN ? 0 : address | (is_main ? PROF_MAIN : 0);
}

/* A library function that LuaJIT holds as bytecode: its chunk is the library, and no line is worth
 * showing. */
static bool is_bytecode_builtin(const struct prof_frame *frame)
{
	return frame->firstline == -1;
}

static const char *chunk_of(const struct prof_frame *frame)
{
	return frame->chunk ? frame->chunk : "=?";
}

/*
 * Source text as luaO_chunkid() shows it: how it begins. Another text may begin alike: what was
 * left out is in a hash (FNV-1a).
 */
static void put_source(struct text *out, const char *source)
{
	size_t all = strlen(source), len = strcspn(source, "\r\n");
	uint32_t hash = 2166136261U;

	if (len > SHOWN_SOURCE) {
		len = SHOWN_SOURCE;
		while (len && ((unsigned char)source[len] & 0xc0) == 0x80)
			len--; /* not within a character */
	}
	text_puts(out, "[string \"");
	text_put(out, source, len);
	if (len == all) {
		text_puts(out, "\"]");
		return;
	}
	for (size_t i = 0; i < all; i++)
		hash = (hash ^ (unsigned char)source[i]) * 16777619U;
	text_printf(out, "...\" %08" PRIx32 "]", hash);
}

/* The part behind the last slash, or backslash. */
static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *backslash = strrchr(slash ? slash : path, '\\');

	return backslash ? backslash + 1 : slash ? slash + 1 : path;
}

void name_chunk(struct text *out, const struct prof_frame *frame, unsigned int flags)
{
	const char *name = chunk_of(frame), *shown = name + 1;

	if (is_bytecode_builtin(frame)) {
		text_printf(out, "[builtin:%s]", name);
		return;
	}
	if (*name != '=' && *name != '@') {
		put_source(out, name);
		return;
	}
	if (!(flags & NAME_PATH))
		shown = last_part(name + 1);
	if (!*shown)
		shown = name[1] ? name + 1 : name;
	text_puts(out, shown);
}

/* Eight digits at least, and above 32 bits always an even number of them. */
static void put_pointer(struct text *out, uint64_t addr)
{
	int digits = 8;

	if (!addr) {
		text_puts(out, "NULL");
		return;
	}
	while (digits < 16 && addr >> (digits * 4))
		digits += 2;
	text_printf(out, "0x%0*" PRIx64, digits, addr);
}

static void put_lua_location(struct text *out, const struct prof_frame *frame, bool current,
			     unsigned int flags)
{
	int32_t line = current && frame->line >= 0 ? frame->line : frame->firstline;

	name_chunk(out, frame, flags);
	if (is_bytecode_builtin(frame))
		return;
	text_printf(out, ":%" PRId32, line);
	if (frame->position && *frame->position)
		text_printf(out, "#%s", frame->position);
	else if (!frame->position && frame->place && frame->place != PROF_NO_ORDER && !current)
		text_printf(out, "#%" PRIu64, frame->place + UINT64_C(1));
}

void name_module(struct text *out, const struct prof_frame *frame)
{
	if (frame->kind == PROF_BUILTIN) {
		text_printf(out, "LuaJIT#%" PRIu64, frame->addr);
		return;
	}
	if (!frame->chunk) {
		text_putc(out, '@');
		put_pointer(out, frame->addr);
		return;
	}
	text_puts(out, frame->chunk);
	if (frame->addr)
		text_printf(out, "+0x%" PRIx64, frame->addr);
}

void name_location(struct text *out, const struct prof_frame *frame, bool current,
		   unsigned int flags)
{
	switch (frame->kind) {
	case PROF_LUA:
		put_lua_location(out, frame, current, flags);
		break;
	case PROF_BUILTIN:
		if (frame->symbol && !(flags & NAME_NUMBER))
			text_puts(out, frame->symbol);
		else
			text_printf(out, "[builtin#%" PRId32 "]", (int32_t)frame->addr);
		break;
	case PROF_C:
		if (frame->symbol)
			text_puts(out, frame->symbol);
		else
			name_module(out, frame);
		break;
	case PROF_CUT:
		text_puts(out, NAME_CUT);
		break;
	case PROF_TAIL:
		text_puts(out, "(...tail calls...)"); /* as luaL_traceback() says it */
		break;
	case PROF_VM:
		text_puts(out, NAME_VM);
		break;
	case PROF_OTHER:
		text_puts(out, NAME_OTHER);
		break;
	}
}

bool name_ends_in(const char *name, const char *word)
{
	size_t n = strlen(name), len = strlen(word), at = n - len;

	if (len > n || strcmp(name + at, word) != 0)
		return false;
	if (at > 0 && name[at - 1] == '_')
		return at > 1 && isalnum((unsigned char)name[at - 2]);
	return !at || !isalnum((unsigned char)name[at - 1]);
}
