// SPDX-License-Identifier: BSD-2-Clause
/*
 * References: LuaJIT 2.1, lj_debug.c (lj_debug_dumpstack), lj_strfmt.c (lj_strfmt_wptr), jit/p.lua.
 */
#include <inttypes.h>
#include <stdbool.h>
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

static void put_chunk(struct text *out, const struct prof_frame *frame, bool path)
{
	const char *name = chunk_of(frame);

	if (is_bytecode_builtin(frame)) {
		text_printf(out, "[builtin:%s]", name);
		return;
	}
	if (*name != '=' && *name != '@') {
		text_puts(out, "[string]");
		return;
	}
	name++;
	if (!path) {
		const char *slash = strrchr(name, '/');
		const char *backslash = strrchr(slash ? slash : name, '\\');

		if (backslash)
			name = backslash + 1;
		else if (slash)
			name = slash + 1;
	}
	text_puts(out, name);
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

static void put_lua_place(struct text *out, const struct prof_frame *frame, bool current, bool path)
{
	int32_t line = current && frame->line >= 0 ? frame->line : frame->firstline;

	put_chunk(out, frame, path);
	if (!is_bytecode_builtin(frame))
		text_printf(out, ":%" PRId32, line);
}

static void put_place(struct text *out, const struct prof_frame *frame, bool current,
		      unsigned int flags)
{
	switch (frame->kind) {
	case PROF_LUA:
		put_lua_place(out, frame, current, flags & NAME_PATH);
		break;
	case PROF_BUILTIN:
		if (frame->symbol && !(flags & NAME_NUMBER))
			text_puts(out, frame->symbol);
		else
			text_printf(out, "[builtin#%" PRId32 "]", (int32_t)frame->addr);
		break;
	case PROF_C:
		if (frame->symbol) {
			text_puts(out, frame->symbol);
		} else {
			text_putc(out, '@');
			put_pointer(out, frame->addr);
		}
		break;
	case PROF_CUT:
		text_puts(out, "[cut]");
		break;
	case PROF_TAIL:
		text_puts(out, "(...tail calls...)"); /* as luaL_traceback() says it */
		break;
	case PROF_OTHER:
		text_puts(out, NAME_OTHER);
		break;
	}
}

/* Stands for what is not there: a name that a file gives it means nothing. */
static bool is_pseudo(const struct prof_frame *frame)
{
	return frame->kind == PROF_CUT || frame->kind == PROF_TAIL || frame->kind == PROF_OTHER;
}

void name_jitp(struct text *out, const struct prof_frame *frame, char what, unsigned int flags)
{
	if (what == 'l' || !frame->callname || is_pseudo(frame)) {
		put_place(out, frame, what == 'l', flags);
		return;
	}
	if (what == 'F' && frame->kind == PROF_LUA && !is_bytecode_builtin(frame)) {
		put_chunk(out, frame, flags & NAME_PATH);
		text_putc(out, ':');
	}
	text_puts(out, frame->callname);
}

/* A name that says nothing is none: luaG_* has "?" for what it cannot tell. */
static bool is_name(const char *name)
{
	return name && *name && strcmp(name, "?") != 0;
}

/*
 * Source text as luaO_chunkid() shows it: how it begins. Another text may begin alike: what was
 * left out is told by a number (FNV-1a).
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

/* Where a Lua function is defined, told from all others. */
static void put_definition(struct text *out, const struct prof_frame *frame)
{
	const char *chunk = chunk_of(frame);

	if (is_bytecode_builtin(frame) || *chunk == '=' || *chunk == '@')
		put_chunk(out, frame, true);
	else
		put_source(out, chunk);
	if (!is_bytecode_builtin(frame))
		text_printf(out, ":%" PRId32, frame->firstline);
}

static const char *stable(const struct prof_frame *frame)
{
	if (is_pseudo(frame))
		return NULL;
	if (is_name(frame->defname))
		return frame->defname;
	if (frame->kind != PROF_LUA && frame->symbol)
		return frame->symbol;
	return is_name(frame->callname) ? frame->callname : NULL;
}

void name_stable(struct text *out, const struct prof_frame *frame)
{
	const char *name = stable(frame);

	if (name)
		text_puts(out, name);
	else if (frame->kind == PROF_LUA)
		put_definition(out, frame);
	else
		put_place(out, frame, false, 0);
}

void name_unique(struct text *out, const struct prof_frame *frame)
{
	name_stable(out, frame);
	if (frame->kind != PROF_LUA || !stable(frame))
		return;
	text_puts(out, " (");
	put_definition(out, frame);
	text_putc(out, ')');
}
