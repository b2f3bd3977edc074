// SPDX-License-Identifier: BSD-2-Clause
#include "stacks.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct stacks {
	struct lb_rec_sample *last[LB_STACKS]; /* only as long as it has frames */
	uint64_t missed[LB_STACKS]; /* tag in sent[] that was another than that of the last; or 0 */
};

int stacks_new(struct stacks **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void stacks_free(struct stacks **stacks)
{
	size_t i;

	if (!*stacks)
		return;
	for (i = 0; i < LB_STACKS; i++)
		free((*stacks)->last[i]);
	free(*stacks);
	*stacks = NULL;
}

void stacks_keep(struct stacks *stacks, const struct lb_rec_sample *sample)
{
	struct lb_rec_sample **last = &stacks->last[LB_STACK_PLACE(sample->sum)];

	free(*last);
	*last = malloc(LB_SAMPLE_SIZE(sample->stack.n));
	if (*last)
		memcpy(*last, sample, LB_SAMPLE_SIZE(sample->stack.n));
}

const struct lb_rec_sample *stacks_find(struct stacks *stacks, const struct lb_rec_again *again)
{
	const struct lb_rec_sample *last = stacks->last[LB_STACK_PLACE(again->sum)];

	return last && last->sum == again->sum ? last : NULL;
}

/* Takes the count off a word that BPF counts in, and leaves `to`; 0 when it is not this stack's. */
static uint32_t take_count(__u64 *word, uint64_t tag, uint64_t to)
{
	__u64 was = __atomic_load_n(word, __ATOMIC_RELAXED);

	do {
		if (LB_STACK_TAG(was) != tag || !LB_STACK_COUNT(was))
			return 0;
	} while (!__atomic_compare_exchange_n(word, &was, to, false, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return LB_STACK_COUNT(was);
}

static uint64_t tag_of(const struct lb_rec_sample *last)
{
	return last ? LB_STACK_TAG(last->sum) : 0;
}

const struct lb_rec_sample *stacks_take(struct stacks *stacks, __u64 *sent, uint32_t place,
					uint32_t *count)
{
	const struct lb_rec_sample *last = stacks->last[place];
	uint64_t tag = tag_of(last);

	*count = tag ? take_count(&sent[place], tag, tag) : 0;
	return *count ? last : NULL;
}

uint32_t stacks_lose(struct stacks *stacks, __u64 *sent, uint32_t place)
{
	uint64_t tag = LB_STACK_TAG(__atomic_load_n(&sent[place], __ATOMIC_RELAXED));
	uint64_t missed = stacks->missed[place];

	stacks->missed[place] = tag == tag_of(stacks->last[place]) ? 0 : tag;
	return tag && tag == missed && stacks->missed[place] ? take_count(&sent[place], tag, 0) : 0;
}
