/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions of a profile, and one name for each. A function is a prototype, however it was
 * called: frames that differ in their line or in the name at their call only are one function.
 *
 * jit.p names a function by the call. That name stays where it names this function and no other:
 *
 *     the name at the call    when it is the end of the definition's name, or that is not known
 *                             and all calls agree
 *     the definition's name   where bytecode stores the function; a C function's symbol
 *     chunk:line              a C function's module+0xoffset
 *
 * A name that two functions have is no name of either: the next one is taken. Where several begin
 * on one line, chunk:line is the first that the VM made, chunk:line#2 the next. Functions that
 * nothing of this distinguishes have a hash behind it. A function of a file that several VMs run is
 * one function (function_vms.c).
 */
#ifndef PROF_FUNCTION_H
#define PROF_FUNCTION_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "prof.h"

struct functions;

/* prof outlives it, and does not change. 0 or -ENOMEM. */
int functions_new(const struct prof *prof, struct functions **out);
void functions_free(struct functions **functions);

/* Number of a frame's function; less than functions_count(). */
uint32_t functions_of(const struct functions *functions, uint32_t frame);
size_t functions_count(const struct functions *functions);

/* Returns the fields that all frames of a function share; callname and line are not set. */
const struct prof_frame *functions_frame(const struct functions *functions, uint32_t function);

/* A frame as jit.p shows it for the format letter 'f', 'F' or 'l', with the flags of name.h. */
void functions_put_jitp(const struct functions *functions, struct text *out, uint32_t frame,
			char what, unsigned int flags);

/*
 * The name that stays the same wherever the function is called from: of the definition, else of all
 * calls, else chunk:line; of a C function the symbol, else module+0xoffset. Where another function
 * of the profile has it, too, "(chunk:line)" follows; not behind a symbol that a Lua function has.
 */
void functions_put_stable(const struct functions *functions, struct text *out, uint32_t function);

/* The same, always with "(chunk:line)" behind a Lua function's name: profiles can be compared. */
void functions_put_unique(const struct functions *functions, struct text *out, uint32_t function);

#endif
