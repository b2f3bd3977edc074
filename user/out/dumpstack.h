/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stack as text, in a format of jit.profile.dumpstack(): p f F l Z and other characters, as LuaJIT's
 * documentation describes them. The reports of jit.p and the library show stacks by it.
 */
#ifndef OUT_DUMPSTACK_H
#define OUT_DUMPSTACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "prof/prof.h"

/*
 * Two formats have a meaning of their own, as jit/p.lua uses each for one thing only:
 *
 *   "l"   its second key: a library function of LuaJIT is [builtin#N], though its name is known
 *   "pl"  annotated source: begins at the topmost Lua function. jit.p's own samples always stand in Lua
 *         code
 */
struct dumpstack {
	const char *fmt;
	int depth; /* levels at most, from the topmost; < 0: inverse order */
	/* Frames are those of folded stacks: one of no frames is FOLDED_NO_FRAME, one of more frames than an
	 * inverse depth begins with NAME_CUT. */
	bool folded;
	size_t most; /* beyond this length NAME_OTHER ends it */
	/* Appends the name of a frame. what: f F l; flags: of prof/name.h. 0 or -ENOMEM. */
	int (*put)(void *arg, struct text *out, uint32_t frame, char what, unsigned int flags);
	void *arg;
};

/* Appends to out. 0 or put's error. */
int dumpstack(const struct dumpstack *how, const struct prof *prof, const struct prof_row *row,
	      struct text *out);

#endif
