/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints the reports of LuaJIT's jit/p.lua, byte for byte, from a profile. Rows of equal counts
 * keep the order in which they first appeared (in jit.p, that of a hash table). Deliberate
 * differences:
 *
 * - a function has one name (prof/function.h). jit.p names the call; if that name is a parameter's,
 *   another function's or shared by two functions, the function has its definition's name, a
 *   symbol, or its file and line;
 * - a C function without a symbol is module+0xoffset in place of @0x...;
 * - chunks of text show their first characters in place of [string], an empty file name its sign,
 *   and files of one name their paths; a function without lines has #position after its line;
 * - a stack that was cut ends in a frame [cut]; the raw dump (G) always shows it, other views if
 *   they reach that deep. The raw dump also cuts stacks of more than its 100 frames with it;
 * - frames of the raw dump are those of valid folded stacks (out/folded.h);
 * - control characters in names and source lines are written as \xNN (see text_put_clean()); the CR
 *   of a line that ends in CR LF stays;
 * - a zone that is no string is "(not a string)", one that is not known "(unknown)"; a name of more
 *   than 255 bytes ends in "...";
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
 * Renders a report. `source` is needed with annotate; the text has an error line for a file that it
 * cannot open. Returns 0, -ENOMEM or the error of a write.
 */
int jitp_render(const struct prof *prof, const struct jitp_options *options,
		const struct source *source, FILE *out);

#endif
