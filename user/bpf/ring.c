// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include <bpf/libbpf.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/signals.h"
#include "ring.h"

struct ring {
	struct ring_buffer *rb;
	struct ring_callbacks callbacks;
	struct stacks *stacks;
	uint64_t bad, records;
	uint64_t began_ns, most_ns; /* of the current drain */
};

static int check_sample(const struct lb_rec_sample *s, size_t size)
{
	if (size < LB_SAMPLE_SIZE(0) || s->stack.n > LB_MAX_FRAMES ||
	    size < LB_SAMPLE_SIZE(s->stack.n) || s->build >= LB_BUILDS)
		return -EBADMSG;
	return 0;
}

static int check_proto(const struct lb_rec_proto *p, size_t size)
{
	size_t left = p->head.size - sizeof(*p);
	const struct lb_part *part = (const void *)(p + 1);

	if (size < sizeof(*p) || p->head.size < sizeof(*p))
		return -EBADMSG;
	for (; left; part = lb_next_part(part)) {
		if (left < sizeof(*part) || part->len > LB_PART_MOST ||
		    left < LB_PART_SIZE(part->len))
			return -EBADMSG;
		left -= LB_PART_SIZE(part->len);
	}
	return 0;
}

static int check_zone(const struct lb_rec_zone *z, size_t size)
{
	if (size < LB_ZONE_SIZE(0) || z->word < LB_ZONE_NAMES ||
	    size < LB_ZONE_SIZE(z->len < LB_ZONE_TEXT ? z->len : LB_ZONE_TEXT))
		return -EBADMSG;
	return 0;
}

int ring_record(const struct ring_callbacks *cb, struct stacks *stacks, const void *bytes,
		size_t size)
{
	const struct lb_rec_head *head = bytes;

	if (size < sizeof(*head) || head->size > size)
		return -EBADMSG;
	switch (head->type) {
	case LB_REC_SAMPLE:
		if (check_sample(bytes, size))
			return -EBADMSG;
		if (stacks_add(stacks, bytes)) /* no memory to keep it */
			cb->sample(cb->arg, bytes, 1);
		return 0;
	case LB_REC_PROTO:
		if (check_proto(bytes, size))
			return -EBADMSG;
		cb->proto(cb->arg, bytes);
		return 0;
	case LB_REC_TASK:
		if (size < sizeof(struct lb_rec_task))
			return -EBADMSG;
		cb->task(cb->arg, bytes);
		return 0;
	case LB_REC_ZONE:
		if (check_zone(bytes, size))
			return -EBADMSG;
		cb->zone(cb->arg, bytes);
		return 0;
	}
	return -EBADMSG;
}

void ring_commit(struct ring *ring)
{
	stacks_collect(ring->stacks);
	stacks_commit(ring->stacks, ring->callbacks.sample, ring->callbacks.arg);
}

static int on_record(void *ctx, void *data, size_t size)
{
	struct ring *ring = ctx;

	ring->records++;
	ring->bad += ring_record(&ring->callbacks, ring->stacks, data, size) != 0;
	if (ring->most_ns == RING_ALL)
		return 0;
	if (signals_caught())
		return -EAGAIN;
	return clock_ns(CLOCK_MONOTONIC) - ring->began_ns < ring->most_ns ? 0 : -EAGAIN;
}

int ring_open(int map_fd, __u64 *stack_counts, const struct ring_callbacks *callbacks,
	      struct ring **out)
{
	struct ring *ring __cleanup(ring_free) = calloc(1, sizeof(*ring));

	if (!ring || stacks_new(stack_counts, &ring->stacks))
		return -ENOMEM;
	ring->callbacks = *callbacks;
	ring->rb = ring_buffer__new(map_fd, on_record, ring, NULL);
	if (!ring->rb)
		return -errno;
	*out = TAKE_PTR(ring);
	return 0;
}

void ring_free(struct ring **ring)
{
	if (!*ring)
		return;
	ring_buffer__free((*ring)->rb);
	stacks_free(&(*ring)->stacks);
	free(*ring);
	*ring = NULL;
}

int ring_epoll_fd(const struct ring *ring)
{
	return ring_buffer__epoll_fd(ring->rb);
}

int ring_drain(struct ring *ring, uint64_t most_ns)
{
	int r;

	ring->began_ns = clock_ns(CLOCK_MONOTONIC);
	ring->most_ns = most_ns;
	r = ring_buffer__consume(ring->rb); /* the record that ends it was read, too */
	ring_commit(ring);
	return r == -EAGAIN ? 1 : r < 0 ? r : 0;
}

uint64_t ring_take_bad(struct ring *ring)
{
	uint64_t bad = ring->bad;

	ring->bad = 0;
	return bad;
}

uint64_t ring_unknown(const struct ring *ring)
{
	return stacks_unknown(ring->stacks);
}

uint64_t ring_records(const struct ring *ring)
{
	return ring->records;
}
