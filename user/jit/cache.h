/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cache of one process's traces (layer 6): line attribution by (VM, trace number, fingerprint).
 * A trace is read from the live process once; at most KNOWN_MAX of them are kept.
 */
#ifndef JIT_CACHE_H
#define JIT_CACHE_H

#include <unwind/abi.h>
#include <unwind/mem.h>

struct lj_ffnames;
struct lj_traces;

/* mem is the live process, and outlives the traces. */
int lj_traces_new(const struct lb_mem *mem, struct lj_traces **out);
void lj_traces_free(struct lj_traces **traces);

/* Replaces the topmost frames of a sample, which are its trace's snapshot's, by the exact ones.
 * names: the VM's functions; NULL: not known. Returns 0; -ENOENT: only the snapshot is known, and
 * the stack is unchanged; or -ENOMEM. */
int lj_traces_attribute(struct lj_traces *traces, const struct lj_build *build,
			const struct lj_ffnames *names, struct lb_rec_sample *rec);

#endif
