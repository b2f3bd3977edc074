/* SPDX-License-Identifier: BSD-2-Clause */
/* Work of machine instructions, and the classes that an IR instruction needs (for jit/ only). */
#ifndef JIT_WORK_H
#define JIT_WORK_H

#include "model.h"
#include "arch/work.h"

struct machine {
	uint32_t ofs;
	enum work work;
	uint8_t reg; /* written register, XMM registers from 16 on; 0xff: not known */
	bool of_vm;  /* its operand in memory is the VM's own */
	bool glued;  /* assembled from the same IR instruction as the one before it */
	bool turns;  /* a register move that is not a save of a register that the next instruction
		      * overwrites */
};

/* Returns the classes that may be an IR instruction's own work, as bits 1 << enum work; 0: none. */
uint32_t lj_work_own(const struct lj_ins *ir);

/* True for operations that become many instructions of any kind: searches, inline allocation,
 * barriers. */
bool lj_work_is_manifold(uint8_t o);

#endif
