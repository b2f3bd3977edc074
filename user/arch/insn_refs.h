/* SPDX-License-Identifier: BSD-2-Clause */
/* The addresses of the file that instructions refer to. */
#ifndef ARCH_INSN_REFS_H
#define ARCH_INSN_REFS_H

#include "insn.h"

enum insn_ref {
	INSN_REF_NONE,
	INSN_REF_TARGET, /* of a call, jump or branch */
	INSN_REF_SLOT,	 /* of the word that holds the target of a call or jump */
	INSN_REF_VALUE,	 /* that is computed */
};

/* Returns what the instruction refers to, and its address. next: the address behind the
 * instruction. */
enum insn_ref insn_ref(const struct insn *in, uint64_t next, uint64_t *addr);

#define PLT_ENTRY 16 /* bytes */

/* Finds the slot by which the PLT entry at this address jumps. False: it is no such entry. */
bool insn_plt_slot(const uint8_t text[PLT_ENTRY], uint64_t at, uint64_t *slot);

/* True if the text begins as a PLT does. */
bool insn_is_plt(const uint8_t *text, size_t size);

#endif
