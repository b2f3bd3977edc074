/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A VM's image with all that user/traces reads: functions in the collector's list, traces, the
 * penalty cache, and the last recording.
 *
 *	function	instructions that matter
 *	main, line 10	20: JFORL of trace 1, 30: FORL, penalised, 36: IFORL, blacklisted, 40: ILOOP
 *	callee, line 50	0: IFUNCF, blacklisted without an entry
 *	off, line 90	9: IFORL of a function with jit.off()
 *
 *	trace		start
 *	1		main 20, root, loop
 *	2		main 24, side of exit 1 of trace 1, goes on in 1
 *	5		callee 4, stitched to 1, returns
 */
#ifndef LIB_LJ_COMPILED_VM_H
#define LIB_LJ_COMPILED_VM_H

#include "lj_image.h"

/* Instructions of main; the body of each loop is the five before it, or behind ILOOP. */
enum {
	CV_TRACED = 20,
	CV_SIDE = 24,
	CV_PENALISED = 30,
	CV_BLACKLISTED = 36,
	CV_WHILE = 40,
	CV_OFF = 9,
	CV_CAUSE = 27, /* the last recording began at CV_PENALISED and ended here */
};
#define CV_NYIBC 7 /* LJ_TRERR_NYIBC of 2.1 */
#define CV_LLEAVE 8
#define CV_FNEW 51

struct lj_compiled_vm {
	struct lj_image img;
	uint64_t main, callee, off; /* functions */
	struct lji_trace root, side, stitched;
	uint64_t penalty, cur; /* addresses */
	uint32_t npenalties;
};

void lj_compiled_vm_init(struct lj_compiled_vm *vm, const struct lj_layout *lj);
void lj_compiled_vm_free(struct lj_compiled_vm *vm);

/* Appends an entry to the penalty cache, which has 64 at most. */
void lj_compiled_vm_penalise(struct lj_compiled_vm *vm, uint64_t pc, uint16_t val, uint16_t reason);

/* Writes a trace's link. */
void lj_compiled_vm_link(struct lj_compiled_vm *vm, const struct lji_trace *t, uint16_t link,
			 uint8_t type);

/* Writes how often a snapshot's exit was taken. */
void lj_compiled_vm_count(struct lj_compiled_vm *vm, const struct lji_trace *t, uint32_t snap,
			  uint8_t count);

#endif
