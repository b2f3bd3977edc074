// SPDX-License-Identifier: BSD-2-Clause
/* Records of the ring buffer: what is malformed never reaches a callback. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "bpf/ring.h"

struct seen {
	int samples, protos, tasks, zones;
	struct lb_rec_sample sample; /* the last one */
};

static struct stacks *stacks;
static __u64 slots[LB_STACKS];

static bool on_sample(void *arg, const struct lb_rec_sample *s, uint32_t count)
{
	struct seen *seen = arg;

	seen->samples += (int)count;
	memcpy(&seen->sample, s, LB_SAMPLE_SIZE(s->stack.n));
	return true;
}

static void on_proto(void *arg, const struct lb_rec_proto *p)
{
	(void)p;
	((struct seen *)arg)->protos++;
}

static void on_task(void *arg, const struct lb_rec_task *t)
{
	(void)t;
	((struct seen *)arg)->tasks++;
}

static void on_zone(void *arg, const struct lb_rec_zone *z)
{
	(void)z;
	((struct seen *)arg)->zones++;
}

/* Dispatches `size` bytes out of an allocation of just that size. */
static int record(struct seen *seen, const void *bytes, size_t size)
{
	struct ring_callbacks cb = {
		.sample = on_sample,
		.proto = on_proto,
		.task = on_task,
		.zone = on_zone,
		.arg = seen,
	};
	void *copy = malloc(size + !size);
	int err;

	cr_assert(stacks || !stacks_new(slots, &stacks));
	memcpy(copy, bytes, size);
	*seen = (struct seen){};
	err = ring_record(&cb, stacks, copy, size);
	stacks_commit(stacks, on_sample, seen);
	free(copy);
	return err;
}

static void refused(const void *bytes, size_t size, const char *what)
{
	struct seen seen;

	cr_expect_eq(record(&seen, bytes, size), -EBADMSG, "%s", what);
	cr_expect_eq(seen.samples + seen.protos + seen.tasks + seen.zones, 0, "%s", what);
}

static struct lb_rec_sample sample(uint32_t n)
{
	return (struct lb_rec_sample){.head = {.type = LB_REC_SAMPLE, .size = LB_SAMPLE_SIZE(n)},
				      .stack = {.n = n}};
}

Test(ring, sample_of_each_depth)
{
	static const uint32_t depths[] = {0, 1, 2, 126, LB_MAX_FRAMES};
	struct seen seen;
	size_t i;

	for (i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
		struct lb_rec_sample s = sample(depths[i]);

		cr_expect_eq(record(&seen, &s, s.head.size), 0);
		cr_expect_eq(seen.samples, 1);
		refused(&s, s.head.size - 1, "a byte short");
	}
}

Test(ring, sample_longer_than_its_frames)
{
	struct lb_rec_sample s = sample(3);
	struct seen seen;

	cr_expect_eq(record(&seen, &s, sizeof(s)), 0);
	cr_expect_eq(seen.samples, 1);
}

Test(ring, sample_lies)
{
	struct lb_rec_sample s = sample(LB_MAX_FRAMES);

	s.stack.n++;
	refused(&s, sizeof(s), "too many frames");
	s.stack.n = UINT32_MAX;
	refused(&s, sizeof(s), "far too many frames");
	s = sample(4);
	s.stack.n = 5;
	refused(&s, LB_SAMPLE_SIZE(4), "more frames than bytes");
	s = sample(4);
	s.build = LB_BUILDS;
	refused(&s, LB_SAMPLE_SIZE(4), "a build beyond the table");
	s = sample(4);
	s.head.size++;
	refused(&s, LB_SAMPLE_SIZE(4), "a length beyond its bytes");
}

Test(ring, head)
{
	struct lb_rec_head head = {.type = LB_REC_SAMPLE, .size = sizeof(head)};
	uint8_t bytes[4096] = {};
	size_t i;

	for (i = 0; i <= sizeof(head); i++)
		refused(&head, i, "no more than a head");
	memcpy(bytes, &head, sizeof(head));
	for (head.type = 0; head.type < 300; head.type++) {
		if (head.type >= LB_REC_SAMPLE && head.type <= LB_REC_TASK)
			continue;
		memcpy(bytes, &head, sizeof(head));
		refused(bytes, sizeof(bytes), "an unknown type");
	}
}

/* A stack that came again: one of its samples whole, the others in its slot. */
Test(stacks, counted)
{
	enum { SLOT = 77 };
	const uint64_t tag = 5 * LB_STACKS, other = 6 * LB_STACKS;
	struct stacks *kept __cleanup(stacks_free) = NULL;
	static __u64 words[LB_STACKS];
	struct lb_rec_sample s = sample(2);
	struct seen seen = {};

	cr_assert_eq(stacks_new(words, &kept), 0);
	words[SLOT] = tag + 3;
	stacks_collect(kept);
	cr_expect_eq(words[SLOT], tag + 3, "its record is still in the ring");
	cr_expect_eq(stacks_unknown(kept), 3);
	s.hash = tag + SLOT;
	s.tid = 70;
	cr_assert_eq(stacks_add(kept, &s), 0);
	cr_assert_eq(stacks_add(kept, &s), 0);
	s.hash = other + SLOT; /* its slot is taken: it comes whole each time */
	s.tid = 80;
	cr_assert_eq(stacks_add(kept, &s), 0);
	stacks_collect(kept);
	cr_expect_eq(words[SLOT], tag, "what comes next is counted from 0");
	cr_expect_eq(stacks_unknown(kept), 0);
	stacks_commit(kept, on_sample, &seen);
	cr_expect_eq(seen.samples, 6);
	stacks_commit(kept, on_sample, &seen);
	cr_expect_eq(seen.samples, 6, "once");
	words[SLOT] = tag + LB_STACKS - 1;
	stacks_collect(kept);
	seen = (struct seen){};
	stacks_commit(kept, on_sample, &seen);
	cr_expect_eq(seen.samples, LB_STACKS - 1, "it was kept as long as it had the slot");
	cr_expect_eq(seen.sample.tid, 70);
	cr_expect_eq(seen.sample.stack.n, 2);
	stacks_collect(kept);
	cr_expect_eq(words[SLOT], 0, "one that does not come any more leaves its slot");
	stacks_commit(kept, on_sample, &seen);
	words[SLOT] = tag + 1;
	cr_expect_eq(stacks_unknown(kept), 1, "and is forgotten");
}

static bool not_yet(void *arg, const struct lb_rec_sample *s, uint32_t count)
{
	((struct seen *)arg)->samples = (int)count;
	(void)s;
	return false;
}

/* What is not taken is handed on again, with what came since. */
Test(stacks, not_taken)
{
	struct stacks *kept __cleanup(stacks_free) = NULL;
	static __u64 words[LB_STACKS];
	struct lb_rec_sample s = sample(2);
	struct seen seen = {};

	cr_assert_eq(stacks_new(words, &kept), 0);
	s.hash = 9 * LB_STACKS + 1;
	cr_assert_eq(stacks_add(kept, &s), 0);
	stacks_commit(kept, not_yet, &seen);
	cr_expect_eq(seen.samples, 1);
	cr_assert_eq(stacks_add(kept, &s), 0);
	stacks_commit(kept, not_yet, &seen);
	cr_expect_eq(seen.samples, 2);
	seen = (struct seen){};
	stacks_commit(kept, on_sample, &seen);
	stacks_commit(kept, on_sample, &seen);
	cr_expect_eq(seen.samples, 2);
}

#define MEANWHILE 1000000

/* As BPF does: takes the slot when it is empty, and counts. */
static void *count_on(void *arg)
{
	__u64 *word = arg;
	int i;

	for (i = 0; i < MEANWHILE; i++) {
		__u64 was = __atomic_load_n(word, __ATOMIC_RELAXED);
		__u64 next = (was ? was : 9 * LB_STACKS) + 1;

		if (!LB_STACK_COUNT(next) ||
		    !__atomic_compare_exchange_n(word, &was, next, false, __ATOMIC_RELAXED,
						 __ATOMIC_RELAXED))
			i--;
	}
	return NULL;
}

/* BPF counts on while counts are taken and slots emptied: none is lost, none comes twice. */
Test(stacks, counted_meanwhile)
{
	struct stacks *kept __cleanup(stacks_free) = NULL;
	static __u64 words[LB_STACKS];
	struct lb_rec_sample s = sample(1);
	struct seen seen = {};
	pthread_t thread;
	int added = 0;

	cr_assert_eq(stacks_new(words, &kept), 0);
	s.hash = 9 * LB_STACKS + 1;
	cr_assert_eq(pthread_create(&thread, NULL, count_on, &words[1]), 0);
	while (seen.samples < MEANWHILE + added) {
		if (stacks_unknown(kept)) { /* its record comes behind it */
			cr_assert_eq(stacks_add(kept, &s), 0);
			added++;
		}
		stacks_collect(kept);
		stacks_commit(kept, on_sample, &seen);
	}
	cr_assert_eq(pthread_join(thread, NULL), 0);
	stacks_collect(kept);
	stacks_commit(kept, on_sample, &seen);
	cr_expect_eq(seen.samples, MEANWHILE + added);
}

Test(ring, zone_of_each_length)
{
	static const uint32_t lengths[] = {
		0, 1, 7, LB_ZONE_TEXT - 1, LB_ZONE_TEXT, LB_ZONE_TEXT + 1, UINT32_MAX};
	struct lb_rec_zone z = {.head.type = LB_REC_ZONE, .word = LB_ZONE_NAMES};
	struct seen seen;

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint32_t n = lengths[i] < LB_ZONE_TEXT ? lengths[i] : LB_ZONE_TEXT;

		z.len = lengths[i];
		z.head.size = (uint32_t)LB_ZONE_SIZE(n);
		cr_expect_eq(record(&seen, &z, LB_ZONE_SIZE(n)), 0);
		cr_expect_eq(seen.zones, 1);
		if (!n)
			continue;
		z.head.size--;
		refused(&z, LB_ZONE_SIZE(n) - 1, "a name beyond its bytes");
	}
	z.word = LB_ZONE_NAMES - 1;
	refused(&z, sizeof(z), "no hash");
}

Test(ring, task)
{
	struct lb_rec_task t = {.head = {.type = LB_REC_TASK, .size = sizeof(t)}};
	struct seen seen;

	cr_expect_eq(record(&seen, &t, sizeof(t)), 0);
	cr_expect_eq(seen.tasks, 1);
	refused(&t, sizeof(t) - 1, "a byte short");
}

/* A record with parts of these lengths, and `extra` bytes after them. */
static void proto_with(const uint32_t *len, uint32_t n, uint32_t extra, bool good)
{
	static uint64_t room[2048];
	struct lb_rec_proto *p = (struct lb_rec_proto *)room;
	uint8_t *at = (uint8_t *)(p + 1);
	struct seen seen;
	uint32_t size;

	for (uint32_t i = 0; i < n; i++) {
		*(struct lb_part *)at = (struct lb_part){.addr = 1, .len = len[i]};
		at += LB_PART_SIZE(len[i] > LB_PART_MOST ? 0 : len[i]);
	}
	size = (uint32_t)(at - (uint8_t *)room) + extra;
	p->head = (struct lb_rec_head){.type = LB_REC_PROTO, .size = size};
	if (!good) {
		refused(room, size, "a part beyond the record");
		return;
	}
	cr_expect_eq(record(&seen, room, size), 0);
	cr_expect_eq(seen.protos, 1);
	refused(room, size - 1, "a byte short");
}

Test(ring, proto)
{
	const uint32_t some[] = {1, 0, 8, LB_PART_MOST}, most[] = {LB_PART_MOST + 1},
		       all[] = {UINT32_MAX}, eight[] = {8};

	proto_with(NULL, 0, 0, true);
	proto_with(some, 4, 0, true);
	proto_with(some, 4, 8, false); /* half a part */
	proto_with(eight, 1, -8U, false);
	proto_with(most, 1, LB_PART_MOST + 8, false);
	proto_with(all, 1, 0, false);
}
