/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The traces of one process that samples showed: which bytecode their machine code was made from
 * (lj_trace.h), read from the live process once for each trace.
 */
#ifndef JIT_CACHE_H
#define JIT_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include <unwind/abi.h>
#include <unwind/mem.h>

struct lj_ffnames;
struct lj_traces;

/* mem is the live process, and outlives the traces. */
int lj_traces_new(const struct lb_mem *mem, struct lj_traces **out);
void lj_traces_free(struct lj_traces **traces);

/*
 * Puts the topmost frames of a sample that stands on a trace's snapshot where its machine code was
 * made from. names: of the VM's functions; NULL: not known. Returns 0; -ENOENT: nothing finer is
 * known than the snapshot, and the stack was left as it is; or -ENOMEM.
 */
int lj_traces_refine(struct lj_traces *traces, const struct lj_build *build,
		     const struct lj_ffnames *names, struct lb_rec_sample *rec);

#endif
