/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytecode as text. */
#ifndef TRACES_BYTECODE_H
#define TRACES_BYTECODE_H

#include <stdbool.h>

#include "base/text.h"
#include "listing.h"

/*
 * Puts an instruction as LuaJIT's jit/bc.lua lists it, without position and newline: "FORL     3 =>
 * 0005". bcpos: its position; ins: it, or the one that was there before.
 */
void traces_put_bytecode(const struct traces_vm *vm, const struct lj_proto *pt, uint32_t bcpos,
			 uint32_t ins, struct text *out);

/* Returns an array with a flag for each instruction: a jump leads here. NULL: out of memory. */
bool *traces_jump_targets(const struct lj_proto *pt);

/*
 * Finds the instruction in whose place the VM has put JFORL, IFORL and the like. marks: of bcpos.
 * False: it is not patched, or what was there before is not known.
 */
bool traces_was(const struct lj_proto *pt, uint32_t bcpos, const struct traces_mark *marks,
		size_t nmarks, uint32_t *ins);

#endif
