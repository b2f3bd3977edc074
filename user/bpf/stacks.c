// SPDX-License-Identifier: BSD-2-Clause
#include "stacks.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct stacks {
	struct lb_rec_sample *last[LB_STACKS]; /* only as long as it has frames */
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

const struct lb_rec_sample *stacks_take(struct stacks *stacks, __u64 *sent, uint32_t place,
					uint32_t *count)
{
	const struct lb_rec_sample *last = stacks->last[place];
	__u64 word = __atomic_load_n(&sent[place], __ATOMIC_RELAXED);

	do {
		*count = LB_STACK_COUNT(word);
		if (!*count || !last || LB_STACK_TAG(word) != LB_STACK_TAG(last->sum))
			return NULL;
	} while (!__atomic_compare_exchange_n(&sent[place], &word, LB_STACK_TAG(word), false,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return last;
}
