/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies a trace and the prototypes that it runs from the target (layer 0). */
#ifndef JIT_READ_H
#define JIT_READ_H

#include "model.h"

/* Fills in t, which is zeroed. -EBADMSG: these bytes are no trace; -EAGAIN: it changed meanwhile;
 * errors of mem_read(); -ENOMEM. g: global_State. */
int lj_trace_copy(struct lj_trace *t, const struct lb_mem *mem, const struct lj_layout *lj,
		  uint64_t g, uint32_t traceno);

#endif
