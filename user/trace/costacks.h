/* SPDX-License-Identifier: BSD-2-Clause */
/* Stacks of frames, one for each coroutine, and the chain of coroutines that resumed each other. */
#ifndef TRACE_COSTACKS_H
#define TRACE_COSTACKS_H

#include <stddef.h>
#include <stdint.h>

struct costack {
	void *frames; /* of costacks.frame_size bytes each */
	size_t n, cap;
};

struct costacks {
	size_t frame_size;	 /* the caller sets it; all else is zero at first */
	struct costack *threads; /* by number */
	size_t nthreads;
	uint32_t *chain; /* numbers; the last one runs */
	size_t nchain, cap;
};

void costacks_free(struct costacks *stacks);

/* Pushes a frame of zeros; NULL: out of memory. */
void *costack_push(struct costack *stack, size_t frame_size);

static inline struct costack *costacks_current(const struct costacks *stacks)
{
	return stacks->nchain ? &stacks->threads[stacks->chain[stacks->nchain - 1]] : NULL;
}

/* The topmost frame of the chain below its `skip` topmost ones; NULL: there is none. */
void *costacks_frame(const struct costacks *stacks, size_t skip);

/* Coroutine `number` comes on top. Numbers are dense: there is memory for all below. -ENOMEM. */
int costacks_resume(struct costacks *stacks, uint32_t number);

/* The topmost coroutine leaves the chain. One without frames has ended. */
void costacks_yield(struct costacks *stacks);

#endif
