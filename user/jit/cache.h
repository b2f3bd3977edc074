/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cache of one process's traces (layer 6): line attribution by (VM, trace number, fingerprint).
 * A trace is read from the live process once; at most KNOWN_MAX of them are kept.
 */
#ifndef JIT_CACHE_H
#define JIT_CACHE_H

#include <stdint.h>

#include <unwind/abi.h>
#include <unwind/mem.h>

struct lj_ffnames;
struct lj_traces;

/* mem is the live process, and outlives the traces. */
int lj_traces_new(const struct lb_mem *mem, struct lj_traces **out);
void lj_traces_free(struct lj_traces **traces);

/* saw is called for each prototype of a trace while that is read: the VM may be closed soon. */
void lj_traces_watch(struct lj_traces *traces, void (*saw)(void *arg, uint64_t proto, uint32_t fp),
		     void *arg);

/* Replaces the topmost frames of a sample, which are its trace's snapshot's, by the exact ones.
 * names: the VM's functions; NULL: not known. Returns 0; -ENOENT: only the snapshot is known, and
 * the stack is unchanged; or -ENOMEM. */
int lj_traces_attribute(struct lj_traces *traces, const struct lj_build *build,
			const struct lj_ffnames *names, struct lb_rec_sample *rec);

/*
 * A sample as it would be at another offset of the machine code of its trace, which was read: with its snapshot's
 * frames, and with the exact ones. rec: before lj_traces_attribute(). -ENOENT: it is not known.
 */
int lj_traces_elsewhere(struct lj_traces *traces, const struct lb_rec_sample *rec, uint32_t mcofs,
			struct lb_rec_sample *snapshot, struct lb_rec_sample *exact);

#endif
