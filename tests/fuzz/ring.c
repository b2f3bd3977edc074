// SPDX-License-Identifier: BSD-2-Clause
/* Records of the ring buffer: whatever the bytes, a callback sees nothing beyond them. */
#include <stdlib.h>
#include <string.h>

#include "bpf/ring.h"

struct ring_seen {
	uint64_t sum;
	int calls;
};

static void touch(struct ring_seen *seen, const void *bytes, size_t size)
{
	const uint8_t *p = bytes;

	seen->calls++;
	while (size--)
		seen->sum += *p++;
}

static bool on_sample(void *arg, const struct lb_rec_sample *s, uint32_t count)
{
	if (s->stack.n > LB_MAX_FRAMES || s->build >= LB_BUILDS || count != 1)
		abort();
	touch(arg, s, LB_SAMPLE_SIZE(s->stack.n));
	return true;
}

static void on_proto(void *arg, const struct lb_rec_proto *p)
{
	const char *end = (const char *)p + p->head.size;
	const struct lb_part *part = (const void *)(p + 1);

	touch(arg, p, sizeof(*p));
	for (; (const char *)part < end; part = lb_next_part(part))
		touch(arg, part, LB_PART_SIZE(part->len));
}

static void on_task(void *arg, const struct lb_rec_task *t)
{
	touch(arg, t, sizeof(*t));
}

static void on_zone(void *arg, const struct lb_rec_zone *z)
{
	touch(arg, z, LB_ZONE_SIZE(z->len < LB_ZONE_TEXT ? z->len : LB_ZONE_TEXT));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct stacks *stacks;
	static __u64 slots[LB_STACKS];
	struct ring_seen seen = {};
	struct ring_callbacks cb = {
		.sample = on_sample,
		.proto = on_proto,
		.task = on_task,
		.zone = on_zone,
		.arg = &seen,
	};
	/* Its own allocation, aligned as the ring's records are, so that one byte too far is seen. */
	uint8_t *bytes = calloc(1, size + !size);
	int err;

	if (!bytes || (!stacks && stacks_new(slots, &stacks)))
		return 0;
	if (size)
		memcpy(bytes, data, size);
	err = ring_record(&cb, stacks, bytes, size);
	stacks_commit(stacks, on_sample, &seen);
	if (err ? seen.calls : !seen.calls)
		abort();
	free(bytes);
	return 0;
}
