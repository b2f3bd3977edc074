/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of a frame's name. Which one a function goes by is for function.h to say. All of them
 * append raw bytes; who writes them out filters them.
 */
#ifndef PROF_NAME_H
#define PROF_NAME_H

#include <stdbool.h>

#include "base/text.h"
#include "prof.h"

enum {
	NAME_PATH = 1, /* 'p': the whole path of a chunk, not just what follows the last slash */
	NAME_NUMBER =
		2, /* a fast function without a name is [builtin#N], though its name is known */
};

/* Stands for all that exceeds a bound: PROF_OTHER, and lines of a report. */
#define NAME_OTHER "(other)"
#define NAME_CUT "[cut]"
#define NAME_VM "[VM]"

/*
 * Where a function is, as LuaJIT's lj_debug_dumpstack() puts it: a Lua function's chunk:line, the
 * current line or that of its definition, with "#position" where it has no lines; the symbol of a C
 * or fast function, else module+0xoffset (an address where the module is not known), [builtin#N].
 */
void name_location(struct text *out, const struct prof_frame *frame, bool current,
		   unsigned int flags);

/*
 * A Lua function's chunk. Source text is shown by its beginning, and if it is longer by a hash of
 * all of it, so that texts which begin alike differ.
 */
void name_chunk(struct text *out, const struct prof_frame *frame, unsigned int flags);

/* module+0xoffset of a C function. */
void name_module(struct text *out, const struct prof_frame *frame);

/* True if a name ends in this word: "M.f" in "f", "os_clock" in "clock"; but "__tostring" not in "tostring". */
bool name_ends_in(const char *name, const char *word);

/* "loop", "record", "sweep"; "" for PROF_CAUSE_NONE. */
const char *name_cause(enum prof_cause cause);

/* PROF_CAUSE_NONE for any other word. */
enum prof_cause name_cause_of(const char *word);

/* A coroutine's id: "0x7f3a2c0050", "main:0x7f3a2c0050"; buf of 32 bytes holds any. */
void name_coroutine(uint64_t coroutine, char *buf, size_t size);

/* The coroutine of such an id, 0 for any other word. */
uint64_t name_coroutine_of(const char *id);

/* jit.p's word for a VM state letter ("Interpreted"), NULL for a letter that it does not know. */
const char *name_vmstate(char letter);

/* The letter for such a word, '\0' for any other word. */
char name_vmstate_letter(const char *word);

#endif
