/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a frame is called. Two kinds of names: the one that jit.p derives at the call site (jit.p
 * text and pprof's system_name), and the one that stays the same wherever the function is called
 * from (pprof's name, folded). All of them append raw bytes; who writes them out filters them.
 */
#ifndef PROF_NAME_H
#define PROF_NAME_H

#include "base/text.h"
#include "prof.h"

enum {
	NAME_PATH = 1, /* 'p': the whole path of a chunk, not just what follows the last slash */
	NAME_NUMBER =
		2, /* a fast function without a name is [builtin#N], though its name is known */
};

/* What there was no room for: PROF_OTHER, and the lines of a report beyond its bounds. */
#define NAME_OTHER "(other)"

/*
 * One frame as LuaJIT's lj_debug_dumpstack() puts it for the format letter 'f', 'F' or 'l', with
 * two differences: a C function that has a symbol shows it in place of its address, and a fast
 * function whose name is known shows it unless NAME_NUMBER is given.
 */
void name_jitp(struct text *out, const struct prof_frame *frame, char what, unsigned int flags);

/*
 * Definition's name, else call site's, else chunk:firstline; for C and fast functions the symbol
 * first. The chunk with its whole path, or how its text begins, and a number that tells texts that
 * begin alike. "?" is no name.
 */
void name_stable(struct text *out, const struct prof_frame *frame);

/* The same, with "(chunk:firstline)" behind the name: functions of one name are told apart. */
void name_unique(struct text *out, const struct prof_frame *frame);

/* jit.p's word for a VM state letter ("Interpreted"), NULL for a letter that it does not know. */
const char *name_vmstate(char letter);

/* The letter for such a word, '\0' when it is none. */
char name_vmstate_letter(const char *word);

#endif
