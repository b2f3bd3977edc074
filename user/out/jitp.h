/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reports of LuaJIT's jit/p.lua, byte for byte, from a profile. Rows of equal counts stand in
 * the order in which they first appeared (jit.p leaves that to a hash table). What differs on
 * purpose:
 *
 * - a function has one name (prof/function.h): where jit.p's, of the call, is none of its own (a
 *   parameter's, another function's, one that two functions have), it has the definition's name, a
 *   symbol, or its place;
 * - a C function without a symbol is module+0xoffset in place of @0x...;
 * - chunks of text show how they begin in place of [string], an empty file name its sign, and files
 *   of one name their paths; a function without lines has #position behind its line;
 * - a stack that was cut ends in a frame [cut]; the raw dump (G) always shows it, other views when
 *   they reach that deep. The raw dump shows it as well where more than its 100 frames are known;
 * - frames of the raw dump are those of valid folded stacks (out/folded.h);
 * - control characters in names and source lines are written as \xNN (see text_put_clean()); the CR
 *   of a line that ends in CR LF stays;
 * - annotated source counts the line of the topmost Lua frame, also when a C function runs on top
 *   of it: jit.p's own samples always stand in Lua code;
 * - annotating with `a` works where jit/p.lua stops with an error in its own code: at a file whose
 *   first counted line is 2 or 3 and whose line 4 has no samples.
 */
#ifndef OUT_JITP_H
#define OUT_JITP_H

#include <stdio.h>

#include "jitp_options.h"
#include "prof/prof.h"
#include "source.h"

/*
 * Renders. `source` is needed with annotate; a file that it cannot open is told in the text. 0,
 * -ENOMEM or what writing gave.
 */
int jitp_render(const struct prof *prof, const struct jitp_options *options,
		const struct source *source, FILE *out);

#endif
