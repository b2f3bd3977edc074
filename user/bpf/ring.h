/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring buffer's reader: validates each record, then calls the callback of its type. Samples are
 * handed on once a drain, when all of it was read: each stack with its count. Records are valid
 * only during the call.
 */
#ifndef BPF_RING_H
#define BPF_RING_H

#include <stddef.h>
#include <stdint.h>

#include <unwind/abi.h>

#include "stacks.h"

struct ring_callbacks {
	stacks_sample_fn *sample;
	void (*proto)(void *arg, const struct lb_rec_proto *proto);
	void (*task)(void *arg, const struct lb_rec_task *task);
	void *arg;
};

struct ring;

/* stack_counts: the LB_STACKS words that BPF counts in (unwind/abi.h). They outlive the ring. */
int ring_open(int map_fd, __u64 *stack_counts, const struct ring_callbacks *callbacks,
	      struct ring **out);
void ring_free(struct ring **ring);

/* A descriptor that polls readable when BPF wakes the reader. */
int ring_epoll_fd(const struct ring *ring);

/*
 * Reads what is there, for at most so many ns, as records may come as fast as they are read, and
 * until a signal that ends the recording. RING_ALL: reads everything. 0; 1 when there is more; or
 * -errno.
 */
#define RING_ALL UINT64_MAX
int ring_drain(struct ring *ring, uint64_t most_ns);

/* Hands on what was read so far, as a drain does at its end. */
void ring_commit(struct ring *ring);

/* Records that were refused as malformed, and samples that BPF counted for their stacks. To be
 * called when all was drained. */
uint64_t ring_bad(const struct ring *ring);

/* Checks one record and dispatches it, or returns -EBADMSG. The seam for tests and fuzzers. */
int ring_record(const struct ring_callbacks *callbacks, struct stacks *stacks, const void *bytes,
		size_t size);

#endif
