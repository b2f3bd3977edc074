/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies a trace and the prototypes that it runs from the target (layer 0). */
#ifndef JIT_READ_H
#define JIT_READ_H

#include "jit.h"
#include "model.h"

/* Fills in t, which is zeroed. -EBADMSG: these bytes are no trace; -EAGAIN: it changed meanwhile; -ESTALE: it is not
 * the wanted one (fp 0: any is); errors of mem_read(); -ENOMEM. g: global_State. */
int lj_trace_copy(struct lj_trace *t, const struct lb_mem *mem, const struct lj_layout *lj,
		  uint64_t g, const struct lj_trace_wanted *wanted);

/* True if the trace that was copied is still there: else what was read meanwhile may be another VM's. */
bool lj_trace_remains(const struct lj_trace *t, const struct lb_mem *mem, uint64_t g,
		      const struct lj_trace_wanted *wanted);

#endif
