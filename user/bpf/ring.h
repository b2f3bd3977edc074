/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring buffer's reader: validates each record, then calls the callback of its type. Samples
 * reach their callback at the end of a drain: each stack once, with its count. Records are valid
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
	void (*zone)(void *arg, const struct lb_rec_zone *zone);
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
 * Reads the records in the ring until it is empty, most_ns have passed (records may come as fast as
 * they are read) or a signal ends the recording. RING_ALL: until it is empty. Returns 0, 1 if it
 * stopped early, or -errno.
 */
#define RING_ALL UINT64_MAX
int ring_drain(struct ring *ring, uint64_t most_ns);

/* Passes the samples read so far to their callback, as a drain does at its end. */
void ring_commit(struct ring *ring);

/* Returns the number of malformed records since the last call. */
uint64_t ring_take_bad(struct ring *ring);

/* After the last drain: the samples that BPF counted for stacks whose record was malformed. */
uint64_t ring_unknown(const struct ring *ring);

/* Returns the number of records that were read, malformed ones included. */
uint64_t ring_records(const struct ring *ring);

/* Checks one record and dispatches it, or returns -EBADMSG. The seam for tests and fuzzers. */
int ring_record(const struct ring_callbacks *callbacks, struct stacks *stacks, const void *bytes,
		size_t size);

#endif
