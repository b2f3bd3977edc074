// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include <bpf/libbpf.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "ring.h"

struct ring {
	struct ring_buffer *rb;
	struct ring_callbacks callbacks;
	struct stacks *stacks;
	__u64 *sent;
	uint64_t bad, replaced;
	uint64_t began_ns, most_ns; /* the drain in hand */
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
	uint32_t i;

	if (size < sizeof(*p) || p->head.size < sizeof(*p) || p->nparts > LB_PARTS)
		return -EBADMSG;
	for (i = 0; i < p->nparts; i++) {
		const struct lb_part *part = &p->part[i];

		if (part->len && (part->at < sizeof(*p) || part->at > p->head.size ||
				  part->len > p->head.size - part->at))
			return -EBADMSG;
	}
	return 0;
}

static int repeat_sample(const struct ring_callbacks *cb, struct stacks *stacks,
			 const struct lb_rec_again *again)
{
	const struct lb_rec_sample *sample = stacks_find(stacks, again);

	if (!sample)
		return -ENOENT;
	cb->sample(cb->arg, sample, again->count);
	return 0;
}

int ring_record(const struct ring_callbacks *cb, struct stacks *stacks, const void *bytes,
		size_t size, uint64_t *lost)
{
	const struct lb_rec_again *again = bytes;
	const struct lb_rec_head *head = bytes;

	if (size < sizeof(*head) || head->size > size)
		return -EBADMSG;
	switch (head->type) {
	case LB_REC_SAMPLE:
		if (check_sample(bytes, size))
			return -EBADMSG;
		stacks_keep(stacks, bytes);
		cb->sample(cb->arg, bytes, 1);
		return 0;
	case LB_REC_AGAIN:
		if (size < sizeof(*again) || again->count >= LB_STACKS)
			return -EBADMSG;
		*lost = again->count;
		return repeat_sample(cb, stacks, again);
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
	}
	return -EBADMSG;
}

/*
 * After what was in the ring before: a stack is sent before it is counted. all_kept: that is all.
 */
static void take_counts(struct ring *ring, bool all_kept)
{
	const struct ring_callbacks *cb = &ring->callbacks;
	uint32_t place, count;

	for (place = 0; place < LB_STACKS; place++) {
		const struct lb_rec_sample *sample =
			stacks_take(ring->stacks, ring->sent, place, &count);

		if (sample)
			cb->sample(cb->arg, sample, count);
		if (all_kept)
			ring->replaced += stacks_lose(ring->stacks, ring->sent, place);
	}
}

static int on_record(void *ctx, void *data, size_t size)
{
	const struct lb_rec_task *task = data;
	struct ring *ring = ctx;
	uint64_t lost = 0;
	int r;

	if (size >= sizeof(*task) && task->head.type == LB_REC_TASK && task->epoch)
		take_counts(ring, false); /* of the image that this ends */
	r = ring_record(&ring->callbacks, ring->stacks, data, size, &lost);
	ring->bad += r == -EBADMSG;
	ring->replaced += r == -ENOENT ? lost : 0;
	return clock_ns(CLOCK_MONOTONIC) - ring->began_ns < ring->most_ns ? 0 : -EAGAIN;
}

int ring_open(int map_fd, __u64 *sent, const struct ring_callbacks *callbacks, struct ring **out)
{
	struct ring *ring __cleanup(ring_free) = calloc(1, sizeof(*ring));

	if (!ring || stacks_new(&ring->stacks))
		return -ENOMEM;
	ring->callbacks = *callbacks;
	ring->sent = sent;
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
	if (r == -EAGAIN)
		return 1;
	take_counts(ring, true);
	return r < 0 ? r : 0;
}

uint64_t ring_bad(const struct ring *ring)
{
	return ring->bad;
}

uint64_t ring_replaced(const struct ring *ring)
{
	uint64_t replaced = ring->replaced;
	uint32_t place;

	for (place = 0; place < LB_STACKS; place++)
		replaced += LB_STACK_COUNT(ring->sent[place]);
	return replaced;
}
