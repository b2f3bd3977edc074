/* SPDX-License-Identifier: BSD-2-Clause */
/* The machine code of each snapshot, in builds whose snapshots do not say where it begins (layer 0). */
#ifndef JIT_GUARDS_H
#define JIT_GUARDS_H

#include "model.h"

/*
 * Fills in t->snap[].mcofs and branches. A guard's branch leads to the exit stub of its snapshot, so that the code up to there is
 * this snapshot's, as for the unwinder (unwind/lj/trace.h). A branch that was patched, to a side trace, counts for
 * the next one. mcode: the address of the trace's machine code. Returns 0, or the error of mem_read(): if a stub is
 * missing, its snapshot's code would be attributed to the next snapshot.
 */
int lj_trace_guards(struct lj_trace *t, const struct lb_mem *mem, uint64_t mcode);

#endif
