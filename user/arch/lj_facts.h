/* SPDX-License-Identifier: BSD-2-Clause */
/* Measures the numbers that the text of LuaJIT's assembler VM holds. */
#ifndef ARCH_LJ_FACTS_H
#define ARCH_LJ_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The measured values. Offsets are from the global_State. */
enum lj_fact {
	LJ_FACT_G2DISP,
	LJ_FACT_VMSTATE,
	LJ_FACT_HOOKMASK,
	LJ_FACT_CUR_L,
	LJ_FACT_JIT_BASE,
	LJ_FACT_TRACE,	/* J.trace */
	LJ_FACT_PARENT, /* J.parent */
	LJ_FACT_EXITNO, /* J.exitno */
	LJ_FACT_EXIT,	/* lowest byte of vmstate while a trace exits */
	LJ_FACT_CFRAME_PREV,
	LJ_FACT_STR_LEN,
	LJ_FACT_GC_TOTAL,
	LJ_FACT_GC_THRESHOLD, /* behind it */
	LJ_FACT_FUNCF,
	LJ_FACT_FUNCC_END, /* the first opcode after those of C functions' headers */
	LJ_FACT_MCOFS,	   /* snapshots have mcofs; may be missing */
	LJ_FACT_SPACE4,	   /* the VM's frame without four pushed registers; may be missing */
	LJ_FACT_SPACE6,	   /* the same with six: LUAJIT_NO_UNWIND */
	LJ_FACTS,
};

struct lj_measured {
	uint32_t fact[LJ_FACTS]; /* 0: not found; LJ_FACT_DIFFERS: found to differ */
	bool gc32;		 /* 32-bit references: built without GC64 */
};
#define LJ_FACT_DIFFERS UINT32_MAX

/* Sets the facts that the text has. */
void lj_measure(const uint8_t *text, size_t size, struct lj_measured *out);

/* The size of the VM's frame on the C stack, with its return address. */
uint32_t lj_measured_cframe(const struct lj_measured *m);

/* Returns the size of the VM in this text without lj_vm_ffi_call, which is at its end. */
size_t lj_measured_size(const uint8_t *text, size_t size);

#endif
