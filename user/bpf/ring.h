/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring buffer's reader: validates each record, then calls the callback of its type. Records are
 * valid only during the call.
 */
#ifndef BPF_RING_H
#define BPF_RING_H

#include <stddef.h>
#include <stdint.h>

#include <luabpf/abi.h>

#include "stacks.h"

struct ring_callbacks {
	/* so many, that are the same */
	void (*sample)(void *arg, const struct lb_rec_sample *sample, uint32_t count);
	void (*proto)(void *arg, const struct lb_rec_proto *proto);
	void (*task)(void *arg, const struct lb_rec_task *task);
	void *arg;
};

struct ring;

/* sent: the table of LB_STACKS words that BPF counts in (abi.h). It outlives the ring. */
int ring_open(int map_fd, __u64 *sent, const struct ring_callbacks *callbacks, struct ring **out);
void ring_free(struct ring **ring);

/* A descriptor that polls readable when BPF wakes the reader. */
int ring_epoll_fd(const struct ring *ring);

/*
 * Reads what is there, for at most so many ns: records may come as fast as they are read. 0; 1 when
 * there is more; or -errno.
 */
#define RING_ALL UINT64_MAX
int ring_drain(struct ring *ring, uint64_t most_ns);

/* Records that were refused as malformed. */
uint64_t ring_bad(const struct ring *ring);

/*
 * Samples that were lost, as the stack that they name was replaced by another's. Those that were
 * counted for a stack which is not here count, too: asked for when all was drained.
 */
uint64_t ring_replaced(const struct ring *ring);

/* Checks one record and dispatches it; -EBADMSG when it is malformed, -ENOENT when the sample that
 * it names is not kept: then *lost says how many there were. The seam for tests and fuzzers. */
int ring_record(const struct ring_callbacks *callbacks, struct stacks *stacks, const void *bytes,
		size_t size, uint64_t *lost);

#endif
