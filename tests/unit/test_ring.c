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
	int samples, protos, tasks;
	uint64_t lost;
	struct lb_rec_sample sample; /* the last one */
};

static struct stacks *stacks;

static void on_sample(void *arg, const struct lb_rec_sample *s, uint32_t count)
{
	struct seen *seen = arg;

	seen->samples += (int)count;
	memcpy(&seen->sample, s, LB_SAMPLE_SIZE(s->stack.n));
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

/* Dispatches `size` bytes out of an allocation of just that size. */
static int record(struct seen *seen, const void *bytes, size_t size)
{
	struct ring_callbacks cb = {
		.sample = on_sample, .proto = on_proto, .task = on_task, .arg = seen};
	void *copy = malloc(size + !size);
	int err;

	cr_assert(stacks || !stacks_new(&stacks));
	memcpy(copy, bytes, size);
	*seen = (struct seen){};
	err = ring_record(&cb, stacks, copy, size, &seen->lost);
	free(copy);
	return err;
}

static void refused(const void *bytes, size_t size, const char *what)
{
	struct seen seen;

	cr_expect_eq(record(&seen, bytes, size), -EBADMSG, "%s", what);
	cr_expect_eq(seen.samples + seen.protos + seen.tasks, 0, "%s", what);
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
		if (head.type >= LB_REC_SAMPLE && head.type <= LB_REC_AGAIN)
			continue;
		memcpy(bytes, &head, sizeof(head));
		refused(bytes, sizeof(bytes), "an unknown type");
	}
}

static struct lb_rec_again again(uint64_t sum)
{
	return (struct lb_rec_again){
		.head = {.type = LB_REC_AGAIN, .size = sizeof(struct lb_rec_again)},
		.sum = sum,
		.count = 1};
}

/* What a sample refers to is what was sent last in its place, or it is lost. */
Test(ring, again)
{
	struct lb_rec_again a = again(7);
	struct lb_rec_sample s = sample(2);
	struct seen seen;

	cr_expect_eq(record(&seen, &a, sizeof(a)), -ENOENT, "nothing was sent yet");
	s.sum = 7;
	s.tid = 70;
	s.mcofs = 3;
	s.stack.frame[1].pc = 5;
	cr_expect_eq(record(&seen, &s, s.head.size), 0);
	s.sum = 8;
	s.tid = 80;
	cr_expect_eq(record(&seen, &s, s.head.size), 0);
	cr_expect_eq(record(&seen, &a, sizeof(a)), 0);
	cr_expect_eq(seen.samples, 1);
	cr_expect_eq(seen.sample.tid, 70);
	cr_expect_eq(seen.sample.mcofs, 3);
	cr_expect_eq(seen.sample.stack.n, 2);
	cr_expect_eq(seen.sample.stack.frame[1].pc, 5);
	refused(&a, sizeof(a) - 1, "a byte short");

	s = sample(1); /* another of the same place */
	s.sum = 7 + LB_STACKS;
	cr_expect_eq(record(&seen, &s, s.head.size), 0);
	cr_expect_eq(record(&seen, &a, sizeof(a)), -ENOENT);
	cr_expect_eq(seen.samples, 0);
	a.sum = s.sum;
	cr_expect_eq(record(&seen, &a, sizeof(a)), 0);
	cr_expect_eq(seen.sample.stack.n, 1);
}

/* Several at once; none are none. What is lost is told. */
Test(ring, again_and_again)
{
	struct lb_rec_again a = again(LB_STACKS + 9);
	struct lb_rec_sample s = sample(1);
	struct seen seen;

	a.count = 41;
	cr_expect_eq(record(&seen, &a, sizeof(a)), -ENOENT);
	cr_expect_eq(seen.lost, 41);
	s.sum = a.sum;
	cr_expect_eq(record(&seen, &s, s.head.size), 0);
	cr_expect_eq(record(&seen, &a, sizeof(a)), 0);
	cr_expect_eq(seen.samples, 41);
	a.count = LB_STACKS;
	refused(&a, sizeof(a), "more than a word can count");
}

/* What was counted is taken once, for the stack that it was counted for, and for no other. */
Test(ring, counted)
{
	enum { PLACE = 77 };
	const uint64_t tag = 5 * LB_STACKS, other = 6 * LB_STACKS;
	struct stacks *kept __cleanup(stacks_free) = NULL;
	static __u64 sent[LB_STACKS];
	struct lb_rec_sample s = sample(2);
	const struct lb_rec_sample *of;
	uint32_t count;

	cr_assert_eq(stacks_new(&kept), 0);
	sent[PLACE] = tag + 3;
	cr_expect_null(stacks_take(kept, sent, PLACE, &count), "it is under way");
	s.sum = tag + PLACE;
	stacks_keep(kept, &s);
	of = stacks_take(kept, sent, PLACE, &count);
	cr_assert_not_null(of);
	cr_expect_eq(of->sum, s.sum);
	cr_expect_eq(count, 3);
	cr_expect_eq(sent[PLACE], tag, "what comes next is counted from 0");
	cr_expect_null(stacks_take(kept, sent, PLACE, &count), "once");
	sent[PLACE] = other + 4;
	cr_expect_null(stacks_take(kept, sent, PLACE, &count), "of another");
	cr_expect_eq(sent[PLACE], other + 4, "which may come");
	sent[PLACE] = tag + LB_STACKS - 1;
	cr_expect_not_null(stacks_take(kept, sent, PLACE, &count));
	cr_expect_eq(count, LB_STACKS - 1);
}

/* A stack that another one took the place of, so that nobody knows what was counted for it. */
Test(ring, counted_in_vain)
{
	enum { PLACE = 77 };
	const uint64_t tag = 5 * LB_STACKS, other = 6 * LB_STACKS;
	struct stacks *kept __cleanup(stacks_free) = NULL;
	static __u64 sent[LB_STACKS];
	struct lb_rec_sample s = sample(2);
	uint32_t count;

	cr_assert_eq(stacks_new(&kept), 0);
	cr_expect_eq(stacks_lose(kept, sent, PLACE), 0, "nothing was sent");
	cr_expect_eq(stacks_lose(kept, sent, PLACE), 0);
	sent[PLACE] = tag + 3;
	cr_expect_eq(stacks_lose(kept, sent, PLACE), 0, "it may be under way");
	s.sum = tag + PLACE;
	stacks_keep(kept, &s);
	sent[PLACE]++;
	cr_expect_eq(stacks_lose(kept, sent, PLACE), 0, "it is there");
	cr_expect_not_null(stacks_take(kept, sent, PLACE, &count));
	cr_expect_eq(count, 4);

	sent[PLACE] = other + 5;
	cr_expect_eq(stacks_lose(kept, sent, PLACE), 0);
	sent[PLACE] = other + 6;
	cr_expect_eq(stacks_lose(kept, sent, PLACE), 6);
	cr_expect_eq(sent[PLACE], 0, "it is to be sent again");
	sent[PLACE] = tag + 1;
	cr_expect_eq(stacks_lose(kept, sent, PLACE), 0);
	cr_expect_not_null(stacks_take(kept, sent, PLACE, &count));
	cr_expect_eq(count, 1);
}

struct counting {
	__u64 *word;
	uint64_t tag;
};

/* As BPF does. */
static void *count_on(void *arg)
{
	const struct counting *c = arg;
	int i;

	for (i = 0; i < 1000000; i++) {
		uint64_t was = __atomic_load_n(c->word, __ATOMIC_RELAXED);

		if (LB_STACK_COUNT(was + 1) == 0 ||
		    !__atomic_compare_exchange_n(c->word, &was, was + 1, false, __ATOMIC_RELAXED,
						 __ATOMIC_RELAXED))
			i--;
	}
	return NULL;
}

/* BPF counts on while it is taken: none is lost, none comes twice. */
Test(ring, counted_meanwhile, .timeout = 60)
{
	struct stacks *kept __cleanup(stacks_free) = NULL;
	static __u64 sent[LB_STACKS];
	struct counting c = {.word = &sent[1], .tag = 9 * LB_STACKS};
	struct lb_rec_sample s = sample(1);
	uint64_t sum = 0;
	uint32_t count;
	pthread_t thread;

	cr_assert_eq(stacks_new(&kept), 0);
	s.sum = c.tag + 1;
	stacks_keep(kept, &s);
	sent[1] = c.tag;
	cr_assert_eq(pthread_create(&thread, NULL, count_on, &c), 0);
	while (sum < 1000000)
		if (stacks_take(kept, sent, 1, &count))
			sum += count;
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(sum, 1000000);
	cr_expect_eq(sent[1], c.tag);
}

Test(ring, task)
{
	struct lb_rec_task t = {.head = {.type = LB_REC_TASK, .size = sizeof(t)}};
	struct seen seen;

	cr_expect_eq(record(&seen, &t, sizeof(t)), 0);
	cr_expect_eq(seen.tasks, 1);
	refused(&t, sizeof(t) - 1, "a byte short");
}

/* A record with `extra` bytes of content and one part of them. */
static void proto_with(uint32_t nparts, uint32_t at, uint32_t len, bool good)
{
	enum { EXTRA = 64 };
	static union {
		struct lb_rec_proto p;
		uint8_t room[sizeof(struct lb_rec_proto) + EXTRA];
	} r;
	struct seen seen;

	r.p.head = (struct lb_rec_head){.type = LB_REC_PROTO, .size = sizeof(r)};
	r.p.nparts = nparts;
	r.p.part[0] = (struct lb_part){.addr = 1, .at = (uint32_t)sizeof(r.p) + at, .len = len};
	if (!good) {
		refused(&r.p, sizeof(r), "a part beyond the record");
		return;
	}
	cr_expect_eq(record(&seen, &r.p, sizeof(r)), 0);
	cr_expect_eq(seen.protos, 1);
	refused(&r.p, sizeof(r) - 1, "a byte short");
}

Test(ring, proto)
{
	proto_with(0, 0, 0, true);
	proto_with(0, 65, UINT32_MAX, true); /* not counted */
	proto_with(1, 65, 0, true);	     /* empty */
	proto_with(1, 0, 64, true);
	proto_with(LB_PARTS, 63, 1, true);
	proto_with(LB_PARTS + 1, 0, 0, false);
	proto_with(1, 0, 65, false);
	proto_with(1, 64, 1, false);
	proto_with(1, 65, UINT32_MAX, false);
	proto_with(1, -1U, 2, false); /* in the head */
	proto_with(UINT32_MAX, 0, 0, false);
}
