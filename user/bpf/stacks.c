// SPDX-License-Identifier: BSD-2-Clause
#include "stacks.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct stack {
	struct stack *next; /* of the same slot, which at most one of them holds */
	uint32_t count;
	struct lb_rec_sample sample; /* only as long as it has frames */
};

struct stacks {
	__u64 *slots;
	struct stack *first[LB_STACKS]; /* by LB_STACK_SLOT() */
};

int stacks_new(__u64 *slots, struct stacks **out)
{
	struct stacks *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->slots = slots;
	*out = s;
	return 0;
}

void stacks_free(struct stacks **stacks)
{
	struct stack *k;
	size_t i;

	if (!*stacks)
		return;
	for (i = 0; i < LB_STACKS; i++) {
		while ((k = (*stacks)->first[i])) {
			(*stacks)->first[i] = k->next;
			free(k);
		}
	}
	free(*stacks);
	*stacks = NULL;
}

static struct stack *find(const struct stacks *s, uint32_t slot, uint64_t tag)
{
	struct stack *k = s->first[slot];

	while (k && LB_STACK_TAG(k->sample.hash) != tag)
		k = k->next;
	return k;
}

int stacks_add(struct stacks *s, const struct lb_rec_sample *sample)
{
	uint32_t slot = LB_STACK_SLOT(sample->hash);
	size_t size = LB_SAMPLE_SIZE(sample->stack.n);
	struct stack *k = find(s, slot, LB_STACK_TAG(sample->hash));

	if (!k) {
		k = malloc(offsetof(struct stack, sample) + size);
		if (!k)
			return -ENOMEM;
		k->count = 0;
		memcpy(&k->sample, sample, size);
		k->next = s->first[slot];
		s->first[slot] = k;
	}
	k->count++;
	return 0;
}

static uint64_t slot_word(const struct stacks *s, uint32_t slot)
{
	return __atomic_load_n(&s->slots[slot], __ATOMIC_RELAXED);
}

/* Moves the count of k's slot into k. A slot with no count is freed. */
static void collect(struct stacks *s, uint32_t slot, struct stack *k, __u64 word)
{
	while (!__atomic_compare_exchange_n(&s->slots[slot], &word,
					    LB_STACK_COUNT(word) ? LB_STACK_TAG(word) : 0, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		; /* BPF has counted one more */
	k->count += LB_STACK_COUNT(word);
}

void stacks_collect(struct stacks *s)
{
	uint32_t slot;

	for (slot = 0; slot < LB_STACKS; slot++) {
		uint64_t word = slot_word(s, slot);
		/* NULL: no record: it is still in the ring, or was refused */
		struct stack *k = word ? find(s, slot, LB_STACK_TAG(word)) : NULL;

		if (k)
			collect(s, slot, k, word);
	}
}

void stacks_commit(struct stacks *s, stacks_sample_fn *fn, void *arg)
{
	uint32_t slot;

	for (slot = 0; slot < LB_STACKS; slot++) {
		struct stack **at = &s->first[slot], *k;

		while ((k = *at)) {
			if (k->count && fn(arg, &k->sample, k->count))
				k->count = 0;
			/* while it has the slot, BPF counts it there and sends no record */
			if (k->count ||
			    LB_STACK_TAG(slot_word(s, slot)) == LB_STACK_TAG(k->sample.hash)) {
				at = &k->next;
				continue;
			}
			*at = k->next;
			free(k);
		}
	}
}

uint64_t stacks_unknown(const struct stacks *s)
{
	uint64_t unknown = 0;
	uint32_t slot;

	for (slot = 0; slot < LB_STACKS; slot++) {
		uint64_t word = slot_word(s, slot);

		if (!find(s, slot, LB_STACK_TAG(word)))
			unknown += LB_STACK_COUNT(word);
	}
	return unknown;
}
