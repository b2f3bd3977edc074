// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "costacks.h"

void costacks_free(struct costacks *stacks)
{
	for (size_t i = 0; i < stacks->nthreads; i++)
		free(stacks->threads[i].frames);
	free(stacks->threads);
	free(stacks->chain);
	stacks->threads = NULL;
	stacks->chain = NULL;
	stacks->nthreads = stacks->nchain = stacks->cap = 0;
}

void *costack_push(struct costack *stack, size_t frame_size)
{
	char *frame;

	if (stack->n == stack->cap) {
		size_t cap = stack->cap ? 2 * stack->cap : 16;
		void *grown = reallocarray(stack->frames, cap, frame_size);

		if (!grown)
			return NULL;
		stack->frames = grown;
		stack->cap = cap;
	}
	frame = (char *)stack->frames + stack->n++ * frame_size;
	return memset(frame, 0, frame_size);
}

void *costacks_frame(const struct costacks *stacks, size_t skip)
{
	for (size_t i = stacks->nchain; i > 0; i--) {
		const struct costack *t = &stacks->threads[stacks->chain[i - 1]];

		if (skip < t->n)
			return (char *)t->frames + (t->n - 1 - skip) * stacks->frame_size;
		skip -= t->n;
	}
	return NULL;
}

int costacks_resume(struct costacks *stacks, uint32_t number)
{
	if (stacks->nchain == stacks->cap) {
		size_t cap = stacks->cap ? 2 * stacks->cap : 16;
		uint32_t *grown = reallocarray(stacks->chain, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		stacks->chain = grown;
		stacks->cap = cap;
	}
	while (stacks->nthreads <= number) {
		if (array_grow(&stacks->threads, stacks->nthreads, sizeof(*stacks->threads)))
			return -ENOMEM;
		stacks->threads[stacks->nthreads++] = (struct costack){};
	}
	stacks->chain[stacks->nchain++] = number;
	return 0;
}

void costacks_yield(struct costacks *stacks)
{
	struct costack *t = costacks_current(stacks);

	stacks->nchain--;
	if (t->n)
		return;
	free(t->frames);
	*t = (struct costack){};
}
